# What packages bring to the shell, by entry points: commands, and estimators with own options.
from __future__ import annotations

import argparse
import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from structsolve.cli.options import UsageError
from structsolve.protocols import FitOptions, require
from structsolve.registry.distributions import described, disabled, entries
from structsolve.registry.plugin import Plugin

GROUP = "structsolve_commands"
FIT = "structsolve_fit"
# Names after --without-plugin.
_off: list[str] = []


def leave_out(names: Sequence[str]) -> None:
    """Leave out commands and options of packages, until the next call.

    Parameters
    ----------
    names : sequence of str
        Of entry points or distributions, beside those that the environment switches off.
    """
    _off[:] = names
    families.cache_clear()


def has(name: str) -> bool:
    """Return whether a name is that of a command, of options of ``fit``, or their distribution.

    Parameters
    ----------
    name : str

    Returns
    -------
    bool
    """
    return any(plugin.is_called(name) for plugin, _ in (*_commands(), *entries(FIT)))


def _is_left_out(plugin: Plugin) -> bool:
    return any(map(plugin.is_called, (*disabled(), *_off)))


def names() -> list[str]:
    """Return the names of commands that installed packages provide.

    Returns
    -------
    list of str
    """
    return [entry.name for _, entry in _commands() if entry is not None]


@functools.lru_cache(maxsize=1)
def _commands() -> list[Any]:
    """Return the entry points of commands: looking at every installed package takes a while."""
    return list(entries(GROUP))


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
    for plugin, entry in _commands():
        if entry is None:
            continue
        if _is_left_out(plugin):
            if entry.name == chosen:
                raise UsageError(f"{chosen} is a command of {plugin.source}, which is switched off")
            continue
        if entry.name in taken:
            warnings.warn(
                f"the command {entry.name!r} of {plugin.source} is left out: the name is taken",
                stacklevel=2,
            )
            continue
        try:
            add = entry.load() if chosen in (None, entry.name) else None
            text = "" if add is None else _summary(add)
            parser = command(entry.name, None, text or f"Of {plugin.source}.")
            if add is not None:
                parser.set_defaults(run=add(parser))
        except Exception as error:  # it may fail in any way; the other commands stay
            if entry.name not in taken:
                parser = command(entry.name, None, f"Of {plugin.source}, not loaded.")
            parser.set_defaults(run=_refusal(plugin, error))


@functools.lru_cache(maxsize=1)
def families() -> dict[str, FitOptions]:
    """Return the modules of estimators with options of their own, by their short names.

    ``structsolve fit --estimator NAME`` takes a module's options.  With the option ``CHOSEN_BY``,
    if it has one, ``--estimator NAME`` may be left out.

    Returns
    -------
    dict of str to module
    """
    modules = {}
    for plugin, entry in entries(FIT):
        if entry is not None and not _is_left_out(plugin):
            try:
                module = entry.load()
                require(module, FitOptions, f"its module {entry.value!r}")
                modules[entry.name] = module
            except Exception as error:  # it may fail in any way; the others stay
                warnings.warn(f"{plugin.label} was not loaded: {described(error)}", stacklevel=2)
    return modules


def settle_estimator(args: argparse.Namespace) -> None:
    """Let an option that chooses its estimator do so, such as ``--n-hidden``.

    Parameters
    ----------
    args : Namespace
        Options of ``fit``; ``estimator`` changes.

    Raises
    ------
    UsageError
        If two options choose.
    """
    if args.estimator != "margin":
        return
    chosen = {}
    for name, family in families().items():
        option = getattr(family, "CHOSEN_BY", None)
        if option is not None and getattr(args, option) != args.default_of(option):
            chosen[f"--{option.replace('_', '-')}"] = name
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(sorted(chosen))}: expected one of them")
    args.estimator = next(iter(chosen.values()), "margin")


def _summary(add: Callable[..., Any]) -> str:
    lines = (inspect.getdoc(add) or "").splitlines()
    return lines[0].replace("%", "%%") if lines else ""


def _refusal(plugin: Plugin, error: Exception) -> Callable[..., Any]:
    def refuse(_: Any) -> None:
        raise UsageError(f"{plugin.label} was not loaded: {described(error)}")

    return refuse
