"""Spans of chunk tags as metrics, by the rules of conlleval, the script of the CoNLL tasks.

Its scores are the published ones, and real tags are often broken (``O I-NP``); a named scheme
(``"IOB2"``, ...) is strict instead.
"""

from __future__ import annotations

from bisect import bisect_right
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
from structsolve.evaluation.tokens import Labels, paired, token_name
from structsolve.examples.given import listed
from structsolve.plugins.chain.spans import SCHEMES, Spans, spans, tags_from_spans
from structsolve.utils.params import check_choice

__all__ = ["SCHEMES", "SpanReport", "make_span_scorer", "span_f1", "spans", "tags_from_spans"]


class SpanReport(Report):
    """What :func:`span_f1` returns: a report that can list the wrong spans.

    Examples
    --------
    >>> from structsolve.plugins.chain.metrics import span_f1
    >>> report = span_f1([["B-PER", "I-PER", "O"]], [["B-PER", "O", "B-LOC"]])
    >>> print(report.errors([["Ada", "Lovelace", "wrote"]]))
    example 0, 0:2, wrong border: true PER 0:2, predicted PER 0:1
        [Ada Lovelace] wrote
    example 0, 2:3, spurious: true -, predicted LOC 2:3
        Ada Lovelace [wrote]
    """

    _sides: tuple[Spans, Spans]
    _lengths: NDArray[np.intp]
    _types: list[str]
    _ends_only: bool = False

    def errors(self, tokens: Any = None, context: int = 3) -> ErrorList:
        """List the spans of one side that the other lacks.

        A true and a predicted span that overlap are one error, each in at most one: spans with the
        same borders first, then those of the same type, then those with most tokens in common.

        Parameters
        ----------
        tokens : sequence of sequences, optional
            The words of each example, for the contexts.
        context : int, default=3
            Number of words on either side.

        Returns
        -------
        ErrorList
            A list of :class:`~structsolve.evaluation.report.Error` that prints as text; its kinds
            are "missing", "spurious", "wrong class", "wrong border", "wrong class and border".

        Raises
        ------
        ValueError
            For other numbers of tokens than of tags, and fewer than the spans need.
        """
        checked_lengths(self._lengths, tokens, context, self._ends_only)
        true, pred = (side.listed(self._types) for side in self._sides)
        known, guessed = set(true), set(pred)
        true = [span for span in true if span not in guessed]
        pred = [span for span in pred if span not in known]
        partners = _partners(true, pred)
        taken = set(partners.values())
        pairs = [
            (span, pred[partners[i]] if i in partners else None) for i, span in enumerate(true)
        ]
        pairs += [(None, span) for j, span in enumerate(pred) if j not in taken]
        ends = np.cumsum(self._lengths)
        listed = ErrorList()
        for true_span, pred_span in sorted(pairs, key=lambda pair: min(filter(None, pair))):
            both = [span for span in (true_span, pred_span) if span]
            start, end = min(a for a, _, _ in both), max(b for _, b, _ in both)
            example = int(np.searchsorted(ends, start, side="right"))
            offset = int(ends[example] - self._lengths[example])
            true_side, pred_side = (
                s and (s[0] - offset, s[1] - offset, s[2]) for s in (true_span, pred_span)
            )
            place = (example, start - offset, end - offset)
            words = in_context(tokens, *place, context)
            fault = _fault(true_span, pred_span)
            listed.append(Error(*place, fault, true_side, pred_side, words))
        return listed


def _partners(true: list[Any], pred: list[Any]) -> dict[int, int]:
    """Return for wrong true spans the wrong predicted spans that they are taken for."""
    ends = [end for _, end, _ in pred]
    pairs = []
    for i, (start, end, kind) in enumerate(true):
        for j in range(bisect_right(ends, start), len(pred)):
            a, b, other = pred[j]
            if a >= end:
                break
            pairs.append(((a, b) != (start, end), other != kind, max(a, start) - min(b, end), i, j))
    partners: dict[int, int] = {}
    taken = set()
    for *_, i, j in sorted(pairs):
        if i not in partners and j not in taken:
            partners[i] = j
            taken.add(j)
    return partners


