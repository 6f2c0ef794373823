"""The Python contract has a number: what it promises is recorded, and plugins are checked."""

import contextlib
import hashlib
import inspect
from types import ModuleType

import pytest
from checks import refused
from python_contract import FOLDER, by_name, takes_what, written
from python_structures import PyChainSpace, PyChainStructure

import structsolve
from structsolve import hookimpl, plugin, registry
from structsolve.lp import Polytopes, ask_oracle, ask_polytopes
from structsolve.operators import Projection
from structsolve.plugins.chain.polytope import ChainPolytopes
from structsolve.plugins.multiclass.polytope import Simplex
from structsolve.projections.rows import RowMaxMin
from structsolve.structure.ask import ask, ask_loss, make_layout

# The records that plugins were written for: what they promise is never edited.
FORMER = {"1.0": "426c967bb7242e9a", "1.1": "b00c5112c4f43f26", "1.2": "e87621bfc11e431e"}


def recorded():
    """Return the lines of every number, the earliest first."""
    paths = sorted(FOLDER.glob("*.txt"), key=lambda path: tuple(map(int, path.stem.split("."))))
    return {path.stem: path.read_text(encoding="utf-8").splitlines() for path in paths}


@pytest.mark.skipif(not FOLDER.exists(), reason="not in a checkout")
def test_the_number_changes_with_what_it_promises():
    assert recorded().get(plugin.CONTRACT) == written(), (
        f"structsolve.plugin or a hook is not what contract {plugin.CONTRACT} says: raise CONTRACT "
        "in hookspecs.py, the minor for pure additions, and run "
        "`python tests/shared/python_contract.py`"
    )


@pytest.mark.skipif(not FOLDER.exists(), reason="not in a checkout")
def test_records_of_former_numbers_stay_as_they_are():
    held = {
        number: hashlib.sha256("\n".join(lines).encode()) for number, lines in recorded().items()
    }
    assert {n: h.hexdigest()[:16] for n, h in held.items() if n != plugin.CONTRACT} == FORMER


@pytest.mark.skipif(not FOLDER.exists(), reason="not in a checkout")
def test_a_minor_only_adds():
    lines = recorded()
    for number, held in lines.items():
        if number.split(".")[0] == plugin.CONTRACT.split(".")[0]:
            now = by_name(lines[plugin.CONTRACT])
            for name, line in by_name(held).items():
                assert name in now and takes_what(line, now[name]), (number, name)


@pytest.mark.parametrize(
    ("old", "new", "fits"),
    [
        ("f(a, b=1)", "f(a, b=1)", True),
        ("f(a, b=1)", "f(a=0, b=1)", True),
        ("f(a, b=(1, 2))", "f(a, b=(1, 2), c=None)", True),
        ("f(a, b=1)", "f(a, b=2)", False),
        ("f(a, b=1)", "f(a, c=1)", False),
        ("f(a, b=1)", "f(a, b)", False),
        ("f(a)", "f(a, b)", False),
        ("f(a, b=1)", "f(a)", False),
        ("f(a, b)", "f(b, a)", False),
        ("f()", "f(a=1)", True),
    ],
)
def test_signatures_are_compared(old, new, fits):
    assert takes_what(old, new) is fits


def test_every_name_is_documented_and_the_public_one():
    for name in set(plugin.__all__) - {"CONTRACT"}:
        value = getattr(plugin, name)
        if hasattr(structsolve, name):
            assert value is getattr(structsolve, name)
        if callable(value) and not name.startswith("hook"):
            assert inspect.getdoc(value), name
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        plugin.Nothing  # noqa: B018
    assert "Structure" in dir(plugin)


OURS = None, "1.0", "1.1", "1.2", "1.3"


@pytest.mark.parametrize("number", [*OURS, "0.9", "2.0", "1.999", "one", 1.0])
def test_plugins_are_checked_against_it(number):
    module = ModuleType("written-before")

    @hookimpl
    def structsolve_losses():
        return ["nothing"]

    module.structsolve_losses = structsolve_losses
    if number is not None:
        module.STRUCTSOLVE_CONTRACT = number
    known = registry.default()
    if number in OURS:
        known.register(module, "written-before")
        known.unregister(module)
        return
    text = "expected a text such as" if number in ("one", 1.0) else f"for contract {number} of"
    refused(text, known.register, module, "written-before", error=ImportError)
    assert not any(p.name == "written-before" for p in known.plugins)
    # Hooks of that contract, unknown here, come second.
    module.structsolve_later = structsolve_losses
    refused(text, known.register, module, "written-before", error=ImportError)


def space_of(name, **params):
    """Return a space, a layout of its examples and their Hamming loss."""
    structure = structsolve.get_structure(name, **params)
    space, examples = structure.make_space(*structure.sample(0))
    layout = make_layout(space, examples)
    return space, layout, ask_loss(space, "hamming")(layout)


def max_min_of(name, **params):
    space, layout, loss = space_of(name, **params)
    bind = ask("structsolve_max_min", Projection, space, loss=loss, layout=layout)
    return None if bind is None else bind(layout)


