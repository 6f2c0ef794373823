"""A plugin that answers for somebody else's structure: it replaces the oracle of ``chain``."""

from structsolve import hookimpl

#: Oracles bound so far; each counts its calls.
made = []


def bind(layout):
    from ._oracle import FastChain

    made.append(FastChain(layout))
    return made[-1]


@hookimpl
def structsolve_oracle(space):
    structure = space.structure
    if structure.name == "chain" and structure.transitions and space.layout.edge is None:
        return bind
