"""Arguments and results of solvers for very many classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse

from structsolve.solvers.checkpoint import Checkpoint, check_state
from structsolve.utils.params import Params

if TYPE_CHECKING:
    from structsolve.plugins.extreme.weights.postings import Postings

#: Called with each record; True ends the training with "callback".
After: TypeAlias = Callable[[dict[str, Any]], bool] | None

#: Keys of every record of the history; a bound that is not computed is None.
RECORD = ("pass", "primal", "dual", "gap", "mean_epsilon", "entries", "seconds")


@dataclass
class ExtremeProblem:
    """Examples with one class each, and the settings of the objective.

    The objective is ``alpha / 2 ||W||^2 + sum_i s_i H(W; x_i, y_i)`` with weights ``s_i`` that sum
    to one (``penalty="l1"``: ``alpha / 2 ||W||_1``).  It is MEMOIR's with lambda = alpha.

    Parameters
    ----------
    X : csr_matrix of float32 of shape (n, n_features)
        Columns sorted within rows, no duplicates, all finite; ``indices`` int32, ``indptr`` int64.
    y : ndarray of int32 of shape (n,)
        Classes, counted from 0.
    n_classes : int
        At least 2.
    alpha : float
        Regularisation constant.
    surrogate : object, default="margin"
        A name or an object of the package's surrogates, or "squared-hinge".
    penalty : {"l2", "l1"}, default="l2"
    rivals : RivalIndex or None
        None leaves the choice to the solver.
    sample_weight : ndarray of float64 of shape (n,), optional
        Non-negative, with a positive sum; equal by default.
    max_iter : int, default=20
        Maximum number of passes.
    tol : float, default=1e-2
        Relative gap at which a solver stops.
    max_memory : float or None, default=None
        Bytes that training may take in addition to the data.
    n_jobs : int, default=1
        Threads; results do not depend on it.
    seed : int, default=0
        Seed of all randomness.
    start : Postings or None
        Weights to resume from, if the solver supports it (``partial_fit``).
    labels : csr_matrix of shape (n, n_classes), optional
        Indicators of several classes, or none, per row; ``y`` is then the first of each, or -1.
    """

    X: sparse.csr_matrix
    y: np.ndarray
    n_classes: int
    alpha: float
    surrogate: Any = "margin"
    penalty: str = "l2"
    rivals: Any = None
    sample_weight: np.ndarray | None = None
    max_iter: int = 20
    tol: float = 1e-2
    max_memory: float | None = None
    n_jobs: int = 1
    seed: int = 0
    start: Postings | None = None
    labels: sparse.csr_matrix | None = None

    @property
    def own(self) -> tuple[np.ndarray, np.ndarray]:
        """The classes of each example: where they start (int64), and the classes (int32)."""
        if self.labels is None:
            return np.arange(len(self.y) + 1), self.y
        return self.labels.indptr.astype(np.int64), self.labels.indices.astype(np.int32)

    @property
    def shares(self) -> np.ndarray:
        """Weights of the examples, normalised to sum one: float64 of shape (n,)."""
        if self.sample_weight is None:
            return np.full(len(self.y), 1 / len(self.y))
        return self.sample_weight / self.sample_weight.sum()

    def check_shares(self, least: float, most: float, why: str, factor: float = 1.0) -> None:
        """Refuse an alpha by which the largest weight of an example leaves the range of numbers.

        Parameters
        ----------
        least, most : float
            The range of ``max(shares) / alpha``, times the factor.
        why : str
            What is wrong beyond it, for the message.
        factor : float, default=1

        Raises
        ------
        ValueError
            Also for an alpha that is not positive.
        """
        if not 0 < self.alpha < np.inf:
            raise ValueError(f"alpha is {self.alpha!r}, expected a positive number")
        largest = float(self.shares.max()) / self.alpha
        if not least <= largest * factor <= most:
            raise ValueError(
                f"alpha is {self.alpha!r}: an example has a share of {largest:g} times it, "
                f"expected {least:g} to {most:g}, {why}; take another alpha, or scale "
                "sample_weight"
            )


@dataclass
class ExtremeResult:
    """The result of a solver for very many classes.

    Parameters
    ----------
    weights : Postings
    history : list of dict
        A record per pass, with the keys of `RECORD` and keys of the solver.
    stop_reason : str
        "tol", "max_iter", "callback" or "interrupted".
    settings : dict of str to object, optional
        Settings that the solver chose, by name.
    """

    weights: Postings
    history: list[dict[str, Any]]
    stop_reason: str
    settings: dict[str, Any] = field(default_factory=dict)


class ExtremeSolver(Params):
    """A solver for very many classes; subclasses have a ``name`` and :meth:`fit`.

    ``unit_rows`` tells that its constants are for rows of length around 1, ``several`` that it
    takes rows of several labels.

    Constructor arguments are stored unmodified and checked in :meth:`fit`.
    """

    name: str
    unit_rows = False
    several = False

    def fit(
        self, problem: ExtremeProblem, after: After = None, checkpoint: Checkpoint | None = None
    ) -> ExtremeResult:
        """Train.

        Parameters
        ----------
        problem : ExtremeProblem
        after : callable, optional
            Called with each record; True ends the training with "callback".
        checkpoint : Checkpoint, optional
            Read at the start, written between passes; a run resumes from it bit for bit.

        Returns
        -------
        ExtremeResult
            After Ctrl-C, the best weights so far, with "interrupted".

        Raises
        ------
        ValueError
            If the solver does not support the surrogate or penalty, or would take more than
            ``max_memory``; raised before allocation, with the estimate.
        """
        raise NotImplementedError


def resumed(run: Any, checkpoint: Checkpoint | None) -> bool:
    """Bring a run to the state of a checkpoint, if there is one.

    Parameters
    ----------
    run : object
        With ``state`` and ``resume``.
    checkpoint : Checkpoint, optional

    Returns
    -------
    bool
        Whether there is one.
    """
    held = None if checkpoint is None else checkpoint.read()
    if checkpoint is None or held is None:
        return False
    with checkpoint.blame():
        check_state(held, run.state())
        run.resume(*held)
    return True


def refuse_overflow(number: int, total: float) -> None:
    """Refuse weights that have overflowed.

    Parameters
    ----------
    number : int
        Passes before this one.
    total : float
        A number that is finite as long as weights and scores are.

    Raises
    ------
    ValueError
    """
    if not np.isfinite(total):
        raise ValueError(
            f"training led to weights that are not finite in pass {number + 1}; scale the "
            "features to values around 1, or use a larger alpha"
        )


def take_passes(run: Any, after: After, checkpoint: Checkpoint | None) -> str:
    """Take the passes of a run, from a checkpoint if there is one.

    Parameters
    ----------
    run : object
        With ``more``, ``step``, ``reason``, ``state`` and ``resume``.
    after : callable, optional
    checkpoint : Checkpoint, optional
        As for :meth:`ExtremeSolver.fit`.

    Returns
    -------
    str
        Why they ended; see :class:`ExtremeResult`.
    """
    reason = run.reason() if resumed(run, checkpoint) else "max_iter"
    try:
        while run.more() and reason == "max_iter":
            record = run.step()
            reason = run.reason()
            if after is not None and after(record):
                reason = "callback"
            elif checkpoint is not None and run.more() and checkpoint.due():
                checkpoint.write(run.state)
    except KeyboardInterrupt:
        reason = "interrupted"
    if checkpoint is not None:
        if reason != "interrupted":
            checkpoint.write(run.state)
        checkpoint.close()
    return reason
