# CRFsuite's text format: label TAB attribute[:value] ..., an empty line between sequences.
from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from sys import intern
from typing import Any

import numpy as np

from structsolve.io._text import (
    PathLike,
    atomic_write,
    bad_line,
    no_examples,
    number_of,
    reads_file,
    text_lines,
)
from structsolve.plugins.chain.conll import refuse_lengths

Items = list[dict[str, float]]

_COLON = re.compile(r"(?<!\\)((?:\\\\)*):")
_ESCAPED = re.compile(r"\\([\\:])")


def unescape(text: str) -> str:
    r"""Undo `escape`; a backslash before any other character stands for itself.

    Parameters
    ----------
    text : str

    Returns
    -------
    str

    Examples
    --------
    >>> unescape(r"time=10\:30")
    'time=10:30'
    """
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text


def escape(text: str) -> str:
    r"""Protect colons and backslashes as CRFsuite does.

    Parameters
    ----------
    text : str

    Returns
    -------
    str

    Examples
    --------
    >>> print(escape("time=10:30"))
    time=10\:30
    """
    return text.replace("\\", "\\\\").replace(":", "\\:")


@reads_file
def read_crfsuite(path: PathLike, return_weights: bool = False):
    """Read sequences of named features in CRFsuite's format.

    An attribute without a value counts 1; one that appears twice in an item counts twice.
    ``__BOS__`` and ``__EOS__`` are ordinary attributes.

    Parameters
    ----------
    path : path-like
        Plain or gzip file in UTF-8; ``"-"`` is standard input.
    return_weights : bool, default=False
        Also return the weights of the sequences (``@weight:2.5`` on a line of its own).

    Returns
    -------
    X : list of list of dict
        Feature name to value, for `SequenceVectorizer`.
    Y : list of list of str
        The labels.
    weights : list of float or None
        Only with `return_weights`; None if the file has none.

    Raises
    ------
    ValueError
        For malformed attributes, labels and weights; it names the line.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.crfsuite"
    >>> _ = path.write_text("B\\tw=a\\tlen:2\\nI\\tw=b\\n")
    >>> read_crfsuite(path)
    ([[{'w=a': 1.0, 'len': 2.0}, {'w=b': 1.0}]], [['B', 'I']])
    """
    X: list[Items] = []
    Y: list[list[str]] = []
    items: Items = []
    labels: list[str] = []
    weights: list[float] = []
    weight, weighted = 1.0, False
    seen: dict[str, tuple[str, float]] = {}

    def close() -> None:
        nonlocal items, labels, weight
        if items:
            X.append(items)
            Y.append(labels)
            weights.append(weight)
            items, labels = [], []
        weight = 1.0

    for number, line in text_lines(path):
        if not line.strip(" \t"):
            close()
            continue
        fields = line.split("\t")
        label = fields[0]
        if label.startswith("@"):
            if not label.startswith("@weight:") or not return_weights or items:
                expected = (
                    "'@weight:number' before the first item of a sequence"
                    if return_weights
                    else "a label (weights are read with return_weights=True)"
                )
                raise bad_line(path, number, f"the declaration {label!r}", expected)
            weight, weighted = parse_attribute(label, path, number)[1], True
            if weight < 0:
                raise bad_line(path, number, f"the weight {weight}", "one that is not negative")
            continue
        if not label or _COLON.search(label):
            text = f"{label!r} before the first tab"
            raise bad_line(path, number, text, r"a label, with ':' written as '\:'")
        item: dict[str, float] = {}
        for field in fields[1:]:
            if not field:
                continue
            pair = seen.get(field)
            if pair is None:
                pair = seen[field] = parse_attribute(field, path, number)
            name, value = pair
            item[name] = item[name] + value if name in item else value
        items.append(item)
        labels.append(intern(unescape(label)))
    close()
    if not X:
        raise no_examples(path, "lines 'label TAB attribute[:value] ...'")
    return (X, Y, weights if weighted else None) if return_weights else (X, Y)


def write_crfsuite(
    path: PathLike,
    X: Iterable[Iterable[Mapping[str, float] | Iterable[str]]],
    Y: Sequence[Sequence[object]],
) -> None:
    """Write sequences of named features for CRFsuite.

    Parameters
    ----------
    path : path-like
        Replaced in one step.
    X : iterable of sequences
        An item is a dict of feature name to value, or an iterable of names of value 1.
    Y : sequence of label sequences

    Raises
    ------
    ValueError
        For other numbers of labels than of items, empty sequences, labels and names, for tabs and
        line ends in names, and for values that are no finite numbers; it names the example.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.crfsuite"
    >>> write_crfsuite(path, [[{"w=a": 1.0, "len": 2.5}]], [["B"]])
    >>> path.read_text()
    'B\\tw=a\\tlen:2.5\\n'
    """
    sequences = [[*sequence] for sequence in X]
    refuse_lengths(sequences, Y)
    with atomic_write(path) as handle:
        for i, (sequence, labels) in enumerate(zip(sequences, Y, strict=True)):
            handle.write("\n" if i else "")
            if not len(labels):
                raise ValueError(f"example {i}: found an empty sequence, expected items")
            for item, label in zip(sequence, labels, strict=True):
                pairs = item.items() if isinstance(item, Mapping) else ((name, 1) for name in item)
                fields = [escape(str(label)), *(_attribute(i, *pair) for pair in pairs)]
                line = "\t".join(fields)
                tabs = "\n" in line or "\r" in line or line.count("\t") >= len(fields)
                if tabs or not line.strip(" \t") or fields[0][:1] in ("", "@"):
                    raise ValueError(
                        f"example {i}: CRFsuite's format cannot hold an empty label, one that "
                        f"begins with @, or a tab or line end in a name; found {line[:80]!r}"
                    )
                handle.write(line + "\n")


def _attribute(i: int, name: Any, value: Any) -> str:
    """Return an attribute of example i as it is written."""
    number = float(value) if isinstance(value, (Real, np.bool_)) else math.nan
    if not isinstance(name, str) or not name or not math.isfinite(number):
        raise ValueError(
            f"example {i}: found the feature {(name, value)!r:.80}; expected a name (a string) and "
            "a finite number"
        )
    return escape(name) + (f":{number!r}" if number != 1 else "")


def parse_attribute(
    field: str, path: PathLike = "attributes", number: int = 1
) -> tuple[str, float]:
    """Split ``name:value``; the value is 1 if missing.

    Parameters
    ----------
    field : str
        Text from the file, with escaped colons in the name.
    path, number : path-like, int
        File and line, for messages.

    Returns
    -------
    name : str
    value : float

    Raises
    ------
    ValueError
        For an empty name or a value that is no finite number.

    Examples
    --------
    >>> parse_attribute("len:2.5"), parse_attribute("end")
    (('len', 2.5), ('end', 1.0))
    """
    colon = _COLON.search(field)
    if colon is None:
        return intern(unescape(field)), 1.0
    name, text = field[: colon.end() - 1], field[colon.end() :]
    if not text:
        return intern(unescape(name)), 1.0
    try:
        value = number_of(text)
    except ValueError:
        value = math.nan
    if not name or not math.isfinite(value):
        expected = r"name:number, finite, with a ':' inside the name written as '\:'"
        raise bad_line(path, number, f"the attribute {field!r}", expected)
    return intern(unescape(name)), value
