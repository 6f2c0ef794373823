"""Dependency trees as a plugin."""

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.dependency.arcs import Arcs, projectivize
from structsolve.plugins.dependency.features import ArcFeaturizer
from structsolve.plugins.dependency.space import DependencySpace, DependencyStructure

__all__ = ["ArcFeaturizer", "Arcs", "DependencySpace", "DependencyStructure", "projectivize"]


@hookimpl
def structsolve_structures():
    return [Named("dependency", DependencyStructure, "trees over the words of sentences")]
