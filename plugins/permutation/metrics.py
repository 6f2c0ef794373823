"""Kendall's and Spearman's correlation of rankings, as a report and as scorers by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structsolve.evaluation.report import Report, of_argument
from structsolve.evaluation.scorers import Weighted, final_model
from structsolve.examples.given import check_columns, check_weights
from structsolve.plugins.permutation.labels import rankings
from structsolve.plugins.permutation.space import RankingSpace

__all__ = ["ranking_report"]

FIGURES = ("kendall_tau", "spearman_rho")


def ranking_report(y_true: Any, y_pred: Any, sample_weight: Any = None) -> Report:
    """Compute the mean rank correlations of rankings, without ties, of the same labels.

    Parameters
    ----------
    y_true, y_pred : array of shape (n, labels)
        Rows of ranks, permutations of 0 to labels - 1; at least two labels.
    sample_weight : array of shape (n,), optional

    Returns
    -------
    Report
        A dict that prints as lines: ``kendall_tau``, the mean of the share of pairs of labels in
        the right order minus that of the others; ``spearman_rho``, the mean correlation of ranks;
        ``exact``, the share of faultless rankings; ``rankings``, their number.

    Raises
    ------
    ValueError
        For rows that are no rankings, fewer than two labels, and invalid weights.

    Examples
    --------
    >>> from structsolve.plugins.permutation import ranking_report
    >>> print(ranking_report([[0, 1, 2], [2, 0, 1]], [[0, 1, 2], [1, 0, 2]]))
    kendall tau 0.6667
    spearman rho 0.7500
    exact 0.5000
    rankings 2
    """
    check_columns(y_pred, getattr(y_true, "columns", None), what="y_pred", whose="y_true has")
    n = len(y_true) if getattr(y_true, "ndim", 1) and hasattr(y_true, "__len__") else 0
    with of_argument("y_true"):
        true = rankings(y_true, n)
    K = true.shape[1]
    with of_argument("y_pred"):
        pred = rankings(y_pred, n, K)
    if not n or K < 2:
        raise ValueError(
            f"y_true has {n} rankings of {K} labels; expected one or more, of two labels or more"
        )
    weight = check_weights(sample_weight, n)
    ordered = np.take_along_axis(pred, np.argsort(true, axis=1), axis=1)
    wrong = np.zeros(n)
    for k in range(K - 1):
        wrong += (ordered[:, k + 1 :] < ordered[:, k : k + 1]).sum(axis=1)
    squares = ((true - pred).astype(float) ** 2).sum(axis=1)
    figures = {
        "kendall_tau": 1 - 4 * wrong / (K * (K - 1)),
        "spearman_rho": 1 - 6 * squares / (K * (K * K - 1)),
        "exact": (true == pred).all(axis=1),
    }
    means = {name: float(np.average(each, weights=weight)) for name, each in figures.items()}
    return Report(means, rankings=n)


@dataclass(frozen=True)
class RankingScorer(Weighted):
    """``scorer(estimator, X, y) -> float`` of :func:`ranking_report`, greater is better.

    Parameters
    ----------
    figure : {"kendall_tau", "spearman_rho"}
    """

    figure: str

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
            If labels are no rankings.
        """
        model, X = final_model(estimator, X)
        space = getattr(model, "space_", None)
        if not isinstance(space, RankingSpace):
            raise ValueError(
                f"metric {self.figure.replace('_', '-')!r} needs rankings, rows of ranks of the "
                "same labels; labels of this model are none"
            )
        check_columns(y, space.classes_)
        return float(ranking_report(y, model.predict(X), sample_weight)[self.figure])
