"""Transfer of a script's plugins to worker processes, with pickled estimators."""

from __future__ import annotations

import logging
import pickle
from typing import TYPE_CHECKING

from .distributions import described
from .plugin import Plugin

if TYPE_CHECKING:
    from .manager import Registry

logger = logging.getLogger("structsolve.plugins")


def carry(registry: Registry) -> list[tuple[str, bytes | str]]:
    """Return a script's plugins: modules by name, or with their functions.

    Parameters
    ----------
    registry : Registry

    Returns
    -------
    list of (str, bytes or str)
        Name and pickle, or why it cannot be pickled.
    """
    mine = [p for p in registry.plugins if p.module is not None and not p.distribution]
    if not mine:
        return []
    from joblib import wrap_non_picklable_objects  # heavy

    carried: list[tuple[str, bytes | str]] = []
    for plugin in mine:
        try:
            carried.append(
                (plugin.name, pickle.dumps(wrap_non_picklable_objects(plugin.module, False)))
            )
        except Exception as error:  # a lock, an open file, ...: reported where needed
            carried.append((plugin.name, described(error)))
    return carried


def adopt(registry: Registry, carried: list[tuple[str, bytes | str]]) -> None:
    """Register the plugins of another process; store the errors of those that fail.

    Parameters
    ----------
    registry : Registry
    carried : list of (str, bytes or str)
        The result of :func:`carry` there.
    """
    for name, pickled in carried:
        if any(plugin.name == name for plugin in registry.plugins):
            continue
        plugin = Plugin(name)
        try:
            if isinstance(pickled, str):
                raise ValueError(f"it cannot be sent to this process: {pickled}")
            registry.add(pickle.loads(pickled), plugin)
        except Exception as error:  # a module that this process cannot import, ...
            plugin.error = f"registered by a script elsewhere. {described(error)}"
            registry.plugins.append(plugin)
            logger.warning("%s was not loaded: %s", plugin.label, plugin.error)
