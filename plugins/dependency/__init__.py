"""Dependency trees as a plugin: structure, features of arcs, CoNLL-U files, scores of trees."""

from functools import partial
from typing import TYPE_CHECKING

from structsolve.hookspecs import Lazy, Named, hookimpl
from structsolve.plugins.dependency.arcs import Arcs, projectivize
from structsolve.plugins.dependency.space import DependencySpace, DependencyStructure
from structsolve.structure.operator_hooks import OperatorHooks, with_examples
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
_hooks = OperatorHooks(__name__, DependencySpace)


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


structsolve_oracle = _hooks.operator("_oracle:DependencyOracle", DependencySpace.of_kind)
structsolve_parts = _hooks.operator("_shape:DependencyParts")  # one per arc
structsolve_power = _hooks.powers(
    {"kbest": "_oracle:DependencyKBest"}, DependencySpace.of_kind, integral=True
)
structsolve_projection = _hooks.projections(
    {"entropy": "_projections:DependencyProjection"}, DependencySpace.of_kind
)
structsolve_polytope = _hooks.operator("polytope:TreePolytopes", with_examples)


@_hooks.hookimpl
def structsolve_loss(space, loss):
    from structsolve.plugins.dependency._losses import AttachmentLoss
    from structsolve.structure.node_losses import ZeroOneLoss

    if loss == "zero-one":
        return ZeroOneLoss
    if loss in ("hamming", "normalized-hamming") or (space.labelled and loss in _HEADS_ALONE):
        normalised = loss.startswith("normalized")
        return partial(AttachmentLoss, normalised, loss in _HEADS_ALONE, space.labelled)
