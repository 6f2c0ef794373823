"""Label pictures as a plugin: graphs of pixels, with the decoders of structsolve.plugins.mrf."""

from functools import partial

from structsolve.hookspecs import Lazy, Named, hookimpl
from structsolve.plugins.grid.space import GridSpace, GridStructure
from structsolve.plugins.mrf.graph_operators import (
    POWERS,
    bind_entropy,
    bind_oracle,
    bind_parts,
    bind_power,
    graph_polytopes,
)
from structsolve.structure.base import node_loss

__all__ = ["GridSpace", "GridStructure"]


@hookimpl
def structsolve_structures():
    return [Named("grid", GridStructure, "pictures: a label per pixel, scores of neighbours")]


@hookimpl
def structsolve_readers():
    home = Lazy("structsolve.plugins.grid.reader:PictureReader")
    return [Named("pictures", home, "a folder of pictures, label pictures in a second one")]


@hookimpl(trylast=True)
def structsolve_oracle(space):
    if isinstance(space, GridSpace):
        return partial(bind_oracle, space)  # a decoder of structsolve.plugins.mrf.decoders


@hookimpl(trylast=True)
def structsolve_parts(space):
    if isinstance(space, GridSpace):
        return partial(bind_parts, space)


@hookimpl(trylast=True)
def structsolve_power(space, power):
    if isinstance(space, GridSpace) and power in POWERS:
        return partial(bind_power, space, power)


@hookimpl(trylast=True)
def structsolve_projection(space, regularizer):
    if isinstance(space, GridSpace) and regularizer == "entropy":
        return partial(bind_entropy, space)


@hookimpl(trylast=True)
def structsolve_loss(space, loss):
    if isinstance(space, GridSpace):
        return node_loss(space, loss)


@hookimpl(trylast=True)
def structsolve_polytope(space):
    if isinstance(space, GridSpace):
        return partial(graph_polytopes, space)
