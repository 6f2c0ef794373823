"""Decoding: letters per second of predict against python-crfsuite's tagger, and the recursions.

Both sides decode all ten OCR folds with a model of fold 0.  Features are already in the library's
input form (ItemSequence on their side; structsolve.Sequences, or lists of matrices, on ours); the
conversion is timed separately.  Recursions are timed against textbook and vectorised C loops, per
cell, with (L - 1) K^2 cells per chain.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from c_loop import FloorLoop, PlainLoop, kernel_times
from common import Clock, header, median_time, ratio, structsolve_or_none, table
from datasets import ocr, ocr_split
from ours import chain_svm
from peers import Crfsuite

CHAINS = ((8, 26), (1000, 26), (100, 200))


def our_kernel_times(structsolve: Any, length: int, states: int) -> dict[str, float]:
    """Nanoseconds per cell of our Viterbi and sum-product on one chain, transitions shared."""
    if structsolve is None:
        return {}
    from structsolve.part_layout import PartLayout
    from structsolve.plugins.chain._oracle import ChainOracle
    from structsolve.plugins.chain._projections import ChainSumProduct
    from structsolve.potentials.weight_layout import Block, WeightLayout
    from structsolve.structure import calls
    from structsolve.utils.arrays import aligned_zeros

    blocks = [Block("transition", "shared", (states, states)), Block("node", "node", (states,))]
    layout = WeightLayout(blocks, 1)
    offsets = np.array([0, length], dtype=np.int64)
    bound_to = PartLayout(layout, structsolve.Examples(offsets))
    theta = aligned_zeros(layout.theta_size(length, length - 1))
    rng = np.random.default_rng(0)
    for view in layout.theta_views(theta, length, length - 1).values():
        view[...] = rng.normal(size=view.shape)
    cells = (length - 1) * states**2
    repeat = max(10, 20_000_000 // cells)
    viterbi = min(calls.seconds_per_call(ChainOracle(bound_to), 0, theta, repeat) for _ in range(5))
    projection = ChainSumProduct(bound_to)
    forward = []
    for _ in range(5):
        begun = time.process_time()
        projection.log_partition(0, theta, repeat)
        forward.append((time.process_time() - begun) / repeat)
    return {"Viterbi ours": viterbi * 1e9 / cells, "forward ours": min(forward) * 1e9 / cells}


def letters_per_second(structsolve: Any, repeat: int) -> None:
    train, _ = ocr_split(0, "one")
    words, _ = ocr()
    n = words.n_letters
    rows: list[list[Any]] = []

    peer = Crfsuite(train.crfsuite_items(), train.y_list())
    peer.train("ap", max_iterations=10)
    items = words.crfsuite_items()
    with Clock() as conversion:
        prepared = peer.prepare(items)
    tagger = peer.tagger()
    cpu, wall, _ = median_time(lambda: [tagger.tag(x) for x in prepared], repeat)
    rows.append(["crfsuite tagger, ItemSequence", cpu, wall, conversion.cpu])

    floor = FloorLoop(train, 1.0 / train.n_words)
    floor.run(10)
    plain = PlainLoop(words, 1.0 / words.n_words, average=False)
    plain.w[:] = np.ascontiguousarray(floor.w[:, : plain.K]).ravel()
    cpu, wall, _ = median_time(lambda: plain.error(plain.w), repeat)
    rows.append(["plain C loop (packed input)", cpu, wall, None])
    judge = FloorLoop(words, 1.0 / words.n_words)
    judge.w[:] = floor.w
    cpu = float(np.median([judge.decode()[0] for _ in range(repeat)]))
    rows.append(["floor (packed input)", cpu, None, None])

    if structsolve:
        model = chain_svm(structsolve, 10.0 / train.n_words, 10, ends=True)
        model.fit(train.x_list("csr"), train.y_list())
        for form in ("packed", "csr", "dense"):
            with Clock() as conversion:
                x = words.x_list(form)
            cpu, wall, _ = median_time(lambda x=x: model.predict(x), repeat)
            name = "Sequences (CSR)" if form == "packed" else f"a list of {form} matrices"
            rows.append([f"ours, predict on {name}", cpu, wall, conversion.cpu])
        lengths = np.diff(words.offsets)
        padded = np.zeros((words.n_words, words.max_length, words.pixels.shape[1]))
        padded[np.arange(words.max_length) < lengths[:, None]] = words.pixels
        with Clock() as conversion:
            x = structsolve.from_padded(padded, lengths)
        cpu, wall, _ = median_time(lambda: model.predict(x), repeat)
        rows.append(["ours, predict on from_padded(...), dense", cpu, wall, conversion.cpu])
    base = rows[0][1]
    print(
        table(
            [
                "decoder",
                "us per letter",
                "letters per CPU s",
                "wall s",
                "converting, us per letter",
                "crfsuite / this (our target: 10x)",
            ],
            [
                [
                    name,
                    1e6 * cpu / n,
                    f"{n / cpu:,.0f}",
                    wall,
                    None if convert is None else 1e6 * convert / n,
                    ratio(base, cpu),
                ]
                for name, cpu, wall, convert in rows
            ],
        )
    )


def kernels(structsolve: Any) -> None:
    rows = []
    for length, states in CHAINS:
        times = kernel_times(length, states)
        if structsolve:
            times |= our_kernel_times(structsolve, length, states)
        for name, ns in times.items():
            best = min(
                t
                for other, t in times.items()
                if other.split()[0] == name.split()[0] and not other.endswith("ours")
            )
            rows.append([f"L={length} K={states}", name, ns, ratio(best, ns)])
    print(table(["chain", "kernel", "ns per cell", "best C / this"], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--part", choices=["letters", "kernels"], help="only this part")
    args = parser.parse_args()
    header("Decoding OCR letters, and dynamic-programming kernels")
    structsolve = structsolve_or_none()
    if args.part != "kernels":
        letters_per_second(structsolve, args.repeat)
    if args.part != "letters":
        kernels(structsolve)


if __name__ == "__main__":
    main()
