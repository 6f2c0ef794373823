"""Operators of any space whose labels are states of the nodes of graphs.

The decoder depends on the graphs, so it is chosen when operators are bound to examples.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, Protocol

from structsolve.lp import ask_program_power
from structsolve.part_layout import PartLayout
from structsolve.plugins.mrf._oracle import ExactOracle, ForestOracle
from structsolve.plugins.mrf._small_graph import small_graph
from structsolve.plugins.mrf.decoders import FEW, cone_program, graph_plans, make_oracle, make_power
from structsolve.plugins.mrf.elimination._sums import EliminationSums
from structsolve.plugins.mrf.messages._sum_product import ForestSumProduct
from structsolve.plugins.mrf.relaxation._spanning_trees import SpanningTrees
from structsolve.plugins.mrf.relaxation._tree_reweighted import TreeReweightedSums
from structsolve.plugins.mrf.relaxation.polytope import GraphPolytopes
from structsolve.plugins.mrf.tables._shape import GraphParts, GraphShape
from structsolve.structure.ask import make_layout
from structsolve.utils.memory import refuse_too_large

logger = logging.getLogger("structsolve.plugins")

#: Powers of graphs; binding one gives None for graphs without it.
POWERS = ("kbest", "max-marginals", "relaxation", "cones")

#: Sums up to which marginals of graphs with cycles are exact, by elimination.
SUMS = 2.0**20

#: Reasons for missing powers, for messages.
NO_POWERS = {
    "kbest": (
        "it needs an exact oracle, and graphs without cycles, of up to 2^20 labelings, or narrow "
        "ones; use oracle='exact', or fewer edges"
    ),
    "max-marginals": (
        "it needs an exact oracle, and graphs without cycles or of up to 2^20 labelings; use "
        "oracle='exact', or fewer edges"
    ),
}


class GraphSpace(Protocol):
    """The interface of a space that the functions below need."""

    structure: Any  # with ``oracle`` and ``predict_oracle``
    layout: Any

    def graphs(self, layout: Any) -> Any:
        """Return the graphs of packed examples, by :func:`common_graphs`.

        Parameters
        ----------
        layout : PartLayout
        """


def common_graphs(
    layout: Any,
    ends: Any,
    states: Any,
    one_graph: bool,
    symmetric: bool = False,
    skip: bool = False,
) -> Any:
    """Return the native description of the graphs of packed examples, made once per layout.

    Parameters
    ----------
    layout : PartLayout
        Has a block ``"node"`` and, if pairs of states have scores, a block ``"pair"``.
    ends : ndarray of int32 of shape (m, 2)
        Edges from :func:`~structsolve.plugins.mrf.tables.graphs.check_edges`, of the one graph,
        or of all examples, concatenated.
    states : int or array of int
        Number of states of every node, or of each node of the one graph.
    one_graph : bool
        All examples have the same graph.
    symmetric : bool, default=False
        (t, s) is the same part as (s, t), stored with the smaller state first.
    skip : bool, default=False
        State 0 of node v has no part; state 1 has the v-th part of one row of theta.

    Returns
    -------
    GraphShape

    Raises
    ------
    ValueError
        If the scores of the largest graph, or the graphs, exceed the memory.
    """

    def make(layout: Any) -> GraphShape:
        # Scores of one example; per edge both ends, its place at both, and where its scores start.
        size = 8 * layout.max_theta + 24 * len(ends) + 32 * layout.max_nodes
        refuse_too_large(
            size,
            f"{layout.max_theta} scores of the largest graph, and {len(ends)} edges,",
            "use smaller graphs, fewer labels, or tables that do not depend on the edge",
        )
        return GraphShape(layout, ends, states, one_graph, symmetric, skip)

    return layout.common(GraphShape, make)


def oracle_name(structure: Any, layout: Any) -> str:
    """Return the name of the oracle: training and prediction may have different ones.

    Parameters
    ----------
    structure : Structure
        With ``oracle`` and ``predict_oracle``.
    layout : PartLayout
        Its ``training`` is True in training, False in prediction.

    Returns
    -------
    str
    """
    if layout.training or structure.predict_oracle is None:
        return structure.oracle
    return structure.predict_oracle


def bind_oracle(space: GraphSpace, layout: Any) -> Any:
    """Return the oracle of these graphs.

    Parameters
    ----------
    space : GraphSpace
    layout : PartLayout

    Returns
    -------
    structsolve.operators.Oracle

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.plugins.mrf import MRFStructure
    >>> from structsolve.plugins.mrf.graph_operators import bind_oracle
    >>> from structsolve.structure.ask import make_layout
    >>> X = [(np.zeros((2, 1)), [[0, 1]])]
    >>> space, _ = MRFStructure().make_space(X, [["a", "b"]])
    >>> type(bind_oracle(space, make_layout(space, space.pack(X)))).__name__
    'ForestOracle'
    """
    name = oracle_name(space.structure, layout)
    max_iter = int(getattr(space.structure, "max_iter", 100))
    return make_oracle(space.graphs(layout), name, max_iter, layout)


def unpacked_oracle(space: Any, bind: Any) -> Any:
    """Return a factory of oracles of single small graphs.

    Parameters
    ----------
    space : GraphSpace
        Whose examples have a graph each; all edges share one table, and nodes have all states.
    bind : callable
        See :meth:`structsolve.Space.unpacked_oracle`.

    Returns
    -------
    callable or None
        None unless ``bind`` gives the exact oracles of this plugin.
    """
    narrow = [[[0, 1]], [[0, 1], [1, 2], [2, 0]]]
    probes = [make_layout(space, space.pack_sizes([3], edges=[edges])) for edges in narrow]
    if [type(bind(layout)) for layout in probes] != [ForestOracle, ExactOracle]:
        return None
    return partial(small_graph, space.graphs(probes[0]), FEW)


def bind_power(space: Any, power: str, layout: Any) -> Any:
    """Return the operator of a power.

    Parameters
    ----------
    space : GraphSpace
    power : str
        One of ``POWERS``.
    layout : PartLayout

    Returns
    -------
    structsolve.operators.Operator or None
        None if these graphs do not support the power.
    """
    shape, name = space.graphs(layout), oracle_name(space.structure, layout)
    backend = cone_program(shape, name) if power == "cones" else None
    if backend is None:
        return make_power(shape, name, power, layout)
    bind: Any = ask_program_power(space, backend, power)
    return bind(layout)


def graph_power(space: GraphSpace, power: str) -> Any:
    """Return a factory for a power of graphs.

    Parameters
    ----------
    space : GraphSpace
    power : str

    Returns
    -------
    callable or None
        None for a power that no graph has.
    """
    return partial(bind_power, space, power) if power in POWERS else None


def bind_parts(space: GraphSpace, layout: Any) -> Any:
    """Return states of nodes and pairs of states as parts.

    Parameters
    ----------
    space : GraphSpace
    layout : PartLayout

    Returns
    -------
    structsolve.operators.Parts
    """
    return GraphParts(space.graphs(layout), layout)


def bind_entropy(space: GraphSpace, layout: Any) -> Any:
    """Return the projection "entropy" of these graphs.

    Parameters
    ----------
    space : GraphSpace
    layout : PartLayout

    Returns
    -------
    structsolve.operators.Projection
        Exact by dynamic programming without cycles, by elimination on narrow graphs.  If a graph is
        wider, an upper bound of the log-partition and relaxed marginals; ``exact`` is then False.
    """
    return make_sums(space.graphs(layout), layout, space.structure.name)


def make_sums(shape: Any, layout: Any, name: str) -> Any:
    """Return the projection "entropy" of graphs.

    Parameters
    ----------
    shape : GraphShape
    layout : PartLayout
    name : str
        The structure's, for the log.

    Returns
    -------
    structsolve.operators.Projection
        See :func:`bind_entropy`.
    """
    if shape.forest:
        return ForestSumProduct(shape, layout)
    plans = graph_plans(shape, layout, SUMS)
    if plans.most_entries <= SUMS:
        return EliminationSums(plans, shape, layout)
    logger.info(
        "structure %r: elimination takes more than %.0f sums for a graph, so marginals are "
        "relaxed, and 'crf' minimises an upper bound of its objective",
        name,
        SUMS,
    )
    tables = 16 * shape.max_edges * shape.max_states**2
    refuse_too_large(tables, f"tables of {shape.max_edges} edges", "use smaller graphs")
    trees = layout.common(SpanningTrees, lambda _: SpanningTrees(shape))
    return TreeReweightedSums(trees, plans, shape, layout)


def graph_polytopes(space: Any, layout: PartLayout) -> GraphPolytopes:
    """Return the local polytopes of the graphs of packed examples.

    Parameters
    ----------
    space : GraphSpace
    layout : PartLayout

    Returns
    -------
    GraphPolytopes
    """
    return GraphPolytopes(space.graphs(layout), layout)
