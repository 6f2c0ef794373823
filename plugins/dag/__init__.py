"""Label sets under a hierarchy as a plugin: what it provides, hook by hook."""

from functools import partial

from structsolve.hookspecs import Named, hookimpl
from structsolve.operators import IntegralRelaxation
from structsolve.plugins.dag.losses import LOSSES, bind_loss
from structsolve.plugins.dag.space import DagSpace, DagStructure
from structsolve.structure.hierarchy import Hierarchy

__all__ = ["DagSpace", "DagStructure", "Hierarchy"]


@hookimpl
def structsolve_structures():
    return [Named("dag", DagStructure, "label sets closed under a hierarchy, a tree or a DAG")]


@hookimpl(trylast=True)
def structsolve_oracle(space):
    if not isinstance(space, DagSpace):
        return None
    if space.single:
        from structsolve.plugins.dag._leaf_oracle import LeafOracle  # a scan of the leaves

        return partial(LeafOracle, space.shape)
    if space.unions_are_hard:
        from structsolve.plugins.dag._union_oracle import UnionOracle  # integer programs

        return partial(UnionOracle, space.shape, space.union_program)
    from structsolve.plugins.dag._oracle import SetOracle  # minimum closures

    return partial(SetOracle, space.sets)


@hookimpl(trylast=True)
def structsolve_parts(space):
    if isinstance(space, DagSpace):
        from structsolve.plugins.dag._shape import HierarchyParts  # nodes that are on

        return partial(HierarchyParts, space.shape)


@hookimpl(trylast=True)
def structsolve_power(space, power):
    if not isinstance(space, DagSpace):
        return None
    if space.unions_are_hard:
        from structsolve.plugins.dag._union_oracle import UnionRelaxation

        relaxation = partial(UnionRelaxation, space.shape, space.union_program)
        return relaxation if power == "relaxation" else None
    if power == "relaxation":
        return partial(IntegralRelaxation, space.make_oracle(), space.make_parts())
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


@hookimpl(trylast=True)
def structsolve_projection(space, regularizer):
    if not isinstance(space, DagSpace):
        return None
    if regularizer == "euclidean" and not (space.single or space.shape.union):
        from structsolve.plugins.dag._nearest_set import NearestSets

        return partial(NearestSets, space.make_oracle(), space.shape)
    # Counting the closed sets of a graph is #P-hard: it has no entropy projection.
    if regularizer == "entropy":
        from structsolve.plugins.dag._projections import ForestSumProduct, LeafSoftmax

        if space.single:
            return partial(LeafSoftmax, space.shape)
        return partial(ForestSumProduct, space.shape) if space.hierarchy.forest else None


@hookimpl(trylast=True)
def structsolve_loss(space, loss):
    if isinstance(space, DagSpace):
        return bind_loss(space, loss)


@hookimpl
def structsolve_loss_names():
    return list(LOSSES)


@hookimpl(trylast=True)
def structsolve_polytope(space, examples):
    if isinstance(space, DagSpace):
        from structsolve.plugins.dag.polytope import HierarchyPolytopes

        return HierarchyPolytopes(space)
