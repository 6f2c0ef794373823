"""Indexes of rivals: the best-scoring classes other than the true one, exact or approximate.

An index returns rivals for a batch of rows at frozen weights, and bounds their errors.  The bound
keeps certificates valid with inexact margins: a rival within epsilon of the best gives an
epsilon-subgradient, and ``(1 - mbar + epsilon)_+`` is at least the hinge of the exact margin.
"""

from __future__ import annotations

import math
import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from structsolve import registry
from structsolve.utils.params import Params, check_count

if TYPE_CHECKING:
    from scipy import sparse

Answer = tuple[np.ndarray, np.ndarray, np.ndarray]

#: Separates this stream of random numbers from the solver's streams with the same seed.
DRAWS_OF_RIVALS = 1


class RivalIndex(Params):
    """Finds rivals; subclasses need a ``name`` and :meth:`rivals`, other methods are optional.

    Constructor arguments are stored unmodified and checked in :meth:`check`.

    Attributes
    ----------
    name : str
    exact : bool
        Whether the first rival is always the best one.
    entries : int
        Weights read in scans since the last :meth:`start`; 0 if the index does not count them.
    """

    name: str = ""
    exact: bool = False
    entries: int = 0

    def check(self) -> None:
        """Raise ValueError if an argument of the constructor is invalid."""

    def start(self, weights: Any, seed: int = 0, n_jobs: int = 1) -> None:
        """Set the weights; each later call of :meth:`rivals` uses their values at that time.

        Parameters
        ----------
        weights : Postings or FeatureRows
            With ``top``, ``scores``, ``n_features`` and ``n_classes``.
        seed : int, default=0
            Seed of all randomness.
        n_jobs : int, default=1
            Threads; results do not depend on it.
        """
        self._weights, self._seed, self._n_jobs, self.entries = weights, seed, n_jobs, 0

    def batch(self, number: int) -> None:
        """Set the number of the next batch.

        Parameters
        ----------
        number : int
            Random draws depend on it and the seed only, not on earlier calls.
        """

    def rivals(
        self, X: sparse.csr_matrix, exclude: np.ndarray, k: int, epsilon: float | None = None
    ) -> Answer:
        """Return rivals of rows.

        Parameters
        ----------
        X : csr_matrix of float32 of shape (n, n_features)
        exclude : ndarray of int32 of shape (n,)
            The class of each row to exclude from its rivals; -1 for none.
        k : int
            Rivals per row, at most the number of other classes.
        epsilon : float, optional
            Largest error of the first rival's score, if the index supports it; by default the
            index's own setting.

        Returns
        -------
        ids : ndarray of int32 of shape (n, k)
            Best first, -1 if there are no more.
        scores : ndarray of float32 of shape (n, k)
            Exact scores of these classes; -inf if there are no more.
        bounds : ndarray of float64 of shape (n,)
            The best rival's score is at most ``scores[:, 0] + bounds``; inf if unknown.
        """
        raise NotImplementedError

    def changed(self, classes: np.ndarray) -> None:
        """Mark classes whose weights have changed.

        Parameters
        ----------
        classes : ndarray of int32
            Without duplicates.  A common factor on all weights is not a change.
        """

    def memory(self, n_features: int, n_classes: int) -> int:
        """Return the bytes that the index will take in addition to the weights.

        Parameters
        ----------
        n_features, n_classes : int

        Returns
        -------
        int
        """
        return 0


class ExactRivals(RivalIndex):
    """The best rivals, by a scan of all weights of a row's features.

    Examples
    --------
    >>> from structsolve.plugins.extreme.solvers.rivals import ExactRivals
    >>> ExactRivals().exact
    True
    """

    name = "exact"
    exact = True

    def rivals(
        self, X: sparse.csr_matrix, exclude: np.ndarray, k: int, epsilon: float | None = None
    ) -> Answer:
        """Return the best rivals of rows, with bounds of zero; see :meth:`RivalIndex.rivals`."""
        ids, scores, bounds, entries = self._weights.top(X, k, exclude=exclude, n_jobs=self._n_jobs)
        self.entries += entries
        return ids, scores, bounds


class CertifiedRivals(RivalIndex):
    """Rivals by a scan that skips features, with a known bound.

    The scan adds features whose weights differ most among the classes first.  The effect of the
    others is at most ``sum |x_f| (max_c w_cf - min_c w_cf)``.  The scan skips them once they cannot
    raise a rival by more than epsilon.  The returned scores are exact.

    Parameters
    ----------
    epsilon : float, default=0.05
        Largest bound, in units of scores; at least 0.

    Examples
    --------
    >>> from structsolve.plugins.extreme.solvers.rivals import make_rivals
    >>> make_rivals("certified:.1")
    CertifiedRivals(epsilon=0.1)
    """

    name = "certified"

    def __init__(self, epsilon: float = 0.05):
        self.epsilon = epsilon

    def check(self) -> None:
        """Raise ValueError unless epsilon is a finite number of at least 0."""
        _check_epsilon(self.epsilon)

    def rivals(
        self, X: sparse.csr_matrix, exclude: np.ndarray, k: int, epsilon: float | None = None
    ) -> Answer:
        """Return rivals of rows with their bounds; see :meth:`RivalIndex.rivals`."""
        epsilon = self.epsilon if epsilon is None else epsilon
        ids, scores, bounds, entries = self._weights.top(
            X, k, epsilon=epsilon, exclude=exclude, n_jobs=self._n_jobs
        )
        self.entries += entries
        return ids, scores, bounds


