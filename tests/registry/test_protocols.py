"""What hooks and entry points give has a type each; what lacks a member is told by its name."""

import importlib.util
import json
import re
import sys
from types import ModuleType, SimpleNamespace

import pytest
from checks import refused
from shell import fails

import structsolve
from structsolve import HiddenMarkovModel, Named, StructuredSVM, TaskLoss, hookspecs, registry
from structsolve.cli import commands, outside
from structsolve.hookspecs import Lazy
from structsolve.plugin import (
    DeviceOperations,
    Estimator,
    Featurizer,
    FitOptions,
    LossObject,
    SurrogateObject,
)
from structsolve.protocols import require
from structsolve.structure.base import Space
from structsolve.utils import container


def test_no_answer_is_any():
    hooks = [hook for name, hook in vars(hookspecs).items() if name.startswith("structsolve_")]
    methods = [method for name, method in vars(Space).items() if name.startswith("make_")]
    for function in (*hooks, *methods):
        kind = function.__annotations__["return"]
        assert "Any" not in kind.replace("Named[Any]", ""), function.__name__
        if "Sequence" not in kind:
            assert kind.startswith("Binder[") and kind.endswith("] | None"), function.__name__


def test_what_ships_is_what_they_say():
    plugins = registry.default()
    for name in plugins.names("estimators"):
        require(plugins.class_of("estimators", name), Estimator, name)
    for name in plugins.names("surrogates"):
        if name not in ("generalized", "beta"):  # they need numbers
            assert isinstance(plugins.make("surrogates", name), SurrogateObject)
    assert isinstance(TaskLoss(), LossObject)
    assert not isinstance(structsolve.CostMatrix([[0.0]]), LossObject)  # plugins know these
    assert {*outside.families()} == {"hierarchical", "latent", "risk"}
    for module in outside.families().values():
        require(module, FitOptions, module.__name__)
    if importlib.util.find_spec("torch"):
        chain, _ = structsolve.get_structure("chain").make_space([[[0.0]]], [["a"]])
        require(chain.device_operations(), DeviceOperations, "operations")
    featurizer = structsolve.get_structure("dependency").make_featurizer()
    assert isinstance(featurizer, Featurizer)


@pytest.mark.parametrize("missing", ["from_file", "save", "predict"])
def test_an_estimator_without_a_method(registered, tmp_path, missing):
    bare = type("Bare", (), {n: None for n in ("fit", "predict", "save", "from_file")})
    delattr(bare, missing)
    model = StructuredSVM("multiclass").fit([[0.0], [1.0]], [0, 1])
    path = tmp_path / "m.structsolve"
    registered("mine", structsolve_estimators=lambda: [Named("Mine", bare, "a test")])
    model.save(path)
    meta, arrays = container.read(path, "model", ())
    container.write(path, "model", {**meta, "estimator": "Mine"}, arrays)
    text = f"cannot be loaded: TypeError: estimator 'Mine' has no {missing}, expected what"
    refused(text, structsolve.load, path)


def test_a_module_of_options_or_of_the_shell_that_lacks_something(monkeypatch):
    module = ModuleType("half")
    module.ABOUT, module.predict = "halves", print
    monkeypatch.setitem(sys.modules, "half", module)
    entry = SimpleNamespace(name="half", value="half", load=lambda: module)
    plugin = SimpleNamespace(label="plugin 'half'", is_called=lambda name: False)
    monkeypatch.setattr(outside, "entries", lambda group: [(plugin, entry)])
    outside._modules.cache_clear()
    text = r"plugin 'half' was not loaded: TypeError: its module 'half' has no OWN, add_options, ch"
    try:
        with pytest.warns(UserWarning, match=text):
            assert outside.families() == {}
    finally:
        outside._modules.cache_clear()
    model = SimpleNamespace(shell="half")
    text = r"the module 'half' has no score, expected what structsolve.plugin.ShellModule has"
    refused(text, commands._own_shell, model, error=TypeError)


