"""Marginals of all nodes of graphs with cycles, and the log-partition, beside pgmpy.

    python benchmarks/graph_marginals.py

Ours is a whole call of ``decode(..., return_marginals=True)``, labels included.  pgmpy calibrates a
junction tree (``BeliefPropagation``), from whose cliques the marginals come, and asks for single
nodes (``VariableElimination``).  It has an environment and a process of its own, and the same
numbers.  Both answers are
compared.  The second table has wide graphs, whose marginals are those of a bound, and their gaps.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
# Rows, columns and states of grids; nodes of complete graphs of two states.
GRIDS = ((2, 20, 2), (4, 4, 2), (4, 4, 3), (6, 6, 2), (8, 8, 2))
COMPLETE = (8, 12)
WIDE = ((30, 30, 2, 0.5), (30, 30, 2, 2.0), (20, 20, 5, 0.5), (100, 100, 2, 0.5))
# Nodes that variable elimination is asked for.
ASKED = 3


def edges_of_grid(rows: int, columns: int) -> np.ndarray:
    place = np.arange(rows * columns).reshape(rows, columns)
    across = np.stack([place[:, :-1].ravel(), place[:, 1:].ravel()], axis=1)
    return np.concatenate([across, np.stack([place[:-1].ravel(), place[1:].ravel()], axis=1)])


def graph(edges: np.ndarray, states: int, strength: float = 1.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    nodes = int(edges.max()) + 1
    pair = strength * rng.normal(size=(len(edges), states, states))
    return {"unary": rng.normal(size=(nodes, states)), "edges": edges, "pair": pair}


def peer(path: str, repeat: int) -> None:
    """Measure pgmpy, in its environment."""
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.inference import BeliefPropagation, VariableElimination

    try:
        from pgmpy.models import DiscreteMarkovNetwork as Network
    except ImportError:
        from pgmpy.models import MarkovNetwork as Network

    sys.path.insert(0, str(HERE))
    from common import median_time

    given = np.load(path)
    unary, edges, pair = given["unary"], given["edges"], given["pair"]
    n, K = unary.shape
    names = [f"n{v}" for v in range(n)]
    model = Network([(names[u], names[v]) for u, v in edges])
    model.add_factors(
        *[DiscreteFactor([names[v]], [K], np.exp(unary[v])) for v in range(n)],
        *[
            DiscreteFactor([names[u], names[v]], [K, K], np.exp(pair[e]))
            for e, (u, v) in enumerate(edges)
        ],
    )

    def calibrated() -> tuple[list[list[float]], float]:
        sums = BeliefPropagation(model)
        sums.calibrate()
        rows: dict[str, Any] = {}
        total = 0.0
        for clique, belief in sums.get_clique_beliefs().items():
            for name in clique:
                if name not in rows:
                    others = [other for other in clique if other != name]
                    rows[name] = belief.marginalize(others, inplace=False) if others else belief
                    total = float(rows[name].values.sum())
        return [(rows[v].values / rows[v].values.sum()).tolist() for v in names], np.log(total)

    def asked() -> None:
        elimination = VariableElimination(model)
        for v in range(ASKED):
            elimination.query([names[v]], show_progress=False)

    cpu, _, (marginals, total) = median_time(calibrated, repeat)
    each = median_time(asked, repeat)[0] / ASKED
    answer = {"cpu": cpu, "each": each, "marginals": marginals, "total": total}
    print(json.dumps({**answer, "version": importlib.metadata.version("pgmpy")}))


def decoding(given: dict[str, np.ndarray], oracle: str, marginals: bool) -> Callable[[], Any]:
    """Return our call."""
    from structsolve.plugins.mrf import decode

    scores = given["unary"], given["edges"], given["pair"]
    return lambda: decode(*scores, oracle=oracle, max_iter=1, return_marginals=marginals)


def narrow(python: str, folder: Path, repeat: int) -> None:
    from common import median_time, ratio, table

    pairs = [np.argwhere(np.triu(np.ones((n, n)), 1)) for n in COMPLETE]
    cases = [(f"{r} x {c}, {K} states", graph(edges_of_grid(r, c), K)) for r, c, K in GRIDS]
    cases += [(f"all pairs of {n}", graph(edges, 2)) for n, edges in zip(COMPLETE, pairs)]
    rows = []
    for name, given in cases:
        path = folder / "graph.npz"
        np.savez(path, **given)
        command = [python, __file__, "--peer", str(path), "--repeat", str(repeat)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        theirs = json.loads(done.stdout.strip().splitlines()[-1])
        cpu, _, best = median_time(decoding(given, "auto", True), 4 * repeat + 5)
        sums = best.marginals
        assert sums.exact
        np.testing.assert_allclose(sums.unary, theirs["marginals"], atol=1e-8)
        np.testing.assert_allclose(sums.log_partition, theirs["total"], rtol=1e-9)
        rows.append(
            (
                name,
                f"{1e3 * cpu:.2f}",
                f"{1e3 * theirs['cpu']:.1f}",
                ratio(theirs["cpu"], cpu),
                f"{1e3 * theirs['each']:.1f}",
                ratio(theirs["each"], cpu),
            )
        )
    head = ("graph", "ours, ms", "junction tree, ms", "ratio", "elimination, a node, ms", "ratio")
    print(f"pgmpy {theirs['version']}; CPU ms, of one run of pgmpy's.\n\n{table(head, rows)}")


def wide(repeat: int) -> None:
    from common import median_time, table

    rows = []
    for r, c, K, strength in WIDE:
        given = graph(edges_of_grid(r, c), K, strength)
        cpu, _, best = median_time(decoding(given, "trws", True), repeat)
        plain = median_time(decoding(given, "trws", False), repeat)[0]
        sums = best.marginals
        assert not sums.exact
        rows.append(
            (
                f"{r} x {c}, {K} states, pairs of size {strength:g}",
                f"{1e3 * (cpu - plain):.1f}",
                f"{sums.log_partition:.2f}",
                f"{sums.gap / abs(sums.log_partition):.1e}",
            )
        )
    print(table(("wide graph", "marginals, ms", "bound", "relative gap"), rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--repeat", type=int, default=1)
    args = parser.parse_args()
    if args.peer:
        peer(args.peer, args.repeat)
        return
    from common import header
    from environments import ready

    header("Marginals of graphs with cycles")
    with tempfile.TemporaryDirectory() as folder:
        narrow(str(ready("pgmpy")), Path(folder), args.repeat)
    wide(4 * args.repeat + 1)


if __name__ == "__main__":
    main()
