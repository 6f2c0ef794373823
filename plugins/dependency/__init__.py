"""Dependency trees as a plugin: structure, features of arcs, CoNLL-U files, scores of trees."""

from functools import partial
from typing import TYPE_CHECKING

from structsolve.hookspecs import Lazy, Named, hookimpl
from structsolve.operators import IntegralRelaxation
from structsolve.plugins.dependency.arcs import Arcs, projectivize
from structsolve.plugins.dependency.space import DependencySpace, DependencyStructure
from structsolve.utils.lazy import lazy_names

if TYPE_CHECKING:
    from structsolve.plugins.dependency.conllu import ConlluSentence, read_conllu, write_conllu
    from structsolve.plugins.dependency.features import ArcFeaturizer
    from structsolve.plugins.dependency.metrics import attachment_report

_HOMES = {
    "ArcFeaturizer": "features",
    "ConlluSentence": "conllu",
    "attachment_report": "metrics",
    "read_conllu": "conllu",
    "write_conllu": "conllu",
}
__all__ = [
    "ArcFeaturizer",
    "Arcs",
    "ConlluSentence",
    "DependencySpace",
    "DependencyStructure",
    "attachment_report",
    "projectivize",
    "read_conllu",
    "write_conllu",
]
# Losses of trees with relations that count wrong heads only.
_HEADS_ALONE = ("unlabelled-hamming", "normalized-unlabelled-hamming")
__getattr__ = lazy_names(__name__, _HOMES)


@hookimpl
def structsolve_structures():
    return [Named("dependency", DependencyStructure, "trees over the words of sentences")]


@hookimpl
def structsolve_losses():
    return list(_HEADS_ALONE)


@hookimpl
def structsolve_readers():
    home = Lazy("structsolve.plugins.dependency.reader:ConlluReader")
    return [Named("conllu", home, "sentences with trees in ten columns")]


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

        if loss == "zero-one":
            return ZeroOneLoss
        if loss in ("hamming", "normalized-hamming") or (space.labelled and loss in _HEADS_ALONE):
            normalised = loss.startswith("normalized")
            return partial(AttachmentLoss, normalised, loss in _HEADS_ALONE, space.labelled)


@hookimpl(trylast=True)
def structsolve_polytope(space):
    if isinstance(space, DependencySpace):
        from structsolve.plugins.dependency.polytope import TreePolytopes

        return lambda layout: TreePolytopes(space, layout.examples)
