"""`decode` on grids of more than two states against its native oracle alone, milliseconds.

The native side is one call of the oracle of that name, made before, on scores already laid out.
`decode` gets fresh arrays, checks them, plans, makes the oracle and calls it.  Tables: one for all
edges (Potts), one with weights (the native oracle has a table per edge), or random ones.  The sides
take turns; median CPU time of a few rounds (of sixteen times as many on 32 x 32, whose calls are
short), each with other scores, which take more passes or fewer.

    python benchmarks/decode_grids.py
"""

from __future__ import annotations

import argparse
from functools import partial
from time import process_time
from typing import Any

import numpy as np
from common import header, structsolve_or_none, table

ORACLES = ("auto", "trws", "expansion")


def scores_of(kind: str, edges: np.ndarray, states: int, rng: Any) -> tuple[Any, Any]:
    """Tables and weights."""
    if kind == "random":
        return rng.normal(size=(len(edges), states, states)), None
    return np.eye(states), rng.random(len(edges)) if kind == "weights" else None


def native(unary: np.ndarray, edges: np.ndarray, pair: Any, weights: Any, oracle: str) -> Any:
    """A call of the oracle on scores that are laid out."""
    from structsolve.plugins.mrf import MRFStructure
    from structsolve.structure.ask import make_layout
    from structsolve.structure.calls import argmax

    n, K = unary.shape
    tables = pair if weights is None else weights[:, None, None] * pair
    kind = "shared" if tables.ndim == 2 else "per-edge"
    space = MRFStructure(edges, kind, n_states=[K] * n, oracle=oracle, directed=True).score_space()
    examples = space.pack([np.zeros((n, 0))])
    layout = make_layout(space, examples)
    theta = np.zeros(space.layout.theta_size(n, len(edges)))
    views = space.layout.theta_views(theta, n, len(edges))
    views["node"][:, :K] = unary
    views["pair"][..., :K] = tables
    bound = space.make_oracle()(layout)
    return lambda: argmax(bound, 0, theta)


def cell(side: int, states: int, kind: str, oracle: str, rounds: int) -> list[Any]:
    from structsolve.plugins.mrf import decode, grid_edges

    edges = grid_edges(side, side, 4)
    rounds *= max(1, 128 // side) ** 2
    spent = []
    for r in range(rounds):
        rng = np.random.default_rng(r)
        unary = rng.normal(size=(side * side, states))
        pair, weights = scores_of(kind, edges, states, rng)
        alone = native(unary, edges, pair, weights, oracle)
        fresh = unary.copy(), edges.copy(), pair.copy()
        whole = partial(decode, *fresh, weights=weights, oracle=oracle)
        times, values = [], []
        for call in (alone, whole) if r % 2 else (whole, alone):
            begun = process_time()
            values.append(call()[1])
            times.append(process_time() - begun)
        spent.append(times if r % 2 else times[::-1])
        assert np.isclose(*values, rtol=1e-3)  # heuristics may round another way
    own, peer = 1e3 * np.median(spent, axis=0)[::-1]
    return [f"{side} x {side}", states, kind, oracle, peer, own, own / peer]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sides", type=int, nargs="+", default=[32, 128, 256])
    parser.add_argument("--states", type=int, nargs="+", default=[3, 4, 8])
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    header("Grids of more than two states: decode against its native oracle, milliseconds")
    if structsolve_or_none() is None:
        return
    rows = [
        cell(side, states, kind, oracle, args.rounds)
        for side in args.sides
        for states in args.states
        for kind in ("Potts", "weights", "random")
        for oracle in ORACLES
        if side * side * states**2 <= 2**20
    ]
    columns = ["grid", "states", "tables", "oracle", "native oracle", "decode", "decode / native"]
    print(table(columns, rows))
    ratios = np.array([row[-1] for row in rows])
    held = int((ratios <= 1.1).sum())
    print(f"decode costs at most 1.1 of its oracle alone in {held} of {len(rows)} cells.")


if __name__ == "__main__":
    main()
