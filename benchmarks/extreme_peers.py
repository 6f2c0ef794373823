"""One peer on one set of very many classes, in its own process and one thread: a line of JSON.

    OMP_NUM_THREADS=1 PEERS/bin/python benchmarks/extreme_peers.py PEER set.npz

Runs in a separate environment, made by ``environments.py``, because libpecos needs an older NumPy.
Seconds are CPU seconds of this process and its children, without the time that omikuji, PD-Sparse
and Vowpal Wabbit take to read our arrays from a text file.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp

TOP = 5
#: Share of the training rows on which a system that stops by held-out rows stops; the paper's.
HELD_OUT = 0.04


def load(path: str) -> tuple[sp.csr_matrix, np.ndarray, sp.csr_matrix, np.ndarray]:
    """X, y, X_test, y_test of a set that ``extreme_data.py`` made."""
    with np.load(path) as arrays:
        X, X_test = (
            sp.csr_matrix(
                (arrays[f"{part}_data"], arrays[f"{part}_indices"], arrays[f"{part}_indptr"]),
                shape=(len(arrays[f"{part}_indptr"]) - 1, int(arrays["d"])),
            )
            for part in ("X", "Xt")
        )
        return X, arrays["y"], X_test, arrays["yt"]


def cpu() -> float:
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in spent)


def peak_mb() -> float:
    # ru_maxrss includes the memory of the parent process at the start.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1e3


def size_mb(folder: str) -> float:
    return sum(f.stat().st_size for f in Path(folder).rglob("*") if f.is_file()) / 1e6


def errors(ids: np.ndarray, y: np.ndarray, n_classes: int) -> dict[str, float]:
    """Top-1 and top-5 error, and 1 - macro-F1 over the classes of the test set."""
    right = np.bincount(y[ids[:, 0] == y], minlength=n_classes)
    true = np.bincount(y, minlength=n_classes)
    told = np.bincount(ids[:, 0][ids[:, 0] >= 0], minlength=n_classes)
    seen = true > 0
    f1 = 2 * right[seen] / np.maximum(true + told, 1)[seen]
    return {
        "error": float(np.mean(ids[:, 0] != y)),
        "error5": float(1 - (ids == y[:, None]).any(axis=1).mean()),
        "macro": float(1 - f1.mean()),
    }


def one_hot(y: np.ndarray, n_classes: int) -> sp.csr_matrix:
    ones = np.ones(len(y), np.float32)
    return sp.csr_matrix((ones, y, np.arange(len(y) + 1)), (len(y), n_classes))


def best(scores: sp.csr_matrix) -> np.ndarray:
    """Ids of the five largest of each row, best first; -1 where a row has fewer."""
    ids = np.full((scores.shape[0], TOP), -1)
    for i in range(scores.shape[0]):
        row = slice(scores.indptr[i], scores.indptr[i + 1])
        order = np.argsort(-scores.data[row], kind="stable")[:TOP]
        ids[i, : len(order)] = scores.indices[row][order]
    return ids


def words_of(X: sp.csr_matrix, i: int) -> list[tuple[int, float]]:
    row = slice(X.indptr[i], X.indptr[i + 1])
    return list(zip(X.indices[row].tolist(), X.data[row].tolist()))


def held_out(n: int, share: float) -> np.ndarray:
    """Which of n rows are held out."""
    held = np.zeros(n, bool)
    held[np.random.default_rng(0).permutation(n)[: int(share * n)]] = True
    return held


class Peer:
    """Fits and saves into a folder, with a setting such as C if one is given.

    ``spared`` is the uncounted time for files, ``child`` the peak memory in MB of programs that it
    runs, ``stop`` why training ended.
    """

    spared = child = 0.0
    stop = ""

    def __init__(self, folder: str, setting: float | None = None):
        self.folder, self.setting = folder, setting

    def file(self, name: str, X: sp.csr_matrix, line: Callable[[int, str], str], form: str) -> str:
        """Write rows as text, without counting the time."""
        begun, path = cpu(), f"{self.folder}/{name}"
        with open(path, "w") as out:
            for i in range(X.shape[0]):
                pairs = " ".join(form.format(j, v) for j, v in words_of(X, i))
                out.write(line(i, pairs) + "\n")
        self.spared += cpu() - begun
        return path


class ClassMeans(Peer):
    """Class means of length one, the baseline."""

    def fit(self, X, y, n_classes):
        means = one_hot(y, n_classes).T.tocsr() @ X
        norms = np.sqrt(np.asarray(means.multiply(means).sum(axis=1)).ravel())
        means = sp.diags(1 / np.where(norms > 0, norms, 1)).astype(np.float32) @ means
        self.weights = means.T.tocsr()
        sp.save_npz(f"{self.folder}/weights.npz", self.weights, compressed=False)

    def predict(self, X):
        parts = [X[i : i + 500] @ self.weights for i in range(0, X.shape[0], 500)]
        return np.vstack([best(part.tocsr()) for part in parts])


class Pecos(Peer):
    def fit(self, X, y, n_classes):
        from pecos.xmc import Indexer, LabelEmbeddingFactory
        from pecos.xmc.xlinear.model import XLinearModel

        Y = one_hot(y, n_classes)
        tree = Indexer.gen(LabelEmbeddingFactory.create(Y, X, method="pifa"), threads=1)
        self.model = XLinearModel.train(X, Y, C=tree, threads=1)
        self.model.save(self.folder)

    def predict(self, X):
        return best(self.model.predict(X, only_topk=TOP, beam_size=10, threads=1).tocsr())


class Napkin(Peer):
    """Probabilistic label trees of napkinXC."""

    def fit(self, X, y, n_classes):
        from napkinxc.models import PLT

        self.model = PLT(self.folder, threads=1, verbose=False)
        self.model.fit(X, y.tolist())
        self.model.load()

    def predict(self, X):
        told = self.model.predict(X, top_k=TOP)
        return np.array([[*row, *[-1] * (TOP - len(row))] for row in told])


class Omikuji(Peer):
    trees = 3

    def fit(self, X, y, n_classes):
        import omikuji

        path = self.file("train.txt", X, lambda i, pairs: f"{y[i]} {pairs}", "{}:{:.5g}")
        begun = cpu()
        text = Path(path).read_text()
        Path(path).write_text(f"{X.shape[0]} {X.shape[1]} {n_classes}\n{text}")
        self.spared += cpu() - begun
        settings = omikuji.Model.default_hyper_param()
        settings.n_trees = self.trees
        self.model = omikuji.Model.train_on_data(path, settings, n_threads=1)
        os.unlink(path)
        self.model.save(f"{self.folder}/model")

    def predict(self, X):
        ids = np.full((X.shape[0], TOP), -1)
        for i in range(X.shape[0]):
            for k, (c, _) in enumerate(self.model.predict(words_of(X, i), top_k=TOP)):
                ids[i, k] = c
        return ids


class OmikujiTree(Omikuji):
    trees = 1


class RecallTree(Peer):
    """Vowpal Wabbit's RecallTree, with labels from one; it predicts a single class."""

    def fit(self, X, y, n_classes):
        from vowpalwabbit import Workspace

        path = self.file("train.txt", X, lambda i, pairs: f"{y[i] + 1} | {pairs}", "{}:{:.5g}")
        given = f"--recall_tree {n_classes} -b 28 --loss_function hinge --passes 5 -k"
        Workspace(
            f"{given} -d {path} --cache_file {path}.cache -f {self.folder}/model --quiet"
        ).finish()
        for leftover in (path, f"{path}.cache"):
            Path(leftover).unlink(missing_ok=True)

    def predict(self, X):
        from vowpalwabbit import Workspace

        path = self.file("test.txt", X, lambda i, pairs: f"1 | {pairs}", "{}:{:.5g}")
        told = f"{self.folder}/told"
        Workspace(f"-i {self.folder}/model -t -d {path} -p {told} --quiet").finish()
        first = [int(float(line.split()[0])) - 1 for line in Path(told).read_text().splitlines()]
        return np.column_stack([first, np.full((len(first), TOP - 1), -1)])


