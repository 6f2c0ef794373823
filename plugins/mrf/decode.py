"""The best labeling of one graph with given scores, by any decoder, and its bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from structsolve.examples.packed import Examples
from structsolve.part_layout import PartLayout
from structsolve.plugins.mrf._direct import WeightedModel, ascend
from structsolve.plugins.mrf.cuts.binary import cut_binary, may_cut
from structsolve.plugins.mrf.decoders import (
    FEW,
    algorithm_of,
    check_name,
    make_oracle,
    tries_cut,
)
from structsolve.plugins.mrf.elimination._plan import is_wide
from structsolve.plugins.mrf.exact import search
from structsolve.plugins.mrf.graph_operators import make_sums
from structsolve.plugins.mrf.tables._model import GraphModel
from structsolve.plugins.mrf.tables._shape import GraphShape
from structsolve.plugins.mrf.tables.scores import GraphScores, graph_scores
from structsolve.potentials.weight_layout import Block, WeightLayout
from structsolve.structure.calls import argmax, project
from structsolve.utils.memory import refuse_too_large
from structsolve.utils.params import check_count

# Relative gap of a proof.
PROVEN = 1e-12
# Cells of tables up to which "auto" searches if something is forbidden.
SEARCHED = 2**22


class GraphMarginals(NamedTuple):
    """Probabilities ``p(y) ~ exp(score of y)`` of one graph.

    Parameters
    ----------
    unary : list of ndarray
        Marginals of the states of each node.
    pair : list of ndarray
        Marginals of the pairs of states of each edge, rows for its first node.
    log_partition : float
        Logarithm of the sum of ``exp(score)`` over all labelings; if not exact, an upper bound.
    exact : bool
        False on wide graphs with cycles: marginals are relaxed, those of the tree-reweighted
        bound.
    gap : float
        By how much, at most, the least such bound is below ``log_partition``; 0 if exact.
    """

    unary: list[np.ndarray]
    pair: list[np.ndarray]
    log_partition: float
    exact: bool
    gap: float


class Decoding(NamedTuple):
    """The answer of :func:`decode`.

    Parameters
    ----------
    label : ndarray of int of shape (nodes,)
    value : float
        Its score; -inf if every labeling is forbidden.
    bound : float
        Upper bound of all scores; ``bound - value`` is 0 if the label is known to be the best.
    phi : ndarray of shape (m, 2, K) or None
        With ``return_reparametrization``: the amounts that an equivalent transformation moves
        from the table of each edge to its first and its second end, for each state there (0 beyond
        a node's states).  See :func:`~structsolve.plugins.mrf.reparametrization_bound`.
    status : str
        "optimal" if the label is proven to be the best, up to rounding; else "bounded", or what
        stopped ``oracle="exact"``: "time limit" or "interrupted".
    marginals : GraphMarginals or None
        With ``return_marginals``.
    """

    label: np.ndarray
    value: float
    bound: float
    phi: np.ndarray | None = None
    status: str = "bounded"
    marginals: GraphMarginals | None = None


def decode(
    unary: Any,
    edges: Any,
    pair: Any,
    directed: bool = False,
    oracle: str = "auto",
    max_iter: int = 100,
    *,
    weights: Any = None,
    return_reparametrization: bool = False,
    return_marginals: bool = False,
    time_limit: float | None = None,
    progress: Callable[[float, float, float], None] | None = None,
) -> Decoding:
    """Find a labeling of a graph with a large score, and an upper bound of all scores.

    Parameters
    ----------
    unary : array of shape (nodes, K), or list of arrays
        Score of each state of each node; a list if nodes have different numbers of states.
    edges : array of int of shape (m, 2)
    pair : array of shape (K, K) or (m, K, K), or list of m arrays
        Score of the states at both ends: one table for all edges, or one per edge, its rows for the
        states of the edge's first node.  -inf forbids a pair, or (in ``unary``) a state.
    directed : bool, default=False
        The one table may be asymmetric, with rows for the first node of each edge.
    oracle : str, default="auto"
        As in :class:`~structsolve.plugins.mrf.MRFStructure`.
    max_iter : int, default=100
        Maximum number of iterations of TRW-S, for "trws", "expansion" and "auto".
    weights : array of shape (m,), optional
        Factors of the one table, one per edge.  "trws" and "expansion" keep the table once; other
        decoders take a table per edge.
    return_reparametrization : bool, default=False
        Run "trws" too, and return the equivalent transformation behind its bound.  For
        it, -inf is a finite number, below the possible loss of any allowed labeling.  ``bound`` is
        the lowest known bound.  With another oracle or scores of -inf it can be less than the
        bound of ``phi``, which :func:`~structsolve.plugins.mrf.reparametrization_bound`
        computes.
    return_marginals : bool, default=False
        Also return marginals, exact ones of graphs without cycles and of narrow ones, relaxed ones
        of others, whatever the oracle is.
    time_limit : float, optional
        Seconds after which "exact" stops, with the best labeling met and a bound.  Ctrl-C stops it
        in the same way.  The last step can take a little longer.
    progress : callable, optional
        "exact" calls it with the best score, the bound and the seconds spent, when these improve.

    Returns
    -------
    Decoding

    Raises
    ------
    ValueError
        If scores, edges and the decoder do not match; if arrays would exceed the memory, with
        their size, before allocation; if every labeling is forbidden, so that there are no
        marginals.

    Examples
    --------
    >>> from structsolve.plugins.mrf import decode
    >>> unary, agree = [[0, 1], [0.5, 0], [0.2, 0]], [[1, 0], [0, 1]]
    >>> best = decode(unary, [[0, 1], [1, 2], [2, 0]], agree)
    >>> best.label.tolist(), best.value, best.bound
    ([1, 1, 1], 4.0, 4.0)
    >>> decode(unary, [[0, 1], [1, 2], [2, 0]], agree, weights=[1, 0, 0]).label.tolist()
    [1, 1, 0]
    >>> best = decode(unary, [[0, 1], [1, 2], [2, 0]], agree, return_marginals=True)
    >>> best.marginals.exact, best.marginals.unary[0].round(2).tolist()
    (True, [0.36, 0.64])
    """
    for name, given, form in (
        ("unary", unary, "an array of shape (nodes, K), or a list of arrays"),
        ("pair", pair, "a table of shape (K, K), or one per edge"),
    ):
        if not hasattr(given, "__len__") or getattr(given, "ndim", 1) == 0:
            raise ValueError(f"{name} is {given!r}, expected {form}")
    scores = graph_scores(unary, edges, pair, directed, weights)
    check_count("max_iter", max_iter)
    check_name(oracle)
    _check_stops(oracle, time_limit, progress)
    _check_size(scores, return_reparametrization)
    labeling = cut_binary(scores) if oracle in ("auto", "exact", "mincut") else None
    if labeling is not None:
        label, value = labeling
        answer = Decoding(label, value, value)
    else:
        answer = _decode(
            scores, oracle, int(max_iter), return_reparametrization, time_limit, progress
        )
    if return_reparametrization and answer.phi is None:
        answer = _transformed(answer, scores, int(max_iter))
    near = PROVEN * max(1.0, abs(answer.value))
    if answer.bound <= answer.value + near or answer.bound == -np.inf:
        answer = answer._replace(status="optimal")
    return answer._replace(marginals=marginals_of(scores)) if return_marginals else answer


def marginals_of(scores: GraphScores) -> GraphMarginals:
    """Return the marginals of one graph.

    Parameters
    ----------
    scores : GraphScores

    Returns
    -------
    GraphMarginals
    """
    scores = scores._replace(pair=scores.tables(), weights=None)
    blocks, shape, layout = _graph_of(scores)
    sums = make_sums(shape, layout, "mrf")
    mu, value, bound = project(sums, 0, _theta(blocks, scores))
    views = blocks.theta_views(mu, len(scores.states), len(scores.ends))
    states = scores.states.tolist()
    unary = [row[:k].copy() for row, k in zip(views["node"], states)]
    pair = [
        table[: states[u], : states[v]].copy()
        for table, (u, v) in zip(views["pair"], scores.ends.tolist())
    ]
    return GraphMarginals(unary, pair, bound, bool(sums.exact), bound - value)


def _decode(
    scores: GraphScores,
    oracle: str,
    max_iter: int,
    transform: bool,
    time_limit: float | None,
    progress: Any,
) -> Decoding:
    """Run the decoder; with an equivalent transformation if TRW-S has one at hand."""
    if oracle in ("trws", "expansion"):
        return _ascended(_model(scores), scores, max_iter, oracle == "expansion", transform)
    cyclic = len(scores.ends) >= len(scores.states)
    if oracle == "auto" and cyclic and scores.states.max() > 2 and not _cuts_first(scores):
        model = _model(scores)
        if is_wide(model, FEW):  # what algorithm_of() would say, sooner
            answer = _ascended(model, scores, max_iter, True, transform)
            return _better(answer, scores, max_iter)
    if not cyclic or oracle != "exact":
        blocks, shape, layout = _graph_of(scores)
        cyclic = not shape.forest
    if oracle == "exact" and cyclic:
        # Also what is cheap enough for an oracle: its calls cannot be stopped.
        return _searched(search.solve(_tables_of(scores), time_limit, progress))
    if algorithm_of(shape, oracle, layout) == "expansion" and not _cuts_first(scores):
        answer = _ascended(_model(scores), scores, max_iter, True, transform)
    else:
        if scores.weights is not None:
            scores = scores._replace(pair=scores.tables(), weights=None)
        chosen = make_oracle(shape, oracle, max_iter, layout)
        answer = Decoding(*argmax(chosen, 0, _theta(blocks, scores)))
    return _better(answer, scores, max_iter) if oracle == "auto" else answer


def _cuts_first(scores: GraphScores) -> bool:
    """Return whether "auto" tries a minimum cut before others."""
    return tries_cut(int(scores.states.max()), len(scores.ends)) and may_cut(scores)


def _ascended(
    model: Any, scores: GraphScores, max_iter: int, expands: bool, transform: bool
) -> Decoding:
    """Run TRW-S, with its equivalent transformation if no score is forbidden."""
    once = transform and scores.finite() is scores
    return Decoding(*ascend(model, max_iter, expands, once))


def _better(answer: Decoding, scores: GraphScores, max_iter: int) -> Decoding:
    """The best answer of all decoders that "auto" tries."""
    if answer.value >= answer.bound:
        return answer
    if scores.states.max() <= 2:
        label, value, bound, _ = ascend(_model(scores), max_iter, True, False)
        bound = min(bound, answer.bound)
        if value > answer.value:
            answer = answer._replace(label=label, value=value)
        answer = answer._replace(bound=max(bound, answer.value))
    if scores.finite() is scores or answer.value >= answer.bound:
        return answer
    if scores.states[scores.ends].prod(axis=1, dtype=np.int64).sum() > SEARCHED:
        return answer
    return _searched(search.improve(_tables_of(scores), answer.label, answer.bound))


def _searched(answer: search.Answer) -> Decoding:
    return Decoding(answer.label, answer.value, answer.bound, status=answer.status)


def _tables_of(scores: GraphScores) -> GraphModel:
    return GraphModel(scores.states, scores.ends, scores.unary, scores.tables())


def _check_stops(oracle: str, time_limit: Any, progress: Any) -> None:
    for name, given in (("time_limit", time_limit), ("progress", progress)):
        if given is not None and oracle != "exact":
            raise ValueError(f"{name} is {given!r}, which is for oracle='exact', not {oracle!r}")
    number = isinstance(time_limit, (int, float, np.number)) and not isinstance(time_limit, bool)
    if time_limit is not None and not (number and time_limit >= 0):
        raise ValueError(f"time_limit is {time_limit!r}, expected seconds, at least 0")
    if progress is not None and not callable(progress):
        raise TypeError(f"progress is {progress!r}, expected a function of value, bound, seconds")


def _transformed(answer: Decoding, scores: GraphScores, max_iter: int) -> Decoding:
    """Return an answer with the equivalent transformation that TRW-S finds."""
    _, _, bound, phi = ascend(_model(scores.finite()), max_iter, False, True)
    return answer._replace(bound=max(min(answer.bound, bound), answer.value), phi=phi)


def _model(scores: GraphScores) -> Any:
    return WeightedModel(*scores)


def _check_size(scores: GraphScores, transform: bool) -> None:
    """Refuse graphs that do not fit in memory, by the size of the largest arrays."""
    n, m, K = len(scores.states), len(scores.ends), int(scores.states.max())
    cells = scores.pair.size if not scores.shared else 0
    # Scores, their copies in single precision, local search; messages; indices.
    size = (8 + 8 + 4 + 8) * scores.unary.size + (8 + 8) * cells + 8 * m * K + 80 * (n + m)
    refuse_too_large(
        size + 16.0 * m * K * transform,
        f"arrays of {n} nodes and {m} edges",
        "give a smaller graph or fewer states, or one table with weights in place of tables",
    )


def _graph_of(scores: GraphScores) -> tuple[WeightLayout, Any, PartLayout]:
    """Return the blocks of part scores, the graph, and the layout of its scores.

    Weights become a table per edge.
    """
    n, m, K = len(scores.states), len(scores.ends), int(scores.states.max())
    shared = scores.shared and scores.weights is None
    pair = Block("pair", "shared" if shared else "edge", (K, K))
    blocks = WeightLayout([Block("node", "node", (K,)), pair], 1, 1)
    examples = Examples(
        np.array([0, n], dtype=np.int64), edge_offsets=np.array([0, m], dtype=np.int64)
    )
    layout = PartLayout(blocks, examples)
    return blocks, GraphShape(layout, scores.ends, scores.states, True), layout


def _theta(blocks: WeightLayout, scores: GraphScores) -> np.ndarray:
    """Return part scores."""
    n, m, K = len(scores.states), len(scores.ends), int(scores.states.max())
    theta = np.zeros(blocks.theta_size(n, m))
    views = blocks.theta_views(theta, n, m)
    nodes, pairs = views["node"], views["pair"]
    whole = bool((scores.states == K).all())
    if whole:
        nodes[:, :K] = scores.unary.reshape(n, K)
    else:
        nodes[:, :K][np.arange(K) < scores.states[:, None]] = scores.unary
    if scores.shared:
        pairs[:, :K] = scores.pair
    elif whole:
        pairs[:, :, :K] = scores.pair.reshape(m, K, K)
    else:
        start = 0
        for cell, (k, size) in zip(pairs, scores.states[scores.ends].tolist()):
            cell[:k, :size] = scores.pair[start : start + k * size].reshape(k, size)
            start += k * size
    return theta
