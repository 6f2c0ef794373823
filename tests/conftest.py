"""Settings of hypothesis: no deadlines, the same examples every time unless others are asked for.

``STRUCTSOLVE_HYPOTHESIS=random pytest`` draws others.
"""

import os

import pytest
from checks import plugin_of
from hypothesis import settings

from structsolve import registry

settings.register_profile("structsolve", deadline=None, derandomize=True)
settings.register_profile("random", deadline=None)
settings.load_profile(os.environ.get("STRUCTSOLVE_HYPOTHESIS", "structsolve"))


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
