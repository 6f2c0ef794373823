"""Owners of names: prefixed distributions; plugins that are disabled, missing, or from a script."""

import logging
import pickle
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from checks import plugged, plugin_of, refused
from python_structures import PyChainStructure
from sklearn.model_selection import GridSearchCV

import structsolve
from structsolve import Named, StructuredSVM, registry
from structsolve.cli.models import _check_scoring
from structsolve.cli.options import UsageError
from structsolve.registry import Registry
from structsolve.registry.arguments import arguments_of

BRINGS = """
from structsolve import Named, hookimpl
from structsolve.plugins.chain.space import ChainStructure

class Same(ChainStructure):
    name = "same"
    where = "{where}"

@hookimpl
def structsolve_structures():
    return [Named("same", Same, "a test")]
"""
OFF = "STRUCTSOLVE_DISABLE_PLUGINS"
X, Y = [np.eye(2), np.eye(2)[::-1]], [["a", "b"], ["b", "a"]]


@pytest.fixture
def reload(monkeypatch):
    """Replace the default registry by one of what is installed now."""

    def load(off=()):
        loaded = Registry()
        loaded.load_entry_points(off)
        monkeypatch.setattr(registry, "_registry", loaded)
        return loaded

    return load


@pytest.fixture
def both(install):
    install("one", BRINGS.format(where="here"))
    install("two", BRINGS.format(where="there"), version="2.0")


def test_the_distribution_tells_names_apart(both, reload):
    loaded = reload()
    message = (
        r"structure 'same' is declared by plugin 'one' \(structsolve-one 1.0\) and plugin 'two' "
        r"\(structsolve-two 2.0\); write 'structsolve-one:same' or 'structsolve-two:same', or "
        f"switch one off: {OFF}=structsolve-two:two"
    )
    refused(message, loaded.find, "structures", "same")
    refused(message, structsolve.get_structure, "same:start_end=false")
    for text, where in (("structsolve-one:same", "here"), ("Structsolve_Two:same", "there")):
        assert structsolve.get_structure(text).where == where
        made = structsolve.get_structure(f"{text}:start_end=false")
        assert (made.where, made.start_end) == (where, False)
    wrong = "structsolve-one:chain"
    refused(f"unknown structure {wrong!r}", loaded.find, "structures", wrong)
    assert structsolve.get_structure("chain").name == "chain"


def test_models_name_their_distribution(both, reload, tmp_path, monkeypatch):
    loaded = reload()
    path = tmp_path / "m.structsolve"
    for text in ("structsolve-one:same", "structsolve-two:same"):
        StructuredSVM(text, max_iter=2, tol=0.9).fit(X, Y).save(path)
        owner = structsolve.load(path).space_.structure
        assert isinstance(owner, loaded.find("structures", text).factory)
    reload(off=["two"])
    refused(
        r"m.structsolve' cannot be loaded: structure 'same' comes from the distribution "
        r"structsolve-two 2.0, which is not installed or not loaded; plugin 'one' \(.*1.0\) brings "
        r"another. Switched off: plugin 'two'",
        structsolve.load,
        path,
    )
    # What a script registers under the name replaces it.
    reload(off=["one", "two"])
    refused("comes from the distribution structsolve-two 2.0", structsolve.load, path)
    mine = [Named("same", PyChainStructure, "of a script")]
    registry.default().register(plugin_of("script", structsolve_structures=lambda: mine))
    assert isinstance(structsolve.load(path).space_.structure, PyChainStructure)


BRINGS_MORE = """
from __future__ import annotations
from structsolve import CostMatrix, Named, TaskLoss, hookimpl
from structsolve.lp import Highs
from structsolve.solvers import BCFW
from structsolve.surrogates import Margin

class Often(BCFW):
    name = "often"

class Wide(Margin):
    name = "wide"

class Program(Highs):
    name = "program"

class Scaled(TaskLoss):
    def __init__(self, factor: float = 1.0):
        self.factor = factor

    def loss(self, space, examples, i, truth, label):
        return self.factor * (truth != label).sum()

    def loss_costs(self, space, examples, i, truth):
        costs = self.factor * (truth[:, None] != [[0, 1]])
        return {"node": costs.astype(float)}, 0.0

@hookimpl
def structsolve_solvers():
    return [Named("often", Often, "a test")]

@hookimpl
def structsolve_surrogates():
    return [Named("wide", Wide, "a test")]

@hookimpl
def structsolve_losses():
    return ["strict", Named("Scaled", Scaled, "a test")]

@hookimpl
def structsolve_lp_backends():
    return [Named("program", Program, "a test")]

@hookimpl
def structsolve_loss(space, loss):
    if loss == "strict":
        from structsolve.structure.ask import ask_loss
        return ask_loss(space, CostMatrix([[0, 1], [1, 0]]))
"""


