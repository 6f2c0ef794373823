"""The multilabel structure as a plugin: what it declares, and its hook implementations.

Label sets are labelings of a graph of the labels: everything but the losses is that of
structsolve.plugins.mrf.
"""

from structsolve.hookspecs import Named, hookimpl
from structsolve.structure.losses import LabelCount

from structsolve.plugins.multilabel.space import MultilabelSpace, MultilabelStructure

__all__ = ["MultilabelSpace", "MultilabelStructure"]


@hookimpl
def structsolve_structures():
    return [Named("multilabel", MultilabelStructure, "label sets, with scores of pairs of labels")]


@hookimpl
def structsolve_oracle(space, examples):
    if isinstance(space, MultilabelSpace):
        from structsolve.plugins.mrf.decoders import make_oracle

        from structsolve.plugins.multilabel._oracle import LabelSetOracle

        return make_oracle(space.shape(examples), space.oracle_for(examples), LabelSetOracle)


@hookimpl
def structsolve_polytope(space, examples):
    if isinstance(space, MultilabelSpace):
        from structsolve.plugins.mrf.polytope import GraphPolytopes

        return GraphPolytopes(space.shape(examples))


@hookimpl
def structsolve_parts(space, examples):
    if isinstance(space, MultilabelSpace):
        from structsolve.plugins.mrf._shape import GraphParts

        return GraphParts(space.shape(examples))


@hookimpl
def structsolve_projection(space, examples, regularizer):
    # With pairs of labels the marginals are those of a graph: offered where it has no cycle.
    if not isinstance(space, MultilabelSpace):
        return None
    if not len(space.edges_):
        from structsolve.plugins.multilabel._projections import LabelSetClip, LabelSetSigmoids

        if regularizer in ("entropy", "euclidean"):
            projection = LabelSetSigmoids if regularizer == "entropy" else LabelSetClip
            return projection(space.shape(examples))
    elif regularizer == "entropy":
        shape = space.shape(examples)
        if shape.forest:
            from structsolve.plugins.mrf._forest_sums import ForestSumProduct

            return ForestSumProduct(shape)
    return None


@hookimpl
def structsolve_max_min(space, examples, loss):
    if isinstance(space, MultilabelSpace) and not len(space.edges_):
        from structsolve.plugins.multilabel._oracle import LabelSetHamming
        from structsolve.plugins.multilabel._projections import LabelSetMaxMin

        if isinstance(loss, LabelSetHamming):
            return LabelSetMaxMin(space.shape(examples), loss.weight)


@hookimpl
def structsolve_loss(space, examples, loss):
    if not isinstance(space, MultilabelSpace):
        return None
    if loss in ("hamming", "normalized-hamming"):
        from structsolve.plugins.multilabel._oracle import LabelSetHamming

        return LabelSetHamming(examples.labels, space.shape(examples), loss != "hamming")
    if isinstance(loss, LabelCount):
        from structsolve.plugins.multilabel._oracle import LabelSetCount

        if loss.background is not None:
            raise ValueError(
                f"micro-f1: background is {loss.background!r}, expected None: a label set counts "
                "the labels that are on"
            )
        return LabelSetCount(examples.labels, space.shape(examples))
    if loss == "zero-one":
        from structsolve.structure.node_losses import ZeroOneLoss

        return ZeroOneLoss(examples.labels, examples.label_offsets)
    return None
