"""Shipped plugins declare everything by hooks, which answer only for their own spaces."""

from functools import partial

import pytest
from outside_cases import CASES
from python_structures import PyChainSpace

import structsolve
from structsolve import registry
from structsolve.lp import ask_oracle
from structsolve.operators import KBest, Oracle
from structsolve.plugins.chain import ChainSpace, ChainStructure
from structsolve.registry import Registry
from structsolve.structure.ask import POWERS, ask_loss, ask_parts, ask_power, make_layout
from structsolve.structure.base import Space
from structsolve.structure.node_space import NodeSpace
from structsolve.structure.python_operators import PythonOracle

ALL = {"oracle", "parts", "power", "projection", "loss", "polytope"}
# What each declares besides: names of losses, closed forms; flows have no projection.
DECLARED = {
    "chain": ALL | {"readers", "metrics"},
    "tree": ALL,
    "mrf": ALL,
    "factor-graph": ALL,
    "grid": ALL | {"readers"},
    "multiclass": ALL | {"solvers"},
    "multilabel": ALL | {"max_min", "metrics", "readers"},
    "ordinal": ALL | {"losses"},
    "permutation": ALL | {"losses", "metrics"},
    "alignment": ALL,
    "dependency": ALL | {"losses", "readers"},
    "cky": ALL | {"readers"},
    "semi-markov": ALL | {"losses"},
    "path": ALL | {"losses"},
    "flow": ALL - {"projection"} | {"losses"},
    "dag": ALL | {"losses", "estimators", "metrics"},
}
LISTED = {
    "losses",
    "estimators",
    "metrics",
    "readers",
    "solvers",
}  # they answer no question about a space
SPACES = {
    f"{name}-{k}": (name, params) for name, kinds in CASES.items() for k, params in enumerate(kinds)
}  # ids without addresses of objects, which differ from process to process
EACH = pytest.mark.parametrize("name, params", SPACES.values(), ids=SPACES)


def made(name, params):
    structure = structsolve.get_structure(name, **params)
    return structure.make_space(*structure.sample(0))


def questions(space, examples):
    """Return every question that a hook answers for a space."""
    yield "structsolve_oracle", {}
    yield "structsolve_parts", {}
    for power in POWERS:
        yield "structsolve_power", {"power": power}
    for regularizer in ("entropy", "euclidean"):
        yield "structsolve_projection", {"regularizer": regularizer}
    for loss in registry.default().loss_names():
        yield "structsolve_loss", {"loss": loss}
    yield "structsolve_polytope", {"examples": examples}
    layout = make_layout(space, examples)
    loss = ask_loss(space, "hamming")(layout)
    yield "structsolve_max_min", {"loss": loss, "layout": layout}


def declaring(hook):
    """Return the implementations of the plugins that answer last, ours first."""
    impls = getattr(registry.default().manager.hook, hook).get_hookimpls()
    return [impl for impl in impls if impl.trylast]


def test_the_table_of_contents():
    shipped = {p.name: p for p in registry.default().plugins if p.distribution and p.is_ours}
    # They have no structure of their own.
    families = dict.fromkeys(("risk", "latent", "hidden-markov"), {"structsolve_estimators"})
    families["extreme"] = {
        f"structsolve_{kind}" for kind in ("estimators", "readers", "rival_indexes")
    }
    families["functions"] = {"structsolve_structures"}
    assert {*shipped} == {*DECLARED, *families, "core"}
    for name, hooks in families.items():
        assert {*shipped[name].declares["hooks"]} == hooks, name
    for name, kinds in DECLARED.items():
        hooks = {f"structsolve_{kind}" for kind in (*kinds, "structures")}
        assert {*shipped[name].declares["hooks"]} == hooks, name


@pytest.mark.parametrize("name", DECLARED)
def test_no_space_of_ours_has_methods_instead(name):
    methods = [m for m in vars(Space) if m.startswith("make_")]
    for params in CASES[name]:
        space, _ = made(name, params)
        for method in methods:
            owner = next(c for c in type(space).__mro__ if method in vars(c))
            assert owner in (Space, NodeSpace), (method, owner)


