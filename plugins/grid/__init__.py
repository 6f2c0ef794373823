"""Label pictures as a plugin: graphs of pixels, with the decoders of structsolve.plugins.mrf."""

from structsolve.hookspecs import Lazy, Named, hookimpl
from structsolve.plugins.grid.space import GridSpace, GridStructure
from structsolve.plugins.mrf.graph_operators import graph_power
from structsolve.structure.base import node_loss
from structsolve.structure.operator_hooks import OperatorHooks, with_space

__all__ = ["GridSpace", "GridStructure"]
_hooks = OperatorHooks("structsolve.plugins.mrf", GridSpace)


@hookimpl
def structsolve_structures():
    return [Named("grid", GridStructure, "pictures: a label per pixel, scores of neighbours")]


@hookimpl
def structsolve_readers():
    home = Lazy("structsolve.plugins.grid.reader:PictureReader")
    return [Named("pictures", home, "a folder of pictures, label pictures in a second one")]


structsolve_oracle = _hooks.operator("graph_operators:bind_oracle", with_space)
structsolve_parts = _hooks.operator("graph_operators:bind_parts", with_space)
structsolve_power = _hooks.hookimpl(graph_power)
structsolve_projection = _hooks.projections({"entropy": "graph_operators:bind_entropy"}, with_space)
structsolve_loss = _hooks.hookimpl(node_loss)
structsolve_polytope = _hooks.operator("graph_operators:graph_polytopes", with_space)
