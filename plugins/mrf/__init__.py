"""Labelings of graphs (pairwise Markov random fields) as a plugin: its contents, hook by hook."""

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.mrf.decode import Decoding, GraphMarginals, decode
from structsolve.plugins.mrf.graph_operators import graph_power
from structsolve.plugins.mrf.reparametrization import (
    ArcConsistency,
    arc_consistent,
    reparametrization_bound,
)
from structsolve.plugins.mrf.space import MRFSpace, MRFStructure
from structsolve.plugins.mrf.tables.graphs import grid_edges
from structsolve.structure.base import node_loss
from structsolve.structure.operator_hooks import OperatorHooks, with_space

__all__ = [
    "ArcConsistency",
    "Decoding",
    "GraphMarginals",
    "MRFSpace",
    "MRFStructure",
    "arc_consistent",
    "decode",
    "grid_edges",
    "reparametrization_bound",
]
_hooks = OperatorHooks("structsolve.plugins.mrf", MRFSpace)


@hookimpl
def structsolve_structures():
    return [Named("mrf", MRFStructure, "labelings of graphs: scores of nodes and of edges")]


structsolve_oracle = _hooks.operator("graph_operators:bind_oracle", with_space)
structsolve_parts = _hooks.operator("graph_operators:bind_parts", with_space)
structsolve_power = _hooks.hookimpl(graph_power)
structsolve_projection = _hooks.projections({"entropy": "graph_operators:bind_entropy"}, with_space)
structsolve_loss = _hooks.hookimpl(node_loss)
structsolve_polytope = _hooks.operator("graph_operators:graph_polytopes", with_space)
