"""Rankings and matchings as a plugin: what it declares, and its hook implementations."""

from structsolve.hookspecs import Named, hookimpl
from structsolve.structure.losses import ClassWeights, CostMatrix

from structsolve.plugins.permutation.assign import Assigned, assign
from structsolve.plugins.permutation.space import MatchingSpace, PermutationStructure, RankingSpace

__all__ = ["Assigned", "MatchingSpace", "PermutationStructure", "RankingSpace", "assign"]

SPACES = (RankingSpace, MatchingSpace)


@hookimpl
def structsolve_structures():
    return [Named("permutation", PermutationStructure, "rankings of labels, matchings of points")]


@hookimpl
def structsolve_oracle(space, examples):
    if isinstance(space, SPACES):
        from structsolve.plugins.permutation._shape import AssignmentOracle

        return AssignmentOracle(space.shape(examples))


@hookimpl
def structsolve_polytope(space, examples):
    if isinstance(space, SPACES):
        from structsolve.plugins.permutation.polytope import AssignmentPolytopes

        return AssignmentPolytopes(space, examples)


@hookimpl
def structsolve_parts(space, examples):
    if isinstance(space, SPACES):
        from structsolve.plugins.permutation._shape import AssignmentParts

        return AssignmentParts(space.shape(examples))


@hookimpl
def structsolve_projection(space, examples, regularizer):
    if isinstance(space, SPACES) and regularizer in ("entropy", "euclidean"):
        from structsolve.plugins.permutation._birkhoff import AssignmentProjection

        return AssignmentProjection(space.shape(examples), regularizer)


@hookimpl
def structsolve_loss(space, examples, loss):
    if not isinstance(space, SPACES):
        return None
    if loss == "zero-one":
        from structsolve.structure.node_losses import ZeroOneLoss

        return ZeroOneLoss(examples.labels, examples.label_offsets)
    from structsolve.plugins.permutation._losses import AssignmentLoss

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
