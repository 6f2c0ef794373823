"""Dependency trees as a plugin: what it provides, hook by hook."""

from functools import partial

from structsolve.hookspecs import Named, hookimpl
from structsolve.operators import IntegralRelaxation
from structsolve.plugins.dependency.arcs import Arcs, projectivize
from structsolve.plugins.dependency.features import ArcFeaturizer
from structsolve.plugins.dependency.space import DependencySpace, DependencyStructure

__all__ = ["ArcFeaturizer", "Arcs", "DependencySpace", "DependencyStructure", "projectivize"]


@hookimpl
def structsolve_structures():
    return [Named("dependency", DependencyStructure, "trees over the words of sentences")]


@hookimpl(trylast=True)
def structsolve_oracle(space):
    if isinstance(space, DependencySpace):
        from structsolve.plugins.dependency._oracle import DependencyOracle

        return space.of_kind(DependencyOracle)


@hookimpl(trylast=True)
def structsolve_parts(space):
    if isinstance(space, DependencySpace):
        from structsolve.plugins.dependency._shape import DependencyParts  # one per arc

        return DependencyParts


@hookimpl(trylast=True)
def structsolve_power(space, power):
    if isinstance(space, DependencySpace):
        from structsolve.plugins.dependency._oracle import DependencyKBest

        if power == "relaxation":
            return partial(IntegralRelaxation, space.make_oracle(), space.make_parts())
        return space.of_kind(DependencyKBest) if power == "kbest" else None


@hookimpl(trylast=True)
def structsolve_projection(space, regularizer):
    if isinstance(space, DependencySpace) and regularizer == "entropy":
        from structsolve.plugins.dependency._projections import DependencyProjection

        return space.of_kind(DependencyProjection)


@hookimpl(trylast=True)
def structsolve_loss(space, loss):
    if isinstance(space, DependencySpace):
        from structsolve.plugins.dependency._losses import AttachmentLoss
        from structsolve.structure.node_losses import ZeroOneLoss

        if loss in ("hamming", "normalized-hamming"):  # wrong heads
            return partial(AttachmentLoss, loss != "hamming")
        return ZeroOneLoss if loss == "zero-one" else None


@hookimpl(trylast=True)
def structsolve_polytope(space):
    if isinstance(space, DependencySpace):
        from structsolve.plugins.dependency.polytope import TreePolytopes

        return lambda layout: TreePolytopes(space, layout.examples)
