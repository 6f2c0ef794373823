"""Features of the spans of sentences, and the stacking of those that users give."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from structsolve.examples.given import is_sparse
from structsolve.utils.arrays import real_array
from structsolve.utils.suggest import a_type


class Spans:
    """Features of the spans of sentences, stacked.

    Parameters
    ----------
    features : array or scipy.sparse matrix of shape (spans, n_features)
        n (n + 1) / 2 rows for each sentence of n words, by rising start, then falling end: the
        first row is the whole sentence, the last one its last word.
    n_words : int or sequence of int
        Words of each sentence, at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.plugins.cky import Spans
    >>> len(Spans(np.eye(4), [1, 2]))
    2
    """

    def __init__(self, features: Any, n_words: Any):
        words = np.atleast_1d(np.asarray(n_words))
        if words.ndim != 1 or words.dtype.kind not in "iu" or not words.size or words.min() < 1:
            raise ValueError(f"n_words is {n_words!r}, expected numbers of words of at least 1")
        self.n_words = words.astype(np.int64)
        self.features = features.tocsr() if is_sparse(features) else np.asarray(features)
        self.offsets = np.concatenate([[0], np.cumsum(self.n_words * (self.n_words + 1) // 2)])
        rows = self.features.shape[0] if self.features.ndim == 2 else None
        if rows != self.offsets[-1]:
            raise ValueError(
                f"features has the shape {self.features.shape}, expected {self.offsets[-1]} rows: "
                "n (n + 1) / 2 for each sentence of n words"
            )

    def __len__(self) -> int:
        return len(self.n_words)

    def __getitem__(self, i: Any) -> Spans:
        if isinstance(i, (int, np.integer)):
            i = [range(len(self))[i]]
        picked = np.arange(len(self))[i]
        if not picked.size:
            raise ValueError("found no sentence to pick, expected at least one")
        rows = np.concatenate([np.arange(*self.offsets[p : p + 2]) for p in picked])
        return Spans(self.features[rows], self.n_words[picked])


@lru_cache(maxsize=256)
def places_of(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return first and last word of the spans of n words, in their order.

    Parameters
    ----------
    n : int

    Returns
    -------
    first, last : ndarray of int
    """
    start, end = np.triu_indices(n)
    order = np.lexsort((-end, start))
    return start[order], end[order]


def stack_spans(X: Any, n_features: int | None = None) -> Spans:
    """Return the checked features of the spans of all sentences.

    Parameters
    ----------
    X : Spans, or list of arrays of shape (n, n, n_features)
    n_features : int, optional
        The number in training.

    Returns
    -------
    Spans

    Raises
    ------
    ValueError
        The message names the example.
    """
    if isinstance(X, Spans):
        spans = X
    elif isinstance(X, (str, bytes, dict)) or not hasattr(X, "__len__") or hasattr(X, "tocsr"):
        raise ValueError(
            f"X is {a_type(X)}, expected Spans, or a list with an array of shape (n, n, "
            "n_features) for each sentence of n words"
        )
    elif len(X) == 0:
        raise ValueError("X is empty: expected at least one sentence")
    else:
        rows: list[np.ndarray] = []
        words = []
        for i, x in enumerate(X):
            x = real_array(x, f"X, example {i}", single=True)
            if x.ndim != 3 or x.shape[0] != x.shape[1] or not x.size:
                raise ValueError(
                    f"X, example {i}: found shape {x.shape}, expected (n, n, n_features): features "
                    "of the span of each first and last word; or Spans"
                )
            if rows and x.shape[2] != rows[0].shape[1]:
                raise ValueError(
                    f"X, example {i}: found {x.shape[2]} features, expected {rows[0].shape[1]} as "
                    "in the first example"
                )
            rows.append(x[places_of(len(x))])
            words.append(len(x))
        spans = Spans(np.concatenate(rows), words)
    width = spans.features.shape[1]
    if width < 1 or (n_features is not None and width != n_features):
        raise ValueError(
            f"X has {width} features of a span, expected {n_features or 'some'}"
            f"{'' if n_features is None else ' as in training'}"
        )
    return spans
