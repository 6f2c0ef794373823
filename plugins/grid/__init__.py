"""Label pictures as a plugin: graphs of pixels, with the operators of structsolve.plugins.mrf."""

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.grid.space import GridSpace, GridStructure

__all__ = ["GridSpace", "GridStructure"]


@hookimpl
def structsolve_structures():
    return [Named("grid", GridStructure, "pictures: a label per pixel, scores of neighbours")]
