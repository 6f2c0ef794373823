"""Labelings of factor graphs, whose factors join any number of nodes, as a plugin."""

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.factor_graph.operators import factor_power
from structsolve.plugins.factor_graph.space import FactorGraphSpace, FactorGraphStructure
from structsolve.structure.base import node_loss
from structsolve.structure.operator_hooks import OperatorHooks, with_space

__all__ = ["FactorGraphSpace", "FactorGraphStructure"]
_hooks = OperatorHooks(__name__, FactorGraphSpace)


@hookimpl
def structsolve_structures():
    return [Named("factor-graph", FactorGraphStructure, "graphs whose factors join several nodes")]


structsolve_oracle = _hooks.operator("operators:bind_oracle", with_space)
structsolve_parts = _hooks.operator("operators:bind_parts", with_space)
structsolve_power = _hooks.hookimpl(factor_power)
structsolve_projection = _hooks.projections({"entropy": "operators:bind_sums"}, with_space)
structsolve_loss = _hooks.hookimpl(node_loss)
structsolve_polytope = _hooks.operator("operators:bind_polytopes", with_space)
