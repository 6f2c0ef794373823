"""Time and memory of public calls as one size grows, with exponents and the machine's limits.

Each point is a process of its own: CPU seconds of a call (the least of a few), wall seconds where
threads grow, and the peak of the resident memory above the input's.  Training makes a fixed number
of passes.  An exponent is the slope of a straight line through logarithms, with its standard error;
beside it stand the slope between the last two sizes and the exponent expected: that of the least
operations, of one vector of weights and a packed copy of the input for memory, at the same sizes.

A limit is the least time on this machine: the passes made times the longer of the least operations
of a pass at the measured speed of sums and fused products in registers, and the bytes of the packed
input and the weights at the bandwidth measured for so many.  A row of d non-zeros and K states or
classes needs d K products, in a chain also a sum and a maximum for each of K^2 pairs of states; in
a cheap pass of BCFW 4 d products (scores and weights of two labels); a picture a sum and a maximum
for each state and end of an edge in each of ten iterations, or in one where it goes on to a proof;
a visit of ExtremeSVM to a row and a class 2 d (a score, and its weights).

    python benchmarks/growth.py [--only chain classes] [--quick]
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bcfw_ocr import status_bytes
from common import PICTURES, Clock, header, median_time, structsolve_or_none, table

PASSES = 5
# Smaller peaks are those of the allocator, and left out of exponents.
LEAST_BYTES = 2**20
# Bytes of the triads that measure the bandwidth, from the caches' to the memory's.
TRIADS = 24 << 16, 24 << 20, 24 << 26
CHAIN = {"sentences": 1000, "length": 16, "states": 16, "non-zeros": 16, "columns": 4096}
BASE = {
    "chain": CHAIN,
    "chain in shards": CHAIN | {"sentences": 4000, "shards": 4, "threads": 1},
    "classes": {"rows": 4000, "classes": 16, "features": 64},
    "extreme": {"rows": 10_000, "classes": 1000, "non-zeros": 30},
    "picture": {"pixels": 4096, "states": 8},
}
AXES = {
    ("chain", "sentences"): (250, 800, 2500, 8000, 25_000),
    ("chain", "length"): (4, 8, 16, 32, 64, 128, 256),
    ("chain", "states"): (4, 8, 16, 32, 64, 128),
    ("chain", "non-zeros"): (4, 8, 16, 32, 64, 128),
    ("chain", "columns"): (1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18),
    ("chain in shards", "shards"): (2, 4, 8, 16, 32, 64),
    ("chain in shards", "threads"): (1, 2),
    ("classes", "rows"): (1000, 4000, 16_000, 64_000),
    ("classes", "classes"): (4, 8, 16, 32, 64, 128),
    ("classes", "features"): (8, 32, 128, 512),
    ("extreme", "rows"): (4000, 8000, 16_000, 32_000, 64_000),
    ("extreme", "classes"): (500, 1000, 2000, 4000, 8000),
    ("picture", "pixels"): (1024, 4096, 16_384, 65_536),
    ("picture", "states"): (2, 4, 8, 16, 32),
}


@dataclass
class Work:
    """A call that returns the passes and cheap passes it made; what a pass takes at the least."""

    call: Callable[[], tuple[float, float]]
    sums: float  # of numbers, or maxima
    products: float  # fused with sums
    moved: float  # bytes read or written
    held: float  # bytes of weights and of a packed copy of the input
    cheap: float = 0.0  # products of a cheap pass


def fitted(model: Any, X: Any, Y: Any, n: int) -> tuple[float, float]:
    """Passes with oracle calls of a fit, and cheap ones."""
    history = model.fit(X, Y).history_
    calls = sum(row["oracle_calls"] for row in history)
    return calls / n, float(sum(row["cached_passes"] for row in history))


def predicted(model: Any, X: Any) -> tuple[float, float]:
    """One pass: a prediction."""
    model.predict(X)
    return 1.0, 0.0


def rows_of(n: int, nonzeros: int, columns: int, classes: int) -> tuple[Any, np.ndarray]:
    """Sparse rows with labels that mostly follow from one of their columns."""
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    # One column from each of so many equal parts: sorted, and none twice.
    parts = columns // nonzeros * np.arange(nonzeros)
    index = parts + rng.integers(0, columns // nonzeros, (n, nonzeros))
    y = np.where(rng.random(n) < 0.9, index[:, 0] * 7919, rng.integers(classes, size=n)) % classes
    ends = np.arange(n + 1) * nonzeros
    return sp.csr_matrix((rng.random(index.size) + 0.5, index.ravel(), ends), (n, columns)), y


def chain(sizes: dict[str, int]) -> dict[str, Work]:
    """Training a chain by BCFW or by rounds over shards, and prediction."""
    from structsolve import Sequences, StructuredSVM
    from structsolve.solvers import BCFW, ConsensusADMM

    n, K, nonzeros = sizes["sentences"], sizes["states"], sizes["non-zeros"]
    jobs, shards = sizes.get("threads", 1), sizes.get("shards", 0)
    rows, y = rows_of(n * sizes["length"], nonzeros, sizes["columns"], K)
    X, Y = Sequences(rows, np.full(n, sizes["length"])), list(y.reshape(n, -1))
    solver: Any = ConsensusADMM(n_shards=shards) if shards else BCFW()
    model = StructuredSVM("chain", alpha=10 / n, solver=solver, max_iter=PASSES, tol=0.0)
    model.set_params(n_jobs=jobs)
    weights, packed = 8.0 * K * (K + sizes["columns"]), 12.0 * rows.nnz + 8.0 * len(y)
    arithmetic = 2.0 * len(y) * K * K / jobs, 1.0 * rows.nnz * K / jobs
    # In a round every shard gets a vector and gives one, which are read and written.
    moved, held = (packed + max(1, 4 * shards) * weights) / jobs, packed + (1 + shards) * weights
    cheap = 4.0 * rows.nnz / jobs
    return {
        "fit": Work(lambda: fitted(model, X, Y, n), *arithmetic, moved, held, cheap),
        "predict": Work(
            lambda: predicted(model, X), *arithmetic, (packed + weights) / jobs, packed
        ),
    }


def classes(sizes: dict[str, int]) -> dict[str, Work]:
    """Flat classes of dense rows by BCFW, and prediction."""
    from structsolve import StructuredSVM

    n, K, d = sizes["rows"], sizes["classes"], sizes["features"]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.argmax(X @ rng.normal(size=(d, K)) + rng.normal(size=(n, K)) * d**0.5, axis=1)
    y[:K] = np.arange(K)
    model = StructuredSVM("multiclass", alpha=10 / n, solver="bcfw", max_iter=PASSES, tol=0.0)
    least = (n * K, float(n * d * K), 8.0 * (n * d + d * K), 8.0 * (n * d + d * K))
    return {
        "fit": Work(lambda: fitted(model, X, y, n), *least, 4.0 * n * d),
        "predict": Work(lambda: predicted(model, X), *least[:3], 8.0 * n * K),
    }


def extreme(sizes: dict[str, int]) -> dict[str, Work]:
    """ExtremeSVM with its default solver."""
    from structsolve import ExtremeSVM

    n, K, d = sizes["rows"], sizes["classes"], sizes["non-zeros"]
    X, y = rows_of(n, d, 30_000, K)
    y[:K] = np.arange(K)
    X.data /= np.sqrt(np.repeat(np.add.reduceat(X.data**2, X.indptr[:-1]), d))
    model = ExtremeSVM(max_iter=PASSES, tol=0.0)
    few = min(4000, n)

    def call() -> tuple[float, float]:
        return model.fit(X, y).history_[-1].get("visits", n) / n, 0.0

    return {
        "fit": Work(call, 0.0, 2.0 * n * d, 0.0, 24.0 * n * d),
        "predict": Work(
            lambda: predicted(model, X[:few]), 0.0, float(few * d), 12.0 * few * d, 12.0 * few * d
        ),
    }


def picture(sizes: dict[str, int]) -> dict[str, Work]:
    """Decoding a picture of weighted Potts terms: ten iterations, and easier scores to a proof."""
    from structsolve.plugins.mrf import decode, grid_edges

    side, K = int(sizes["pixels"] ** 0.5), sizes["states"]
    edges = grid_edges(side, side, 4)
    rng = np.random.default_rng(0)
    unary, weights = rng.normal(size=(side * side, K)), rng.random(len(edges))

    def call(strength: float, most: int) -> tuple[float, float]:
        decode(strength * unary, edges, np.eye(K), weights=weights, max_iter=most)
        return 10.0 if most == 10 else 1.0, 0.0

    read = unary.nbytes + edges.nbytes + weights.nbytes
    least = (4.0 * len(edges) * K, 0.0, read, 2.0 * read)
    return {
        "decode": Work(lambda: call(0.5, 10), *least),
        "decode to a proof": Work(lambda: call(2.0, 1000), *least),
    }


MAKERS = {"chain": chain, "chain in shards": chain}
MAKERS |= {"classes": classes, "extreme": extreme, "picture": picture}


def peak_of(call: Callable[[], tuple[float, float]]) -> tuple[float, float, float]:
    """Passes and cheap passes of a call, and the bytes by which memory grows at its peak."""
    # Memory that the allocator kept after it was freed would hide the memory of the call.
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = status_bytes("VmRSS")
    passes, cheap = call()
    return passes, cheap, status_bytes("VmHWM") - before


def measure(task: str, sizes: dict[str, int], seconds: float) -> dict[str, dict[str, float]]:
    """In a child process: what every call of a task takes."""
    told = {}
    small = {"sentences": 20, "rows": 200, "pixels": 64}
    few = {key: min(value, small.get(key, value)) for key, value in sizes.items()}
    few |= {"classes": 4} if "classes" in sizes else {}
    for work in MAKERS[task](few).values():
        work.call()  # imports and first settings are not what grows
    for name, work in MAKERS[task](sizes).items():
        passes, often, peak = peak_of(work.call)
        cpu: list[float] = []
        wall: list[float] = []
        spent = 0.0
        while spent < seconds:
            with Clock() as clock:
                work.call()
            cpu.append(clock.cpu)
            wall.append(clock.wall)
            spent += max(clock.cpu, 1e-3)
        told[name] = {"cpu": min(cpu), "wall": min(wall), "peak": float(peak)}
        told[name] |= {"passes": passes, "often": often, "products": work.products}
        told[name] |= {k: getattr(work, k) for k in ("sums", "moved", "held", "cheap")}
    return told


def limits() -> dict[str, float]:
    """Sums and fused products in registers, and bytes of a triad, a second."""
    folder = tempfile.TemporaryDirectory(prefix="structsolve-bench-")
    source, target = Path(__file__).with_name("limits.c"), Path(folder.name, "limits.so")
    flags = ["-O3", "-march=native", "-ffp-contract=fast", "-fPIC", "-shared", "-std=gnu11"]
    subprocess.run(["gcc", *flags, str(source), "-o", str(target)], check=True)
    loaded, rounds = ctypes.CDLL(str(target)), 2_000_000

    def least(call: Callable[[], Any], repeat: int) -> float:
        return min(median_time(call, 1)[0] for _ in range(repeat))

    speed = {}
    for name in ("sums", "products"):
        loop, given = getattr(loaded, name), (ctypes.c_int64(rounds), ctypes.c_double(1e-9))
        loop.restype = ctypes.c_double
        speed[name] = 96 * rounds / least(lambda: loop(*given), 10)  # noqa: B023
    arrays = [np.ones(TRIADS[-1] // 24) for _ in range(3)]
    places = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    for size in TRIADS:
        ends = ctypes.c_double(2.0), ctypes.c_int64(size // 24)
        speed[f"{size}"] = size / least(lambda: loaded.triad(*places, *ends), 5)  # noqa: B023
    folder.cleanup()
    return speed


def bound(point: dict[str, float], speed: dict[str, float]) -> float:
    """The least seconds of a point on this machine."""
    arithmetic = point["sums"] / speed["sums"] + point["products"] / speed["products"]
    widths = [speed[f"{size}"] for size in TRIADS]
    width = np.interp(np.log(point["moved"] + 1), np.log(TRIADS), widths)
    least = point["passes"] * max(arithmetic, point["moved"] / width)
    return least + point["often"] * point["cheap"] / speed["products"]


def slope(sizes: Any, values: Any) -> tuple[float, float]:
    """The slope of logarithms and its standard error."""
    x, y = np.log(sizes), np.log(values)
    x = x - x.mean()
    value = float(x @ y / (x @ x))
    rest = y - y.mean() - value * x
    return value, float(np.sqrt(rest @ rest / max(len(x) - 2, 1) / (x @ x)))


def points_of(task: str, axis: str, quick: bool) -> tuple[list[int], list[dict[str, Any]]]:
    """Sizes of an axis and what each takes."""
    sizes = list(AXES[task, axis])[: 3 if quick else None]
    points = []
    for size in sizes:
        given = json.dumps(BASE[task] | {axis: size})
        command = [sys.executable, __file__, "--child", task, given]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            raise SystemExit(f"{task}, {axis} = {size}:\n{run.stderr}")
        points.append(json.loads(run.stdout.splitlines()[-1]))
    return sizes, points


Curve = tuple[str, str, str, list[int], list[dict[str, float]]]


def rows_of_curve(curve: Curve, speed: dict[str, float]) -> tuple[list[Any], list[Any]]:
    """A row of the table of exponents, and one of the table of values."""
    task, axis, call, sizes, points = curve
    clock = "wall" if axis == "threads" else "cpu"
    spent = [point[clock] for point in points]
    least = [bound(point, speed) for point in points]
    operations = [
        p["passes"] * (p["sums"] + 2 * p["products"]) + 2 * p["often"] * p["cheap"] for p in points
    ]
    peaks = [point["peak"] for point in points]

    def told(values: Any, from_on: float = 0.0) -> str:
        some = [pair for pair in zip(sizes, values, strict=True) if pair[1] > from_on]
        if len(some) < 3:
            return f"{slope(*zip(*some))[0]:.2f}" if axis == "threads" else "-"
        value, error = slope(*zip(*some))
        return f"{value:.2f} ({error:.2f})"

    last = slope(sizes[-2:], spent[-2:])[0]
    first = [f"{task}, {call}", axis, f"{sizes[0]} to {sizes[-1]}", told(spent), f"{last:.2f}"]
    first += [f"{slope(sizes, operations)[0]:.2f}", told(peaks, LEAST_BYTES)]
    first += [f"{slope(sizes, [p['held'] for p in points])[0]:.2f}"]
    first += [f"{spent[-1] / least[-1]:.1f}"]
    second = [f"{task}, {call}", axis]
    second += [" ".join(f"{1e3 * s:.3g}" for s in spent), " ".join(f"{1e3 * s:.2g}" for s in least)]
    second += [" ".join(f"{p / 2**20:.3g}" for p in peaks)]
    second += [" ".join(f"{p['passes']:.3g}+{p['often']:.3g}" for p in points)]
    second += [" ".join(f"{p['cpu'] / p['wall']:.2g}" for p in points)]
    return first, second


def draw(curves: list[Curve], speed: dict[str, float]) -> None:
    """Small multiples: above the time with its limit, below the memory with what must be held."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = list(dict.fromkeys(curve[:2] for curve in curves))
    across = 5
    down = -(-len(panels) // across)
    fig, axes = plt.subplots(
        2 * down, across, figsize=(3 * across, 4.6 * down), layout="constrained", squeeze=False
    )
    for place in axes.ravel():
        place.set_visible(False)
    colours = {"fit": "tab:blue", "decode": "tab:blue"}
    for number, panel in enumerate(panels):
        above, below = (axes[2 * (number // across) + k, number % across] for k in (0, 1))
        for _, axis, call, sizes, points in (c for c in curves if c[:2] == panel):
            clock = "wall" if axis == "threads" else "cpu"
            colour = colours.get(call, "tab:orange")
            spent = [p[clock] for p in points]
            label = f"{call}: {slope(sizes, spent)[0]:.2f}"
            above.plot(sizes, spent, "o-", color=colour, ms=3, label=label)
            above.plot(sizes, [bound(p, speed) for p in points], "--", color=colour, lw=1)
            peaks = [p["peak"] / 2**20 for p in points]
            below.plot(sizes, peaks, "s-", color=colour, ms=3, label=call)
            below.plot(sizes, [p["held"] / 2**20 for p in points], ":", color=colour, lw=1)
        for place, unit in ((above, "s"), (below, "MB")):
            place.set_visible(True)
            place.set(xscale="log", yscale="log", xlabel=panel[1])
            place.xaxis.set_minor_formatter(plt.NullFormatter())
            place.yaxis.set_minor_formatter(plt.NullFormatter())
            place.set_ylabel(unit)
            place.legend(fontsize=7)
            place.tick_params(labelsize=7)
        above.set_title(", ".join(panel), fontsize=9)
    fig.suptitle("Time (dashed: the machine's limit) and memory (dotted: weights and packed input)")
    PICTURES.mkdir(exist_ok=True)
    fig.savefig(PICTURES / "growth.png", dpi=90)
    print("picture: benchmarks/pictures/growth.png\n", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(MAKERS), default=list(MAKERS))
    parser.add_argument("--quick", action="store_true", help="the first three sizes")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        warnings.simplefilter("ignore")
        print(json.dumps(measure(args.child[0], json.loads(args.child[1]), 0.5)))
        return
    header("Growth of time and memory")
    if structsolve_or_none() is None:
        return
    speed = limits()
    print(
        f"This core: {speed['sums'] / 1e9:.3g} billion sums a second in registers, "
        f"{2 * speed['products'] / 1e9:.3g} GFLOPS of fused products, "
        + ", ".join(f"{speed[f'{size}'] / 1e9:.3g} GB/s" for size in TRIADS)
        + f" of a triad over {', '.join(f'{size / 2**20:g}' for size in TRIADS)} MB\n"
    )
    curves: list[Curve] = []
    for task, axis in AXES:
        if task in args.only:
            sizes, points = points_of(task, axis, args.quick)
            for call in points[0]:
                curves.append((task, axis, call, sizes, [point[call] for point in points]))
    rows = [rows_of_curve(curve, speed) for curve in curves]
    columns = ["call", "size", "from", "time: exponent (s.e.)", "last two", "operations"]
    columns += ["memory: exponent (s.e.)", "held", "time / limit at the largest"]
    print(table(columns, [first for first, _ in rows]))
    columns = ["call", "size", "ms", "limit, ms", "memory, MB", "passes + cheap", "cores had"]
    print(table(columns, [second for _, second in rows]))
    draw(curves, speed)


if __name__ == "__main__":
    main()
