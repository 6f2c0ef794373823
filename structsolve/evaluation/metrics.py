"""Metrics of predicted label sequences: by token, by sequence, and by span.

Every function takes two lists of label sequences, truth first.  The spans follow conlleval, the
script of the CoNLL shared tasks, because its scores are the published ones and because real tags
are often broken (``O I-NP``); a named scheme (``"IOB2"``, ...) is strict instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from structsolve.evaluation.report import Report
from structsolve.evaluation.spans import (
    SCHEMES,
    Labels,
    Spans,
    check_scheme,
    flatten,
    spans,
    tags_from_spans,
    token_name,
)
from structsolve.utils.values import equal, is_flat

__all__ = [
    "SCHEMES",
    "hamming_loss",
    "make_span_scorer",
    "make_token_scorer",
    "sequence_error",
    "span_f1",
    "spans",
    "tags_from_spans",
    "token_report",
]


def token_report(
    y_true: Sequence[Labels], y_pred: Sequence[Labels], labels: Sequence[Any] | None = None
) -> Report:
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
    Report
        A dict that prints as a table: ``accuracy``, ``support`` (the number of tokens),
        ``per_class`` (label to ``precision``, ``recall``, ``f1`` and ``support``), and the averages
        ``macro``, ``micro`` and ``weighted`` of the same metrics.  Ratios of 0 / 0 are 0.

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
    from sklearn.metrics import precision_recall_fscore_support  # heavy

    true, pred, _ = _paired(y_true, y_pred)
    if labels is None:
        names = np.unique(np.concatenate([true, pred]))
    else:
        names = np.asarray(labels)
        if (
            names.ndim != 1
            or not names.size
            or (names.dtype.kind == "U") != (true.dtype.kind == "U")
        ):
            raise ValueError(
                f"labels is {labels!r}; expected one or more labels of the same type as in y_true, "
                f"such as {true[0].item()!r}"
            )

    def figures(average: Any) -> Any:
        return precision_recall_fscore_support(
            true, pred, labels=names, average=average, zero_division=0
        )

    table = np.column_stack(figures(None))
    averages = {}
    for average in ("macro", "micro", "weighted"):
        precision, recall, f1, _ = figures(average)
        averages[average] = _row(precision, recall, f1, table[:, 3].sum())
    rows = zip(names.tolist(), table.tolist(), strict=True)
    return Report(
        accuracy=float(np.mean(true == pred)),
        support=int(true.size),
        per_class={name: _row(*row) for name, row in rows},
        **averages,
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
    if average not in ("token", "sequence", "count"):
        raise ValueError(f"average is {average!r}; choose 'token', 'sequence' or 'count'")
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


def span_f1(y_true: Sequence[Labels], y_pred: Sequence[Labels], scheme: str = "conll") -> Report:
    """
    Compute precision, recall and F1 of whole spans: correct only if start, end and type are.

    Parameters
    ----------
    y_true, y_pred : sequence of sequences of str
        Chunk tags such as ``"B-NP"``, ``"I-NP"``, ``"O"``, one sequence per example.
    scheme : {"conll", "IOB1", "IOB2", "IOE1", "IOE2", "IOBES"}
        ``"conll"`` reads tags as conlleval does, in any scheme, and tolerates broken tags.  A named
        scheme is strict: a predicted span counts only if its tags follow the scheme, and the true
        tags must all be valid.

    Returns
    -------
    Report
        A dict that prints as a table: ``precision``, ``recall``, ``f1`` (0 for 0 / 0), ``support``
        (true spans), ``predicted``, ``correct``, and ``per_type``: the same for each type.

    Raises
    ------
    ValueError
        For unequal lengths, a label that is not a chunk tag, or, with a strict scheme, a broken tag
        in `y_true`; it names the example and the position.

    Examples
    --------
    >>> from structsolve.evaluation.metrics import span_f1
    >>> report = span_f1([["B-NP", "I-NP", "O", "B-VP"]], [["B-NP", "I-NP", "O", "B-NP"]])
    >>> report["f1"], report["per_type"]["NP"]["precision"], report["per_type"]["VP"]["recall"]
    (0.5, 0.5, 0.0)
    """
    check_scheme(scheme)
    true, pred, lengths = _paired(y_true, y_pred)
    starts = np.cumsum(lengths) - lengths
    types: dict[str, int] = {}
    truth, guess = Spans(true, starts, types, "y_true"), Spans(pred, starts, types, "y_pred")
    if scheme != "conll":
        broken = truth.enforce(scheme)
        if broken.size:
            raise ValueError(
                f"{token_name('y_true', starts, broken[0])} is {true[broken[0]].item()!r}, which "
                f"{scheme} does not allow there; pass the scheme of your tags, or scheme='conll' "
                "to score broken tags as conlleval does"
            )
        guess.enforce(scheme)
    # Spans of one side do not overlap, so a span is known by its start.
    end, kind = np.full((2, true.size), -1)
    end[truth.first], kind[truth.first] = truth.last, truth.kind
    hit = (end[guess.first] == guess.last) & (kind[guess.first] == guess.kind)
    counts = np.stack(
        [
            np.bincount(each, minlength=len(types))
            for each in (guess.kind[hit], guess.kind, truth.kind)
        ],
        axis=1,
    )
    each = {name: _shares(*counts[c]) for name, c in sorted(types.items()) if counts[c].any()}
    return Report(_shares(*counts.sum(axis=0)), per_type=each)


def make_span_scorer(
    metric: Literal["f1", "precision", "recall"] = "f1",
    *,
    scheme: str = "conll",
    span_type: str | None = None,
) -> Callable[..., float]:
    """
    Make a scikit-learn scorer of spans, for ``GridSearchCV(scoring=...)`` and ``cross_validate``.

    Parameters
    ----------
    metric : {"f1", "precision", "recall"}
        The metric of `span_f1` to return.
    scheme : str
        As for `span_f1`.
    span_type : str, optional
        Score this type of span only.

    Returns
    -------
    callable
        ``scorer(estimator, X, Y) -> float``; it can be pickled.

    Examples
    --------
    >>> from structsolve.evaluation.metrics import make_span_scorer
    >>> from sklearn.base import BaseEstimator
    >>> class Echo(BaseEstimator):
    ...     def fit(self, X, Y): return self
    ...     def predict(self, X): return X
    >>> make_span_scorer("recall")(Echo(), [["B-A", "O"]], [["B-A", "B-A"]])
    0.5
    """
    from sklearn.metrics import make_scorer  # heavy

    check_scheme(scheme)
    if metric not in ("f1", "precision", "recall"):
        raise ValueError(f"metric is {metric!r}; choose 'f1', 'precision' or 'recall'")
    return make_scorer(_span_score, metric=metric, scheme=scheme, span_type=span_type)


def make_token_scorer(
    metric: str = "accuracy", *, labels: Sequence[Any] | None = None
) -> Callable[..., float]:
    """
    Make a scikit-learn scorer of tokens or whole sequences, or of rows for one class a row.

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
        ``scorer(estimator, X, Y) -> float``, greater is better; it can be pickled.

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

    if metric not in TOKEN_METRICS:
        raise ValueError(f"metric is {metric!r}; choose one of {', '.join(TOKEN_METRICS)}")
    return make_scorer(_token_score, metric=metric, labels=labels)


