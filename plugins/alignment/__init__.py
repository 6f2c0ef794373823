"""Alignments of two sequences as a plugin: edits, several items to one partner, CTC."""

from functools import partial

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.alignment.space import AlignmentSpace, AlignmentStructure
from structsolve.structure.operator_hooks import OperatorHooks, with_examples

__all__ = ["AlignmentSpace", "AlignmentStructure"]
_hooks = OperatorHooks(__name__, AlignmentSpace)


@hookimpl
def structsolve_structures():
    return [Named("alignment", AlignmentStructure, "monotone alignments of two sequences")]


structsolve_oracle = _hooks.operator("_oracle:AlignmentOracle", AlignmentSpace.of_kind)
structsolve_parts = _hooks.operator("_grid:AlignmentParts", AlignmentSpace.of_kind)
structsolve_power = _hooks.powers(
    {"kbest": "_oracle:AlignmentKBest"}, AlignmentSpace.of_kind, integral=True
)
structsolve_projection = _hooks.projections(
    {"entropy": "_projections:AlignmentSums"}, AlignmentSpace.of_kind
)
structsolve_polytope = _hooks.operator("polytope:AlignmentPolytopes", with_examples)


@_hooks.hookimpl
def structsolve_loss(space, loss):
    from structsolve.plugins.alignment._losses import PartnerLoss
    from structsolve.structure.node_losses import ZeroOneLoss

    if loss in ("hamming", "normalized-hamming"):
        return partial(PartnerLoss, loss != "hamming", str(space.structure.kind))
    return ZeroOneLoss if loss == "zero-one" else None
