"""TRW-S against alpha-expansion and against the limit of the machine.

Tsukuba stereo (110592 nodes, 16 states, Potts): time to a relative gap of 1e-4, beside the
expansions of PyMaxflow and of gco on the same scores; ``decode`` beside its compiled part; memory.
General tables of 16 states: time per cell, beside a C program compiled here (trws_floor.c).
Potts pictures of 256 x 256 pixels, 5 states: scores after gco's time, by TRW-S alone and followed
by alpha-expansions.  Other tables: the gain from these expansions.

    STRUCTSOLVE_DATA=... python benchmarks/trws.py
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import Clock, header, structsolve_or_none, table
from cuts import grid
from datasets import data_path

HERE = Path(__file__).resolve().parent
FLOOR = ["-O3", "-march=native", str(HERE / "trws_floor.c"), "-lm", "-o"]
ROUNDS = 3


def stereo() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Scores, edges, the Potts table and weights of tsukuba."""
    data = np.load(data_path("mrf-tsukuba", "tsukuba.npz"))
    unary = -data["unary"].astype(np.float64)
    weights = data["weights"].astype(np.float64)
    return unary, data["edges"], np.eye(unary.shape[1]) - 1, weights


def expansions(unary: np.ndarray, weight: float) -> dict[str, Callable[[], Any]]:
    """Alpha-expansion of a picture of scores, until no move gains."""
    import gco  # not imported in the process whose memory is measured
    import maxflow

    costs, pair = -unary, weight * (1 - np.eye(unary.shape[2]))
    if (unary == np.round(unary)).all():  # gco takes large numbers only as integers
        costs, pair = costs.astype(np.int32), pair.astype(np.int32)
    floats = -unary, 1.0 * pair
    return {
        "gco": lambda: gco.cut_grid_graph_simple(costs, pair, n_iter=-1),
        "PyMaxflow": lambda: maxflow.fastmin.aexpansion_grid(*floats),
    }


def total(unary: np.ndarray, edges: np.ndarray, weight: float, label: Any) -> float:
    """Score of a labeling under a Potts table."""
    label = np.asarray(label).ravel()
    apart = label[edges[:, 0]] != label[edges[:, 1]]
    return float(unary[np.arange(len(label)), label].sum() - weight * apart.sum())


def stereo_calls(
    unary: np.ndarray, edges: np.ndarray, potts: np.ndarray, weights: np.ndarray
) -> dict[str, Callable[[], tuple[float, float]]]:
    """Ours: calls that return a score and its bound."""
    from structsolve.plugins.mrf import decode
    from structsolve.plugins.mrf._direct import WeightedModel, ascend

    def whole(oracle: str, n_iter: int) -> tuple[float, float]:
        best = decode(unary, edges, potts, oracle=oracle, max_iter=n_iter, weights=weights)
        return best.value, best.bound

    model = WeightedModel(np.full(len(unary), 16), edges, unary.ravel(), potts, weights)
    calls: dict[str, Callable[[], tuple[float, float]]] = {
        f"decode, {oracle}, {n} iterations": partial(whole, oracle, n)
        for oracle, counts in (("trws", (25, 50, 75, 100)), ("expansion", (10, 25, 50)))
        for n in counts
    }
    return {**calls, "its compiled part, 50": lambda: ascend(model, 50, False, False)[1:3]}


def compare_stereo(ours: bool) -> None:
    """Time to a gap, of decode and of its compiled part; expansions.  Best of turns."""
    unary, edges, potts, weights = stereo()
    bounded = stereo_calls(unary, edges, potts, weights) if ours else {}
    weight = float(weights[0])
    peers = expansions(unary.reshape(384, 288, 16), weight)
    calls: dict[str, Callable[[], Any]] = {**bounded, **peers}
    seconds, answers = dict.fromkeys(calls, np.inf), {}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            with Clock() as clock:
                answers[name] = call()
            seconds[name] = min(seconds[name], clock.cpu)
    least = min((answers[name][1] for name in bounded), default=np.nan)
    rows = []
    for name, answer in answers.items():
        if name in bounded:
            value, bound = answer
        else:
            value, bound = total(unary, edges, weight, answer), least
        shown = f"{bound:.1f}" if name in bounded else "none"
        gap = (bound - value) / abs(value)
        rows.append([name, f"{seconds[name]:.2f}", f"{value:.0f}", shown, f"{gap:.1e}"])
    print(f"\nTsukuba, best of {ROUNDS} in turns; gaps of expansions are to our last bound\n")
    print(table(["", "s", "score", "bound", "gap"], rows))


def peak() -> None:
    """Print the memory of a process that decodes tsukuba."""
    from structsolve.plugins.mrf import decode

    unary, edges, potts, weights = stereo()
    before = _peak()
    decode(unary, edges, potts, oracle="trws", max_iter=2, weights=weights)
    print(before, _peak())


