"""The default alpha beside the best alpha of a grid, and beside a peer's default.

    STRUCTSOLVE_DATA=../shared/data python benchmarks/defaults.py --sets mc-wine ml-yeast

All sets that a model learns from, at most `--rows` training examples each.  Small and quick sets
are split several times and scores are means over the splits.  "tuned" is the alpha of a grid of six
powers of ten that three folds of the training rows score best (the mean of the test scores where
several are equal); "best" is the one with the best mean *on the test rows*, which nobody can
see.  The standard error is that of the tuned mean over the splits; of one split, by 100 draws
of the test examples.  A default misses where it lies further behind than 5 % of the score, or one
standard error where that is more.
"""

from __future__ import annotations

import argparse
import gzip
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import Clock, header, of_grid, table
from datasets import (
    attribute_matrices,
    chunking_attributes,
    conll2000,
    data_path,
    hierarchical,
    multilabel,
    ocr_split,
)

GRID = tuple(10.0**-k for k in range(6))
# Number of splits by the prefix of a set's name; other sets have one.
SPLITS = {"mc-": 5, "ord-": 5, "rank-": 5, "match-": 5}
CLASSES = ("iris", "wine", "vehicle", "segment", "mfeat", "satimage", "letter")
ORDERED = ("abalone", "auto", "machine", "stocks", "winequality-red", "wisconsin")
RANKED = ("bodyfat", "glass", "iris", "stock", "vehicle", "vowel", "wine", "wisconsin")
LABEL_SETS = ("emotions", "scene", "yeast", "bibtex", "rcv1-subset1")
HIERARCHIES = ("enron", "imclef07a", "spo-fun", "eisen-go")
OLD = {"svm": 1e-3, "risk": 1e-2}


@dataclass
class Task:
    """A set, cut into training and test examples, and its score; larger is better."""

    name: str
    structure: Any
    train: tuple[Any, Any]
    test: tuple[Any, Any]
    score: Callable[[Any, Any], float]
    peer: Callable[[Any, Any, Any], Any] | None = None
    risk: bool = True
    settings: dict[str, Any] = field(default_factory=dict)


def share(truth: Any, predicted: Any) -> float:
    """Share of right labels, of all nodes."""
    pairs = list(zip(truth, predicted, strict=True))
    right = sum(np.sum(np.asarray(a) == np.asarray(b)) for a, b in pairs)
    return float(right) / sum(np.size(a) for a, _ in pairs)


def closeness(truth: Any, predicted: Any) -> float:
    """Minus the mean distance of ordered classes."""
    return -float(np.mean(np.abs(np.asarray(truth) - np.asarray(predicted))))


def micro_f1(truth: Any, predicted: Any) -> float:
    both, either = np.sum(truth * predicted), np.sum(truth) + np.sum(predicted)
    return float(2 * both / max(either, 1))


def linear_svm(X: Any, y: Any, new: Any) -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC().fit(X, y).predict(new)


def one_per_label(X: Any, Y: Any, new: Any) -> Any:
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    return OneVsRestClassifier(LinearSVC()).fit(X, Y).predict(new)


def thresholds(X: Any, y: Any, new: Any) -> Any:
    import mord

    return mord.LogisticAT().fit(X, y).predict(new)


def ranks_by_ridge(X: Any, Y: Any, new: Any) -> Any:
    from rankings import RidgeRanks

    return RidgeRanks(1.0).fit(X, Y).predict(new)


def crfsuite(X: Any, Y: Any, new: Any) -> Any:
    from pycrfsuite import Tagger, Trainer

    def items(x: Any) -> Any:
        x = sp.csr_matrix(x)
        rows = (slice(a, b) for a, b in zip(x.indptr[:-1], x.indptr[1:]))
        return [dict(zip(map(str, x.indices[r]), x.data[r].tolist())) | {"1": 1.0} for r in rows]

    trainer, tagger, kind = Trainer(verbose=False), Tagger(), type(Y[0][0])
    for x, y in zip(X, Y):
        trainer.append(items(x), [str(label) for label in y])
    with tempfile.TemporaryDirectory() as folder:
        trainer.train(f"{folder}/model.crfsuite")
        tagger.open(f"{folder}/model.crfsuite")
        return [[kind(label) for label in tagger.tag(items(x))] for x in new]


