"""What tests of many parts need: refusals, models in files, runs that stop, plugins."""

from types import ModuleType

import numpy as np
import pytest

import structsolve
from structsolve import hookimpl
from structsolve.testing import check_structure

# Parts of the conformance kit that see a structure's oracle.
ORACLE = ("oracle", "relaxation", "kbest", "cones", "max-marginals", "constraints", "augmented")
ORACLE += ("threads", "truth", "sizes")
# Those that see the loss of training.
LOSS = ("cones", "counts", "loss", "augmented", "predict")


def refused(message, call, *given, error=ValueError, **named):
    """A call must raise an error whose text has `message`, a regular expression."""
    with pytest.raises(error, match=message):
        call(*given, **named)


def reloaded(model, folder):
    """A model that was saved and loaded again."""
    model.save(folder / "m.structsolve")
    return structsolve.load(folder / "m.structsolve")


def same(one, other):
    """Equal to the last bit, in whatever lists, tuples and dicts."""
    assert type(one) is type(other)
    if isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for a, b in zip(one, other):
            same(a, b)
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for key, value in one.items():
            same(value, other[key])
    else:
        np.testing.assert_array_equal(one, other)


def same_run(one, other):
    """Two models with equal weights after equal passes, whatever time these took."""
    same(dict(one.coef_), dict(other.coef_))
    same(*([without_seconds(record) for record in model.history_] for model in (one, other)))


def without_seconds(record):
    return {key: value for key, value in record.items() if not key.endswith("seconds")}


def stopped_after(number):
    """A callback that raises when a pass is over, as a crash would."""

    def stop(record):
        if record["pass"] == number:
            raise RuntimeError("killed")

    return stop


def check_oracle(structure, numbers, size=3):
    """The checks of the conformance kit that see the structure's oracle, on these cases.

    For structures that differ in their oracle alone: whatever else the kit checks, such as parts,
    losses, polytopes and projections, is checked where one of them goes through the whole kit.
    """
    for number in numbers:
        check_structure(structure, "hamming", 1, size, number, (), ORACLE)


def plugin_of(module_name, **hooks):
    """A plugin with these hooks, out of no package."""
    module = ModuleType(module_name)
    for name, function in hooks.items():
        function.__module__ = module_name
        setattr(module, name, hookimpl(function))
    return module
