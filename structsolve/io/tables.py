# Tables: comma- or tab-separated values, with or without column names.
from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY
from itertools import chain
from typing import Any

import numpy as np

from structsolve.io._text import PathLike, bad_line, no_examples, number_of, reads_file, text_lines
from structsolve.io.reader import Reader
from structsolve.io.select import choose, parse_where

from ..utils.params import parameters

# Default names of label columns; if none exists, the last column.
TARGETS = ("class", "label", "target", "response", "ranking", "y")
MISSING = ("", "?", "na", "nan", "null")
DELIMITERS = ",\t;"


@parameters
class TableReader(Reader):
    """Reads tables with one example per line: features, and one or more columns of labels.

    Columns that are not numbers become one column of 0 and 1 for each value in training.  Labels
    such as ``a>b>c`` are rankings, and become rows of ranks.  Labels that are all numbers become
    numbers, but stay texts if two different ones are the same integer, as ``01`` and ``1`` are.
    Missing values (nothing, ``?``, ``NA``) are NaN.

    Parameters
    ----------
    target : str, optional
        Name of the column of labels, or its number from 0 (negative: from the end); several
        between commas make a matrix, where cells may be empty if others are words.  By default a
        column called class, label, target, response ranking or y, else the last.
    drop : list, str or int, optional
        Names or numbers of columns that are no features.
    group : str or int, optional
        Column of the sequences: the lines of one value, which are neighbours, are a sequence.
    header : bool, optional
        Whether the first line has names; by default if it has no numbers and the second line has,
        or if one of its cells is class, label, target, response or ranking.
    delimiter : str, optional
        By default the most frequent of comma, tab and semicolon in the first line.
    where : str, optional
        ``NAME=VALUE``: the examples in which a column has this value, or ``NAME!=VALUE``.
    rows : str or int, optional
        ``N`` or ``A:B``, of the examples that are left.
    columns : list, optional
        Names or numbers of the features in training, with the values of columns that are not
        numbers; :meth:`fit` finds them.
    labels : list, optional
        The labels of rankings, or the names or numbers of several columns of labels, in the order
        of the columns of y; :meth:`fit` finds them.
    codes : bool, optional
        Whether integers as labels stay texts; :meth:`fit` finds it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "animals.csv"
    >>> _ = path.write_text("legs,colour,class\\n2,red,bird\\n4,grey,cat\\n")
    >>> reader = TableReader()
    >>> X, y = reader.fit(str(path))
    >>> X.tolist(), y.tolist()
    ([[2.0, 0.0, 1.0], [4.0, 1.0, 0.0]], ['bird', 'cat'])
    >>> reader.columns
    [['legs', None], ['colour', ['grey', 'red']]]
    >>> reader.feature_names
    ['legs', 'colour=grey', 'colour=red']
    """

    endings = (".csv", ".tsv", ".data")

    target: str | int | None = None
    _: KW_ONLY
    drop: Any = None
    group: str | int | None = None
    header: bool | None = None
    delimiter: str | None = None
    where: str | None = None
    rows: str | int | None = None
    columns: list[Any] | None = None
    labels: list[Any] | None = None
    codes: bool | None = None

    @property
    def ranks(self) -> bool:
        """Whether labels are rankings, such as ``a>b>c``, in one column."""
        return self.labels is not None and len(_listed(self.target)) < 2

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features in training: of columns, or ``column=value`` for one of 0 and 1."""
        if self.columns is None:
            return None
        texts = (
            [str(name)] if known is None else [f"{name}={value}" for value in known]
            for name, known in self.columns
        )
        return [text for each in texts for text in each]

    @classmethod
    def sniff(cls, path: str, head: bytes) -> bool:
        """Return whether a text begins with a line with commas and without blanks.

        See :meth:`Reader.sniff`. ``head``: how the file begins.
        """
        lines = [line for line in head.split(b"\n")[:3] if line.strip()]
        commas = {line.count(b",") for line in lines}
        # Tokens of CoNLL files may be commas, with blanks beside them.
        return len(commas) == 1 and 0 not in commas and not any(len(x.split()) > 1 for x in lines)

    def fit(self, path: str) -> tuple[Any, Any]:
        """Read training data; store the columns and their values; see :meth:`Reader.fit`.

        Raises
        ------
        ValueError
            For malformed files; it names the line.
        """
        return _read(path, self, True)

    def read(self, path: str) -> tuple[Any, Any]:
        """Read data for a fitted model, with the columns of training; see :meth:`Reader.read`.

        Returns
        -------
        X, y
            ``y`` is None if the file has no column of labels.

        Raises
        ------
        ValueError
            For malformed files; it names the line.
        """
        return _read(path, self, False)

    def raw(self, path: str, columns: list[Any] | int | None = None) -> tuple[Any, Any]:
        """Read columns as they are written, for the steps of a pipeline; store their names.

        Parameters
        ----------
        path : str
        columns : list or int, optional
            Names or numbers of the features, or how many there are; None takes all columns but
            one that is named as labels are.  A pair of a name and a list is a column of words,
            also where all are numbers; if NaN or None is in the list, it stands for missing ones.

        Returns
        -------
        X, y
            ``X`` holds numbers (1 and 0 for True and False), or Python objects where a column
            has words; ``y`` is None if the file has no column of labels.

        Raises
        ------
        ValueError
            For malformed files; it names the line.
        """
        names = range(columns) if isinstance(columns, int) else columns
        pairs = (name if isinstance(name, tuple) else (name, None) for name in names or ())
        self.columns = None if names is None else [list(pair) for pair in pairs]
        return _read(path, self, False, raw=True)


@reads_file
def _read(path: str, reader: TableReader, fit: bool, raw: bool = False) -> tuple[Any, Any]:
    header = reader.header
    if fit:
        reader.labels = None
    if header is None and not fit and reader.columns and not (raw and reader.columns[0][0] == 0):
        header = isinstance(reader.columns[0][0], str)  # as in training
    table = _Table(path, reader.delimiter, header)
    alone = fit and header is None and len(table.rows) == 1
    if alone and not any(map(_is_number, table.rows[0])):
        raise ValueError(
            f"{path}: found one line, of words only; expected rows below a header, or header=False"
        )
    width = len(table.names)
    targets = _targets(reader.target, table, fit, reader.columns)
    dropped = {table.column(name, "drop") for name in _listed(reader.drop)}
    group = None if reader.group is None else table.column(reader.group, "group")
    others = dropped | {*targets} | ({group} if group is not None else set())
    # Rows are selected before numbers are parsed, so parts of large files are fast.
    starts = _starts(table, group)
    values = {}
    if reader.where is not None:
        name = parse_where(reader.where)[0]
        cells = table.cells(table.column(name, "where"))
        values[name] = np.array([cells[i] for i in starts[:-1]])
    kept = choose(path, reader.where, reader.rows, len(starts) - 1, values)
    spans = [range(starts[i], starts[i + 1]) for i in kept.tolist()]
    rows = np.concatenate([np.arange(span.start, span.stop) for span in spans])
    if fit or reader.columns is None:
        reader.columns = [
            [table.names[j], None if raw else _values_of(table, j, rows)]
            for j in range(width)
            if j not in others
        ]
    places = _places(path, reader.columns, table, others)
    if raw:
        reader.columns = [[table.names[j], None] for j, _ in places]
        X = np.concatenate([_cells(path, table, j, known, rows) for j, known in places], axis=1)
    else:
        X = np.concatenate(
            [_features(path, table, j, known, rows) for j, known in places],
            axis=1,
            dtype=np.float64,
        )
    y = _labels(path, table, targets, rows, reader, fit or raw) if targets else None
    if group is None:
        return X, y
    cuts = np.cumsum([len(span) for span in spans])[:-1]
    return np.split(X, cuts), None if y is None else np.split(y, cuts)


class _Table:
    """The cells of a file, the names of its columns (or numbers), and the number of each line."""

    def __init__(self, path: PathLike, delimiter: str | None, header: bool | None) -> None:
        self.path = path
        numbers: list[int] = []
        blank: list[bool] = []

        def lines() -> Iterator[str]:
            for number, line in text_lines(path):
                if line.strip() or numbers:
                    numbers.append(number)
                    blank.append(not line.strip())
                    yield line

        source = lines()
        first = next(source, None)
        if first is None:
            raise no_examples(path, "a line for each example")
        if delimiter is None:
            delimiter = max(DELIMITERS, key=first.count)
        if len(delimiter) != 1:
            raise ValueError(f"delimiter: found {delimiter!r}; expected one character")

        self.rows: list[list[str]] = []
        self.lines: list[int] = []
        # Cells in quotes may have several lines.
        ended = (f"{line}\n" for line in chain([first], source))
        reader = csv.reader(ended, delimiter=delimiter)
        begin = 0
        try:
            for row in reader:
                start, begin = begin, reader.line_num
                if blank[start] and begin == start + 1:
                    continue
                self.rows.append([cell.strip() for cell in row])
                self.lines.append(numbers[start])
                width = len(self.rows[0])
                if len(row) != width:
                    expected = f"{width}, as the first line has"
                    raise bad_line(path, self.lines[-1], f"{len(row)} cells", expected)
        except csv.Error as error:
            raise bad_line(path, numbers[begin], f"no table ({error})", "cells") from None
        if all(not row[-1] for row in self.rows):  # each line ends with a delimiter
            self.rows = [row[:-1] for row in self.rows]
        if header is None:
            header = len(self.rows) > 1 and _is_header(*self.rows[:2])
        self.named = bool(header)
        self.names: list[Any] = self.rows.pop(0) if header else list(range(len(self.rows[0])))
        if header:
            del self.lines[0]
        if len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise bad_line(path, numbers[0], f"the name {twice!r} twice", "names that differ")
        if not self.rows or not self.names:
            raise no_examples(path, "a line for each example")

    def cells(self, column: int) -> list[str]:
        return [row[column] for row in self.rows]

    def column(self, name: Any, what: str) -> int:
        """The position of a column, from its name or number."""
        if name in self.names and (self.named or int(name) >= 0):
            return self.names.index(name)
        try:
            place = int(name)
        except (TypeError, ValueError):
            place = len(self.names)
        if not -len(self.names) <= place < len(self.names):
            raise ValueError(
                f"{self.path}: {what}: found no column {name!r}; expected one of "
                f"{', '.join(map(str, self.names))}"
            )
        return place % len(self.names)


def _is_header(first: Sequence[str], second: Sequence[str]) -> bool:
    words = not any(map(_is_number, first))
    named = any(a.lower() in TARGETS[:-1] and a != b for a, b in zip(first, second, strict=True))
    return words and (named or any(map(_is_number, second)))


def _is_number(cell: str) -> bool:
    try:
        number_of(cell)
    except ValueError:
        return False
    return True


def _listed(given: Any) -> list[Any]:
    if given is None:
        return []
    return list(given) if isinstance(given, (list, tuple)) else str(given).split(",")


def _targets(target: Any, table: _Table, fit: bool, columns: list[Any] | None) -> list[int]:
    """Columns of labels; none if a file for a fitted model lacks them."""
    if target is not None:
        try:
            return [table.column(name, "target") for name in _listed(target)]
        except ValueError:
            if fit:
                raise
            return []
    for name in TARGETS:
        places = [j for j, n in enumerate(table.names) if str(n).lower() == name]
        if len(places) == 1:
            return places
    if not fit and (columns is None or len(table.names) == len(columns)):
        return []
    return [len(table.names) - 1]


def _places(
    path: PathLike, columns: list[Any], table: _Table, others: set[int]
) -> list[tuple[int, list[str] | None]]:
    """Positions of the training features in this table."""
    if table.named and isinstance(columns[0][0] if columns else "", str):
        return [(table.column(name, "features"), known) for name, known in columns]
    free = [j for j in range(len(table.names)) if j not in others]
    if len(free) != len(columns) or not columns:
        raise ValueError(
            f"{path}: found {len(free)} columns of features; expected {len(columns) or 'some'}"
        )
    return [(j, known) for j, (_, known) in zip(free, columns, strict=True)]


def _values_of(table: _Table, column: int, rows: np.ndarray) -> list[str] | None:
    """The values of a column that is not numeric, else None."""
    values = {cell for i in rows.tolist() if (cell := table.rows[i][column]).lower() not in MISSING}
    if all(map(_is_number, values)):
        return None
    if all(_is_number(cell.replace(",", ".")) for cell in values):
        i = next(i for i in rows.tolist() if "," in table.rows[i][column])
        cell = repr(table.rows[i][column])
        raise bad_line(table.path, table.lines[i], cell, "numbers with decimal points")
    return sorted(values)


def _features(
    path: PathLike, table: _Table, column: int, known: list[str] | None, rows: np.ndarray
) -> np.ndarray:
    cells = [table.rows[i][column] for i in rows.tolist()]
    if known is not None:
        return np.array([[cell == value for value in known] for cell in cells], dtype=np.float64)
    numbers = np.empty((len(cells), 1))
    for i, cell in enumerate(cells):
        try:
            numbers[i] = np.nan if cell.lower() in MISSING else number_of(cell)
        except ValueError:
            line = table.lines[rows[i]]
            name = table.names[column]
            raise bad_line(path, line, repr(cell), f"a number in column {name}") from None
    return numbers


def _cells(
    path: PathLike, table: _Table, column: int, known: list[Any] | None, rows: np.ndarray
) -> np.ndarray:
    """A column of numbers, or of words."""
    cells = [table.rows[i][column] for i in rows.tolist()]
    if known is None:
        values = _values_of(table, column, rows)
        if values is None:
            return _features(path, table, column, None, rows)
        if set(values) <= {"False", "True"}:
            numbers = {"False": 0.0, "True": 1.0}
            return np.array([[numbers.get(cell, np.nan)] for cell in cells])
    words = np.empty((len(cells), 1), dtype=object)
    words[:, 0] = cells
    known = known or []
    missing = [value for value in known if value is None or value != value]
    for i, cell in enumerate(cells if missing else ()):
        if cell.lower() in MISSING and cell not in known:
            words[i, 0] = missing[0]
    return words


def _starts(table: _Table, group: int | None) -> list[int]:
    """The first row of each example, and the end."""
    count = len(table.rows)
    if group is None:
        return list(range(count + 1))
    cells = table.cells(group)
    starts = [i for i in range(count) if i == 0 or cells[i] != cells[i - 1]]
    begun: set[str] = set()
    for i in starts:
        if cells[i] in begun:
            again = f"{cells[i]!r} in column {table.names[group]} again, after another value"
            raise bad_line(table.path, table.lines[i], again, "the lines of a sequence together")
        begun.add(cells[i])
    return [*starts, count]


def _labels(
    path: PathLike,
    table: _Table,
    targets: list[int],
    rows: np.ndarray,
    reader: TableReader,
    fit: bool,
) -> np.ndarray:
    if len(targets) > 1:
        _check_names(path, [table.names[j] for j in targets], reader)
    cells = [[table.rows[i][j] for j in targets] for i in rows.tolist()]
    # Of several columns with words, levels of a hierarchy, paths may end before the last.
    levels = len(targets) > 1 and not all(_is_number(cell) for row in cells for cell in row if cell)
    for i, row in zip(rows.tolist(), cells, strict=True):
        if not levels and any(not cell for cell in row):
            raise bad_line(path, table.lines[i], "no label", "one on each line")
    if len(targets) == 1 and all(">" in row[0] for row in cells):
        orders = [[label.strip() for label in row[0].split(">")] for row in cells]
        if reader.labels is None:
            reader.labels = sorted(orders[0])
        for i, order in zip(rows.tolist(), orders, strict=True):
            if sorted(order) != sorted(reader.labels):
                expected = f"all of {', '.join(reader.labels)}, each once"
                raise bad_line(path, table.lines[i], ">".join(order), expected)
        return np.array([[order.index(label) for label in reader.labels] for order in orders])
    labels, numbers = np.array(cells), _numbers(cells)
    if fit:
        reader.codes = numbers.dtype.kind == "i" and any(
            len(np.unique(texts)) > len(np.unique(same))
            for texts, same in zip(labels.T, numbers.T, strict=True)
        )
    labels = labels if reader.codes else numbers
    return labels[:, 0] if len(targets) == 1 else labels


def _check_names(path: PathLike, names: list[Any], reader: TableReader) -> None:
    """Refuse columns of labels other than in training, which y has in their order."""
    known = reader.labels = reader.labels or names
    # Columns without names may have other numbers.
    same = sorted(map(str, names)) == sorted(map(str, known))
    same |= all(isinstance(name, str) for name in (*names, *known))
    if same and names != known and len(names) == len(known):
        raise ValueError(
            f"{path}: target: found the columns {', '.join(map(str, names))}; expected "
            f"{', '.join(map(str, known))}, as in training"
        )


def _numbers(cells: list[list[str]]) -> np.ndarray:
    """Cells as integers or floats, or unchanged if one is neither."""
    for kind in (int, float):
        try:
            return np.array([[number_of(cell, kind) for cell in row] for row in cells], kind)
        except ValueError:
            continue
        except OverflowError:  # integers of so many digits are names
            break
    return np.array(cells)
