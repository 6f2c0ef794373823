"""Training of ExtremeSVM: the choice of the solver for "auto", and its run."""

from __future__ import annotations

import hashlib
import json
import logging
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from structsolve.plugins.extreme.solvers.base import ExtremeProblem, ExtremeResult, ExtremeSolver
from structsolve.plugins.extreme.solvers.choice import SelfChoice
from structsolve.plugins.extreme.solvers.dual import ExtremeDual
from structsolve.plugins.extreme.solvers.memoir import Memoir
from structsolve.plugins.extreme.solvers.one_vs_rest import OneVsRest
from structsolve.plugins.extreme.solvers.one_vs_some import OneVsSome
from structsolve.plugins.extreme.solvers.softmax import SampledSoftmax
from structsolve.plugins.extreme.weights.postings import Postings
from structsolve.solvers.checkpoint import Checkpoint
from structsolve.solvers.run import relative_gap
from structsolve.utils.params import check_types
from structsolve.utils.progress import Progress, stage

logger = logging.getLogger("structsolve.solvers")

# Rows are far from length 1 beyond FAR or 1 / FAR; up to this share of them goes without a warning.
FAR, MOST_FAR = 3, 0.1
#: The built-in solvers, by name.
SOLVERS: dict[str, type[ExtremeSolver]] = {
    made.name: made
    for made in (SelfChoice, OneVsSome, OneVsRest, SampledSoftmax, ExtremeDual, Memoir)
}
# The surrogate that "auto" means, by solver; "margin" for others.
_OWN_SURROGATE = {
    "choice": "auto",
    "one-vs-some": "squared-hinge",
    "one-vs-rest": "squared-hinge",
    "softmax": "crf",
}
# The solver that "auto" means, by surrogate; "dual" for others.
_OWN_SOLVER = {
    "auto": "choice",
    "squared-hinge": "one-vs-some",
    "logistic": "one-vs-some",
    "crf": "softmax",
}
# Non-zeros times labels up to which "auto" trains rows of several labels with one-vs-rest.
_ALL_ROWS = 2**34


def choose_solver(
    solver: Any, surrogate: Any, penalty: str, incremental: bool, rivals: bool = False
) -> tuple[ExtremeSolver, Any]:
    """Return the solver that runs, and the surrogate that it minimises.

    Parameters
    ----------
    solver : str or ExtremeSolver
        "auto", "choice", "one-vs-some", "softmax", "dual", "memoir" or an object.
    surrogate : str or object
        "auto", a name or an object.
    penalty : {"l2", "l1"}
    incremental : bool
        Training resumes from weights (``partial_fit``).
    rivals : bool, default=False
        An index of rivals is given, which softmax regression does not use.

    Returns
    -------
    solver : ExtremeSolver
    surrogate : str or object
        "auto" for the solver "choice" alone.

    Raises
    ------
    ValueError
        For an unknown name, or an argument of the wrong type.
    TypeError
        For anything else than a name or a solver.

    Examples
    --------
    >>> choose_solver("auto", "auto", "l2", False)[0].name
    'choice'
    >>> choose_solver("auto", "margin", "l2", False)[0].name
    'dual'
    """
    name = getattr(surrogate, "name", surrogate)
    if isinstance(solver, str) and solver == "auto":
        if incremental or penalty == "l1":
            solver = "memoir"
        else:
            # An object has settings, which not every solver uses.
            known = surrogate if isinstance(surrogate, str) else ""
            solver = _OWN_SOLVER.get(known, "dual")
            if rivals and solver == "choice":
                solver = "one-vs-some"
    made = SOLVERS[solver]() if isinstance(solver, str) and solver in SOLVERS else solver
    if not isinstance(made, ExtremeSolver):
        raise (ValueError if isinstance(solver, str) else TypeError)(
            f"solver is {solver!r}, expected 'auto', {', '.join(map(repr, SOLVERS))}, or an "
            "ExtremeSolver object"
        )
    check_types(made, f"{type(made).__name__}: ")
    if name == "auto":
        surrogate = getattr(made, "loss", None) or _OWN_SURROGATE.get(made.name, "margin")
    return made, surrogate


