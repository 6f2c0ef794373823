# Streams of rows of very many classes: svmlight, and the extreme classification repository's text.
from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from structsolve.io._text import LINE_LIMIT, PathLike, bad_line, no_examples, open_binary
from structsolve.io.reader import Reader
from structsolve.plugins.extreme._pairs import (
    FLOAT_FAULT,
    HIGH_FAULT,
    LABEL_FAULT,
    LOW_FAULT,
    PAIR_FAULT,
    parse,
)
from structsolve.utils.params import parameters

# Bytes to read and parse at a time.
_BLOCK = 2**22
# Pairs after which a chunk ends even if it has fewer rows: 256 MiB of columns and values.
_PAIRS = 2**25
_LARGEST = 2**31 - 1

LABELS = ("each", "one", "ignore")


def read_svmlight_chunks(
    path: PathLike,
    rows: int = 2**14,
    n_features: int | None = None,
    zero_based: bool | None = None,
    labels: str = "each",
) -> Iterator[tuple[sparse.csr_matrix, np.ndarray]]:
    """Read rows with one or several classes in chunks, for ``partial_fit``.

    Lines are ``label,label column:value column:value ...``; the labels may be missing.  A first
    line of three whole numbers, ``rows features labels``, is the header of the extreme
    classification repository's format: columns then count from 0, and lines without labels and
    empty lines are rows.  Text after ``#`` is ignored.

    Memory holds one chunk and four megabytes of text.

    Parameters
    ----------
    path : path-like
        Plain or gzip file; ``"-"`` is standard input.
    rows : int, default=16384
        Lines per chunk; fewer for very long lines.
    n_features : int, optional
        The number of columns of every chunk; by default the header's.  Without a header, a chunk is
        as wide as the largest column so far: set the number if chunks must agree.
    zero_based : bool, optional
        Columns count from 0 instead of 1; by default only with a header.
    labels : {"each", "one", "ignore"}, default="each"
        A row for each label of a line; exactly one label on each line; or one row per line with an
        empty `y`, for prediction.

    Yields
    ------
    X : csr_matrix of float32 of shape (n, n_features)
        Indices are int32, sorted in each row.
    y : ndarray of int64 of shape (n,)

    Raises
    ------
    ValueError
        For malformed lines: it names file and line, what was found and what was expected.

    See Also
    --------
    read_extreme : All rows at once.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.txt"
    >>> _ = path.write_text("3 4 9\\n7,2 0:0.5 3:1\\n1 1:2\\n8 2:1\\n")
    >>> for X, y in read_svmlight_chunks(path, rows=2):
    ...     print(X.shape, y)
    (3, 4) [7 2 1]
    (1, 4) [8]
    """
    if not isinstance(rows, int | np.integer) or rows < 1:
        raise ValueError(f"rows: found {rows!r}; expected a whole number, at least 1")
    return _chunks(_lines(path, n_features, zero_based, labels), int(rows), labels)


@parameters
class ExtremeReader(Reader):
    """Reads all rows of a file by :func:`read_extreme`.

    Parameters
    ----------
    n_features : int, optional
    zero_based : bool, optional
    labels : {"each", "one", "ignore"}, default="each"
    """

    n_features: int | None = None
    zero_based: bool | None = None
    labels: str = "each"

    def fit(self, path: str) -> tuple[Any, Any]:
        """Read training data; store the number of columns, and from where they count.

        Parameters
        ----------
        path : str

        Returns
        -------
        X, y
        """
        X, y, self.zero_based = read_extreme(
            path, self.n_features, self.zero_based, self.labels, return_zero_based=True
        )
        self.n_features = X.shape[1]
        return X, y

    def read(self, path: str) -> tuple[Any, Any]:
        """Read data for a fitted model.

        Parameters
        ----------
        path : str

        Returns
        -------
        X, y
        """
        return read_extreme(path, self.n_features, self.zero_based, self.labels)


def read_extreme(
    path: PathLike,
    n_features: int | None = None,
    zero_based: bool | None = None,
    labels: str = "each",
    return_zero_based: bool = False,
) -> Any:
    """Read all rows of a file; see `read_svmlight_chunks`.

    Parameters
    ----------
    path : path-like
        Plain or gzip file; ``"-"`` is standard input.
    n_features : int, optional
    zero_based : bool, optional
    labels : {"each", "one", "ignore"}, default="each"
        As for `read_svmlight_chunks`.
    return_zero_based : bool, default=False
        Also return whether columns count from 0, which the header determines.

    Returns
    -------
    X : csr_matrix of float32 of shape (n, n_features)
    y : ndarray of int64 of shape (n,)
    zero_based : bool
        With ``return_zero_based``.

    Raises
    ------
    ValueError
        For malformed lines, and files without a row; it names file and line.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.svm"
    >>> _ = path.write_text("12 1:0.5 3:1\\n10 2:1\\n")
    >>> X, y = read_extreme(path)
    >>> X.toarray().tolist(), y.tolist()
    ([[0.5, 0.0, 1.0], [0.0, 1.0, 0.0]], [12, 10])
    """
    lines = _lines(path, n_features, zero_based, labels)
    chunks = [*_chunks(lines, 2**14, labels)]
    if not sum(X.shape[0] for X, _ in chunks):
        raise no_examples(path, "lines 'label column:value ...'")
    y = np.concatenate([y for _, y in chunks])
    lengths = np.concatenate([np.diff(X.indptr) for X, _ in chunks])
    width = chunks[-1][0].shape[1]
    # One array after the other, so memory never holds all copies at once.
    indices = np.concatenate([X.indices for X, _ in chunks])
    for X, _ in chunks:
        X.indices = X.indices[:0]
    data = np.concatenate([X.data for X, _ in chunks])
    del chunks
    X = _csr(data, indices, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]), width)
    return (X, y, lines.least == 0) if return_zero_based else (X, y)


