"""Checks that workers have the plugins of this process, so that answers agree."""

from __future__ import annotations

from typing import Any

from .. import registry
from ..utils.version import __version__


def loaded() -> dict[str, tuple[str, str]]:
    """Return distribution and version of every loaded plugin by name, and of the package.

    Returns
    -------
    dict of str to tuple of str

    Examples
    --------
    >>> from structsolve.dask.plugins import loaded
    >>> "chain" in loaded()
    True
    """
    plugins = {
        str(p["name"]): (str(p["distribution"]), str(p["version"]))
        for p in registry.list_plugins()
        if p["status"] == "loaded"
    }
    return {"structsolve": ("structsolve-learn", __version__), **plugins}


def differences(
    here: dict[str, tuple[str, str]], there: dict[str, tuple[str, str]], carried: set[str]
) -> str | None:
    """Describe what is missing on a worker.

    Parameters
    ----------
    here, there : dict
        Results of :func:`loaded` in this process and on the worker.
    carried : set of str
        Plugins of a script, which are sent along.

    Returns
    -------
    str or None
        None if nothing is missing.

    Examples
    --------
    >>> from structsolve.dask.plugins import differences
    >>> differences({"snakes": ("s", "1.0")}, {}, set())
    "lacks the plugin 'snakes' (s 1.0)"
    """
    for name, (distribution, version) in here.items():
        if name in carried:
            continue
        if name not in there:
            return f"lacks the plugin {name!r} ({distribution} {version})"
        if there[name][1] != version:
            return f"has {name!r} in version {there[name][1]} of {distribution}, not {version}"
    return None


def check_workers(client: Any) -> None:
    """Refuse workers that lack a plugin of this process, or have another version of it.

    Parameters
    ----------
    client : distributed.Client

    Raises
    ------
    ValueError
        The message names the worker and the plugin.
    """
    here, carried = loaded(), {name for name, _ in registry.carried_plugins()}
    for address, there in sorted(client.run(loaded, on_error="return").items()):
        lack: str | None
        if isinstance(there, BaseException):
            lack = f"cannot load structsolve ({type(there).__name__}: {there})"
        else:
            lack = differences(here, there, carried)
        if lack is not None:
            raise ValueError(
                f"worker {address} {lack}: install on every worker what this process has"
            )
