"""Modules that moved: their former names hand on the same objects, with a warning."""

import importlib
import sys

import pytest

import structsolve

FORMER = {
    "structsolve.estimators.risk": "ConditionalRiskMinimizer",
    "structsolve.estimators.latent_svm": "LatentSVM",
    "structsolve.estimators.hierarchical_svm": "HierarchicalSVM",
    "structsolve.estimators.extreme_svm": "ExtremeSVM",
}
NOW = {
    ("structsolve.estimators.hierarchy", "node_weights"): "structsolve.plugins.dag",
    ("structsolve.io.extreme", "read_extreme"): "structsolve.plugins.extreme.reader",
    ("structsolve.cli.demo", "make_strips"): "structsolve.plugins.chain.demo",
    ("structsolve.structure.functions", "FunctionStructure"): "structsolve.plugins.functions",
    ("structsolve.evaluation.label_sets", "label_set_report"): (
        "structsolve.plugins.multilabel.metrics"
    ),
    ("structsolve.solvers.interior_point", "InteriorPoint"): (
        "structsolve.plugins.multiclass.interior_point"
    ),
    ("structsolve.structure.row_loss", "RowLoss"): "structsolve.plugins.latent.row_loss",
    ("structsolve.io.uai", "read_uai"): "structsolve.plugins.mrf.uai",
    ("structsolve.io.conllu", "read_conllu"): "structsolve.plugins.dependency.conllu",
    ("structsolve.io.conll", "read_conll"): "structsolve.plugins.chain.conll",
    ("structsolve.io.crfsuite", "read_crfsuite"): "structsolve.plugins.chain.crfsuite",
    ("structsolve.io.fasta", "FastaReader"): "structsolve.plugins.chain.fasta",
    ("structsolve.io.pictures", "PictureReader"): "structsolve.plugins.grid.reader",
    ("structsolve.evaluation.spans", "spans"): "structsolve.plugins.chain.spans",
    ("structsolve.structure.tag_schemes", "RULES"): "structsolve.plugins.chain.tag_schemes",
    ("structsolve.features.token_features", "word_shape"): (
        "structsolve.plugins.chain.token_features"
    ),
    ("structsolve.io.predictions", "prediction_lines"): "structsolve.plugins.extreme.predictions",
    ("structsolve.extreme.rivals", "RivalIndex"): "structsolve.plugins.extreme.solvers.rivals",
    ("structsolve.extreme.memoir", "Memoir"): "structsolve.plugins.extreme.solvers.memoir",
    ("structsolve.extreme.postings", "Postings"): "structsolve.plugins.extreme.weights.postings",
}


@pytest.mark.parametrize("module", FORMER)
def test_former_estimators(module):
    name = FORMER[module]
    with pytest.warns(FutureWarning, match=f"import {name} from there"):
        former = getattr(importlib.import_module(module), name)
    assert former is getattr(structsolve, name)


@pytest.mark.parametrize(("module", "name"), NOW)
def test_former_modules(module, name):
    sys.modules.pop(module, None)
    home = importlib.import_module(NOW[module, name])
    spec = home.__spec__
    with pytest.warns(FutureWarning, match=f"{module} is {NOW[module, name]} now"):
        former = getattr(importlib.import_module(module), name)
    assert former is getattr(home, name)
    assert home.__spec__ is spec and home.__name__ == NOW[module, name]


def test_former_names_of_a_module():
    from structsolve.evaluation import metrics
    from structsolve.plugins.chain.metrics import span_f1

    with pytest.warns(FutureWarning, match="import span_f1 from there") as caught:
        assert metrics.span_f1 is span_f1
    assert caught[0].filename == __file__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        metrics.nothing  # noqa: B018


def test_names_that_never_were():
    with pytest.raises(AttributeError, match="no attribute"):
        importlib.import_module("structsolve.estimators.latent_svm").__path__  # noqa: B018
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("structsolve.extreme.nothing")
