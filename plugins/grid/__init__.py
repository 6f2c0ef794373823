"""Label pictures as a plugin: graphs of pixels, with the operators of structsolve.plugins.mrf."""

from structsolve.hookspecs import Lazy, Named, hookimpl
from structsolve.plugins.grid.space import GridSpace, GridStructure

__all__ = ["GridSpace", "GridStructure"]


@hookimpl
def structsolve_structures():
    return [Named("grid", GridStructure, "pictures: a label per pixel, scores of neighbours")]


@hookimpl
def structsolve_readers():
    home = Lazy("structsolve.plugins.grid.reader:PictureReader")
    return [Named("pictures", home, "a folder of pictures, label pictures in a second one")]