@dataclass
class _Block:
    """Rows in the form of `parse`; `lines` counts from 1 in the file."""

    row_ends: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    label_ends: np.ndarray
    labels: np.ndarray
    lines: np.ndarray

    @property
    def n_labels(self) -> np.ndarray:
        return np.diff(self.label_ends, prepend=0)

    def take(self, start: int, stop: int) -> _Block:
        """Return some of the rows."""
        first = [ends[start - 1] if start else 0 for ends in (self.row_ends, self.label_ends)]
        last = [ends[stop - 1] if stop else 0 for ends in (self.row_ends, self.label_ends)]
        return _Block(
            self.row_ends[start:stop] - first[0],
            self.columns[first[0] : last[0]],
            self.values[first[0] : last[0]],
            self.label_ends[start:stop] - first[1],
            self.labels[first[1] : last[1]],
            self.lines[start:stop],
        )


class _Lines:
    """Parses a file block by block, and locates faults."""

    def __init__(self, path: PathLike, n_features: int | None, zero_based: bool | None) -> None:
        self.path = path
        self.n_features = n_features
        self.zero_based = zero_based
        self.width = n_features or 0
        self.width_limit = n_features or _LARGEST
        self.least = 0 if zero_based else 1
        # From the header.
        self.n_rows: int | None = None
        self.n_labels = -1

    def __iter__(self) -> Iterator[_Block]:
        line = rows = 0
        for text in self._texts():
            if line == 0:
                text = self._header(text.removeprefix(b"\xef\xbb\xbf"))
            block, n_lines = self._parse(text, line, rows)
            line += n_lines
            rows += len(block.lines)
            yield block
        if self.n_rows is not None and rows != self.n_rows:
            raise bad_line(self.path, line, f"the end after {rows} rows", f"{self.n_rows} rows")

    def _texts(self) -> Iterator[bytes]:
        """Yield whole lines, some megabytes at a time; the last line gets a line feed."""
        line = 0
        rest = b""
        try:
            with open_binary(self.path) as handle:
                while block := handle.read(_BLOCK):
                    cut = block.rfind(b"\n") + 1
                    text, rest = (rest + block[:cut], block[cut:]) if cut else (b"", rest + block)
                    if len(rest) > LINE_LIMIT:
                        expected = "the end of the line"
                        raise bad_line(self.path, line + 1, f"over {LINE_LIMIT} bytes", expected)
                    if text:
                        yield text
                        line += text.count(b"\n")
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            expected = "a whole file; it was cut short?"
            raise bad_line(self.path, line + 1, f"broken gzip data ({error})", expected) from error
        if rest:
            yield rest + b"\n"

    def _header(self, text: bytes) -> bytes:
        """Read the numbers of a header, and replace it by an empty comment."""
        first, _, rest = text.partition(b"\n")
        cells = first.split()
        if len(cells) != 3 or not all(cell.isdigit() for cell in cells):
            return text
        digits = max(map(len, cells))
        if digits > 18:
            raise bad_line(self.path, 1, f"a number of {digits} digits", "sizes of 18 at most")
        self.n_rows, features, self.n_labels = map(int, cells)
        if not 0 < features <= _LARGEST:
            raise bad_line(self.path, 1, f"{features} features", f"1 to {_LARGEST}")
        if self.n_features is not None and features > self.n_features:
            raise bad_line(
                self.path, 1, f"{features} features", f"at most {self.n_features}, as in training"
            )
        self.width = self.n_features or features
        self.width_limit = features
        self.least = int(self.zero_based is False)
        return b"#\n" + rest

    def _parse(self, text: bytes, line: int, rows: int) -> tuple[_Block, int]:
        """Return the rows of `text`, whose lines begin after `line`."""
        arrays, n_lines, unsorted, fault = parse(
            text, self.least, self.width_limit, self.n_labels, self.n_rows is not None
        )
        if fault is not None:
            number, where, start, stop = fault
            raise self._fault(number, line + where + 1, text[start:stop])
        block = _Block(*arrays)
        block.lines += line + 1
        if self.n_rows is not None and rows + len(block.lines) > self.n_rows:
            block = self._without_end(block, self.n_rows - rows)
        if unsorted:
            self._sort(block)
        if len(block.columns):
            self.width = max(self.width, int(block.columns.max()) + 1)
        return block, n_lines

    def _without_end(self, block: _Block, rows: int) -> _Block:
        """Drop empty lines after the header's number of rows."""
        size = np.diff(block.row_ends, prepend=0) + block.n_labels
        extra = np.flatnonzero(size[rows:])
        if len(extra):
            line = int(block.lines[rows + extra[0]])
            raise bad_line(self.path, line, "another row", f"the header's {self.n_rows} rows")
        return block.take(0, rows)

    def _sort(self, block: _Block) -> None:
        """Sort the columns of each row; refuse repeated ones."""
        row = np.repeat(np.arange(len(block.lines)), np.diff(block.row_ends, prepend=0))
        order = np.lexsort((block.columns, row))
        block.columns, block.values = block.columns[order], block.values[order]
        twice = np.flatnonzero((np.diff(block.columns) == 0) & (np.diff(row) == 0))
        if len(twice):
            raise bad_line(
                self.path,
                int(block.lines[row[twice[0]]]),
                f"the column {block.columns[twice[0]] + self.least} twice",
                "each column once",
            )

    def _fault(self, number: int, line: int, field: bytes) -> ValueError:
        text = repr(field.decode("utf-8", "backslashreplace"))
        if number == LABEL_FAULT:
            label = repr(field.split(b",")[0].decode("utf-8", "backslashreplace"))
            expected = "a class, which is a whole number"
            if self.n_labels >= 0:
                expected += f", 0 to {self.n_labels - 1} by the header"
            return bad_line(self.path, line, f"the label {label}", expected)
        expected = {
            PAIR_FAULT: "column:number, finite",
            FLOAT_FAULT: "column:number, finite as float32",
            LOW_FAULT: "columns that count from 1 (from 0: zero_based=True, --zero-based)",
            HIGH_FAULT: f"at most {self.width_limit} columns",
        }[number]
        return bad_line(self.path, line, text, expected)


