"""Labelings of graphs (pairwise Markov random fields) as a plugin: its hook implementations."""

from structsolve.hookspecs import Named, hookimpl

from .decode import Decoding, decode
from .graphs import grid_edges
from .space import MRFSpace, MRFStructure

__all__ = ["Decoding", "MRFSpace", "MRFStructure", "decode", "grid_edges"]


@hookimpl
def structsolve_structures():
    return [Named("mrf", MRFStructure, "labelings of graphs: scores of nodes and of edges")]


@hookimpl
def structsolve_oracle(space, examples):
    if isinstance(space, MRFSpace):
        from .decoders import make_oracle

        shape = space.shape(examples)
        return make_oracle(shape, space.oracle_for(examples), max_iter=space.structure.max_iter)


@hookimpl
def structsolve_polytope(space, examples):
    if isinstance(space, MRFSpace):
        from .polytope import GraphPolytopes

        return GraphPolytopes(space.shape(examples))


@hookimpl
def structsolve_parts(space, examples):
    if isinstance(space, MRFSpace):
        from ._shape import GraphParts

        return GraphParts(space.shape(examples))
