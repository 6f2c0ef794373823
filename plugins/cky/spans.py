"""Features of the spans of sentences, and the stacking of those that users give."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from structsolve.examples.given import check_listed, is_sparse
from structsolve.examples.sentences import SentenceRows
from structsolve.utils.arrays import real_array


class Spans(SentenceRows):
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
        super().__init__(n_words)
        self.features = features.tocsr() if is_sparse(features) else np.asarray(features)
        self.offsets = np.concatenate([[0], np.cumsum(self.n_words * (self.n_words + 1) // 2)])
        rows = self.features.shape[0] if self.features.ndim == 2 else None
        if rows != self.offsets[-1]:
            raise ValueError(
                f"features has the shape {self.features.shape}, expected {self.offsets[-1]} rows: "
                "n (n + 1) / 2 for each sentence of n words"
            )

    def __getitem__(self, i: Any) -> Spans:
        picked, rows = self.rows_of(i)
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
    else:
        expected = "Spans, or a list with an array of shape (n, n, n_features) for each sentence of"
        check_listed(X, f"{expected} n words", one="sentence")
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
    spans.check_width(n_features, "a span")
    return spans
