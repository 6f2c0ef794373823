"""Operators of factor graphs, made from those of their graphs of pairs."""

from __future__ import annotations

from functools import partial
from typing import Any

from structsolve.plugins.factor_graph._map import FactorMap
from structsolve.plugins.factor_graph._operators import (
    FactorKBest,
    FactorMaxMarginals,
    FactorOracle,
    FactorParts,
    FactorRelaxation,
    FactorSums,
)
from structsolve.plugins.factor_graph.polytope import FactorPolytopes
from structsolve.plugins.mrf.decoders import make_oracle, make_power
from structsolve.plugins.mrf.graph_operators import make_sums, oracle_name

POWERS = {"kbest": FactorKBest, "max-marginals": FactorMaxMarginals, "relaxation": FactorRelaxation}


def _links(space: Any, layout: Any) -> FactorMap:
    return layout.common(FactorMap, partial(FactorMap, space))


def bind_oracle(space: Any, layout: Any) -> FactorOracle:
    """Return the oracle of these factor graphs.

    Parameters
    ----------
    space : FactorGraphSpace
    layout : PartLayout

    Returns
    -------
    FactorOracle
    """
    links = _links(space, layout)
    max_iter = int(space.structure.max_iter)
    oracle = make_oracle(links.shape, oracle_name(space.structure, layout), max_iter, links.inner)
    return FactorOracle(oracle, links, layout)


def bind_power(space: Any, power: str, layout: Any) -> Any:
    """Return the operator of a power.

    Parameters
    ----------
    space : FactorGraphSpace
    power : str
        One of ``POWERS``.
    layout : PartLayout

    Returns
    -------
    structsolve.operators.Operator or None
        None if these graphs do not support the power.
    """
    links = _links(space, layout)
    inner = make_power(links.shape, oracle_name(space.structure, layout), power, links.inner)
    return None if inner is None else POWERS[power](inner, links, layout)


def factor_power(space: Any, power: str) -> Any:
    """Return a factory for a power of factor graphs.

    Parameters
    ----------
    space : FactorGraphSpace
    power : str

    Returns
    -------
    callable or None
        None for a power that no factor graph has.
    """
    return partial(bind_power, space, power) if power in POWERS else None


def bind_parts(space: Any, layout: Any) -> FactorParts:
    """Return states of nodes and entries of factors as parts.

    Parameters
    ----------
    space : FactorGraphSpace
    layout : PartLayout

    Returns
    -------
    FactorParts
    """
    return FactorParts(_links(space, layout), layout)


def bind_sums(space: Any, layout: Any) -> FactorSums:
    """Return the projection "entropy", exact on narrow graphs, else a bound.

    Parameters
    ----------
    space : FactorGraphSpace
    layout : PartLayout

    Returns
    -------
    FactorSums
    """
    links = _links(space, layout)
    return FactorSums(make_sums(links.shape, links.inner, space.structure.name), links, layout)


def bind_polytopes(space: Any, layout: Any) -> FactorPolytopes:
    """Return the local polytopes of these factor graphs.

    Parameters
    ----------
    space : FactorGraphSpace
    layout : PartLayout

    Returns
    -------
    FactorPolytopes
    """
    return FactorPolytopes(_links(space, layout))
