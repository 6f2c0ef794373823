"""Paths from a source to a sink as a plugin: what it provides, hook by hook."""

from functools import partial

from structsolve.hookspecs import Named, hookimpl
from structsolve.operators import IntegralRelaxation
from structsolve.plugins.path.graphs import grid_steps
from structsolve.plugins.path.space import PathSpace, PathStructure
from structsolve.plugins.path.terrain import make_terrain_maps

__all__ = ["PathSpace", "PathStructure", "grid_steps", "make_terrain_maps"]

LOSSES = ("hamming", "edge-hamming", "missed")


@hookimpl
def structsolve_structures():
    return [Named("path", PathStructure, "paths through grids and graphs, by learned costs")]


@hookimpl(trylast=True)
def structsolve_oracle(space):
    if isinstance(space, PathSpace):
        from structsolve.plugins.path._oracle import PathOracle

        return PathOracle


@hookimpl(trylast=True)
def structsolve_parts(space):
    if isinstance(space, PathSpace):
        from structsolve.plugins.path._parts import PathParts  # nodes, edges

        return PathParts


@hookimpl(trylast=True)
def structsolve_power(space, power):
    if isinstance(space, PathSpace):
        from structsolve.plugins.path._oracle import PathKBest
        from structsolve.plugins.path._shape import graphs_of

        if power == "relaxation":
            bind = partial(IntegralRelaxation, space.make_oracle(), space.make_parts())
            return lambda layout: None if graphs_of(layout).any_cyclic() else bind(layout)
        return PathKBest if power == "kbest" else None


@hookimpl(trylast=True)
def structsolve_projection(space, regularizer):
    if isinstance(space, PathSpace) and regularizer == "entropy":
        from structsolve.plugins.path._projections import PathProjection  # no cycles

        return PathProjection


@hookimpl
def structsolve_losses():
    return ["edge-hamming", "missed", "regret"]


@hookimpl(trylast=True)
def structsolve_loss(space, loss):
    if isinstance(space, PathSpace):
        from structsolve.plugins.path._losses import PathLoss, Regret
        from structsolve.structure.node_losses import ZeroOneLoss

        if loss == "edge-hamming" and space.n_edge_features is None:
            return None
        if loss in LOSSES:
            return partial(PathLoss, loss == "missed", loss == "edge-hamming")
        if loss == "regret":
            return Regret if space.costs else None
        return ZeroOneLoss if loss == "zero-one" else None


@hookimpl(trylast=True)
def structsolve_polytope(space):
    if isinstance(space, PathSpace):
        from structsolve.plugins.path._shape import graphs_of
        from structsolve.plugins.path.polytope import PathPolytopes

        def bind(layout):
            if graphs_of(layout).any_cyclic():
                return None
            return PathPolytopes(layout.examples, space.n_edge_features is not None)

        return bind
