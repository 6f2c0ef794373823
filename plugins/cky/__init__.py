"""Constituency trees as a plugin: binary trees over spans, grammars, files in brackets, scores."""

from functools import partial
from typing import TYPE_CHECKING

from structsolve.hookspecs import Lazy, Named, hookimpl
from structsolve.plugins.cky.space import CKYSpace, CKYStructure
from structsolve.plugins.cky.spans import Spans
from structsolve.plugins.cky.treebank import make_treebank
from structsolve.plugins.cky.trees import read_tree, read_trees, write_tree
from structsolve.structure.operator_hooks import OperatorHooks, with_examples
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
_hooks = OperatorHooks(__name__, CKYSpace)


@hookimpl
def structsolve_structures():
    return [Named("cky", CKYStructure, "binary trees over spans of sentences, with classes")]


@hookimpl
def structsolve_readers():
    home = Lazy("structsolve.plugins.cky.reader:BracketReader")
    return [Named("brackets", home, "constituency trees in brackets, as the Penn Treebank's")]


structsolve_oracle = _hooks.operator("_operators:CKYOracle", CKYSpace.bound)
structsolve_parts = _hooks.operator("_operators:CKYParts", CKYSpace.bound)
structsolve_power = _hooks.powers({"kbest": "_operators:CKYKBest"}, CKYSpace.bound, integral=True)
structsolve_projection = _hooks.projections({"entropy": "_operators:CKYProjection"}, CKYSpace.bound)
structsolve_polytope = _hooks.operator("polytope:CKYPolytopes", with_examples)


@_hooks.hookimpl
def structsolve_loss(space, loss):
    from structsolve.plugins.cky._operators import SpanLoss
    from structsolve.structure.node_losses import ZeroOneLoss

    if loss in ("hamming", "normalized-hamming"):
        return partial(SpanLoss, loss != "hamming", space.rules)
    return ZeroOneLoss if loss == "zero-one" else None
