"""y as marginals: a distribution over the classes for each node, in place of its label."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..examples.packed import Examples
from ..structure.weighted_labels import identify
from ..surrogates.given_marginals import KEY

# By how much a row may miss the sum 1.
TOLERANCE = 1e-6


def are_marginals(structure: Any, y: Any) -> bool:
    """Return whether y holds rows of numbers where the structure's labels are one class per node.

    Parameters
    ----------
    structure : Structure
        With ``takes_marginals``, if it can be trained on some: the number of axes of an example's
        nodes, 1 or True, 2 for pictures.
    y : as users give it

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        For data frames, whose names of columns would be lost.

    Examples
    --------
    >>> import structsolve
    >>> chain = structsolve.get_structure("chain")
    >>> are_marginals(chain, [[0, 1]]), are_marginals(chain, [[[0.5, 0.5], [0.1, 0.9]]])
    (False, True)
    """
    axes = 1 + getattr(structure, "takes_marginals", False)
    if axes == 1:
        return False
    listed = isinstance(y, (list, tuple)) or (isinstance(y, np.ndarray) and y.ndim in (1, axes + 1))
    for i, one in enumerate([y] if structure.single_node else y if listed else ()):
        if len(getattr(one, "columns", ())) > 1:
            where = "y" if structure.single_node else f"y, example {i}"
            raise ValueError(
                f"{where}: found a data frame of {len(one.columns)} columns, expected one class "
                "per row, or marginals as an array, to_numpy(), of which column k is of class k"
            )
    if structure.single_node:
        return _is_table(y, axes)
    return listed and len(y) > 0 and all(_is_table(table, axes) for table in y)


def refuse_marginals(structure: Any, y: Any, what: str) -> None:
    """Raise ValueError if y holds marginals where labels are needed.

    Parameters
    ----------
    structure, y
        See :func:`are_marginals`.
    what : str
        Who needs labels, and why.
    """
    if are_marginals(structure, y):
        raise ValueError(f"y holds marginals, expected labels: {what}")


def _is_table(y: Any, axes: int) -> bool:
    if isinstance(y, np.ndarray):
        return y.ndim == axes and y.shape[-1] > 1 and y.dtype.kind == "f"
    listed = isinstance(y, (list, tuple)) and len(y) > 0 and isinstance(y[0], (list, tuple))
    return axes == 2 and listed and len(y[0]) > 1 and isinstance(y[0][0], float)


class SoftLabels:
    """Checked marginals of all nodes, and the most probable labels for whatever needs some.

    Parameters
    ----------
    structure : Structure
    y : array of shape (n, K), or list of arrays of shape (nodes, K), of pictures (height, width, K)

    Attributes
    ----------
    classes : list of int
        0 to K - 1.
    labels : ndarray or list of ndarray
        The class of most probability at each node.
    """

    def __init__(self, structure: Any, y: Any):
        single = structure.single_node
        tables = [_checked(table, i, single) for i, table in enumerate([y] if single else y)]
        widths = [table.shape[-1] for table in tables if len(table)]
        width = widths[0] if widths else 0
        for i, table in enumerate(tables):
            if len(table) and table.shape[-1] != width:
                raise ValueError(
                    f"y, example {i}: found marginals of {table.shape[-1]} classes, expected "
                    f"{width}, as in example 0"
                )
        self.classes = list(range(width))
        self.rows = np.concatenate([t.reshape(-1, width) for t in tables])
        best = [table.argmax(axis=-1) for table in tables]
        self.labels = best[0] if single else best

    def settle(self, examples: Examples) -> None:
        """Put the marginals into packed examples.

        Parameters
        ----------
        examples : Examples
            Changed: ``topology["marginals"]``, and its ``"identity"``, if it has one.
        """
        identify(examples, self.rows)
        examples.topology[KEY] = self.rows


def _checked(table: Any, i: int, single: bool) -> np.ndarray:
    """Return the table of an example as float64, each row of sum 1."""

    def place(v: int) -> str:
        return f"y, example {v}" if single else f"y, example {i}, node {v}"

    try:
        rows = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"y, example {i}: found rows that are no numbers, or not of one length ({error}), "
            "expected a probability of each class"
        ) from None
    shape = rows.shape
    if len(shape) < 2:
        raise ValueError(f"y, example {i}: found the shape {shape}, expected (nodes, classes)")
    rows = rows.reshape(int(np.prod(shape[:-1])), shape[-1])
    wrong = ~(np.isfinite(rows) & (rows >= 0)).all(axis=1)
    if wrong.any():
        v = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"{place(v)}: found the marginals {rows[v].tolist()}, expected finite numbers of at "
            "least 0"
        )
    sums = rows.sum(axis=1)
    wrong = np.abs(sums - 1) > TOLERANCE
    if wrong.any():
        v = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"{place(v)}: found marginals of sum {sums[v]:.9g}, expected 1: a probability of each "
            "class"
        )
    return (rows / sums[:, None]).reshape(shape)