def pixels(X: Any, Y: Any, new: Any) -> Any:
    rows = np.concatenate([x.reshape(-1, x.shape[2]) for x in X])
    flat = linear_svm(
        rows,
        np.concatenate([y.ravel() for y in Y]),
        np.concatenate([x.reshape(-1, x.shape[2]) for x in new]),
    )
    ends = np.cumsum([x.shape[0] * x.shape[1] for x in new])[:-1]
    return [a.reshape(x.shape[:2]) for a, x in zip(np.split(flat, ends), new)]


def equal_weights(X: Any, Y: Any, new: Any) -> Any:
    from structsolve.plugins.permutation import assign

    return [assign(x.sum(axis=2)).columns for x in new]


def scaled(X: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = np.nanmean(X, axis=0)
    X, new = np.where(np.isnan(X), mean, X), np.where(np.isnan(new), mean, new)
    spread = X.std(axis=0)
    spread[spread == 0] = 1
    return (X - mean) / spread, (new - mean) / spread


def parted(X: Any, y: Any, rows: int, split: int, share_of: float = 0.7) -> tuple[Any, Any]:
    """Random training and test rows, standardised by the training rows."""
    order = np.random.default_rng(split).permutation(len(X))
    n = min(int(share_of * len(X)), rows)
    test = order[int(share_of * len(X)) :][:2000]
    A, B = scaled(X[order[:n]], X[test])
    return (A, y[order[:n]]), (B, y[test])


def flat(name: str, rows: int, split: int) -> tuple[Any, Any]:
    if name in ("digits", "cancer"):
        from sklearn import datasets

        load = datasets.load_digits if name == "digits" else datasets.load_breast_cancer
        return parted(*load(return_X_y=True), rows, split)
    with np.load(data_path(f"mc-{name}", "data.npz")) as data:
        keys = ("X", "y") if "X" in data.files else ("X_train", "y_train")
        X, y = data[keys[0]].astype(float), data[keys[1]].astype(int)
    return parted(X, y, rows, split)


def taken(values: Any, rows: np.ndarray) -> Any:
    return [values[i] for i in rows] if isinstance(values, list) else values[rows]


def some(X: Any, y: Any, n: int, split: int = 0) -> tuple[Any, Any]:
    """At most n random examples, since files may be sorted."""
    size = X.shape[0] if hasattr(X, "shape") else len(X)
    order = np.random.default_rng(split).permutation(size)[:n]
    return taken(X, order), taken(y, order)


def proteins(n: int) -> tuple[Any, Any]:
    """Amino acids in a window of 15; training and test proteins."""
    folder = Path(data_path("seq-protein-ss"))

    def records(name: str) -> Iterator[tuple[str, str]]:
        with gzip.open(folder / name, "rt") as file:
            for block in file.read().split(">")[1:]:
                head, *lines = block.split("\n")
                yield head, "".join(lines)

    acids = {head.split()[0]: text for head, text in records("sequences.fasta.gz")}
    parts: dict[bool, Any] = {True: ([], []), False: ([], [])}
    code = np.full(128, 23)
    code[[ord(letter) for letter in "ACDEFGHIKLMNOPQRSTUVWXY"]] = np.arange(23)
    for head, labels in records("sampled.fasta.gz"):
        if "VALIDATION=True" in head:
            continue
        text = acids[head.split()[0]]
        padded = np.full(len(text) + 14, 23)
        padded[7:-7] = code[[ord(letter) for letter in text]]
        columns = np.stack([padded[k : k + len(text)] + 24 * k for k in range(15)], axis=1)
        ends = np.arange(len(text) + 1) * 15
        x = sp.csr_matrix((np.ones(columns.size), columns.ravel(), ends), (len(text), 360))
        X, Y = parts["SET=train" in head]
        X.append(x)
        Y.append(np.array(list(labels)))
    return some(*parts[True], n), some(*parts[False], 150)


def tasks(rows: int, split: int = 0) -> Iterator[tuple[str, Callable[[], Task]]]:
    """Names of sets, and functions that load a split."""
    from rankings import kendall

    from structsolve.plugins.dag import DagStructure

    def classes(name: str) -> Task:
        return Task(f"mc-{name}", "multiclass", *flat(name, rows, split), share, linear_svm)

    for name in (*CLASSES, "digits", "cancer"):
        yield f"mc-{name}", lambda name=name: classes(name)

    def ordered(name: str) -> Task:
        with np.load(data_path(f"ord-{name}", "data.npz")) as data:
            train, test = parted(data["X"].astype(float), data["y"].astype(int), rows, split)
        # Drop classes that the training rows lack.
        classes = np.unique(train[1])
        known = np.isin(test[1], classes)
        train = train[0], np.searchsorted(classes, train[1])
        test = test[0][known], np.searchsorted(classes, test[1][known])
        return Task(f"ord-{name}", "ordinal", train, test, closeness, thresholds)

    for name in ORDERED:
        yield f"ord-{name}", lambda name=name: ordered(name)

    def ranked(name: str) -> Task:
        with np.load(data_path(f"rank-{name}", "data.npz")) as data:
            X, Y = data["X"].astype(float), data["rank"].astype(int)
        parts = parted(X, Y - Y.min(), rows, split, 0.6)
        return Task(f"rank-{name}", "permutation", *parts, kendall, ranks_by_ridge)

    for name in RANKED:
        yield f"rank-{name}", lambda name=name: ranked(name)

    def label_sets(name: str, kind: str = "") -> Task:
        X, Y, new, truth = multilabel(name)
        train, test = some(X, Y, rows), some(new, truth, 1000)
        told, settings = f"ml-{name}", {}
        if kind:
            told, settings = f"{told}, {kind}", {"surrogate": kind}
        return Task(told, "multilabel", train, test, micro_f1, one_per_label, not kind, settings)

    for name in LABEL_SETS:
        yield f"ml-{name}", lambda name=name: label_sets(name)
    yield "ml-yeast-micro-f1", lambda: label_sets("yeast", "micro-f1")

    def hierarchy(name: str) -> Task:
        data = hierarchical(name)
        # Thousands of labels: fewer rows will do.
        train = some(data.X, data.Y.toarray(), rows if data.Y.shape[1] < 1000 else rows // 4)
        test = some(data.X_test, data.Y_test.toarray(), 1000)
        structure = DagStructure(data.children())
        return Task(f"hmc-{name}", structure, train, test, micro_f1, one_per_label)

    for name in HIERARCHIES:
        yield f"hmc-{name}", lambda name=name: hierarchy(name)

    def letters() -> Task:
        a, b = ocr_split(0, "one")
        train, test = (some(list(part.x_list("csr")), part.y_list(), rows) for part in (a, b))
        return Task("seq-ocr", "chain", train, test, share, crfsuite, False)

    def chunks() -> Task:
        (a, y), (b, t) = conll2000("train"), conll2000("test")
        (a, y), (b, t) = some(a, y, rows), some(b, t, 500)
        items, new = ([chunking_attributes(s) for s in part] for part in (a, b))
        X, X_new, _ = attribute_matrices(items, new)
        return Task("seq-conll2000", "chain", (X, y), (X_new, t), share, crfsuite, False)

    def protein() -> Task:
        return Task("seq-protein-ss", "chain", *proteins(rows // 16), share, crfsuite, False)

    def trees(**settings: Any) -> Task:
        from dependency import read

        from structsolve.plugins.dependency import ArcFeaturizer, DependencyStructure

        folder = Path(os.environ["STRUCTSOLVE_DATA"])
        parts = []
        for part, n in (("train", rows // 2), ("dev", 300)):
            sentences, heads = read(folder, part)
            short = [i for i in range(len(sentences)) if len(sentences[i]) <= 40]
            parts.append(some([sentences[i] for i in short], [heads[i] for i in short], n))
        made = ArcFeaturizer(n_bits=20).fit(parts[0][0])
        train, test = ((made.transform(s), heads) for s, heads in parts)
        told = ", ".join(["dep-ud-english-ewt", *settings.values()])
        structure = DependencyStructure(False, True)
        return Task(told, structure, train, test, share, None, False, settings)

    def snakes() -> Task:
        from snakes import pictures

        from structsolve.plugins.grid import GridStructure

        train, test = some(*pictures("train"), rows // 10), some(*pictures("test"), 40)
        structure = GridStructure(by_direction=True, directed=True)
        return Task("mrf-snakes", structure, train, test, share, pixels, False)

    yield "seq-ocr", letters
    yield "seq-conll2000", chunks
    yield "seq-protein-ss", protein
    yield "dep-ud-english-ewt", trees
    yield "dep-probloss", lambda: trees(surrogate="probloss", solver="sgd")
    yield "mrf-snakes", snakes

    def matching(name: str, value: int) -> Task:
        import matching as own

        made = getattr(own, name)(Path(os.environ["STRUCTSOLVE_DATA"]), value)
        X, Y = some(*made, rows, split)
        n = 2 * len(X) // 3
        both = (X[:n], Y[:n]), (X[n:], Y[n:])
        return Task(f"match-{name}-{value}", "permutation", *both, share, equal_weights, False)

    for name, value in (("house", 60), ("house", 90), ("cars", 0), ("cars", 10)):
        yield f"match-{name}-{value}", lambda name=name, value=value: matching(name, value)


def standard_error(score: Any, truth: Any, predicted: Any) -> float:
    rng, n = np.random.default_rng(0), len(truth)
    picks = [rng.integers(n, size=n) for _ in range(100)]
    return float(np.std([score(taken(truth, p), taken(predicted, p)) for p in picks]))


@dataclass
class Split:
    """Results of one split: scores of the default, the grid and the peer."""

    rows: int
    alpha: float
    default: float
    grid: list[float]
    tuned: float
    peer: float | None
    error: float
    cpu: float


def chosen(task: Task, make: Callable[[], Any]) -> np.ndarray:
    """Places in the grid of the alphas that three folds of the training rows score best."""
    X, Y = task.train
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    order, means = np.random.default_rng(0).permutation(n), np.zeros(len(GRID))
    for k in range(3):
        held = np.sort(order[k::3])
        rest = np.sort(np.concatenate([order[j::3] for j in range(3) if j != k]))
        truth = taken(Y, held)
        for j, model in enumerate(make().path(taken(X, rest), taken(Y, rest), GRID)):
            means[j] += task.score(truth, model.predict(taken(X, held))) / 3
    return np.flatnonzero(means >= means.max() - 1e-12)


def split_of(task: Task, kind: str, errors: bool) -> Split:
    """Train and score: "svm", or "risk" for ConditionalRiskMinimizer."""
    from structsolve import ConditionalRiskMinimizer, StructuredSVM
    from structsolve.plugins.ordinal import OrdinalStructure

    (X, Y), (new, truth) = task.train, task.test
    settings: dict[str, Any] = {"loss": "absolute"} if task.structure == "ordinal" else {}
    kind_of: Any = ConditionalRiskMinimizer
    if kind == "svm":
        kind_of, settings = StructuredSVM, {**settings, **task.settings, "tol": 0.01}
    with Clock() as clock:
        model = kind_of(task.structure, **settings).fit(X, Y)
    default = task.score(truth, model.predict(new))
    if kind == "svm":
        settings["max_iter"] = 30
    fitted = kind_of(task.structure, **settings).path(X, Y, GRID)
    predictions = [one.predict(new) for one in fitted]
    scores = [task.score(truth, predicted) for predicted in predictions]
    structure = task.structure
    if structure == "ordinal":  # folds may lack classes
        structure = OrdinalStructure(classes=np.unique(Y).tolist())
    best = chosen(task, lambda: kind_of(structure, **settings))
    tuned = float(np.mean([scores[j] for j in best]))
    error = standard_error(task.score, truth, predictions[best[0]]) if errors else 0.0
    peer: float | None = None
    if kind == "svm" and task.peer is not None:
        try:
            peer = task.score(truth, task.peer(X, Y, new))
        except ImportError:
            peer = None
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    return Split(n, model.alpha_, default, scores, tuned, peer, error, clock.cpu)


def line_of(name: str, splits: list[Split], kind: str) -> list[Any]:
    """A line of the table: means over the splits."""
    grid = np.array([one.grid for one in splits])
    means = grid.mean(axis=0)
    best, n = int(np.argmax(means)), len(splits)
    each = np.array([one.tuned for one in splits])
    tuned, score = float(each.mean()), float(np.mean([one.default for one in splits]))
    spread = each.std(ddof=1) / np.sqrt(n) if n > 1 else splits[0].error
    peers = [one.peer for one in splits if one.peer is not None]
    peer = float(np.mean(peers)) if peers else None
    missed = [
        kind
        for kind, other in (("tuned", tuned), ("peer", peer))
        if other is not None and other - score > max(0.05 * abs(other), spread)
    ]
    alpha = float(np.exp(np.mean(np.log([one.alpha for one in splits]))))
    old = float(means[GRID.index(OLD[kind])])
    cells = [name, splits[0].rows, n, f"{alpha:.2g}", score, tuned, float(spread)]
    cells += [of_grid(GRID[best], GRID), float(means[best]), old, peer, " and ".join(missed)]
    cells += [f"{np.mean([one.cpu for one in splits]):.2f}"]
    return [f"{x:.4f}" if isinstance(x, float) else "-" if x is None else x for x in cells]


def reasons(rows: int) -> None:
    """What would refute the reasons given for rows that miss: scores under other settings."""
    from structsolve import StructuredSVM
    from structsolve.plugins.ordinal import OrdinalStructure
    from structsolve.plugins.permutation import PermutationStructure

    def score(name: str, k: int, structure: Any = None, **settings: Any) -> float:
        task = dict(tasks(rows, k))[name]()
        (X, Y), (new, truth) = task.train, task.test
        settings = {**task.settings, **settings}
        model = StructuredSVM(structure or task.structure, tol=0.01, **settings).fit(X, Y)
        return task.score(truth, model.predict(new))

    def told(name: str, n: int, what: str, structure: Any = None, **settings: Any) -> None:
        scores = [score(name, k, structure, **settings) for k in range(n)]
        print(f"- {name}, {what}: {np.mean(scores):.4f}", flush=True)

    names = ("ord-auto", "ord-machine", "ord-stocks", "ord-wisconsin", "ord-winequality-red")
    for name in names:
        told(name, 5, "thresholds", OrdinalStructure(thresholds=True), loss="absolute")
    behind = []
    for k in range(20):
        task = dict(tasks(rows, k))["ord-wisconsin"]()
        theirs = task.score(task.test[1], thresholds(*task.train, task.test[0]))
        behind.append(theirs - score("ord-wisconsin", k, loss="absolute"))
    spread = np.std(behind, ddof=1) / np.sqrt(len(behind))
    print(f"- ord-wisconsin, 20 splits: {np.mean(behind):.4f} behind the peer, s.e. {spread:.4f}")
    for weights in ("matrix", "scores"):
        structure = PermutationStructure(weights=weights)
        told("rank-wisconsin", 5, f"weights={weights!r}", structure)
    told("ml-yeast-micro-f1", 1, "14 times the rule's alpha", alpha=14 * 0.0029)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", nargs="*", default=[""], help="those whose names begin so")
    parser.add_argument("--rows", type=int, default=400, help="training examples at most")
    parser.add_argument("--kinds", nargs="*", choices=["svm", "risk"], default=["svm", "risk"])
    parser.add_argument("--reasons", action="store_true", help="what was tried where rows miss")
    args = parser.parse_args()
    header("Defaults")
    warnings.simplefilter("ignore")
    if args.reasons:
        reasons(args.rows)
        return
    columns = ["set", "rows", "splits", "alpha", "default", "tuned", "s.e.", "best alpha", "best"]
    columns += ["old default", "peer's default", "behind by more than 5 % and 1 s.e.", "CPU s"]
    with Clock() as clock:
        for kind in args.kinds:
            title = {"svm": "StructuredSVM", "risk": "ConditionalRiskMinimizer"}[kind]
            print(f"### {title}\n\n{table(columns, [])}", end="", flush=True)
            for name, _ in tasks(args.rows):
                if not any(name.startswith(some_set) for some_set in args.sets):
                    continue
                n = next((k for start, k in SPLITS.items() if name.startswith(start)), 1)
                splits: list[Split] = []
                for k in range(n):
                    task = dict(tasks(args.rows, k))[name]()
                    if kind == "svm" or task.risk:
                        splits.append(split_of(task, kind, n == 1))
                if splits:
                    line = line_of(task.name, splits, kind)
                    print(table(columns, [line]).splitlines()[2], flush=True)
            print()
    print(f"{clock}; load at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
