"""Segmentations as a plugin: sequences cut into segments with classes and lengths."""

from functools import partial

from structsolve.hookspecs import Named, hookimpl
from structsolve.operators import IntegralRelaxation
from structsolve.plugins.semi_markov.space import SemiMarkovSpace, SemiMarkovStructure

__all__ = ["SemiMarkovSpace", "SemiMarkovStructure"]


@hookimpl
def structsolve_structures():
    return [Named("semi-markov", SemiMarkovStructure, "sequences cut into segments with classes")]


@hookimpl(trylast=True)
def structsolve_oracle(space):
    if isinstance(space, SemiMarkovSpace):
        from structsolve.plugins.semi_markov._oracle import SegmentOracle

        return space.of_kind(SegmentOracle)


@hookimpl(trylast=True)
def structsolve_parts(space):
    if isinstance(space, SemiMarkovSpace):
        from structsolve.plugins.semi_markov._shape import SegmentParts

        return space.of_kind(SegmentParts)


@hookimpl(trylast=True)
def structsolve_power(space, power):
    if isinstance(space, SemiMarkovSpace):
        from structsolve.plugins.semi_markov import _oracle

        if power == "relaxation":  # its corners are the segmentations
            return partial(IntegralRelaxation, space.make_oracle(), space.make_parts())
        powers = {"kbest": _oracle.SegmentKBest, "augmented": _oracle.SegmentAugmented}
        return space.of_kind(powers[power]) if power in powers else None


@hookimpl(trylast=True)
def structsolve_projection(space, regularizer):
    if isinstance(space, SemiMarkovSpace) and regularizer == "entropy":
        from structsolve.plugins.semi_markov._projections import SegmentSums

        return space.of_kind(SegmentSums)


@hookimpl
def structsolve_losses():
    return ["span"]


@hookimpl(trylast=True)
def structsolve_loss(space, loss):
    if isinstance(space, SemiMarkovSpace):
        from structsolve.plugins.semi_markov._losses import SpanLoss, TokenLoss
        from structsolve.structure.node_losses import ZeroOneLoss

        if loss in ("hamming", "normalized-hamming"):
            return partial(TokenLoss, loss != "hamming", space.outside)
        if loss == "span":
            return space.of_kind(SpanLoss)
        return ZeroOneLoss if loss == "zero-one" else None


@hookimpl(trylast=True)
def structsolve_polytope(space):
    if isinstance(space, SemiMarkovSpace):
        from structsolve.plugins.semi_markov.polytope import SegmentPolytopes

        return lambda layout: SegmentPolytopes(space, layout.examples.offsets)
