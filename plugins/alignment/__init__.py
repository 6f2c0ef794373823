"""Alignments of two sequences as a plugin: edits, several items to one partner, CTC."""

from functools import partial

from structsolve.hookspecs import Named, hookimpl
from structsolve.operators import IntegralRelaxation
from structsolve.plugins.alignment.space import AlignmentSpace, AlignmentStructure

__all__ = ["AlignmentSpace", "AlignmentStructure"]


@hookimpl
def structsolve_structures():
    return [Named("alignment", AlignmentStructure, "monotone alignments of two sequences")]


@hookimpl(trylast=True)
def structsolve_oracle(space):
    if isinstance(space, AlignmentSpace):
        from structsolve.plugins.alignment._oracle import AlignmentOracle

        return space.of_kind(AlignmentOracle)


@hookimpl(trylast=True)
def structsolve_parts(space):
    if isinstance(space, AlignmentSpace):
        from structsolve.plugins.alignment._grid import AlignmentParts

        return space.of_kind(AlignmentParts)


@hookimpl(trylast=True)
def structsolve_power(space, power):
    if isinstance(space, AlignmentSpace):
        from structsolve.plugins.alignment._oracle import AlignmentKBest

        if power == "relaxation":  # its corners are the alignments
            return partial(IntegralRelaxation, space.make_oracle(), space.make_parts())
        return space.of_kind(AlignmentKBest) if power == "kbest" else None


@hookimpl(trylast=True)
def structsolve_projection(space, regularizer):
    if isinstance(space, AlignmentSpace) and regularizer == "entropy":
        from structsolve.plugins.alignment._projections import AlignmentSums

        return space.of_kind(AlignmentSums)


@hookimpl(trylast=True)
def structsolve_loss(space, loss):
    if isinstance(space, AlignmentSpace):
        from structsolve.plugins.alignment._losses import PartnerLoss
        from structsolve.structure.node_losses import ZeroOneLoss

        if loss in ("hamming", "normalized-hamming"):
            return partial(PartnerLoss, loss != "hamming", str(space.structure.kind))
        return ZeroOneLoss if loss == "zero-one" else None


@hookimpl(trylast=True)
def structsolve_polytope(space):
    if isinstance(space, AlignmentSpace):
        from structsolve.plugins.alignment.polytope import AlignmentPolytopes

        return lambda layout: AlignmentPolytopes(space, layout.examples)
