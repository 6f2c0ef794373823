"""Dependency trees as a plugin: what it declares, and its hook implementations."""

from structsolve.hookspecs import Named, hookimpl

from structsolve.plugins.dependency.arcs import Arcs, projectivize
from structsolve.plugins.dependency.features import ArcFeaturizer
from structsolve.plugins.dependency.space import DependencySpace, DependencyStructure

__all__ = ["ArcFeaturizer", "Arcs", "DependencySpace", "DependencyStructure", "projectivize"]


@hookimpl
def structsolve_structures():
    return [Named("dependency", DependencyStructure, "trees over the words of sentences")]


@hookimpl
def structsolve_oracle(space, examples):
    if isinstance(space, DependencySpace):
        from structsolve.plugins.dependency._oracle import DependencyOracle

        structure = space.structure
        return DependencyOracle(space.shape(examples), structure.projective, structure.single_root)


@hookimpl
def structsolve_parts(space, examples):
    if isinstance(space, DependencySpace):
        from structsolve.plugins.dependency._shape import DependencyParts

        return DependencyParts(space.shape(examples))


@hookimpl
def structsolve_projection(space, examples, regularizer):
    if isinstance(space, DependencySpace) and regularizer == "entropy":
        from structsolve.plugins.dependency._projection import DependencyProjection

        structure = space.structure
        return DependencyProjection(
            space.shape(examples), structure.projective, structure.single_root
        )


@hookimpl
def structsolve_polytope(space, examples):
    if isinstance(space, DependencySpace):
        from structsolve.plugins.dependency.polytope import TreePolytopes

        return TreePolytopes(space, examples)


@hookimpl
def structsolve_loss(space, examples, loss):
    if not isinstance(space, DependencySpace):
        return None
    if loss == "zero-one":
        from structsolve.structure.node_losses import ZeroOneLoss

        return ZeroOneLoss(examples.labels, examples.label_offsets)
    if loss in ("hamming", "normalized-hamming"):
        from structsolve.plugins.dependency._losses import AttachmentLoss

        return AttachmentLoss(examples.labels, space.shape(examples), loss != "hamming")
    return None
