"""Folders that need what an extra installs are tested where it is installed."""

from importlib.util import find_spec

EXTRAS = ("torch", "jax", "dask")
collect_ignore = [f"structsolve/{name}" for name in EXTRAS if find_spec(name) is None]
if find_spec("torch") is None:
    collect_ignore.append("plugins/chain/_device.py")
