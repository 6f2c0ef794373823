"""A plugin that answers for somebody else's structure: it replaces the oracle of ``chain``."""

from structsolve import hookimpl


@hookimpl
def structsolve_oracle(space):
    from ._oracle import FastChain  # compiled: only where it is needed

    structure = space.structure
    if structure.name == "chain" and structure.transitions and space.layout.edge is None:
        return FastChain
    return None
