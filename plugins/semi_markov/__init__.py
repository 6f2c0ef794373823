"""Segmentations as a plugin: sequences cut into segments with classes and lengths."""

from functools import partial

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.semi_markov.space import SemiMarkovSpace, SemiMarkovStructure
from structsolve.structure.operator_hooks import OperatorHooks, with_examples

__all__ = ["SemiMarkovSpace", "SemiMarkovStructure"]
_hooks = OperatorHooks(__name__, SemiMarkovSpace)


@hookimpl
def structsolve_structures():
    return [Named("semi-markov", SemiMarkovStructure, "sequences cut into segments with classes")]


structsolve_oracle = _hooks.operator("_oracle:SegmentOracle", SemiMarkovSpace.of_kind)
structsolve_parts = _hooks.operator("_shape:SegmentParts", SemiMarkovSpace.of_kind)
structsolve_power = _hooks.powers(
    {"kbest": "_oracle:SegmentKBest", "augmented": "_oracle:SegmentAugmented"},
    SemiMarkovSpace.of_kind,
    integral=True,
)
structsolve_projection = _hooks.projections(
    {"entropy": "_projections:SegmentSums"}, SemiMarkovSpace.of_kind
)
structsolve_polytope = _hooks.operator("polytope:SegmentPolytopes", with_examples)


@hookimpl
def structsolve_losses():
    return ["span"]


@_hooks.hookimpl
def structsolve_loss(space, loss):
    from structsolve.plugins.semi_markov._losses import SpanLoss, TokenLoss
    from structsolve.structure.node_losses import ZeroOneLoss

    if loss in ("hamming", "normalized-hamming"):
        return partial(TokenLoss, loss != "hamming", space.outside)
    if loss == "span":
        return space.of_kind(SpanLoss)
    return ZeroOneLoss if loss == "zero-one" else None
