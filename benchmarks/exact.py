"""Exact decoding against toulbar2: seconds to the proof, and values at equal time.

Both read the same files: the UAI sets, and generated networks with many zeros (diagnosis,
colourings, crosswords).  Reading is not counted.  ``decode(oracle="exact")`` runs first, under the
time limit, and toulbar2 with its defaults under the same one.  If either is stopped, the values are
those at equal time.  toulbar2's clock starts with its preprocessing.  Times and limits are CPU
seconds of the thread: toulbar2's limit is a timer under which systems count those of the process
in ticks of 4 ms, so that the least of several runs would leave out up to 4 ms of it.

    STRUCTSOLVE_DATA=... python benchmarks/exact.py
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from common import header, structsolve_or_none, table

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "shared"))
import hard_networks

SETS = ("uai-grids", "uai-segmentation", "uai-objectdetection")


def generated(seeds: int) -> Iterator[tuple[str, Any]]:
    """Names and networks, some of each kind and size."""
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        for causes, findings, parents in ((40, 80, 5), (60, 120, 4), (200, 300, 4), (300, 700, 3)):
            network = hard_networks.diagnosis(rng, causes, findings, parents, 0.6, 0.0)
            yield f"diagnosis {causes}/{findings}, {parents} parents, {seed}", network
        yield f"diagnosis 200/300, observed, {seed}", hard_networks.diagnosis(rng, 200, 300)
        for n, degree, colours in ((60, 4, 3), (40, 7, 4), (50, 8, 5)):
            network = hard_networks.colouring(rng, n, degree, colours)
            yield f"colouring {n}, degree {degree}, {colours} colours, {seed}", network
        for size, words, letters in ((4, 60, 6), (5, 200, 5)):
            network = hard_networks.crossword(rng, size, words, letters)
            yield f"crossword {size} x {size}, {words} words, {seed}", network


def toulbar2(path: Path, seconds: int) -> tuple[np.ndarray | None, bool, float]:
    """Best labeling, whether it is proven, CPU seconds."""
    import pytoulbar2

    network = pytoulbar2.CFN(resolution=6)
    network.Read(str(path))
    begun = time.thread_time()
    with contextlib.suppress(RuntimeError):
        network.Solve(timeLimit=seconds)
    cpu = time.thread_time() - begun
    solutions = network.GetSolutions()
    label = np.array(solutions[-1][1]) if solutions else None
    return label, cpu < 0.9 * seconds, cpu


def row(name: str, path: Path, seconds: int, rounds: int) -> list[Any]:
    from uai import completed

    from structsolve.plugins.mrf import decode
    from structsolve.plugins.mrf.tables._model import GraphModel
    from structsolve.plugins.mrf.uai import read_uai

    network = read_uai(path)
    scores = network.unary, network.ends, network.pair
    spent: list[list[float]] = []
    while not spent or (len(spent) < rounds and max(spent[-1]) < 1):
        begun = time.thread_time()
        ours = decode(*scores, oracle="exact", time_limit=seconds)
        own = time.thread_time() - begun
        theirs, proven, cpu = toulbar2(path, seconds)
        spent.append([own, cpu])
    own, peer = np.min(spent, axis=0).tolist()
    value = -np.inf
    if theirs is not None:
        value = GraphModel(*network[:4]).score(completed(network, theirs))
    if ours.status == "optimal":
        # Both are -inf if the zeros allow no labeling.
        least = max(ours.value, -1e300)
        assert value <= least + 1e-6 * abs(least), "toulbar2 has a better labeling"
    return [
        name,
        f"{ours.value + network.constant:.4f}",
        f"{ours.bound + network.constant:.4f}",
        f"{value + network.constant:.4f}",
        own if ours.status == "optimal" else f"stopped at {seconds}",
        peer if proven else f"stopped at {seconds}",
        max(own, 1e-3) / max(peer, 1e-3),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=8, help="limit of each side")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="of runs below a second; the least")
    args = parser.parse_args()
    header("Exact decoding against toulbar2, seconds")
    if structsolve_or_none() is None:
        return
    from structsolve.plugins.mrf.exact import search

    search.time = SimpleNamespace(monotonic=time.thread_time)  # other processes do not count
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "network.uai")  # toulbar2 checks the suffix, and reads no gzip
        for name in SETS:
            for path in sorted(Path(os.environ["STRUCTSOLVE_DATA"], name).glob("*.uai.gz")):
                text.write_bytes(gzip.decompress(path.read_bytes()))
                rows.append(row(path.name.removesuffix(".uai.gz"), text, args.seconds, args.rounds))
        for name, network in generated(args.seeds):
            hard_networks.write(text, *network)
            rows.append(row(name, text, args.seconds, args.rounds))
    columns = ["network", "decode", "bound", "toulbar2", "decode, s", "toulbar2, s", "ratio"]
    print(table(columns, rows))
    ratios = np.array([cells[-1] for cells in rows])
    print(
        f"decode is ahead on {int((ratios < 1).sum())} of {len(rows)}; at most "
        f"{ratios.max():.2g} times toulbar2's time. Times below 1 ms count as 1 ms."
    )


if __name__ == "__main__":
    main()
