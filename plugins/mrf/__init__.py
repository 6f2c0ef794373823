"""Labelings of graphs (pairwise Markov random fields) as a plugin: its hook implementations."""

from structsolve.hookspecs import Named, hookimpl

from structsolve.plugins.mrf.decode import Decoding, decode
from structsolve.plugins.mrf.graphs import grid_edges
from structsolve.plugins.mrf.space import MRFSpace, MRFStructure

__all__ = ["Decoding", "MRFSpace", "MRFStructure", "decode", "grid_edges"]


@hookimpl
def structsolve_structures():
    return [Named("mrf", MRFStructure, "labelings of graphs: scores of nodes and of edges")]


@hookimpl
def structsolve_oracle(space, examples):
    if isinstance(space, MRFSpace):
        from structsolve.plugins.mrf.decoders import make_oracle

        shape = space.shape(examples)
        return make_oracle(shape, space.oracle_for(examples), max_iter=space.structure.max_iter)


@hookimpl
def structsolve_polytope(space, examples):
    if isinstance(space, MRFSpace):
        from structsolve.plugins.mrf.polytope import GraphPolytopes

        return GraphPolytopes(space.shape(examples))


@hookimpl
def structsolve_parts(space, examples):
    if isinstance(space, MRFSpace):
        from structsolve.plugins.mrf._shape import GraphParts

        return GraphParts(space.shape(examples))


@hookimpl
def structsolve_projection(space, examples, regularizer):
    # On a graph with a cycle marginals have no program of polynomial size: not offered.
    if isinstance(space, MRFSpace) and regularizer == "entropy":
        shape = space.shape(examples)
        if shape.forest:
            from structsolve.plugins.mrf._forest_sums import ForestSumProduct

            return ForestSumProduct(shape)
