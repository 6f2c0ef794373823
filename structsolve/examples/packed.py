"""Packed examples for the compiled loops: stacked nodes, offsets, labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ..utils.masked import refuse_masked
from ..utils.sparse import as_csr
from .stacking import arrays_fit


@dataclass
class Examples:
    """Examples in contiguous arrays, made by a space's ``pack``.

    Parameters
    ----------
    offsets : ndarray of int64 of shape (n + 1,)
        First node of each example.
    nodes : ndarray or scipy.sparse CSR of shape (n_nodes, n_features), or None
        Features of all nodes: CSR if users gave sparse features or the space set ``compress=True``
        (:mod:`structsolve.examples.packing`), else dense.
    labels : ndarray of int32, or None
        Encoded labels of all examples, concatenated; None at prediction.
    label_offsets : ndarray of int64 of shape (n + 1,), optional
        First label of each example; by default ``offsets``.
    edge_offsets, edges : optional
        First edge of each example, and features of all edges, for structures with edges.
    sample_weight : ndarray of float64 of shape (n,), optional
        Finite, at least 0.
    topology : dict, optional
        Further arrays for the structure's operators.
    scaling : ColumnScaling, optional
        Scaling of the users' features in ``nodes`` (:mod:`structsolve.examples.scaling`); models
        fold it into their weights.
    """

    offsets: np.ndarray
    nodes: Any = None
    labels: Any = None
    label_offsets: Any = None
    edge_offsets: np.ndarray | None = None
    edges: Any = None
    sample_weight: np.ndarray | None = None
    topology: dict[str, Any] = field(default_factory=dict)
    scaling: Any = None

    def __post_init__(self) -> None:
        if self.label_offsets is None:
            self.label_offsets = self.offsets

    @property
    def n(self) -> int:
        """Number of examples."""
        return len(self.offsets) - 1

    def label(self, i: int) -> np.ndarray:
        """Return the encoded label of one example, a view.

        Parameters
        ----------
        i : int
            Number of the example, 0 to n - 1.

        Returns
        -------
        ndarray of int32
        """
        return self.labels[self.label_offsets[i] : self.label_offsets[i + 1]]

    def check(self, layout: Any, name: str, columns: bool = True, features: bool = True) -> None:
        """Refuse arrays that do not fit each other or the layout; compiled loops do not check them.

        Parameters
        ----------
        layout : WeightLayout
            The blocks of w.
        name : str
            Name of the structure, for the message.
        columns : bool, default=True
            Check the number of columns of node features against the layout.
        features : bool, default=True
            Check the features; operators need none.

        Raises
        ------
        ValueError
            The message names the array, what it holds and what was expected.
        """
        if arrays_fit(self, layout, columns, features):
            return
        wrong, n = partial(_misfit, name), self.n
        for what in ("offsets", "label_offsets", "edge_offsets"):
            starts = getattr(self, what)
            if starts is None:
                continue
            if getattr(starts, "dtype", None) != np.int64 or np.shape(starts) != (n + 1,):
                raise wrong(what, _described(starts), f"int64 ({n + 1},)")
            if starts[0] != 0 or (np.diff(starts) < 0).any():
                raise wrong(what, "numbers that fall, or do not begin at 0", "0 and rising numbers")
        for what, X, starts, block, width in (
            ("nodes", self.nodes, self.offsets, layout.node, layout.n_features),
            ("edges", self.edges, self.edge_offsets, layout.edge, layout.n_edge_features),
        ):
            if block is None or not features:
                continue
            rows = None if starts is None else int(starts[-1])
            shape = getattr(X, "shape", None)
            if shape is None or len(shape) != 2 or rows != shape[0]:
                raise wrong(what, f"the shape {shape}", f"{rows} rows, as offsets end there")
            if (columns or what == "edges") and shape[1] != width:
                raise wrong(what, f"{shape[1]} columns", f"{width}, as the layout says")
        if self.labels is not None:
            end, labels = int(self.label_offsets[-1]), self.labels
            if getattr(labels, "dtype", None) != np.int32 or np.shape(labels) != (end,):
                expected = f"int32 ({end},), as label_offsets end there"
                raise wrong("labels", _described(labels), expected)
        if not isinstance(self.topology, dict):
            raise wrong("topology", type(self.topology).__name__, 'a dict, {"shapes": ...}')
        weight = self.sample_weight
        if weight is not None:
            shape = np.shape(weight)
            if shape != (n,) or not np.isfinite(weight).all() or np.min(weight, initial=0) < 0:
                raise wrong("sample_weight", f"the shape {shape}", f"{n} numbers of at least 0")


def _misfit(structure: str, array: str, given: Any, expected: Any) -> ValueError:
    return ValueError(
        f"structure {structure!r}: make_space() or pack() gave {array}: found {given}, expected "
        f"{expected}"
    )


def _described(array: Any) -> str:
    return f"{getattr(array, 'dtype', type(array).__name__)} {np.shape(array)}"


class Sequences:
    """Sequences of feature rows, stacked: fast for many sequences.

    Parameters
    ----------
    features : array, data frame or scipy.sparse matrix of shape (sum of lengths, n_features)
        Rows of all sequences, concatenated.
    lengths : sequence of int
        Rows of each sequence, at least 1.
    empty : bool, default=False
        Lengths may be 0, for structures that take empty sequences (``ChainStructure(empty=True)``).

    Raises
    ------
    ValueError
        If a length is below 1 (or 0), or they do not sum to the rows of ``features``.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve import Sequences
    >>> X = Sequences(np.eye(5), lengths=[2, 3])
    >>> len(X), X[1].shape
    (2, (3, 5))
    """

    #: The data frame without rows whose columns name the features, if there is one.
    frame: Any = None

    def __init__(self, features: Any, lengths: Any, empty: bool = False):
        refuse_masked(features, "features", "fill them in, x.filled(0.0)")
        lengths = np.asarray(lengths, dtype=np.int64)
        least = 0 if empty else 1
        if lengths.ndim != 1 or (lengths < least).any():
            raise ValueError(f"lengths must be a 1-D sequence of integers of at least {least}")
        if lengths.sum() != features.shape[0]:
            raise ValueError(
                f"lengths sum to {lengths.sum()}, but features has {features.shape[0]} rows"
            )
        if hasattr(features, "tocsr"):
            features = as_csr(features, "features")
        if hasattr(features, "columns"):
            self.frame, features = features[:0], features.to_numpy()
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
        part = Sequences(self.features[picked], np.diff(self.offsets)[rows], empty=True)
        part.frame = self.frame
        return part


def from_padded(X: Any, lengths: Any, empty: bool = False) -> Sequences:
    """Return the sequences of a padded 3-D array.

    Parameters
    ----------
    X : array of shape (n, max_length, n_features)
        Rows beyond a sequence's length are ignored.
    lengths : array of int of shape (n,)
        Rows of each sequence, 1 to max_length.
    empty : bool, default=False
        Lengths may be 0, as in :class:`Sequences`.

    Returns
    -------
    Sequences

    Raises
    ------
    ValueError
        If X is not 3-D, or naming the example whose length is out of range.

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
    least = 0 if empty else 1
    wrong = np.flatnonzero((lengths < least) | (lengths > X.shape[1]))
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(
            f"example {i}: length {lengths[i]} is outside {least} .. {X.shape[1]}, the padded "
            "length"
        )
    keep = np.arange(X.shape[1]) < lengths[:, None]
    return Sequences(X[keep], lengths, empty)
