"""The alpha that cross-validation chooses, beside the best of a dense grid on the test rows.

    STRUCTSOLVE_DATA=../shared/data python benchmarks/chosen_alpha.py --sets digits wine iris

StructuredSVMCV and HierarchicalSVMCV with their defaults choose alpha by five folds of the training
rows.  The grid trains the plain estimator on the same rows at three values per power of ten, over
six powers from the start of the path, each from the previous solution, and takes the best alpha by
the test rows themselves.  The standard error is that of the best score, by the jackknife over
twenty blocks of test examples.  For small sets and label sets, scores and errors are means over
five splits, which share the best alpha of the grid.  Features are scaled; large sets are cut.  Rows
that end in "shell" have the alpha of ``structsolve fit --alphas path`` on the same rows in a file.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import os
import tempfile
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import Clock, header, of_grid, table
from datasets import (
    chunk_matrices,
    data_path,
    hierarchical,
    multilabel,
    ocr_split,
)
from hierarchical_svm import split

#: Structure, scoring, X, y, X_test, y_test.
Task = tuple[Any, str | None, Any, Any, Any, Any]
BLOCKS, SPLITS = 20, 5
A_DECADE, DECADES = 3, 6


def scaled(X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standard scores by the training rows."""
    mean, spread = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    spread[~(spread > 1e-9)] = 1
    return np.nan_to_num((X - mean) / spread), np.nan_to_num((X_test - mean) / spread)


def cut(X: Any, y: Any, seed: int, share: float = 0.7) -> tuple[Any, Any, Any, Any]:
    """Random rows to train on, the rest to test; features scaled."""
    order = np.random.default_rng(seed).permutation(len(X))
    n = int(share * len(X))
    train, test = order[:n], order[n:]
    X, X_test = scaled(np.asarray(X, float)[train], np.asarray(X, float)[test])
    return X, y[train], X_test, y[test]


def classes(name: str, seed: int) -> Task:
    """A set of scikit-learn, one label a row."""
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return "multiclass", None, *cut(X, y, seed)


def arrays(name: str) -> Any:
    with np.load(data_path(name, "data.npz"), allow_pickle=False) as data:
        return dict(data)


def mfeat() -> Task:
    data = arrays("mc-mfeat")
    return "multiclass", None, *cut(data["X"], data["y"], 0)


def satimage() -> Task:
    """Rows sorted as in the file: folds of neighbouring rows lack classes."""
    data = arrays("mc-satimage")
    X, X_test = scaled(data["X_train"][::2].astype(float), data["X_test"].astype(float))
    return "multiclass", None, X, data["y_train"][::2], X_test, data["y_test"]


def label_sets(name: str, seed: int, most: int | None = None, scoring: str | None = None) -> Task:
    """600 random training rows and 1000 others, from the whole set, as some files are sorted."""
    from structsolve import get_structure

    X, y, X_test, y_test = multilabel(name, most)
    X, y = sp.vstack([X, X_test]).tocsr(), np.vstack([y, y_test])
    rows = np.random.default_rng(seed).permutation(X.shape[0])
    train, test = np.sort(rows[:600]), np.sort(rows[600:1600])
    structure = get_structure("multilabel", edges="none")
    return structure, scoring, X[train], y[train], X[test], y[test]


def letters() -> Task:
    from structsolve import Sequences

    made = []
    for words in ocr_split(0, "one"):
        words = words.take(np.arange(words.n_words) < 400)
        made += [
            Sequences(words.pixels.astype(float), np.diff(words.offsets)),
            np.split(words.labels, words.offsets[1:-1]),
        ]
    return "chain", None, *made


def chunking() -> Task:
    return "chain", "span-f1", *chunk_matrices(100, 100)


def protein(most: int = 12) -> Task:
    """Three states by the amino acids up to six places away."""
    parts: dict[bool, tuple[list[Any], list[Any]]] = {False: ([], []), True: ([], [])}

    def read(file: str) -> Any:
        with gzip.open(data_path("seq-protein-ss", f"{file}.fasta.gz"), "rt") as lines:
            return [block.split("\n", 1) for block in lines.read().split(">")[1:]]

    alphabet = "ACDEFGHIKLMNPQRSTVWYX"
    for (name, letters), (told, states) in zip(read("sequences"), read("sampled")):
        assert name.split()[0] == told.split()[0]
        X, y = parts["SET=test" in told]
        letters, states = letters.replace("\n", ""), states.replace("\n", "")
        if len(X) < most and len(letters) < 300:
            codes = np.array([max(0, alphabet.find(letter)) for letter in letters])
            around = np.arange(len(codes))[:, None] + np.arange(-6, 7)
            inside = (around >= 0) & (around < len(codes))
            columns = codes[around.clip(0, len(codes) - 1)] + len(alphabet) * np.arange(13)
            rows = np.nonzero(inside)[0]
            shape = len(codes), len(alphabet) * 13
            X.append(sp.csr_matrix((np.ones(len(rows)), (rows, columns[inside])), shape))
            y.append(list(states))
    return "chain", None, *parts[False], *parts[True]


