"""Equivalent transformations of the scores of a graph: their bound, and when it is attained.

An equivalent transformation moves ``phi[e, 0, s]`` and ``phi[e, 1, t]`` from the table of edge e to
the states of its first and second end, which leaves the score of every labeling as it is
(Shlezinger 1976; Werner 2007).  The sum of the maxima of nodes and edges bounds all scores::

    E(phi) = sum_v max_s [unary_v(s) + sum_e phi_e,v(s)]
           + sum_e max_s,t [w_e pair_e(s, t) - phi[e, 0, s] - phi[e, 1, t]]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from structsolve.plugins.mrf._direct import WeightedModel, maximal_states, transformed_bound
from structsolve.plugins.mrf.tables.scores import graph_scores
from structsolve.utils.positional import positional_deprecated


class ArcConsistency(NamedTuple):
    """The answer of :func:`arc_consistent`.

    Parameters
    ----------
    consistent : bool
        Every node has a remaining maximal state.  If False, the bound can be lowered.
    kept : ndarray of bool of shape (nodes, K)
        The remaining maximal states.
    label : ndarray of int of shape (nodes,) or None
        A labeling whose states and pairs are all maximal: its score is the bound, so it is optimal.
        None if none was found, which for graphs with cycles does not prove that none exists.
    """

    consistent: bool
    kept: np.ndarray
    label: np.ndarray | None


def reparametrization_bound(
    unary: Any, edges: Any, pair: Any, phi: Any, directed: bool = False, weights: Any = None
) -> float:
    """Return the bound E(phi) of an equivalent transformation, which holds for any ``phi``.

    Parameters
    ----------
    unary : array of shape (nodes, K), or list of arrays
        See :func:`~structsolve.plugins.mrf.decode`.
    edges : array of int of shape (m, 2)
    pair : array of shape (K, K) or (m, K, K), or list of m arrays
    phi : array of shape (m, 2, K)
        See :class:`~structsolve.plugins.mrf.Decoding`.
    directed : bool, default=False
    weights : array of shape (m,), optional
        See :func:`~structsolve.plugins.mrf.decode`.

    Returns
    -------
    float
        Upper bound of all scores, up to rounding.

    Raises
    ------
    ValueError
        If scores, edges and ``phi`` do not match.

    References
    ----------
    T. Werner, A Linear Programming Approach to Max-Sum Problem: A Review, PAMI 2007, equation 12.

    Examples
    --------
    >>> from structsolve.plugins.mrf import decode, reparametrization_bound
    >>> graph = [[0, 3], [2, 1]], [[0, 1]], [[2, 0], [0, 2]]
    >>> best = decode(*graph, return_reparametrization=True)
    >>> best.bound, reparametrization_bound(*graph, best.phi)
    (6.0, 6.0)
    >>> reparametrization_bound(*graph, 0 * best.phi)
    7.0
    """
    return transformed_bound(
        WeightedModel(*graph_scores(unary, edges, pair, directed, weights)), phi
    )


@positional_deprecated
def arc_consistent(
    unary: Any,
    edges: Any,
    pair: Any,
    phi: Any,
    *,
    directed: bool = False,
    weights: Any = None,
    tol: float = 1e-9,
) -> ArcConsistency:
    """Test whether a labeling may attain the bound of an equivalent transformation.

    The test starts with states and pairs that are maximal after the transformation.  It removes
    states that on some edge have no maximal pair with a remaining state (arc consistency).

    Parameters
    ----------
    unary : array of shape (nodes, K), or list of arrays
        See :func:`~structsolve.plugins.mrf.decode`.
    edges : array of int of shape (m, 2)
    pair : array of shape (K, K) or (m, K, K), or list of m arrays
    phi : array of shape (m, 2, K)
        See :class:`~structsolve.plugins.mrf.Decoding`.
    directed : bool, default=False
    weights : array of shape (m,), optional
        See :func:`~structsolve.plugins.mrf.decode`.
    tol : float, default=1e-9
        States and pairs within this of their maximum count as maximal, in units of the largest
        finite score; the label's score is below the bound by up to ``(nodes + m) * tol`` units.

    Returns
    -------
    ArcConsistency

    Raises
    ------
    ValueError
        If scores, edges and ``phi`` do not match, or ``tol`` is negative.

    References
    ----------
    T. Werner, A Linear Programming Approach to Max-Sum Problem: A Review, PAMI 2007, section 6.

    Examples
    --------
    >>> from structsolve.plugins.mrf import arc_consistent, decode
    >>> graph = [[0, 3], [2, 1]], [[0, 1]], [[2, 0], [0, 2]]
    >>> answer = arc_consistent(*graph, decode(*graph, return_reparametrization=True).phi)
    >>> answer.consistent, answer.label.tolist()
    (True, [1, 1])
    """
    if not 0 <= tol < np.inf:
        raise ValueError(f"tol is {tol!r}, expected a number of at least 0")
    scores = graph_scores(unary, edges, pair, directed, weights)
    factors = 1.0 if scores.weights is None else np.abs(scores.weights).max()
    sizes = [np.abs(x[np.isfinite(x)]).max(initial=0) for x in (scores.unary, scores.pair)]
    flat, label = maximal_states(
        WeightedModel(*scores), phi, tol * max(sizes[0], factors * sizes[1])
    )
    kept = np.zeros((len(scores.states), int(scores.states.max())), dtype=bool)
    kept[np.arange(kept.shape[1]) < scores.states[:, None]] = flat
    return ArcConsistency(bool(kept.any(axis=1).all()), kept, label)