TOKEN_METRICS: tuple[str, ...] = ("accuracy", "sequence-accuracy")
for _average in ("macro", "micro", "weighted"):
    TOKEN_METRICS += tuple(f"{_average}-{figure}" for figure in ("f1", "precision", "recall"))


def _token_score(y_true: Any, y_pred: Any, metric: str, labels: Sequence[Any] | None) -> float:
    if getattr(y_pred, "ndim", 0) == 1 and y_pred.dtype != object:
        y_true, y_pred = ([[one] for one in y] for y in (y_true, y_pred))  # a class a row
    if metric == "sequence-accuracy":
        single = _are_single(y_true) and _are_single(y_pred)
        if single or _are_structured(y_true) or _are_structured(y_pred):
            if len(y_true) != len(y_pred):
                raise ValueError(
                    f"y has {len(y_true)} labels; expected {len(y_pred)}, as X has rows"
                )
            return float(np.mean([equal(a, b) for a, b in zip(y_true, y_pred, strict=True)]))
        return 1.0 - sequence_error(y_true, y_pred)
    if metric == "accuracy":
        return 1.0 - hamming_loss(y_true, y_pred)
    average, figure = metric.split("-")
    return token_report(y_true, y_pred, labels)[average][figure]


def _span_score(y_true: Any, y_pred: Any, metric: str, scheme: str, span_type: str | None) -> float:
    report = span_f1(y_true, y_pred, scheme)
    if span_type is not None:
        report = report["per_type"].get(span_type, _shares(0, 0, 0))
    return report[metric]


