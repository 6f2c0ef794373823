"""Settings of hypothesis: no deadlines on shared machines; in CI the same examples every time."""

import os

from hypothesis import settings

settings.register_profile("structsolve", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("structsolve")
