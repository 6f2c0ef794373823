"""Batches with given scores: the native entry beside a Python loop over cuts, in microseconds.

There is a batch of tagged sentences and one of parsed sentences, with float32 scores.  The peer is
a loop over calls for single examples: NumPy collects the part scores of each example,
``surrogates.calls.cut`` makes a cut, and its entries are added to the gradients.  With two and four
threads the script prints wall time, which needs as many idle cores (the load is printed), and
whether the results are the same bits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from common import header, ratio, structsolve_or_none, table

# Limits for one thread and a tagging batch of 32 x 50 x 26, with the overhead of PyTorch.
ASKED = {"margin": 400.0, "crf": 1000.0, "argmax": 300.0}


def microseconds(call: Callable[[], Any], seconds: float, clock: Any = time.process_time) -> float:
    """The median over runs of ten calls."""
    call()
    times, end = [], time.monotonic() + seconds
    while time.monotonic() < end or len(times) < 3:
        begun = clock()
        for _ in range(10):
            call()
        times.append((clock() - begun) * 1e5)
    return float(np.median(times))


def tagging(rng: np.random.Generator, n: int, length: int, states: int) -> tuple[Any, ...]:
    from structsolve.batch import Scores, score_space

    space = score_space("chain", states)
    node = rng.normal(size=(n * length, states)).astype(np.float32)
    shared = {
        block.name: rng.normal(size=block.shape).astype(np.float32) for block in space.layout.shared
    }
    scores = Scores(node, shared, examples=space.pack_sizes([length] * n))
    return space, scores, rng.integers(0, states, n * length).astype(np.int32)


def parsing(rng: np.random.Generator, n: int, words: int, projective: bool) -> tuple[Any, ...]:
    from structsolve import get_structure
    from structsolve.batch import Scores, argmax, score_space

    space = score_space(get_structure("dependency", projective=projective))
    sizes = space.pack_sizes([words] * n)

    def scores() -> Any:
        return Scores(rng.normal(size=(n * words**2, 1)).astype(np.float32), examples=sizes)

    return space, scores(), argmax(space, scores())[0]


def loop(space: Any, scores: Any, labels: np.ndarray, surrogate: str) -> Callable[[], Any]:
    """The same in Python, one example at a time; operators are bound once."""
    from structsolve import registry
    from structsolve.surrogates.calls import cut
    from structsolve.surrogates.task import Task

    examples, blocks = scores.examples, space.layout
    task = Task(space, examples)
    bound = registry.default().make("surrogates", surrogate).bind(task)
    ends, label_ends = examples.offsets, examples.label_offsets

    def run() -> Any:
        values, node = np.empty(examples.n), np.zeros_like(scores.node)
        shared = {name: np.zeros_like(array) for name, array in scores.shared.items()}
        for i in range(examples.n):
            first, last = int(ends[i]), int(ends[i + 1])
            theta = np.zeros(blocks.theta_size(last - first, 0))
            views = blocks.theta_views(theta, last - first, 0)
            for name, array in scores.shared.items():
                views[name][...] = array
            views[blocks.node.name][...] = scores.node[first:last]
            answer = cut(bound, i, theta, labels[label_ends[i] : label_ends[i + 1]])
            values[i] = answer.bound
            theta[:] = 0
            np.subtract.at(theta, answer.index, answer.value)
            for name, array in shared.items():
                array += views[name]
            node[first:last] = views[blocks.node.name]
        return values, node

    return run


def cases(seed: int) -> list[tuple[str, Any, list[str]]]:
    rng = np.random.default_rng(seed)
    return [
        ("tagging, 32 x 50, 26 states", tagging(rng, 32, 50, 26), ["margin", "crf", "slack"]),
        ("projective trees, 32 x 20", parsing(rng, 32, 20, True), ["margin", "crf"]),
        ("trees, 32 x 20", parsing(rng, 32, 20, False), ["margin", "crf"]),
    ]


def one_thread(seconds: float) -> None:
    from structsolve.batch import argmax, marginals, value_and_gradient

    rows = []
    for name, (space, scores, labels), surrogates in cases(0):
        scores.shared = scores.shared or {}
        for surrogate in surrogates:

            def ours(surrogate: str = surrogate, given: Any = (space, scores, labels)) -> Any:
                return value_and_gradient(*given, surrogate)

            peer = loop(space, scores, labels, surrogate)
            one, two = ours(), peer()
            same = np.allclose(one[0], two[0]) and np.allclose(one[1].node, two[1], atol=1e-5)
            mine, theirs = microseconds(ours, seconds), microseconds(peer, seconds)

            def afresh(space: Any = space, ours: Any = ours) -> Any:
                space._batches.bindings.clear()
                return ours()

            fresh = microseconds(afresh, seconds)
            asked = ASKED.get(surrogate) if name.startswith("tagging") else None
            rows.append([name, surrogate, mine, fresh, theirs, ratio(theirs, mine), asked, same])
        for what, call in (("argmax", argmax), ("marginals", marginals)):
            mine = microseconds(lambda call=call, s=space, x=scores: call(s, x), seconds)
            asked = ASKED.get(what) if name.startswith("tagging") else None
            rows.append([name, what, mine, None, None, None, asked, None])
    columns = ["batch", "what", "us", "us, sizes not seen before", "loop, us", "loop / ours"]
    print(table([*columns, "target", "same result"], rows))


def threads(seconds: float) -> None:
    from structsolve.batch import value_and_gradient

    rows = []
    rng = np.random.default_rng(1)
    batches = [
        *cases(0),
        ("tagging, 256 x 50, 26 states", tagging(rng, 256, 50, 26), ["margin", "crf"]),
        ("projective trees, 32 x 60", parsing(rng, 32, 60, True), ["margin", "crf"]),
    ]
    for name, (space, scores, labels), surrogates in batches:
        for surrogate in surrogates:
            walls, bits = [], set()
            for jobs in (1, 2, 4):

                def ours(jobs: int = jobs, given: Any = (space, scores, labels, surrogate)) -> Any:
                    return value_and_gradient(*given, n_jobs=jobs)

                walls.append(microseconds(ours, seconds, time.perf_counter))
                values, gradient = ours()
                arrays = [values, gradient.node, *gradient.shared.values()]
                bits.add(b"".join(array.tobytes() for array in arrays))
            gains = [ratio(walls[0], wall) for wall in walls[1:]]
            rows.append([name, surrogate, *walls, *gains, len(bits) == 1])
    columns = ["batch", "what", "1 thread, us", "2", "4", "gain at 2", "gain at 4", "same bits"]
    print("Wall time.\n")
    print(table(columns, rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1.0, help="for each figure")
    parser.add_argument("--part", choices=("one", "threads"))
    arguments = parser.parse_args()
    header("Batches with given scores, µs")
    if structsolve_or_none() is None:
        return
    if arguments.part != "threads":
        one_thread(arguments.seconds)
    if arguments.part != "one":
        threads(arguments.seconds)


if __name__ == "__main__":
    main()
