"""Derivatives of marginals: the Jacobian times a direction, beside the projection itself.

Calls are from Python.  The time of the same call for the smallest example, which is Python's
overhead, is subtracted.  The peer is the difference of two projections, which is also less exact.

    python benchmarks/derivatives.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from common import header, structsolve_or_none, table

ROUNDS, SECONDS = 9, 0.02
COLUMNS = (
    "projection",
    "example",
    "project, µs",
    "derivative, µs",
    "derivative/project",
    "two projections/derivative",
)


def least(call: Callable[[], Any]) -> float:
    """Microseconds of a call."""
    call()
    start = time.process_time()
    call()
    repeats = max(1, int(SECONDS / max(time.process_time() - start, 1e-6)))
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(repeats):
            call()
        times.append((time.process_time() - start) / repeats)
    return 1e6 * min(times)


def chain(states: int) -> Callable[[int], tuple[Any, Any]]:
    """Spaces and inputs of chains, by length."""
    from structsolve.plugins.chain import ChainStructure

    def make(length: int) -> tuple[Any, Any]:
        X = [np.zeros((length, 1))]
        return ChainStructure().make_space(X, [np.zeros(length, int)], classes=range(states))

    return make


def tree(states: int) -> Callable[[int], tuple[Any, Any]]:
    """The same for binary trees, by number of nodes."""
    from structsolve.plugins.tree import TreeStructure

    def make(nodes: int) -> tuple[Any, Any]:
        parents = (np.arange(nodes) - 1) // 2
        parents[0] = -1
        X = [(np.zeros((nodes, 1)), parents)]
        return TreeStructure().make_space(X, [np.zeros(nodes, int)], classes=range(states))

    return make


def sentence(projective: bool) -> Callable[[int], tuple[Any, Any]]:
    """The same for sentences, by number of words."""
    from structsolve.plugins.dependency import DependencyStructure

    def make(words: int) -> tuple[Any, Any]:
        X = [np.zeros((words + 1, words, 1))]
        return DependencyStructure(projective).make_space(X, [np.arange(words)])

    return make


def measure(make: Callable[[int], tuple[Any, Any]], size: int) -> tuple[float, float]:
    """Microseconds of project() and derivative()."""
    from structsolve.structure import calls, projection_calls
    from structsolve.structure.ask import ask_projection, make_layout

    space, examples = make(size)
    projection = ask_projection(space, "entropy")(make_layout(space, examples))
    rng = np.random.default_rng(0)
    nodes = int(examples.offsets[1])
    edges = int(examples.edge_offsets[1]) if examples.edge_offsets is not None else 0
    theta, direction = np.zeros((2, projection.layout.sizes(0)[0]))
    for vector in (theta, direction):
        for view in space.layout.theta_views(vector, nodes, edges).values():
            view[...] = rng.normal(size=view.shape)
    memory: dict[str, np.ndarray] = {}

    def room(name: str, size: int, dtype: Any) -> np.ndarray:
        if name not in memory or memory[name].size < size:
            memory[name] = calls.memory(None, name, size, dtype)
        return memory[name]

    return (
        least(lambda: calls.project(projection, 0, theta, room=room)),
        least(lambda: projection_calls.derivative(projection, 0, theta, direction, room=room)),
    )


def main() -> None:
    header("Derivatives of marginals")
    if structsolve_or_none() is None:
        return
    cases = [
        (f"chain, {states} states", chain(states), "nodes", sizes)
        for states, sizes in ((5, (50,)), (26, (8, 50, 500)), (64, (50,)))
    ]
    cases.append(("tree, 26 states", tree(26), "nodes", (50,)))
    cases += [
        (f"dependency, {name}", sentence(projective), "words", (20, 50))
        for name, projective in (("projective", True), ("all trees", False))
    ]
    rows = []
    for name, make, unit, sizes in cases:
        of_python = measure(make, 1)
        for size in sizes:
            mu, moved = (x - y for x, y in zip(measure(make, size), of_python))
            rows.append((name, f"{size} {unit}", mu, moved, moved / mu, 2 * mu / moved))
    print(table(COLUMNS, rows))


if __name__ == "__main__":
    main()
