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
from structsolve.structure.operator_hooks import OperatorHooks

__all__ = ["OrdinalSpace", "OrdinalStructure", "ThresholdSpace"]
_hooks = OperatorHooks(__name__, OrderedLabels)


@hookimpl
def structsolve_structures():
    return [Named("ordinal", OrdinalStructure, "one of K ordered classes per row of features")]


structsolve_oracle = _hooks.hookimpl(row_oracle)
structsolve_projection = _hooks.hookimpl(row_projection)
structsolve_loss = _hooks.hookimpl(bind_loss)


@_hooks.hookimpl
def structsolve_parts(space):
    if isinstance(space, OrdinalSpace):
        return class_parts()
    from structsolve.plugins.ordinal._shape import ThresholdParts  # k, -1 per threshold below

    return ThresholdParts


@_hooks.hookimpl
def structsolve_power(space, power):
    power_of = class_power if isinstance(space, OrdinalSpace) else row_power
    return power_of(space, power)


@hookimpl
def structsolve_losses():
    return list(LOSSES)


@_hooks.hookimpl
def structsolve_polytope(space):
    if isinstance(space, OrdinalSpace):
        from structsolve.plugins.multiclass.polytope import Simplex

        return lambda _: Simplex(space.layout)
