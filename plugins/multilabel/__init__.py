"""Label sets as a plugin: what it provides, hook by hook.

Label sets are labelings of a graph of the labels: with pairs of labels, everything but the losses
comes from structsolve.plugins.mrf.
"""

from functools import partial

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.mrf.graph_operators import (
    POWERS,
    bind_entropy,
    bind_oracle,
    bind_parts,
    bind_power,
    graph_polytopes,
)
from structsolve.plugins.multilabel.operators import bind_loss, bind_worths
from structsolve.plugins.multilabel.space import MultilabelSpace, MultilabelStructure

__all__ = ["MultilabelSpace", "MultilabelStructure"]


@hookimpl
def structsolve_structures():
    return [Named("multilabel", MultilabelStructure, "label sets, with scores of pairs of labels")]


@hookimpl(trylast=True)
def structsolve_oracle(space):
    if isinstance(space, MultilabelSpace):
        return partial(bind_oracle, space)  # a decoder of structsolve.plugins.mrf.decoders


@hookimpl(trylast=True)
def structsolve_parts(space):
    if isinstance(space, MultilabelSpace):
        return partial(bind_parts, space)  # labels that are on, joint states of pairs


@hookimpl(trylast=True)
def structsolve_power(space, power):
    if isinstance(space, MultilabelSpace) and power in POWERS:
        if power == "max-marginals":
            return partial(bind_worths, space)
        return partial(bind_power, space, power)


@hookimpl(trylast=True)
def structsolve_projection(space, regularizer):
    if not isinstance(space, MultilabelSpace):
        return None
    if len(space.edges_):  # marginals of a graph, which must have no cycle
        return partial(bind_entropy, space) if regularizer == "entropy" else None
    from structsolve.plugins.multilabel._projections import LabelSetClip, LabelSetSigmoids

    return {"entropy": LabelSetSigmoids, "euclidean": LabelSetClip}.get(regularizer)


@hookimpl(trylast=True)
def structsolve_loss(space, loss):
    if isinstance(space, MultilabelSpace):
        return bind_loss(loss)


@hookimpl(trylast=True)
def structsolve_max_min(space, loss):
    if isinstance(space, MultilabelSpace) and not len(space.edges_):
        from structsolve.plugins.multilabel._losses import LabelSetHamming
        from structsolve.plugins.multilabel._projections import LabelSetMaxMin

        if isinstance(loss, LabelSetHamming):
            return partial(LabelSetMaxMin, loss.weight)


@hookimpl(trylast=True)
def structsolve_polytope(space):
    if isinstance(space, MultilabelSpace):
        return partial(graph_polytopes, space)
