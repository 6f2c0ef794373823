"""Packed examples: all nodes stacked, offsets, labels; what the compiled loops read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Examples:
    """Examples in contiguous arrays, made by a space's ``pack``.

    Parameters
    ----------
    offsets : ndarray of int64 of shape (n + 1,)
        First node of each example.
    nodes : ndarray or scipy.sparse CSR of shape (n_nodes, n_features), or None
        Features of all nodes.
    labels : ndarray of int32, or None
        Encoded labels of all examples, one after the other; None at prediction.
    label_offsets : ndarray of int64 of shape (n + 1,), optional
        First label of each example; ``offsets`` unless the structure says otherwise.
    edge_offsets, edges : optional
        The same for edges, where the structure has edge features.
    sample_weight : ndarray of float64 of shape (n,), optional
    topology : dict, optional
        Whatever else the structure's operators need per example.
    """

    offsets: np.ndarray
    nodes: Any = None
    labels: Any = None
    label_offsets: Any = None
    edge_offsets: np.ndarray | None = None
    edges: Any = None
    sample_weight: np.ndarray | None = None
    topology: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.label_offsets is None:
            self.label_offsets = self.offsets

    @property
    def n(self) -> int:
        """Number of examples."""
        return len(self.offsets) - 1

    def label(self, i: int) -> np.ndarray:
        """Return the encoded label of example ``i`` (a view)."""
        return self.labels[self.label_offsets[i] : self.label_offsets[i + 1]]


class Sequences:
    """Sequences of feature rows, stacked: the fast way to hand many sequences over.

    Parameters
    ----------
    features : array or scipy.sparse matrix of shape (sum of lengths, n_features)
        Rows of all sequences, one sequence after the other.
    lengths : sequence of int
        Rows of each sequence, at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve import Sequences
    >>> X = Sequences(np.eye(5), lengths=[2, 3])
    >>> len(X), X[1].shape
    (2, (3, 5))
    """

    def __init__(self, features: Any, lengths: Any):
        lengths = np.asarray(lengths, dtype=np.int64)
        if lengths.ndim != 1 or (lengths < 1).any():
            raise ValueError("lengths must be a 1-D sequence of integers of at least 1")
        if lengths.sum() != features.shape[0]:
            raise ValueError(
                f"lengths sum to {lengths.sum()}, but features has {features.shape[0]} rows"
            )
        if hasattr(features, "tocsr"):
            features = features.tocsr()
        self.features = features
        self.offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i):
        if isinstance(i, (int, np.integer)):
            i = range(len(self))[i]
            return self.features[self.offsets[i] : self.offsets[i + 1]]
        rows = np.arange(len(self))[i]
        picked = np.concatenate(
            [np.arange(self.offsets[r], self.offsets[r + 1]) for r in rows]
            or [np.zeros(0, dtype=np.int64)]
        )
        return Sequences(self.features[picked], np.diff(self.offsets)[rows])


def from_padded(X: Any, lengths: Any) -> Sequences:
    """Make sequences of a padded 3-D array.

    Parameters
    ----------
    X : array of shape (n, max_length, n_features)
        Rows beyond a sequence's length are ignored, whatever they hold.
    lengths : array of int of shape (n,)

    Returns
    -------
    Sequences

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve import from_padded
    >>> [x.shape for x in from_padded(np.zeros((2, 4, 3)), lengths=[4, 1])]
    [(4, 3), (1, 3)]
    """
    X = np.asarray(X)
    lengths = np.asarray(lengths)
    if X.ndim != 3:
        raise ValueError(f"X has {X.ndim} dimensions, expected 3: (n, max_length, n_features)")
    if lengths.shape != X.shape[:1] or not np.issubdtype(lengths.dtype, np.integer):
        raise ValueError(f"lengths must be {X.shape[0]} integers, one per sequence of X")
    wrong = np.flatnonzero((lengths < 1) | (lengths > X.shape[1]))
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(
            f"example {i}: length {lengths[i]} is outside 1 .. {X.shape[1]}, the padded length"
        )
    keep = np.arange(X.shape[1]) < lengths[:, None]
    return Sequences(X[keep], lengths)
