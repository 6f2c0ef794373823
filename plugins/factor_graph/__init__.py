"""Labelings of factor graphs, whose factors join any number of nodes, as a plugin."""

from functools import partial

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.factor_graph.operators import (
    POWERS,
    bind_oracle,
    bind_parts,
    bind_polytopes,
    bind_power,
    bind_sums,
)
from structsolve.plugins.factor_graph.space import FactorGraphSpace, FactorGraphStructure
from structsolve.structure.base import node_loss

__all__ = ["FactorGraphSpace", "FactorGraphStructure"]


@hookimpl
def structsolve_structures():
    return [Named("factor-graph", FactorGraphStructure, "graphs whose factors join several nodes")]


@hookimpl(trylast=True)
def structsolve_oracle(space):
    if isinstance(space, FactorGraphSpace):
        return partial(bind_oracle, space)


@hookimpl(trylast=True)
def structsolve_parts(space):
    if isinstance(space, FactorGraphSpace):
        return partial(bind_parts, space)


@hookimpl(trylast=True)
def structsolve_power(space, power):
    if isinstance(space, FactorGraphSpace) and power in POWERS:
        return partial(bind_power, space, power)


@hookimpl(trylast=True)
def structsolve_projection(space, regularizer):
    if isinstance(space, FactorGraphSpace) and regularizer == "entropy":
        return partial(bind_sums, space)


@hookimpl(trylast=True)
def structsolve_loss(space, loss):
    if isinstance(space, FactorGraphSpace):
        return node_loss(space, loss)


@hookimpl(trylast=True)
def structsolve_polytope(space):
    if isinstance(space, FactorGraphSpace):
        return partial(bind_polytopes, space)
