# Ranked labels and their scores as text.
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from structsolve.io._text import PathLike, atomic_write


def prediction_lines(labels: Any, scores: Any = None) -> Iterator[str]:
    """Format predictions as text: a line per row, best labels first.

    Parameters
    ----------
    labels : array-like of shape (n,) or (n, k)
    scores : array-like of the same shape, optional
        Scores of the labels; -inf means no label, and is left out.

    Yields
    ------
    str
        ``label:score`` separated by tabs, or only labels without scores.

    Examples
    --------
    >>> for line in prediction_lines([[7, 2], [1, 7]], [[1.5, 0.25], [2.0, float("-inf")]]):
    ...     print(line.expandtabs(8), end="")
    7:1.5   2:0.25
    1:2
    """
    rows = [np.ravel(row).tolist() for row in labels]
    if scores is None:
        yield from ("\t".join(map(str, row)) + "\n" for row in rows)
        return
    for row, values in zip(rows, np.reshape(scores, (len(rows), -1)).tolist(), strict=True):
        cells = (f"{a}:{b:.6g}" for a, b in zip(row, values, strict=True) if b > -np.inf)
        yield "\t".join(cells) + "\n"


def write_predictions(path: PathLike, blocks: Iterable[tuple[Any, Any]]) -> None:
    """Write labels and scores, best first, atomically.

    Parameters
    ----------
    path : path-like
    blocks : iterable of (labels, scores)
        Arguments of `prediction_lines`, one pair for each chunk of rows.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "out.txt"
    >>> write_predictions(path, [([[7]], [[1.5]]), ([[2]], [[0.5]])])
    >>> path.read_text()
    '7:1.5\\n2:0.5\\n'
    """
    with atomic_write(path) as handle:
        for labels, scores in blocks:
            handle.writelines(prediction_lines(labels, scores))
