"""Helpers of many tests: refusals, models in files, interrupted runs, plugins."""

import threading
import tracemalloc
from contextlib import contextmanager
from types import ModuleType

import numpy as np
import pytest

import structsolve
from structsolve import hookimpl, registry
from structsolve.testing import check_structure

# Parts of the conformance kit that test a structure's oracle.
ORACLE = ("oracle", "relaxation", "kbest", "cones", "max-marginals", "constraints", "augmented")
ORACLE += ("threads", "truth", "sizes")
# Parts that test the loss of training.
LOSS = ("cones", "counts", "loss", "augmented", "predict")


def refused(message, call, *given, error=ValueError, **named):
    """A call must raise an error whose text matches `message`, a regular expression."""
    with pytest.raises(error, match=message):
        call(*given, **named)


def reloaded(model, folder):
    """Return a model after saving and loading."""
    model.save(folder / "m.structsolve")
    return structsolve.load(folder / "m.structsolve")


def same(one, other):
    """Return whether two values are equal to the last bit, also inside lists, tuples and dicts."""
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
    """Two models have equal weights after equal passes; times may differ."""
    same(dict(one.coef_), dict(other.coef_))
    same(*([without_seconds(record) for record in model.history_] for model in (one, other)))


def without_seconds(record):
    return {key: value for key, value in record.items() if not key.endswith("seconds")}


def stopped_after(number):
    """Return a callback that raises after a pass, like a crash."""

    def stop(record):
        if record["pass"] == number:
            raise RuntimeError("killed")

    return stop


def check_oracle(structure, numbers, size=3):
    """Run the checks of the conformance kit that test the structure's oracle, on these cases.

    For structures that differ in their oracle alone: whatever else the kit checks, such as parts,
    losses, polytopes and projections, is checked where one of them goes through the whole kit.
    """
    for number in numbers:
        check_structure(
            structure, "hamming", n_cases=1, size=size, random_state=number, solvers=(), only=ORACLE
        )


def in_threads(call, arguments):
    """Call with each argument in a thread of its own, all at once."""
    threads = [threading.Thread(target=call, args=(one,)) for one in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@contextmanager
def memory_below(most):
    """Check that Python and NumPy never take more bytes."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


@contextmanager
def plugged(plugin, name=None):
    """Register a plugin with the default registry for a while."""
    registry.default().register(plugin, name)
    try:
        yield
    finally:
        registry.default().unregister(plugin)


def plugin_of(module_name, **hooks):
    """Return a plugin with these hooks, from no package."""
    module = ModuleType(module_name)
    for name, function in hooks.items():
        function.__module__ = module_name
        setattr(module, name, hookimpl(function))
    return module
