"""Rankings and matchings as a plugin: what it declares."""

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.permutation.assign import Assigned, assign
from structsolve.plugins.permutation.space import MatchingSpace, PermutationStructure, RankingSpace

__all__ = ["Assigned", "MatchingSpace", "PermutationStructure", "RankingSpace", "assign"]


@hookimpl
def structsolve_structures():
    return [Named("permutation", PermutationStructure, "rankings of labels, matchings of points")]


@hookimpl
def structsolve_loss_names():
    return ["spearman"]
