"""Solvers of linear programs for each structure: ms per decoded label, and errors.

Scores are normal; on every second example they are rounded so that labels tie, except for closed
sets of 200 and 800 nodes, where a solution is unique and hence integral.  Every solver runs
in a separate process with its default settings: one program at a time, started anew as in
prediction, and several in one block-diagonal program if that is the default.  Fractional solutions
(from ties) are solved again for a label.  Values and bounds are compared with integer programs by
HiGHS, relative to 1 + the largest score.

    python benchmarks/lp_backends.py [--examples 20] [--only OSQP SCS] [--structures chain]
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np
from common import header, table
from environments import enter, missing

COLUMNS = ("structure", "vars", "rows", "backend", "own", "alone", "together", "fractional")
COLUMNS = (*COLUMNS, "label off", "bound off")
CLOSED = "closed sets", "closed sets, 200", "closed sets, 800"
STRUCTURES = ("chain", "label sets", *CLOSED, "leaf unions", "permutations", "paths")
SOLVERS = ("lp", "ilp", "CLARABEL", "SCS", "OSQP", "SCIPY", "HIGHS", "ECOS", "PDLP")
SOLVERS = (*SOLVERS, "CBC", "GLPK", "SCIP", "GUROBI", "MOSEK")


def space_of(name: str, rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Return a space and n packed examples."""
    import networkx as nx

    import structsolve

    params: dict[str, Any] = {}
    if name == "chain":
        kind, X, Y = "chain", [np.zeros((8, 1))] * n, [rng.integers(0, 10, 8) for _ in range(n)]
        Y[0][:] = range(8)
        Y[1][:2] = 8, 9
    elif name == "permutations":
        kind, X = "permutation", np.zeros((n, 1))
        Y = np.array([rng.permutation(10) for _ in range(n)])
    elif name == "label sets":
        kind, X, Y = "multilabel", np.zeros((n, 1)), rng.integers(0, 2, (n, 10))
        params["edges"] = "full"
    elif name == "paths":
        kind, side = "flow", 7
        grid = nx.DiGraph()
        grid.add_nodes_from((v, {"demand": 0}) for v in range(side * side))
        for v in range(side * side):
            right, below = v % side + 1 < side, v + side < side * side
            grid.add_edges_from([(v, v + 1)] * right + [(v, v + side)] * below, capacity=1)
        grid.nodes[0]["demand"], grid.nodes[side * side - 1]["demand"] = -1, 1
        params["network"] = grid
        X, Y = structsolve.get_structure(kind, **params).sample(0, n=n, size=side)
    else:
        kind, nodes = "dag", int(name.partition(", ")[2] or 40)
        below = {k: {2 * k + 1, 2 * k + 2, k + 9} for k in range(nodes // 2)}
        graph = {f"v{k}": [f"v{j}" for j in sorted(js) if j < nodes] for k, js in below.items()}
        params = {"hierarchy": graph, "labels": "closed" if name in CLOSED else "leaf-union"}
        X, Y = structsolve.get_structure(kind, **params).sample(0, n=n, size=3)
    space, _ = structsolve.get_structure(kind, **params).make_space(X, Y)
    return space, space.pack(X)


def seconds(call: Any, items: list[Any]) -> tuple[float, list[Any]]:
    """CPU seconds of a call, on average, and what the calls returned."""
    start = time.process_time()
    answers = [call(item) for item in items]
    return (time.process_time() - start) / max(len(items), 1), answers


def prepared(name: str, n: int) -> tuple[Any, Any, list[np.ndarray]]:
    """Return polytopes, the native oracle and scores."""
    from structsolve.lp import ask_oracle, ask_polytopes
    from structsolve.structure.ask import make_layout

    rng = np.random.default_rng(0)
    space, examples = space_of(name, rng, max(n, 2))
    polytopes, layout = ask_polytopes(space, examples), make_layout(space, examples)
    size = layout.sizes(0)[0]
    used = np.zeros(size, dtype=bool)
    parts = polytopes.build(0).parts
    used[parts[parts >= 0]] = True
    # Pairs weigh less than nodes, as in trained models, so few solutions are fractional.
    shared = np.arange(size) < space.layout.shared_size
    weight = np.where(shared & (name != "chain"), 0.2, 1.0) * used
    thetas = [weight * rng.normal(size=size) for _ in range(n)]
    ties = name not in CLOSED[1:]
    thetas = [theta.round() if ties and k % 2 else theta for k, theta in enumerate(thetas)]
    return polytopes, ask_oracle(space)(layout), thetas


def known(names: list[str], n: int) -> dict[str, tuple[float, list[float]]]:
    """Return seconds of the native oracle, and every best label's score by integer programs."""
    from structsolve.lp import Highs, LinearDecoder
    from structsolve.structure import calls

    measured = {}
    for name in names:
        polytopes, own, thetas = prepared(name, n)
        # CPU seconds, as those of the others.
        spent, _ = seconds(lambda t, own=own: calls.seconds_per_call(own, 0, t, 500), thetas[:5])
        decoder = LinearDecoder(polytopes, Highs(integer=True))
        answers = [decoder.decode(0, theta) for theta in thetas]
        measured[name] = spent / 500, [a[1] for a in answers if a is not None]
    return measured


def measure(name: str, solver: str, n: int, native: float, best: list[float]) -> list[Any]:
    """Return a row of the table."""
    from structsolve.lp import LinearDecoder, make_backend

    backend = make_backend(solver if solver.endswith("lp") else f"cvxpy:{solver}")
    polytopes, _, thetas = prepared(name, n)
    if solver == "PDLP":
        # Ties need HiGHS, which cannot be loaded beside PDLP.
        thetas, best, n = thetas[::2], best[::2], len(thetas[::2])
    polytope = polytopes.build(0)
    row = [name, polytope.size, polytope.A.shape[0], backend.label]
    row.append(f"{1e3 * native:.4f}")
    decoder = LinearDecoder(polytopes, backend)
    try:
        decoder.decode(0, thetas[0])
        alone, answers = seconds(lambda theta: decoder.decode(0, theta), thetas)
        relaxed = [decoder.relax(0, theta) for theta in thetas]
        copies, together = min(decoder.copies(0), n), None
        if copies > 1:
            runs = [thetas[a : a + copies] for a in range(0, n - copies + 1, copies)]
            decoder.decode_alike([0] * copies, runs[0], copies)
            together, _ = seconds(lambda r: decoder.decode_alike([0] * copies, r, copies), runs)
            together /= copies
    except ValueError as error:
        return [*row, str(error).partition(": ")[2][:90], "", "", "", ""]
    scale = [1 + float(np.abs(theta).max()) for theta in thetas]
    label = max((b - a[1]) / s for a, b, s in zip(answers, best, scale))
    bound = max((a[2] - b) / s for a, b, s in zip(answers, best, scale))
    below = min((a[2] - b) / s for a, b, s in zip(answers, best, scale))
    assert below > -1e-9, f"{solver}: a bound is {-below:g} below a label"
    halves = sum(r.label is None for r in relaxed)
    row += [f"{1e3 * alone:.2f}", "" if together is None else f"{1e3 * together:.2f}"]
    return [*row, f"{halves}/{n}", f"{label:.0e}", f"{bound:.0e}"]


def one(solver: str, n: int, best: dict[str, Any]) -> list[list[Any]]:
    """Return the rows of a solver."""
    if solver == "PDLP":
        # OR-Tools and highspy each contain a HiGHS, and the first one loaded is used.
        with contextlib.suppress(ImportError):
            importlib.import_module("ortools.pdlp.python.pdlp")
    import cvxpy

    if solver not in ("lp", "ilp") and solver not in cvxpy.installed_solvers():
        return [["", "", "", f"cvxpy:{solver}", "", "not installed", "", "", "", ""]]
    warnings.simplefilter("ignore")
    return [measure(name, solver, n, *told) for name, told in best.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--examples", type=int, default=20)
    parser.add_argument("--only", nargs="*", default=list(SOLVERS))
    parser.add_argument("--structures", nargs="*", choices=STRUCTURES, default=list(STRUCTURES))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        rows = one(args.one, args.examples, json.load(sys.stdin))
        print("rows:" + json.dumps(rows))
        return
    enter("lp")
    header("Solvers of linear programs, ms a label")
    print(missing("lp"))
    best, rows = json.dumps(known(args.structures, args.examples)), []
    for solver in args.only:
        command = [sys.executable, __file__, "--examples", str(args.examples), "--one", solver]
        run = subprocess.run(command, input=best, capture_output=True, text=True, check=False)
        told = [line for line in run.stdout.splitlines() if line.startswith("rows:")]
        if not told:
            raise SystemExit(f"{solver}: {run.stderr[-2000:]}")
        rows += json.loads(told[-1].removeprefix("rows:"))
    rows.sort(key=lambda row: STRUCTURES.index(row[0]) if row[0] else len(STRUCTURES))
    print(table(COLUMNS, rows))


if __name__ == "__main__":
    main()
