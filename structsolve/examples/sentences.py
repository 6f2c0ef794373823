"""Features of several rows a sentence, stacked: spans of words, arcs between them."""

from __future__ import annotations

from typing import Any

import numpy as np


class SentenceRows:
    """Base of stacked features with a number of rows for each sentence.

    Parameters
    ----------
    n_words : int or sequence of int
        Words of each sentence, at least 1.
    """

    features: Any
    offsets: np.ndarray

    def __init__(self, n_words: Any):
        words = np.atleast_1d(np.asarray(n_words))
        if words.ndim != 1 or words.dtype.kind not in "iu" or not words.size or words.min() < 1:
            raise ValueError(f"n_words is {n_words!r}, expected numbers of words of at least 1")
        self.n_words = words.astype(np.int64)

    def __len__(self) -> int:
        return len(self.n_words)

    def rows_of(self, i: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return sentences by number, and their rows.

        Parameters
        ----------
        i : int, slice or array
            Numbers of sentences, or a mask.

        Returns
        -------
        sentences, rows : ndarray of int

        Raises
        ------
        ValueError
            If there is none.
        """
        if isinstance(i, (int, np.integer)):
            i = [range(len(self))[i]]
        picked = np.arange(len(self))[i]
        if not picked.size:
            raise ValueError("found no sentence to pick, expected at least one")
        return picked, np.concatenate([np.arange(*self.offsets[p : p + 2]) for p in picked])

    def check_width(self, n_features: int | None, what: str) -> None:
        """Refuse other numbers of features than in training, and none at all.

        Parameters
        ----------
        n_features : int or None
            Those in training.
        what : str
            What a row is, in words.

        Raises
        ------
        ValueError
        """
        width = self.features.shape[1]
        if width < 1 or (n_features is not None and width != n_features):
            raise ValueError(
                f"X has {width} features of {what}, expected {n_features or 'some'}"
                f"{'' if n_features is None else ' as in training'}"
            )
