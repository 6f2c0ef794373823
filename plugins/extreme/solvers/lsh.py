"""Rivals by locality-sensitive hashes: SimpleLSH (Neyshabur, Srebro 2015), as in MEMOIR."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from structsolve.plugins.extreme.solvers._lsh import nearest, packed
from structsolve.plugins.extreme.solvers.rivals import Answer, RivalIndex, best_of
from structsolve.utils.parallel import over_examples
from structsolve.utils.params import check_count

#: Separates the random stream of projections from others with the same seed.
PROJECTIONS = 3
MOST_BITS = 1024


class LSHRivals(RivalIndex):
    """Classes whose hashes differ from the row's hash in the fewest bits, scored exactly.

    With M the largest norm of a class, weights w become ``(w / M, sqrt(1 - |w|^2 / M^2))`` and a
    row x becomes ``(x / |x|, 0)``.  Both have length one, and smaller angles mean higher scores.  A
    hash consists of the signs of Gaussian projections; a bit agrees with probability
    ``1 - arccos(S) / pi``, where S is the cosine (equation (9) of MEMOIR prints cos).

    Parameters
    ----------
    bits : int, default=64
        Number of projections, 1 to 1024.
    candidates : int, default=100
        Number of classes with the nearest hashes, which are scored exactly.

    Notes
    -----
    The errors are not bounded: bounds are inf.  The projections take ``4 bits`` bytes per feature.
    The projected classes are kept: when the largest norm changes, hashes are recomputed without
    reading the weights.

    Examples
    --------
    >>> from structsolve.plugins.extreme.solvers.rivals import make_rivals
    >>> make_rivals("lsh:128")
    LSHRivals(bits=128, candidates=100)
    """

    name = "lsh"

    def __init__(self, bits: int = 64, candidates: int = 100):
        self.bits = bits
        self.candidates = candidates

    def check(self) -> None:
        """Raise ValueError unless bits are 1 to 1024 and candidates at least 1."""
        check_count("bits", self.bits, MOST_BITS)
        check_count("candidates", self.candidates)

    def memory(self, n_features: int, n_classes: int) -> int:
        """Return the bytes of projections and hashes; see :meth:`RivalIndex.memory`."""
        return 4 * self.bits * (n_features + 1 + n_classes) + (8 + self.bits // 8) * n_classes

    def start(self, weights: Any, seed: int = 0, n_jobs: int = 1) -> None:
        """Hash all classes; see :meth:`RivalIndex.start`."""
        fresh = getattr(self, "_drawn", None) != (weights.n_features, self.bits, seed)
        super().start(weights, seed, n_jobs)
        if fresh:
            rng = np.random.default_rng([seed, 0, PROJECTIONS])
            size = (weights.n_features + 1, self.bits)
            self._directions = rng.standard_normal(size, dtype=np.float32)
            self._drawn = (weights.n_features, self.bits, seed)
        self._projected = np.zeros((weights.n_classes, self.bits), np.float32)
        self._norms = np.zeros(weights.n_classes)
        self._stale = np.ones(weights.n_classes, bool)

    def changed(self, classes: np.ndarray) -> None:
        """Hash these classes again before the next answer; see :meth:`RivalIndex.changed`."""
        self._stale[classes] = True

    def _refresh(self) -> None:
        if not self._stale.any():
            return
        stale = np.flatnonzero(self._stale)
        weights = class_rows(self._weights, stale)
        self._projected[stale] = weights @ self._directions[:-1]
        square = weights.multiply(weights).astype(np.float64).sum(1)
        self._norms[stale] = np.sqrt(np.asarray(square).ravel())
        self._stale[stale] = False
        largest = self._norms.max()
        rest = np.zeros(len(self._norms))
        if largest > 0:
            rest = np.sqrt(np.maximum(largest**2 - self._norms**2, 0))
        # Multiplying a projection by M keeps its sign.
        turned = self._projected + rest[:, None].astype(np.float32) * self._directions[-1]
        self._codes = packed(turned)

    def rivals(
        self, X: sparse.csr_matrix, exclude: np.ndarray, k: int, epsilon: float | None = None
    ) -> Answer:
        """Return the best of the nearest classes; see :meth:`RivalIndex.rivals`."""
        self._refresh()
        n = X.shape[0]
        queries = packed(np.ascontiguousarray(X @ self._directions[:-1], np.float32))
        m = min(max(self.candidates, k), self._weights.n_classes - 1)
        ids = np.empty((n, m), np.int32)

        def work(first: int, last: int, space: Any) -> None:
            nearest(queries[first:last], self._codes, exclude[first:last], ids[first:last])

        costs = self._weights.n_classes * np.arange(n + 1, dtype=np.int64)
        over_examples(work, costs, self._n_jobs, lambda: None)
        ids, scores = best_of(self._weights, X, ids, k)
        return ids, scores, np.full(n, np.inf)


def class_rows(weights: Any, classes: np.ndarray) -> sparse.csr_matrix:
    """Return the weights of some classes, one row per class.

    Parameters
    ----------
    weights : Postings or FeatureRows
    classes : ndarray of int
        Without duplicates.

    Returns
    -------
    csr_matrix of float32 of shape (len(classes), n_features)
    """
    frozen = weights.freeze() if hasattr(weights, "freeze") else weights
    place = np.full(frozen.n_classes, -1)
    place[classes] = np.arange(len(classes))
    rows = place[frozen.classes]
    kept = rows >= 0
    features = np.repeat(np.arange(frozen.n_features), np.diff(frozen.indptr))[kept]
    values = np.asarray(frozen.weights[kept], np.float32)
    shape = (len(classes), frozen.n_features)
    return sparse.csr_matrix((values, (rows[kept], features)), shape)
