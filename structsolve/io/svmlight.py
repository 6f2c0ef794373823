# svmlight files: label [qid:n] column:value ... ; lines of one qid are a sequence.
from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import IO

import numpy as np

from structsolve.io._text import (
    PathLike,
    bad_line,
    limited_lines,
    no_examples,
    number_of,
    open_binary,
    reads_file,
    text_lines,
)
from structsolve.utils.sparse import split_rows

_PAIR = re.compile(r"(\d+):(\S+)")
# scikit-learn's parser counts in 32 bits.
MOST_COLUMNS = 2**31 - 1


@reads_file
def read_svmlight(
    path: PathLike,
    n_features: int | None = None,
    zero_based: bool = False,
    multilabel: bool = False,
    sequences: bool | None = None,
):
    """Read an svmlight (libsvm) file through scikit-learn.

    Parameters
    ----------
    path : path-like
        Plain or gzip file; ``"-"`` is standard input.
    n_features : int, optional
        The number of columns; by default the largest in the file.  Give it for test data.
    zero_based : bool, default=False
        Columns count from 0 instead of 1.
    multilabel : bool, default=False
        Lines begin with comma-separated labels; `y` is then a list of tuples.
    sequences : bool, optional
        Whether neighbouring lines with the same ``qid`` are one sequence; by default, if the
        file has any.

    Returns
    -------
    X : scipy.sparse.csr_matrix, or list of them (sequences)
    y : ndarray of labels, or list of them
        Integers if all labels are.

    Raises
    ------
    ValueError
        For malformed lines, and sequences of separate lines, naming the line or the qid.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.svm"
    >>> _ = path.write_text("2 qid:1 1:0.5 3:1\\n0 qid:1 2:1\\n1 qid:2 1:2\\n")
    >>> X, Y = read_svmlight(path)
    >>> [x.shape for x in X], [y.tolist() for y in Y]
    ([(2, 3), (1, 3)], [[2, 0], [1]])
    """
    from sklearn.datasets import load_svmlight_file  # heavy

    try:
        with open_binary(path) as handle:
            X, y, qid = load_svmlight_file(
                _Lines(handle, path),
                n_features=n_features,
                multilabel=multilabel,
                zero_based=zero_based,
                query_id=True,
            )
        labels = np.fromiter(chain.from_iterable(y), float) if multilabel else y
        finite = np.isfinite(X.data).all() and np.isfinite(labels).all()
        sound = finite and len(qid) in (0, X.shape[0])
        cause = None
    except (ValueError, OverflowError, EOFError, OSError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        sound, cause = False, error
    if not sound:
        _find_fault(path, n_features, zero_based, multilabel)
        raise ValueError(f"{path}: not an svmlight file: {cause}") from cause
    if X.shape[0] == 0:
        raise no_examples(path, "lines 'label column:value ...'")
    if not multilabel and np.all(y == np.rint(y)):
        if np.abs(y).max() >= 2**53:  # beyond, neighbours are one float
            raise ValueError(f"{path}: found a label of 2**53 or beyond; expected smaller ones")
        y = y.astype(np.int64)
    if sequences is None:
        sequences = len(qid) > 0
    if not sequences:
        return X, y
    if not len(qid):
        raise ValueError(f"{path}: found no qid; expected 'label qid:n column:value ...' lines")
    starts = np.flatnonzero(np.r_[True, qid[1:] != qid[:-1]])
    values, counts = np.unique(qid[starts], return_counts=True)
    if counts.max() > 1:
        raise ValueError(
            f"{path}: found qid {values[counts.argmax()]} in {counts.max()} separate places; "
            "expected the lines of a sequence next to each other"
        )
    offsets = np.r_[starts, len(qid)]
    return split_rows(X, offsets), [y[a:b] for a, b in pairwise(offsets.tolist())]


class _Lines:
    """An iterable that scikit-learn reads as a file."""

    def __init__(self, handle: IO[bytes], path: PathLike) -> None:
        self.read = handle.read
        self.lines = limited_lines(handle, path)

    def __iter__(self) -> Iterator[bytes]:
        for line in self.lines:
            if b"_" in line and b"_" in line.partition(b"#")[0]:  # Python takes 1_2 for 12
                raise ValueError("found numbers with _")
            yield line


def _find_fault(path: PathLike, n_features: int | None, zero_based: bool, multilabel: bool) -> None:
    """Raise the error for the first line that scikit-learn's fast parser cannot read."""
    with_qid: bool | None = None
    least = 0 if zero_based else 1
    for number, line in text_lines(path):
        fields = line.split("#", 1)[0].split()
        if not fields:
            continue
        labels = [] if multilabel and ":" in fields[0] else [fields.pop(0)]
        for label in labels[0].split(",") if labels and multilabel else labels:
            if not _finite(label):
                raise bad_line(path, number, f"the label {label!r}", "a number")
        has_qid = bool(fields) and fields[0].startswith("qid:")
        if has_qid and not re.fullmatch(r"qid:-?\d+", fields.pop(0)):
            raise bad_line(path, number, repr(line.split()[1]), "qid:integer")
        if with_qid is None:
            with_qid = has_qid
        if has_qid != with_qid:
            text = "a qid" if has_qid else "no qid"
            raise bad_line(path, number, text, "a qid on all lines or on none")
        previous = -1
        for field in fields:
            pair = _PAIR.fullmatch(field)
            if pair is None or not _finite(pair[2]):
                raise bad_line(path, number, repr(field), "column:number, finite")
            column = int(pair[1])
            if column < least:
                expected = "columns that count from 1 (from 0: zero_based=True, --zero-based)"
                raise bad_line(path, number, repr(field), expected)
            if column <= previous:
                raise bad_line(path, number, repr(field), f"a column after {previous}")
            if column > MOST_COLUMNS:
                raise bad_line(path, number, repr(field), f"columns up to {MOST_COLUMNS}")
            if n_features is not None and column - least >= n_features:
                raise bad_line(path, number, repr(field), f"at most {n_features} columns")
            previous = column


def _finite(text: str) -> bool:
    try:
        return math.isfinite(number_of(text))
    except ValueError:
        return False
