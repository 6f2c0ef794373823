"""What hooks and entry points give has a type each; what lacks a member is told by its name."""

import importlib.util
import sys
from types import ModuleType, SimpleNamespace

import pytest
from checks import refused

import structsolve
from structsolve import Named, StructuredSVM, TaskLoss, hookspecs, registry
from structsolve.cli import commands, outside
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
