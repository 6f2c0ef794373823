"""Installed packages that provide plugins: their entry points, in the order of registration."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .. import abi
from .plugin import Plugin, is_ours, normalized

GROUP = "structsolve"
#: Comma-separated names of plugins or distributions that are not loaded.
DISABLED = "STRUCTSOLVE_DISABLE_PLUGINS"


def disabled() -> list[str]:
    """Return the plugins that the environment switches off.

    Returns
    -------
    list of str
        Names of plugins, of distributions, or ``distribution:name``.
    """
    return [name.strip() for name in os.environ.get(DISABLED, "").split(",") if name.strip()]


def installed() -> Iterator[tuple[Plugin, Callable[[], Any]]]:
    """Yield every installed plugin with a function that imports it.

    Ours come first.  The last registered plugin answers first, so any plugin may replace a
    structure's own, regardless of the order on ``sys.path``.

    Yields
    ------
    plugin : Plugin
        With ``error`` if its name cannot be read.
    load : callable
        Returns the module; raises ImportError if a compiled module is for another C API.
    """
    known: list[tuple[bool, Plugin, Callable[[], Any]]] = []
    seen = set()
    for distribution in importlib.metadata.distributions():
        try:
            entries = [e for e in distribution.entry_points if e.group == GROUP]
            ours = [is_ours(e.module) for e in entries]
        except Exception as error:  # a broken entry_points.txt
            plugin = _plugin_of("?", distribution)
            plugin.error = described(error)
            yield plugin, lambda: None
            continue
        if not entries:
            continue
        plugins = [_plugin_of(e.name, distribution) for e in entries]
        # If distributions share a name, the first on sys.path is imported.
        if (key := normalized(plugins[0].distribution)) not in seen:
            seen.add(key)
            loads = [_loader(e, distribution, our) for e, our in zip(entries, ours)]
            known += zip(ours, plugins, loads)
    for _, plugin, load in sorted(known, key=lambda f: (not f[0], f[1].distribution, f[1].name)):
        yield plugin, load


def described(error: BaseException) -> str:
    """Return an error as one line.

    Parameters
    ----------
    error : BaseException

    Returns
    -------
    str
    """
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _loader(
    entry: importlib.metadata.EntryPoint, distribution: importlib.metadata.Distribution, our: bool
) -> Callable[[], Any]:
    def load() -> Any:
        if not our:
            files = [Path(str(distribution.locate_file(f))) for f in distribution.files or ()]
            if stale := abi.stale_modules(entry.module, files):
                raise ImportError("; ".join(stale))
        return entry.load()

    return load


def _plugin_of(name: str, distribution: importlib.metadata.Distribution) -> Plugin:
    try:
        source = str(distribution.metadata["Name"] or "?")
        return Plugin(name, source, str(distribution.version or "?"))
    except Exception:  # metadata cut short
        return Plugin(name, str(getattr(distribution, "_path", "?")), "?")
