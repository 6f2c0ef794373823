"""The ordinal structure as a plugin: what it declares."""

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.ordinal.losses import LOSSES
from structsolve.plugins.ordinal.space import OrdinalSpace, OrdinalStructure, ThresholdSpace

__all__ = ["OrdinalSpace", "OrdinalStructure", "ThresholdSpace"]


@hookimpl
def structsolve_structures():
    return [Named("ordinal", OrdinalStructure, "one of K ordered classes per row of features")]


@hookimpl
def structsolve_loss_names():
    return list(LOSSES)