class LinearSVC(Peer):
    """One-vs-rest of scikit-learn's liblinear, C = 10 by default."""

    def fit(self, X, y, n_classes):
        from sklearn.svm import LinearSVC

        self.model = LinearSVC(C=self.setting or 10.0).fit(X, y)
        np.save(f"{self.folder}/weights.npy", self.model.coef_.astype(np.float32))

    def predict(self, X):
        scores = self.model.decision_function(X)
        ids = np.argpartition(-scores, TOP, axis=1)[:, :TOP]
        order = np.argsort(-np.take_along_axis(scores, ids, 1), axis=1)
        return self.model.classes_[np.take_along_axis(ids, order, 1)]


class PecosRest(Peer):
    """One-vs-rest of pecos' liblinear, which drops weights below .1 as DiSMEC does below .01."""

    def fit(self, X, y, n_classes):
        from pecos.xmc.xlinear.model import XLinearModel

        C = self.setting or 1.0
        self.model = XLinearModel.train(X, one_hot(y, n_classes), Cp=C, Cn=C, threads=1)
        self.model.save(self.folder)

    def predict(self, X):
        return best(self.model.predict(X, only_topk=TOP, threads=1).tocsr())


class PDSparse(Peer):
    """The program of PD-Sparse's authors, with their settings for LSHTC1 and the lambda given."""

    program = Path(__file__).resolve().parent.parent / "build" / "extreme" / "PDSparse"

    def run(self, name: str, *arguments: str) -> tuple[str, float]:
        begun = cpu()
        call = [str(self.program / name), *arguments]
        done = subprocess.run(call, check=True, capture_output=True, text=True)
        return done.stderr + done.stdout, cpu() - begun

    def fit(self, X, y, n_classes):
        held = held_out(len(y), HELD_OUT)
        files = [
            self.file(name, X[part], lambda i, pairs, y=y[part]: f"{y[i]} {pairs}", "{}:{:.5g}")
            for name, part in (("train.txt", ~held), ("held.txt", held))
        ]
        given = ("-l", str(self.setting or 0.01), "-q", "3", "-e", "3", "-h", files[1])
        told, spent = self.run("multiTrainHash", *given, files[0], f"{self.folder}/model")
        # The program's clock, of wall seconds, leaves out the reading of rows.
        seconds = re.search(r"overall_time=([\d.e+-]+)", told)
        self.spared += max(0.0, spent - float(seconds[1]))
        self.child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
        self.stop = f"held-out rows, {told.count('heldout Acc')} iterations"
        for leftover in (*files, f"{self.folder}/model"):
            Path(leftover).unlink(missing_ok=True)

    def predict(self, X):
        path = self.file("test.txt", X, lambda i, pairs: f"0 {pairs}", "{}:{:.5g}")
        out = f"{self.folder}/told"
        told, spent = self.run("multiPred", path, f"{self.folder}/model.p", "-p", str(TOP), out)
        seconds = re.search(r"pred time=([\d.e+-]+)", told)
        # Reading the model and the rows is not counted, as it is not for others.
        self.spared += max(0.0, spent - float(seconds[1]))
        lines = Path(out).read_text().splitlines()
        return np.array([[int(pair.split(":")[0]) for pair in line.split()] for line in lines])


