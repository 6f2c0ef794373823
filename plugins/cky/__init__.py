"""Constituency trees as a plugin: binary trees over spans, grammars, files in brackets, scores."""

from functools import partial
from typing import TYPE_CHECKING

from structsolve.hookspecs import Lazy, Named, hookimpl
from structsolve.operators import IntegralRelaxation
from structsolve.plugins.cky.space import CKYSpace, CKYStructure, Spans
from structsolve.plugins.cky.trees import make_treebank, read_tree, read_trees, write_tree
from structsolve.utils.lazy import lazy_names

if TYPE_CHECKING:
    from structsolve.plugins.cky.features import SpanFeaturizer
    from structsolve.plugins.cky.metrics import bracket_report

_HOMES = {"SpanFeaturizer": "features", "bracket_report": "metrics"}
__all__ = [
    "CKYSpace",
    "CKYStructure",
    "SpanFeaturizer",
    "Spans",
    "bracket_report",
    "make_treebank",
    "read_tree",
    "read_trees",
    "write_tree",
]
__getattr__ = lazy_names(__name__, _HOMES)


@hookimpl
def structsolve_structures():
    return [Named("cky", CKYStructure, "binary trees over spans of sentences, with classes")]


@hookimpl
def structsolve_readers():
    home = Lazy("structsolve.plugins.cky.reader:BracketReader")
    return [Named("brackets", home, "constituency trees in brackets, as the Penn Treebank's")]


@hookimpl(trylast=True)
def structsolve_oracle(space):
    if isinstance(space, CKYSpace):
        from structsolve.plugins.cky._operators import CKYOracle

        return space.bound(CKYOracle)


@hookimpl(trylast=True)
def structsolve_parts(space):
    if isinstance(space, CKYSpace):
        from structsolve.plugins.cky._operators import CKYParts

        return space.bound(CKYParts)


@hookimpl(trylast=True)
def structsolve_power(space, power):
    if isinstance(space, CKYSpace):
        from structsolve.plugins.cky._operators import CKYKBest

        if power == "relaxation":
            return partial(IntegralRelaxation, space.make_oracle(), space.make_parts())
        return space.bound(CKYKBest) if power == "kbest" else None


@hookimpl(trylast=True)
def structsolve_projection(space, regularizer):
    if isinstance(space, CKYSpace) and regularizer == "entropy":
        from structsolve.plugins.cky._operators import CKYProjection

        return space.bound(CKYProjection)


@hookimpl(trylast=True)
def structsolve_loss(space, loss):
    if isinstance(space, CKYSpace):
        from structsolve.plugins.cky._operators import SpanLoss
        from structsolve.structure.node_losses import ZeroOneLoss

        if loss in ("hamming", "normalized-hamming"):
            return partial(SpanLoss, loss != "hamming", space.rules)
        return ZeroOneLoss if loss == "zero-one" else None


@hookimpl(trylast=True)
def structsolve_polytope(space):
    if isinstance(space, CKYSpace):
        from structsolve.plugins.cky.polytope import CKYPolytopes

        return lambda layout: CKYPolytopes(space, layout.examples)
