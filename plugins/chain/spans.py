"""Chunk tags (``B-NP I-NP O``) and the spans they describe, in every common scheme.

Tags are read by the rules of conlleval, which read any sequence of tags, broken or not, and agree
with each scheme on valid tags; or strictly, by the rules of a scheme.  All sequences are read at
once, as one flat array with their first positions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsolve.evaluation.tokens import Labels, flatten, token_name
from structsolve.plugins.chain.tag_schemes import MARKS, STRICT, strict_tables
from structsolve.utils.params import check_choice

__all__ = ["SCHEMES", "spans", "tags_from_spans"]

SCHEMES = ("conll", *STRICT)
# The letters that these schemes write for "OBIES".
LETTERS = {"BILOU": "OBILU", "BMES": "OBMES"}
# Numbers of marks in "OBIES".
_B, _I, _E, _S = range(1, 5)


def spans(tags: Labels, suffix: bool = False) -> list[tuple[int, int, str]]:
    """
    Return the spans that one sequence of tags describes, read as conlleval reads them.

    Parameters
    ----------
    tags : sequence of str
        Chunk tags in any of the schemes.
    suffix : bool, default=False
        Whether tags end in the mark, as ``"NP-B"`` does.

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
    return Spans(flat, np.zeros(1, np.intp), types, "tags", suffix).listed(list(types))


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
    scheme : {"IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU", "BIO", "BIOES", "BMES"}
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
    check_choice("scheme", scheme, SCHEMES)
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
    letters = LETTERS.get(scheme, "OBIES")
    tags = [letters[mark] for mark in prefix.tolist()]
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
    suffix : bool, default=False
        Whether tags end in the mark, as ``"NP-B"`` does.

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
        self,
        flat: NDArray[Any],
        starts: NDArray[np.intp],
        types: dict[str, int],
        name: str,
        suffix: bool = False,
    ) -> None:
        self.size = flat.size
        known: dict[Any, int] = {}
        index = np.array([known.setdefault(tag, len(known)) for tag in flat.tolist()])
        marks, codes = [], []
        for code, tag in enumerate(known):
            mark, _, type_ = str(tag).partition("-")
            if suffix:
                type_, _, mark = str(tag).rpartition("-")
            canon = MARKS.get(mark)
            if canon is None:
                example = "'NP-B'" if suffix else "'B-NP'"
                raise ValueError(
                    f"{token_name(name, starts, np.argmax(index == code))} is {tag!r}, not a chunk "
                    "tag: expected 'O', or one of B, I, E, S (or M, L, U), alone or with a type, "
                    f"as in {example}; for other labels use token_report"
                )
            marks.append("OBIES".index(canon))
            codes.append(-1 if canon == "O" else types.setdefault(type_, len(types)))
        self.marks = mark = np.array(marks)[index]
        self.kinds = kind = np.array(codes, dtype=np.intp)[index]
        self.starts = starts[starts < flat.size]
        before, fresh = np.full(flat.size, -1), (mark == _B) | (mark == _S)
        before[1:] = kind[:-1]
        before[self.starts] = -1
        fresh[1:] |= mark[:-1] >= _E
        inside = kind >= 0
        begins = inside & (fresh | (before != kind))
        ends = inside.copy()
        ends[:-1] &= begins[1:] | ~inside[1:]
        self.first, self.last = np.flatnonzero(begins), np.flatnonzero(ends)
        self.kind = kind[self.first]

    def listed(self, names: list[str]) -> list[tuple[int, int, str]]:
        """Return the spans as tuples (start, end, type); `end` is one past the last token.

        Parameters
        ----------
        names : list of str
            The types by their codes.

        Returns
        -------
        list of tuple
        """
        ends = (self.last + 1).tolist()
        return [(a, b, names[k]) for a, b, k in zip(self.first.tolist(), ends, self.kind)]

    def enforce(self, scheme: str) -> NDArray[np.intp]:
        """Read the tags strictly, by the rules of a scheme.

        Parameters
        ----------
        scheme : str
            One of ``SCHEMES[1:]``.

        Returns
        -------
        ndarray of int
            Tokens whose tags break the scheme.
        """
        opens, goes_on, whole = strict_tables(scheme)
        mark, kind = self.marks, self.kinds
        before, same = np.zeros_like(mark), np.zeros(self.size, dtype=np.intp)
        before[1:], same[1:] = mark[:-1], kind[1:] == kind[:-1]
        before[self.starts] = same[self.starts] = 0  # as after an O
        # A run is a token and those that go on from it.  The span of a run begins where one may.
        runs = np.flatnonzero(~goes_on[before, mark, same])
        last = np.append(runs[1:], self.size) - 1
        first = np.flatnonzero(opens[before, mark, same])
        run = np.searchsorted(runs, first, side="right") - 1
        alone = np.append(True, run[1:] != run[:-1])[: first.size]
        first, last = first[alone], last[run[alone]]
        after = (last + 1) % self.size
        open_end = (last + 1 < self.size) & (before[after] > 0)
        good = whole[mark[last], np.where(open_end, mark[after], 0), same[after] * open_end]
        self.first, self.last = first[good], last[good]
        self.kind = kind[self.first]
        written = write_marks(self.first, self.last, self.kind, self.starts, self.size, scheme)
        return np.flatnonzero(mark != written)


def write_marks(
    first: NDArray[np.intp],
    last: NDArray[np.intp],
    kind: NDArray[np.intp],
    starts: NDArray[np.intp],
    size: int,
    scheme: str,
) -> NDArray[np.intp]:
    """Return the mark of every token, when these spans are written in a scheme.

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
    ndarray of int of shape (size,)
        Places in ``"OBIES"``.
    """
    marks = np.zeros(size, dtype=np.intp)
    inside = np.zeros(size + 1, dtype=np.intp)
    inside[first] += 1
    inside[last + 1] -= 1
    marks[np.cumsum(inside[:-1]) > 0] = _I
    # IOB1 and IOE1 mark a border only between two neighbours of the same type.
    twin = (last[:-1] + 1 == first[1:]) & (kind[:-1] == kind[1:]) & ~np.isin(first[1:], starts)
    both_ends = STRICT[scheme] is STRICT["IOBES"]
    if both_ends or STRICT[scheme] is STRICT["IOB2"]:
        marks[first] = _B
    elif scheme == "IOB1":
        marks[first[1:][twin]] = _B
    if both_ends or scheme == "IOE2":
        marks[last] = _E
    elif scheme == "IOE1":
        marks[last[:-1][twin]] = _E
    if both_ends:
        marks[first[first == last]] = _S
    return marks