@pytest.mark.parametrize("base", [StructuredSVM, structsolve.ExtremeSVM, HiddenMarkovModel])
def test_files_hold_the_declared_name(registered, tmp_path, base):
    kept = type("Kept", (base,), {})
    registered("mine", structsolve_estimators=lambda: [Named("Other", kept, "a test")])
    states = base is HiddenMarkovModel
    given = (["ab", "b"], ["xy", "x"]) if states else ([[0.0], [1.0]], [0, 1])
    path = tmp_path / "m.structsolve"
    (kept("multiclass") if base is StructuredSVM else kept()).fit(*given).save(path)
    assert type(structsolve.load(path)) is kept


class Other(StructuredSVM):
    """An estimator of a plugin, some of whose parts are wrong in the tests."""


@pytest.mark.parametrize("answer", [None, Other, 3])
def test_from_file_makes_a_model(registered, tmp_path, monkeypatch, answer):
    registered("mine", structsolve_estimators=lambda: [Named("Other", Other, "a test")])
    path = tmp_path / "m.structsolve"
    Other("multiclass").fit([[0.0], [1.0]], [0, 1]).save(path)
    monkeypatch.setattr(Other, "from_file", lambda *given: answer)
    text = rf"from_file of 'Other' returned {re.escape(repr(answer))}, expected a fitted model"
    refused(text, structsolve.load, path)
    monkeypatch.setattr(Other, "array_types", (("x", "text"), ("coef_.*|.*order", "f8")), False)
    container.write(path, "model", container.read(path, "model")[0], {"order": [1.0]})
    refused("array_types of the estimator has 'f8' for .* expected some of", structsolve.load, path)


@pytest.mark.parametrize(
    ("name", "estimator", "message"),
    [
        ("risk", Other, "declares 'risk', expected the name of a class, with a capital letter"),
        ("A b", Other, "declares 'A b', expected the name of a class"),
        ("Other", lambda: Other(), "declares 'Other' as <function .*, expected a class or Lazy"),
    ],
)
def test_estimators_are_classes_under_names_of_classes(registered, name, estimator, message):
    hooks = {"structsolve_estimators": lambda: [Named(name, estimator, "a test")]}
    refused(message, registered, "mine", error=(ValueError, TypeError), **hooks)


@pytest.mark.parametrize("path", ["no.such:Other", "json:Other"])
def test_estimators_that_cannot_be_imported(registered, path):
    registered("mine", structsolve_estimators=lambda: [Named("Other", Lazy(path), "a test")])
    text = f"estimator 'Other' of plugin 'mine': '{path}' cannot be imported: "
    refused(text, getattr, structsolve, "Other", error=ImportError)


@pytest.mark.parametrize("shell", ["no.such", 3, json])
def test_modules_of_the_shell_that_are_none(shell):
    text = r"SimpleNamespace: shell is .*, expected the name of a module \("
    refused(text, commands._own_shell, SimpleNamespace(shell=shell), error=ImportError)


def test_the_shell_says_what_was_not_saved(registered, capsys, tmp_path, monkeypatch):
    registered("mine", structsolve_estimators=lambda: [Named("Other", Other, "a test")])
    (tmp_path / "a.csv").write_text("1,a\n2,b\n")
    fit = ("fit", tmp_path / "a.csv", "--estimator", "Other", "--model", tmp_path / "m")
    monkeypatch.setattr(Other, "save", lambda self, path: None)
    fails(capsys, *fit, match=r"save\(\) of Other wrote no file .*m ")
    bare = type("Bare", (), {"fit": print, "predict": print})
    registered("bare", structsolve_estimators=lambda: [Named("Bare", bare, "a test")])
    text = "estimator 'Bare' has no from_file, save, expected what structsolve.plugin.Estimator has"
    fails(capsys, *fit[:3], "Bare", *fit[4:], match=text)
