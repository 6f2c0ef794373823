"""Multiclass with an oracle, or parts, that are wrong in a way that only native code can be."""

from functools import partial

from structsolve import get_structure, hookimpl


def wrong_structure(fault):
    """Return a multiclass structure whose operators have a fault."""
    base = type(get_structure("multiclass"))
    return type("Wrong", (base,), {"name": "wrong", "fault": fault})()


@hookimpl
def structsolve_oracle(space):
    if space.structure.name == "wrong":
        from ._operators import WrongOracle

        return partial(WrongOracle, space.structure.fault)


@hookimpl
def structsolve_parts(space):
    if space.structure.name == "wrong":
        from ._operators import WrongParts

        return partial(WrongParts, space.structure.fault)
