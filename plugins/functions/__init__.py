"""Structures of three plain functions as a plugin."""

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.functions.space import FunctionStructure

__all__ = ["FunctionStructure"]


@hookimpl
def structsolve_structures():
    return [Named("functions", FunctionStructure, "features, oracle, loss as three callables")]
