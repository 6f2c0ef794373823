"""Settings of hypothesis: no deadlines, and the same examples every time by default.

``STRUCTSOLVE_HYPOTHESIS=random pytest`` draws others.
"""

import gc
import json
import os
import sys

import allclose
import numpy as np
import pytest
from checks import plugin_of
from hypothesis import settings
from shell import TableReader

from structsolve import Named, registry

settings.register_profile("structsolve", deadline=None, derandomize=True)
settings.register_profile("random", deadline=None)
settings.load_profile(os.environ.get("STRUCTSOLVE_HYPOTHESIS", "structsolve"))

# NumPy's took a thirtieth of the time of all tests.
np.testing.assert_allclose = allclose.assert_allclose

# A hundred times fewer looks for garbage, which took a twentieth of the time of all tests.
gc.set_threshold(70_000, 10, 10)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Give expected failures no traceback: nobody reads it, and pytest parses all its files."""
    try:
        return (yield)
    except Exception as error:
        if item.get_closest_marker("xfail") and not item.config.option.runxfail:
            raise error.with_traceback(None) from None
        raise


def pytest_collection_finish():
    """Freeze thousands of collected tests, so the garbage collector does not visit them again."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure():
    """Freeze what is left, or pytest looks for garbage five times at the end, a second each."""
    gc.freeze()


@pytest.fixture
def registered():
    """Register hooks as a plugin of the default registry during a test."""
    modules = []

    def add(name=None, **hooks):
        module = plugin_of(f"fake_plugin_{len(modules)}", **hooks)
        registry.default().register(module, name)
        modules.append(module)
        return module

    yield add
    for module in modules:
        if registry.default().manager.is_registered(module):
            registry.default().unregister(module)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a fake installed distribution on sys.path: a module and its dist-info."""
    monkeypatch.syspath_prepend(str(tmp_path))
    modules = []

    def put(name, code, distribution=None, version="1.0", entry=None, folder=tmp_path):
        distribution = distribution or f"structsolve-{name}"
        info = folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        )
        value = entry or f"outside_{name}"
        (info / "entry_points.txt").write_text(f"[structsolve]\n{name} = {value}\n")
        if code is not None:
            (folder / f"outside_{name}.py").write_text(code)
            modules.append(f"outside_{name}")
        return info

    yield put
    for module in modules:
        sys.modules.pop(module, None)


@pytest.fixture
def table(tmp_path, registered):
    """Let a plugin read JSON lines during a test, and write a file of two sequences."""
    registered(structsolve_readers=lambda: [Named("table", TableReader, "JSON lines")])
    lines = [
        {"x": [{"up": 1.0}, {"down": 1.0}], "y": ["a", "b"]},
        {"x": [{"down": 1.0}, {"up": 1.0}, {"up": 0.5}], "y": ["b", "a", "a"]},
    ]
    path = tmp_path / "train.table.txt"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
