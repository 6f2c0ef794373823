"""Precision of the k best labels of each row, plain and weighted by propensity."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from structsolve.evaluation.report import of_argument
from structsolve.evaluation.tokens import check_kinds
from structsolve.examples.given import column_names
from structsolve.examples.kinds import is_mixed
from structsolve.utils.arrays import plain_numbers
from structsolve.utils.params import check_count

__all__ = ["precision_at_k", "propensity_precision_at_k"]


def precision_at_k(y_true: Any, ranked: Any, k: int = 5) -> float:
    """Return the share of the k best labels that are true, the mean over rows.

    Parameters
    ----------
    y_true : array, data frame or sparse matrix of shape (n, n_labels), or list of lists or sets
        Indicators of the labels that are column numbers in ``ranked`` (names of columns, of a data
        frame), or the labels of each row.  Lists are labels, also those of 0 and 1 alone.
    ranked : array of shape (n, m)
        Labels, best first, such as those of :meth:`ExtremeSVM.predict_topk`; m is at least k.
    k : int, default=5

    Returns
    -------
    float

    Raises
    ------
    ValueError
        When there are other numbers of rows, fewer than k ranked labels, or one of them twice; for
        arrays that are not 0 and 1 alone.

    Examples
    --------
    >>> from structsolve.plugins.extreme.metrics import precision_at_k
    >>> precision_at_k([{"a", "b"}, ["c"]], [["a", "c"], ["a", "c"]], k=2)
    0.5
    """
    truth, ranked = _checked(y_true, ranked, k)
    hits = [sum(label in own for label in best) for own, best in zip(truth, ranked, strict=True)]
    return float(np.mean(hits)) / k


def propensity_precision_at_k(
    y_true: Any, ranked: Any, k: int = 5, *, y_train: Any, a: float = 0.55, b: float = 1.5
) -> float:
    """Return the precision at k with labels weighted by their inverse propensity.

    Rare labels are often missing from the truth.  Jain, Prabhu and Varma (KDD 2016) weight label l
    of ``N_l`` among N training rows by ``1 + (log N - 1) (b + 1)^a (N_l + b)^-a``.  As customary,
    the result is divided by that of the best ranking.

    Parameters
    ----------
    y_true, ranked, k : as for :func:`precision_at_k`
    y_train : as ``y_true``, of the training rows
    a, b : float, default=0.55, 1.5
        Constants of the data set.

    Returns
    -------
    float
        From 0 to 1; 0 if no row has a label.

    Raises
    ------
    ValueError
        As for :func:`precision_at_k`; also when there are fewer than three training rows.

    Examples
    --------
    >>> from structsolve.plugins.extreme.metrics import propensity_precision_at_k
    >>> train = [["a"], ["a"], ["a"], ["a", "b"]]
    >>> truth = [{"a", "b"}, {"a"}]
    >>> first = propensity_precision_at_k(truth, [["a"], ["a"]], k=1, y_train=train)
    >>> first < propensity_precision_at_k(truth, [["b"], ["a"]], k=1, y_train=train)
    True
    """
    truth, ranked = _checked(y_true, ranked, k)
    train = _label_sets(y_train, "y_train")
    if len(train) < 3:
        raise ValueError(f"y_train: found {len(train)} rows, expected at least 3")
    count: dict[Any, int] = {}
    for own in train:
        for label in own:
            count[label] = count.get(label, 0) + 1
    for label in count:
        check_kinds(label, ranked[0][0], "y_train", "ranked")
    factor = (np.log(len(train)) - 1) * (b + 1) ** a

    def weight(label: Any) -> float:
        return 1 + factor * (count.get(label, 0) + b) ** -a

    reached = most = 0.0
    for own, best in zip(truth, ranked, strict=True):
        reached += sum(weight(label) for label in best if label in own)
        most += sum(sorted(map(weight, own), reverse=True)[:k])
    return float(reached / most) if most else 0.0


def _checked(y_true: Any, ranked: Any, k: Any) -> tuple[list[set[Any]], list[list[Any]]]:
    truth = _label_sets(y_true, "y_true")
    with of_argument("ranked"):
        best = np.asarray(ranked)
        if is_mixed(ranked, best):
            raise ValueError("found strings and numbers, expected labels of one kind")
    check_count("k", k)
    if best.ndim != 2 or best.shape[1] < k:
        raise ValueError(
            f"ranked has shape {best.shape}, expected a row of {k} labels or more each"
        )
    if len(best) != len(truth) or not len(best):
        raise ValueError(
            f"ranked has {len(best)} rows and y_true {len(truth)}, expected as many, at least one"
        )
    rows = best[:, :k].tolist()
    for i, row in enumerate(rows):
        if len({*row}) < k:
            raise ValueError(f"ranked[{i}]: found a label twice in {row!r:.60}, expected each once")
    for label in set().union(*truth):
        check_kinds(label, rows[0][0], beside="ranked")
    return truth, rows


def _label_sets(y: Any, name: str) -> list[set[Any]]:
    """The labels of each row; names or numbers of columns of indicators."""
    with of_argument(name):
        return _sets(y, name)


def _sets(y: Any, name: str) -> list[set[Any]]:
    if isinstance(y, dict):
        raise ValueError("found a dict, expected a list or array of labels")
    if sparse.issparse(y) or len(getattr(y, "shape", ())) == 2:
        given = y if sparse.issparse(y) else plain_numbers(np.asarray(y))
        numbers = given.dtype.kind in "biuf"
        rows = sparse.csr_matrix(given if numbers else given.shape)
        if not numbers or not np.isin(rows.data, (0, 1)).all():
            raise ValueError(
                "found an array that is not 0 and 1 alone, expected indicators, or a list of the "
                "labels of each row"
            )
        rows.eliminate_zeros()
        names = column_names(y, rows.shape[1], what=name)[rows.indices]
        pairs = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        return [set(names[first:last].tolist()) for first, last in pairs]
    wrong = next((i for i, own in enumerate(y) if isinstance(own, str) or not np.iterable(own)), -1)
    if wrong >= 0:
        raise ValueError(
            f"example {wrong}: found {y[wrong]!r}, expected the labels of a row, a list or a set"
        )
    rows = [[v.item() if isinstance(v, np.generic) else v for v in own] for own in y]
    twice = next((i for i, own in enumerate(rows) if len({*own}) < len(own)), -1)
    if twice >= 0:
        raise ValueError(
            f"example {twice}: found a label twice in {y[twice]!r}, expected each once; give "
            "indicators of 0 and 1 as an array"
        )
    return [{*own} for own in rows]