@pytest.mark.parametrize(
    ("argument", "what"),
    [
        ({"solver": "often"}, "solver"),
        ({"surrogate": "wide"}, "surrogate"),
        ({"oracle": "program"}, "lp backend"),
        ({"loss": "Scaled:factor=2"}, "loss"),
        ({"loss": "structsolve-more:Scaled"}, "loss"),
        ({"loss": "strict"}, "loss"),
    ],
)
def test_models_name_the_distribution_of_all_that_has_a_name(
    install, reload, tmp_path, argument, what
):
    install("more", BRINGS_MORE)
    reload()
    path = tmp_path / "m.structsolve"
    model = StructuredSVM("chain", max_iter=2, tol=0.9, **argument).fit(X, Y)
    model.save(path)
    assert structsolve.load(path).get_params() == model.get_params()
    reload(off=["more"])
    message = f"cannot be loaded: {what} .* comes from the distribution structsolve-more 1.0"
    refused(message, structsolve.load, path)


def test_losses_with_arguments_have_names(install, reload):
    install("more", BRINGS_MORE)
    reload()
    for text, score in (("Scaled:factor=0.5", 0.5), ("Scaled:2", -1.0), ("Scaled", 0.0)):
        model = StructuredSVM("chain", loss=text, max_iter=50).fit(X, Y)
        assert model.score(X, [labels[::-1] for labels in Y]) == score
    refused(
        "factor is .x., expected a number", StructuredSVM("chain", loss="Scaled:factor=x").fit, X, Y
    )
    refused("has no parameter .size.", StructuredSVM("chain", loss="Scaled:size=2").fit, X, Y)


@pytest.mark.parametrize("name", ["two", "structsolve-two", "Structsolve.Two:two"])
def test_switched_off_plugins_are_not_imported(install, both, reload, name, monkeypatch, caplog):
    install("two", "raise SystemExit('imported')", version="2.0.1")
    monkeypatch.setenv(OFF, f" {name} ,")
    loaded = reload()
    assert "Not loaded" not in loaded.broken_note()
    assert structsolve.get_structure("same").where == "here"
    rows = {(r["distribution"], r["status"]) for r in structsolve.list_plugins()}
    assert {("structsolve-one", "loaded"), ("structsolve-two", "off")} <= rows
    with pytest.raises(ValueError, match=r"known: .*Switched off: plugin 'two' \(structsolve-two"):
        structsolve.get_structure("sane")


def test_switching_off_by_hand(both, reload, monkeypatch, caplog):
    with caplog.at_level(logging.WARNING, "structsolve.plugins"):
        reload(off=["three"])
    assert "three is to be switched off, but no plugin has this name" in caplog.text
    refused(
        r"no plugin is called 'three'; .*\['structsolve-one:one', 'structsolve-two:two'\]",
        registry.switch_off,
        "three",
    )
    registry.switch_off("structsolve-one")
    assert structsolve.get_structure("same").where == "there"
    monkeypatch.setattr(registry, "_registry", None)
    registry.switch_off("two")
    assert structsolve.get_structure("same").where == "here"


def test_arguments_in_names():
    made = structsolve.get_structure("chain:false,transitions=true", transitions=False)
    assert (made.start_end, made.transitions) == (False, False)
    assert arguments_of("x", "", "a, 1,b=none,c=1e-3,d=a b") == (
        ["a", 1],
        {"b": None, "c": 1e-3, "d": "a b"},
    )
    get = structsolve.get_structure
    for wrong, shown in (
        ("a=1,2", "'2'"),
        ("a=1,a=2", "'a=2'"),
        ("2=1", "'2=1'"),
        ("", "''"),
        ("false, ", "''"),
        ("a=", "'a='"),
        ("a=2,", "''"),
    ):
        refused(
            f"^structure 'chain:{wrong}': found {shown}, expected one key=", get, f"chain:{wrong}"
        )
    refused("'chain:length=3': .*has no parameter .length.", get, "chain:length=3")
    refused("name is 'a:b', expected one without a colon", Named, "a:b", dict)


