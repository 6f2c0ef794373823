"""Segments of users' labels: lists of spans, or chunk tags."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from structsolve.examples.given import check_labels_of
from structsolve.examples.labels import flatten
from structsolve.plugins.chain.spans import LETTERS, Spans, write_marks


class Segments(NamedTuple):
    """Segments of all examples, in order; together they cover all tokens.

    Parameters
    ----------
    begins, ends : ndarray of int64
        First token, and the one behind the last, counted over all examples.
    names : ndarray
        Classes.
    scheme : str or None
        The scheme that the tags follow; None for lists of spans.
    """

    begins: np.ndarray
    ends: np.ndarray
    names: np.ndarray
    scheme: str | None


def read_segments(Y: Any, offsets: np.ndarray, outside: Any) -> Segments:
    """Return the segments of labels; tokens in no span are segments of class `outside`.

    Parameters
    ----------
    Y : sequence
        For each example a list of spans (start, end, class), or chunk tags.
    offsets : ndarray of int64 of shape (n + 1,)
        First token of each example.
    outside : str or int

    Returns
    -------
    Segments

    Raises
    ------
    ValueError
        The message names the example.
    """
    check_labels_of(Y, len(offsets) - 1, "a list with the spans of each x")
    first = next((one for y in Y if np.iterable(y) for one in y), None)
    if isinstance(first, str):
        flat = flatten(Y, offsets)
        types: dict[str, int] = {}
        read = Spans(flat, offsets[:-1], types, "y")
        spans = read.first, read.last + 1
        names = np.array([*types, ""])[read.kind]
        scheme = _scheme_of(read, flat)
    else:
        spans_of = [_checked(y, i, n) for i, (y, n) in enumerate(zip(Y, np.diff(offsets).tolist()))]
        shifts = np.repeat(offsets[:-1], [len(y) for y in spans_of])
        flat_spans = [span for y in spans_of for span in y]
        bounds = np.array([span[:2] for span in flat_spans], np.int64).reshape(-1, 2)
        spans = bounds[:, 0] + shifts, bounds[:, 1] + shifts
        names, scheme = _names_of(flat_spans), None
    if len(names) and (names == outside).any():
        k = int(np.argmax(names == outside))
        i = int(np.searchsorted(offsets, spans[0][k], side="right")) - 1
        raise ValueError(
            f"example {i}: a span has the class {outside!r}, which is that of tokens in no span; "
            "leave these out, or give the structure another name for them by outside="
        )
    return _with_gaps(*spans, names, scheme, offsets, outside)


def _scheme_of(read: Spans, flat: np.ndarray) -> str:
    """Return the first scheme that writes the marks as they are; IOB2 if none does."""
    marks = {tag[:1] for tag in flat.tolist()}
    last = "BILOU" if marks & {"L", "U"} else "BMES" if "M" in marks else "IOBES"
    for scheme in ("IOB2", last, "IOB1", "IOE2", "IOE1"):
        made = write_marks(read.first, read.last, read.kind, read.starts, len(flat), scheme)
        if (made == read.marks).all():
            return scheme
    return "IOB2"


def _checked(y: Any, i: int, n: int) -> list[Any]:
    """Return the spans of one example in order."""
    expected = f"expected spans (start, end, class) with 0 <= start < end <= {n}"
    if isinstance(y, str) or not hasattr(y, "__len__") or not np.iterable(y):
        raise ValueError(f"example {i}: y is {y!r}, expected a list of spans (start, end, class)")
    integers = (int, np.integer)
    for span in y:
        if not isinstance(span, (tuple, list)) or len(span) != 3:
            raise ValueError(f"example {i}: found {span!r}, {expected}")
        start, end, name = span
        if not isinstance(start, integers) or not isinstance(end, integers):
            raise ValueError(f"example {i}: found {span!r}, {expected}")
        if not 0 <= start < end <= n:
            raise ValueError(f"example {i}: found {tuple(span)!r} for {n} tokens, {expected}")
        if not isinstance(name, (str, *integers)):
            raise ValueError(f"example {i}: found {span!r}, expected a string or integer as class")
    ordered = sorted(y, key=lambda span: span[:2])
    for before, span in zip(ordered, ordered[1:]):
        if span[0] < before[1]:
            raise ValueError(
                f"example {i}: the spans {tuple(before)!r} and {tuple(span)!r} overlap; a token "
                "is in one span at most"
            )
    return ordered


def _names_of(spans: list[Any]) -> np.ndarray:
    kinds = {isinstance(name, str) for _, _, name in spans}
    names = np.array([name for _, _, name in spans])
    if len(kinds) > 1 or (len(names) and names.dtype.kind not in "iuU"):
        raise ValueError("y: classes of spans must be all strings or all integers")
    return names


def _with_gaps(
    begins: np.ndarray,
    ends: np.ndarray,
    names: np.ndarray,
    scheme: str | None,
    offsets: np.ndarray,
    outside: Any,
) -> Segments:
    """Add a segment for each token in no span."""
    change = np.zeros(int(offsets[-1]) + 1, np.int64)
    change[begins] += 1
    np.add.at(change, ends, -1)
    gaps = np.flatnonzero(np.cumsum(change[:-1]) == 0)
    if not len(gaps):
        return Segments(begins, ends, names, scheme)
    if len(names) and (names.dtype.kind == "U") != isinstance(outside, str):
        i = int(np.searchsorted(offsets, gaps[0], side="right")) - 1
        raise ValueError(
            f"example {i}: no span covers token {gaps[0] - offsets[i]}, and outside={outside!r} is "
            "no class of the kind of the others; cover all tokens, or give another outside="
        )
    filled = np.full(len(gaps), outside)
    order = np.argsort(np.concatenate([begins, gaps]), kind="stable")
    joined = np.concatenate([names, filled]) if len(names) else filled
    return Segments(
        np.concatenate([begins, gaps])[order],
        np.concatenate([ends, gaps + 1])[order],
        joined[order],
        scheme,
    )


def write_tags(
    codes: np.ndarray, classes: np.ndarray, outside: int, starts: np.ndarray, scheme: str
) -> np.ndarray:
    """Return the chunk tags of encoded labels.

    Parameters
    ----------
    codes : ndarray of int32
        Labels of all examples: c where a segment of class c begins, K + c where it goes on.
    classes : ndarray of str of shape (K,)
    outside : int
        Class of tokens in no span, or -1.
    starts : ndarray of int64
        First token of each example.
    scheme : str

    Returns
    -------
    ndarray of str
    """
    K = len(classes)
    cls = codes % K
    begins = codes < K
    last = np.append(begins[1:], True)
    inside = cls != outside
    first, last = np.flatnonzero(begins & inside), np.flatnonzero(last & inside)
    letters = np.array([*LETTERS.get(scheme, "OBIES")])
    marks = letters[write_marks(first, last, cls[first], starts, len(codes), scheme)]
    dashed = np.array([f"-{name}" if name else "" for name in classes.tolist()])
    return np.where(inside, np.char.add(marks, dashed[cls]), "O")
