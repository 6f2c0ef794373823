"""Exact best labelings of graphs of small treewidth, by eliminating nodes one by one."""

from __future__ import annotations

import math

import numpy as np

from structsolve.plugins.mrf.elimination._elimination import best_labelings
from structsolve.plugins.mrf.tables._model import GraphModel


def eliminate(model: GraphModel, max_entries: int = 2**22) -> tuple[np.ndarray, float]:
    """Return the best labeling of a graph of small width.

    Nodes are maximised out one by one (Bertele, Brioschi 1972), in the cheapest of three orders: as
    given, fewest labelings of the neighbours first, or fewest new neighbours
    first.  Time and memory grow with the largest table: a
    grid of ``k`` columns needs about ``states ** k`` entries, however long it is, a tree very
    few.

    Parameters
    ----------
    model : GraphModel
        Any number of states.
    max_entries : int, default=2**22
        Maximum number of entries of a table.

    Returns
    -------
    label : ndarray of int of shape (n,)
        A best labeling.
    value : float
        Its score; -inf if everything is forbidden.

    Raises
    ------
    ValueError
        If a larger table is needed.

    Examples
    --------
    >>> from structsolve.plugins.mrf.tables._model import GraphModel
    >>> from structsolve.plugins.mrf.elimination.narrow import eliminate
    >>> apart = [[0, 1], [1, 0]]
    >>> model = GraphModel([2] * 3, [[0, 1], [1, 2]], [[0, 0.5], [0, 0], [0, 0]], [apart] * 2)
    >>> label, value = eliminate(model)
    >>> label.tolist(), value
    ([1, 0, 1], 2.5)
    """
    labels, values = best_labelings(model, most_table=max_entries, most_entries=math.inf)
    if labels is None:
        raise ValueError(
            "model: found a graph that needs a larger table, expected at most "
            f"max_entries={max_entries}; use decode(oracle='exact')"
        )
    return labels[0], float(values[0])
