"""Metrics of predicted label sequences: by token and by sequence.

Every function takes two lists of label sequences, truth first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from structsolve.evaluation.report import (
    FIGURES,
    Error,
    ErrorList,
    Report,
    checked_lengths,
    in_context,
    row_of,
)
from structsolve.examples.given import check_weights
from structsolve.examples.kinds import one_kind
from structsolve.utils.lazy import moved
from structsolve.utils.params import check_choice
from structsolve.utils.values import equal, is_whole

from .tokens import Labels, paired, unweighted

__all__ = ["TokenReport", "hamming_loss", "make_token_scorer", "sequence_error", "token_report"]


class TokenReport(Report):
    """What :func:`token_report` returns: a report that can list the wrong tokens.

    Examples
    --------
    >>> from structsolve.evaluation.metrics import token_report
    >>> print(token_report([["D", "N"]], [["D", "D"]]).errors([["the", "run"]]))
    example 0, 1:2, wrong class: true N, predicted D
        the [run]
    """

    _sides: tuple[NDArray[Any], NDArray[Any], NDArray[np.intp]]

    def errors(self, tokens: Any = None, context: int = 3) -> ErrorList:
        """List the wrong tokens.

        Parameters
        ----------
        tokens : sequence of sequences, optional
            The words of each example, for the contexts.
        context : int, default=3
            Number of words on either side.

        Returns
        -------
        ErrorList
            A list of :class:`~structsolve.evaluation.report.Error` that prints as text.

        Raises
        ------
        ValueError
            For other numbers of tokens than of labels.
        """
        true, pred, lengths = self._sides
        checked_lengths(lengths, tokens, context)
        ends, listed = np.cumsum(lengths), ErrorList()
        for v in np.flatnonzero(true != pred).tolist():
            example = int(np.searchsorted(ends, v, side="right"))
            start = v - int(ends[example] - lengths[example])
            words = in_context(tokens, example, start, start + 1, context)
            labels = true[v].item(), pred[v].item()
            listed.append(Error(example, start, start + 1, "wrong class", *labels, words))
        return listed


def token_report(
    y_true: Sequence[Labels], y_pred: Sequence[Labels], labels: Sequence[Any] | None = None
) -> TokenReport:
    """
    Compute accuracy, and precision, recall and F1 of every class, over all tokens.

    Parameters
    ----------
    y_true, y_pred : sequence of sequences of str or int
        The labels, one sequence per example.
    labels : sequence of str or int, optional
        The classes to report, in this order, instead of all that occur.  The averages cover
        these classes only; the accuracy still covers every token.

    Returns
    -------
    TokenReport
        A dict that prints as a table: ``accuracy``, ``support`` (the number of tokens),
        ``per_class`` (label to ``precision``, ``recall``, ``f1`` and ``support``), and the averages
        ``macro``, ``micro`` and ``weighted`` of the same metrics.  Ratios of 0 / 0 are 0.  Its
        method ``errors(tokens, context=3)`` lists the wrong tokens.

    Raises
    ------
    ValueError
        For unequal lengths, mixed types, or `labels` of another type.

    Examples
    --------
    >>> from structsolve.evaluation.metrics import token_report
    >>> report = token_report([["D", "N"], ["N"]], [["D", "D"], ["N"]])
    >>> round(report["accuracy"], 3), report["per_class"]["D"]["precision"]
    (0.667, 0.5)
    """
    true, pred, lengths = paired(y_true, y_pred)
    names = _names(true, pred, labels)
    table = np.column_stack(_figures(true, pred, names, None))
    averages = {}
    for average in ("macro", "micro", "weighted"):
        precision, recall, f1, _ = _figures(true, pred, names, average)
        averages[average] = row_of([precision, recall, f1], table[:, 3].sum())
    rows = zip(names.tolist(), table.tolist(), strict=True)
    report = TokenReport(
        accuracy=float(np.mean(true == pred)),
        support=int(true.size),
        per_class={name: row_of(row[:3], row[3]) for name, row in rows},
        **averages,
    )
    report._sides = true, pred, lengths
    return report


def _names(true: NDArray[Any], pred: NDArray[Any], labels: Sequence[Any] | None) -> NDArray[Any]:
    """Return the classes of a report, checked."""
    if labels is None:
        return np.unique(np.concatenate([true, pred]))
    names = one_kind(labels, "labels")
    texts = [one.dtype.kind == "U" for one in (names, true)]
    if names.ndim != 1 or not names.size or texts[0] != texts[1] or len({*labels}) < names.size:
        raise ValueError(
            f"labels is {labels!r}; expected one or more different labels of the same type as in "
            f"y_true, such as {true[0].item()!r}"
        )
    return names


def _figures(true: Any, pred: Any, names: Any, average: Any, weights: Any = None) -> Any:
    from sklearn.metrics import precision_recall_fscore_support  # heavy

    return precision_recall_fscore_support(
        true, pred, labels=names, average=average, sample_weight=weights, zero_division=0
    )


def hamming_loss(
    y_true: Sequence[Labels],
    y_pred: Sequence[Labels],
    average: Literal["token", "sequence", "count"] = "token",
) -> float:
    """
    Compute the share or number of wrong tokens.

    Parameters
    ----------
    y_true, y_pred : sequence of sequences of str or int
        The labels, one sequence per example.
    average : {"token", "sequence", "count"}
        The share of all tokens (1 - accuracy); the mean over sequences of each one's share; or
        the mean number of wrong tokens per sequence, which is the loss ``"hamming"`` of training.

    Returns
    -------
    float
        The loss.

    Examples
    --------
    >>> from structsolve.evaluation.metrics import hamming_loss
    >>> truth, guess = [[0, 1, 1], [2]], [[0, 1, 0], [0]]
    >>> hamming_loss(truth, guess), round(hamming_loss(truth, guess, "sequence"), 3)
    (0.5, 0.667)
    >>> hamming_loss(truth, guess, "count")
    1.0
    """
    check_choice("average", average, ("token", "sequence", "count"))
    wrong, lengths = _errors(y_true, y_pred)
    if average == "token":
        return float(wrong.sum() / lengths.sum())
    return float(np.mean(wrong if average == "count" else wrong / np.maximum(lengths, 1)))


def sequence_error(y_true: Sequence[Labels], y_pred: Sequence[Labels]) -> float:
    """
    Compute the share of sequences with at least one wrong token.

    Parameters
    ----------
    y_true, y_pred : sequence of sequences of str or int
        The labels, one sequence per example.

    Returns
    -------
    float
        The share, between 0 and 1.

    Examples
    --------
    >>> from structsolve.evaluation.metrics import sequence_error
    >>> sequence_error([[0, 1, 1], [2]], [[0, 0, 0], [2]])
    0.5
    """
    return float(np.mean(_errors(y_true, y_pred)[0] > 0))


def make_token_scorer(
    metric: str = "accuracy", *, labels: Sequence[Any] | None = None
) -> Callable[..., float]:
    """
    Make a scikit-learn scorer of tokens or whole sequences, rows of one class each, or pixels.

    Parameters
    ----------
    metric : str
        ``"accuracy"``, ``"macro-f1"``, ``"micro-f1"``, ``"weighted-f1"`` (and the same with
        ``precision`` or ``recall``), or ``"sequence-accuracy"``, the share of correct sequences, or
        of correct whole labels of any other form: spans, trees, pictures, classes.
    labels : sequence of str or int, optional
        As for `token_report`: the classes that the averages cover.

    Returns
    -------
    callable
        ``scorer(estimator, X, Y, sample_weight=None) -> float``, greater is better; it can be
        pickled. A weight of an example is that of each of its tokens; Y may have
        :class:`~structsolve.WeightedLabels`.

    Examples
    --------
    >>> from structsolve.evaluation.metrics import make_token_scorer
    >>> from sklearn.base import BaseEstimator
    >>> class Echo(BaseEstimator):
    ...     def fit(self, X, Y): return self
    ...     def predict(self, X): return X
    >>> make_token_scorer("sequence-accuracy")(Echo(), [[1, 2], [3]], [[1, 2], [4]])
    0.5
    """
    from sklearn.metrics import make_scorer  # heavy

    check_choice("metric", metric, TOKEN_METRICS)
    return make_scorer(token_score, metric=metric, labels=labels)


TOKEN_METRICS: tuple[str, ...] = ("accuracy", "sequence-accuracy")
for _average in ("macro", "micro", "weighted"):
    TOKEN_METRICS += tuple(f"{_average}-{figure}" for figure in ("f1", "precision", "recall"))


def token_score(
    y_true: Any,
    y_pred: Any,
    metric: str,
    labels: Sequence[Any] | None = None,
    sample_weight: Any = None,
) -> float:
    """Return a score of tokens or sequences; see `make_token_scorer`.

    Parameters
    ----------
    y_true, y_pred : sequence of labels
    metric : str
    labels : sequence of str or int, optional
    sample_weight : array of shape (n,), optional

    Returns
    -------
    float
    """
    y_true, nodes = unweighted(y_true)
    if getattr(y_pred, "ndim", 0) == 1 and y_pred.dtype != object:
        if getattr(y_true, "shape", ())[1:] == (1,):  # a column, which fit and score take, too
            y_true = np.asarray(y_true).ravel()
        y_true, y_pred = ([[one] for one in y] for y in (y_true, y_pred))  # a class a row
    if metric == "sequence-accuracy" and nodes is None:
        whole = _are_single(y_true) and _are_single(y_pred)
        if whole or _are_structured(y_true) or _are_structured(y_pred):
            return share_equal(y_true, y_pred, sample_weight)
        right = _errors(y_true, y_pred)[0] == 0
        return float(np.average(right, weights=check_weights(sample_weight, len(right))))
    if isinstance(y_pred, list) and any(getattr(one, "ndim", 1) > 1 for one in y_pred):
        y_true, y_pred = _pixels(y_true, y_pred)
    true, pred, lengths = paired(y_true, y_pred)
    owner = np.repeat(np.arange(lengths.size), lengths)
    weights = None
    if sample_weight is not None:
        weights = check_weights(sample_weight, lengths.size)[owner]
    if nodes is not None:
        if not nodes.any():
            raise ValueError("y_true weighs nothing: the weights of all nodes are 0")
        if metric == "sequence-accuracy":
            wrong = np.bincount(owner[(true != pred) & (nodes > 0)], minlength=lengths.size)
            return float(np.average(wrong == 0, weights=sample_weight))
        kept = nodes > 0
        weights = nodes[kept] if weights is None else (nodes * weights)[kept]
        true, pred = true[kept], pred[kept]
    if metric == "accuracy":
        return float(np.average(true == pred, weights=weights))
    average, figure = metric.split("-")
    figures = _figures(true, pred, _names(true, pred, labels), average, weights)
    return float(figures[FIGURES.index(figure)])


def _pixels(y_true: Any, y_pred: Any) -> list[list[NDArray[Any]]]:
    """Return pictures as sequences of pixels."""
    both = [[*map(np.asarray, Y)] for Y in (y_true, y_pred)]
    for i, (one, other) in enumerate(zip(*both)):
        if one.shape != other.shape:
            raise ValueError(
                f"y_true[{i}] has the shape {one.shape} and y_pred[{i}] {other.shape}; expected "
                "the same shape in both"
            )
    return [[one.ravel() for one in Y] for Y in both]


def share_equal(y_true: Sequence[Any], y_pred: Sequence[Any], sample_weight: Any = None) -> float:
    """Return the share of examples whose labels, of any form and length, are the same.

    Parameters
    ----------
    y_true, y_pred : sequence of labels
    sample_weight : array of shape (n,), optional

    Returns
    -------
    float

    Raises
    ------
    ValueError
        For another number of labels than of predictions.
    """
    if len(y_true) != len(y_pred):
        raise ValueError(f"y has {len(y_true)} labels; expected {len(y_pred)}, as X has rows")
    right = [equal(a, b) for a, b in zip(y_true, y_pred, strict=True)]
    return float(np.average(right, weights=check_weights(sample_weight, len(right))))


def _errors(
    y_true: Sequence[Labels], y_pred: Sequence[Labels]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Wrong tokens and length of every sequence."""
    true, pred, lengths = paired(y_true, y_pred)
    owner = np.repeat(np.arange(lengths.size), lengths)
    return np.bincount(owner[true != pred], minlength=lengths.size), lengths


def _are_single(labels: Any) -> bool:
    """Return whether every example has one class, a string or a number."""
    if isinstance(labels, (str, dict)) or not hasattr(labels, "__len__"):
        return False  # which is refused
    return all(isinstance(one, str) or not hasattr(one, "__len__") for one in labels)


def _are_structured(labels: Any) -> bool:
    """Return whether labels are compared as a whole: spans, trees, sets, pictures."""
    if isinstance(labels, (str, dict)) or not hasattr(labels, "__len__"):
        return False  # which is refused
    if isinstance(labels, np.ndarray) and labels.dtype != object:
        return labels.ndim > 2
    return any(map(is_whole, labels))


__getattr__ = moved(
    __name__,
    "structsolve.plugins.chain.metrics",
    *("SCHEMES", "make_span_scorer", "span_f1", "spans", "tags_from_spans"),
)
