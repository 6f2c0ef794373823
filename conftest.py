"""Folders that need what an extra installs are tested where it is installed."""

from importlib.util import find_spec

collect_ignore = [f"structsolve/{name}" for name in ("torch", "dask") if find_spec(name) is None]
