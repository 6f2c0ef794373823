"""Check that solvers agree on the optimum, and that their certificates are valid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import registry
from ..solvers.bcfw import BCFW
from ..solvers.choose import choose_solver
from ..solvers.problem import Problem
from ..solvers.run import Start
from ._case import Case

ALPHA = 0.1
# Relative gap, and the passes in which it must be reached.
TOL, PASSES = 1e-5, 400


def train(
    case: Case,
    what: str,
    solver: Any,
    problem: Problem,
    tol: float = TOL,
    passes: int = PASSES,
    *,
    alpha: float = ALPHA,
) -> tuple[Any, dict[str, Any], bool]:
    """Train until the gap is well below ``tol``; fail if no record of a gap is certified.

    Parameters
    ----------
    case : Case
    what : str
        The solver, for messages.
    solver : Solver
    problem : Problem
    tol : float
        Relative gap.
    passes : int
        At most.
    alpha : float

    Returns
    -------
    run : Run
    record : dict
        The last one, with the certificate at the run's weights.
    closes : bool
        Whether its first record has a dual: others may have one later, and need not close the gap.
    """
    with case.promise(what, "runs"):
        rng = np.random.default_rng(case.seed)
        run = solver.start(Start(problem, alpha, rng, tol=0.01 * tol))
        record = run.step()
        closes = record.get("dual") is not None
        certified = has_gap = False
        for number in range(passes):
            gap = record.get("gap")
            has_gap |= gap is not None
            certified |= gap is not None and bool(record.get("certified"))
            closed = gap is not None and gap <= 0.01 * tol * record["primal"]
            if number + 1 == passes or (closed and record.get("certified")):
                break
            record = run.step()
    if has_gap and not certified:
        promise = "certifies some records, because training ends by them"
        case.fail(f"{what}: step", promise, None, f"none in {passes} passes", "certified: True")
    with case.promise(f"{what}: certify", "reports primal and dual of the weights"):
        record = {**record, **run.certify()}
    return run, record, closes


def optimum(case: Case, problem: Problem, alpha: float = ALPHA) -> tuple[float, np.ndarray]:
    """Return the least objective of a problem, by the default solver, and the weights.

    Parameters
    ----------
    case : Case
    problem : Problem
    alpha : float

    Returns
    -------
    primal : float
    w : ndarray of shape (problem.dim,)
    """
    solver = choose_solver(BCFW(), problem)
    run, _, _ = train(case, f"training by {solver.name!r}", solver, problem, alpha=alpha)
    w = run.weights()
    return problem.primal(w, alpha)[0], w


def check_solvers(
    case: Case, loss: Any, solvers: Sequence[Any], tol: float = TOL, passes: int = PASSES
) -> None:
    """Every solver's bounds are valid, and exact solvers reach the same optimum.

    Of an inexact oracle the objective is a bound, above that of labels, and gaps may stay open.

    Parameters
    ----------
    case : Case
    loss : str or loss object
    solvers : sequence of str or Solver
        Solvers whose first records have a gap are trained until it is closed.
    tol : float
        Relative gap to reach; for the built-in solvers always the default.
    passes : int
        At most.
    """
    with case.promise("Problem", f"can be built with loss {loss!r}"):
        problem = Problem(case.space, case.examples, loss)
    sure, relaxed = problem.surrogate.exact, case.power("relaxation") is not None
    optima: list[tuple[str, float, float, float]] = []
    duals: list[tuple[str, float, float]] = []
    least = np.inf
    for solver in solvers:
        near, most = (TOL, PASSES) if isinstance(solver, str) else (tol, passes)
        if isinstance(solver, str):
            solver = registry.default().find("solvers", solver).factory()
        what = f"training by {solver.name!r}"
        run, record, closes = train(case, what, choose_solver(solver, problem), problem, near, most)
        exact = objective(case, loss, run.weights())
        least = min(least, exact)
        primal, dual = record["primal"], record.get("dual")
        slack = 1e-8 * (1 + abs(exact))
        if primal < exact - slack or (sure and primal > exact + slack):
            promise = "reports the objective of its weights"
            case.fail(what, promise, None, primal, f"{exact!r}, by enumeration")
        if dual is None:
            continue
        if dual > primal + slack:
            case.fail(what, "has a dual below the primal", None, f"{dual!r} > {primal!r}", "<=")
        if sure or not relaxed:
            duals.append((what, dual, near))
        if sure and closes:
            optima.append((what, primal, dual, near))
    # Objectives are known by enumeration: a dual above one is wrong, regardless of other solvers.
    for what, dual, _ in duals:
        if dual > least + TOL * max(abs(least), 1e-3):
            promise = "has a dual below the objective of any weights"
            case.fail(what, promise, None, dual, f"at most {least!r}")
    low = max((dual for _, _, dual, _ in optima), default=-np.inf)
    for what, primal, dual, near in optima:
        if primal - dual > near * max(primal, 1e-3):
            promise = f"closes the gap in {passes} passes"
            case.fail(what, promise, None, f"gap {primal - dual!r}", f"below {near * primal!r}")
        if primal - low > near * max(abs(low), 1e-3):
            promise = "finds the optimum that all solvers find"
            case.fail(what, promise, None, primal, f"{low!r} ({optima})")


def objective(case: Case, loss: Any, w: np.ndarray) -> float:
    """Return the training objective at ``w`` by enumeration of all labels."""
    native = case.loss(loss)
    weights = case.examples.sample_weight
    weights = np.ones(case.n) if weights is None else weights
    total, model = 0.0, w.copy()
    if case.space.node_mix is not None:
        rows = case.layout.view(model, case.layout.node.name)
        rows[...] = rows @ case.space.node_mix
    for i in range(case.n):
        theta = scores(case, i, model)
        truth = case.mu[i][case.row(i, case.examples.label(i))]
        violations = case.losses(f"Loss {loss!r}", native, i) + (case.mu[i] - truth) @ theta
        total += weights[i] * violations.max()
    return float(0.5 * ALPHA * w @ w + total / weights.sum())


def scores(case: Case, i: int, w: np.ndarray) -> np.ndarray:
    """Return ``theta_i = Phi_i w``, row by row of the features."""
    layout, examples = case.layout, case.examples
    pieces = [w[: layout.shared_size]]
    for block, start, rows, X, offsets, constant in (
        (
            layout.node,
            layout.node_start,
            layout.node_rows,
            examples.nodes,
            examples.offsets,
            layout.intercept,
        ),
        (
            layout.edge,
            layout.edge_start,
            layout.edge_rows,
            examples.edges,
            examples.edge_offsets,
            False,
        ),
    ):
        if block is None:
            continue
        assert offsets is not None
        W = w[start : start + rows * block.size].reshape(rows, block.size)
        features = X[offsets[i] : offsets[i + 1]]
        features = np.asarray(features.todense() if hasattr(features, "todense") else features)
        if constant:
            features = np.column_stack([features, np.ones(len(features))])
        pieces.append((features @ W).ravel())
    return np.concatenate(pieces)
