"""Hierarchies as a plugin: label sets under them, HierarchicalSVM (``svm``) and its scores.

``hierarchy`` holds the graph, ``space`` and ``labels`` what a label is, ``path_cost`` the loss of
normalised weights, ``metrics`` the scores, ``commands`` the option of the shell.
"""

from functools import partial
from typing import TYPE_CHECKING

from structsolve.hookspecs import Lazy, Named, hookimpl
from structsolve.plugins.dag.hierarchy import Hierarchy
from structsolve.plugins.dag.losses import LOSSES, bind_loss
from structsolve.plugins.dag.path_cost import PathCost
from structsolve.plugins.dag.space import DagSpace, DagStructure
from structsolve.structure.operator_hooks import OperatorHooks, integral_relaxation
from structsolve.utils.lazy import lazy_names

if TYPE_CHECKING:
    from structsolve.plugins.dag.metrics import hierarchical_scores
    from structsolve.plugins.dag.svm.estimator import HierarchicalSVM
    from structsolve.plugins.dag.svm.norms import shared_norm
    from structsolve.plugins.dag.svm.path import HierarchicalSVMCV
    from structsolve.plugins.dag.svm.shared import shared_weights
    from structsolve.plugins.dag.svm.weights import NodeWeights, node_weights

__all__ = [
    "DagSpace",
    "DagStructure",
    "HierarchicalSVM",
    "HierarchicalSVMCV",
    "Hierarchy",
    "NodeWeights",
    "PathCost",
    "hierarchical_scores",
    "node_weights",
    "shared_norm",
    "shared_weights",
]
__getattr__ = lazy_names(
    __name__,
    {
        "HierarchicalSVM": "svm.estimator",
        "HierarchicalSVMCV": "svm.path",
        "NodeWeights": "svm.weights",
        "hierarchical_scores": "metrics",
        "node_weights": "svm.weights",
        "shared_norm": "svm.norms",
        "shared_weights": "svm.shared",
    },
)
_hooks = OperatorHooks(__name__, DagSpace)


@hookimpl
def structsolve_structures():
    return [Named("dag", DagStructure, "label sets closed under a hierarchy, a tree or a DAG")]


@hookimpl
def structsolve_estimators():
    home = Lazy("structsolve.plugins.dag.svm.estimator:HierarchicalSVM")
    return [Named("HierarchicalSVM", home, "nodes of a hierarchy that share weights")]


@hookimpl
def structsolve_losses():
    text = "root of the weights between two leaves of a hierarchy"
    return [*LOSSES, Named("PathCost", PathCost, text)]


@hookimpl
def structsolve_metrics():
    home = Lazy("structsolve.plugins.dag.metrics:HierarchicalScorer")
    figures = ("f1", "precision", "recall")
    means = {"": "micro", "macro-": "macro"}
    return [
        Named(f"hierarchical-{mean}{figure}", partial(home, figure, average))
        for mean, average in means.items()
        for figure in figures
    ]


@_hooks.hookimpl
def structsolve_oracle(space):
    if space.single:
        from structsolve.plugins.dag._leaf_oracle import LeafOracle  # a scan of the leaves

        return partial(LeafOracle, space.shape)
    if space.unions_are_hard:
        from structsolve.plugins.dag._union_oracle import UnionOracle  # integer programs

        return partial(UnionOracle, space.shape, space.union_program)
    from structsolve.plugins.dag._oracle import SetOracle  # minimum closures

    return partial(SetOracle, space.sets)


@_hooks.hookimpl
def structsolve_parts(space):
    from structsolve.plugins.dag._shape import HierarchyParts  # nodes that are on

    return partial(HierarchyParts, space.shape)


@_hooks.hookimpl
def structsolve_power(space, power):
    if space.unions_are_hard:
        from structsolve.lp import ask_program_power  # heavy
        from structsolve.plugins.dag.union_program import TIGHT

        return ask_program_power(space, f"lp:{TIGHT}", power) if power == "relaxation" else None
    if power == "relaxation":
        return integral_relaxation(space)
    from structsolve.plugins.dag import _leaf_oracle, _oracle

    if space.single:
        leaves = {
            "kbest": _leaf_oracle.LeafKBest,
            "max-marginals": _leaf_oracle.LeafMaxMarginals,
            "cones": _leaf_oracle.LeafCones,
        }
        return partial(leaves[power], space.shape) if power in leaves else None
    sets = {"kbest": _oracle.SetKBest, "max-marginals": _oracle.SetMaxMarginals}
    return partial(sets[power], space.sets) if power in sets else None


@_hooks.hookimpl
def structsolve_projection(space, regularizer):
    if regularizer == "euclidean" and not (space.single or space.shape.union):
        from structsolve.plugins.dag._nearest_set import NearestSets

        return partial(NearestSets, space.make_oracle(), space.shape)
    # Counting the closed sets of a graph is #P-hard: it has no entropy projection.
    if regularizer == "entropy":
        from structsolve.plugins.dag._projections import ForestSumProduct, LeafSoftmax

        if space.single:
            return partial(LeafSoftmax, space.shape)
        return partial(ForestSumProduct, space.shape) if space.hierarchy.forest else None


structsolve_loss = _hooks.hookimpl(bind_loss)
structsolve_polytope = _hooks.operator(
    "polytope:HierarchyPolytopes", lambda space, polytopes: lambda _: polytopes(space)
)