def _lines(path: PathLike, n_features: int | None, zero_based: bool | None, labels: str) -> _Lines:
    if labels not in LABELS:
        raise ValueError(f"labels: found {labels!r}; expected one of {', '.join(LABELS)}")
    if n_features is not None and not 0 < n_features <= _LARGEST:
        raise ValueError(f"n_features: found {n_features!r}; expected 1 to {_LARGEST}")
    return _Lines(path, n_features, zero_based)


def _chunks(
    lines: _Lines, rows: int, labels: str
) -> Iterator[tuple[sparse.csr_matrix, np.ndarray]]:
    held: list[_Block] = []
    count = pairs = 0
    for block in lines:
        start, size = 0, len(block.lines)
        while start < size:
            stop = min(size, start + rows - count)
            part = block.take(start, stop)
            held.append(part)
            count += stop - start
            pairs += len(part.columns)
            start = stop
            if count >= rows or pairs >= _PAIRS:
                yield from _joined(held, lines, labels)
                held, count, pairs = [], 0, 0
    if held:
        yield from _joined(held, lines, labels)


def _joined(
    held: list[_Block], lines: _Lines, labels: str
) -> Iterator[tuple[sparse.csr_matrix, np.ndarray]]:
    """Make a chunk from pieces of blocks; refuse rows without the required labels."""
    lengths = np.concatenate([np.diff(block.row_ends, prepend=0) for block in held])
    counts = np.concatenate([block.n_labels for block in held])
    columns = np.concatenate([block.columns for block in held])
    values = np.concatenate([block.values for block in held])
    y = np.concatenate([block.labels for block in held])
    expected = {"one": "one label", "each": "a label"}.get(labels)
    wrong = counts != 1 if labels == "one" else counts == 0
    if expected and (labels == "one" or lines.n_rows is None) and wrong.any():
        row = int(np.argmax(wrong))
        number = np.concatenate([block.lines for block in held])[row]
        raise bad_line(lines.path, int(number), f"{counts[row] or 'no'} labels", expected)
    X = _csr(values, columns, np.concatenate([[0], np.cumsum(lengths)]), lines.width)
    if labels == "ignore":
        yield X, y[:0]
        return
    if (counts != 1).any():
        X = X[np.repeat(np.arange(len(counts)), counts)]
    if len(y):
        yield X, y


def _csr(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, width: int
) -> sparse.csr_matrix:
    """Make a matrix with int32 indices, even for more than 2^31 values."""
    X = sparse.csr_matrix((len(indptr) - 1, width), dtype=np.float32)
    X.data, X.indices = data, indices
    X.indptr = indptr if indptr[-1] > _LARGEST else indptr.astype(np.int32)
    X.has_sorted_indices = X.has_canonical_format = True
    return X
