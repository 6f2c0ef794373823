"""The multiclass structure as a plugin: what it declares."""

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.multiclass.space import MulticlassSpace, MulticlassStructure

__all__ = ["MulticlassSpace", "MulticlassStructure"]


@hookimpl
def structsolve_structures():
    return [Named("multiclass", MulticlassStructure, "one of K classes per row of features")]
