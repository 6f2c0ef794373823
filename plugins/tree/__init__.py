"""Labelings of trees and forests as a plugin: what it provides, hook by hook."""

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.tree.space import TreeSpace, TreeStructure
from structsolve.plugins.tree.trees import root_tree
from structsolve.structure.base import node_loss
from structsolve.structure.operator_hooks import OperatorHooks, with_examples

__all__ = ["TreeSpace", "TreeStructure", "root_tree"]
_hooks = OperatorHooks(__name__, TreeSpace)


@hookimpl
def structsolve_structures():
    return [Named("tree", TreeStructure, "labelings of trees: tables of parent and child states")]


structsolve_oracle = _hooks.operator("_oracle:TreeOracle")  # an exact dynamic program
structsolve_parts = _hooks.operator("_shape:TreeParts")  # states, pairs of states
structsolve_power = _hooks.powers(
    {
        "kbest": "_oracle:TreeKBest",
        "max-marginals": "_oracle:TreeMaxMarginals",
        "counts": "_oracle:TreeCounts",
    }
)
structsolve_projection = _hooks.projections({"entropy": "_projections:TreeSumProduct"})
structsolve_loss = _hooks.hookimpl(node_loss)
structsolve_polytope = _hooks.operator("polytope:TreePolytopes", with_examples)  # local, and exact
