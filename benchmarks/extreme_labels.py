"""Rows of several labels: precision and time of ExtremeSVM beside pecos and omikuji.

    STRUCTSOLVE_DATA=../shared/data python benchmarks/extreme_labels.py

Sets come from ``extreme_label_data.py``.  Peers run in the environment of ``extreme.py``.  Every
fit and prediction runs in its own process with one thread and defaults; sides take turns, and the
table has the least CPU seconds of the rounds.  P is the precision of the k best labels, PSP the
same weighted by propensity (a = .55, b = 1.5).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

HERE = Path(__file__).resolve().parent
SETS = ("bibtex", "rcv1-topics", "labels")
SYSTEMS = ("structsolve", "row per label", "pecos", "omikuji")
TOP = 5


def load(path: str) -> list[sp.csr_matrix]:
    """Training rows and indicators, test rows and indicators."""
    with np.load(path, allow_pickle=False) as file:
        parts = dict(file)
    return [
        sp.csr_matrix(
            tuple(parts[f"{name}_{key}"] for key in ("data", "indices", "indptr")),
            shape=tuple(parts[f"{name}_shape"]),
        )
        for name in ("train_X", "train_Y", "test_X", "test_Y")
    ]


def ours(X, Y, X_test):
    from structsolve import ExtremeSVM

    begun = time.process_time()
    model = ExtremeSVM().fit(X, Y)
    fitted = time.process_time()
    best = model.predict_topk(X_test, TOP)[0]
    return best, fitted - begun, time.process_time() - fitted


def row_per_label(X, Y, X_test):
    from structsolve import ExtremeSVM

    rows = np.repeat(np.arange(X.shape[0]), np.diff(Y.indptr))
    begun = time.process_time()
    model = ExtremeSVM().fit(X[rows], Y.indices)
    fitted = time.process_time()
    best = model.predict_topk(X_test, TOP)[0]
    return best, fitted - begun, time.process_time() - fitted


def pecos(X, Y, X_test):
    from extreme_peers import best
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    begun = time.process_time()
    tree = Indexer.gen(LabelEmbeddingFactory.create(Y, X, method="pifa"), threads=1)
    model = XLinearModel.train(X, Y, C=tree, threads=1)
    fitted = time.process_time()
    told = model.predict(X_test, only_topk=TOP, beam_size=10, threads=1).tocsr()
    return best(told), fitted - begun, time.process_time() - fitted


def omikuji(X, Y, X_test):
    import omikuji
    from extreme_peers import words_of

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "train.txt")
        with open(path, "w") as out:
            out.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n")
            for i in range(X.shape[0]):
                own = Y.indices[Y.indptr[i] : Y.indptr[i + 1]]
                pairs = " ".join(f"{j}:{v:.6g}" for j, v in words_of(X, i))
                out.write(",".join(map(str, own)) + " " + pairs + "\n")
        begun = time.process_time()
        model = omikuji.Model.train_on_data(str(path), n_threads=1)
        fitted = time.process_time()
    ids = np.full((X_test.shape[0], TOP), -1)
    for i in range(X_test.shape[0]):
        told = [label for label, _ in model.predict(words_of(X_test, i), top_k=TOP)]
        ids[i, : len(told)] = told
    return ids, fitted - begun, time.process_time() - fitted


def measure(system: str, path: str, answer: str) -> None:
    """Fit and predict; write the best labels, and print both times."""
    X, Y, X_test, _ = load(path)
    run = {"structsolve": ours, "row per label": row_per_label, "pecos": pecos, "omikuji": omikuji}
    best, fit, predict = run[system](X, Y, X_test)
    np.save(answer, best)
    print(json.dumps([fit, predict]))


def compare(folder: Path, python: Path, name: str, rounds: int) -> None:
    from extreme import ONE_THREAD, os

    from structsolve.plugins.extreme.metrics import precision_at_k, propensity_precision_at_k

    path, answer = folder / f"labels-{name}.npz", folder / "best.npy"
    if not path.exists():
        script = str(HERE / "extreme_label_data.py")
        subprocess.run([sys.executable, script, name, str(path)], check=True, capture_output=True)
    X, Y, _, Y_test = load(str(path))
    print(
        f"\n### {name}\n\n{X.shape[0]} rows, {X.shape[1]} features, {Y.shape[1]} labels, "
        f"{Y.nnz / X.shape[0]:.2f} a row\n\n| system | P@1 | P@3 | P@5 | PSP@1 | PSP@5 | fit s | "
        "predict s |\n| --- | --- | --- | --- | --- | --- | --- | --- |"
    )
    spent: dict[str, list[list[float]]] = {system: [] for system in SYSTEMS}
    told = {}
    for k in range(rounds):
        for system in SYSTEMS if k == 0 else list(told):
            own = sys.executable if system in SYSTEMS[:2] else python
            call = [own, __file__, "--measure", system, str(path), str(answer)]
            done = subprocess.run(
                call, check=own != python, capture_output=True, text=True,
                env=os.environ | ONE_THREAD,
            )  # fmt: skip
            if done.returncode:  # a peer that did not install
                print(f"| {system} | {done.stderr.strip().splitlines()[-1]} | | | | | | |")
                continue
            spent[system].append(json.loads(done.stdout.strip().splitlines()[-1]))
            told[system] = np.load(answer)
    figures = {}
    for system in told:
        plain = [precision_at_k(Y_test, told[system], k) for k in (1, 3, 5)]
        rare = [propensity_precision_at_k(Y_test, told[system], k, y_train=Y) for k in (1, 5)]
        figures[system] = [*plain, *rare, *np.min(spent[system], axis=0)]
        words = " | ".join(f"{v:.4f}" for v in figures[system][:5])
        print(f"| {system} | {words} | {figures[system][5]:.2f} | {figures[system][6]:.2f} |")
    if "pecos" not in figures:
        return
    mine, theirs = figures["structsolve"], figures["pecos"]
    print(
        f"\n{name}: beside pecos P@1 {mine[0] - theirs[0]:+.4f}, P@5 {mine[2] - theirs[2]:+.4f}, "
        f"fit {mine[5] / theirs[5]:.2f}, prediction {mine[6] / theirs[6]:.3f} of its time"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", choices=SETS, default=SETS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        measure(*args.measure)
        return 0
    from common import machine
    from environments import peers_of, ready
    from extreme import FOLDER

    folder = args.folder or FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    python = ready("extreme")
    print(f"## Rows of several labels\n\n{machine()}\n\n{peers_of('extreme')}")
    for name in args.sets:
        compare(folder, python, name, args.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
