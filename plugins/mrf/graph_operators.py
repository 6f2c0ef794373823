"""Operators of any space whose labels are states of the nodes of graphs, for its methods to give.

Which decoder serves depends on the graphs: it is decided when operators are bound to examples.
Compiled modules are imported where operators are made: listing structures needs none of them.
"""

from __future__ import annotations

from typing import Any, Protocol

from structsolve.examples.packed import Examples
from structsolve.plugins.mrf.decoders import make_oracle, make_power

#: Powers of graphs; those that some graphs lack are None there.
POWERS = ("kbest", "max-marginals", "relaxation", "cones")


class GraphSpace(Protocol):
    """What a space gives to have the operators below."""

    structure: Any
    layout: Any

    def graphs(self, layout: Any) -> Any:
        """Return the graphs of packed examples, by :func:`common_graphs`."""

    def oracle_for(self, examples: Examples) -> str:
        """Return the oracle's name, as :class:`~structsolve.plugins.mrf.MRFStructure` has it."""


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
        With a block ``"node"``, and where pairs of states have scores, a block ``"pair"``.
    ends : ndarray of int32 of shape (m, 2)
        Edges as :func:`~structsolve.plugins.mrf.graphs.check_edges` gives them: of the one graph,
        or of all examples, one after the other.
    states : int or array of int
        Number of states of every node, or of each node of the one graph.
    one_graph : bool
        All examples have the same graph.
    symmetric : bool, default=False
        (t, s) is the same part as (s, t); the one with the smaller state first counts.
    skip : bool, default=False
        State 0 of a node has no part, state 1 the v-th of one row of theta, for all nodes v.

    Returns
    -------
    GraphShape
    """
    from structsolve.plugins.mrf._shape import GraphShape

    return layout.common(
        GraphShape,
        lambda layout: GraphShape(layout, ends, states, one_graph, symmetric, skip),
    )


def bind_oracle(space: GraphSpace, layout: Any) -> Any:
    """Return the oracle of these graphs.

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
    name = space.oracle_for(layout.examples)
    max_iter = int(getattr(space.structure, "max_iter", 100))
    return make_oracle(space.graphs(layout), name, max_iter, layout)


def bind_power(space: GraphSpace, power: str, layout: Any) -> Any:
    """Return the operator of a power (one of ``POWERS``); None where these graphs have none."""
    return make_power(space.graphs(layout), space.oracle_for(layout.examples), power, layout)


def bind_parts(space: GraphSpace, layout: Any) -> Any:
    """Return states of nodes and pairs of states as parts."""
    from structsolve.plugins.mrf._shape import GraphParts

    return GraphParts(space.graphs(layout), layout)


def bind_entropy(space: GraphSpace, layout: Any) -> Any:
    """Return the projection "entropy" of these graphs.

    Raises
    ------
    ValueError
        Where a graph has a cycle: marginals have no program of polynomial size then.
    """
    from structsolve.plugins.mrf._forest_sums import ForestSumProduct

    shape = space.graphs(layout)
    if not shape.forest:
        where = "the graph" if shape.one_graph else f"the graph of example {shape.cyclic}"
        raise ValueError(
            f"no plugin gives the projection 'entropy' of structure {space.structure.name!r}: "
            f"{where} has a cycle, expected graphs without cycles, whose marginals are exact"
        )
    return ForestSumProduct(shape, layout)


def make_polytopes(space: Any, examples: Examples) -> Any:
    """Return the local polytopes of the graphs of packed examples."""
    from structsolve.plugins.mrf.polytope import GraphPolytopes
    from structsolve.structure.ask import make_layout

    layout = make_layout(space, examples)
    return GraphPolytopes(space.graphs(layout), layout)
