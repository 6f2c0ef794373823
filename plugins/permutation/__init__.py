"""Rankings and matchings as a plugin: what it provides, hook by hook."""

from functools import partial
from typing import TYPE_CHECKING

from structsolve.hookspecs import Lazy, Named, hookimpl
from structsolve.plugins.permutation.assign import Assigned, assign
from structsolve.plugins.permutation.assignments import AssignmentSpace, bind_loss
from structsolve.plugins.permutation.matching import MatchingSpace
from structsolve.plugins.permutation.space import PermutationStructure, RankingSpace
from structsolve.structure.operator_hooks import OperatorHooks, with_examples
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
_hooks = OperatorHooks(__name__, AssignmentSpace)


@hookimpl
def structsolve_structures():
    return [Named("permutation", PermutationStructure, "rankings of labels, matchings of points")]


@hookimpl
def structsolve_metrics():
    home = Lazy("structsolve.plugins.permutation.metrics:RankingScorer")
    figures = ("kendall_tau", "spearman_rho")
    return [Named(figure.replace("_", "-"), partial(home, figure)) for figure in figures]


structsolve_oracle = _hooks.operator("_oracle:AssignmentOracle")  # linear assignments
structsolve_parts = _hooks.operator("_shape:AssignmentParts")  # pairs (row, column)
structsolve_power = _hooks.powers(
    {"kbest": "_murty:AssignmentKBest", "max-marginals": "_murty:AssignmentMaxMarginals"},
    integral=True,  # the Birkhoff polytope: its corners are the assignments
)
structsolve_loss = _hooks.hookimpl(bind_loss)
structsolve_polytope = _hooks.operator("polytope:AssignmentPolytopes", with_examples)  # Birkhoff's


@_hooks.hookimpl
def structsolve_projection(space, regularizer):
    if regularizer in ("entropy", "euclidean"):
        from structsolve.plugins.permutation._projections import AssignmentProjection

        return partial(AssignmentProjection, regularizer)


@hookimpl
def structsolve_losses():
    return ["spearman"]
