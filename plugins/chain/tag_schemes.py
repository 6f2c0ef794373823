"""Chunk tags (``B-PER I-PER O``) by the name of a scheme: allowed neighbours, strict spans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from structsolve.utils.params import check_choice

#: Prefixes by function: BILOU writes E and S as L and U, BMES writes I as M.
MARKS = {"O": "O", "B": "B", "I": "I", "M": "I", "E": "E", "L": "E", "S": "S", "U": "S"}


class Rules(NamedTuple):
    """The marks beside O, and which of them continue a span of the same type.

    Parameters
    ----------
    marks : str
    goes_on : dict of str to str
        For marks that never open a span: the marks required of the tag before, of the same type.
    stays_open : dict of str to str
        For marks that never close a span: the marks required of the next tag, of the same type.
    """

    marks: str
    goes_on: dict[str, str]
    stays_open: dict[str, str]


_BIO = Rules("BI", {"I": "BI"}, {})
_BILOU = Rules("BIES", {"I": "BI", "E": "BI"}, {"B": "IE", "I": "IE"})
RULES = {
    "BIO": _BIO,
    "IOB2": _BIO,
    "IOB1": Rules("BI", {"B": "BI"}, {}),
    "IOE1": Rules("IE", {}, {"E": "IE"}),
    "IOE2": Rules("IE", {}, {"I": "IE"}),
    "BILOU": _BILOU,
    "IOBES": _BILOU,
    "BIOES": _BILOU,
    "BMES": _BILOU,
}

#: Two neighbours (``.`` is any mark) of the same type (``=``), of two types (``!``) or of any: at
#: the second a span may begin, the span goes on, or the span before it was whole.  These are the
#: rules of seqeval's strict mode; its IOE1 lacks the last three beginnings and so misses spans of
#: one token that others of their type follow.
STRICT = {
    "IOB1": ("OI* II! BI* IB= BB=", "BI= II=", "II! IO* IB* BO* BI! BB="),
    "IOB2": (".B*", "BI= II=", "IO* II! IB* BO* BI! BB*"),
    "IOE1": ("OI* II! EI* EE= OE* IE! EE!", "II= IE=", "II! IO* IE! EI= EE="),
    "IOE2": ("OI* OE* EI* EE* II! IE!", "IE= II=", "E.*"),
    "IOBES": (".B* .S*", "BI= BE= II= IE=", "S.* E.*"),
}
STRICT |= {"BIO": STRICT["IOB2"], **dict.fromkeys(("BILOU", "BIOES", "BMES"), STRICT["IOBES"])}


def strict_tables(scheme: str) -> np.ndarray:
    """Return the rules of a scheme's strict spans by the numbers of marks in ``"OBIES"``.

    Parameters
    ----------
    scheme : str
        A key of :data:`STRICT`.

    Returns
    -------
    ndarray of bool of shape (3, 5, 5, 2)
        Begins, goes on, was whole: by mark, next mark, and whether their types are the same.
    """
    tables = np.zeros((3, 5, 5, 2), dtype=bool)
    for table, rules in zip(tables, STRICT[scheme], strict=True):
        for first, second, types in map(tuple, rules.split()):
            one, two = ("OBIES" if mark == "." else mark for mark in (first, second))
            for mark in one:
                for after in two:
                    place = table["OBIES".index(mark), "OBIES".index(after)]
                    place[{"=": [1], "!": [0], "*": [0, 1]}[types]] = True
    return tables


def forbidden_pairs(tags: Iterable[Any], scheme: str) -> list[tuple[Any, Any]]:
    """Return the pairs of neighbours that a scheme of chunk tags forbids.

    Parameters
    ----------
    tags : sequence of str
        All tags, such as ``model.classes_``.
    scheme : {"BIO", "IOB1", "IOB2", "IOE1", "IOE2", "BILOU", "IOBES", "BIOES", "BMES"}
        ``"BIO"`` and ``"IOB2"`` are one scheme, and so are the last four.

    Returns
    -------
    list of (tag, next tag)
        None as the first tag stands for the start of a sequence, as the second for its end.  A
        sequence is valid if it has none of these pairs.

    Raises
    ------
    ValueError
        For an unknown scheme, and a tag that is not in the scheme.

    Examples
    --------
    >>> from structsolve.plugins.chain.tag_schemes import forbidden_pairs
    >>> forbidden_pairs(["B-PER", "I-PER", "O"], "BIO")
    [(None, 'I-PER'), ('O', 'I-PER')]
    """
    check_choice("scheme", scheme, RULES)
    rules = RULES[scheme]
    tags = list(tags)
    read: dict[Any, tuple[str, str]] = {None: ("", "")}
    for tag in tags:
        prefix, _, kind = tag.partition("-") if isinstance(tag, str) else ("", "", "")
        mark = MARKS.get(prefix, "")
        if not mark or mark not in rules.marks + "O":
            raise ValueError(
                f"found the label {tag!r}, which is no tag of scheme {scheme!r}; expected 'O' or "
                f"one of {', '.join(rules.marks)} with a type, as in "
                f"'{rules.marks[0]}-PER'; name the scheme of your tags, or give pairs"
            )
        read[tag] = ("O", "") if mark == "O" else (mark, kind)

    def broken(first: Any, second: Any) -> bool:
        (mark, kind), (after, next_kind) = read[first], read[second]
        before = rules.goes_on.get(after)
        if before is not None and (not mark or mark not in before or kind != next_kind):
            return True
        behind = rules.stays_open.get(mark)
        return behind is not None and (not after or after not in behind or kind != next_kind)

    ends = [*tags, None]
    return [
        (first, second)
        for first in [None, *tags]
        for second in ends
        if (first, second) != (None, None) and broken(first, second)
    ]
