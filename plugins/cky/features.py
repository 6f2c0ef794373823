"""Hashed features of spans from words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from structsolve.plugins.cky.spans import Spans, places_of
from structsolve.utils.params import check_count

_MIX = np.uint64(0x9E3779B97F4A7C15)
# Features of a span; lengths from 8 on share features.
COUNT, LONG = 12, 8


class SpanFeaturizer(TransformerMixin, BaseEstimator):
    """Hashed features of all spans of sentences: words at their ends and beside them, and lengths.

    Parameters
    ----------
    n_bits : int, default=18
        The number of columns is ``2 ** n_bits``.

    Examples
    --------
    >>> from structsolve.plugins.cky import SpanFeaturizer
    >>> SpanFeaturizer(n_bits=10).fit_transform([["the", "dog", "barks"]]).features.shape
    (6, 1024)
    """

    def __init__(self, n_bits: int = 18):
        self.n_bits = n_bits

    def fit(self, X: Sequence[Sequence[str]], y: Any = None) -> SpanFeaturizer:
        """Check parameters; there is nothing to learn.

        Parameters
        ----------
        X : list of list of str
            The words of each sentence.
        y : ignored

        Returns
        -------
        SpanFeaturizer
            Itself.

        Raises
        ------
        ValueError
            If the parameter is invalid.
        """
        check_count("n_bits", self.n_bits, 30)
        return self

    def transform(self, X: Sequence[Sequence[str]]) -> Spans:
        """Return the features of all spans of the sentences.

        Parameters
        ----------
        X : list of list of str

        Returns
        -------
        Spans

        Raises
        ------
        ValueError
            For sentences that are no lists of words; it names the example.
        """
        from scipy import sparse  # heavy

        if isinstance(X, (str, bytes)) or not hasattr(X, "__len__") or not len(X):
            raise ValueError("X: expected a list with the words of at least one sentence")
        rows = []
        for i, words in enumerate(X):
            if isinstance(words, str) or not hasattr(words, "__len__") or not len(words):
                raise ValueError(f"X, example {i}: found {words!r}, expected a list of words")
            rows.append(self._columns(words))
        columns = np.sort(np.concatenate(rows), axis=1)
        matrix = sparse.csr_matrix(
            (
                np.ones(columns.size, np.float32),
                columns.ravel(),
                np.arange(0, columns.size + 1, COUNT),
            ),
            shape=(len(columns), 2**self.n_bits),
        )
        matrix.sum_duplicates()
        return Spans(matrix, [len(words) for words in X])

    def _columns(self, words: Sequence[str]) -> np.ndarray:
        n = len(words)
        start, last = places_of(n)
        marked = ["<s>", *(w.lower() for w in words), "</s>"]
        word = np.array([crc32(w.encode("utf-8", "surrogatepass")) for w in marked], np.uint64)
        end = np.array([crc32(w[-2:].encode("utf-8", "surrogatepass")) for w in marked], np.uint64)
        before, first, final, after = word[start], word[start + 1], word[last + 1], word[last + 2]
        length = np.minimum(last - start + 1, LONG).astype(np.uint64)
        one = (length == 1).astype(np.uint64)
        given = [
            (length, length),
            (first, length),
            (final, length),
            (before, one),
            (after, one),
            (first, final),
            (before, first),
            (final, after),
            (before, after),
            (end[start + 1], one),
            (end[last + 1], length),
            (first + before * _MIX, final + after * _MIX),
        ]
        hashed = np.empty((len(start), COUNT), np.uint64)
        for k, (a, b) in enumerate(given):
            mixed = (a * _MIX + np.uint64(k + 1)) * _MIX + b
            hashed[:, k] = (mixed ^ (mixed >> np.uint64(29))) * _MIX
        return (hashed >> np.uint64(64 - self.n_bits)).astype(np.int32)
