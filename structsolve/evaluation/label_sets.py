"""Metrics of predicted label sets, with or without a hierarchy, computed by scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from structsolve.evaluation.report import FIGURES, Report
from structsolve.structure.ask import pack
from structsolve.structure.hierarchy import as_hierarchy

__all__ = ["hierarchical_scores", "label_set_report"]

SET_AVERAGES = ("micro", "macro", "weighted", "samples")


def label_set_report(
    y_true: Any, y_pred: Any, names: Sequence[Any] | None = None, hierarchy: Any = None
) -> Report:
    """
    Compute precision, recall and F1 of every label, and their averages.

    Parameters
    ----------
    y_true, y_pred : array of shape (n_examples, n_labels)
        0 and 1.
    names : sequence, optional
        The label of each column; numbers by default.
    hierarchy : Hierarchy or networkx DiGraph, optional
        The hierarchy of the columns: adds the metrics of `hierarchical_scores`.

    Returns
    -------
    Report
        A dict that prints as a table: ``per_class``; ``micro``, ``macro``, ``weighted`` and
        ``samples``, and with a hierarchy ``hierarchical``; ``exact_match``, the share of correct
        sets; ``accuracy``, the share of correct entries, which is high if labels are rare.

    Examples
    --------
    >>> from structsolve.evaluation.label_sets import label_set_report
    >>> report = label_set_report([[1, 0, 0], [0, 1, 0]], [[1, 0, 0], [0, 0, 0]])
    >>> round(report["accuracy"], 3), round(report["micro"]["f1"], 3), report["samples"]["f1"]
    (0.833, 0.667, 0.5)
    """
    from sklearn.metrics import precision_recall_fscore_support  # heavy

    true, pred = np.asarray(y_true), np.asarray(y_pred)
    names = range(true.shape[1]) if names is None else np.asarray(names).tolist()

    def figures(average: Any) -> Any:
        return precision_recall_fscore_support(true, pred, average=average, zero_division=0)

    support = int(true.sum())
    table = zip(names, zip(*figures(None), strict=True), strict=True)
    report = Report(
        accuracy=float((true == pred).mean()),
        exact_match=float((true == pred).all(axis=1).mean()),
        support=int(true.size),
        per_class={name: _row(row[:3], row[3]) for name, row in table},
        **{average: _row(figures(average)[:3], support) for average in SET_AVERAGES},
    )
    if hierarchy is not None:
        report["hierarchical"] = hierarchical_scores(true, pred, hierarchy)
    return report


def hierarchical_scores(
    y_true: Any, y_pred: Any, hierarchy: Any, sample_weight: Any = None
) -> dict[str, Any]:
    """
    Compute hierarchical precision, recall and F1 (Kiritchenko, Matwin and Famili, 2005).

    Both sets get all ancestors of their labels; precision is the share of predicted labels that are
    true, recall the share of true labels that are predicted, both over all examples together.  A
    single root is an ancestor of all labels and does not count.

    Parameters
    ----------
    y_true, y_pred : array of shape (n_examples, n_nodes)
        0 and 1, in the order of the hierarchy's nodes.
    hierarchy : Hierarchy or networkx DiGraph
        Edges go from parent to child.
    sample_weight : array of shape (n_examples,), optional

    Returns
    -------
    dict
        ``precision``, ``recall``, ``f1`` and ``support``, the number of true labels.

    Raises
    ------
    ValueError
        If there is not one column per node.

    Examples
    --------
    A dog predicted as a cat still counts as an animal:

    >>> import networkx as nx
    >>> from structsolve.evaluation.label_sets import hierarchical_scores
    >>> animals = nx.DiGraph([("animal", "dog"), ("animal", "cat"), ("thing", "chair")])
    >>> hierarchical_scores([[0, 1, 0, 0, 0]], [[0, 0, 1, 0, 0]], animals)["f1"]
    0.5
    """
    hierarchy = as_hierarchy(hierarchy)
    sets = []
    for name, given in (("y_true", y_true), ("y_pred", y_pred)):
        matrix = np.array(given, dtype=np.int32, order="C")
        if matrix.ndim != 2 or matrix.shape[1] != len(hierarchy):
            raise ValueError(
                f"{name} has shape {matrix.shape}, expected one column for each of the "
                f"{len(hierarchy)} nodes of the hierarchy"
            )
        matrix = hierarchy.close(matrix)
        if len(hierarchy.roots) == 1 and len(hierarchy) > 1:
            matrix[:, hierarchy.roots] = 0
        sets.append(matrix)
    true, pred = sets
    shares = _micro(true, pred, sample_weight)
    return _row(shares, int(true.sum()))


@dataclass(frozen=True)
class SetScorer:
    """A metric of label sets by name: ``scorer(estimator, X, y) -> float``, greater is better.

    Parameters
    ----------
    name : str
        A key of ``SET_METRICS``.
    """

    name: str

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score predictions.

        Parameters
        ----------
        estimator : estimator
            Fitted; maybe in a pipeline or a search.
        X, y : as for its ``fit``
        sample_weight : array of shape (n,), optional

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If labels are not sets, or have no hierarchy.
        """
        model, X = final_model(estimator, X)
        space: Any = getattr(model, "space_", None)
        hierarchy = getattr(space, "hierarchy", None)
        hierarchical = self.name.startswith("hierarchical-")
        structure: Any = getattr(space, "structure", None)
        if not getattr(structure, "label_sets", False) and not (hierarchical and hierarchy):
            raise ValueError(
                f"metric {self.name!r} needs {'hierarchies' if hierarchical else 'label sets'}; "
                f"labels of structure {getattr(structure, 'name', None)!r} are none; see "
                "structsolve.evaluation.scorers.get_scorer_names"
            )
        if hierarchical and hierarchy is None:
            raise ValueError(
                f"metric {self.name!r} needs a hierarchy; structure {structure.name!r} has none"
            )
        examples = pack(space, X, y)
        true = _matrix(space, examples)
        if self.name in RANKINGS:
            limit = np.finfo(np.float64).max / 4
            scores = np.clip(model.decision_function(X), -limit, limit)
            return RANKINGS[self.name](true, scores, sample_weight)
        answers = model.predict(X)
        pred = _matrix(space, pack(space, X, answers))
        if hierarchical:
            figure = self.name.removeprefix("hierarchical-")
            return float(hierarchical_scores(true, pred, hierarchy, sample_weight)[figure])
        return _share(self.name, true, pred, sample_weight)