def leaves() -> Task:
    """imclef07a: one of 63 leaves of a tree."""
    data = hierarchical("imclef07a")
    rows = np.random.default_rng(0).permutation(len(data.X))[:800]
    parents = set(data.edges[:, 0].tolist())
    leaf = np.array([v for v in range(len(data.nodes)) if v not in parents])

    def named(Y: Any) -> Any:
        return data.nodes[leaf[Y.toarray()[:, leaf].argmax(axis=1)]]

    tree = [(p, c) for p, c in data.nodes[data.edges].tolist()]
    roots = [v for v in data.nodes.tolist() if v not in {c for _, c in tree}]
    tree = [("root", v) for v in roots] + tree
    return {"tree": tree}, None, data.X[rows], named(data.Y)[rows], data.X_test, named(data.Y_test)


def unbalanced() -> Task:
    """Ten leaves of a tree that random hyperplanes split off one after the other."""
    tree, fit, choose, test = split("unbalanced", 0, 100)
    X, y = (np.concatenate(parts) for parts in zip(fit, choose))
    return {"tree": tree}, None, X, y, *test


def rankings(name: str, seed: int) -> Task:
    data = arrays(f"rank-{name}")
    return "permutation", None, *cut(data["X"], data["rank"].astype(int), seed)


def ordinal(name: str, seed: int) -> Task:
    from structsolve import get_structure

    data = arrays(f"ord-{name}")
    # List all classes: training rows may lack one.
    structure = get_structure("ordinal", classes=np.unique(data["y"]).tolist())
    return structure, None, *cut(data["X"], data["y"], seed)


#: Loaders by name; each takes the seed of the split. Sets with a given split ignore it.
SETS: dict[str, Callable[[int], Task]] = {
    "digits": lambda seed: classes("digits", seed),
    "wine": lambda seed: classes("wine", seed),
    "breast cancer": lambda seed: classes("breast_cancer", seed),
    "iris": lambda seed: classes("iris", seed),
    "mfeat": lambda _: mfeat(),
    "satimage": lambda _: satimage(),
    "yeast": lambda seed: label_sets("yeast", seed),
    "scene": lambda seed: label_sets("scene", seed),
    "rcv1, 45 labels": lambda seed: label_sets("rcv1-subset1", seed, 45, "micro-f1"),
    "OCR": lambda _: letters(),
    "chunking": lambda _: chunking(),
    "protein": lambda _: protein(),
    "imclef07a": lambda _: leaves(),
    "unbalanced tree": lambda _: unbalanced(),
    "iris rankings": lambda seed: rankings("iris", seed),
    "wine rankings": lambda seed: rankings("wine", seed),
    "machine": lambda seed: ordinal("machine", seed),
    "stocks": lambda seed: ordinal("stocks", seed),
}
#: Sets with several splits: those of up to a few hundred rows, and label sets.
SPLIT = {"wine", "breast cancer", "iris", "iris rankings", "wine rankings", "machine"}
SPLIT |= {"yeast", "scene"}
#: Sets that the shell runs, too.
SHELL = ("digits", "satimage", "stocks", "imclef07a")
SETS |= {f"{name}, shell": SETS[name] for name in SHELL}


def score_of(model: Any, scoring: str | None, X: Any, y: Any) -> float:
    return float(model.score(X, y) if scoring is None else model.score(X, y, metric=scoring))


def rows_of(values: Any, keep: np.ndarray) -> Any:
    return [values[i] for i in keep] if isinstance(values, list) else values[keep]


