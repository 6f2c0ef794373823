"""A plugin that answers for somebody else's structure: it replaces the oracle of ``chain``."""

from structsolve import hookimpl

#: Oracles handed out so far; each counts its calls.
made = []


@hookimpl
def structsolve_oracle(space, examples):
    structure = space.structure
    if structure.name == "chain" and structure.transitions and space.layout.edge is None:
        from ._oracle import FastChain

        made.append(FastChain(space.layout, examples.offsets))
        return made[-1]
