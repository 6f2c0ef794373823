# What packages bring to the shell, by entry points: commands, options of estimators and formats,
# scores.
from __future__ import annotations

import argparse
import functools
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from structsolve.cli.options import UsageError, refuse
from structsolve.protocols import FitOptions, require
from structsolve.registry.distributions import described, disabled, entries
from structsolve.registry.plugin import Plugin, is_ours, modules_of

GROUP = "structsolve_commands"
FIT = "structsolve_fit"
FORMATS = "structsolve_formats"
SCORE = "structsolve_score"
# Names of parameters, by the module that has added them.
Options = dict[str, list[str]]
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
    _modules.cache_clear()


def has(name: str) -> bool:
    """Return whether a name is that of a command, of options, of scores, or their distribution.

    Parameters
    ----------
    name : str

    Returns
    -------
    bool
    """
    brought = [*_commands(), *entries(FIT), *entries(FORMATS), *entries(SCORE)]
    return any(plugin.is_called(name) for plugin, _ in brought)


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
            run = None if add is None else add(parser)
            if add is not None and not callable(run):
                raise TypeError(f"{entry.value} returned {run!r}, expected what runs the command")
            _refuse_taken(parser)
            parser.set_defaults(run=run)
        except (Exception, SystemExit) as error:  # it may fail in any way; the other commands stay
            if entry.name == chosen:
                raise UsageError(f"{plugin.label} was not loaded: {described(error)}") from error
            if entry.name not in taken:
                command(entry.name, None, f"Of {plugin.source}, not loaded.")


def add_options(group: str, sub: Any, place: Any = None, name: str = "add_options") -> Options:
    """Add the options of a group's modules; modules whose options clash are left out.

    Parameters
    ----------
    group : str
    sub : ArgumentParser
        Of the command.
    place : argument group, optional
        Where to add them in it.
    name : str
        Of the function that adds them, which modules may lack.

    Returns
    -------
    dict of str to (list of str)
        Names of the parameters that each module has added.
    """
    added: Options = {}
    brought = _modules(group)
    for key, module in [*brought.items()]:
        add = getattr(module, name, lambda _: None)
        try:
            tried = argparse.ArgumentParser(add_help=False, parents=[sub])
            add(tried)  # fails without a trace in `sub`
            own = getattr(module, "OWN", ()) if name == "add_options" else ()
            if lost := {*own} - {action.dest for action in tried._actions}:
                raise TypeError(f"OWN has {min(lost)!r}, which is no option that it adds")
            if not is_ours(getattr(module, "__name__", "")):
                _refuse_taken(tried)
        except (Exception, SystemExit) as error:  # it may fail in any way; the others stay
            del brought[key]
            label = next(plugin.label for plugin, _ in entries(group) if plugin.name == key)
            warnings.warn(f"{label} was not loaded: {described(error)}", stacklevel=2)
        else:
            added[key] = [one.dest for one in tried._actions[len(sub._actions) :]]
            add(sub if place is None else place)
    return added


@functools.cache
def _modules(group: str) -> dict[str, Any]:
    """Return the modules that packages name in a group, ours first, those that fail left out."""
    modules = {}
    brought = [(plugin, entry) for plugin, entry in entries(group) if entry is not None]
    for plugin, entry in sorted(brought, key=lambda pair: not is_ours(pair[1].value)):
        if not _is_left_out(plugin):
            try:
                module = entry.load()
                if group == FIT:
                    require(module, FitOptions, f"its module {entry.value!r}")
                modules[entry.name] = module
            except (Exception, SystemExit) as error:  # it may fail in any way; the others stay
                warnings.warn(f"{plugin.label} was not loaded: {described(error)}", stacklevel=2)
    return modules


def families() -> dict[str, FitOptions]:
    """Return the modules of estimators with options of their own, by their short names.

    ``structsolve fit --estimator NAME`` takes a module's options.  With the option ``CHOSEN_BY``,
    if it has one, ``--estimator NAME`` may be left out.

    Returns
    -------
    dict of str to module
    """
    return _modules(FIT)


def formats() -> dict[str, Any]:
    """Return the modules of formats with options of their own, by the names of readers.

    ``structsolve fit`` takes a module's options (``add_options(group)``, ``OWN``: their names),
    which set parameters of the reader, and calls ``check(args)`` of it.

    Returns
    -------
    dict of str to module
    """
    return _modules(FORMATS)


def scores() -> list[Any]:
    """Return the modules with scores of their own for ``structsolve score``.

    Each may have ``add_score_options(parser)``; ``report(model, data, args)``, which returns all
    that is printed, a dict with a text of its own, or None; and ``figures(model, data, truth,
    guess, args)``, which returns entries and lines beside the scores of tokens.

    Returns
    -------
    list of module
    """
    return [*_modules(SCORE).values()]


def ask_scores(module: Any, name: str, *args: Any) -> Any:
    """Return the answer of a function of a module with scores; None if it lacks the function.

    Parameters
    ----------
    module : module
        Of :func:`scores`.
    name : {"report", "figures"}
    *args
        Those of the function.

    Returns
    -------
    mapping or None, of "figures" a pair (dict, list of str) or None

    Raises
    ------
    TypeError
        If the answer is something else; the message names the plugin.
    """
    ask = getattr(module, name, None)
    answer = None if ask is None else ask(*args)
    if answer is None:
        return None
    if name == "report":
        fits, told = isinstance(answer, Mapping), "a dict, or None"
    else:
        told = "(a dict of entries, a list of lines)"
        fits = isinstance(answer, (tuple, list)) and len(answer) == 2
        if fits:
            figures, lines = answer
            fits = isinstance(figures, Mapping) and isinstance(lines, (list, tuple))
            fits = fits and all(isinstance(line, str) for line in lines)
    if fits:
        return answer
    key = next(key for key, one in _modules(SCORE).items() if one is module)
    label = next(plugin.label for plugin, _ in entries(SCORE) if plugin.name == key)
    raise TypeError(f"{label}: {name}() of its scores returned {answer!r:.80}, expected {told}")


def refuse_scores(args: argparse.Namespace, text: str, but: Any = None) -> None:
    """Refuse options of modules with scores, where only one of them, or none, is asked.

    Parameters
    ----------
    args : Namespace
        Options of ``score``.
    text : str
        What follows the option in the message.
    but : module, optional
        The one that is asked.

    Raises
    ------
    UsageError
        The message names the option.
    """
    for key, module in _modules(SCORE).items():
        if module is not but:
            refuse(args, text, *args.of_scores.get(key, ()))


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


def owner_of(error: BaseException) -> str | None:
    """Return the distribution whose command raised an error.

    Parameters
    ----------
    error : BaseException

    Returns
    -------
    str or None
        None if the error comes from others.
    """
    modules = modules_of(error)
    for plugin, entry in _commands():
        if entry is not None and not is_ours(entry.value) and entry.module in modules:
            return f"{plugin.distribution} {plugin.version}"
    return None


def _refuse_taken(parser: argparse.ArgumentParser) -> None:
    """Refuse options that take the place of what the shell sets, and help that cannot be shown."""
    for action in parser._actions:
        if action.dest in ("run", "default_of", "given", "of_scores"):
            name = (action.option_strings or [action.dest])[0]
            raise ValueError(f"{name}: the shell has its own {action.dest!r}; give it a dest")
    parser.format_help()


def _summary(add: Callable[..., Any]) -> str:
    lines = (inspect.getdoc(add) or "").splitlines()
    return lines[0].replace("%", "%%") if lines else ""
