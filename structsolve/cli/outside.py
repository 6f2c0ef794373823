# Commands of other packages: entry points of the group structsolve_commands.
from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

from structsolve.cli.options import UsageError
from structsolve.registry.distributions import described, disabled, entries
from structsolve.registry.plugin import Plugin

GROUP = "structsolve_commands"


def add_commands(command: Any, taken: Any, chosen: str | None) -> None:
    """Add the parsers of commands that installed packages provide.

    A package names its command as an entry point of ``structsolve_commands``, a function that adds
    the options to a parser and returns the function that runs it.  The module is only imported
    to run the command, or to list all.

    Parameters
    ----------
    command : callable
        Makes a parser of a name, the function that runs it, and a text.
    taken : container of str
        Names of commands that exist.
    chosen : str or None
        The command that is run; None imports all, for ``--help``.
    """
    for plugin, entry in entries(GROUP):
        if entry is None or any(map(plugin.is_called, disabled())):
            continue
        if entry.name in taken:
            warnings.warn(
                f"the command {entry.name!r} of {plugin.source} is left out: the name is taken",
                stacklevel=2,
            )
            continue
        try:
            add = entry.load() if chosen in (None, entry.name) else None
            parser = command(entry.name, None, _summary(add) or f"Of {plugin.source}.")
            if add is not None:
                parser.set_defaults(run=add(parser))
        except Exception as error:  # it may fail in any way; the other commands stay
            if entry.name not in taken:
                parser = command(entry.name, None, f"Of {plugin.source}, not loaded.")
            parser.set_defaults(run=_refusal(plugin, error))


def _summary(add: Callable[..., Any] | None) -> str:
    lines = (inspect.getdoc(add) or "").splitlines()
    return lines[0].replace("%", "%%") if lines else ""


def _refusal(plugin: Plugin, error: Exception) -> Callable[..., Any]:
    def refuse(_: Any) -> None:
        raise UsageError(f"{plugin.label} was not loaded: {described(error)}")

    return refuse