def final_model(estimator: Any, X: Any = None) -> tuple[Any, Any]:
    """Return the predictor within searches and pipelines, and X transformed for it.

    Parameters
    ----------
    estimator : estimator
    X : as for its ``predict``, optional

    Returns
    -------
    model, X : tuple
    """
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "steps"):
            if X is not None and len(estimator.steps) > 1:
                X = estimator[:-1].transform(X)
            estimator = estimator.steps[-1][1]
        else:
            return estimator, X


def _matrix(space: Any, examples: Any) -> np.ndarray:
    """Return packed labels as indicators of all labels; single leaves without their ancestors."""
    if not getattr(space, "single", False):
        return np.asarray(examples.labels).reshape(examples.n, -1)
    matrix = np.zeros((examples.n, len(space.hierarchy)), dtype=np.int32)
    matrix[np.arange(examples.n), examples.labels] = 1
    return matrix


def _micro(true: np.ndarray, pred: np.ndarray, weight: Any) -> tuple[float, float, float]:
    """Return precision, recall and F1 over all labels of all rows; 0 where they are undefined."""
    weight = np.ones(len(true)) if weight is None else np.asarray(weight, float)
    both, guessed, there = (float(weight @ m.sum(axis=1)) for m in (true & pred, pred, true))
    return (
        both / guessed if guessed else 0.0,
        both / there if there else 0.0,
        2 * both / (guessed + there) if guessed + there else 0.0,
    )


def _share(name: str, true: np.ndarray, pred: np.ndarray, weight: Any) -> float:
    from sklearn.metrics import precision_recall_fscore_support  # heavy

    if name in ("accuracy", "exact-match"):
        right = (true == pred).mean(axis=1) if name == "accuracy" else (true == pred).all(axis=1)
        return float(np.average(right, weights=weight))
    average, figure = name.split("-")
    if average == "micro":  # a search scores often, and sklearn's checks take longer than a fit
        return _micro(true, pred, weight)[FIGURES.index(figure)]
    figures: Any = precision_recall_fscore_support(
        true, pred, average=average, sample_weight=weight, zero_division=0
    )
    return float(figures[FIGURES.index(figure)])


def _average_precision(true: np.ndarray, scores: np.ndarray, weight: Any) -> float:
    from sklearn.metrics import label_ranking_average_precision_score  # heavy

    return float(label_ranking_average_precision_score(true, scores, sample_weight=weight))


def _coverage(true: np.ndarray, scores: np.ndarray, weight: Any) -> float:
    from sklearn.metrics import coverage_error  # heavy

    return -float(coverage_error(true, scores, sample_weight=weight))


def _ranking_loss(true: np.ndarray, scores: np.ndarray, weight: Any) -> float:
    from sklearn.metrics import label_ranking_loss  # heavy

    return -float(label_ranking_loss(true, scores, sample_weight=weight))


RANKINGS: dict[str, Callable[[np.ndarray, np.ndarray, Any], float]] = {
    "average-precision": _average_precision,
    "neg-coverage": _coverage,
    "neg-ranking-loss": _ranking_loss,
}
SET_METRICS: tuple[str, ...] = (
    "accuracy",
    "exact-match",
    *(
        f"{average}-{figure}"
        for average in SET_AVERAGES
        for figure in ("f1", "precision", "recall")
    ),
    *(f"hierarchical-{figure}" for figure in ("f1", "precision", "recall")),
    *RANKINGS,
)


def _row(shares: Sequence[float], support: int) -> dict[str, Any]:
    return {**dict(zip(FIGURES, map(float, shares), strict=True)), "support": int(support)}