def _row(precision: float, recall: float, f1: float, support: float, /) -> dict[str, Any]:
    return {
        "precision": float(precision),
        "recall": float(recall),
        "f1": float(f1),
        "support": int(support),
    }


def _shares(correct: int, predicted: int, support: int) -> dict[str, Any]:
    correct, predicted, support = int(correct), int(predicted), int(support)
    return {
        **_row(
            correct / max(predicted, 1),
            correct / max(support, 1),
            2 * correct / max(predicted + support, 1),
            support,
        ),
        "predicted": predicted,
        "correct": correct,
    }


def _errors(
    y_true: Sequence[Labels], y_pred: Sequence[Labels]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Wrong tokens and length of every sequence."""
    true, pred, lengths = _paired(y_true, y_pred)
    owner = np.repeat(np.arange(lengths.size), lengths)
    return np.bincount(owner[true != pred], minlength=lengths.size), lengths


def _are_single(labels: Any) -> bool:
    """Return whether every example has one class, a string or a number."""
    if isinstance(labels, (str, dict)) or not hasattr(labels, "__len__"):
        return False  # which is refused
    return all(isinstance(one, str) or not hasattr(one, "__len__") for one in labels)


def _are_structured(labels: Any) -> bool:
    """Return whether labels are no sequences of strings or numbers: spans, trees, pictures."""
    if isinstance(labels, (str, dict)) or not hasattr(labels, "__len__"):
        return False  # which is refused
    if isinstance(labels, np.ndarray) and labels.dtype != object:
        return labels.ndim > 2
    kinds = (list, tuple, dict, np.ndarray)
    return any(isinstance(one, kinds) and not is_flat(one) for one in labels)


def _paired(
    y_true: Sequence[Labels], y_pred: Sequence[Labels]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.intp]]:
    """Both sides as flat arrays of tokens, and the lengths that they share."""
    true, lengths = flatten(y_true, "y_true")
    pred, others = flatten(y_pred, "y_pred")
    if lengths.size != others.size:
        raise ValueError(
            f"y_true has {lengths.size} sequences and y_pred has {others.size}; "
            "expected the same number"
        )
    uneven = np.flatnonzero(lengths != others)
    if uneven.size:
        i = uneven[0]
        raise ValueError(
            f"y_true[{i}] has {lengths[i]} labels and y_pred[{i}] has {others[i]}; expected the "
            "same number in both"
        )
    if not true.size:
        raise ValueError("y_true holds no labels; there is nothing to score")
    if (true.dtype.kind == "U") != (pred.dtype.kind == "U"):
        raise ValueError(
            f"y_true holds labels such as {true[0].item()!r} and y_pred such as "
            f"{pred[0].item()!r}; expected strings in both or integers in both"
        )
    return true, pred, lengths
