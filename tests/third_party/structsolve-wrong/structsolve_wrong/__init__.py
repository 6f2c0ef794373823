"""Multiclass with operators that are wrong in a way that only native code can be."""

from functools import partial

from structsolve import get_structure, hookimpl


def wrong_structure(fault):
    """Return a multiclass structure whose operators have a fault."""
    base = type(get_structure("multiclass"))
    return type("Wrong", (base,), {"name": "wrong", "fault": fault})()


@hookimpl
def structsolve_oracle(space):
    if space.structure.name == "wrong":
        from ._operators import FAULTS, WrongOracle

        if space.structure.fault in FAULTS:
            return partial(WrongOracle, space.structure.fault)


@hookimpl
def structsolve_parts(space):
    if space.structure.name == "wrong":
        from ._operators import FAULTS, WrongParts

        if space.structure.fault in FAULTS:
            return partial(WrongParts, space.structure.fault)


@hookimpl
def structsolve_projection(space, regularizer):
    if space.structure.name == "wrong" and regularizer == "entropy":
        from ._operators import FAULTS, WrongProjection

        if space.structure.fault not in FAULTS:
            return partial(WrongProjection, space.structure.fault)


@hookimpl
def structsolve_losses():
    return ["wrong"]


@hookimpl
def structsolve_loss(space, loss):
    if space.structure.name == "wrong" and loss == "wrong":
        from ._operators import FAULTS, WrongLoss

        if space.structure.fault not in FAULTS:
            return partial(WrongLoss, space.structure.fault)