# -- plugins of scripts in worker processes -------------------------------------------------------


def script(**more):
    mine = [Named("scripted", PyChainStructure, "of a script")]
    return plugin_of("script", structsolve_structures=lambda: mine, **more)


def test_plugins_of_a_script_reach_workers(reload):
    with plugged(script()):
        model = StructuredSVM("scripted", max_iter=2, tol=0.9)
        search = GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=2, n_jobs=2, error_score="raise")
        assert np.isfinite(search.fit(X * 2, Y * 2).cv_results_["mean_test_score"]).all()
        sent = pickle.dumps(search.best_estimator_)
    loaded = reload()
    assert "scripted" not in loaded.names("structures")
    model = pickle.loads(sent)
    assert "scripted" in loaded.names("structures") and "_plugins" not in vars(model)
    assert len(model.fit(X, Y).predict(X)) == 2
    pickle.loads(sent)  # once more: it is there
    assert [p.name for p in loaded.plugins].count("script") == 1


def test_what_cannot_be_sent_is_told(reload):
    reload()
    lock = threading.Lock()
    registry.default().register(script(structsolve_losses=lambda: [] if lock else []))
    sent = pickle.dumps(StructuredSVM("scripted"))
    loaded = reload()
    model = pickle.loads(sent)
    assert [p.error for p in loaded.plugins if p.name == "script"] != []
    refused(
        r"unknown structure 'scripted'; .*Not loaded: plugin 'script': registered by a script "
        r"elsewhere. ValueError: it cannot be sent to this process: .*pickle.*lock",
        model.fit,
        X,
        Y,
    )


def test_workers_say_how_plugins_get_there(reload, monkeypatch):
    import multiprocessing

    monkeypatch.setattr(multiprocessing.current_process(), "_name", "SpawnProcess-1")
    refused(
        r"unknown structure 'scripted'.*This is a worker process: a script's plugins arrive "
        r"with an estimator that is sent, or by registry.default\(\).register\(\)",
        structsolve.get_structure,
        "scripted",
    )


@pytest.mark.parametrize("kind", ["metrics", "solvers", "structures"])
@pytest.mark.parametrize("made", [7, object, SimpleNamespace(name="odd")])
def test_what_a_factory_makes_is_checked(kind, made):
    plugin = plugin_of(
        "odd_plugin", **{f"structsolve_{kind}": lambda: [Named("odd", lambda: made, "a test")]}
    )
    model = StructuredSVM("chain", max_iter=1, tol=0.5)
    uses = {
        "metrics": lambda: model.fit(X, Y).score(X, Y, metric="odd"),
        "solvers": lambda: StructuredSVM("chain", solver="odd").fit(X, Y),
        "structures": lambda: StructuredSVM("odd").fit(X, Y),
    }
    message = f"{kind[:-1]} 'odd': its plugin made .*"
    with plugged(plugin), pytest.raises((TypeError, ValueError), match=message):
        uses[kind]()


@pytest.mark.parametrize("value", [None, "high", [1.0]])
def test_a_metric_that_returns_no_number_is_named(value):
    plugin = plugin_of(
        "odd_plugin",
        structsolve_metrics=lambda: [Named("odd", lambda: lambda model, X, y: value, "a test")],
    )
    model = StructuredSVM("chain", max_iter=1, tol=0.5).fit(X, Y)
    with plugged(plugin), pytest.raises(TypeError, match="metric 'odd': its scorer returned"):
        model.score(X, Y, metric="odd")


def test_metrics_of_one_name_are_told_apart_everywhere():
    def scoring(name, value):
        named = Named("odd", lambda: lambda *given: value, "a test")
        return plugin_of(name, structsolve_metrics=lambda: [named])

    made = [scoring("first_odd", 0.25), scoring("second_odd", 0.5)]
    with plugged(made[0]), plugged(made[1]):
        assert structsolve.get_scorer("first_odd:odd")(None, X, Y) == 0.25
        search = structsolve.StructuredSVMCV("chain", alphas=[1.0], cv=2, tol=0.5)
        refused("'first_odd:odd' or", search.set_params(scoring="odd").fit, X, Y)
        assert search.set_params(scoring="first_odd:odd").fit(X, Y).alpha_ == 1.0
        _check_scoring("second_odd:odd")
        refused("'third_odd:odd': unknown", _check_scoring, "third_odd:odd", error=UsageError)
