"""Shared by all benchmarks: clocks, a description of the machine, tables, import of the package.

Comparisons are of process CPU seconds (``time.process_time``), as in the project's table of
peers, because the machine may be shared; wall seconds are printed beside them.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.metadata
import json
import os
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PICTURES = Path(__file__).resolve().parent / "pictures"


class Clock:
    """CPU and wall seconds of a ``with`` block.

    The garbage collector runs as usual: libraries that make many objects pay for it.
    """

    def __enter__(self) -> Clock:
        self._cpu, self._wall = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *exc: object) -> None:
        self.cpu = time.process_time() - self._cpu
        self.wall = time.perf_counter() - self._wall

    def __str__(self) -> str:
        return f"{self.cpu:.3f} s CPU, {self.wall:.3f} s wall"


def in_processes(
    jobs: int, work: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]
) -> list[Any]:
    """Results of `work` for every task, so many at a time, each in one of so many processes."""
    with ProcessPoolExecutor(jobs) as pool:
        return [one.result() for one in [pool.submit(work, *task) for task in tasks]]


def append(path: Path, record: Any) -> None:
    """One line of JSON in one write, so that several processes may share the file."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, (json.dumps(record) + "\n").encode())
    finally:
        os.close(file)


def median_time(call: Callable[[], Any], repeat: int = 3) -> tuple[float, float, Any]:
    """Median CPU seconds, median wall seconds and the last result of `repeat` calls."""
    cpu, wall, result = [], [], None
    for _ in range(repeat):
        with Clock() as clock:
            result = call()
        cpu.append(clock.cpu)
        wall.append(clock.wall)
    return statistics.median(cpu), statistics.median(wall), result


def machine() -> str:
    """One line: processor, cores, load average, Python and NumPy."""
    import numpy as np

    name = platform.processor() or platform.machine()
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        name = next(
            (line.split(":")[1].strip() for line in lines if line.startswith("model name")), name
        )
    load = ", ".join(f"{x:.2f}" for x in os.getloadavg()) if hasattr(os, "getloadavg") else "?"
    return (
        f"{name}, {os.cpu_count()} cores, load {load}; Python {platform.python_version()}, "
        f"NumPy {np.__version__}, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS')}"
    )


def one_thread() -> None:
    """Restart the script with one thread for BLAS and OpenMP, unless the user set a number.

    The libraries read the variables when loaded, so setting them now would be too late.
    """
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    if names[0] not in os.environ:
        environment = os.environ | dict.fromkeys(names, "1")
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


#: Modules of peers, and the distributions that they belong to.
PEERS = {
    "cvxpy": "cvxpy",
    "gco": "gco-wrapper",
    "hiclass": "hiclass",
    "highspy": "highspy",
    "hmmlearn": "hmmlearn",
    "jax": "jax",
    "lap": "lap",
    "lapjv": "lapjv",
    "maxflow": "PyMaxflow",
    "mord": "mord",
    "omikuji": "omikuji",
    "ot": "POT",
    "pgmpy": "pgmpy",
    "pycrfsuite": "python-crfsuite",
    "pytoulbar2": "pytoulbar2",
    "scipy": "scipy",
    "seqeval": "seqeval",
    "sklearn": "scikit-learn",
    "sklearn_crfsuite": "sklearn-crfsuite",
    "synjax": "synjax",
    "thinqpbo": "thinqpbo",
    "torch": "torch",
    "torch_struct": "torch-struct",
    "torchcrf": "pytorch-crf",
    "ufal.udpipe": "ufal.udpipe",
    "vowpalwabbit": "vowpalwabbit",
}


def print_versions() -> None:
    """Print the versions of the peers that this process imported."""
    told = []
    for module, name in PEERS.items():
        if module in sys.modules:
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                told.append(f"{name} {importlib.metadata.version(name)}")
    print(f"\nVersions: {', '.join(told) or 'no peer was imported'}", flush=True)


def header(title: str) -> None:
    """Call `one_thread`; print the title, the state of the machine, and versions at the end."""
    one_thread()
    atexit.register(print_versions)
    # Runs of a given number of passes stop before they converge.
    warnings.filterwarnings("ignore", message="stopped after max_iter")
    print(f"## {title}\n\n{machine()}\n", flush=True)


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A markdown table; floats get four significant digits, None a dash."""

    def cell(value: object) -> str:
        if value is None:
            return "-"
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    lines += ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def of_grid(value: float, grid: Iterable[float]) -> str:
    """A chosen value as text, which says if it is an end of the grid: another may be better."""
    return f"{value:g}" + " (grid's end)" * (value in (min(grid), max(grid)))


def ratio(peer: float | None, ours: float | None) -> str:
    """``peer / ours`` as text: above 1 ours is faster."""
    return f"{peer / ours:.2f}x" if peer and ours else "-"


@dataclass
class Chosen:
    """A learner with its chosen setting: `again` trains it and returns CPU seconds.

    Of the score more is better; `high` is the upper end of its interval; cells are those of a row.
    """

    seconds: float
    score: float
    high: float
    cells: list[str]
    again: Callable[[], float]
    conversion: float | None = None


def quickest(chosen: dict[str, Chosen], rounds: int = 2) -> list[list[str]]:
    """Of ours, peers and trainers of CRFs, the quickest that reaches what the others do.

    Of ours the interval is to reach the best score of all, of the others our score; where none
    does, the best score counts.  They are then trained in turn; the least seconds end a row, and
    the same with the seconds of conversion, if given.
    """
    groups = {"ours": ("ours",), "peers": ("crf", "vow"), "CRFs": ("crfsuite l",)}
    target, first = max(one.score for one in chosen.values()), {}
    for who, starts in groups.items():
        some = [one for name, one in chosen.items() if name.startswith(starts)]
        if some:
            able = [one for one in some if one.high >= target]
            able = able or [max(some, key=lambda one: one.score)]
            first[who] = min(able, key=lambda one: one.seconds)
            target = first["ours"].score if "ours" in first else target
    times = [[one.again() for one in first.values()] for _ in range(rounds)]
    rows = []
    for (who, one), spent in zip(first.items(), zip(*times)):
        rows.append([who, *one.cells, f"{min(spent):.2f}"])
        if one.conversion is not None:
            rows[-1].append(f"{min(spent) + one.conversion:.2f}")
    return rows


def structsolve_or_none() -> Any:
    """The package, or None after printing the reason; the peers run without it."""
    try:
        import structsolve

        _ = structsolve.StructuredSVM
    except (ImportError, AttributeError) as error:
        print(f"(our side skipped: structsolve is not importable: {error})\n", flush=True)
        return None
    return structsolve


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Nothing printed by compiled code: omikuji draws bars, UDPipe reports."""
    kept = [os.dup(1), os.dup(2)]
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            for k, old in enumerate(kept, 1):
                os.dup2(old, k)
                os.close(old)


@contextlib.contextmanager
def picture(name: str, title: str) -> Iterator[Any]:
    """A matplotlib axes written to ``pictures/NAME.png``."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
    ax.set_title(title)
    yield ax
    PICTURES.mkdir(exist_ok=True)
    fig.savefig(PICTURES / f"{name}.png", dpi=120)
    plt.close(fig)
    print(f"picture: benchmarks/pictures/{name}.png\n", flush=True)
