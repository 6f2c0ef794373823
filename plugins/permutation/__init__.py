"""Rankings and matchings as a plugin: what it declares, and its hook implementations."""

from structsolve.hookspecs import Named, hookimpl
from structsolve.losses import ClassWeights, CostMatrix

from .assign import Assigned, assign
from .space import MatchingSpace, PermutationStructure, RankingSpace

__all__ = ["Assigned", "MatchingSpace", "PermutationStructure", "RankingSpace", "assign"]

SPACES = (RankingSpace, MatchingSpace)


@hookimpl
def structsolve_structures():
    return [Named("permutation", PermutationStructure, "rankings of labels, matchings of points")]


@hookimpl
def structsolve_oracle(space, examples):
    if isinstance(space, SPACES):
        from ._shape import AssignmentOracle

        return AssignmentOracle(space.shape(examples))


@hookimpl
def structsolve_polytope(space, examples):
    if isinstance(space, SPACES):
        from .polytope import AssignmentPolytopes

        return AssignmentPolytopes(space, examples)


@hookimpl
def structsolve_parts(space, examples):
    if isinstance(space, SPACES):
        from ._shape import AssignmentParts

        return AssignmentParts(space.shape(examples))


@hookimpl
def structsolve_projection(space, examples, regularizer):
    if isinstance(space, SPACES) and regularizer in ("entropy", "euclidean"):
        from ._birkhoff import AssignmentProjection

        return AssignmentProjection(space.shape(examples), regularizer)


@hookimpl
def structsolve_loss(space, examples, loss):
    if not isinstance(space, SPACES):
        return None
    if loss == "zero-one":
        from structsolve.node_losses import ZeroOneLoss

        return ZeroOneLoss(examples.labels, examples.label_offsets)
    from ._losses import AssignmentLoss

    shape = space.shape(examples)
    if loss in ("hamming", "normalized-hamming"):
        return AssignmentLoss(examples.labels, shape, "hamming", loss != "hamming")
    if loss == "spearman":
        return AssignmentLoss(examples.labels, shape, "footrule")
    if isinstance(loss, (CostMatrix, ClassWeights)):
        cost = loss.cost(space.positions(examples))
        return AssignmentLoss(examples.labels, shape, cost, loss.normalized)
    return None


@hookimpl
def structsolve_loss_names():
    return ["spearman"]