def _peak() -> float:
    """MB; getrusage() would include the parent's."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1e3


def our_cells() -> list[float]:
    """Nanoseconds for a cell of a general table, and for a Potts message."""
    from structsolve.plugins.mrf._direct import WeightedModel

    edges, rng, K, spent = grid(128, 128), np.random.default_rng(0), 16, []
    unary, states = rng.random(128 * 128 * K), np.full(128 * 128, K)
    for pair, size in ((rng.random((K, K)), K * K), (np.eye(K) - 1, 1)):
        model, seconds = WeightedModel(states, edges, unary, pair), {}
        for n_iter in (2, 22):
            seconds[n_iter] = min(_seconds(model, n_iter) for _ in range(3))
        spent.append(1e9 * (seconds[22] - seconds[2]) / 20 / (2 * len(edges)) / size)
    return spent


def cells(ours: bool) -> None:
    """Nanoseconds for a cell of a general table and a Potts message, beside the floor."""
    rows = []
    if ours:
        cell, message = our_cells()
        rows.append(["structsolve, with labelings", f"{cell:.3f}", f"{message:.1f}"])
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler:
        with tempfile.TemporaryDirectory() as folder:
            program = f"{folder}/trws_floor"
            subprocess.run([compiler, *FLOOR, program], check=True)
            floor = subprocess.run([program], capture_output=True, text=True, check=True)
        general, potts = map(float, floor.stdout.split())
        rows.append(["floor: C, messages alone", f"{general:.3f}", f"{potts:.1f}"])
    print(
        "\nGrid of 128 x 128, 16 states: ns for a cell of a general table, ns for a Potts message\n"
    )
    print(table(["", "cell", "Potts message"], rows))


def _seconds(model: Any, n_iter: int) -> float:
    from structsolve.plugins.mrf.messages._float_passes import (
        float_tree_reweighted,  # one call's passes
    )

    with Clock() as clock:
        float_tree_reweighted(model, n_iter)
    return clock.cpu


def compare_pictures(ours: bool) -> None:
    """Regions of five classes under noise; and noise alone under a strong Potts table."""
    H, K, rng = 256, 5, np.random.default_rng(0)
    edges = grid(H, H)
    truth = np.kron(rng.integers(0, K, (16, 16)), np.ones((16, 16), int))
    seen = truth + rng.normal(size=(H, H))
    pictures = {
        "regions under noise": (-0.5 * (seen[..., None] - np.arange(K)) ** 2, 1.0),
        "noise, weight 0.5": (rng.normal(size=(H, H, K)), 0.5),
        "noise, weight 1": (rng.normal(size=(H, H, K)), 1.0),
        "uniform noise, weight 0.5": (rng.random((H, H, K)), 0.5),
    }
    rows = []
    for name, (unary, weight) in pictures.items():
        flat = unary.reshape(-1, K)
        spent = {}
        for peer, call in expansions(unary, weight).items():
            with Clock() as clock:
                label = call()
            spent[peer] = clock.cpu
            score = total(flat, edges, weight, label)
            rows.append([name, peer, f"{clock.cpu:.2f}", f"{score:.2f}", ""])
        potts = weight * (np.eye(K) - 1)
        for oracle in ("trws", "expansion") if ours else ():
            rows.append([name, *most_in_time(flat, edges, potts, oracle, spent["gco"])])
    print("\nPotts, 256 x 256, 5 states; decode with the most iterations in the time of gco\n")
    print(table(["picture", "", "s", "score", "bound"], rows))


def most_in_time(unary: Any, edges: Any, pair: Any, oracle: str, seconds: float) -> list[str]:
    """Name, seconds, score and bound of decode with the most iterations in so many seconds."""
    from structsolve.plugins.mrf import decode

    n_iter, last = 5, []
    while n_iter < 400:
        with Clock() as clock:
            best = decode(unary, edges, pair, oracle=oracle, max_iter=n_iter)
        if clock.cpu > seconds and last:
            break
        last = [f"{oracle}, {n_iter}"]
        last += [f"{clock.cpu:.2f}", f"{best.value:.2f}", f"{best.bound:.2f}"]
        n_iter = n_iter * 3 // 2
    return last


def compare_finishes() -> None:
    """Gain and time of expansions after an uncertified labeling of TRW-S."""
    from structsolve.plugins.mrf import decode

    H, K, rng = 64, 5, np.random.default_rng(0)
    edges = grid(H, H)
    far = np.abs(np.subtract.outer(np.arange(K), np.arange(K)))
    shape = len(edges), K, K
    models = {
        "Potts": np.eye(K) - 1,
        "truncated linear": -0.5 * np.minimum(far, 2),
        "random and Potts": 0.5 * rng.normal(size=shape) + 1.5 * np.eye(K),
        "Potts, random signs": rng.normal(size=(len(edges), 1, 1)) * np.eye(K),
        "random": rng.normal(size=shape),
    }
    rows = []
    for name, pair in models.items():
        sums = np.zeros((2, 2))
        for _ in range(5):
            unary = rng.normal(size=(H * H, K))
            for row, oracle in zip(sums, ("trws", "expansion")):
                with Clock() as clock:
                    best = decode(unary, edges, pair, oracle=oracle)
                row += 1e3 * clock.cpu, best.bound - best.value
        rows.append([name] + [f"{x:.2f}" for x in (sums / 5).ravel()])
    print("\nGrids of 64 x 64, normal noise, 5 states, 100 iterations; mean of 5\n")
    print(table(["tables", "trws: ms", "gap", "expansion: ms", "gap"], rows))


def main() -> None:
    if sys.argv[1:] == ["--peak"]:
        peak()
        return
    header("TRW-S and alpha-expansion")
    ours = structsolve_or_none() is not None
    compare_stereo(ours)
    if ours:
        command = [sys.executable, __file__, "--peak"]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        before, after = map(float, run.stdout.split())
        print(f"\nA process that decodes tsukuba takes {after:.0f} MB;")
        print(f"before the call it has {before:.0f}.\n")
    cells(ours)
    compare_pictures(ours)
    if ours:
        compare_finishes()


if __name__ == "__main__":
    main()