@EACH
def test_its_own_plugin_answers_and_nobody_else(name, params):
    space, examples = made(name, params)
    answered = set()
    for hook, arguments in questions(space, examples):
        given = {"space": space, **arguments}
        for impl in declaring(hook):
            answer = impl.function(*(given[argument] for argument in impl.argnames))
            if answer is not None:
                folder = name.replace("-", "_")
                assert impl.plugin.__name__ == f"structsolve.plugins.{folder}", (hook, arguments)
                answered.add(hook.removeprefix("structsolve_"))
    missing = DECLARED[name] - LISTED - answered
    assert missing <= {"polytope", "projection", "max_min"}  # some kinds of spaces lack them
    assert "polytope" not in missing or params == {"thresholds": True}


@pytest.mark.parametrize("name", DECLARED)
def test_without_the_plugin_nothing_of_it_answers(monkeypatch, name):
    spaces = [made(name, params) for params in CASES[name]]
    asked = [(space, [*questions(space, examples)]) for space, examples in spaces]
    others = Registry()
    others.load_entry_points(off=[f"structsolve-learn:{name}"])
    monkeypatch.setattr(registry, "_registry", others)
    for space, every in asked:
        for hook, arguments in every:
            answer = others.ask(hook, object, space=space, **arguments)
            left = hook in ("structsolve_loss", "structsolve_max_min") and isinstance(
                space, NodeSpace
            )  # those of nodes are the core's
            assert answer is None or left, (hook, arguments)
        with pytest.raises(ValueError, match=f"no plugin gives the oracle of structure '{name}'"):
            ask_oracle(space)


def chain_of(cls):
    """Return a space of a subclass of that of chains, in another structure, and a layout."""

    class Mine(ChainStructure):
        name = "mine"

    structure = Mine()
    X, Y = structure.sample(0)
    space, examples = structure.make_space(X, Y)
    space.__class__ = cls
    return space, make_layout(space, examples)


def test_subclasses_of_others_have_what_is_declared_for_the_class():
    class Plain(ChainSpace):
        pass

    space, layout = chain_of(Plain)
    ours = made("chain", {})[0]
    for power in POWERS:
        assert ask_power(space, power) is None or ask_power(ours, power) is not None
    assert isinstance(ask_power(space, "kbest")(layout), KBest)
    assert type(ask_oracle(space)(layout)).__module__.endswith("chain._oracle")


def test_methods_of_a_subclass_come_first_and_may_say_that_there_is_none():
    asked = []

    class Own(ChainSpace):
        def make_oracle(self):
            bind = super().make_oracle()  # what the plugin declares for chains
            return lambda layout: asked.append(layout) or bind(layout)

        def make_power(self, name):
            return None if name == "counts" else super().make_power(name)

    space, layout = chain_of(Own)
    assert isinstance(ask_oracle(space)(layout), Oracle) and asked == [layout]
    assert ask_power(space, "counts") is None
    assert isinstance(ask_power(space, "kbest")(layout), KBest)


def test_methods_in_python_take_the_place_of_the_oracle_and_its_powers():
    class Slow(ChainSpace):
        def argmax(self, examples, i, theta):
            return PyChainSpace.argmax(self, examples, i, theta)

    space, layout = chain_of(Slow)
    assert type(ask_oracle(space)(layout)) is PythonOracle
    assert [ask_power(space, power) for power in POWERS] == [None] * len(POWERS)
    assert type(ask_parts(space)(layout)).__module__.endswith("chain._shape")


def test_others_replace_and_wrap_what_is_declared(registered):
    space, layout = chain_of(ChainSpace)
    native = type(ask_oracle(space)(layout))
    registered(structsolve_oracle=lambda space: partial(PythonOracle, PyChainSpace.of(space)))
    assert type(ask_oracle(space)(layout)) is PythonOracle
    assert type(space.make_oracle()(layout)) is native  # to be wrapped
