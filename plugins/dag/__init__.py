"""The dag structure as a plugin: what it declares, and its hook implementations."""

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.dag.space import DagSpace, DagStructure
from structsolve.structure.hierarchy import Hierarchy

__all__ = ["DagSpace", "DagStructure", "Hierarchy"]


@hookimpl
def structsolve_structures():
    return [Named("dag", DagStructure, "label sets closed under a hierarchy, a tree or a DAG")]


@hookimpl
def structsolve_oracle(space, examples):
    if not isinstance(space, DagSpace):
        return None
    shape = space.shape(examples)
    if shape.single:
        from structsolve.plugins.dag._leaf import LeafOracle

        return LeafOracle(shape)
    if shape.union and not shape.forest:
        from structsolve.plugins.dag._program import UnionOracle
        from structsolve.plugins.dag.program import UnionProgram

        return UnionOracle(shape, UnionProgram(space.hierarchy), examples.labels is None)
    from structsolve.plugins.dag._oracle import SetOracle

    return SetOracle(shape)


@hookimpl
def structsolve_parts(space, examples):
    if isinstance(space, DagSpace):
        from structsolve.plugins.dag._shape import HierarchyParts

        return HierarchyParts(space.shape(examples))


@hookimpl
def structsolve_projection(space, examples, regularizer):
    # To count the closed sets of a graph is #P-hard: there is no entropy of them.
    if not isinstance(space, DagSpace) or regularizer != "entropy":
        return None
    shape = space.shape(examples)
    if shape.single:
        from structsolve.plugins.dag._leaf_projection import LeafSoftmax

        return LeafSoftmax(shape)
    if shape.forest:
        from structsolve.plugins.dag._projections import ForestSumProduct

        return ForestSumProduct(shape)


@hookimpl
def structsolve_loss(space, examples, loss):
    if isinstance(space, DagSpace):
        from structsolve.plugins.dag.losses import make_loss

        return make_loss(space, examples, loss)


@hookimpl
def structsolve_polytope(space, examples):
    if isinstance(space, DagSpace):
        from structsolve.plugins.dag.polytope import HierarchyPolytopes

        return HierarchyPolytopes(space)
