"""One of K classes per row as a plugin: what it provides, hook by hook."""

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.multiclass.row_operators import (
    class_parts,
    class_power,
    row_oracle,
    row_projection,
)
from structsolve.plugins.multiclass.space import MulticlassSpace, MulticlassStructure
from structsolve.structure.base import node_loss

__all__ = ["MulticlassSpace", "MulticlassStructure"]


@hookimpl
def structsolve_structures():
    return [Named("multiclass", MulticlassStructure, "one of K classes per row of features")]


@hookimpl(trylast=True)
def structsolve_oracle(space):
    if isinstance(space, MulticlassSpace):
        return row_oracle(space)


@hookimpl(trylast=True)
def structsolve_parts(space):
    if isinstance(space, MulticlassSpace):
        return class_parts()


@hookimpl(trylast=True)
def structsolve_power(space, power):
    if isinstance(space, MulticlassSpace):
        return class_power(space, power)


@hookimpl(trylast=True)
def structsolve_projection(space, regularizer):
    if isinstance(space, MulticlassSpace):
        return row_projection(space, regularizer)


@hookimpl(trylast=True)
def structsolve_loss(space, loss):
    if isinstance(space, MulticlassSpace):
        return node_loss(space, loss)


@hookimpl(trylast=True)
def structsolve_polytope(space):
    if isinstance(space, MulticlassSpace):
        from structsolve.plugins.multiclass.polytope import Simplex

        return lambda _: Simplex(space.layout)