def solver_of_label_sets(
    solver: Any, surrogate: Any, penalty: str, rivals: bool, size: float
) -> tuple[ExtremeSolver, Any]:
    """Return the solver that runs on rows of several labels, and its surrogate.

    Parameters
    ----------
    solver, surrogate, penalty, rivals : as for :func:`choose_solver`
    size : float
        Non-zeros of X times the number of labels.

    Returns
    -------
    solver : ExtremeSolver
    surrogate : str or object

    Raises
    ------
    ValueError
        For a solver that takes one class per row.

    Examples
    --------
    >>> solver_of_label_sets("auto", "auto", "l2", False, 1e6)[0].name
    'one-vs-rest'
    """
    plain = isinstance(surrogate, str) and surrogate in ("auto", "squared-hinge")
    if isinstance(solver, str) and solver == "auto" and plain and penalty == "l2":
        solver = "one-vs-some" if rivals or size > _ALL_ROWS else "one-vs-rest"
    made, chosen = choose_solver(solver, surrogate, penalty, False, rivals)
    if not made.several:
        raise ValueError(
            f"y: found rows of several labels, but solver {made.name!r} (solver={solver!r}, "
            f"surrogate={surrogate!r}, penalty={penalty!r}) takes one class per row: use solver "
            "'one-vs-rest' or 'one-vs-some'"
        )
    return made, chosen


def own_alpha(solver: ExtremeSolver, total: float) -> float:
    """Return the value of alpha="auto".

    Parameters
    ----------
    solver : ExtremeSolver
    total : float
        Number of examples, or the sum of their weights.

    Returns
    -------
    float
        That of C = 1 in liblinear's terms; 0 for softmax regression in a few passes from zero.
    """
    return 0.0 if isinstance(solver, SampledSoftmax) else 1 / total


def is_incremental(solver: Any) -> bool:
    """Return whether a solver can resume from weights.

    Parameters
    ----------
    solver : str or ExtremeSolver

    Returns
    -------
    bool
    """
    if isinstance(solver, str):
        return solver in ("auto", Memoir.name)
    return isinstance(solver, Memoir) or bool(getattr(solver, "incremental", False))


def continued(solver: ExtremeSolver, settings: dict[str, Any]) -> ExtremeSolver:
    """Return a solver whose step sizes continue to decay from those of the last call.

    Parameters
    ----------
    solver : ExtremeSolver
    settings : dict of str to object
        Settings of the last call.

    Returns
    -------
    ExtremeSolver
        Memoir with ``eta0 / (1 + eta_step (T + t))`` as its t-th step; others as they are.
    """
    if not isinstance(solver, Memoir):
        return solver
    eta0, eta_step = settings["eta0"], settings["eta_step"]
    factor = 1 + eta_step * settings["n_iter"]
    params = {**solver.get_params(deep=False), "eta0": eta0 / factor, "eta_step": eta_step / factor}
    return Memoir(**params)


def refuse_unread_rivals(solver: ExtremeSolver, rivals: Any) -> None:
    """Refuse an index of rivals with a solver that does not use one.

    Parameters
    ----------
    solver : ExtremeSolver
    rivals : str or RivalIndex
        As given by the user.

    Raises
    ------
    ValueError
        The message names both.
    """
    if isinstance(solver, SelfChoice):
        raise ValueError(
            f"rivals is {rivals!r}, which solver {solver.name!r} does not take: one of those it "
            "chooses from asks none; leave rivals at 'auto', or use solver 'one-vs-some'"
        )
    if isinstance(solver, OneVsRest):
        raise ValueError(
            f"rivals is {rivals!r}, which solver {solver.name!r} does not take: it trains on all "
            "rows; leave rivals at 'auto', or use solver 'one-vs-some'"
        )
    if isinstance(solver, SampledSoftmax):
        raise ValueError(
            f"rivals is {rivals!r}, which solver {solver.name!r} does not take: it draws classes "
            "at random; leave rivals at 'auto', or use solver 'dual' or 'memoir'"
        )


def fingerprint_of(problem: ExtremeProblem, settings: dict[str, Any]) -> str:
    """Return a digest of data and settings, which a checkpoint must match.

    Parameters
    ----------
    problem : ExtremeProblem
    settings : dict
        JSON-able.

    Returns
    -------
    str
    """
    digest = hashlib.sha256()
    X, own = problem.X, () if problem.labels is None else problem.own
    for array in (X.data, X.indices, X.indptr, problem.y, problem.shares, *own):
        digest.update(np.ascontiguousarray(array).data)
    sizes = {"classes": problem.n_classes, "features": X.shape[1], "alpha": problem.alpha}
    digest.update(json.dumps({**sizes, **settings}, sort_keys=True).encode())
    return digest.hexdigest()


