"""Ambiguous labels of any structure: whole labels of which one is true."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from structsolve.estimators.fitting import take
from structsolve.examples.given import check_weights
from structsolve.examples.packed import Examples
from structsolve.examples.stacking import pieces
from structsolve.solvers.problem import Problem
from structsolve.structure.base import Space
from structsolve.structure.pack import learn_space, pack


@dataclass(frozen=True, eq=False)
class AnyOf:
    """Candidates for the label of one example, as an entry of y: one of them is true.

    :class:`~structsolve.LatentSVM` takes it for every structure.  If labels give nodes classes that
    are unknown one by one, sets of classes at these nodes are shorter.

    Parameters
    ----------
    labels : sequence
        At least one label in the form of the structure.

    Examples
    --------
    The last row has one of two label sets:

    >>> from structsolve import AnyOf, LatentSVM
    >>> X = [[1.0, 0.0], [0.0, 1.0]] * 3 + [[0.1, 1.0]]
    >>> y = [[1, 0], [0, 1]] * 3 + [AnyOf([[1, 0], [0, 1]])]
    >>> model = LatentSVM("multilabel", alpha=0.01).fit(X, y)
    >>> model.hidden_[-1].tolist()
    [0, 1]
    """

    labels: Any
    #: For errors of others.
    trains: ClassVar[str] = "LatentSVM"


def holds_candidates(y: Any) -> bool:
    """Return whether an entry of y is :class:`AnyOf`.

    Parameters
    ----------
    y : as users give it

    Returns
    -------
    bool
    """
    if isinstance(y, np.ndarray) and y.dtype != object:
        return False
    return isinstance(y, (list, tuple, np.ndarray)) and any(isinstance(e, AnyOf) for e in y)


@dataclass
class Candidates:
    """The candidates of every example, packed.

    Parameters
    ----------
    owner : ndarray of int
        The example of each candidate; those of one example follow each other.
    labels : list of ndarray of int32
        The encoded candidates.
    rivals : Examples
        One example per candidate, of the examples that have several.
    """

    owner: np.ndarray
    labels: list[np.ndarray]
    rivals: Examples

    @property
    def several(self) -> np.ndarray:
        """Whether each candidate's example has others."""
        return np.bincount(self.owner)[self.owner] > 1


def read_candidates(
    structure: Any, X: Any, y: Any, fit_intercept: bool, sample_weight: Any
) -> tuple[Space, Examples, Candidates | None]:
    """Return the space of all candidates, the examples with their first ones, the candidates.

    Parameters
    ----------
    structure : Structure
    X, y : as users give them
        Entries of y may be :class:`AnyOf`.
    fit_intercept : bool
    sample_weight : array of shape (n,), optional

    Returns
    -------
    Space, Examples, Candidates
        No candidates if every example has one.

    Raises
    ------
    ValueError
        For an example without candidates, or with candidates of different sizes.
    """
    listed = [list(e.labels) if isinstance(e, AnyOf) else [e] for e in y]
    counts = np.array([len(labels) for labels in listed])
    if not counts.all():
        raise ValueError(f"y, example {counts.argmin()}: AnyOf([]), expected at least one label")
    owner = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum(counts) - counts
    flat = [label for labels in listed for label in labels]
    weights = (check_weights(sample_weight, len(counts)) / counts)[owner]  # equal shares
    try:
        rows = take(X, owner)
        space, everything = learn_space(structure, rows, flat, None, fit_intercept, weights)
    except (ValueError, TypeError, IndexError) as error:
        raise ValueError(_of_the_owner(str(error), owner, first)) from error
    examples = pack(space, X, [labels[0] for labels in listed], sample_weight)
    assert everything.labels is not None
    encoded = pieces(everything.labels, everything.label_offsets)
    sizes = np.diff(everything.label_offsets)
    strange = np.flatnonzero(sizes != sizes[first[owner]])
    if strange.size:
        i = owner[strange[0]]
        raise ValueError(
            f"y, example {i}: candidates of AnyOf have {sizes[first[i]]} and {sizes[strange[0]]} "
            "parts, expected labels of one size"
        )
    several = np.flatnonzero(counts[owner] > 1)
    if not several.size:
        return space, examples, None
    rivals = pack(space, take(X, owner[several]), [flat[k] for k in several])
    return space, examples, Candidates(owner, encoded, rivals)


def _of_the_owner(message: str, owner: np.ndarray, first: np.ndarray) -> str:
    """Return a message about a candidate with the number of its example."""

    def renamed(match: re.Match[str]) -> str:
        k = int(match[1])
        if k >= len(owner):
            return match[0]
        return f"example {owner[k]} (candidate {k - first[owner[k]]})"

    return re.sub(r"example (\d+)", renamed, message)


class CandidateCompleter:
    """Finds the candidate of every example whose surrogate is least at given weights.

    Parameters
    ----------
    problem : Problem
        Of the examples.
    rivals : Problem
        Of the candidates of those that have several.
    candidates : Candidates
    n_jobs : int
    """

    # The loss is that of the completed label: dual variables do not fit another completion.
    carries = False

    def __init__(self, problem: Problem, rivals: Problem, candidates: Candidates, n_jobs: int):
        self.rivals, self.candidates, self.n_jobs = rivals, candidates, n_jobs
        self.offsets = problem.examples.label_offsets

    def allow(self, labels: np.ndarray) -> bool:
        """Return whether every label is one of its candidates.

        Parameters
        ----------
        labels : ndarray of int32

        Returns
        -------
        bool
        """
        given, allowed = pieces(labels, self.offsets), np.zeros(len(self.offsets) - 1, dtype=bool)
        for i, label in zip(self.candidates.owner.tolist(), self.candidates.labels):
            allowed[i] |= np.array_equal(given[i], label)
        return bool(allowed.all())

    def complete(self, w: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the best candidates.

        Parameters
        ----------
        w : ndarray of shape (dim,)
        labels : ndarray of int32
            Current completions.

        Returns
        -------
        labels : ndarray of int32
        missed : float
            0: every candidate is tried.
        """
        several = self.candidates.several
        values = np.zeros(len(several))
        values[several], _ = self.rivals.bounds(w, self.n_jobs)
        return self._taken(labels, np.lexsort((values, self.candidates.owner))), 0.0

    def at_random(self, labels: np.ndarray, seed: int) -> np.ndarray:
        """Return random candidates.

        Parameters
        ----------
        labels : ndarray of int32
            Any completions.
        seed : int

        Returns
        -------
        ndarray of int32
        """
        order = np.random.default_rng(seed).permutation(len(self.candidates.owner))
        return self._taken(labels, order[np.argsort(self.candidates.owner[order], kind="stable")])

    def _taken(self, labels: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Return the labels with the first candidate of each example in an order by example."""
        owner, labels = self.candidates.owner, labels.copy()
        for k in order[np.unique(owner[order], return_index=True)[1]].tolist():
            labels[self.offsets[owner[k]] : self.offsets[owner[k] + 1]] = self.candidates.labels[k]
        return labels
