"""Labelings of trees and forests as a plugin: what it provides, hook by hook."""

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.tree.space import TreeSpace, TreeStructure
from structsolve.plugins.tree.trees import root_tree
from structsolve.structure.base import node_loss

__all__ = ["TreeSpace", "TreeStructure", "root_tree"]


@hookimpl
def structsolve_structures():
    return [Named("tree", TreeStructure, "labelings of trees: tables of parent and child states")]


@hookimpl(trylast=True)
def structsolve_oracle(space):
    if isinstance(space, TreeSpace):
        from structsolve.plugins.tree._oracle import TreeOracle  # an exact dynamic program

        return TreeOracle


@hookimpl(trylast=True)
def structsolve_parts(space):
    if isinstance(space, TreeSpace):
        from structsolve.plugins.tree._shape import TreeParts  # states, pairs of states

        return TreeParts


@hookimpl(trylast=True)
def structsolve_power(space, power):
    if isinstance(space, TreeSpace):
        from structsolve.plugins.tree import _oracle

        powers = {
            "kbest": _oracle.TreeKBest,
            "max-marginals": _oracle.TreeMaxMarginals,
            "counts": _oracle.TreeCounts,
        }
        return powers.get(power)


@hookimpl(trylast=True)
def structsolve_projection(space, regularizer):
    if isinstance(space, TreeSpace) and regularizer == "entropy":
        from structsolve.plugins.tree._projections import TreeSumProduct  # marginals

        return TreeSumProduct


@hookimpl(trylast=True)
def structsolve_loss(space, loss):
    if isinstance(space, TreeSpace):
        return node_loss(space, loss)


@hookimpl(trylast=True)
def structsolve_polytope(space):
    if isinstance(space, TreeSpace):
        from structsolve.plugins.tree.polytope import TreePolytopes  # local, and exact

        return lambda layout: TreePolytopes(
            space.layout, layout.examples.offsets, layout.examples.topology["parents"]
        )
