"""The chain structure as a plugin: what it declares."""

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.chain.space import ChainSpace, ChainStructure

__all__ = ["ChainSpace", "ChainStructure"]


@hookimpl
def structsolve_structures():
    return [Named("chain", ChainStructure, "label sequences: transitions, start, end, edges")]
