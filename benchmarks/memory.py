"""Peak memory of a fit on sets near a machine's RAM: LinearSVC, sklearn-crfsuite, ours.

    python benchmarks/memory.py --only rows --scale 0.1

Rows: 250 million non-zeros of sparse rows in two classes.  Words: 2 million words of sentences, as
lists of twenty strings each, from a vocabulary as uneven as that of language, with 20 tags; both
sides get the lists, ours through a `SequenceVectorizer`.  Every fit is three passes (or iterations)
in a process of its own, whose highest resident memory is printed, with that before the fit.  It
needs 13 GiB free at the full scale, and stops where there are less.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import Clock, header, ratio, table
from environments import enter, missing

SYSTEMS = {"rows": ("ours", "LinearSVC"), "words": ("ours", "ours, crf", "sklearn-crfsuite")}
NEEDED = 13.0


def memory(key: str, file: str = "/proc/self/status") -> float:
    """GiB under a key of a status file of Linux."""
    return int(Path(file).read_text().split(f"{key}:")[1].split()[0]) / 2**20


def rows(scale: float) -> tuple[Any, np.ndarray]:
    """Rows with one non-zero in each of a hundred blocks of a thousand columns, and classes."""
    import scipy.sparse as sp

    rng, n = np.random.default_rng(0), int(2_500_000 * scale)
    values, columns = np.empty(n * 100), np.empty(n * 100, np.int32)
    truth, y = rng.normal(size=100_000), np.empty(n, int)
    for start in range(0, n, 20_000):
        these = slice(start, min(start + 20_000, n))
        j = rng.integers(1000, size=(these.stop - start, 100), dtype=np.int32)
        j += np.arange(0, 100_000, 1000, dtype=np.int32)
        x = rng.random(j.shape)
        y[these] = (x * truth[j]).sum(axis=1) + 3 * rng.normal(size=len(j)) > 0
        columns[100 * start : 100 * these.stop] = j.ravel()
        values[100 * start : 100 * these.stop] = x.ravel()
    return sp.csr_matrix((values, columns, np.arange(n + 1) * 100), (n, 100_000)), y


def words(scale: float) -> tuple[list[Any], list[Any]]:
    """Sentences of twenty words with twenty attributes each, and tags."""
    rng, n = np.random.default_rng(0), int(100_000 * scale)
    many = int(200_000 * scale)
    names = np.array([[f"{slot}:{k}" for k in range(many)] for slot in range(20)], object)
    X, Y = [], []
    for _ in range(n):
        ranks = (many ** rng.random((20, 20))).astype(int) % many
        X.append(names[np.arange(20), ranks].tolist())
        Y.append([f"t{k}" for k in (ranks[:, 0] + ranks[:, 1]) % 20])
    return X, Y


def model_of(kind: str, system: str) -> Any:
    """Return an estimator."""
    if system == "LinearSVC":
        from sklearn.svm import LinearSVC

        return LinearSVC(max_iter=3)
    if system == "sklearn-crfsuite":
        from sklearn_crfsuite import CRF

        return CRF(algorithm="lbfgs", max_iterations=3)
    from sklearn.pipeline import make_pipeline

    from structsolve import SequenceVectorizer, StructuredSVM

    if kind == "rows":
        return StructuredSVM("multiclass", max_iter=3, tol=0)
    surrogate = "crf" if "crf" in system else "margin"
    chain = StructuredSVM("chain", surrogate=surrogate, max_iter=3, tol=0)
    return make_pipeline(SequenceVectorizer(), chain)


def measure(kind: str, system: str, scale: float) -> list[float]:
    """GiB before the fit, the highest GiB, CPU seconds."""
    make: Callable[[float], Any] = {"rows": rows, "words": words}[kind]
    model = model_of(kind, system)
    X, y = make(scale)
    before = memory("VmRSS")
    warnings.simplefilter("ignore")
    with Clock() as clock:
        model.fit(X, y)
    return [before, memory("VmHWM"), clock.cpu]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=list(SYSTEMS), default=list(SYSTEMS))
    parser.add_argument("--scale", type=float, default=1.0, help="part of the full size")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(*args.one, args.scale)))
        return
    enter("sklearn-crfsuite")
    header("Peak memory of a fit")
    print(missing("sklearn-crfsuite"))
    free = memory("MemAvailable", "/proc/meminfo")
    print(f"{memory('MemTotal', '/proc/meminfo'):.0f} GiB of memory, {free:.0f} free\n")
    if free < NEEDED * args.scale:
        raise SystemExit(f"{free:.1f} GiB are free, {NEEDED * args.scale:.1f} needed")
    lines, first = [], [0.0]
    for kind in args.only:
        for system in SYSTEMS[kind]:
            call = [sys.executable, __file__, "--scale", str(args.scale), "--one", kind, system]
            done = subprocess.run(call, capture_output=True, text=True, check=False)
            if done.returncode:
                lines.append([kind, system, None, done.stderr.strip().splitlines()[-1][:90]])
                continue
            before, peak, seconds = json.loads(done.stdout.splitlines()[-1])
            first = [peak, peak - before, seconds] if system == "ours" else first
            cells = [f"{value:.2f}" for value in (before, peak, peak - before)]
            beside = [ratio(a, b) for a, b in zip((peak, peak - before, seconds), first)]
            lines.append([kind, system, *cells, f"{seconds:.1f}", *beside])
            print(f"<!-- {lines[-1]} -->", flush=True)
    columns = ["set", "system", "before, GiB", "peak, GiB", "of the fit, GiB", "fit, CPU s"]
    print(table([*columns, "peak / ours", "of the fit / ours", "seconds / ours"], lines))


if __name__ == "__main__":
    main()
