"""Flows in a network as a plugin: what it provides, hook by hook."""

from functools import partial

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.flow.space import CONTINUOUS, FlowSpace, FlowStructure
from structsolve.structure.operator_hooks import OperatorHooks

__all__ = ["FlowSpace", "FlowStructure"]
_hooks = OperatorHooks(__name__, FlowSpace)


@hookimpl
def structsolve_structures():
    return [Named("flow", FlowStructure, "flows in a network with demands and capacities")]


def _with_solver(space, operator):
    from structsolve.plugins.flow._oracle import FlowSolver  # compiled: listing flows needs it not

    return partial(operator, FlowSolver(space.network.integral()))


structsolve_oracle = _hooks.operator("_oracle:FlowOracle", _with_solver)
structsolve_power = _hooks.powers({"kbest": "_oracle:FlowKBest"}, _with_solver, integral=True)
structsolve_parts = _hooks.operator(
    "_oracle:FlowParts",  # units on arcs
    lambda space, parts: partial(parts, int(space.network.integral().upper.max())),
)
structsolve_polytope = _hooks.operator(
    "polytope:FlowPolytopes", lambda space, polytopes: lambda _: polytopes(space.network.integral())
)


@_hooks.hookimpl
def structsolve_loss(space, loss):
    from structsolve.plugins.flow._oracle import ArcLoss
    from structsolve.structure.node_losses import ZeroOneLoss

    if loss in ("hamming", "absolute", "normalized-hamming"):
        space.network.integral().check_unit(loss)
        return partial(ArcLoss, loss == "normalized-hamming")
    return ZeroOneLoss if loss == "zero-one" else None


@hookimpl
def structsolve_losses():
    return list(CONTINUOUS)  # "squared" by conditional risk minimisation alone
