"""Minimum cuts directly from the scores of one graph: where they may apply, two states at once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from structsolve.algorithms.minimum_cut import CutNetwork
from structsolve.plugins.mrf.tables.scores import GraphScores, largest


def cut_binary(scores: GraphScores) -> tuple[np.ndarray, float] | None:
    """Return the best labeling and its score, if a minimum cut finds it.

    The score of an edge with the table ``t`` is linear in both states but for ``g s t``, with
    ``g = t[0, 0] + t[1, 1] - t[0, 1] - t[1, 0]``, and ``s t = (s + t - |s - t|) / 2``: with
    ``g >= 0`` everywhere, a cut that pays ``g / 2`` where states differ.

    Parameters
    ----------
    scores : GraphScores

    Returns
    -------
    tuple of ndarray of int32 and float, or None
        None if a node does not have two states, something is forbidden, or an edge is not
        super-modular.

    Examples
    --------
    >>> from structsolve.plugins.mrf.tables.scores import graph_scores
    >>> agree = [[1, 0], [0, 1]]
    >>> label, value = cut_binary(graph_scores([[0, 1], [0.5, 0]], [[0, 1]], agree))
    >>> label.tolist(), value
    ([1, 1], 2.0)
    """
    n, m = len(scores.states), len(scores.ends)
    if len(scores.unary) != 2 * n or not (scores.states == 2).all():
        return None
    if not (np.isfinite(scores.unary).all() and np.isfinite(scores.pair).all()):
        return None
    unary = scores.unary.reshape(n, 2)
    gain = unary[:, 1] - unary[:, 0]
    tables = scores.pair.reshape(-1, 4)
    a, b, c, d = tables.T
    weights = 1.0 if scores.weights is None else scores.weights
    half = 0.5 * (a + d - b - c) * weights
    if half.min(initial=0) < 0:
        return None
    first, second = np.ascontiguousarray(scores.ends.T)
    for end, slope in ((first, (c - a) * weights + half), (second, (b - a) * weights + half)):
        if slope.any():
            gain += np.bincount(end, np.broadcast_to(slope, m), n)
    capacities = np.empty((m, 2))
    capacities[:] = np.reshape(half, (-1, 1))
    cut = CutNetwork(n, scores.ends).cut(capacities, np.maximum(gain, 0), np.maximum(-gain, 0))
    ones = cut.source_side
    value = float(np.where(ones, unary[:, 1], unary[:, 0]).sum())
    cell = 2 * ones.view(np.int8)[first] + ones.view(np.int8)[second]
    if scores.shared:
        value += float(np.bincount(cell, scores.weights, 4) @ tables[0])
    else:
        value += float(np.take_along_axis(tables, cell[:, None], axis=1).sum())
    return ones.astype(np.int32), value


def may_cut(scores: GraphScores) -> bool:
    """Return whether a minimum cut is worth a try: a shared table must be super-modular.

    Parameters
    ----------
    scores : GraphScores

    Returns
    -------
    bool
        False only if the oracle "mincut" would refuse the scores, with its tolerances.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.plugins.mrf.tables.scores import graph_scores
    >>> may_cut(graph_scores(np.zeros((2, 3)), [[0, 1]], np.eye(3)))
    False
    """
    t = scores.pair
    if not scores.shared or len(t) == 2:
        return True
    if not np.isfinite(t).all():
        return False
    # Python's numbers: the calls of NumPy would take longer than all others of a small picture.
    second = [0.0]
    second += [
        a[k] + b[k + 1] - a[k + 1] - b[k]
        for a, b in pairwise(t.tolist())
        for k in range(len(a) - 1)
    ]
    factors = scores.weights
    low, high = (1.0, 1.0) if factors is None else (float(factors.min()), float(factors.max()))
    least = min(f * x for f in (low, high) for x in (min(second), max(second)))
    if least >= 0:
        return True
    return least >= -1e-12 * largest(scores.unary) - 1e-6 * max(-low, high) * largest(t)
