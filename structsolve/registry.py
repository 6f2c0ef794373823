"""The plugin manager: finds plugins by entry point, survives broken ones, answers by name."""

from __future__ import annotations

import contextlib
import copy
import importlib.metadata
import logging
import re
import threading
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pluggy

from . import abi, hookspecs
from .hookspecs import Named

GROUP = "structsolve"
LISTS = ("structures", "surrogates", "solvers", "lp_backends", "losses", "searches")
logger = logging.getLogger("structsolve.plugins")


@dataclass
class Plugin:
    """One registered or broken plugin.

    Parameters
    ----------
    name : str
        Of the entry point, or as given to :meth:`Registry.register`.
    distribution, version : str
        Of the installed package; empty for plugins registered by hand.
    module : module or object, optional
        Holds the hooks.
    error : str
        Why it was not loaded; empty where it was.
    declares : dict of str to list
        What it brings, by kind, and the names of its hooks.
    """

    name: str
    distribution: str = ""
    version: str = ""
    module: Any = None
    error: str = ""
    declares: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Name, distribution and version, for messages."""
        source = f" ({self.distribution} {self.version})" if self.distribution else ""
        return f"plugin {self.name!r}{source}"


class Registry:
    """The plugins of this process; :func:`default` returns the one that is in use.

    Attributes
    ----------
    manager : pluggy.PluginManager
    plugins : list of Plugin
        Loaded and broken ones.

    Examples
    --------
    >>> from structsolve import Named, hookimpl
    >>> from structsolve.registry import Registry
    >>> class Mine:
    ...     @hookimpl
    ...     def structsolve_solvers(self):
    ...         return [Named("mine", dict, "an example")]
    >>> registry = Registry()
    >>> registry.register(Mine(), "example")
    >>> registry.names("solvers"), registry.make("solvers", "mine")
    (['mine'], {})
    """

    def __init__(self) -> None:
        self.manager = pluggy.PluginManager(GROUP)
        self.manager.add_hookspecs(hookspecs)
        self.plugins: list[Plugin] = []

    def load_entry_points(self) -> None:
        """Load every installed plugin; a broken one is remembered with its error and left out.

        Ours come first.  The plugin that is registered last answers first: any other plugin may
        answer in place of a structure's own, whatever the order on ``sys.path`` is.
        """
        entry_points: list[tuple[bool, Plugin, Any, Any]] = []
        seen = set()
        for distribution in importlib.metadata.distributions():
            try:
                entries = [e for e in distribution.entry_points if e.group == GROUP]
                ours = [_is_ours(e.module) for e in entries]
            except Exception as error:  # a broken entry_points.txt
                self._broken(_plugin_of("?", distribution), error)
                continue
            if not entries:
                continue
            plugins = [_plugin_of(e.name, distribution) for e in entries]
            # Of distributions with one name, the first on sys.path is the one that is imported.
            if (key := re.sub(r"[-_.]+", "-", plugins[0].distribution).lower()) not in seen:
                seen.add(key)
                entry_points += zip(ours, plugins, entries, [distribution] * len(entries))
        for our, plugin, entry, distribution in sorted(
            entry_points, key=lambda item: (not item[0], item[1].distribution, item[1].name)
        ):
            try:
                if not our:
                    stale = abi.stale_modules(entry.module, _files(distribution))
                    if stale:
                        raise ImportError("; ".join(stale))
                self.add(entry.load(), plugin)
            except (Exception, SystemExit) as error:  # it may fail in any way; the others stay
                self._broken(plugin, error)

    def register(self, module: Any, name: str | None = None) -> None:
        """Register hook implementations by hand (for scripts and tests).

        Parameters
        ----------
        module : module or object
            Holds functions marked with ``structsolve.hookimpl``.
        name : str, optional
            By default that of the module or class.

        Raises
        ------
        ValueError, TypeError
            As of :meth:`add`.
        """
        plugin = Plugin(str(name or getattr(module, "__name__", type(module).__name__)))
        self.add(module, plugin)

    def unregister(self, module: Any) -> None:
        """Remove a registered module or object.

        Parameters
        ----------
        module : module or object

        Raises
        ------
        ValueError
            When it is not registered.
        """
        if not self.manager.is_registered(module):
            raise ValueError(f"{module!r} is not registered as a plugin")
        self.manager.unregister(module)
        self.plugins = [p for p in self.plugins if p.module is not module]

    def add(self, module: Any, plugin: Plugin) -> None:
        """Check a plugin's hooks and what it declares, then register it.

        Parameters
        ----------
        module : module or object
            Holds the hooks.
        plugin : Plugin
            Gets the module and what it declares.

        Raises
        ------
        ValueError
            When the name or module is taken, or something is declared twice.
        TypeError
            When a hook is unknown or not marked, there is none, or one returns the wrong kind.
        """
        for other in self.plugins:
            if not other.error and (other.name == plugin.name or other.module is module):
                what = "the name" if other.name == plugin.name else "the module"
                raise ValueError(f"{what} is taken by {other.label}; rename or uninstall one")
        known = [n for n in vars(hookspecs) if n.startswith("structsolve_")]
        marked = {}
        for name in dir(module):
            if name.startswith("structsolve_"):
                options = self.manager.parse_hookimpl_opts(module, name)
                if options is not None:
                    marked[name] = options
                elif name in known:
                    raise TypeError(f"{name} is not marked; decorate it with structsolve.hookimpl")
        for name in marked:
            if name not in known:
                raise TypeError(f"implements the unknown hook {name!r}; known hooks: {known}")
        if not marked:
            raise TypeError(
                f"{module!r} implements no hook; mark functions with structsolve.hookimpl"
            )
        declares: dict[str, list[Any]] = {}
        try:
            self.manager.register(module, name=plugin.name)
            for kind in (*LISTS, "loss_names"):
                hook = f"structsolve_{kind}"
                if hook in marked and not marked[hook].get("wrapper"):
                    declares[kind] = _checked(getattr(module, hook)(), hook, kind)
        except BaseException:
            # A failed registration keeps the hooks before the wrong one.
            if self.manager.is_registered(module):
                self.manager.unregister(module)
            raise
        plugin.module = module
        plugin.declares = {**declares, "hooks": sorted(marked)}
        self.plugins.append(plugin)

    def _broken(self, plugin: Plugin, error: BaseException) -> None:
        plugin.error = f"{type(error).__name__}: {' '.join(str(error).split())}"
        self.plugins.append(plugin)
        logger.warning("%s was not loaded: %s", plugin.label, plugin.error)

    def names(self, kind: str) -> list[str]:
        """Return the names of one kind.

        Parameters
        ----------
        kind : str
            One of ``LISTS``, such as "structures".

        Returns
        -------
        list of str
            Sorted.
        """
        return sorted({d.name for p in self.plugins for d in p.declares.get(kind, ())})

    def loss_names(self) -> list[str]:
        """Return the names of all losses.

        Returns
        -------
        list of str
            Sorted.
        """
        return sorted({n for p in self.plugins for n in p.declares.get("loss_names", ())})

    def find(self, kind: str, name: str) -> Named:
        """Return what a plugin declares under a name.

        Parameters
        ----------
        kind : str
            One of ``LISTS``.
        name : str

        Returns
        -------
        Named

        Raises
        ------
        ValueError
            When no plugin declares the name (known names and broken plugins are listed), or several
            do.
        """
        matches = [(p, d) for p in self.plugins for d in p.declares.get(kind, ()) if d.name == name]
        if len(matches) > 1:
            labels = " and ".join(p.label for p, _ in matches)
            raise ValueError(
                f"{_one(kind)} {name!r} is declared by {labels}; uninstall one of them"
            )
        if not matches:
            raise ValueError(
                f"unknown {_one(kind)} {name!r}; known: {self.names(kind)}{self.broken_note()}"
            )
        return matches[0][1]

    def name_of(self, kind: str, value: Any) -> str | None:
        """Return the name under which the class of an object is declared.

        Parameters
        ----------
        kind : str
            One of ``LISTS``.
        value : object

        Returns
        -------
        str or None
            None where no plugin declares it.
        """
        declared = [d for p in self.plugins for d in p.declares.get(kind, ())]
        own = getattr(value, "name", None)
        for one in declared:
            # Of a factory that is no class, the name of the object alone decides.
            fits = not isinstance(one.factory, type) or isinstance(value, one.factory)
            if one.name == own and fits:
                return one.name
        return next((one.name for one in declared if one.factory is type(value)), None)

    def first_with(self, file_param: str) -> str | None:
        """Return the first structure with a parameter that the shell reads from a file.

        Parameters
        ----------
        file_param : str
            An entry of ``Structure.file_params``, such as "hierarchy".

        Returns
        -------
        str or None
            Name of the structure; ours come before others.
        """
        return next(
            (
                d.name
                for p in self.plugins
                for d in p.declares.get("structures", ())
                if file_param in getattr(d.factory, "file_params", ())
            ),
            None,
        )

    def make(self, kind: str, text: str) -> Any:
        """Return a new object by name.

        Parameters
        ----------
        kind : str
            One of ``LISTS``.
        text : str
            ``name``, or ``name:argument,argument``.  Arguments are positional; those that look like
            numbers become numbers.

        Returns
        -------
        object

        Raises
        ------
        ValueError
            When the name is unknown, or the factory does not take the arguments.
        """
        name, colon, rest = text.partition(":")
        arguments: list[Any] = []
        if colon and name in self.names(kind):
            arguments = [_number(part.strip()) for part in rest.split(",")]
        else:
            name = text
        return create(kind, text, self.find(kind, name).factory, *arguments)

    def broken_note(self) -> str:
        """Return a sentence on the plugins that failed to load, for error messages.

        Returns
        -------
        str
            Empty where all plugins were loaded.
        """
        broken = [f"{p.label}: {p.error}" for p in self.plugins if p.error]
        return f". Not loaded: {'; '.join(broken)}" if broken else ""

    def ask(self, hook: str, expected: Any, **arguments: Any) -> Any:
        """Call a ``firstresult`` hook and check the answer.

        Parameters
        ----------
        hook : str
        expected : type
            Type of the answer.
        **arguments
            Of the hook.

        Returns
        -------
        object or None
            None where no plugin answers.

        Raises
        ------
        TypeError
            When a plugin returns something else than ``expected`` or None.
        ImportError
            When the answer was compiled against another C API.
        ValueError, TypeError, RuntimeError
            As of :meth:`blame`, when the plugin raises.
        """
        with self.blame(hook):
            answer = getattr(self.manager.hook, hook)(**arguments)
        if answer is not None:
            self.check_answer(hook, answer, expected)
        return answer

    @contextlib.contextmanager
    def blame(self, hook: str) -> Iterator[None]:
        """Put the plugin's name in front of an error that it raises.

        Parameters
        ----------
        hook : str
            The hook that is called, for the message.

        Yields
        ------
        None

        Raises
        ------
        ValueError, TypeError, RuntimeError
            A ValueError or TypeError keeps its kind, anything else becomes a RuntimeError.  A
            ValueError or TypeError of ours gets no name.
        """
        try:
            yield
        except Exception as error:
            blamed = self.blamed(hook, error)
            if blamed is error:
                raise
            raise blamed from error

    def blamed(self, hook: str, error: Exception) -> Exception:
        """Return an error with the name of the plugin that raised it in front.

        Parameters
        ----------
        hook : str
            The hook that was called, for the message.
        error : Exception

        Returns
        -------
        Exception
            ``error`` itself where it gets no name; see :meth:`blame`.
        """
        owner = self._owner_of_traceback(error)
        kind = next((k for k in (ValueError, TypeError) if isinstance(error, k)), RuntimeError)
        if kind is not RuntimeError and (owner is None or _is_ours(_module_name(owner.module))):
            return error
        return kind(f"{_label(owner)} failed in {hook}: {type(error).__name__}: {error}")

    def check_answer(self, hook: str, answer: Any, expected: Any) -> None:
        """Check what a plugin returned.

        Parameters
        ----------
        hook : str
            The hook that returned it, for the message.
        answer : object
        expected : type

        Raises
        ------
        TypeError
            When it is not an ``expected``.
        ImportError
            When it was compiled against another C API.
        """
        stale = abi.stale_object(answer)
        if stale or not isinstance(answer, expected):
            module = getattr(answer, "__module__", None) or type(answer).__module__
            label = _label(self._owner_of_module(module))
            if stale:
                raise ImportError(f"{label}: {stale}")
            name = getattr(expected, "__qualname__", str(expected))
            raise TypeError(
                f"{label} returned {type(answer).__name__} from {hook}, expected "
                f"{expected.__module__}.{name}"
            )

    def _owner_of_traceback(self, error: BaseException) -> Plugin | None:
        modules = []
        trace = error.__traceback__
        while trace is not None:
            modules.append(trace.tb_frame.f_globals.get("__name__", ""))
            trace = trace.tb_next
        # The innermost frame that belongs to a plugin is the one to blame.
        owners = (self._owner_of_module(module) for module in reversed(modules))
        return next((owner for owner in owners if owner is not None), None)

    def _owner_of_module(self, module: str) -> Plugin | None:
        for plugin in self.plugins:
            name = _module_name(plugin.module)
            if plugin.module is not None and (module == name or module.startswith(f"{name}.")):
                return plugin
        # Otherwise a plugin of the same package; the core's modules belong to no plugin.
        package = module.split(".")[0]
        for plugin in self.plugins:
            name = _module_name(plugin.module)
            if plugin.module is not None and package == name.split(".")[0] != "structsolve":
                return plugin
        return None


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _is_ours(module: str) -> bool:
    return module.split(".")[0] == "structsolve"


def _module_name(plugin: Any) -> str:
    if isinstance(plugin, types.ModuleType):
        return plugin.__name__
    return getattr(plugin, "__module__", None) or type(plugin).__module__


def _label(owner: Plugin | None) -> str:
    return "a plugin" if owner is None else owner.label


def _plugin_of(name: str, distribution: importlib.metadata.Distribution) -> Plugin:
    try:
        source = str(distribution.metadata["Name"] or "?")
        return Plugin(name, source, str(distribution.version or "?"))
    except Exception:  # metadata cut short
        return Plugin(name, str(getattr(distribution, "_path", "?")), "?")


def _files(distribution: importlib.metadata.Distribution) -> list[Path]:
    return [Path(str(distribution.locate_file(file))) for file in distribution.files or ()]


def _one(kind: str) -> str:
    """Return what messages call one of a kind."""
    return {"losses": "loss", "searches": "search"}.get(kind, kind[:-1]).replace("_", " ")


def _checked(declared: Any, hook: str, kind: str) -> list[Any]:
    expected = str if kind == "loss_names" else Named
    if isinstance(declared, (str, bytes)) or not isinstance(declared, Iterable):
        raise TypeError(
            f"{hook} returned {declared!r}, expected a list of {expected.__name__} objects"
        )
    declared = list(declared)
    for item in declared:
        if not isinstance(item, expected):
            raise TypeError(
                f"{hook} returned a list with {item!r}, expected {expected.__name__} objects"
            )
    names = [getattr(item, "name", item) for item in declared]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{hook} declares {name!r} twice")
    return declared


_lock = threading.RLock()
_registry: Registry | None = None


def default() -> Registry:
    """Return the registry of installed plugins; the first call reads the entry points.

    Returns
    -------
    Registry
    """
    global _registry
    with _lock:
        if _registry is None:
            # Set before it is filled: a plugin may call default() while it is imported.
            _registry = Registry()
            _registry.load_entry_points()
        return _registry


def create(kind: str, text: str, factory: Any, /, *arguments: Any, **params: Any) -> Any:
    """Return what a plugin's factory makes.

    Parameters
    ----------
    kind : str
        One of ``LISTS``.
    text : str
        What users wrote, for the message.
    factory : callable
    *arguments, **params
        Of the factory.

    Returns
    -------
    object

    Raises
    ------
    ValueError
        When the factory raises one, or does not take the arguments.
    RuntimeError
        When the factory raises anything else.
    TypeError
        When it returns None.
    """
    what = f"{_one(kind)} {text!r}"
    try:
        made = factory(*arguments, **params)
    except ValueError:
        raise
    except TypeError as error:
        raise ValueError(f"{what}: {error}") from error
    except Exception as error:
        raise RuntimeError(f"{what}: {type(error).__name__}: {error}") from error
    if made is None:
        raise TypeError(f"{what}: its plugin made None, expected an object")
    return made


def get_structure(structure: Any = "chain", **params: Any) -> Any:
    """Return a structure by name, with parameters; a structure object passes through.

    Parameters
    ----------
    structure : str or Structure, default="chain"
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
    ChainStructure(start_end=False, transitions=True)
    """
    if isinstance(structure, str):
        return create(
            "structures", structure, default().find("structures", structure).factory, **params
        )
    if not hasattr(structure, "make_space"):
        raise TypeError(
            f"structure is {structure!r}, expected a name (known: {default().names('structures')}) "
            "or a Structure object"
        )
    return copy.copy(structure).set_params(**params) if params else structure


def is_single_node(structure: Any) -> bool:
    """Tell whether every label of a structure is one class.

    Parameters
    ----------
    structure : str or Structure

    Returns
    -------
    bool
        False for unknown names.
    """
    if isinstance(structure, str):
        try:
            structure = get_structure(structure)
        except (ValueError, TypeError, RuntimeError):
            return False
    return bool(getattr(structure, "single_node", False))


def list_plugins() -> list[dict[str, Any]]:
    """Return what every plugin brings.

    Returns
    -------
    list of dict
        One per plugin: ``name``, ``distribution``, ``version``, ``status`` ("loaded" or "broken"),
        ``error``; names by kind (``structures``, ``surrogates``, ...); which hooks it has.

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
            "status": "broken" if plugin.error else "loaded",
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