def test_bound_answers_of_1_0_are_taken_with_a_warning(registered):
    def max_min(space, loss, layout):
        if space.structure.name == "multiclass":
            return RowMaxMin(len(space.classes_), "zero-one", 2.0, False, layout)

    registered("bound", structsolve_max_min=max_min)
    text = "plugin 'bound' returned a bound RowMaxMin from structsolve_max_min; return a callable"
    with pytest.warns(FutureWarning, match=text):
        assert type(max_min_of("multiclass")) is RowMaxMin
    assert type(max_min_of("multilabel", edges="none")).__name__ == "LabelSetMaxMin"
    assert max_min_of("chain") is None


def test_other_hooks_take_no_bound_answer(registered):
    space, layout, _ = space_of("chain")
    made = ask_oracle(space)(layout)
    registered("bound", structsolve_oracle=lambda space: made)
    refused(
        "returned ChainOracle from structsolve_oracle, expected a",
        ask_oracle,
        space,
        error=TypeError,
    )


@pytest.mark.parametrize("number", OURS)
@pytest.mark.parametrize("former", [True, False])
def test_wrappers_get_what_their_contract_says(number, former):
    seen = []

    class Both:
        @hookimpl(wrapper=True)
        def structsolve_max_min(self, space, loss, layout):
            seen.append((yield))
            return seen[-1]

    class Now:
        @hookimpl(wrapper=True)
        def structsolve_max_min(self, space, loss):
            seen.append((yield))
            return seen[-1]

    wrapper = (Both if former else Now)()
    if number is not None:
        wrapper.STRUCTSOLVE_CONTRACT = number
    gets_bound = former or number == "1.0"
    expected = pytest.warns(FutureWarning, match="its wrapper of structsolve_max_min gets what is")
    with expected if gets_bound else contextlib.nullcontext():
        registry.default().register(wrapper, "wrapper")
    try:
        made = max_min_of("multiclass")
        assert isinstance(made, Projection) and isinstance(seen[0], Projection) is gets_bound
        assert gets_bound or callable(seen[0])
        assert max_min_of("chain") is None and seen[1] is None
    finally:
        registry.default().unregister(wrapper)


def test_a_wrapper_of_1_0_may_answer_where_nobody_does(registered):
    given = []

    def polytope(space, examples):
        given.append((yield))
        return given[-1] or Simplex(space.layout)

    module = ModuleType("of-1.0")
    module.structsolve_polytope = hookimpl(wrapper=True)(polytope)
    with pytest.warns(FutureWarning, match="take no 'examples' and declare 1.3"):
        registry.default().register(module, "of-1.0")
    try:
        assert type(ask_polytopes(*packed("ordinal", thresholds=True))) is Simplex
        assert type(ask_polytopes(*packed("chain"))).__name__ == "ChainPolytopes"
    finally:
        registry.default().unregister(module)
    assert [type(one).__name__ for one in given] == ["NoneType", "ChainPolytopes"]


def packed(name, **params):
    space, layout, _ = space_of(name, **params)
    return space, layout.examples


@pytest.mark.parametrize("former", [True, False])
def test_methods_of_spaces_in_both_forms(former):
    def before(self, examples):
        return ChainPolytopes(self.layout, examples.offsets)

    def now(self):
        return lambda layout: ChainPolytopes(self.layout, layout.examples.offsets)

    structure = PyChainStructure()
    space, examples = structure.make_space(*structure.sample(0))
    space.__class__ = type("Simple", (PyChainSpace,), {"make_polytopes": before if former else now})
    text = "a plugin returned a bound ChainPolytopes from structsolve_polytope"
    with pytest.warns(FutureWarning, match=text) if former else contextlib.nullcontext():
        assert type(ask_polytopes(space, examples)) is ChainPolytopes


def test_callers_of_the_methods_may_bind_as_before():
    space, layout, loss = space_of("multilabel", edges="none")
    with pytest.warns(FutureWarning, match=r"make_max_min\(loss\) returns a callable"):
        assert isinstance(space.make_max_min(loss, layout), Projection)
    with pytest.warns(FutureWarning, match=r"make_polytopes\(\) returns a callable"):
        assert isinstance(space.make_polytopes(layout.examples), Polytopes)
    assert isinstance(space.make_max_min(loss)(layout), Projection)
    assert isinstance(space.make_polytopes()(layout), Polytopes)
    grid, at_grid, loss = space_of("multilabel", edges="full")
    with pytest.warns(FutureWarning):
        assert grid.make_max_min(loss, at_grid) is None


@pytest.mark.filterwarnings("error::FutureWarning")
def test_where_warnings_are_errors_nothing_of_a_former_plugin_stays():
    module = ModuleType("of-1.0")
    module.structsolve_polytope = hookimpl(wrapper=True)(lambda space, examples: (yield))
    known = registry.default()
    with pytest.raises(FutureWarning, match="take no 'examples' and declare 1.3, then it gets a"):
        known.register(module, "of-1.0")
    assert not known.manager.is_registered(module)
    assert not any(p.name == "of-1.0" for p in known.plugins)
