"""Rings with compiled operators."""

from structsolve import hookimpl

from .ring import RingSpace, structsolve_structures

__all__ = ["structsolve_oracle", "structsolve_parts", "structsolve_structures"]


@hookimpl
def structsolve_oracle(space):
    if isinstance(space, RingSpace):
        from ._operators import RingOracle

        return RingOracle


@hookimpl
def structsolve_parts(space):
    if isinstance(space, RingSpace):
        from ._operators import RingParts

        return RingParts