def train(
    solver: ExtremeSolver,
    problem: ExtremeProblem,
    callbacks: Sequence[Callable[[dict[str, Any]], Any]] | None = None,
    verbose: int = 0,
    checkpoint: Checkpoint | None = None,
) -> ExtremeResult:
    """Run a solver with progress and callbacks, and check what it returns.

    Parameters
    ----------
    solver : ExtremeSolver
    problem : ExtremeProblem
    callbacks : sequence of callable, optional
        Each is called with a copy of every record; True ends training.
    verbose : int, default=0
    checkpoint : Checkpoint, optional

    Returns
    -------
    ExtremeResult

    Raises
    ------
    TypeError, ValueError
        If the solver returns anything else, or weights that have wrong sizes or are not finite; the
        message names it.
    """
    name = solver.name
    size = f"{problem.X.shape[0]} examples, {problem.n_classes} classes"
    stage(int(verbose), name, f"preparing {size}")
    with Progress(int(verbose), int(problem.max_iter), name, tol=float(problem.tol)) as progress:

        def after(record: dict[str, Any]) -> bool:
            # Passes of an earlier run count: training may resume from a checkpoint.
            progress.done = int(record.get("pass", progress.done + 1)) - 1
            progress.update(record)
            with progress.aside():
                answers = [call(dict(record)) for call in callbacks or ()]
            return any(answer is True for answer in answers)

        result = solver.fit(problem, after, checkpoint)
    if checkpoint is not None:
        checkpoint.close()
    _check_result(solver, problem, result)
    if result.stop_reason == "interrupted":
        passes = len(result.history)
        logger.warning("interrupted after %d passes: keeping the best model", passes)
    return result


def _check_result(solver: ExtremeSolver, problem: ExtremeProblem, result: Any) -> None:
    if not isinstance(result, ExtremeResult) or not isinstance(result.weights, Postings):
        given = getattr(result, "weights", result)
        raise TypeError(
            f"solver {solver.name!r} returned weights of type {type(given).__name__}, expected an "
            "ExtremeResult with Postings"
        )
    expected = problem.X.shape[1], problem.n_classes
    given = result.weights.n_features, result.weights.n_classes
    if given != expected:
        raise ValueError(
            f"solver {solver.name!r} returned weights of {given[0]} features and {given[1]} "
            f"classes, expected {expected[0]} and {expected[1]}"
        )
    if not np.isfinite(result.weights.weights).all():
        raise ValueError(
            f"solver {solver.name!r} came to weights that are not finite; scale the features to "
            "values around 1, or use a larger alpha"
        )


def warn_lengths(solver: ExtremeSolver, X: sparse.csr_matrix) -> None:
    """Warn if rows are too long or too short for the constants of the solver.

    Parameters
    ----------
    solver : ExtremeSolver
    X : csr_matrix of shape (n, n_features)
        Rows without features do not count.
    """
    if not solver.unit_rows or not X.nnz:
        return
    starts = X.indptr[:-1][np.diff(X.indptr) > 0]
    lengths = np.sqrt(np.add.reduceat(X.data.astype(np.float64) ** 2, starts))
    lengths = lengths[lengths > 0]
    far = np.abs(np.log(lengths)) > np.log(FAR)
    if np.mean(far) > MOST_FAR:
        low, median, high = np.quantile(lengths, [0.05, 0.5, 0.95])
        warnings.warn(
            f"X: {far.sum()} of {len(far)} rows are far from length 1 (median {median:.3g}, 90% "
            f"from {low:.3g} to {high:.3g}), but the constants of solver {solver.name!r} are for "
            "such rows; the error may be much larger than necessary: scale the rows in training "
            "and prediction with sklearn.preprocessing.Normalizer",
            UserWarning,
            stacklevel=4,
        )


def judged(record: dict[str, Any]) -> dict[str, Any]:
    """Return the primal and the gap that a solver compares with tol.

    Parameters
    ----------
    record : dict
        Of a pass.

    Returns
    -------
    dict
        Those of the machines, without terms that are added by design; else the record's.
    """
    solved = record.get("machines_gap")
    return record if solved is None else {"gap": solved, "primal": record["dual"] + solved}


def warn_unfinished(result: ExtremeResult, tol: float, max_iter: int) -> None:
    """Warn if training ended before the gap was small enough.

    Parameters
    ----------
    result : ExtremeResult
    tol : float
    max_iter : int
    """
    # Solvers of one pass need no more passes.
    ended = result.stop_reason == "max_iter" and len(result.history) >= max_iter
    gap = None
    if ended:
        gap = relative_gap(judged(result.history[-1]))
    if gap is not None and gap > tol:
        warnings.warn(
            f"stopped after max_iter={max_iter} passes with a relative gap of {gap:.2g}, tol is "
            f"{tol:g}; raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=4,
        )
