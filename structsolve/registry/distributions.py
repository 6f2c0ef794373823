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
    for plugin, entry in entries(GROUP):
        if entry is None:
            yield plugin, lambda: None
            continue
        our = is_ours(entry.module)
        known.append((our, plugin, _loader(entry, our)))
    for _, plugin, load in sorted(known, key=lambda f: (not f[0], f[1].distribution, f[1].name)):
        yield plugin, load


def entries(group: str) -> Iterator[tuple[Plugin, importlib.metadata.EntryPoint | None]]:
    """Yield the entry points of a group, of every installed package.

    If distributions share a name, those of the first on ``sys.path``, which is imported.

    Parameters
    ----------
    group : str

    Yields
    ------
    plugin : Plugin
        The entry's name and distribution, with ``error`` if its file cannot be read.
    entry : EntryPoint or None
        None if its file cannot be read.
    """
    seen = set()
    for distribution in importlib.metadata.distributions():
        try:
            own = [e for e in distribution.entry_points if e.group == group]
            for entry in own:
                is_ours(entry.module)  # a malformed value has none
        except Exception as error:  # a broken entry_points.txt
            yield Plugin("?", *_origin(distribution), error=described(error)), None
            continue
        if own:
            source, version = _origin(distribution)
            if (key := normalized(source)) not in seen:
                seen.add(key)
                yield from ((Plugin(entry.name, source, version), entry) for entry in own)


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


def _loader(entry: importlib.metadata.EntryPoint, our: bool) -> Callable[[], Any]:
    def load() -> Any:
        if not our:
            of: Any = entry.dist
            files = [Path(str(of.locate_file(f))) for f in of.files or ()]
            if stale := abi.stale_modules(entry.module, files):
                raise ImportError("; ".join(stale))
        return entry.load()

    return load


def _origin(distribution: importlib.metadata.Distribution) -> tuple[str, str]:
    """Return name and version; each access reads and parses the whole file of metadata."""
    try:
        metadata = distribution.metadata
        return str(metadata["Name"] or "?"), str(metadata["Version"] or "?")
    except Exception:  # metadata cut short
        return str(getattr(distribution, "_path", "?")), "?"
