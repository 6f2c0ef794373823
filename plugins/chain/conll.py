# CoNLL columns: one token per line, columns separated by blanks, sentences by empty lines.
from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from sys import intern
from typing import Any

from structsolve.examples.given import check_lengths
from structsolve.io._text import (
    PathLike,
    atomic_write,
    bad_line,
    no_examples,
    reads_file,
    text_lines,
)

Sentence = list[list[str]]

_FIELDS = re.compile(r"[^ \t]+").findall


@reads_file
def read_conll(
    path: PathLike,
    label_column: int | None = -1,
    comment: str | None = None,
    delimiter: str | None = None,
) -> tuple[list[Sentence], list[list[str]] | None]:
    """Read sentences of token columns in the format of the CoNLL shared tasks.

    Lines whose first column is ``-DOCSTART-`` separate sentences, as empty lines do.  Every
    token must have as many columns as the first one.

    Parameters
    ----------
    path : path-like
        Plain or gzip file in UTF-8; ``"-"`` is standard input.
    label_column : int or None, default=-1
        The label's column; negative numbers count from the right. None: no labels.
    comment : str, optional
        Prefix of lines to skip before the first token of a sentence.  By default none are skipped,
        since ``#`` is also a token.
    delimiter : str, optional
        Separator of columns; by default runs of blanks and tabs.

    Returns
    -------
    sentences : list of list of list of str
        ``sentences[i][t]`` are the columns of a token, without the label.
    labels : list of list of str, or None
        None if `label_column` is None.

    Raises
    ------
    ValueError
        For no tokens, uneven columns or a missing label column; it names the line.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.conll"
    >>> _ = path.write_text("He PRP B-NP\\nran VBD B-VP\\n\\nYes UH O\\n")
    >>> X, Y = read_conll(path)
    >>> X[0], Y
    ([['He', 'PRP'], ['ran', 'VBD']], [['B-NP', 'B-VP'], ['O']])
    """
    sentences: list[Sentence] = []
    rows: Sentence = []
    width = first = 0
    for number, line in text_lines(path):
        if delimiter is None:
            fields = _FIELDS(line)
        else:
            fields = line.split(delimiter) if line.strip() else []
        if not fields or fields[0] == "-DOCSTART-":
            if rows:
                sentences.append(rows)
                rows = []
        elif rows or not comment or not line.startswith(comment):
            if len(fields) != width:
                if width:
                    hint = ""
                    if line.startswith("#"):
                        hint = " (is it a comment? then give comment='#', --comment '#'"
                        trees = "; for trees read_conllu, --structure dependency"
                        hint += (trees if ".conllu" in str(path) else "") + ")"
                    expected = f"{width}, as on line {first}{hint}"
                    raise bad_line(path, number, _count(fields), expected)
                width, first = len(fields), number
                if label_column is not None and not -width <= label_column < width:
                    expected = f"enough of them for label column {label_column}"
                    raise bad_line(path, number, _count(fields), expected)
            rows.append([intern(field) for field in fields])
    if rows:
        sentences.append(rows)
    if not sentences:
        raise no_examples(path, "lines of columns, one token each")
    if label_column is None:
        return sentences, None
    return sentences, split_labels(sentences, label_column)


def split_labels(sentences: Iterable[Sentence], column: int = -1) -> list[list[str]]:
    """Take one column out of all sentences, in place.

    Parameters
    ----------
    sentences : iterable of list of list of str
    column : int, default=-1

    Returns
    -------
    list of list of str
        The column of each sentence.
    """
    return [[row.pop(column) for row in rows] for rows in sentences]


def write_conll(
    path: PathLike, sentences: Sequence[Sentence], labels: Sequence[Sequence[object]]
) -> None:
    """Write sentences with the label as their last column.

    Parameters
    ----------
    path : path-like
        Replaced in one step.
    sentences : list of list of list of str
        The columns of each token, without the label.
    labels : list of sequences
        One label per token.

    Raises
    ------
    ValueError
        For unequal lengths, and for columns that could not be read back.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.conll"
    >>> write_conll(path, [[["He", "PRP"]], [["Yes", "UH"]]], [["B-NP"], ["O"]])
    >>> path.read_text()
    'He PRP B-NP\\n\\nYes UH O\\n'
    """
    refuse_lengths(sentences, labels)
    with atomic_write(path) as handle:
        handle.write("\n".join(map(conll_block, sentences, labels)))


def refuse_lengths(X: Sequence[Any], Y: Sequence[Any]) -> None:
    """Refuse other numbers of label sequences, or of labels, than of sequences and their items.

    Parameters
    ----------
    X, Y : sequence of sequences

    Raises
    ------
    ValueError
        The message names the example.
    """
    check_lengths(len(X), len(Y))
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        if len(x) != len(y):
            raise ValueError(
                f"example {i}: found {len(y)} labels, expected {len(x)}, one per token"
            )


def conll_block(rows: Sentence, labels: Sequence[object]) -> str:
    """Return one sentence as text: the columns, then the label.

    Parameters
    ----------
    rows : list of list of str
        The columns of each token.
    labels : sequence
        One label per token.

    Returns
    -------
    str
        One line per token.

    Raises
    ------
    ValueError
        For columns that could not be read back.
    """
    lines = []
    for row, label in zip(rows, labels, strict=True):
        fields = [*row, str(label)]
        line = " ".join(fields)
        if _FIELDS(line) != fields or "\n" in line or fields[0] == "-DOCSTART-":
            raise ValueError(
                f"columns: found {fields}; expected no blanks, no empty columns and no -DOCSTART-"
            )
        lines.append(line + "\n")
    return "".join(lines)


def _count(fields: Sequence[str]) -> str:
    start = " ".join(fields[:4])
    return f"{len(fields)} column{'s' * (len(fields) != 1)} ({start[:60]!r})"
