"""The flow structure as a plugin: what it declares, and its hook implementations."""

from structsolve.hookspecs import Named, hookimpl

from structsolve.plugins.flow.space import FlowSpace, FlowStructure

__all__ = ["FlowSpace", "FlowStructure"]


@hookimpl
def structsolve_structures():
    return [Named("flow", FlowStructure, "flows in a network with demands and capacities")]


@hookimpl
def structsolve_oracle(space, examples):
    if isinstance(space, FlowSpace):
        from structsolve.plugins.flow._oracle import FlowOracle

        return FlowOracle(space.network.integral(), space.layout.node_size, examples.n)


@hookimpl
def structsolve_parts(space, examples):
    if isinstance(space, FlowSpace):
        from structsolve.plugins.flow._oracle import FlowParts

        return FlowParts(space.network.integral(), space.layout.node_size, examples.n)


@hookimpl
def structsolve_loss(space, examples, loss):
    if not isinstance(space, FlowSpace):
        return None
    if loss in ("hamming", "absolute", "normalized-hamming"):
        from structsolve.plugins.flow._oracle import ArcLoss

        network = space.network.integral()
        network.check_unit(loss)
        normalised = loss == "normalized-hamming"
        return ArcLoss(network, examples.labels, space.layout.node_size, normalised)
    if loss == "zero-one":
        from structsolve.structure.node_losses import ZeroOneLoss

        return ZeroOneLoss(examples.labels, examples.label_offsets)
    return None


@hookimpl
def structsolve_loss_names():
    return ["absolute"]


@hookimpl
def structsolve_polytope(space, examples):
    if isinstance(space, FlowSpace):
        from structsolve.plugins.flow.polytope import FlowPolytopes

        return FlowPolytopes(space.network.integral())
