"""Checks of a solver's runs: records, calls, weights, states, and refused problems."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..potentials.mercer import Kernel
from ..solvers.problem import Problem
from ..solvers.run import Start, relative_gap
from ..surrogates.calls import cut
from ..surrogates.cut_surrogate import CutSurrogate
from ._case import Case
from ._training import ALPHA, optimum, train

# Passes of a run, and passes after which its state is stored: some solvers check their weights
# every tenth pass.
MADE, TAKEN = 21, (1, 2, 3, 5, 6, 11, 12)
# Also weak regularisation: weights oscillate, and the best ones are not the last.
ALPHAS = (ALPHA, 0.01 * ALPHA)
# Relative gap at which a run ends.
CLOSED = 1e-6
# Passes whose oracle calls are counted.
COUNTED = 6
# Keys that a resumed run must report as the first run did.
TOLD = ("primal", "dual", "gap", "certified", "oracle_calls")
# Weights of examples, unequal enough to change the optimum.
SAMPLE_WEIGHT = (1.0, 16.0, 0.25, 4.0)
# Required relative distance to the optimum for solvers without a certified gap.
ROUGH = 0.05

State = tuple[dict[str, Any], dict[str, np.ndarray]]


class Counted(CutSurrogate):
    """Wraps a surrogate to count its cuts, or to declare fewer properties.

    Parameters
    ----------
    native : Surrogate
        The wrapped surrogate.
    affine, convex : bool
        The properties it declares.
    """

    name = "counted"
    exact = False

    def __init__(self, native: Any, affine: bool = True, convex: bool = True):
        self.native, self.affine, self.convex = native, affine, convex
        self.calls = 0

    def cut(self, task: Any, i: int, theta: np.ndarray, truth: np.ndarray) -> tuple[Any, ...]:
        """Return the cut of the other surrogate."""
        self.calls += 1
        answer = cut(self.native, i, theta, truth)
        # Not negative by rounding: problems would check such bounds by further cuts.
        return answer.index, answer.value, answer.b, max(answer.bound, 0.0)


@dataclass
class Checked:
    """A solver under test, and its problem.

    Parameters
    ----------
    case : Case
    solver : Solver
    loss, surrogate : str or object
    """

    case: Case
    solver: Any
    loss: Any
    surrogate: Any

    @property
    def what(self) -> str:
        """The solver, for messages."""
        return f"training by {getattr(self.solver, 'name', self.solver)!r}"

    def problem(self, examples: Any = None, **options: Any) -> Problem:
        """Return the assembled problem, optionally with other examples or options."""
        examples = self.case.examples if examples is None else examples
        options = {"surrogate": self.surrogate, **options}
        return Problem(self.case.space, examples, self.loss, **options)

    def start(self, problem: Problem, alpha: float = ALPHA, n_jobs: int = 1) -> Any:
        """Return a run; the same each time."""
        rng = np.random.default_rng(self.case.seed)
        return self.solver.start(Start(problem, alpha, rng, n_jobs))

    def passes(
        self, problem: Problem, alpha: float, n_jobs: int = 1
    ) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Yield a run and its record, pass by pass, until the gap is closed."""
        with self.case.promise(self.what, "starts"):
            run = self.start(problem, alpha, n_jobs)
        for _ in range(MADE):
            with self.case.promise(self.what, "makes a pass"):
                record = run.step()
            if not isinstance(record, dict) or not {"primal", "oracle_calls"} <= record.keys():
                promise = "gives a record with primal and oracle_calls"
                self.fail("step", promise, record, "a dict")
            yield run, record
            gap = relative_gap(record)
            if record.get("certified") and gap is not None and gap <= CLOSED:
                return

    def fail(self, method: str, promise: str, actual: Any, expected: Any) -> None:
        """Raise BrokenPromise of the solver, or of a method of its run."""
        what = f"{self.what}: {method}" if method else self.what
        self.case.fail(what, promise, None, actual, expected)


