"""The Python contract has a number: what it promises is recorded, and plugins are checked."""

import inspect
from types import ModuleType

import pytest
from checks import refused
from python_contract import FOLDER, with_owners, written

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
        "in hookspecs.py, the minor for pure additions, and run "
        "`python tests/shared/python_contract.py`"
    )


@pytest.mark.skipif(not FOLDER.exists(), reason="not in a checkout")
def test_a_minor_only_adds():
    lines = recorded()
    for number, held in lines.items():
        if number.split(".")[0] == plugin.CONTRACT.split(".")[0]:
            assert with_owners(held) <= with_owners(lines[plugin.CONTRACT]), number


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


@pytest.mark.parametrize("number", [None, "1.0", "0.9", "2.0", "1.999", "one", 1.0])
def test_plugins_are_checked_against_it(number):
    module = ModuleType("written-before")

    @hookimpl
    def structsolve_loss_names():
        return ["nothing"]

    module.structsolve_loss_names = structsolve_loss_names
    if number is not None:
        module.STRUCTSOLVE_CONTRACT = number
    known = registry.default()
    if number in (None, "1.0"):
        known.register(module, "written-before")
        known.unregister(module)
        return
    text = "expected a text such as" if number in ("one", 1.0) else f"for contract {number} of"
    refused(text, known.register, module, "written-before", error=ImportError)
    assert not any(p.name == "written-before" for p in known.plugins)
