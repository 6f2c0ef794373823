"""The chain structure as a plugin: what it declares, and its hook implementations."""

from structsolve.hookspecs import Named, hookimpl

from structsolve.plugins.chain.space import ChainSpace, ChainStructure

__all__ = ["ChainSpace", "ChainStructure"]


@hookimpl
def structsolve_structures():
    return [Named("chain", ChainStructure, "label sequences: transitions, start, end, edges")]


@hookimpl
def structsolve_oracle(space, examples):
    if isinstance(space, ChainSpace):
        from structsolve.plugins.chain._shape import ChainShape
        from structsolve.plugins.chain._oracle import ChainOracle

        return ChainOracle(ChainShape(space.layout, examples.offsets))


@hookimpl
def structsolve_polytope(space, examples):
    if isinstance(space, ChainSpace):
        from structsolve.plugins.chain.polytope import ChainPolytopes

        return ChainPolytopes(space.layout, examples.offsets)


@hookimpl
def structsolve_parts(space, examples):
    if isinstance(space, ChainSpace):
        from structsolve.plugins.chain._shape import ChainParts, ChainShape

        return ChainParts(ChainShape(space.layout, examples.offsets))


@hookimpl
def structsolve_projection(space, examples, regularizer):
    if isinstance(space, ChainSpace) and regularizer == "entropy":
        from structsolve.plugins.chain._shape import ChainShape
        from structsolve.plugins.chain._sum_product import ChainSumProduct

        return ChainSumProduct(ChainShape(space.layout, examples.offsets))
