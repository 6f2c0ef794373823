"""Chunk tags (``B-NP I-NP O``) and the spans they describe, in every common scheme.

Tags are read by the rules of conlleval, which read any sequence of tags, broken or not, and agree
with each scheme on valid tags.  Strict reading writes the spans in the scheme and compares the
tags.  All sequences are read at once, as one flat array with their first positions.

seqeval (1.2.2) is not used: it agrees with these rules for B, I, E, S and with strict IOB2, IOE2
and IOBES, but not with strict IOB1 and IOE1 nor for L, U and M, and takes five to eight times as
long.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsolve.evaluation.metrics import Labels, flatten, token_name
from structsolve.plugins.chain.tag_schemes import MARKS

__all__ = ["SCHEMES", "spans", "tags_from_spans"]

SCHEMES = ("conll", "IOB1", "IOB2", "IOE1", "IOE2", "IOBES")


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
    >>> from structsolve.plugins.chain.spans import spans
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
    >>> from structsolve.plugins.chain.spans import spans, tags_from_spans
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
    prefix = write_marks(
        bounds[:, 0], bounds[:, 1] - 1, kinds, np.zeros(1, np.intp), length, scheme
    )
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
        wrong = self.marks != write_marks(
            self.first, self.last, self.kind, self.starts, self.size, scheme
        )
        before = np.concatenate([[0], np.cumsum(wrong)])
        good = before[self.last + 1] == before[self.first]
        self.first, self.last, self.kind = self.first[good], self.last[good], self.kind[good]
        return np.flatnonzero(wrong)


def write_marks(
    first: NDArray[np.intp],
    last: NDArray[np.intp],
    kind: NDArray[np.intp],
    starts: NDArray[np.intp],
    size: int,
    scheme: str,
) -> NDArray[np.str_]:
    """Return the prefix of every token, when these spans are written in a scheme.

    Parameters
    ----------
    first, last, kind : ndarray of int of shape (n_spans,)
        First and last token of each span, in order, and a number for its type.
    starts : ndarray of int
        First token of each sequence.
    size : int
        Number of tokens.
    scheme : str

    Returns
    -------
    ndarray of str of shape (size,)
    """
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
