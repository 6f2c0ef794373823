"""One of K ordered classes per row as a plugin: what it provides, hook by hook."""

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.multiclass.row_operators import (
    class_parts,
    class_power,
    row_oracle,
    row_power,
    row_projection,
)
from structsolve.plugins.ordinal.losses import LOSSES, bind_loss
from structsolve.plugins.ordinal.space import (
    OrderedLabels,
    OrdinalSpace,
    OrdinalStructure,
    ThresholdSpace,
)

__all__ = ["OrdinalSpace", "OrdinalStructure", "ThresholdSpace"]


@hookimpl
def structsolve_structures():
    return [Named("ordinal", OrdinalStructure, "one of K ordered classes per row of features")]


@hookimpl(trylast=True)
def structsolve_oracle(space):
    if isinstance(space, OrderedLabels):
        return row_oracle(space)


@hookimpl(trylast=True)
def structsolve_parts(space):
    if isinstance(space, OrdinalSpace):
        return class_parts()
    if isinstance(space, ThresholdSpace):
        from structsolve.plugins.ordinal._shape import ThresholdParts  # k, -1 per threshold below

        return ThresholdParts


@hookimpl(trylast=True)
def structsolve_power(space, power):
    if isinstance(space, OrdinalSpace):
        return class_power(space, power)
    if isinstance(space, ThresholdSpace):
        return row_power(space, power)


@hookimpl(trylast=True)
def structsolve_projection(space, regularizer):
    if isinstance(space, OrderedLabels):
        return row_projection(space, regularizer)


@hookimpl(trylast=True)
def structsolve_loss(space, loss):
    if isinstance(space, OrderedLabels):
        return bind_loss(space, loss)


@hookimpl
def structsolve_losses():
    return list(LOSSES)


@hookimpl(trylast=True)
def structsolve_polytope(space):
    if isinstance(space, OrdinalSpace):
        from structsolve.plugins.multiclass.polytope import Simplex

        return lambda _: Simplex(space.layout)
