"""The plugins of this process: found by entry point or registered, asked by name.

``default()`` has those that are in use.  ``distributions`` finds what is installed, ``manager``
registers it and calls hooks, ``names`` looks names up, ``carried`` sends what a script registered
to other processes.
"""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Sequence
from typing import Any

from .carried import adopt, carry
from .manager import Registry as Registry
from .names import create as create
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
    """Read the entry points; where that is interrupted, the next call begins anew."""
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
    """Take a plugin out of use in this process; what is not loaded yet is not imported.

    Processes that it starts read the environment's ``STRUCTSOLVE_DISABLE_PLUGINS`` alone, which has
    such names with commas between them.

    Parameters
    ----------
    name : str
        Name of a plugin, of a distribution, or ``distribution:name``.

    Raises
    ------
    ValueError
        When no plugin is called so.
    """
    with _lock:
        registry = _loaded([name]) if _registry is None else _registry
        registry.switch_off(name)


def carried_plugins() -> list[tuple[str, bytes | str]]:
    """Return the plugins that a script registered, for a process that gets an estimator.

    Returns
    -------
    list of (str, bytes or str)
        Name and pickle, or why it cannot be pickled; empty in most processes.
    """
    return [] if _registry is None else carry(_registry)


def adopt_plugins(carried: list[tuple[str, bytes | str]]) -> None:
    """Register what another process carried, unless a plugin of the name is there.

    Parameters
    ----------
    carried : list of (str, bytes or str)
        What :func:`carried_plugins` returned there.
    """
    if carried:
        adopt(default(), carried)


def get_structure(structure: Any = "chain", **params: Any) -> Any:
    """Return a structure by name, with parameters; a structure object passes through.

    Parameters
    ----------
    structure : str or Structure, default="chain"
        A name may have its distribution in front, and arguments behind:
        ``"my-package:ring:start=2"``.
    **params
        Constructor arguments of the structure; of a structure object, a copy gets them.

    Returns
    -------
    Structure

    Raises
    ------
    ValueError
        When the name or a parameter is unknown.
    TypeError
        When ``structure`` is neither a name nor a structure.

    Examples
    --------
    >>> import structsolve
    >>> structsolve.get_structure("chain", start_end=False)
    ChainStructure(start_end=False, transitions=True, forbidden=None, empty=False)
    """
    if isinstance(structure, str):
        return default().make("structures", structure, **params)
    if isinstance(structure, type) or not hasattr(structure, "make_space"):
        raise TypeError(
            f"structure is {structure!r}, expected a name (known: {default().names('structures')}) "
            "or a Structure object"
        )
    return copy.copy(structure).set_params(**params) if params else structure


def is_single_node(structure: Any) -> bool:
    """Return whether every label of a structure is one class.

    Parameters
    ----------
    structure : str or Structure

    Returns
    -------
    bool
        False for unknown names.
    """
    return _has(structure, "single_node")


def holds_label_sets(structure: Any) -> bool:
    """Return whether labels of a structure are rows of an indicator matrix.

    Parameters
    ----------
    structure : str or Structure

    Returns
    -------
    bool
        False for unknown names.
    """
    return _has(structure, "label_sets")


def _has(structure: Any, name: str) -> bool:
    if isinstance(structure, str):
        registry = default()
        return _named_has(registry, registry.version, structure, name)
    return bool(getattr(structure, name, False))


# scikit-learn asks for tags at each call of a Pipeline: a structure is made once a name.
@functools.lru_cache(maxsize=256)
def _named_has(registry: Registry, version: int, structure: str, name: str) -> bool:
    try:
        return bool(getattr(get_structure(structure), name, False))
    except (ValueError, TypeError, RuntimeError):
        return False


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
