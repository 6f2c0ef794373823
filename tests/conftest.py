"""Settings of hypothesis: no deadlines on shared machines; in CI the same examples every time."""

import os

import pytest
from checks import plugin_of
from hypothesis import settings

from structsolve import registry

settings.register_profile("structsolve", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("structsolve")


@pytest.fixture
def registered():
    """Register hooks as a plugin of the default registry; they are out again afterwards."""
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
