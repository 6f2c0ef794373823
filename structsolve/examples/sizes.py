"""Offsets of examples from their sizes, for scores without features."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..utils.memory import refuse_too_large
from .stacking import size_starts


def size_offsets(sizes: Any, what: str = "sizes", least: int = 1) -> np.ndarray:
    """Return the start of each example, from sizes.

    Parameters
    ----------
    sizes : sequence of int
        At least ``least``.
    what : str, default="sizes"
        Their name in messages.
    least : int, default=1

    Returns
    -------
    ndarray of int64 of shape (n + 1,)

    Raises
    ------
    ValueError
        The message names the example.

    Examples
    --------
    >>> from structsolve.examples.sizes import size_offsets
    >>> size_offsets([2, 3]).tolist()
    [0, 2, 5]
    """
    offsets = size_starts(sizes, least)
    if offsets is not None:
        return offsets
    given = np.asarray(sizes)
    if given.ndim != 1 or not given.size or given.dtype.kind not in "iu":
        raise ValueError(
            f"{what}: found {given.dtype} of shape {given.shape}, expected one integer per example"
        )
    if given.min() < least:
        i = int(np.argmin(given))
        raise ValueError(f"example {i}: {what}: found {given[i]}, expected at least {least}")
    offsets = np.zeros(len(given) + 1, dtype=np.int64)
    np.cumsum(given, out=offsets[1:])
    return offsets


def size_pairs(sizes: Any, what: str) -> np.ndarray:
    """Return sizes of two axes.

    Parameters
    ----------
    sizes : sequence of (int, int)
        At least 1.
    what : str
        Name of both in messages.

    Returns
    -------
    ndarray of int64 of shape (n, 2)

    Raises
    ------
    ValueError
        The message names the example.
    """
    given = np.asarray(sizes)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
        raise ValueError(
            f"sizes: found {given.dtype} of shape {given.shape}, expected integers (n, 2): {what} "
            "of each example"
        )
    size_offsets(given.min(axis=1), what)
    scores = given.astype(float).prod(axis=1).sum()
    refuse_too_large(8 * scores, f"sizes: {scores:g} scores", "give smaller examples, or fewer")
    return given.astype(np.int64)


def row_offsets(n: Any, topology: Any = ()) -> np.ndarray:
    """Return the start of each example, for examples of one row.

    Parameters
    ----------
    n : int
        Examples, at least 1.
    topology : collection of str, optional
        Names of further arguments; there must be none.

    Returns
    -------
    ndarray of int64 of shape (n + 1,)

    Raises
    ------
    ValueError
    TypeError
        For further arguments.
    """
    no_topology(topology)
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ValueError(f"sizes is {n!r}, expected the number of examples: each is one row")
    return np.arange(n + 1, dtype=np.int64)


def no_topology(topology: Any) -> None:
    """Refuse arguments of ``pack_sizes()`` that a structure does not have.

    Parameters
    ----------
    topology : collection of str
        Their names.

    Raises
    ------
    TypeError
    """
    if topology:
        raise TypeError(f"pack_sizes() got {sorted(topology)}, which the structure does not take")


def no_edges(edge: bool, structure: str) -> None:
    """Refuse scores of edges for structures without edge scores.

    Parameters
    ----------
    edge : bool
        As for :meth:`structsolve.Structure.score_space`.
    structure : str
        Its name.

    Raises
    ------
    ValueError
    """
    if edge:
        raise ValueError(f"edge is True, but structure {structure!r} has no scores of edges")
