"""Roof duality against linear programs: the relaxation of the 14-label Yeast model, per call.

The models are the loss-augmented scores of training examples under a margin model with all pairs of
labels.  Peers solve the local polytope in its standard form (node and edge marginals) and in its
smallest form (one variable per node and edge). highspy keeps the model and its basis while only
costs change; cvxpy compiles a problem with parameters once.  All must give the same value.  A
second table has random dense models of growing size.

    STRUCTSOLVE_DATA=... python benchmarks/roof.py
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

import numpy as np
from common import header, quiet, structsolve_or_none, table
from datasets import multilabel

FORMS = ("standard", "smallest")
# Options of highspy that matter if only the costs of a program change.
HIGHS = {
    "dual simplex": {},
    "primal simplex": {"simplex_strategy": 4},
    "primal simplex, no presolve": {"simplex_strategy": 4, "presolve": "off"},
}
CVXPY = {
    "HIGHS": {},
    "CLARABEL": {},
    "SCIPY": {},
    "OSQP": {"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iter": 100_000},
}
# A value with a larger relative error is not the relaxation's.
EXACT = 1e-6


def yeast_models(structsolve: Any, n_models: int, alpha: float) -> tuple[list[Any], Any]:
    """Loss-augmented scores of training examples, as graphs of 14 nodes and 91 edges.

    The second result is the time of a pass over all training examples: scores, roof duality, cuts.
    """
    from structsolve.plugins.mrf.tables._model import GraphModel
    from structsolve.solvers.passes import surrogate_bounds
    from structsolve.surrogates import Margin

    X, Y, _, _ = multilabel("yeast")
    structure = structsolve.get_structure("multilabel", oracle="roof-duality", edges="full")
    svm = structsolve.StructuredSVM(structure, loss="hamming", alpha=alpha, max_iter=50, tol=1e-2)
    svm.fit(X, Y)
    record = svm.history_[-1]
    print(
        f"margin model, alpha={alpha:g}: {len(svm.history_)} passes, relative gap "
        f"{record['gap'] / record['primal']:.3f}\n"
    )
    L, edges = Y.shape[1], svm.space_.edges_
    on = X @ svm.coef_["node"] + svm.coef_["intercept"] + 1 - 2 * Y
    picked = np.random.default_rng(0).choice(len(X), n_models, replace=False)
    pair = np.ascontiguousarray(svm.coef_["pair"]).ravel()
    unary = np.zeros((n_models, L, 2))
    unary[:, :, 1] = on[picked]
    examples = svm.space_.pack(X, Y)
    problem = structsolve.Problem(svm.space_, examples, surrogate=Margin())

    def sweep() -> tuple[Any, Any]:
        begun = process_time()
        surrogate_bounds(problem, svm.flat_weights())
        return None, np.array([(process_time() - begun) / len(X)])

    return [GraphModel(np.full(L, 2), edges, row.ravel(), pair) for row in unary], sweep


def random_models(n: int, strength: float, n_models: int) -> list[Any]:
    """Node scores have the given deviation, scores of all pairs have deviation 1."""
    from structsolve.plugins.mrf.tables._model import GraphModel

    rng = np.random.default_rng(n)
    edges = np.column_stack(np.triu_indices(n, 1))
    states, m = np.full(n, 2), len(edges)
    return [
        GraphModel(states, edges, strength * rng.normal(size=2 * n), rng.normal(size=4 * m))
        for _ in range(n_models)
    ]


def polytope(model: Any, form: str) -> Any:
    from structsolve.plugins.mrf.relaxation.programs import LocalPolytope

    return LocalPolytope(model.states, model.ends, by_parts=form == "standard")


def with_highs(models: list[Any], form: str, options: dict[str, Any]) -> tuple[Any, Any]:
    """Values and seconds a call; the time is that of ``run`` alone."""
    import highspy

    program = polytope(models[0], form)
    with quiet():  # the banner of HiGHS 1.16 at construction
        highs = highspy.Highs()
    highs.silent()
    highs.setOptionValue("threads", 1)
    for name, value in options.items():
        highs.setOptionValue(name, value)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = program.size, program.A.shape[0]
    lp.col_cost_ = np.zeros(program.size)
    # In the standard form no variable exceeds 1 because the sums are 1.
    top = np.inf if form == "standard" else 1.0
    lp.col_lower_, lp.col_upper_ = np.zeros(program.size), np.full(program.size, top)
    lp.row_lower_, lp.row_upper_ = program.low, program.high
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = program.A.indptr
    lp.a_matrix_.index_ = program.A.indices
    lp.a_matrix_.value_ = program.A.data
    lp.sense_ = highspy.ObjSense.kMaximize
    highs.passModel(lp)
    columns = np.arange(program.size, dtype=np.int32)
    values, seconds = [], []
    # The first program is solved twice, so that every timed call starts from a basis.
    for model in [models[0], *models]:
        costs, constant = program.costs(model.unary, model.pair)
        highs.changeColsCost(program.size, columns, costs)
        begun = process_time()
        highs.run()
        seconds.append(process_time() - begun)
        values.append(highs.getInfo().objective_function_value + constant)
    return np.array(values[1:]), np.array(seconds[1:])


def with_cvxpy(models: list[Any], form: str, solver: str) -> tuple[Any, Any]:
    """Values and seconds a call of ``solve`` on a problem that is compiled once."""
    import cvxpy as cp

    program = polytope(models[0], form)
    x, scores = cp.Variable(program.size), cp.Parameter(program.size)
    rows = program.A @ x
    limits = [rows == program.high] if form == "standard" else [rows <= program.high]
    limits += [x >= 0] if form == "standard" else [x >= 0, x <= 1]
    problem = cp.Problem(cp.Maximize(scores @ x), limits)
    values, seconds = [], []
    for model in [models[0], *models]:
        costs, constant = program.costs(model.unary, model.pair)
        scores.value = costs
        begun = process_time()
        problem.solve(solver=solver, warm_start=True, **CVXPY[solver])
        seconds.append(process_time() - begun)
        values.append(problem.value + constant)
    return np.array(values[1:]), np.array(seconds[1:])


def ours(models: list[Any], repeat: int) -> tuple[Any, Any, float]:
    """Values, seconds a call of native code, and the share of halves."""
    from structsolve.plugins.mrf.cuts._roof_duality import roof_duality

    values, seconds, halves = [], [], []
    for model in models:
        begun = process_time()
        value, state, _ = roof_duality(model, repeat)
        seconds.append((process_time() - begun) / repeat)
        values.append(value)
        halves.append(np.mean(state == 2))
    return np.array(values), np.array(seconds), float(np.mean(halves))


def new_scores(models: list[Any]) -> tuple[Any, Any]:
    """Values and seconds a call on new scores, without the Python call.

    With the same scores, the processor would predict each branch.
    """
    from structsolve.plugins.mrf.tables._model import GraphModel

    values, seconds, _ = ours(models, 1)
    smallest = [GraphModel([2], [], [[0.0, 1.0]], [])] * len(models)
    return values, seconds - np.median(ours(smallest, 1)[1])


def best_of(calls: list[Callable[[], Any]], rounds: int) -> list[tuple[Any, float]]:
    """Values of each call and the least of its medians; calls take turns as the load changes."""
    values: list[Any] = [None] * len(calls)
    best = [np.inf] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            values[i], seconds, *_ = call()
            best[i] = min(best[i], float(np.median(seconds)))
    return list(zip(values, best, strict=True))


def against_programs(models: list[Any], sweep: Callable[[], Any], rounds: int, few: int) -> None:
    """The tables of all methods, on the same models."""
    truth = ours(models, 1)[0]
    against = ["over called from Python", "over less the call", "over same scores"]
    # Name, form, peer, call.
    ways: list[tuple[str, str, str, Callable[[], Any]]] = [
        ("roof duality, called from Python", "", "", partial(ours, models, 1)),
        ("roof duality, less what calling costs", "", "", partial(new_scores, models)),
        ("roof duality, the same scores 200 times", "", "", partial(ours, models, 200)),
        ("a sweep of training: features, roof duality, cut", "", "sweep", sweep),
    ]
    for form in FORMS:
        for name, options in HIGHS.items():
            call = partial(with_highs, models, form, options)
            ways.append((f"highspy, warm, {name}", form, "highspy", call))
        for solver in CVXPY:
            call = partial(with_cvxpy, models[:few], form, solver)
            ways.append((f"cvxpy, {solver}", form, "cvxpy", call))
    rows, mine = [], []
    best: dict[tuple[str, str], float] = {}
    answers = best_of([call for *_, call in ways], rounds)
    for (name, form, peer, _), (values, seconds) in zip(ways, answers, strict=True):
        error = None
        if values is not None:
            right = truth[: len(values)]
            error = float(np.max(np.abs(values - right) / (1 + np.abs(right))))
        if not peer:
            mine.append(seconds)
        elif error is not None and error <= EXACT:
            best[peer, form] = min(best.get((peer, form), np.inf), seconds)
        cells = ["" if peer in ("", "sweep") else f"{seconds / own:.0f}x" for own in mine]
        cells = (cells + [""] * 3)[:3]
        rows.append([name, form, f"{1e6 * seconds:.1f}", error and f"{error:.0e}", *cells])
    columns = ["way", "form", "us a call", "error", *against]
    print(table(columns, rows))
    print(f"The best of each with an error of at most {EXACT:g}, over roof duality:\n")
    rows = [
        [peer, form, f"{1e6 * seconds:.0f}", *(f"{seconds / own:.0f}x" for own in mine)]
        for (peer, form), seconds in best.items()
    ]
    columns = ["peer", "form", "us a call", *against]
    print(table(columns, rows), flush=True)


def by_size(sizes: list[int], rounds: int, largest_lp: int) -> None:
    """Random dense models: time a call against the number of labels."""
    rows = []
    options = HIGHS["primal simplex, no presolve"]
    for n in sizes:
        row: list[Any] = [n, n * (n - 1) // 2]
        for strength in (np.sqrt(n), n / 3):
            models = random_models(n, strength, max(20, 2_000 // n))
            halves = ours(models, 1)[2]
            calls: list[Callable[[], Any]] = [partial(new_scores, models)]
            if n <= largest_lp:
                calls.append(partial(with_highs, models, "smallest", options))
            (values, seconds), *peers = best_of(calls, rounds)
            row += [f"{halves:.2f}", f"{1e6 * seconds:.1f}"]
            for its_values, its in peers:
                assert np.allclose(its_values, values, rtol=EXACT, atol=EXACT)
                row += [f"{1e6 * its:.0f}", f"{its / seconds:.0f}x"]
            if not peers:
                row += [None, None]
        rows.append(row)
    columns = ["labels", "pairs"]
    for kind in ("weak nodes", "strong nodes"):
        columns += [f"{kind}: halves", "us a call", "highspy, warm, smallest", "ratio"]
    print(table(columns, rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--few", type=int, default=100, help="models for cvxpy")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--alpha", type=float, default=1e-3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 20, 50, 100, 200])
    parser.add_argument("--largest-lp", type=int, default=20)
    args = parser.parse_args()
    header("Roof duality: the relaxation of label sets, time a call")
    structsolve = structsolve_or_none()
    if structsolve is None:
        return
    warnings.filterwarnings("ignore", module="cvxpy")
    models, sweep = yeast_models(structsolve, args.models, args.alpha)
    halves = ours(models, 1)[2]
    print(f"### Yeast: {args.models} loss-augmented models, share of halves {halves:.2f}\n")
    against_programs(models, sweep, args.rounds, min(args.few, args.models))
    print("### Random dense models, new scores every call, less what calling costs\n")
    by_size(args.sizes, args.rounds, args.largest_lp)


if __name__ == "__main__":
    main()
