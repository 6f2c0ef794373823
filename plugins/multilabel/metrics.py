"""Metrics of predicted label sets, with or without a hierarchy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from structsolve import registry
from structsolve.evaluation.report import FIGURES, Report, of_argument, row_of
from structsolve.evaluation.scorers import Weighted, final_model
from structsolve.examples.given import check_columns, check_weights
from structsolve.examples.kinds import one_kind
from structsolve.structure.pack import pack
from structsolve.utils.arrays import plain_numbers

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
    check_columns(y_pred, getattr(y_true, "columns", None), what="y_pred", whose="y_true has")
    given = {"y_true": y_true, "y_pred": y_pred}
    for name, each in given.items():
        check_columns(each, names, what=name, whose="names")
    true, pred = (_indicators(each, name) for name, each in given.items())
    if true.shape != pred.shape or not true.size:
        raise ValueError(
            f"y_true has shape {true.shape}, y_pred {pred.shape}, expected the same, not empty"
        )
    own, names = names, range(true.shape[1]) if names is None else one_kind(names, "names").tolist()
    if len(names) != true.shape[1]:
        raise ValueError(f"names has {len(names)} entries, expected {true.shape[1]}, one a column")
    if len({*names}) < len(names):
        raise ValueError(f"names is {names!r}, expected names that differ")
    support = int(true.sum())
    each, counts = _each(true, pred, np.ones(len(true)))
    table = zip(names, each.T.tolist(), counts.tolist(), strict=True)
    report = Report(
        accuracy=float((true == pred).mean()),
        exact_match=float((true == pred).all(axis=1).mean()),
        support=int(true.size),
        per_class={name: row_of(row, count) for name, row, count in table},
        **{average: row_of(figures(true, pred, average), support) for average in SET_AVERAGES},
    )
    if hierarchy is not None:
        known = registry.default()
        takes = known.first_with("hierarchy")
        if takes is None:
            raise ValueError("hierarchy: no plugin has a structure that takes one")
        structure = known.make("structures", takes, hierarchy=hierarchy)
        sides = []
        for each, matrix in zip(given.values(), (true, pred), strict=True):
            sides.append(matrix.view(_Named))
            sides[-1].columns = getattr(each, "columns", own)
        report["hierarchical"] = structure.set_scores(*sides)
    return report


class _Named(np.ndarray):
    """Indicators with the names of their columns, which should be nodes of a hierarchy."""

    columns: Any


@dataclass(frozen=True)
class SetScorer(Weighted):
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
            If labels are not sets, and for invalid weights.
        """
        model, X = final_model(estimator, X)
        matrix = self._reader(model, X)
        true = matrix(y)
        if sample_weight is not None:
            sample_weight = check_weights(sample_weight, len(true))
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


def _indicators(y: Any, name: str) -> np.ndarray:
    with of_argument(name):
        matrix = plain_numbers(np.asarray(y.toarray() if hasattr(y, "toarray") else y))
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf" or not np.isin(matrix, (0, 1)).all():
        raise ValueError(f"{name}: expected rows of 0 and 1, one column for each label")
    return matrix.astype(bool)


def _ratios(both: Any, guessed: Any, there: Any) -> np.ndarray:
    """Return precision, recall and F1 of counts; 0 where they are undefined."""
    pairs = ((both, guessed), (both, there), (2 * both, guessed + there))
    return np.array([np.divide(a, b, out=np.zeros_like(a), where=b > 0) for a, b in pairs])


def _each(true: np.ndarray, pred: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return precision, recall and F1 of every label, and how much weight has it."""
    both, guessed, there = (weight @ m for m in (true & pred, pred, true))
    return _ratios(both, guessed, there), there


def figures(true: np.ndarray, pred: np.ndarray, average: str, weight: Any = None) -> Any:
    """Return precision, recall and F1; 0 where they are undefined.

    Parameters
    ----------
    true, pred : ndarray of bool of shape (n_examples, n_labels)
    average : {"micro", "macro", "weighted", "samples"}
    weight : array of shape (n_examples,), optional

    Returns
    -------
    ndarray of shape (3,)
    """
    weight = np.ones(len(true)) if weight is None else np.asarray(weight, float)
    if average == "micro":
        return _ratios(*(np.array(weight @ m.sum(axis=1)) for m in (true & pred, pred, true)))
    if average == "samples":
        sums = (m.sum(axis=1).astype(float) for m in (true & pred, pred, true))
        return np.average(_ratios(*sums), axis=1, weights=weight)
    each, there = _each(true, pred, weight)
    if average == "macro":
        return each.mean(axis=1)
    return each @ there / (there.sum() or 1.0)


def _share(name: str, true: np.ndarray, pred: np.ndarray, weight: Any) -> float:
    if name in ("accuracy", "exact-match"):
        right = (true == pred).mean(axis=1) if name == "accuracy" else (true == pred).all(axis=1)
        return float(np.average(right, weights=weight))
    average, figure = name.split("-")
    return float(figures(true > 0, pred > 0, average, weight)[FIGURES.index(figure)])


def _with_another(true: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both with a label more, never there and always last: sklearn refuses a single one."""
    if true.shape[1] > 1:
        return true, scores
    lowest = scores.min(initial=0.0)
    last = np.full(len(true), 2 * lowest - 1)
    return np.column_stack([true, np.zeros_like(true)]), np.column_stack([scores, last])


def _average_precision(true: np.ndarray, scores: np.ndarray, weight: Any) -> float:
    from sklearn.metrics import label_ranking_average_precision_score  # heavy

    return float(
        label_ranking_average_precision_score(*_with_another(true, scores), sample_weight=weight)
    )


def _coverage(true: np.ndarray, scores: np.ndarray, weight: Any) -> float:
    from sklearn.metrics import coverage_error  # heavy

    return -float(coverage_error(*_with_another(true, scores), sample_weight=weight))


def _ranking_loss(true: np.ndarray, scores: np.ndarray, weight: Any) -> float:
    from sklearn.metrics import label_ranking_loss  # heavy

    return -float(label_ranking_loss(*_with_another(true, scores), sample_weight=weight))


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
