"""Indexes of rivals: recall of the five best classes against time, on class means of a set.

    python benchmarks/extreme_rivals.py --sets lshtc
    python benchmarks/extreme_rivals.py --model trained.npz --sets lshtc

Sets come from ``extreme_data.py``.  Weights are class means of length one, or those of ``--model``:
a CSR matrix of features by classes, as ``scipy.sparse.save_npz`` writes it.  Every index gets the
same rows and excludes their true classes.  Entries are the weights that a scan reads, as a share of
all weights of the rows' features; missed is the score of the true best class minus that of the best
class found.  The target of the certified scan is a recall of .999 at a fifth of all entries.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from common import PICTURES, Clock, machine, quiet
from environments import enter, peers_of
from extreme import FOLDER, data
from extreme_peers import load, one_hot

from structsolve.plugins.extreme.solvers.rival_checks import ask_rivals
from structsolve.plugins.extreme.solvers.rivals import make_rivals
from structsolve.plugins.extreme.weights.postings import Postings

SPECS = ["exact"]
SPECS += [f"certified:{epsilon}" for epsilon in (0.0125, 0.025, 0.05, 0.1, 0.2)]
SPECS += [f"random:{k}" for k in (10, 100, 1000)]
SPECS += [f"lsh:{bits},{m}" for bits in (64, 256) for m in (20, 100, 500)]
SPECS += [f"graph:10,{walk}" for walk in (20, 100)]
TOP = 5


def class_means(X, y, n_classes: int) -> Postings:
    means = (one_hot(y, n_classes).T.tocsr() @ X).astype(np.float32)
    norms = np.sqrt(np.asarray(means.multiply(means).sum(1)).ravel())
    means = sp.diags(1 / np.where(norms > 0, norms, 1)).astype(np.float32) @ means
    return Postings.from_matrix(means.T.tocsr())


def recall(told: np.ndarray, best: np.ndarray) -> float:
    return float(np.mean((told[:, :, None] == best[:, None, :]).any(1)))


def compare(X, y, weights: Postings, specs: list[str]) -> list[dict[str, object]]:
    best = weights.top(X, TOP, exclude=y)[0]
    # The number of entries in a full scan of a row's features.
    whole = int(np.diff(weights.indptr)[X.indices].sum())
    rows = []
    for spec in specs:
        index = make_rivals(spec)
        try:
            with quiet(), Clock() as made:  # nmslib prints advice
                index.start(weights)
                # The first call makes the hashes.
                ask_rivals(index, weights, X[:1], y[:1], TOP)
        except ImportError as error:
            print(f"{spec}: {error}")
            continue
        index.entries = 0
        with Clock() as asked:
            ids, scores, bounds = ask_rivals(index, weights, X, y, TOP)
        true = weights.top(X, 1, exclude=y)[1][:, 0]
        rows.append(
            {
                "index": spec,
                "recall": recall(ids, best),
                "ms": 1e3 * asked.cpu / len(y),
                "entries": f"{index.entries / whole:.3f}" if index.entries else "-",
                "made": made.cpu,
                "missed": float((true - scores[:, 0]).mean()),
                "broken": int((true > scores[:, 0] + bounds + 1e-4).sum()),
            }
        )
        print(
            "| {index} | {recall:.4f} | {ms:.3f} | {entries} | {made:.1f} | {missed:.4f} | "
            "{broken} |".format(**rows[-1]),
            flush=True,
        )
    return rows


def draw(rows: list[dict[str, object]], title: str, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4))
    for kind in dict.fromkeys(str(row["index"]).split(":")[0] for row in rows):
        some = [row for row in rows if str(row["index"]).split(":")[0] == kind]
        some.sort(key=lambda row: row["ms"])
        axes.plot([r["ms"] for r in some], [r["recall"] for r in some], "o-", label=kind)
    axes.set(xscale="log", xlabel="CPU ms a row", ylabel="recall of the five best", title=title)
    ticks = [0.1, 0.2, 0.5, 1, 2, 5, 10]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_ylim(0, 1.02)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    print(f"\n![recall against time](../pictures/{path.name})")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where sets are, or are made")
    parser.add_argument("--sets", nargs="+", default=["lshtc"])
    parser.add_argument("--model", help="weights to scan in place of class means")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--specs", nargs="+", default=SPECS)
    options = parser.parse_args()
    enter("nmslib")
    options.folder.mkdir(parents=True, exist_ok=True)
    print("## Indexes of rivals\n")
    print(f"{machine()}\n\n{peers_of('nmslib')}")
    for name in options.sets:
        X, y, _, _ = load(str(data(options.folder, name)))
        y = y.astype(np.int32)
        n_classes = int(y.max()) + 1
        weights = (
            Postings.from_matrix(sp.load_npz(options.model))
            if options.model
            else class_means(X, y, n_classes)
        )
        some = np.sort(np.random.default_rng(0).permutation(len(y))[: options.rows])
        what = "trained weights" if options.model else "class means"
        print(f"\n{name}: {n_classes} classes, {weights.nnz} weights ({what}), {len(some)} rows\n")
        print("| index | recall | ms a row | entries | made in s | missed | bounds broken |")
        print("|" + " --- |" * 7)
        rows = compare(X[some], y[some], weights, options.specs)
        draw(rows, f"{name}, {what}", PICTURES / f"extreme_rivals_{name}.png")


if __name__ == "__main__":
    main()
