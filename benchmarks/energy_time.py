"""Score and bound of decoders over time, on stereo from two views of the motorcycle.

Costs of pixels are differences of colours.  Costs of neighbours grow with the step in disparity up
to two steps; this is a metric, so expansion moves are allowed.  Scores are maximised, in units of
the highest bound seen.  On the small picture HiGHS solves the whole relaxation; on the large one it
does not finish.  Each point is a separate run, except for PyMaxflow, whose moves are timed one by
one.  The script writes `docs/pictures/decoders.png`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import Clock, header, structsolve_or_none, table

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "pictures" / "decoders.png"
CAP = 0.25  # cost of a pixel, at most
SMOOTH = 0.04  # cost of a step by one
Point = tuple[float, float, "float | None"]  # CPU seconds, score, bound


def stereo(height: int, width: int, levels: int) -> tuple[np.ndarray, np.ndarray]:
    """Costs of the disparities of each pixel, and of those of neighbours."""
    from skimage import data, transform

    views = [
        transform.resize(view, (height, width), anti_aliasing=True)
        for view in data.stereo_motorcycle()[:2]
    ]
    cost = np.full((height, width, levels), CAP)
    for d in range(levels):
        apart = np.abs(views[0][:, d:] - views[1][:, : width - d]).mean(axis=2)
        cost[:, d:, d] = np.minimum(apart, CAP)
    step = np.abs(np.subtract.outer(np.arange(levels), np.arange(levels)))
    return cost, SMOOTH * np.minimum(step, 2.0)


def score(cost: np.ndarray, smooth: np.ndarray, label: np.ndarray) -> float:
    """Score of a label picture, computed in the same way for all decoders."""
    total = np.take_along_axis(cost, label[..., None], axis=2).sum()
    total += smooth[label[:, :-1], label[:, 1:]].sum() + smooth[label[:-1], label[1:]].sum()
    return -float(total)


def fastest(call: Callable[..., Any], *given: Any, **named: Any) -> tuple[float, Any]:
    """CPU seconds of a call (the best of several if it is short), and its result."""
    best = np.inf
    for _ in range(5):
        with Clock() as clock:
            result = call(*given, **named)
        best = min(best, clock.cpu)
        if clock.cpu > 0.2:
            break
    return best, result


def ours(cost: np.ndarray, smooth: np.ndarray, oracle: str, most: int) -> Iterator[Point]:
    from structsolve.plugins.mrf import decode, grid_edges

    height, width, levels = cost.shape
    edges, unary = grid_edges(height, width), -cost.reshape(-1, levels)
    iterations = 1
    while iterations <= most:
        seconds, answer = fastest(decode, unary, edges, -smooth, oracle=oracle, max_iter=iterations)
        value = score(cost, smooth, answer.label.reshape(height, width))
        yield seconds, value, answer.bound
        if answer.bound - value < 1e-6 * abs(value):
            return
        iterations *= 2


def pymaxflow(cost: np.ndarray, smooth: np.ndarray) -> Iterator[Point]:
    from maxflow.fastmin import aexpansion_grid_step

    label, spent, best = cost.argmin(axis=2), 0.0, np.inf
    yield 0.0, score(cost, smooth, label), None
    improved = True
    while improved:
        improved = False
        for alpha in range(cost.shape[2]):
            with Clock() as clock:
                energy, _ = aexpansion_grid_step(alpha, cost, smooth, label)
            spent += clock.cpu
            improved |= energy < best - 1e-9
            best = min(best, energy)
            yield spent, score(cost, smooth, label), None


def gco(cost: np.ndarray, smooth: np.ndarray, most: int) -> Iterator[Point]:
    import gco as library

    # The fast version needs integers.
    units = 1e4
    unary = np.rint(units * cost).astype(np.int32)
    pair = np.rint(units * smooth).astype(np.int32)
    last = None
    for cycles in range(1, most + 1):
        seconds, label = fastest(
            library.cut_grid_graph_simple, unary, pair, n_iter=cycles, connect=4
        )
        label = label.reshape(cost.shape[:2])
        yield seconds, score(cost, smooth, label), None
        if last is not None and (label == last).all():
            return
        last = label


def runs(cost: np.ndarray, smooth: np.ndarray, with_lp: bool) -> dict[str, list[Point]]:
    curves: dict[str, list[Point]] = {}
    if structsolve_or_none() is not None:
        curves["TRW-S"] = list(ours(cost, smooth, "trws", 256))
        if with_lp:
            curves["HiGHS"] = list(ours(cost, smooth, "lp", 1))
    for name, peer in (
        ("PyMaxflow", lambda: pymaxflow(cost, smooth)),
        ("gco", lambda: gco(cost, smooth, 12)),
    ):
        try:
            curves[name] = list(peer())
        except ImportError as error:
            print(f"({name} skipped: {error})\n")
    return curves


def draw(panels: dict[str, dict[str, list[Point]]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for axes, (title, curves) in zip(figure.subplots(1, len(panels)), panels.items()):
        highest = min(b for points in curves.values() for _, _, b in points if b is not None)
        for k, (name, points) in enumerate(curves.items()):
            seconds, scores, bounds = zip(*points)
            shown = np.maximum(seconds, 5e-4)  # the logarithm has no 0
            marker = "o" if len(points) < 20 else None
            axes.plot(shown, np.divide(highest, scores), f"C{k}", marker=marker, ms=3, label=name)
            if bounds[0] is not None:
                axes.plot(shown, np.divide(highest, bounds), f"C{k}--", marker=marker, ms=3)
        axes.set(xscale="log", ylim=(0.97, 1.01), xlabel="CPU seconds")
        axes.set_title(title, size=10)
        axes.axhline(1, color="grey", lw=0.5)
        axes.legend(loc="lower right", fontsize=8)
    figure.axes[0].set_ylabel("score (bounds dashed)")
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=100)
    print(f"picture: docs/pictures/{PICTURE.name}\n", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", type=int, nargs=3, default=(150, 222, 21))
    parser.add_argument("--small", type=int, nargs=3, default=(32, 48, 6))
    args = parser.parse_args()
    header("Score and bound over time: decoders of stereo")
    panels = {}
    for size in (args.small, args.large):
        height, width, levels = size
        title = f"{height} x {width}, {levels} disparities"
        begin = time.perf_counter()
        curves = runs(*stereo(*size), with_lp=size is args.small)
        rows: list[list[Any]] = []
        for name, points in curves.items():
            seconds, value, bound = points[-1]
            near = next(s for s, v, _ in points if v >= value - 1e-3 * abs(value))
            shown = [None if x is None else f"{x:.3f}" for x in (value, bound)]
            rows.append([name, *shown, seconds, near])
        columns = ["decoder", "score", "bound", "s", "s to within .1 % of its own"]
        print(f"### {title}\n\n{table(columns, rows)}", flush=True)
        print(f"{time.perf_counter() - begin:.0f} s wall\n", flush=True)
        panels[title] = curves
    draw(panels)


if __name__ == "__main__":
    main()
