"""Metrics of predicted label sets, with or without a hierarchy, computed by scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from structsolve import registry
from structsolve.evaluation.report import FIGURES, Report, row_of
from structsolve.evaluation.scorers import final_model
from structsolve.structure.ask import pack

__all__ = ["label_set_report"]

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
    hierarchy : networkx DiGraph, mapping or Hierarchy, optional
        The hierarchy of the columns: adds the ``set_scores`` of the structure that takes it.

    Returns
    -------
    Report
        A dict that prints as a table: ``per_class``; ``micro``, ``macro``, ``weighted`` and
        ``samples``, and with a hierarchy ``hierarchical``; ``exact_match``, the share of correct
        sets; ``accuracy``, the share of correct entries, which is high if labels are rare.

    Examples
    --------
    >>> from structsolve.plugins.multilabel.metrics import label_set_report
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
        per_class={name: row_of(row[:3], row[3]) for name, row in table},
        **{average: row_of(figures(average)[:3], support) for average in SET_AVERAGES},
    )
    if hierarchy is not None:
        known = registry.default()
        takes = known.first_with("hierarchy")
        if takes is None:
            raise ValueError("hierarchy: no plugin has a structure that takes one")
        structure = known.make("structures", takes, hierarchy=hierarchy)
        report["hierarchical"] = structure.set_scores(true, pred)
    return report


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
            If labels are not sets.
        """
        model, X = final_model(estimator, X)
        matrix = self._reader(model, X)
        true = matrix(y)
        if self.name in RANKINGS:
            limit = np.finfo(np.float64).max / 4
            scores = np.clip(model.decision_function(X), -limit, limit)
            return RANKINGS[self.name](true, scores, sample_weight)
        return _share(self.name, true, matrix(model.predict(X)), sample_weight)

    def _reader(self, model: Any, X: Any) -> Callable[[Any], np.ndarray]:
        """Return the function that gives indicators of label sets of the rows of X."""
        if getattr(model, "label_sets", False):
            return model.label_indicators
        space: Any = getattr(model, "space_", None)
        structure: Any = getattr(space, "structure", None)
        if not getattr(structure, "label_sets", False):
            raise ValueError(
                f"metric {self.name!r} needs label sets; labels of structure "
                f"{getattr(structure, 'name', None)!r} are none; see "
                "structsolve.evaluation.scorers.get_scorer_names"
            )
        return lambda y: _matrix(pack(space, X, y))


def _matrix(examples: Any) -> np.ndarray:
    return np.asarray(examples.labels).reshape(examples.n, -1)


def micro(true: np.ndarray, pred: np.ndarray, weight: Any) -> tuple[float, float, float]:
    """Return precision, recall and F1 over all labels of all rows; 0 where they are undefined.

    Parameters
    ----------
    true, pred : ndarray of shape (n_examples, n_labels)
        0 and 1.
    weight : array of shape (n_examples,) or None

    Returns
    -------
    tuple of float
    """
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
        return micro(true, pred, weight)[FIGURES.index(figure)]
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
    *RANKINGS,
)