def error_of(model: Any, scoring: str | None, X: Any, y: Any) -> float:
    """Standard error of the score: the jackknife over blocks of test examples."""
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    order = np.random.default_rng(0).permutation(n)
    places = np.linspace(0, n, min(n, BLOCKS) + 1).astype(int)
    kept = [np.sort(np.delete(order, np.s_[b:e])) for b, e in zip(places, places[1:])]
    left = [score_of(model, scoring, rows_of(X, keep), rows_of(y, keep)) for keep in kept]
    return float(np.sqrt((len(left) - 1) * np.var(left)))


def by_shell(structure: Any, X: Any, y: Any) -> Any:
    """The model that ``structsolve fit --alphas path`` writes, with the alphas that it prints."""
    import structsolve
    from structsolve.cli.main import main as shell
    from structsolve.io.npz import write_npz

    with tempfile.TemporaryDirectory() as folder:
        data, model, tree = (os.path.join(folder, f) for f in ("data.npz", "model", "tree.json"))
        write_npz(data, X, y)
        options = ["--structure", getattr(structure, "name", structure)]
        if isinstance(structure, list):
            with open(tree, "w") as handle:
                json.dump(structure, handle)
            options = ["--hierarchy", tree, "--normalization", "rho:2"]
        with contextlib.redirect_stdout(io.StringIO()) as told:
            status = shell(["fit", data, "--model", model, "--alphas", "path", *options])
        assert status == 0
        fitted = structsolve.load(model)
    tried = [float(s.split()[1]) for s in told.getvalue().splitlines() if s.startswith("alpha ")]
    return SimpleNamespace(alphas_=np.array(tried), alpha_=fitted.alpha, score=fitted.score)


def one_split(
    task: Task, grid: np.ndarray | None, shell: bool
) -> tuple[Any, np.ndarray, Any, float]:
    """The path, the grid's alphas, its models' scores and errors, and CPU seconds of the path."""
    from structsolve import HierarchicalSVM, HierarchicalSVMCV, StructuredSVM, StructuredSVMCV

    structure, scoring, X, y, X_test, y_test = task
    chooser, estimator = StructuredSVMCV, StructuredSVM
    if isinstance(structure, dict):  # single leaves: node weights by "rho:2"
        chooser, estimator, structure = HierarchicalSVMCV, HierarchicalSVM, structure["tree"]
    with Clock() as clock:
        if shell:
            path = by_shell(structure, X, y)
        else:
            path = chooser(structure, scoring=scoring).fit(X, y)
    if grid is None:
        grid = path.alphas_[0] * np.logspace(0, -DECADES, A_DECADE * DECADES + 1)
    models = estimator(structure).path(X, y, grid)
    scores = [score_of(model, scoring, X_test, y_test) for model in models]
    error = error_of(models[int(np.argmax(scores))], scoring, X_test, y_test)
    chosen = score_of(path, scoring, X_test, y_test)
    return (path, chosen, error), np.array(scores), grid, clock.cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    args = parser.parse_args()
    header("The chosen alpha beside the best of a dense grid on the test rows")
    warnings.simplefilter("ignore")
    columns = ["set", "rows", "splits", "tried", "CPU s", "alpha chosen", "its score"]
    columns += ["best of the grid", "its score", "standard error", "behind", "within one"]
    print(table(columns, []), end="", flush=True)
    within = 0
    for name in args.sets:
        splits, grid = [], None
        for seed in range(SPLITS if name.removesuffix(", shell") in SPLIT else 1):
            task = SETS[name](seed)
            split = one_split(task, grid, name.endswith("shell"))
            grid = split[2]
            splits.append(split)
        tried = np.mean([len(s[0][0].alphas_) for s in splits])
        chosen, error = (float(np.mean([s[0][k] for s in splits])) for k in (1, 2))
        means = np.mean([s[1] for s in splits], axis=0)
        best, cpu = float(means.max()), float(np.mean([s[3] for s in splits]))
        alpha = float(np.exp(np.mean([np.log(s[0][0].alpha_) for s in splits])))
        yes = best - chosen <= error
        within += yes
        rows = task[2].shape[0] if hasattr(task[2], "shape") else len(task[2])
        row = [name, rows, len(splits), f"{tried:.0f}", cpu, alpha, f"{chosen:.4f}"]
        row += [of_grid(grid[np.argmax(means)], grid), f"{best:.4f}", f"{error:.4f}"]
        row += [f"{(best - chosen) / max(error, 1e-12):.2f} s.e.", "yes" if yes else "**no**"]
        print(table(columns, [row]).splitlines()[2], flush=True)
    print(f"\n{within} of {len(args.sets)} within one standard error.")


if __name__ == "__main__":
    main()
