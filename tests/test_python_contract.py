"""The Python contract has a number: what it promises is recorded, and plugins are checked."""

import inspect
from types import ModuleType

import pytest
from checks import refused
from python_contract import FOLDER, by_name, takes_what, written

import structsolve
from structsolve import hookimpl, plugin, registry


def recorded():
    """Return the lines of every number, the earliest first."""
    paths = sorted(FOLDER.glob("*.txt"), key=lambda path: tuple(map(int, path.stem.split("."))))
    return {path.stem: path.read_text(encoding="utf-8").splitlines() for path in paths}


@pytest.mark.skipif(not FOLDER.exists(), reason="not in a checkout")
def test_the_number_changes_with_what_it_promises():
    assert recorded().get(plugin.CONTRACT) == written(), (
        f"structsolve.plugin or a hook is not what contract {plugin.CONTRACT} says: raise CONTRACT "
        "in hookspecs.py, the minor for pure additions, and run `python tests/python_contract.py`"
    )


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


@pytest.mark.parametrize("number", [None, "1.0", "1.1", "0.9", "2.0", "1.999", "one", 1.0])
def test_plugins_are_checked_against_it(number):
    module = ModuleType("written-before")

    @hookimpl
    def structsolve_losses():
        return ["nothing"]

    module.structsolve_losses = structsolve_losses
    if number is not None:
        module.STRUCTSOLVE_CONTRACT = number
    known = registry.default()
    if number in (None, "1.0", "1.1"):
        known.register(module, "written-before")
        known.unregister(module)
        return
    text = "expected a text such as" if number in ("one", 1.0) else f"for contract {number} of"
    refused(text, known.register, module, "written-before", error=ImportError)
    assert not any(p.name == "written-before" for p in known.plugins)