def check_runs(checked: Checked, alpha: float) -> None:
    """Records and weights are correct, and the run resumes from each of its states.

    Parameters
    ----------
    checked : Checked
    alpha : float
    """
    with checked.case.promise(checked.what, "can have its problem built"):
        problem = checked.problem()
    best = optimum(checked.case, problem, alpha)[0] if problem.surrogate.convex else np.inf
    examples = vars(problem.examples)
    before = {k: np.copy(v) for k, v in examples.items() if isinstance(v, np.ndarray)}
    states: dict[int, State] = {}
    weights: list[np.ndarray] = []
    records: list[dict[str, Any]] = []
    for run, record in checked.passes(problem, alpha):
        _check_record(checked, run, record, best)
        records.append(record)
        weights.append(_weights(checked, run, problem))
        if len(records) in TAKEN:
            states[len(records)] = _state(checked, run)
    for name, array in before.items():
        if not np.array_equal(array, examples[name]):
            checked.fail("", f"does not change examples ({name})", examples[name], array)
    for n_jobs, promise in (
        (1, "gives the same result for the same seed, even if nobody reads its state"),
        (2, "gives the same result on two threads"),
    ):
        last = [run.weights() for run, _ in checked.passes(problem, alpha, n_jobs)][-1]
        _same(checked, "", promise, last, weights[-1])
    for number, state in states.items():
        twin = checked.start(problem, alpha)
        _check_restored(checked, twin, state, number, weights, records)


def _check_restored(
    checked: Checked,
    twin: Any,
    state: State,
    number: int,
    weights: list[np.ndarray],
    records: list[dict[str, Any]],
) -> None:
    """A run restored to the state after a pass repeats the original run."""
    meta, arrays = state
    with checked.case.promise(f"{checked.what}: restore", "continues from a state"):
        twin.restore(meta, {name: array.copy() for name, array in arrays.items()})
    promise = "has the weights of its state: the best weights and their primal are part of it"
    _same(checked, "restore", promise, twin.weights(), weights[number - 1])
    again = _state(checked, twin)
    for one, other in zip(again, state):
        for name in sorted(one.keys() | other.keys()):
            actual: Any = one.get(name)
            expected: Any = other.get(name)
            if repr(actual) != repr(expected) and not np.array_equal(actual, expected):
                promise = f"restores all of a state ({name})"
                checked.fail("restore", promise, actual, expected)
    for later in range(number, len(records)):
        with checked.case.promise(checked.what, "makes a pass"):
            record = twin.step()
        for key in TOLD:
            actual, expected = record.get(key), records[later].get(key)
            if actual != expected:
                promise = f"continues from its state bit for bit ({key} of pass {later + 1})"
                checked.fail(f"state after pass {number}", promise, actual, expected)
    promise = "continues from its state bit for bit"
    _same(checked, f"state after pass {number}", promise, twin.weights(), weights[-1])


def _same(
    checked: Checked, method: str, promise: str, actual: np.ndarray, expected: np.ndarray
) -> None:
    if not np.array_equal(actual, expected):
        difference = f"largest difference {np.abs(actual - expected).max():.3g}"
        checked.fail(method, promise, difference, "equal weights")


def _state(checked: Checked, run: Any) -> State:
    what = f"{checked.what}: state"
    with checked.case.promise(what, "describes the run"):
        meta, arrays = run.state()
    with checked.case.promise(what, "returns values that JSON can hold"):
        meta = json.loads(json.dumps(meta))
    return meta, {name: np.copy(array) for name, array in arrays.items()}


def _weights(checked: Checked, run: Any, problem: Problem) -> np.ndarray:
    w = run.weights()
    if not isinstance(w, np.ndarray) or w.shape != (problem.dim,) or not np.isfinite(w).all():
        checked.fail("", "has finite weights", w, f"shape ({problem.dim},)")
    kept = w.copy()
    w[:] = np.nan
    again = run.weights()
    if not np.array_equal(again, kept) or np.shares_memory(w, again):
        checked.fail("weights", "returns a copy, which callers may change", again, kept)
    return kept


