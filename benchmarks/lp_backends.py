"""Linear-programming backends under each structure: µs a decoded label, and against its own oracle.

Scores are normal; HiGHS by single calls, cold as in prediction and warm as in training (scores move
by a tenth between calls); cvxpy by single calls and side by side in block-diagonal programs.

    python benchmarks/lp_backends.py [--examples 200]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from common import header, table

COLUMNS = ("structure", "vars", "rows", "backend", "own", "cold", "warm", "batch", "best/own")


def space_of(name: str, rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Return a space and n packed examples."""
    import structsolve

    if name == "chain":
        X, Y = [np.zeros((8, 1))] * n, [rng.integers(0, 10, 8) for _ in range(n)]
        Y[0][:] = range(8)
        Y[1][:2] = 8, 9
    elif name == "permutation":
        X, Y = np.zeros((n, 1)), np.array([rng.permutation(10) for _ in range(n)])
    else:
        X, Y = np.zeros((n, 1)), rng.integers(0, 2, (n, 14))
    space, _ = structsolve.get_structure(name).make_space(X, Y)
    return space, space.pack(X)


def seconds(call: Any, items: list[Any]) -> float:
    """CPU seconds of a call, on average."""
    start = time.process_time()
    for item in items:
        call(item)
    return (time.process_time() - start) / len(items)


def measure(name: str, backend: str, n: int) -> list[Any]:
    from structsolve.lp import LinearDecoder, ask_oracle, ask_polytopes, make_backend
    from structsolve.structure import calls
    from structsolve.structure.ask import make_layout

    rng = np.random.default_rng(0)
    space, examples = space_of(name, rng, n)
    polytopes, layout = ask_polytopes(space, examples), make_layout(space, examples)
    own, size = ask_oracle(space)(layout), layout.sizes(0)[0]
    polytope = polytopes.build(0)
    used = np.zeros(size, dtype=bool)
    used[polytope.parts[polytope.parts >= 0]] = True
    # Pairs weigh less than nodes, as in trained models: few answers are fractional then.
    used = np.where(np.arange(size) < space.layout.shared_size, 0.2, 1.0) * used
    thetas = [used * rng.normal(size=size) for _ in range(n)]
    moved = [theta + 0.1 * used * rng.normal(size=size) for theta in thetas]
    native = np.mean([calls.seconds_per_call(own, 0, theta, 200) for theta in thetas[:20]])
    decoder = LinearDecoder(polytopes, make_backend(backend))
    warm = LinearDecoder(polytopes, make_backend(backend), warm=True)
    decoder.decode(0, thetas[0])
    single = list(range(n if backend == "lp" else min(n, 30)))
    cold = seconds(lambda i: decoder.decode(i, thetas[i]), single)
    again = None
    if backend == "lp":
        for i in single:
            warm.decode(i, thetas[i])
        again = seconds(lambda i: warm.decode(i, moved[i]), single)
    copies = min(max(decoder.copies(0), 1), n)
    batch = None
    if copies > 1:
        decoder.decode_alike(range(copies), thetas[:copies], copies)
        starts = range(0, n - copies + 1, copies)
        runs = [(range(a, a + copies), thetas[a : a + copies], copies) for a in starts]
        batch = seconds(lambda run: decoder.decode_alike(*run), runs) / copies
    best = min(t for t in (cold, again, batch) if t is not None)
    micro = [f"{1e6 * t:.1f}" if t is not None else "" for t in (native, cold, again, batch)]
    rows, variables = polytope.A.shape
    return [name, variables, rows, backend, *micro, f"{best / native:.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--examples", type=int, default=200)
    args = parser.parse_args()
    import cvxpy

    header("Linear-programming backends, µs a label")
    installed = [s for s in ("CLARABEL", "HIGHS", "SCIPY", "SCS") if s in cvxpy.installed_solvers()]
    rows = [
        measure(name, backend, args.examples)
        for name in ("chain", "permutation", "multilabel")
        for backend in ("lp", *(f"cvxpy:{solver}" for solver in installed))
    ]
    print(table(COLUMNS, rows))


if __name__ == "__main__":
    main()
