"""ExtremeSVM.partial_fit in one pass over chunks beside fit: error, time and kept memory.

    STRUCTSOLVE_DATA=../shared/data python benchmarks/extreme_stream.py

Sets come from ``extreme_data.py``, rows in random order.  The default keeps rows; MEMOIR alone does
not.  Batches bring new classes, except to MEMOIR, which must know all of them from the start.
Seconds are CPU seconds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from common import header, table
from extreme import FOLDER, SETS, data
from extreme_peers import load

CHUNKS = (10, 30)


def streamed(model: Any, X: Any, y: np.ndarray, parts: Iterable[np.ndarray], known: Any) -> Any:
    for part in parts:
        model.partial_fit(X[part], y[part], classes=known)
        known = None
    return model


def main() -> None:
    from structsolve import ExtremeSVM

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", choices=SETS, default=["small", "mid"])
    parser.add_argument("--folder", type=Path, default=FOLDER)
    args = parser.parse_args()
    header("Very many classes, in chunks")
    args.folder.mkdir(parents=True, exist_ok=True)
    for name in args.sets:
        X, y, X_test, y_test = load(str(data(args.folder, name)))
        order, rows = np.random.default_rng(0).permutation(len(y)), []

        def measure(run: str, train: Any, X_test: Any = X_test, y_test: Any = y_test) -> list[Any]:
            begun = time.process_time()
            model = train()
            spent = time.process_time() - begun
            error = float(np.mean(model.predict(X_test) != y_test))
            kept = getattr(model, "_kept", None)
            size = "-" if kept is None else f"{8 * (kept.X.nnz + 4 * len(kept.y)) / 1e6:.0f}"
            return [run, f"{error:.4f}", f"{spent:.1f}", size]

        rows.append(measure("fit", lambda X=X, y=y: ExtremeSVM().fit(X, y)))
        for chunks in CHUNKS:
            parts = np.array_split(order, chunks)
            for title, model, known in (
                ("partial_fit", ExtremeSVM(), None),
                ("MEMOIR's", ExtremeSVM(solver="memoir"), np.unique(y)),
            ):
                given = model, X, y, parts, known
                rows.append(measure(f"{title}, {chunks} chunks", lambda g=given: streamed(*g)))
        print(f"### {name}: {X.shape[0]} rows, {len(np.unique(y))} classes\n")
        print(table(["run", "error", "CPU s", "kept, MB"], rows), flush=True)


if __name__ == "__main__":
    main()
