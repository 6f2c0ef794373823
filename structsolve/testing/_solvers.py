"""``check_solver`` and ``check_loss``: a solver, or a loss, on structures that are right."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from .. import registry
from ..solvers.base import Start
from ..solvers.problem import Problem
from . import _losses, _operators, _training, _whole
from ._case import Case, check_number

# Passes before and after a state is taken: some solvers look at their weights every fifth pass.
BEFORE, AFTER = 6, 5
ALPHA = 0.1


def check_solver(
    solver: Any,
    structure: Any = "chain",
    loss: Any = "hamming",
    surrogate: Any = "margin",
    size: int = 3,
    random_state: int = 0,
) -> None:
    """Check a solver: its certificate, its optimum, its state, and what it leaves alone.

    Parameters
    ----------
    solver : str or Solver
    structure : str or Structure, default="chain"
    loss : str or loss object, default="hamming"
    surrogate : str or surrogate object, default="margin"
        With "margin" objectives are compared with enumeration, and the optimum with that of "bcfw".
    size, random_state : int
        As for :func:`check_structure`.

    Raises
    ------
    BrokenPromise
        An AssertionError that says what was found and expected.
    TypeError
        When ``solver`` is neither a name nor a solver.

    Notes
    -----
    Checked are: records (finite, the gap is primal less dual, what is certified holds for the
    weights), the primal against the objective of the weights, the dual against the primal, the
    optimum, ``weights`` (a copy of the right length), a run that goes on from its ``state`` bit for
    bit, runs of the same seed and on two threads, and that neither examples nor solver change.

    Examples
    --------
    >>> from structsolve.testing import check_solver
    >>> check_solver("cutting-plane", "multiclass")
    """
    structure = registry.get_structure(structure)
    if isinstance(solver, str):
        solver = registry.default().make("solvers", solver)
    registry.default().check_object("solvers", solver, "start", "a Solver object")
    case = Case(structure, 0, random_state, size)
    case.kit, case.more = f"check_solver({solver!r}, structure, ", f", surrogate={surrogate!r}"
    case.enumerate()
    what = f"training by {getattr(solver, 'name', solver)!r}"
    with case.promise(what, "finds its problem put together"):
        problem = Problem(case.space, case.examples, loss, surrogate)
    params = repr(solver)
    _check_runs(case, what, solver, problem)
    if repr(solver) != params:
        case.fail(what, "leaves the solver's parameters as they are", None, repr(solver), params)
    if surrogate == "margin":
        _training.check_solvers(case, loss, ["bcfw", solver])


def _check_runs(case: Case, what: str, solver: Any, problem: Any) -> None:
    def start(n_jobs: int = 1) -> Any:
        with case.promise(what, "starts"):
            return solver.start(Start(problem, ALPHA, np.random.default_rng(case.seed), n_jobs))

    def passes(run: Any, n: int) -> np.ndarray:
        for _ in range(n):
            with case.promise(what, "makes a pass"):
                record = run.step()
            _check_record(case, what, problem, run, record)
        w = run.weights()
        if not isinstance(w, np.ndarray) or w.shape != (problem.dim,) or not np.isfinite(w).all():
            case.fail(what, "has finite weights", None, w, f"shape ({problem.dim},)")
        return w

    examples = vars(problem.examples)
    before = {k: np.copy(v) for k, v in examples.items() if isinstance(v, np.ndarray)}
    run = start()
    w = passes(run, BEFORE)
    for name, array in before.items():
        if not np.array_equal(array, examples[name]):
            case.fail(what, f"leaves examples as they are ({name})", None, examples[name], array)
    kept = w.copy()
    with case.promise(f"{what}: state", "describes the run"):
        meta, arrays = run.state()
    with case.promise(f"{what}: state", "returns values that JSON can hold"):
        meta = json.loads(json.dumps(meta))
    arrays = {name: np.copy(array) for name, array in arrays.items()}
    after = passes(run, AFTER)
    if not np.array_equal(w, kept):
        case.fail(f"{what}: weights", "returns a copy", None, w, kept)
    w[:] = np.nan
    if not np.isfinite(run.weights()).all():
        case.fail(f"{what}: weights", "returns a copy, which callers may change", None, "NaN", "w")
    twin = start()
    with case.promise(f"{what}: restore", "goes on from a state"):
        twin.restore(meta, arrays)
    for other, promise in (
        (passes(twin, AFTER), "goes on from its state bit for bit"),
        (passes(start(), BEFORE + AFTER), "does the same for the same seed"),
        (passes(start(2), BEFORE + AFTER), "does the same on two threads"),
    ):
        if not np.array_equal(other, after):
            difference = f"largest difference {np.abs(other - after).max():.3g}"
            case.fail(what, promise, None, difference, "equal weights")


def _check_record(case: Case, what: str, problem: Any, run: Any, record: Any) -> None:
    if not isinstance(record, dict) or not {"primal", "oracle_calls"} <= record.keys():
        promise = "gives a record with primal and oracle_calls"
        case.fail(f"{what}: step", promise, None, record, "a dict")
    primal, dual, gap = (record.get(key) for key in ("primal", "dual", "gap"))
    if primal is not None and not np.isfinite(primal):
        case.fail(f"{what}: step", "has a finite primal", None, primal, "a number")
    if (
        primal is not None
        and dual is not None
        and gap is not None
        and abs(primal - dual - gap) > 1e-9 * (1 + abs(primal))
    ):
        promise = "has a gap that is primal less dual"
        case.fail(f"{what}: step", promise, None, gap, primal - dual)
    if record.get("certified") and primal is not None:
        actual = problem.primal(run.weights(), ALPHA)[0]
        if actual > primal + 1e-8 * (1 + abs(primal)):
            promise = "certifies at least the objective of its weights"
            case.fail(f"{what}: step", promise, None, primal, f"at least {actual!r}")


def check_loss(
    loss: Any,
    structure: Any = "chain",
    n_cases: int = 2,
    size: int = 3,
    random_state: int = 0,
) -> None:
    """Check a loss on a structure: its values, what it adds to scores, its matrix, its training.

    Parameters
    ----------
    loss : str or loss object
    structure : str or Structure, default="chain"
    n_cases, size, random_state : int
        As for :func:`check_structure`.

    Raises
    ------
    BrokenPromise
        An AssertionError that says what was found and expected.
    ValueError
        For ``n_cases`` below 1.

    Notes
    -----
    Checked are: 0 at the truth and never negative, 0 or 1 where it says so, what it adds to scores
    where it decomposes, the matrix of its costs, ``score`` with it, the loss-augmented oracle where
    that knows it, and (where it decomposes) the optimum of solvers.

    Examples
    --------
    >>> from structsolve.testing import check_loss
    >>> check_loss("zero-one", "multiclass")
    """
    check_number(n_cases)
    structure = registry.get_structure(structure)
    for number in range(n_cases):
        case = Case(structure, number, random_state + number, size)
        case.kit = f"check_loss({loss!r}, structure, "
        case.enumerate()
        what = f"Loss {loss!r}"
        with case.promise(what, "is put together"):
            native = case.loss(loss)
        if not isinstance(native, _losses.Loss):
            case.fail(what, "binds a Loss to a layout", None, type(native).__name__, "a Loss")
        _losses.check_loss(case, loss, native)
        _whole.check_predictions(case, loss)
        _operators.check_augmented_oracle(case, loss)
        if native.decomposes and number == 0:
            _training.check_solvers(case, loss, ["bcfw"])