class RandomRivals(RivalIndex):
    """Classes drawn uniformly, best first; k = 1 is equation (2) of MEMOIR.

    The draws for a row depend on the seed, the batch and the row's position in the batch.

    Parameters
    ----------
    k : int, default=1
        Classes drawn for each row, without replacement; more if a call requests more rivals.

    Examples
    --------
    >>> from structsolve.plugins.extreme.solvers.rivals import make_rivals
    >>> make_rivals("random:64")
    RandomRivals(k=64)
    """

    name = "random"

    def __init__(self, k: int = 1):
        self.k = k

    def check(self) -> None:
        """Raise ValueError unless k is an integer of at least 1."""
        check_count("k", self.k)

    def start(self, weights: Any, seed: int = 0, n_jobs: int = 1) -> None:
        """Set the weights; see :meth:`RivalIndex.start`."""
        super().start(weights, seed, n_jobs)
        self._batch = 0

    def batch(self, number: int) -> None:
        """Set the number of the next batch; see :meth:`RivalIndex.batch`."""
        self._batch = number

    def rivals(
        self, X: sparse.csr_matrix, exclude: np.ndarray, k: int, epsilon: float | None = None
    ) -> Answer:
        """Return rivals drawn at random, with unknown bounds; see :meth:`RivalIndex.rivals`."""
        draws = min(max(self.k, k), self._weights.n_classes - 1)
        rng = np.random.default_rng([self._seed, self._batch, DRAWS_OF_RIVALS])
        ids = _draw(rng, self._weights.n_classes - (exclude >= 0), draws)
        ids += (ids >= exclude[:, None]) & (exclude[:, None] >= 0)
        ids, scores = best_of(self._weights, X, ids.astype(np.int32), k)
        return ids, scores, np.full(len(ids), np.inf)


def _draw(rng: np.random.Generator, numbers_of: np.ndarray, draws: int) -> np.ndarray:
    """Draw different numbers below ``numbers_of[i]``, at least ``draws``, for each row (Floyd)."""
    ids = np.empty((len(numbers_of), draws), np.int64)
    for j in range(draws):
        last = numbers_of - draws + j
        ids[:, j] = rng.integers(0, last + 1)
        again = (ids[:, :j] == ids[:, j : j + 1]).any(1)
        ids[again, j] = last[again]
    return ids


def best_of(weights: Any, X: sparse.csr_matrix, ids: np.ndarray, k: int) -> tuple:
    """Return the best k of candidates, scored exactly.

    Parameters
    ----------
    weights : Postings or FeatureRows
    X : csr_matrix of float32 of shape (n, n_features)
    ids : ndarray of int32 of shape (n, m)
        -1 for none; no duplicates within a row.
    k : int

    Returns
    -------
    ids : ndarray of int32 of shape (n, k)
        Best first, ties by class number; -1 if there are no more.
    scores : ndarray of float32 of shape (n, k)
    """
    n, m = ids.shape
    scores = weights.scores(X, ids)  # -inf for -1
    order = np.lexsort((ids, -scores))[:, :k]
    best = np.full((n, k), -1, np.int32)
    best_scores = np.full((n, k), -np.inf, np.float32)
    best[:, : min(k, m)] = np.take_along_axis(ids, order, 1)
    best_scores[:, : min(k, m)] = np.take_along_axis(scores, order, 1)
    return best, best_scores


def make_rivals(spec: Any) -> RivalIndex:
    """Return an index of rivals by name; an index passes through.

    Parameters
    ----------
    spec : str or RivalIndex
        "exact", "certified:EPSILON", "random:K", "lsh:BITS", "graph", or the name of a plugin's
        index with its arguments.

    Returns
    -------
    RivalIndex

    Raises
    ------
    ValueError
        If the name is unknown or an argument is invalid.
    TypeError
        If spec is neither a name nor an index.

    Examples
    --------
    >>> from structsolve.plugins.extreme.solvers.rivals import make_rivals
    >>> make_rivals("exact")
    ExactRivals()
    >>> make_rivals("certified:-1")
    Traceback (most recent call last):
        ...
    ValueError: rivals 'certified:-1': epsilon is -1, expected a finite number of at least 0...
    """
    if isinstance(spec, RivalIndex):
        made, what = spec, f"rivals {spec!r}"
    elif isinstance(spec, str):
        made, what = registry.default().make("rival_indexes", spec), f"rivals {spec!r}"
        registry.default().check_answer("structsolve_rival_indexes", made, RivalIndex)
    else:
        raise TypeError(
            f"rivals is {spec!r}, expected a name (known: "
            f"{registry.default().names('rival_indexes')}), such as 'certified:.05', or a "
            "RivalIndex"
        )
    try:
        made.check()
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from error
    return made


def _check_epsilon(epsilon: Any) -> None:
    number = isinstance(epsilon, numbers.Real) and not isinstance(epsilon, bool)
    if not number or not (math.isfinite(epsilon) and epsilon >= 0):
        raise ValueError(
            f"epsilon is {epsilon!r}, expected a finite number of at least 0: what the score of "
            "the best rival may be missed by"
        )
