"""A plugin for a structure of another package: it replaces the oracle of ``chain``."""

from structsolve import hookimpl


@hookimpl
def structsolve_oracle(space):
    from ._oracle import FastChain  # compiled: imported only when needed

    structure = space.structure
    if structure.name == "chain" and structure.transitions and space.layout.edge is None:
        return FastChain
    return None
