"""One optimisation: how it begins, its passes, certificates, state for checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from ..utils.arrays import check_finite
from ..utils.parallel import effective_jobs
from .problem import ROUNDING, Problem

# Examples per call into native code; an interrupt takes effect between calls.
EXAMPLES_PER_CALL = 5_000


def pieces(order: np.ndarray, parts: int = 1) -> Iterator[np.ndarray]:
    """Yield an order of examples in pieces, one for each call into native code.

    Parameters
    ----------
    order : ndarray of int64
    parts : int, default=1
        Parts of equal length, but for one example, which no piece crosses.

    Yields
    ------
    ndarray of int64
    """
    length, longer = divmod(len(order), parts)
    end = 0
    for k in range(parts):
        begin, end = end, end + length + (k < longer)
        for first in range(begin, end, EXAMPLES_PER_CALL):
            yield order[first : min(first + EXAMPLES_PER_CALL, end)]


@dataclass
class Start:
    """The data and state from which a run starts.

    Parameters
    ----------
    problem : Problem
    alpha : float
        Regularisation constant.
    rng : numpy.random.Generator
        All randomness of the run.
    n_jobs : int
    w : ndarray of shape (dim,), optional
        Weights to start from, if the solver can use them.
    tol : float
        Relative gap at which the driver stops; a run may certify when it is near.
    steps : int
        Steps that an earlier run took to ``w``, where solvers count them.
    """

    problem: Problem
    alpha: float
    rng: np.random.Generator
    n_jobs: int = 1
    w: np.ndarray | None = None
    tol: float = 1e-3
    steps: int = 0


class Run:
    """State of one optimisation; the driver calls :meth:`step` once per pass.

    ``step`` returns a record, a dict with ``primal`` (at :meth:`weights`), ``dual``, ``gap``
    (absolute; None if the theory gives none), ``certified`` (False for an estimate made
    while w moved, and without a dual) and ``oracle_calls``; a solver may add further keys.

    Attributes
    ----------
    given : Start
        The start of the run; its problem is that of the current examples.
    """

    given: Start
    best_primal: float
    best_w: np.ndarray
    #: Examples come in batches, and no batch is seen again.
    streams: bool = False
    #: Bounds of every H_i at ``best_w``; None if not computed here.
    best_bounds: np.ndarray | None = None

    #: The least primal of the last candidates.
    present: float = np.inf

    def _keep_best(self, candidates: Iterable[np.ndarray]) -> int:
        """Keep the weights of least primal, new or earlier; return the oracle calls."""
        given, spent, self.present = self.given, 0, np.inf
        for w in candidates:
            if not np.isfinite(w).all():
                continue
            bounds, calls = given.problem.bounds(w, given.n_jobs)
            primal = given.problem.regulariser(w, given.alpha)
            primal += float(given.problem.weights @ bounds)
            spent += calls
            self.present = min(self.present, primal)
            if primal < self.best_primal:
                self.best_primal, self.best_w, self.best_bounds = primal, w, bounds
        return spent

    def _certified(self, dual: float, calls: int = 0) -> dict[str, Any]:
        """Return the record of a certificate of the best weights by a dual value."""
        return {
            "primal": self.best_primal,
            "dual": dual,
            "gap": self.best_primal - dual,
            "certified": True,
            "oracle_calls": calls,
        }

    def _near(self, dual: float, slack: float = 0.0) -> float:
        """Return a dual, that of the primal where rounding alone lifts it above.

        contradicts() reports larger differences.
        """
        close = dual <= self.best_primal * (1 + 1e-9) + slack
        return min(dual, self.best_primal) if close else dual

    def contradiction(self) -> str | None:
        """Return how kept cuts contradict the bounds at the best weights.

        Returns
        -------
        str or None
            None if nothing contradicts the bounds.
        """
        return None

    def _contradicted(self, known: np.ndarray) -> str | None:
        """Describe kept cuts that prove values of H_i at ``best_w`` above their bounds."""
        if self.best_bounds is None:
            return None
        more = known - self.best_bounds
        i = int(np.argmax(more))
        # Scores are sums of larger numbers: cuts of labels with the same score differ by rounding.
        if more[i] <= 1e3 * ROUNDING * (known.max() + abs(self.best_primal)):
            return None
        return (
            f"example {i}: a label that the oracle returned earlier makes the surrogate "
            f"{known[i]:g}, above the bound of its last answer, {self.best_bounds[i]:g}"
        )

    def step(self) -> dict[str, Any]:
        """Make one pass over the data.

        Returns
        -------
        dict
            The record of the pass.
        """
        raise NotImplementedError

    def certify(self) -> dict[str, Any]:
        """Return primal, dual and gap at fixed weights.

        Returns
        -------
        dict
            A record with ``certified`` True.
        """
        raise NotImplementedError

    def weights(self) -> np.ndarray:
        """Return the best weights so far (a copy).

        Returns
        -------
        ndarray of shape (dim,)
        """
        raise NotImplementedError

    def memory(self) -> dict[str, int]:
        """Return the bytes held, by purpose.

        Returns
        -------
        dict of str to int
            Empty if a run does not count them.
        """
        return {}

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything a checkpoint needs.

        Returns
        -------
        meta : dict
            Values that JSON can hold.
        arrays : dict of str to ndarray
        """
        raise NotImplementedError

    def restore(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint, bit for bit.

        Parameters
        ----------
        meta, arrays : dict
            What :meth:`state` returned.
        """
        raise NotImplementedError


class RestartedRun(Run):
    """Base of runs that are pickled as their state: compiled loops are bound to examples."""

    solver: Any

    def __reduce__(self) -> tuple[Any, ...]:
        return _restarted, (self.solver, self.given, *self.state(), self.streams)


def _restarted(
    solver: Any, given: Start, meta: dict[str, Any], arrays: dict[str, np.ndarray], streams: bool
) -> Run:
    run: Run = solver.start(given)
    run.restore(meta, arrays)
    run.streams = streams
    return run


def batch_threads(batch: int, start: Start) -> int:
    """Return the number of threads that share the visits of a batch.

    Parameters
    ----------
    batch : int
        Visits at the same w.
    start : Start

    Returns
    -------
    int
        1 under a Mercer kernel, whose rows one thread computes.
    """
    potentials = start.problem.potentials
    if not potentials.has_weights and not potentials.has_gram:
        return 1
    return min(batch, effective_jobs(start.n_jobs))


def started(solver: Any, start: Start) -> Run:
    """Return a new run of a solver, maybe a package's.

    Parameters
    ----------
    solver : Solver
    start : Start

    Returns
    -------
    Run

    Raises
    ------
    TypeError
        If ``start()`` of the solver returns none.
    """
    run: Run = solver.start(start)
    if not hasattr(run, "given"):
        raise TypeError(f"{solver!r}: start() returned {run!r}, expected a Run")
    return run


def record_of(run: Run, record: Any) -> dict[str, Any]:
    """Check what a pass of a run, maybe a package's, returned.

    Parameters
    ----------
    run : Run
    record : object

    Returns
    -------
    dict
        The record.

    Raises
    ------
    TypeError
        If it is no record.
    """
    what = f"{type(run).__name__}.step() returned"
    if not isinstance(record, dict):
        raise TypeError(
            f"{what} {record!r}, expected a record: a dict with 'oracle_calls', 'primal'"
        )
    for name in ("primal", "dual", "gap", "oracle_calls"):
        value, optional = record.get(name), name != "oracle_calls"
        if not (isinstance(value, Real) or (optional and value is None)):
            none = " or None" if optional else ""
            raise TypeError(f"{what} a record with {value!r} as {name!r}, expected a number{none}")
    return record


def relative_gap(record: dict[str, Any]) -> float | None:
    """Return gap / primal of a record.

    Parameters
    ----------
    record : dict
        See :class:`Run`.

    Returns
    -------
    float or None
        None if there is no gap.
    """
    gap, primal = record.get("gap"), record.get("primal")
    if gap is None or primal is None:
        return None
    return gap / max(abs(primal), 1e-300)


def contradicts(record: dict[str, Any]) -> bool:
    """Return whether a certified dual objective lies above the primal one by more than rounding.

    If so, an oracle does not maximise, or surrogate, loss and parts are inconsistent.

    Parameters
    ----------
    record : dict
        See :class:`Run`.

    Returns
    -------
    bool
    """
    gap, primal = record.get("gap"), record.get("primal")
    if not record.get("certified") or gap is None or primal is None:
        return False
    return gap < -1e-3 * max(abs(primal), abs(primal - gap))


def checked_weights(
    run: Run,
    arrays: dict[str, np.ndarray],
    names: Iterable[str],
    dim: int | None = None,
    *,
    single: bool = False,
) -> list[np.ndarray]:
    """Return copies of a checkpoint's weights; refuse those of another problem.

    Parameters
    ----------
    run : Run
    arrays : dict of str to ndarray
    names : iterable of str
    dim : int, optional
        Their length; by default the number of the problem's weights.
    single : bool, default=False
        Take vectors of single precision, too.

    Returns
    -------
    list of ndarray of shape (dim,)

    Raises
    ------
    ValueError
        If one has another size, or is not finite.
    """
    dim, copies = run.given.problem.dim if dim is None else dim, []
    for name in names:
        w = arrays[name]
        if w.shape != (dim,) or w.dtype not in (np.float64, np.float32 if single else np.float64):
            raise ValueError(
                f"{name} has shape {w.shape} and dtype {w.dtype}, expected ({dim},) of float64"
            )
        check_finite({name: w})
        copies.append(w.copy())
    return copies


def rng_state(rng: np.random.Generator) -> dict[str, Any]:
    """Return the state of a generator as values that JSON can hold.

    Parameters
    ----------
    rng : numpy.random.Generator

    Returns
    -------
    dict
    """
    return dict(rng.bit_generator.state)


def set_rng_state(rng: np.random.Generator, state: dict[str, Any]) -> None:
    """Put a generator into a state.

    Parameters
    ----------
    rng : numpy.random.Generator
    state : dict
        What :func:`rng_state` returned.
    """
    rng.bit_generator.state = state
