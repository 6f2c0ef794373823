"""Labelings of trees and forests as a plugin: what it declares, and its hook implementations."""

from structsolve.hookspecs import Named, hookimpl

from structsolve.plugins.tree.space import TreeSpace, TreeStructure
from structsolve.plugins.tree.trees import root_tree

__all__ = ["TreeSpace", "TreeStructure", "root_tree"]


@hookimpl
def structsolve_structures():
    return [Named("tree", TreeStructure, "labelings of trees: tables of parent and child states")]


@hookimpl
def structsolve_oracle(space, examples):
    if isinstance(space, TreeSpace):
        from structsolve.plugins.tree._oracle import TreeOracle

        return TreeOracle(space.shape(examples))


@hookimpl
def structsolve_parts(space, examples):
    if isinstance(space, TreeSpace):
        from structsolve.plugins.tree._shape import TreeParts

        return TreeParts(space.shape(examples))


@hookimpl
def structsolve_projection(space, examples, regularizer):
    if isinstance(space, TreeSpace) and regularizer == "entropy":
        from structsolve.plugins.tree._sum_product import TreeSumProduct

        return TreeSumProduct(space.shape(examples))


@hookimpl
def structsolve_polytope(space, examples):
    if isinstance(space, TreeSpace):
        from structsolve.plugins.tree.polytope import TreePolytopes

        parents = examples.topology["parents"]
        return TreePolytopes(space.layout, examples.offsets, parents)
