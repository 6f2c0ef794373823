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
    ("structsolve.io.uai", "read_uai"): "structsolve.plugins.mrf.uai",
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


def test_names_that_never_were():
    with pytest.raises(AttributeError, match="no attribute"):
        importlib.import_module("structsolve.estimators.latent_svm").__path__  # noqa: B018
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("structsolve.extreme.nothing")
