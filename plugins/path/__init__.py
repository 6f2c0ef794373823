"""Paths from a source to a sink as a plugin: what it provides, hook by hook."""

from functools import partial

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.path.graphs import grid_steps
from structsolve.plugins.path.space import PathSpace, PathStructure
from structsolve.plugins.path.terrain import make_terrain_maps
from structsolve.structure.operator_hooks import OperatorHooks, integral_relaxation

__all__ = ["PathSpace", "PathStructure", "grid_steps", "make_terrain_maps"]

LOSSES = ("hamming", "edge-hamming", "missed")
_hooks = OperatorHooks(__name__, PathSpace)


@hookimpl
def structsolve_structures():
    return [Named("path", PathStructure, "paths through grids and graphs, by learned costs")]


structsolve_oracle = _hooks.operator("_oracle:PathOracle")
structsolve_parts = _hooks.operator("_parts:PathParts")  # nodes, edges
structsolve_projection = _hooks.projections({"entropy": "_projections:PathProjection"})


@_hooks.hookimpl
def structsolve_power(space, power):
    from structsolve.plugins.path._oracle import PathKBest
    from structsolve.plugins.path._shape import graphs_of

    if power == "relaxation":
        bind = integral_relaxation(space)
        return lambda layout: None if graphs_of(layout).any_cyclic() else bind(layout)
    return PathKBest if power == "kbest" else None


@hookimpl
def structsolve_losses():
    return ["edge-hamming", "missed", "regret"]


@_hooks.hookimpl
def structsolve_loss(space, loss):
    from structsolve.plugins.path._losses import PathLoss, Regret
    from structsolve.structure.node_losses import ZeroOneLoss

    if loss == "edge-hamming" and space.n_edge_features is None:
        return None
    if loss in LOSSES:
        return partial(PathLoss, loss == "missed", loss == "edge-hamming")
    if loss == "regret":
        return Regret if space.costs else None
    return ZeroOneLoss if loss == "zero-one" else None


@_hooks.hookimpl
def structsolve_polytope(space):
    from structsolve.plugins.path._shape import graphs_of
    from structsolve.plugins.path.polytope import PathPolytopes

    def bind(layout):
        if graphs_of(layout).any_cyclic():
            return None
        return PathPolytopes(layout.examples, space.n_edge_features is not None)

    return bind
