"""Check that solvers agree on the optimum, and that their certificates are true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import registry
from ..solvers.base import Start
from ..solvers.choose import choose_solver
from ..solvers.problem import Problem
from ._case import Case

ALPHA = 0.1
TOL, PASSES = 1e-7, 400


def check_solvers(case: Case, loss: Any, solvers: Sequence[Any]) -> None:
    """Every solver's bounds are bounds, and exact solvers meet at one optimum.

    Parameters
    ----------
    case : Case
    loss : str or loss object
    solvers : sequence of str or Solver
        Those whose records have a gap are trained until it is closed.
    """
    with case.promise("Problem", f"is put together with loss {loss!r}"):
        problem = Problem(case.space, case.examples, loss)
    optima, duals = {}, {}
    for solver in solvers:
        if isinstance(solver, str):
            solver = registry.default().find("solvers", solver).factory()
        what = f"training by {solver.name!r}"
        rng = np.random.default_rng(case.seed)
        with case.promise(what, "runs"):
            run = choose_solver(solver, problem).start(Start(problem, ALPHA, rng, tol=TOL))
            record = run.step()
            # Others may come to a dual later, which they need not close.
            closes = record.get("dual") is not None
            for _ in range(PASSES if closes else 20):
                gap = record.get("gap")
                if record.get("certified") and gap is not None and gap <= TOL * record["primal"]:
                    break
                record = run.step()
            record = {**record, **run.certify()}
        exact = objective(case, loss, run.weights())
        primal, dual = record["primal"], record.get("dual")
        slack = 1e-8 * (1 + abs(exact))
        if abs(primal - exact) > slack:
            promise = "reports the objective of its weights"
            case.fail(what, promise, None, primal, f"{exact!r}, by enumeration")
        if dual is None:
            continue
        if dual > primal + slack:
            case.fail(what, "has a dual below the primal", None, f"{dual!r} > {primal!r}", "<=")
        duals[solver.name] = dual
        if not closes:
            continue
        if primal - dual > 1e-5 * max(primal, 1e-3):
            promise = f"closes the gap in {PASSES} passes"
            case.fail(what, promise, None, f"gap {primal - dual!r}", f"below {1e-5 * primal!r}")
        optima[solver.name] = (primal, dual)
    if optima:
        low = max(dual for _, dual in optima.values())
        for name, (primal, _) in optima.items():
            if abs(primal - low) > 1e-5 * max(abs(low), 1e-3):
                promise = "finds the optimum that all solvers find"
                case.fail(f"training by {name!r}", promise, None, primal, f"{low!r} ({optima})")
        for name, dual in duals.items():
            if dual > low + 1e-5 * max(abs(low), 1e-3):
                promise = "has a dual below the optimum that all solvers find"
                case.fail(f"training by {name!r}", promise, None, dual, f"at most {low!r}")


def objective(case: Case, loss: Any, w: np.ndarray) -> float:
    """Return the training objective at ``w`` by enumeration of all labels."""
    native = case.loss(loss)
    weights = case.examples.sample_weight
    weights = np.ones(case.n) if weights is None else weights
    total = 0.0
    for i in range(case.n):
        theta = scores(case, i, w)
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
