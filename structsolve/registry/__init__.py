"""The plugins of this process: found by entry point or registered, and looked up by name.

``default()`` returns the registry in use.  ``distributions`` finds installed plugins, ``manager``
registers them and calls hooks, ``names`` looks up names, ``carried`` sends plugins of a script to
other processes.
"""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Sequence
from typing import Any

from .arguments import create as create
from .carried import adopt, carry
from .manager import Registry as Registry
from .plugin import LISTS
from .plugin import Plugin as Plugin

_lock = threading.RLock()
_registry: Registry | None = None


def default() -> Registry:
    """Return the registry of installed plugins; the first call reads the entry points.

    Returns
    -------
    Registry
    """
    with _lock:
        return _loaded() if _registry is None else _registry


def _loaded(off: Sequence[str] = ()) -> Registry:
    """Read the entry points; if interrupted, the next call starts again."""
    global _registry
    # Set before it is filled: a plugin may call default() while it is imported.
    _registry = registry = Registry()
    try:
        registry.load_entry_points(off)
    except BaseException:
        _registry = None
        raise
    return registry


def switch_off(name: str) -> None:
    """Disable a plugin in this process; if it is not loaded yet, it is not imported.

    Child processes read only the environment's ``STRUCTSOLVE_DISABLE_PLUGINS``, a comma-separated
    list of such names.

    Parameters
    ----------
    name : str
        Name of a plugin, of a distribution, or ``distribution:name``.

    Raises
    ------
    ValueError
        If no plugin has this name.
    """
    with _lock:
        registry = _loaded([name]) if _registry is None else _registry
        registry.switch_off(name)


def carried_plugins() -> list[tuple[str, bytes | str]]:
    """Return the plugins that a script registered, for a process that receives an estimator.

    Returns
    -------
    list of (str, bytes or str)
        Name and pickle, or why it cannot be pickled; empty in most processes.
    """
    return [] if _registry is None else carry(_registry)


def adopt_plugins(carried: list[tuple[str, bytes | str]]) -> None:
    """Register the plugins of another process, unless a plugin of the name exists.

    Parameters
    ----------
    carried : list of (str, bytes or str)
        The result of :func:`carried_plugins` there.
    """
    if carried:
        adopt(default(), carried)


def get_structure(structure: Any = "chain", **params: Any) -> Any:
    """Return a structure by name, with parameters; a structure object passes through.

    Parameters
    ----------
    structure : str or Structure, default="chain"
        A name may have its distribution as prefix, and arguments as suffix:
        ``"my-package:ring:start=2"``.
    **params
        Constructor arguments of the structure; for a structure object, they are set in a copy.

    Returns
    -------
    Structure

    Raises
    ------
    ValueError
        If the name or a parameter is unknown.
    TypeError
        If ``structure`` is neither a name nor a structure.

    Examples
    --------
    >>> import structsolve
    >>> structsolve.get_structure("chain", start_end=False)
    ChainStructure(start_end=False, transitions=True, forbidden=None, empty=False)
    """
    if isinstance(structure, str):
        return default().make("structures", structure, **params)
    given = default().object_of("structures", structure)
    return copy.copy(given).set_params(**params) if params else given


def label_kind(structure: Any) -> tuple[bool, bool]:
    """Return whether labels of a structure are one class each, and rows of an indicator matrix.

    Parameters
    ----------
    structure : str or Structure

    Returns
    -------
    tuple of bool
    """
    if isinstance(structure, str):
        registry = default()
        return _named_kind(registry, registry.version, structure)
    single = bool(getattr(structure, "single_node", False))
    return single, bool(getattr(structure, "label_sets", False))


# scikit-learn reads tags at each call of a Pipeline: make one structure per name.
@functools.lru_cache(maxsize=256)
def _named_kind(registry: Registry, version: int, structure: str) -> tuple[bool, bool]:
    try:
        return label_kind(get_structure(structure))
    except (ValueError, TypeError, RuntimeError):
        return False, False


def list_plugins() -> list[dict[str, Any]]:
    """Return the contents of every plugin.

    Returns
    -------
    list of dict
        One per plugin: ``name``, ``distribution``, ``version``, ``status`` ("loaded", "broken" or
        "off"), ``error``; names by kind (``structures``, ``surrogates``, ...); which hooks it has.

    Examples
    --------
    >>> import structsolve
    >>> [p["structures"] for p in structsolve.list_plugins() if p["name"] == "chain"]
    [['chain']]
    """
    rows = []
    for plugin in default().plugins:
        row: dict[str, Any] = {
            "name": plugin.name,
            "distribution": plugin.distribution,
            "version": plugin.version,
            "status": "broken" if plugin.error else "off" if plugin.off else "loaded",
            "error": plugin.error,
        }
        for kind in LISTS:
            row[kind] = [d.name for d in plugin.declares.get(kind, ())]
        row["losses"] = [*plugin.declares.get("loss_names", ()), *row["losses"]]
        hooks = plugin.declares.get("hooks", [])
        for kind in ("oracle", "power", "parts", "projection", "loss", "max_min", "polytope"):
            row[f"gives_{kind}"] = f"structsolve_{kind}" in hooks
        row["hooks"] = hooks
        rows.append(row)
    return rows
