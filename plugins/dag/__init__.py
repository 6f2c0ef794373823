"""Label sets under a hierarchy as a plugin."""

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.dag.space import DagSpace, DagStructure
from structsolve.structure.hierarchy import Hierarchy

__all__ = ["DagSpace", "DagStructure", "Hierarchy"]


@hookimpl
def structsolve_structures():
    return [Named("dag", DagStructure, "label sets closed under a hierarchy, a tree or a DAG")]
