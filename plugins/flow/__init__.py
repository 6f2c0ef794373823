"""The flow structure as a plugin."""

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.flow.space import FlowSpace, FlowStructure

__all__ = ["FlowSpace", "FlowStructure"]


@hookimpl
def structsolve_structures():
    return [Named("flow", FlowStructure, "flows in a network with demands and capacities")]


@hookimpl
def structsolve_loss_names():
    return ["absolute", "squared"]
