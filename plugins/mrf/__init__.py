"""Labelings of graphs (pairwise Markov random fields) as a plugin: its contents, hook by hook."""

from functools import partial

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.mrf.decode import Decoding, GraphMarginals, decode
from structsolve.plugins.mrf.graph_operators import (
    POWERS,
    bind_entropy,
    bind_oracle,
    bind_parts,
    bind_power,
    graph_polytopes,
)
from structsolve.plugins.mrf.reparametrization import (
    ArcConsistency,
    arc_consistent,
    reparametrization_bound,
)
from structsolve.plugins.mrf.space import MRFSpace, MRFStructure
from structsolve.plugins.mrf.tables.graphs import grid_edges
from structsolve.structure.base import node_loss

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


@hookimpl
def structsolve_structures():
    return [Named("mrf", MRFStructure, "labelings of graphs: scores of nodes and of edges")]


@hookimpl(trylast=True)
def structsolve_oracle(space):
    if isinstance(space, MRFSpace):
        return partial(bind_oracle, space)  # a decoder of structsolve.plugins.mrf.decoders


@hookimpl(trylast=True)
def structsolve_parts(space):
    if isinstance(space, MRFSpace):
        return partial(bind_parts, space)


@hookimpl(trylast=True)
def structsolve_power(space, power):
    if isinstance(space, MRFSpace) and power in POWERS:
        return partial(bind_power, space, power)


@hookimpl(trylast=True)
def structsolve_projection(space, regularizer):
    if isinstance(space, MRFSpace) and regularizer == "entropy":
        return partial(bind_entropy, space)


@hookimpl(trylast=True)
def structsolve_loss(space, loss):
    if isinstance(space, MRFSpace):
        return node_loss(space, loss)


@hookimpl(trylast=True)
def structsolve_polytope(space):
    if isinstance(space, MRFSpace):
        return partial(graph_polytopes, space)
