"""Label sequences as a plugin: what it provides, hook by hook."""

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.chain.space import ChainSpace, ChainStructure
from structsolve.structure.base import node_loss

__all__ = ["ChainSpace", "ChainStructure"]


@hookimpl
def structsolve_structures():
    return [Named("chain", ChainStructure, "label sequences: transitions, start, end, edges")]


@hookimpl(trylast=True)
def structsolve_oracle(space):
    if isinstance(space, ChainSpace):
        from structsolve.plugins.chain._oracle import ChainOracle  # an exact dynamic program

        return space.constrained(ChainOracle)


@hookimpl(trylast=True)
def structsolve_parts(space):
    if isinstance(space, ChainSpace):
        from structsolve.plugins.chain._shape import ChainParts  # states, pairs of states

        return ChainParts


@hookimpl(trylast=True)
def structsolve_power(space, power):
    if isinstance(space, ChainSpace):
        from structsolve.plugins.chain import _oracle

        powers = {
            "kbest": _oracle.ChainKBest,
            "max-marginals": _oracle.ChainMaxMarginals,
            "counts": _oracle.ChainCounts,
        }
        return space.constrained(powers[power]) if power in powers else None


@hookimpl(trylast=True)
def structsolve_projection(space, regularizer):
    if isinstance(space, ChainSpace) and regularizer == "entropy":
        from structsolve.plugins.chain._projections import ChainSumProduct  # marginals

        return space.constrained(ChainSumProduct)


@hookimpl(trylast=True)
def structsolve_loss(space, loss):
    if isinstance(space, ChainSpace):
        return node_loss(space, loss)


@hookimpl(trylast=True)
def structsolve_polytope(space):
    if isinstance(space, ChainSpace):
        from structsolve.plugins.chain.polytope import ChainPolytopes  # local, and exact

        return lambda layout: ChainPolytopes(space.layout, layout.examples.offsets, space.forbidden)