def _fault(true: Any, pred: Any) -> str:
    if true is None or pred is None:
        return "spurious" if true is None else "missing"
    wrong = ["class"] * (true[2] != pred[2]) + ["border"] * (true[:2] != pred[:2])
    return f"wrong {' and '.join(wrong)}"


def span_f1(
    y_true: Sequence[Labels],
    y_pred: Sequence[Labels],
    scheme: str = "conll",
    *,
    suffix: bool = False,
    broken: Literal["refuse", "drop"] = "refuse",
) -> SpanReport:
    """
    Compute precision, recall and F1 of whole spans: correct only if start, end and type are.

    Parameters
    ----------
    y_true, y_pred : sequence of sequences
        Chunk tags such as ``"B-NP"``, ``"I-NP"``, ``"O"``, one sequence per example; or spans
        ``(start, end, type)``, to which the other arguments do not apply.
    scheme : {"conll", "IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU", "BIO", "BIOES", "BMES"}
        ``"conll"`` reads tags as conlleval does, in any scheme, and tolerates broken tags.  A named
        scheme is strict: a predicted span counts only if its tags follow the scheme, and the true
        tags must all be valid.
    suffix : bool, default=False
        Whether tags end in the mark, as ``"NP-B"`` does.
    broken : {"refuse", "drop"}
        With a strict scheme, whether broken tags in `y_true` are an error, or read as those of
        `y_pred` are.

    Returns
    -------
    SpanReport
        A dict that prints as a table: ``precision``, ``recall``, ``f1`` (0 for 0 / 0), ``support``
        (true spans), ``predicted``, ``correct``; ``per_type``: the same for each type; ``micro``
        (the same as of all), ``macro`` and ``weighted``: means over types, the latter weighted by
        support.  Its method ``errors(tokens, context=3)`` lists the wrong spans.

    Raises
    ------
    ValueError
        For unequal lengths, a label that is not a chunk tag, or, with a strict scheme, a broken tag
        in `y_true`; it names the example and the position.

    Notes
    -----
    The numbers are those of seqeval's ``classification_report``: by default with
    ``scheme="conll"``, with ``mode="strict"`` for ``scheme=IOB2`` with ``scheme="IOB2",
    broken="drop"``.  With IOE1 seqeval misses spans of one token that a span of the same type
    follows.

    Examples
    --------
    >>> from structsolve.plugins.chain.metrics import span_f1
    >>> report = span_f1([["B-NP", "I-NP", "O", "B-VP"]], [["B-NP", "I-NP", "O", "B-NP"]])
    >>> report["f1"], report["per_type"]["NP"]["precision"], report["per_type"]["VP"]["recall"]
    (0.5, 0.5, 0.0)
    >>> round(report["macro"]["f1"], 3)
    0.333
    """
    check_choice("scheme", scheme, SCHEMES)
    check_choice("broken", broken, ("refuse", "drop"))
    y_true, y_pred = listed(y_true, "y_true"), listed(y_pred, "y_pred")
    are_spans = _are_spans(y_true) or _are_spans(y_pred)
    if are_spans:
        y_true, y_pred = _as_tags(y_true, y_pred)
        scheme, suffix = "conll", False  # spans have no tags that could break a scheme
    true, pred, lengths = paired(y_true, y_pred)
    starts = np.cumsum(lengths) - lengths
    types: dict[str, int] = {}
    truth = Spans(true, starts, types, "y_true", suffix)
    guess = Spans(pred, starts, types, "y_pred", suffix)
    if scheme != "conll":
        wrong = truth.enforce(scheme)
        if wrong.size and broken == "refuse":
            raise ValueError(
                f"{token_name('y_true', starts, wrong[0])} is {true[wrong[0]].item()!r}, which "
                f"{scheme} does not allow there; pass the scheme of your tags, scheme='conll' "
                "to score broken tags as conlleval does, or broken='drop' to leave out their spans"
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
    total = _shares(*counts.sum(axis=0))
    rows = np.array([[row[name] for name in FIGURES] for row in each.values()]).reshape(-1, 3)
    support = np.array([row["support"] for row in each.values()])
    report = SpanReport(
        total,
        per_type=each,
        micro=row_of([total[name] for name in FIGURES], total["support"]),
        macro=row_of(rows.sum(axis=0) / max(len(rows), 1), total["support"]),
        weighted=row_of(support @ rows / max(total["support"], 1), total["support"]),
    )
    report._sides, report._lengths, report._types = (truth, guess), lengths, list(types)
    report._ends_only = are_spans
    return report


def make_span_scorer(
    metric: Literal["f1", "precision", "recall"] = "f1",
    *,
    scheme: str = "conll",
    span_type: str | None = None,
    average: Literal["micro", "macro", "weighted"] = "micro",
    suffix: bool = False,
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
    average : {"micro", "macro", "weighted"}
        Over all spans, or the mean over types.
    suffix : bool, default=False
        As for `span_f1`.

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

    check_choice("scheme", scheme, SCHEMES)
    check_choice("metric", metric, ("f1", "precision", "recall"))
    check_choice("average", average, ("micro", "macro", "weighted"))
    settings = {"scheme": scheme, "span_type": span_type, "average": average, "suffix": suffix}
    return make_scorer(_span_score, metric=metric, **settings)


def _are_spans(Y: Any) -> bool:
    rows = [y for y in Y if isinstance(y, list) and y] if isinstance(Y, (list, tuple)) else []
    return any(isinstance(y[0], tuple) for y in rows)


def _as_tags(y_true: Sequence[Any], y_pred: Sequence[Any]) -> list[list[list[str]]]:
    """Spans of both sides as tags, of any length that holds them."""
    if len(y_true) != len(y_pred):
        raise ValueError(
            f"y_true has {len(y_true)} sequences of spans and y_pred has {len(y_pred)}; expected "
            "the same number"
        )
    tags: list[list[list[str]]] = [[], []]
    for i, pair in enumerate(zip(y_true, y_pred)):
        for name, y in zip(("y_true", "y_pred"), pair):
            if len(y) and isinstance(y[0], str):
                raise ValueError(
                    f"{name}[{i}]: expected spans (start, end, type), as other sequences of "
                    f"y_true or y_pred have, found {y[0]!r}"
                )
        try:
            end = max((b for y in pair for _, b, _ in y), default=1)
            for side, y in zip(tags, pair):
                side.append(tags_from_spans([(a, b, str(c)) for a, b, c in y], end))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"y_true[{i}] and y_pred[{i}]: expected spans (start, end, type) that do not "
                f"overlap ({error})"
            ) from None
    return tags


def _span_score(
    y_true: Any,
    y_pred: Any,
    *,
    metric: str,
    scheme: str,
    span_type: str | None,
    average: str,
    suffix: bool,
    sample_weight: Any = None,
) -> float:
    if sample_weight is not None:
        raise ValueError(
            f"sample_weight is given, but 'span-{metric}' counts spans, which have no weights; "
            "leave it out, or use a score of tokens, such as 'macro-f1'"
        )
    report = span_f1(y_true, y_pred, scheme, suffix=suffix)
    if span_type is not None:
        return report["per_type"].get(span_type, _shares(0, 0, 0))[metric]
    return report[average][metric]


def _shares(correct: int, predicted: int, support: int) -> dict[str, Any]:
    shares = (
        correct / max(predicted, 1),
        correct / max(support, 1),
        2 * correct / max(predicted + support, 1),
    )
    return {**row_of(shares, support), "predicted": int(predicted), "correct": int(correct)}
