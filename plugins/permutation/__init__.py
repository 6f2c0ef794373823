"""Rankings and matchings as a plugin: what it provides, hook by hook."""

from functools import partial
from typing import TYPE_CHECKING

from structsolve.hookspecs import Lazy, Named, hookimpl
from structsolve.operators import IntegralRelaxation
from structsolve.plugins.permutation.assign import Assigned, assign
from structsolve.plugins.permutation.assignments import AssignmentSpace, bind_loss
from structsolve.plugins.permutation.space import MatchingSpace, PermutationStructure, RankingSpace
from structsolve.utils.lazy import lazy_names

if TYPE_CHECKING:
    from structsolve.plugins.permutation.metrics import ranking_report

__all__ = [
    "Assigned",
    "MatchingSpace",
    "PermutationStructure",
    "RankingSpace",
    "assign",
    "ranking_report",
]
__getattr__ = lazy_names(__name__, {"ranking_report": "metrics"})


@hookimpl
def structsolve_structures():
    return [Named("permutation", PermutationStructure, "rankings of labels, matchings of points")]


@hookimpl
def structsolve_metrics():
    home = Lazy("structsolve.plugins.permutation.metrics:RankingScorer")
    figures = ("kendall_tau", "spearman_rho")
    return [Named(figure.replace("_", "-"), partial(home, figure)) for figure in figures]


@hookimpl(trylast=True)
def structsolve_oracle(space):
    if isinstance(space, AssignmentSpace):
        from structsolve.plugins.permutation._oracle import AssignmentOracle  # linear assignments

        return AssignmentOracle


@hookimpl(trylast=True)
def structsolve_parts(space):
    if isinstance(space, AssignmentSpace):
        from structsolve.plugins.permutation._shape import AssignmentParts  # pairs (row, column)

        return AssignmentParts


@hookimpl(trylast=True)
def structsolve_power(space, power):
    if isinstance(space, AssignmentSpace):
        from structsolve.plugins.permutation import _murty

        if power == "relaxation":  # the Birkhoff polytope: its corners are the assignments
            return partial(IntegralRelaxation, space.make_oracle(), space.make_parts())
        powers = {
            "kbest": _murty.AssignmentKBest,
            "max-marginals": _murty.AssignmentMaxMarginals,
        }
        return powers.get(power)


@hookimpl(trylast=True)
def structsolve_projection(space, regularizer):
    if isinstance(space, AssignmentSpace) and regularizer in ("entropy", "euclidean"):
        from structsolve.plugins.permutation._projections import AssignmentProjection

        return partial(AssignmentProjection, regularizer)


@hookimpl(trylast=True)
def structsolve_loss(space, loss):
    if isinstance(space, AssignmentSpace):
        return bind_loss(space, loss)


@hookimpl
def structsolve_losses():
    return ["spearman"]


@hookimpl(trylast=True)
def structsolve_polytope(space):
    if isinstance(space, AssignmentSpace):
        from structsolve.plugins.permutation.polytope import AssignmentPolytopes  # Birkhoff's

        return lambda layout: AssignmentPolytopes(space, layout.examples)
