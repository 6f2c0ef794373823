"""Labelings of trees and forests as a plugin: what it declares."""

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.tree.space import TreeSpace, TreeStructure
from structsolve.plugins.tree.trees import root_tree

__all__ = ["TreeSpace", "TreeStructure", "root_tree"]


@hookimpl
def structsolve_structures():
    return [Named("tree", TreeStructure, "labelings of trees: tables of parent and child states")]