def _check_record(checked: Checked, run: Any, record: dict[str, Any], best: float) -> None:
    primal, dual, gap = (record.get(key) for key in ("primal", "dual", "gap"))
    if primal is not None and not np.isfinite(primal):
        checked.fail("step", "has a finite primal", primal, "a number")
    known = [value for value in (primal, dual, gap) if value is not None]
    if len(known) == 3 and abs(known[0] - known[1] - known[2]) > 1e-9 * (1 + abs(known[0])):
        checked.fail("step", "has a gap that is primal minus dual", gap, known[0] - known[1])
    if record.get("certified") and primal is not None:
        actual = run.given.problem.primal(run.weights(), run.given.alpha)[0]
        if actual > primal + 1e-8 * (1 + abs(primal)):
            promise = "certifies at least the objective of its weights"
            checked.fail("step", promise, primal, f"at least {actual!r}")
    if dual is not None and dual > best + 1e-6 * (1 + abs(best)):
        promise = "has a dual below the optimum: other weights have a smaller objective"
        checked.fail("step", promise, dual, f"at most {best!r}")


def check_calls(checked: Checked) -> None:
    """Records report the number of cuts requested.

    Parameters
    ----------
    checked : Checked
    """
    native = checked.problem().surrogate
    counted = Counted(native, native.affine, native.convex)
    try:
        run = checked.start(checked.problem(surrogate=counted))
    except ValueError:
        return  # it needs more than cuts from a surrogate
    told, at_start = 0, counted.calls
    for _ in range(COUNTED):
        with checked.case.promise(checked.what, "makes a pass with a surrogate in Python"):
            told += run.step()["oracle_calls"]
    if not (counted.calls or getattr(checked.solver, "minimises", True)):
        return  # it asks the oracle alone
    # The first record may report the calls of start().
    if not counted.calls - at_start <= told <= counted.calls:
        promise = f"counts its oracle calls ({COUNTED} passes, surrogate in Python)"
        checked.fail("step", promise, told, counted.calls)


def check_refusals(checked: Checked) -> None:
    """The solver refuses the problems that it declares unsupported, as ``Solver.check`` does.

    Parameters
    ----------
    checked : Checked
    """
    solver, native = checked.solver, checked.problem().surrogate
    cannot: list[tuple[str, dict[str, Any]]] = []
    if solver.needs_dual:
        cannot.append(("needs_dual = True", {"surrogate": Counted(native, affine=False)}))
    if solver.needs_convex:
        cannot.append(("needs_convex = True", {"surrogate": Counted(native, False, False)}))
    if solver.needs_weights:
        cannot.append(("needs_weights = True", {"kernel": Kernel("rbf")}))
    if not solver.free_coordinates:
        cannot.append(("free_coordinates = False", {"penalize_intercept": False}))
    for declared, options in cannot:
        try:
            problem = checked.problem(**options)
        except ValueError:
            continue  # the structure has no kernels
        if "penalize_intercept" in options and problem.penalty is None:
            continue
        try:
            checked.start(problem)
        except ValueError:
            continue
        promise = "refuses problems that it declares unsupported: start() calls self.check(problem)"
        shown = getattr(options.get("surrogate"), "name", None) and "not affine or not convex"
        allowed = f"a run, with {declared}, on a problem with {shown or options}"
        checked.fail("start", promise, allowed, "ValueError")


def check_optimum(checked: Checked, tol: float, passes: int) -> None:
    """The solver reaches the optimum, also with weights of examples, and its records show it.

    Parameters
    ----------
    checked : Checked
    tol : float
        Tolerated relative distance to the optimum.
    passes : int
        At most.
    """
    case, problem = checked.case, checked.problem()
    if not problem.surrogate.convex:
        return
    sizes = np.resize(SAMPLE_WEIGHT, case.n)
    weighed = checked.problem(replace(case.examples, sample_weight=sizes))
    best = optimum(case, weighed)[0]
    # The objective of the optimum for equal weights of examples.
    plain = weighed.primal(optimum(case, problem)[1], ALPHA)[0]
    run, _, closes = train(case, checked.what, checked.solver, weighed, tol, passes)
    reached = weighed.primal(run.weights(), ALPHA)[0]
    if reached - best <= (tol if closes else max(tol, ROUGH)) * max(abs(best), 1e-3):
        return
    if reached > 0.5 * (best + plain):
        expected = f"{best!r} (the optimum of equal weights has {plain!r})"
        promise = f"respects sample_weight and reaches the optimum in {passes} passes"
        checked.fail("", promise, f"{reached!r}, sample_weight {sizes.tolist()}", expected)
    checked.fail("", f"gets close to the optimum in {passes} passes", reached, best)
