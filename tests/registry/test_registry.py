"""The plugin manager: a broken plugin is named with its distribution, and the others stay."""

import logging
import re
import sys
from types import ModuleType

import numpy as np
import pytest
from checks import in_threads, plugged, refused
from python_structures import PyChainStructure

import structsolve
from structsolve import Named, hookimpl, registry
from structsolve.lp.ask import ask_oracle
from structsolve.operators import ABI, Oracle, Parts
from structsolve.registry import Registry
from structsolve.structure.ask import POWERS, ask_loss, ask_parts, ask_power, make_layout


def load():
    loaded = Registry()
    loaded.load_entry_points()
    return loaded


def plugin(loaded, name):
    return next(p for p in loaded.plugins if p.name == name)


GOOD = """
from structsolve import FunctionStructure, Named, hookimpl

@hookimpl
def structsolve_structures():
    return [Named("{name}", FunctionStructure, "a test")]
"""

HEADER = "from structsolve import Named, hookimpl\n@hookimpl\n"

BROKEN = {
    "import error": (
        "import a_module_that_is_not_there",
        "ModuleNotFoundError: No module named 'a_module_that_is_not_there'",
    ),
    "error while imported": ("1 / 0", "ZeroDivisionError: division by zero"),
    "exit while imported": ("raise SystemExit(3)", "SystemExit: 3"),
    "no hooks": ("x = 1", "TypeError: .*implements no hook; mark functions with structsolve.hook"),
    "unmarked hook": (
        "from structsolve import hookimpl\n"
        "@hookimpl\ndef structsolve_losses(): return []\n"
        "def structsolve_oracle(space): pass",
        "TypeError: structsolve_oracle is not marked; decorate it with structsolve.hookimpl",
    ),
    "unknown hook": (
        HEADER + "def structsolve_orakle(space): pass",
        "TypeError: implements the unknown hook 'structsolve_orakle'; known .*structsolve_oracle",
    ),
    "wrong argument": (
        HEADER + "def structsolve_oracle(space, example): pass",
        r"PluginValidationError: .*Argument\(s\) {'example'} are declared in the hookimpl",
    ),
    "not a list": (
        HEADER + "def structsolve_structures(): return 3",
        "TypeError: structsolve_structures returned 3, expected a list of Named",
    ),
    "not Named": (
        HEADER + "def structsolve_structures(): return ['x']",
        "TypeError: structsolve_structures returned a list with 'x', expected Named objects",
    ),
    "text for names": (
        HEADER + "def structsolve_losses(): return 'hamming'",
        "TypeError: structsolve_losses returned 'hamming', expected a list of Named objects or n",
    ),
    "neither a name nor Named": (
        HEADER + "def structsolve_losses(): return ['hamming', 3]",
        "TypeError: structsolve_losses returned a list with 3, expected Named objects or names",
    ),
    "factory not callable": (
        HEADER + "def structsolve_solvers(): return [Named('x', 3)]",
        "TypeError: factory of 'x' is not callable: 3",
    ),
    "empty name": (
        HEADER + "def structsolve_solvers(): return [Named('', int)]",
        "TypeError: name is '', expected a non-empty string",
    ),
    "twice in one plugin": (
        HEADER + "def structsolve_solvers(): return [Named('x', int), Named('x', int)]",
        "ValueError: structsolve_solvers declares 'x' twice",
    ),
    "raises when asked": (
        HEADER + "def structsolve_surrogates(): raise KeyError('k')",
        "KeyError: 'k'",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_plugins_are_named_and_the_others_stay(install, case, caplog):
    code, message = BROKEN[case]
    install("bent", code, version="0.3")
    install("sound", GOOD.format(name="sound"))
    with caplog.at_level(logging.WARNING, "structsolve.plugins"):
        loaded = load()
    bent = plugin(loaded, "bent")
    assert bent.label == "plugin 'bent' (structsolve-bent 0.3)"
    assert re.search(f"^{message}", bent.error), bent.error
    assert "\n" not in bent.error
    assert f"{bent.label} was not loaded: {bent.error}" in caplog.text
    assert bent.declares == {}
    # Not even the hooks before the wrong one stay registered.
    module = sys.modules.get("outside_bent")
    assert module is None or not loaded.manager.is_registered(module)
    assert {"chain", "multiclass", "sound"} <= set(loaded.names("structures"))
    assert loaded.find("structures", "sound").summary == "a test"
    with pytest.raises(ValueError, match="unknown structure 'bent'; known: .*sound") as caught:
        loaded.find("structures", "bent")
    assert bent.label in str(caught.value) and bent.error in str(caught.value)


def test_a_partly_wrong_plugin_leaves_no_hook_behind(install):
    install(
        "half",
        "from structsolve import hookimpl\n"
        "@hookimpl\ndef structsolve_loss(space, loss): return 'not a loss'\n"
        "@hookimpl\ndef structsolve_oracle(space, wrong): pass\n",
    )
    loaded = load()
    assert "wrong" in plugin(loaded, "half").error
    space, _ = PyChainStructure().make_space([np.eye(2)], [[0, 1]])
    assert loaded.manager.hook.structsolve_loss(space=space, loss="none") is None


def test_plugins_of_two_distributions_may_have_one_name(install, tmp_path):
    install("one", GOOD.format(name="first"))
    install("one", None, distribution="another", entry="outside_other")
    (tmp_path / "outside_other.py").write_text(GOOD.format(name="second"))
    loaded = load()
    assert [p.key for p in loaded.plugins if p.name == "one"] == [
        "another:one",
        "structsolve-one:one",
    ]
    assert {"first", "second"} <= set(loaded.names("structures"))


def test_only_the_first_distribution_of_a_name_counts(install, tmp_path, monkeypatch):
    old = tmp_path / "elsewhere"
    install("same", GOOD.format(name="shadowed"), version="0.1", folder=old)
    sys.modules.pop("outside_same", None)
    monkeypatch.setattr(sys, "path", [*sys.path, str(old)])
    install("same", GOOD.format(name="visible"), distribution="Structsolve_Same", version="0.2")
    loaded = load()
    assert plugin(loaded, "same").version == "0.2"
    assert "visible" in loaded.names("structures") and "shadowed" not in loaded.names("structures")


def test_entry_points_that_are_none(install):
    info = install("odd", None)
    (info / "entry_points.txt").write_text("[structsolve]\nodd = not a module!\n")
    loaded = load()
    assert [p.distribution for p in loaded.plugins if p.error] == ["structsolve-odd"]
    assert "chain" in loaded.names("structures")


def test_a_stale_binary_is_refused_before_it_is_imported(install, tmp_path):
    import importlib.machinery

    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    info = install("stale", "raise SystemExit('imported')")
    (tmp_path / f"_stale{suffix}").write_bytes(b"structsolve-c-abi=0;" + bytes(9))
    (info / "RECORD").write_text(f"outside_stale.py,,\n_stale{suffix},,\n")
    error = plugin(load(), "stale").error
    assert "C API 0" in error and f"provides {ABI}; rebuild or upgrade" in error


def test_outside_plugins_are_asked_first(install):
    # A name that sorts, and is loaded, before ours.
    install(
        "aaa",
        "from structsolve import hookimpl\n"
        "@hookimpl\ndef structsolve_oracle(space):\n"
        "    return 'mine' if space == 'chain' else None\n",
        distribution="aaa",
    )
    loaded = load()
    assert loaded.plugins[-1].name == "aaa"
    assert loaded.manager.hook.structsolve_oracle(space="chain") == "mine"


def test_register_and_unregister(registered):
    module = registered(
        structsolve_structures=lambda: [Named("mine", PyChainStructure, "of this test")]
    )
    assert isinstance(structsolve.get_structure("mine", start_end=False), PyChainStructure)
    row = next(r for r in structsolve.list_plugins() if r["structures"] == ["mine"])
    assert (row["name"], row["status"], row["distribution"]) == (module.__name__, "loaded", "")
    refused("the name is taken by plugin 'fake_plugin_0'", registry.default().register, module)
    refused("it is registered already", registry.default().register, module)
    with pytest.raises(ValueError, match="the module is taken by plugin 'fake_plugin_0'"):
        registry.default().register(module, "again")
    assert structsolve.get_structure("mine").name == "py-chain"
    registry.default().unregister(module)
    refused("unknown structure 'mine'; known: .*'chain'", structsolve.get_structure, "mine")
    refused("is not registered as a plugin", registry.default().unregister, module)


@pytest.fixture
def packed():
    X, Y = PyChainStructure().sample(0)
    space, examples = PyChainStructure().make_space(X, Y)
    return space, make_layout(space, examples)


def test_a_replaced_oracle_is_used(registered, packed):
    space, layout = packed
    X, Y = PyChainStructure().sample(0)
    native, _ = structsolve.get_structure("chain").make_space(X, Y)
    theirs = ask_oracle(native)(make_layout(native, native.pack(X)))
    assert type(ask_oracle(space)(layout)).__name__ == "PythonOracle"
    registered(structsolve_oracle=lambda space: lambda layout: theirs)
    assert ask_oracle(space)(layout) is theirs


def test_operators_are_told_what_is_for_training(registered):
    X, y = [[0.0], [1.0]], ["a", "b"]
    space, _ = structsolve.get_structure("multiclass").make_space(X, y)
    told = []

    def oracle(layout):
        told.append(layout.training)
        return space.make_oracle()(layout)

    registered(structsolve_oracle=lambda space: oracle)
    model = structsolve.StructuredSVM(structure="multiclass", alpha=1.0).fit(X, y)
    assert told == [True]
    model.predict(X)
    model.score(X, y)
    model.decision_function(X)
    assert len(told) > 2 and not any(told[1:])


@pytest.mark.parametrize(
    "ask, hook, answer, expected",
    [
        (ask_oracle, "structsolve_oracle", "text", r"str .*expected a callable that takes"),
        (ask_oracle, "structsolve_oracle", Parts, r"Parts .*expected structsolve.operators.Oracle"),
        (ask_parts, "structsolve_parts", Oracle, r"Oracle .*expected .*operators.Parts"),
        (
            lambda space: ask_loss(space, "hamming"),
            "structsolve_loss",
            Parts,
            r"Parts .*expected .*operators.Loss",
        ),
    ],
)
def test_wrong_return_types(registered, packed, ask, hook, answer, expected):
    hooks = {
        "structsolve_oracle": lambda space: answer,
        "structsolve_parts": lambda space: answer,
        "structsolve_loss": lambda space, loss: answer,
    }
    registered(**{hook: hooks[hook]})
    space, layout = packed
    with pytest.raises(TypeError, match=f"returned {expected}") as caught:
        ask(space)(layout)
    assert hook in str(caught.value)


class Mine:
    """The return value of a plugin of this test; the test module is the plugin."""


def test_the_plugin_that_returned_it_is_named(registered, packed, monkeypatch):
    space, layout = packed
    module = registered("liar", structsolve_oracle=lambda space: lambda layout: Mine())
    monkeypatch.setattr(Mine, "__module__", f"{module.__name__}.deep.inside")
    with pytest.raises(TypeError, match="^plugin 'liar' returned Mine from structsolve_oracle"):
        ask_oracle(space)(layout)
    # A sibling module of the plugin's package.
    registry.default().unregister(module)
    module = registered("liar", structsolve_oracle=lambda space: lambda layout: Mine())
    module.__name__ = "a_package.plugin"
    monkeypatch.setattr(Mine, "__module__", "a_package.operators")
    with pytest.raises(TypeError, match="^plugin 'liar' returned Mine from structsolve_oracle"):
        ask_oracle(space)(layout)


@pytest.mark.parametrize(
    "raised, seen",
    [
        (KeyError("k"), RuntimeError),
        (ZeroDivisionError("z"), RuntimeError),
        (ValueError("v"), ValueError),
        (TypeError("t"), TypeError),
    ],
)
@pytest.mark.parametrize("when", ["asked", "bound"])
def test_what_a_hook_raises_is_named(install, packed, raised, seen, when, monkeypatch):
    code = f"    raise {raised!r}\n"
    if when == "bound":
        code = f"    def bind(layout):\n        raise {raised!r}\n    return bind\n"
    install(
        "raiser",
        f"from structsolve import hookimpl\n@hookimpl\ndef structsolve_oracle(space):\n{code}",
    )
    monkeypatch.setattr(registry, "_registry", load())
    space, layout = packed
    with pytest.raises(seen) as caught:
        ask_oracle(space)(layout)
    text = str(caught.value)
    assert text == (
        "plugin 'raiser' (structsolve-raiser 1.0) failed in structsolve_oracle: "
        f"{type(raised).__name__}: {raised}"
    )
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize("power", POWERS)
def test_each_power_has_a_hook_of_its_own(registered, packed, power):
    space, layout = packed
    before = {name: ask_power(space, name) for name in POWERS}

    def structsolve_power(space, power, wanted=power):
        return POWERS[power] if power == wanted else None

    registered(structsolve_power=structsolve_power)
    for name, bind in before.items():
        now = ask_power(space, name)
        if name == power:
            assert type(now(layout)) is POWERS[name]
        else:
            assert (bind is None) == (now is None)


def test_who_replaces_an_oracle_keeps_the_rest(registered):
    X, Y = structsolve.get_structure("chain").sample(0, n=8)

    def answers():
        model = structsolve.StructuredSVM("chain", loss="zero-one", alpha=0.3, tol=1e-2).fit(X, Y)
        slack = structsolve.surrogates.Slack(search="exact")
        other = structsolve.StructuredSVM("chain", surrogate=slack, alpha=0.3, tol=1e-2).fit(X, Y)
        best = [part for pairs in model.predict_kbest(X, 2) for pair in pairs for part in pair]
        return [*best, *model.decision_function(X), other.history_[-1]["primal"]]

    before, asked = answers(), []

    def oracle(space):
        def bind(layout):
            asked.append(layout)
            return space.make_oracle()(layout)

        return bind

    registered(structsolve_oracle=oracle)
    after = answers()
    assert asked
    for ours, theirs in zip(before, after, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_our_own_messages_stay_as_they_are(packed):
    from structsolve import CostMatrix

    refused("^CostMatrix: matrix has shape", ask_loss, packed[0], CostMatrix([[0.0]]))


def test_wrapper_plugins_may_count(registered, packed):
    seen = []

    def structsolve_oracle(space):
        answer = yield
        seen.append(answer.func.__name__)
        return answer

    module = ModuleType("counting_plugin")
    module.structsolve_oracle = hookimpl(structsolve_oracle, wrapper=True)
    with plugged(module):
        ask_oracle(packed[0])
    assert seen == ["PythonOracle"]


def test_objects_can_be_plugins(packed):
    class Plugin:
        @hookimpl
        def structsolve_losses(self):
            return ["of-an-object"]

    own = Registry()
    instance = Plugin()
    own.register(instance)
    assert own.loss_names() == ["of-an-object"]
    own.unregister(instance)
    assert own.loss_names() == []


def test_structures_pass_through_and_are_not_changed():
    structure = PyChainStructure()
    assert structsolve.get_structure(structure) is structure
    changed = structsolve.get_structure(structure, start_end=False)
    assert (changed.start_end, structure.start_end) == (False, True)
    with pytest.raises(TypeError, match=r"structure is 3, expected a name \(known: .*'chain'"):
        structsolve.get_structure(3)


def test_a_plugin_may_ask_for_structures_while_it_is_imported(install, monkeypatch):
    install(
        "curious",
        "import structsolve\nseen = structsolve.get_structure('chain')\n" + GOOD.format(name="c"),
    )
    monkeypatch.setattr(registry, "_registry", None)
    assert "c" in registry.default().names("structures")


def test_many_threads_get_one_registry(monkeypatch):
    monkeypatch.setattr(registry, "_registry", None)
    seen = []
    in_threads(lambda k: seen.append(registry.default()), range(8))
    assert len({id(r) for r in seen}) == 1
    assert "chain" in seen[0].names("structures")


def test_what_a_hook_raises_while_a_script_registers_it_is_named(registered):
    def fails():
        return [{}["k"]]

    expected = r"^plugin 'fake_plugin_\d+' failed in structsolve_solvers: KeyError: 'k'"
    refused(expected, registered, structsolve_solvers=fails, error=RuntimeError)
    expected = "failed in structsolve_solvers: ValueError: name is 'a:b'"
    refused(expected, registered, structsolve_solvers=lambda: [Named("a:b", dict)])


def test_interrupted_loading_begins_anew(monkeypatch):
    calls = []

    def interrupted(self, off=()):
        calls.append(off)
        if len(calls) == 1:
            raise KeyboardInterrupt
        self.loaded = True

    monkeypatch.setattr(registry, "_registry", None)
    monkeypatch.setattr(registry.Registry, "load_entry_points", interrupted)
    with pytest.raises(KeyboardInterrupt):
        registry.default()
    assert registry.default().loaded and len(calls) == 2
