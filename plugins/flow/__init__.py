"""Flows in a network as a plugin: what it provides, hook by hook."""

from functools import partial

from structsolve.hookspecs import Named, hookimpl
from structsolve.operators import IntegralRelaxation
from structsolve.plugins.flow.space import CONTINUOUS, FlowSpace, FlowStructure

__all__ = ["FlowSpace", "FlowStructure"]


@hookimpl
def structsolve_structures():
    return [Named("flow", FlowStructure, "flows in a network with demands and capacities")]


@hookimpl(trylast=True)
def structsolve_oracle(space):
    if isinstance(space, FlowSpace):
        from structsolve.plugins.flow._oracle import FlowOracle, FlowSolver

        return partial(FlowOracle, FlowSolver(space.network.integral()))


@hookimpl(trylast=True)
def structsolve_parts(space):
    if isinstance(space, FlowSpace):
        from structsolve.plugins.flow._oracle import FlowParts  # units on arcs

        return partial(FlowParts, int(space.network.integral().upper.max()))


@hookimpl(trylast=True)
def structsolve_power(space, power):
    if isinstance(space, FlowSpace):
        from structsolve.plugins.flow._oracle import FlowKBest, FlowSolver

        if power == "kbest":
            return partial(FlowKBest, FlowSolver(space.network.integral()))
        if power == "relaxation":
            return partial(IntegralRelaxation, space.make_oracle(), space.make_parts())


@hookimpl(trylast=True)
def structsolve_loss(space, loss):
    if isinstance(space, FlowSpace):
        from structsolve.plugins.flow._oracle import ArcLoss
        from structsolve.structure.node_losses import ZeroOneLoss

        if loss in ("hamming", "absolute", "normalized-hamming"):
            space.network.integral().check_unit(loss)
            return partial(ArcLoss, loss == "normalized-hamming")
        return ZeroOneLoss if loss == "zero-one" else None


@hookimpl
def structsolve_losses():
    return list(CONTINUOUS)  # "squared" by conditional risk minimisation alone


@hookimpl(trylast=True)
def structsolve_polytope(space):
    if isinstance(space, FlowSpace):
        from structsolve.plugins.flow.polytope import FlowPolytopes

        return lambda _: FlowPolytopes(space.network.integral())