PEERS: dict[str, type[Peer]] = {
    "class means": ClassMeans,
    "pecos": Pecos,
    "omikuji": OmikujiTree,
    "omikuji, 3 trees": Omikuji,
    "napkinXC": Napkin,
    "RecallTree": RecallTree,
    "LinearSVC": LinearSVC,
    "pecos, one-vs-rest": PecosRest,
    "PD-Sparse": PDSparse,
}


def measure(make: Callable[[str], Peer], path: str, most: int) -> dict[str, float]:
    """Fit, save and predict; return the measurements by name."""
    X, y, X_test, y_test = load(path)
    X_test, y_test = X_test[:most], y_test[:most]
    n_classes = int(max(y.max(), y_test.max())) + 1
    with tempfile.TemporaryDirectory() as folder:
        peer, before = make(folder), peak_mb()
        begun = cpu()
        peer.fit(X, y, n_classes)
        fit, peer.spared = cpu() - begun - peer.spared, 0.0
        peak, size = max(peak_mb(), peer.child), size_mb(folder)
        begun = cpu()
        ids = np.asarray(peer.predict(X_test))
        predict = cpu() - begun - peer.spared
    return {
        **errors(ids, y_test, n_classes),
        "fit": fit,
        "ms": 1e3 * predict / len(y_test),
        "mb": size,
        "peak": peak,
        "data": before,
        "rows": len(y_test),
        "stop": peer.stop,
    }


def sampled(path: str, C: float, groups: int = 3, size: int = 20) -> dict[str, object]:
    """Seconds of liblinear's machines of all classes, from some random ones against the rest."""
    from sklearn.svm import LinearSVC

    X, y, _, _ = load(path)
    X.indptr = X.indptr.astype(np.int32)
    classes = np.unique(y)
    some = np.random.default_rng(0).permutation(classes)[: groups * size]
    seconds = []
    for group in np.split(some, groups):
        begun = cpu()
        # The others are one more class, so that one call trains a machine more than asked.
        LinearSVC(C=C).fit(X, np.where(np.isin(y, group), y, -1))
        seconds.append((cpu() - begun) * len(classes) / (size + 1))
    told = {"error": None, "fit": float(np.mean(seconds))}
    spread = float(np.std(seconds, ddof=1) / np.sqrt(groups))
    return {**told, "spread": spread, "stop": f"{groups * size} classes; standard error"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peer", choices=[*PEERS, "liblinear, sampled"])
    parser.add_argument("data")
    parser.add_argument("--setting", type=float)
    parser.add_argument("--most", type=int, default=20_000, help="rows of the test set")
    args = parser.parse_args()
    if args.peer not in PEERS:
        print(json.dumps(sampled(args.data, args.setting or 10.0)))
        return 0
    make = PEERS[args.peer]
    print(json.dumps(measure(lambda into: make(into, args.setting), args.data, args.most)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
