"""Hierarchical label sets: conditional risk minimisation, HSVM and one SVM per node.

The split is the given one.  Validation rows are training rows; imclef07a trains on the first 2000
rows.  ECRM is trained for the loss that measures it, with the kernel of Goh and Jaillet (2017),
linear or (imclef07a) Gaussian, with and without an intercept.  If the kernel is linear, ECRM is
also trained with rows of unit length, and with a Gaussian kernel and an intercept.  alpha and gamma
have the least loss in five consecutive folds of the training rows: rows of imclef07a are sorted by
class, and the first 2000 hold 22 of its 63 label sets, so the test set has mostly unseen classes.
The others choose on a random quarter of the training rows: HSVM (one score per node, BCFW) its
alpha under the same loss, the SVMs (LinearSVC with a hinge, SVC with a Gaussian kernel) their C by
Hamming loss; the ancestors of nodes that an SVM predicts are added.  "hierarchical" is defined only
on trees.  "spo-fun-trimmed" is spo-fun as in the paper (supplement C): the 383 labels that at least
3 training rows have; all its 499 labels ("spo-fun") are run only on demand.

    STRUCTSOLVE_DATA=... python benchmarks/ecrm_hierarchies.py --sets enron imclef07a
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import networkx as nx
import numpy as np
from common import Clock, header, of_grid, structsolve_or_none, table
from datasets import data_path

ALPHAS = [float(a) for a in 10.0 ** np.arange(-5, 1.1, 0.25)]
# Gaussian kernels: gamma, in units of 1 / variance of the rows.
GAMMAS = (0.3, 1.0, 2.0, 3.0, 5.0)
ECRM = ("ecrm", "ecrm, intercept")
# Sets for which the paper's kernel is linear.
MORE = ("ecrm, unit rows", "ecrm, unit rows, intercept", "ecrm, Gaussian, intercept")
SVM_C = (1e-3, 0.01, 0.1, 1.0)
SETS = {
    "enron": "linear",
    "imclef07a": "rbf",
    "spo-fun": "linear",
    "spo-fun-trimmed": "linear",
    "eisen-go": "linear",
}
DEFAULT = [name for name in SETS if name != "spo-fun"]
# Hamming, hierarchical: ECRM, HM3N, one SVM per node (Goh and Jaillet 2017, table 1)
PUBLISHED = {
    "enron": ((3.079, 0.194), (3.785, 0.212), (3.400, 0.196)),
    "imclef07a": ((2.689, 0.119), (3.053, 0.134), (2.933, 0.132)),
    "spo-fun-trimmed": ((8.806, 0.137), (8.845, 0.137), (8.867, 0.138)),
}
# Sets with too many nodes for a Gaussian SVM each.
LINEAR_ONLY = ("eisen-go",)


def load(name: str) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Hierarchy, training rows and labels, test rows and labels; columns in the node order."""
    from structsolve.plugins.dag import Hierarchy

    data = np.load(data_path(f"hmc-{name.removesuffix('-trimmed')}", "data.npz"))
    parts = [p for p in ("train", "valid") if f"X_{p}" in data.files]
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(data["node_names"])))
    graph.add_edges_from((p, c) for c, p in data["edges"].tolist() if p >= 0)
    if name.endswith("-trimmed"):
        rows = np.bincount(np.concatenate([data[f"Y_{p}_indices"] for p in parts]))
        graph = graph.subgraph(np.flatnonzero(rows >= 3).tolist()).copy()
    columns, n_labels = list(Hierarchy(graph).nodes), len(data["node_names"])

    def labels(part: str) -> np.ndarray:
        first, index = data[f"Y_{part}_indptr"], data[f"Y_{part}_indices"]
        Y = np.zeros((len(first) - 1, n_labels), dtype=np.int64)
        Y[np.repeat(np.arange(len(Y)), np.diff(first)), index] = 1
        return Y[:, columns]

    X = np.vstack([data[f"X_{p}"] for p in parts]).astype(float)
    Y, x = np.vstack([labels(p) for p in parts]), data["X_test"].astype(float)
    if name == "imclef07a":
        X, Y = X[:2000], Y[:2000]
    mean = np.nanmean(X, axis=0)
    X, x = np.where(np.isnan(X), mean, X), np.where(np.isnan(x), mean, x)
    if name != "enron":  # words are 0 and 1
        scale = X.std(axis=0)
        scale[scale == 0] = 1
        X, x = (X - mean) / scale, (x - mean) / scale
    return graph, X, Y, x, labels("test")


def unit(X: np.ndarray) -> np.ndarray:
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)


def measured(graph: Any, loss: str, truth: np.ndarray, predicted: np.ndarray) -> float:
    """Mean loss per row, by the structure's own loss."""
    from structsolve.plugins.dag import DagStructure
    from structsolve.structure.ask import ask_loss, make_layout
    from structsolve.structure.loss_values import losses

    space, examples = DagStructure(graph).make_space(np.zeros((len(truth), 1)), truth)
    flat = np.ascontiguousarray(predicted, dtype=np.int32).ravel()
    native = ask_loss(space, loss)(make_layout(space, examples))
    return float(losses(native, examples.labels, flat).mean())


