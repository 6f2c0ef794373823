"""Spans of chunk tags as metrics, by the rules of conlleval, the script of the CoNLL tasks.

Its scores are the published ones, and real tags are often broken (``O I-NP``); a named scheme
(``"IOB2"``, ...) is strict instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from structsolve.evaluation.metrics import Labels, paired, token_name
from structsolve.evaluation.report import Report, row_of
from structsolve.plugins.chain.spans import SCHEMES, Spans, check_scheme, spans, tags_from_spans

__all__ = ["SCHEMES", "make_span_scorer", "span_f1", "spans", "tags_from_spans"]


def span_f1(y_true: Sequence[Labels], y_pred: Sequence[Labels], scheme: str = "conll") -> Report:
    """
    Compute precision, recall and F1 of whole spans: correct only if start, end and type are.

    Parameters
    ----------
    y_true, y_pred : sequence of sequences
        Chunk tags such as ``"B-NP"``, ``"I-NP"``, ``"O"``, one sequence per example; or spans
        ``(start, end, type)``.
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
    >>> from structsolve.plugins.chain.metrics import span_f1
    >>> report = span_f1([["B-NP", "I-NP", "O", "B-VP"]], [["B-NP", "I-NP", "O", "B-NP"]])
    >>> report["f1"], report["per_type"]["NP"]["precision"], report["per_type"]["VP"]["recall"]
    (0.5, 0.5, 0.0)
    """
    check_scheme(scheme)
    if isinstance(y_true, list) and isinstance(y_pred, list) and _are_spans(y_true + y_pred):
        # Any length that holds the spans of both.
        ends = [max((s[1] for s in (*a, *b)), default=1) for a, b in zip(y_true, y_pred)]
        y_true, y_pred = (
            [tags_from_spans([(a, b, str(c)) for a, b, c in y], n) for y, n in zip(Y, ends)]
            for Y in (y_true, y_pred)
        )
    true, pred, lengths = paired(y_true, y_pred)
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
    >>> from structsolve.plugins.chain.metrics import make_span_scorer
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


def _are_spans(Y: list[Any]) -> bool:
    return any(isinstance(y, list) and y and isinstance(y[0], tuple) for y in Y)


def _span_score(y_true: Any, y_pred: Any, metric: str, scheme: str, span_type: str | None) -> float:
    report = span_f1(y_true, y_pred, scheme)
    if span_type is not None:
        report = report["per_type"].get(span_type, _shares(0, 0, 0))
    return report[metric]


def _shares(correct: int, predicted: int, support: int) -> dict[str, Any]:
    shares = (
        correct / max(predicted, 1),
        correct / max(support, 1),
        2 * correct / max(predicted + support, 1),
    )
    return {
        **row_of(shares, support),
        "predicted": int(predicted),
        "correct": int(correct),
    }
