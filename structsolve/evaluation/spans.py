"""Chunk tags (``B-NP I-NP O``) and the spans they describe, in every common scheme.

Tags are read by the rules of conlleval, which read any sequence of tags, broken or not, and agree
with each scheme on valid tags.  Strict reading writes the spans in the scheme and compares the
tags.  All sequences are read at once, as one flat array with their first positions.

seqeval (1.2.2) is not used: it agrees with these rules for B, I, E, S and with strict IOB2, IOE2
and IOBES, but not with strict IOB1 and IOE1 nor for L, U and M, and takes five to eight times as
long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsolve.structure.tag_schemes import MARKS

__all__ = ["SCHEMES", "spans", "tags_from_spans"]

SCHEMES = ("conll", "IOB1", "IOB2", "IOE1", "IOE2", "IOBES")
Labels = Sequence[Any] | NDArray[Any]


def spans(tags: Labels) -> list[tuple[int, int, str]]:
    """
    Return the spans that one sequence of tags describes, read as conlleval reads them.

    Parameters
    ----------
    tags : sequence of str
        Chunk tags in any of the schemes.

    Returns
    -------
    list of (start, end, type)
        In order; `end` is one past the last token.

    Raises
    ------
    ValueError
        For a label that is not a chunk tag; names the position.

    Examples
    --------
    >>> from structsolve.evaluation.spans import spans
    >>> spans(["B-NP", "I-NP", "I-VP", "O", "S-NP"])
    [(0, 2, 'NP'), (2, 3, 'VP'), (4, 5, 'NP')]
    """
    types: dict[str, int] = {}
    flat, _ = flatten([tags], "tags")
    if not flat.size:
        return []
    read = Spans(flat, np.zeros(1, np.intp), types, "tags")
    names = [list(types)[code] for code in read.kind]
    return list(zip(read.first.tolist(), (read.last + 1).tolist(), names, strict=True))


def tags_from_spans(
    spans: Iterable[tuple[int, int, str]], length: int, scheme: str = "IOB2"
) -> list[str]:
    """
    Return the tags that a scheme writes for these spans: the inverse of the function `spans`.

    Parameters
    ----------
    spans : iterable of (start, end, type)
        Spans that do not overlap; `end` is one past the last token.
    length : int
        Number of tokens.
    scheme : {"IOB1", "IOB2", "IOE1", "IOE2", "IOBES"}
        The scheme to write.

    Returns
    -------
    list of str
        One tag per token.

    Raises
    ------
    ValueError
        For another scheme, and for spans that are empty, overlap or pass the end.

    Examples
    --------
    >>> from structsolve.evaluation.spans import spans, tags_from_spans
    >>> tags_from_spans(spans(["I-NP", "I-NP", "O", "I-VP"]), 4, "IOBES")
    ['B-NP', 'E-NP', 'O', 'S-VP']
    """
    check_scheme(scheme)
    if scheme == "conll":
        raise ValueError(
            f"scheme 'conll' only reads tags; to write them choose one of {', '.join(SCHEMES[1:])}"
        )
    ordered = sorted(spans)
    names = list(dict.fromkeys(kind for _, _, kind in ordered))
    edge = 0
    for start, end, kind in ordered:
        if not edge <= start < end <= length:
            raise ValueError(
                f"span {(start, end, kind)} is empty, overlaps the one before it or "
                f"passes the end of the {length} tokens"
            )
        edge = end
    bounds = np.array([span[:2] for span in ordered], dtype=np.intp).reshape(-1, 2)
    kinds = np.array([names.index(span[2]) for span in ordered], dtype=np.intp)
    prefix = _write(bounds[:, 0], bounds[:, 1] - 1, kinds, np.zeros(1, np.intp), length, scheme)
    tags: list[str] = prefix.tolist()
    for start, end, kind in ordered:
        tags[start:end] = [f"{mark}-{kind}" if kind else mark for mark in tags[start:end]]
    return tags


class Spans:
    """Spans of flat tags.

    Parameters
    ----------
    flat : ndarray of shape (n_tokens,)
        Tags of all sequences, at least one.
    starts : ndarray of int
        First token of each sequence.
    types : dict of str to int
        Code of each type; new types are added.
    name : str
        Name of the tags in messages.

    Attributes
    ----------
    first, last : ndarray of int, shape (n_spans,)
        First and last token of each span.
    kind : ndarray of int, shape (n_spans,)
        Code of its type.

    Raises
    ------
    ValueError
        For a label that is not a chunk tag; names the example and the position.
    """

    def __init__(
        self, flat: NDArray[Any], starts: NDArray[np.intp], types: dict[str, int], name: str
    ) -> None:
        self.size = flat.size
        tags, index = np.unique(flat, return_inverse=True)
        marks, codes = [], []
        for code, tag in enumerate(tags.tolist()):
            prefix, _, type_ = str(tag).partition("-")
            canon = MARKS.get(prefix)
            if canon is None:
                raise ValueError(
                    f"{token_name(name, starts, np.argmax(index == code))} is {tag!r}, not a chunk "
                    "tag: expected 'O', or one of B, I, E, S (or M, L, U), alone or with a type, "
                    "as in 'B-NP'; for other labels use token_report"
                )
            marks.append(canon)
            codes.append(-1 if canon == "O" else types.setdefault(type_, len(types)))
        self.marks = mark = np.array(marks)[index]
        kind = np.array(codes, dtype=np.intp)[index]
        self.starts = starts[starts < flat.size]
        before, fresh = np.full(flat.size, -1), np.isin(mark, ("B", "S"))
        before[1:] = kind[:-1]
        before[self.starts] = -1
        fresh[1:] |= np.isin(mark[:-1], ("E", "S"))
        inside = kind >= 0
        begins = inside & (fresh | (before != kind))
        ends = inside.copy()
        ends[:-1] &= begins[1:] | ~inside[1:]
        self.first, self.last = np.flatnonzero(begins), np.flatnonzero(ends)
        self.kind = kind[self.first]

    def enforce(self, scheme: str) -> NDArray[np.intp]:
        """Drop the spans that `scheme` would write differently.

        Parameters
        ----------
        scheme : str
            One of ``SCHEMES[1:]``.

        Returns
        -------
        ndarray of int
            Tokens whose tags break the scheme.
        """
        wrong = self.marks != _write(
            self.first, self.last, self.kind, self.starts, self.size, scheme
        )
        before = np.concatenate([[0], np.cumsum(wrong)])
        good = before[self.last + 1] == before[self.first]
        self.first, self.last, self.kind = self.first[good], self.last[good], self.kind[good]
        return np.flatnonzero(wrong)


def _write(
    first: NDArray[np.intp],
    last: NDArray[np.intp],
    kind: NDArray[np.intp],
    starts: NDArray[np.intp],
    size: int,
    scheme: str,
) -> NDArray[np.str_]:
    """The prefix of every token, when these spans are written in `scheme`."""
    marks = np.full(size, "O")
    inside = np.zeros(size + 1, dtype=np.intp)
    inside[first] += 1
    inside[last + 1] -= 1
    marks[np.cumsum(inside[:-1]) > 0] = "I"
    # IOB1 and IOE1 mark a border only between two neighbours of the same type.
    twin = (last[:-1] + 1 == first[1:]) & (kind[:-1] == kind[1:]) & ~np.isin(first[1:], starts)
    if scheme in ("IOB2", "IOBES"):
        marks[first] = "B"
    elif scheme == "IOB1":
        marks[first[1:][twin]] = "B"
    if scheme in ("IOE2", "IOBES"):
        marks[last] = "E"
    elif scheme == "IOE1":
        marks[last[:-1][twin]] = "E"
    if scheme == "IOBES":
        marks[first[first == last]] = "S"
    return marks


def check_scheme(scheme: str) -> None:
    """Refuse unknown schemes.

    Parameters
    ----------
    scheme : str

    Raises
    ------
    ValueError
        If it is none of `SCHEMES`.
    """
    if scheme not in SCHEMES:
        raise ValueError(f"scheme is {scheme!r}; choose one of {', '.join(SCHEMES)}")


def token_name(name: str, starts: NDArray[np.intp], position: Any) -> str:
    """Name a token of flat labels for messages.

    Parameters
    ----------
    name : str
        Name of the argument.
    starts : ndarray of int
        First token of each sequence.
    position : int
        Position of the token among all tokens.

    Returns
    -------
    str
        A name such as ``y_true[2][5]``.
    """
    example = int(np.searchsorted(starts, position, side="right")) - 1
    return f"{name}[{example}][{int(position) - int(starts[example])}]"


def flatten(sequences: Sequence[Labels], name: str) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Put all labels into one array.

    Parameters
    ----------
    sequences : sequence of sequences of str or int
    name : str
        Name of the argument in messages.

    Returns
    -------
    flat : ndarray of str or of int64, shape (n_tokens,)
    lengths : ndarray of int, shape (n_sequences,)

    Raises
    ------
    ValueError
        For anything but a sequence of sequences, or mixed strings and numbers; names the position.
    """
    if isinstance(sequences, str) or not hasattr(sequences, "__iter__"):
        raise ValueError(
            f"{name} is a {type(sequences).__name__}; expected a list of label "
            "sequences, one per example"
        )
    sequences = list(sequences)
    for i, one in enumerate(sequences):
        if (
            isinstance(one, (str, bytes, dict))
            or not hasattr(one, "__len__")
            or getattr(one, "ndim", 1) != 1
        ):
            shown = repr(one) if len(repr(one)) < 60 else f"a {type(one).__name__}"
            raise ValueError(
                f"{name}[{i}] is {shown}; expected a sequence of labels.  Wrap a single sequence "
                "as [labels]; for one label per example use sklearn.metrics"
            )
    lengths = np.fromiter(map(len, sequences), dtype=np.intp, count=len(sequences))
    flat = list(
        chain.from_iterable(
            one.tolist() if isinstance(one, np.ndarray) else one for one in sequences
        )
    )
    text = [isinstance(label, str) for label in flat]
    if all(text):
        return np.array(flat, dtype=np.str_), lengths
    if not any(text):
        try:
            plain = np.array(flat)
            with np.errstate(invalid="ignore"):
                whole = plain.astype(np.int64)
            if plain.dtype.kind in "biuf" and plain.ndim == 1 and (whole == plain).all():
                return whole, lengths
        except (TypeError, ValueError, OverflowError):
            pass

    def odd(label: Any) -> bool:
        if isinstance(label, str):
            return not text[0]
        return text[0] or not isinstance(label, (int, float, np.number)) or label != np.floor(label)

    position = next((i for i, label in enumerate(flat) if odd(label)), 0)
    expected = "a string, like the other labels" if text[0] else "strings only or integers only"
    raise ValueError(
        f"{token_name(name, np.cumsum(lengths) - lengths, position)} is {flat[position]!r}; "
        f"expected {expected}"
    )