def ecrm(graph: Any, loss: str, name: str, how: str, X: Any, Y: Any, x: Any) -> Any:
    """Predictions with the settings of least held-out loss, and these settings."""
    from structsolve import ConditionalRiskMinimizer
    from structsolve.plugins.dag import DagStructure

    if "unit" in how:
        X, x = unit(X), unit(x)
    kernel, params = "rbf" if "Gaussian" in how else SETS[name], [None]
    if kernel == "rbf":
        params = [{"gamma": g / X.shape[1] / X.var(axis=0).mean()} for g in GAMMAS]
    models = [
        ConditionalRiskMinimizer(
            DagStructure(graph),
            loss=loss,
            kernel=kernel,
            kernel_params=some,
            fit_intercept="intercept" in how,
            alphas=ALPHAS,
            cv=5,
        ).fit(X, Y)
        for some in params
    ]
    best = min(models, key=lambda model: model.cv_losses_.min())
    gamma = f"gamma {best.kernel_params['gamma']:.2g}, " if best.kernel_params else ""
    alpha, held_out = of_grid(best.alpha_, ALPHAS), best.cv_losses_.min()
    return best.predict(x), f"{gamma}alpha {alpha}, held out {held_out:.3f}"


def hsvm(graph: Any, loss: str, X: Any, Y: Any, x: Any, held: np.ndarray) -> tuple[Any, str]:
    from structsolve import StructuredSVM
    from structsolve.plugins.dag import DagStructure

    def train(alpha: float, rows: Any, labels: Any) -> Any:
        model = StructuredSVM(DagStructure(graph), loss=loss, alpha=alpha, max_iter=20, tol=0.02)
        return model.fit(rows, labels)

    if X.min() >= 0:  # words: rows of unit length
        X, x = unit(X), unit(x)
    scores = {}
    for alpha in (1.0, 1e-1, 1e-2, 1e-3, 1e-4):
        predicted = train(alpha, X[~held], Y[~held]).predict(X[held])
        scores[alpha] = measured(graph, loss, Y[held], predicted)
    alpha = min(scores, key=lambda a: scores[a])
    return train(alpha, X, Y).predict(x), f"alpha {of_grid(alpha, scores)}"


def node_svms(
    graph: Any, gaussian: bool, X: Any, Y: Any, x: Any, held: np.ndarray
) -> tuple[Any, str]:
    from sklearn.svm import SVC, LinearSVC

    from structsolve.plugins.dag import Hierarchy

    hierarchy = Hierarchy(graph)

    def predictions(C: float, rows: Any, labels: Any, new: Any) -> np.ndarray:
        predicted = np.zeros((len(new), labels.shape[1]), dtype=np.int32)
        for j in range(labels.shape[1]):
            if labels[:, j].min() == labels[:, j].max():
                predicted[:, j] = labels[0, j]
                continue
            svm: Any = SVC(C=100 * C, gamma="scale") if gaussian else LinearSVC(C=C, loss="hinge")
            predicted[:, j] = svm.fit(rows, labels[:, j]).predict(new)
        return hierarchy.close(predicted)

    scores = {
        C: (predictions(C, X[~held], Y[~held], X[held]) != Y[held]).sum(axis=1).mean()
        for C in SVM_C
    }
    C = min(scores, key=lambda c: scores[c])
    scale = 100 if gaussian else 1
    return predictions(C, X, Y, x), f"C {of_grid(scale * C, [scale * c for c in SVM_C])}"


def run(name: str, methods: list[str]) -> None:
    graph, X, Y, x, y = load(name)
    tree = max(dict(graph.in_degree()).values()) < 2
    losses = ["hamming", "hierarchical"] if tree else ["hamming"]
    print(f"\n{name}: {len(X)} + {len(x)} rows, {X.shape[1]} features, {Y.shape[1]} nodes\n")
    held = np.random.default_rng(0).random(len(X)) < 0.25
    rows = []
    for who, (a, b) in zip(("ECRM", "HM3N", "one SVM per node"), PUBLISHED.get(name, ())):
        rows.append([f"published {who}", f"{a:.3f}", f"{b:.3f}", "", "", ""])
    jobs: dict[str, Any] = {
        "hsvm": lambda loss: hsvm(graph, loss, X, Y, x, held),
        "svm": lambda loss: node_svms(graph, False, X, Y, x, held),
    }
    for how in (*ECRM, *MORE) if SETS[name] == "linear" else ECRM:
        jobs[how] = lambda loss, how=how: ecrm(graph, loss, name, how, X, Y, x)
    if name not in LINEAR_ONLY:
        jobs["rbf-svm"] = lambda loss: node_svms(graph, True, X, Y, x, held)
    for job in methods:
        if job not in jobs:
            continue
        values, notes, seconds, predicted = [], [], 0.0, None
        for loss in losses:
            if predicted is None or "svm" not in job or job == "hsvm":  # SVMs ignore the loss
                with Clock() as clock:
                    predicted, what = jobs[job](loss)
                seconds += clock.cpu
                notes.append(what)
            values.append(f"{measured(graph, loss, y, predicted):.3f}")
        values += [""] * (2 - len(values))
        rows.append([job, *values, f"{seconds:.0f}", *notes, *[""] * (2 - len(notes))])
        print(f"<!-- {rows[-1]} -->", flush=True)
    columns = ["", "Hamming", "hierarchical", "CPU s", "settings", "settings (hierarchical)"]
    print(table(columns, rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", choices=list(SETS), default=DEFAULT)
    every = [*ECRM, *MORE, "hsvm", "svm", "rbf-svm"]
    parser.add_argument("--methods", nargs="*", default=every)
    given = parser.parse_args()
    if structsolve_or_none() is None:
        return
    warnings.filterwarnings("ignore")
    header("Hierarchical label sets")
    for name in given.sets:
        run(name, given.methods)


if __name__ == "__main__":
    main()
