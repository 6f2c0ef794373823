"""Label sets as a plugin: structure, operators, files by ``arff``, and the scores of ``metrics``.

Label sets are labelings of a graph of the labels: with pairs of labels, everything but the losses
comes from structsolve.plugins.mrf.
"""

from functools import partial

from structsolve.hookspecs import Lazy, Named, hookimpl
from structsolve.plugins.mrf.graph_operators import bind_entropy, graph_power
from structsolve.plugins.multilabel.operators import bind_loss, bind_worths
from structsolve.plugins.multilabel.space import MultilabelSpace, MultilabelStructure
from structsolve.structure.operator_hooks import OperatorHooks, with_space

__all__ = ["MultilabelSpace", "MultilabelStructure"]
_hooks = OperatorHooks("structsolve.plugins.mrf", MultilabelSpace)


@hookimpl
def structsolve_structures():
    return [Named("multilabel", MultilabelStructure, "label sets, with scores of pairs of labels")]


@hookimpl
def structsolve_readers():
    home = Lazy("structsolve.plugins.multilabel.arff:ArffReader")
    return [Named("arff", home, "Weka's tables, label sets with XML (Mulan), hierarchies")]


@hookimpl
def structsolve_metrics():
    home = Lazy("structsolve.plugins.multilabel.metrics:SetScorer")
    figures = [f"samples-{figure}" for figure in ("f1", "precision", "recall")]
    own = ["exact-match", *figures, "average-precision", "neg-coverage", "neg-ranking-loss"]
    text = "label-sets:NAME, of those that label sequences have too"
    return [Named("label-sets", home, text), *(Named(name, partial(home, name)) for name in own)]


structsolve_oracle = _hooks.operator("graph_operators:bind_oracle", with_space)
structsolve_parts = _hooks.operator("graph_operators:bind_parts", with_space)  # labels that are on
structsolve_polytope = _hooks.operator("graph_operators:graph_polytopes", with_space)


@_hooks.hookimpl
def structsolve_power(space, power):
    return partial(bind_worths, space) if power == "max-marginals" else graph_power(space, power)


@_hooks.hookimpl
def structsolve_projection(space, regularizer):
    if len(space.edges_):  # marginals of a graph, which must have no cycle
        return partial(bind_entropy, space) if regularizer == "entropy" else None
    from structsolve.plugins.multilabel._projections import LabelSetClip, LabelSetSigmoids

    return {"entropy": LabelSetSigmoids, "euclidean": LabelSetClip}.get(regularizer)


@_hooks.hookimpl
def structsolve_loss(space, loss):
    return bind_loss(loss)


@_hooks.hookimpl
def structsolve_max_min(space, loss):
    from structsolve.plugins.multilabel._losses import LabelSetHamming
    from structsolve.plugins.multilabel._projections import LabelSetMaxMin

    even = isinstance(loss, LabelSetHamming) and loss.missed == loss.extra
    if even and not len(space.edges_):
        return partial(LabelSetMaxMin, loss.extra)
