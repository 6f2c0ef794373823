"""Multiclass with an oracle, or parts, that are wrong in a way that only native code can be."""

from structsolve import get_structure, hookimpl


def wrong_structure(fault):
    """Return a multiclass structure whose operators have a fault."""
    base = type(get_structure("multiclass"))
    return type("Wrong", (base,), {"name": "wrong", "fault": fault})()


@hookimpl
def structsolve_oracle(space, examples):
    if space.structure.name == "wrong":
        from ._operators import WrongOracle

        return WrongOracle(len(space.classes_), space.structure.fault)


@hookimpl
def structsolve_parts(space, examples):
    if space.structure.name == "wrong":
        from ._operators import WrongParts

        return WrongParts(len(space.classes_), space.layout.node.stride, space.structure.fault)
