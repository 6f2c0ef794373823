"""Exact best labelings of graphs of small treewidth, by eliminating nodes one by one."""

from __future__ import annotations

import math

import numpy as np

from structsolve.plugins.mrf._elimination import best_labelings
from structsolve.plugins.mrf._model import GraphModel


def eliminate(model: GraphModel, max_entries: int = 2**22) -> tuple[np.ndarray, float]:
    """Return the best labeling of a graph of small width.

    Nodes are maximised out one after the other (Bertele, Brioschi 1972): in the order given, the
    one whose neighbours have the fewest labelings first, or the one that makes the fewest new
    neighbours, whichever is cheapest.  Time and memory grow with the largest table on the way: a
    grid of ``k`` columns needs about ``states ** k`` entries, however long it is, a tree next to
    none.

    Parameters
    ----------
    model : GraphModel
        Any number of states.
    max_entries : int, default=2**22
        Largest table that is allowed.

    Returns
    -------
    label : ndarray of int of shape (n,)
        A best labeling.
    value : float
        Its score; -inf where everything is forbidden.

    Raises
    ------
    ValueError
        When a larger table is needed.

    Examples
    --------
    >>> from structsolve.plugins.mrf._model import GraphModel
    >>> from structsolve.plugins.mrf.elimination import eliminate
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
            f"max_entries={max_entries}; use branch_and_bound"
        )
    return labels[0], float(values[0])
