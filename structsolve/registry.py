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
    """One registered or broken plugin."""

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
    """All plugins of this process; ``structsolve.registry.default()`` is the usual one."""

    def __init__(self) -> None:
        self.manager = pluggy.PluginManager(GROUP)
        self.manager.add_hookspecs(hookspecs)
        self.plugins: list[Plugin] = []

    def load_entry_points(self) -> None:
        """Load every installed plugin; a broken one is remembered with its error and left out.

        Ours come first: hooks ask the last one registered first, so that any other plugin may
        answer in place of a structure's own, whatever the order on ``sys.path``.
        """
        found: list[tuple[bool, Plugin, Any, Any]] = []
        seen = set()
        for distribution in importlib.metadata.distributions():
            try:
                entries = [e for e in distribution.entry_points if e.group == GROUP]
                ours = [_is_ours(e.module) for e in entries]
            except Exception as error:  # an entry_points.txt that is none
                self._broken(_plugin_of("?", distribution), error)
                continue
            if not entries:
                continue
            plugins = [_plugin_of(e.name, distribution) for e in entries]
            # The first of a name on sys.path is the one that gets imported.
            if (key := re.sub(r"[-_.]+", "-", plugins[0].distribution).lower()) not in seen:
                seen.add(key)
                found += zip(ours, plugins, entries, [distribution] * len(entries))
        for our, plugin, entry, distribution in sorted(
            found, key=lambda item: (not item[0], item[1].distribution, item[1].name)
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
        """Register a module or object with hook implementations (for scripts and tests)."""
        plugin = Plugin(str(name or getattr(module, "__name__", type(module).__name__)))
        self.add(module, plugin)

    def unregister(self, module: Any) -> None:
        """Take a registered module or object out again."""
        if not self.manager.is_registered(module):
            raise ValueError(f"{module!r} is not registered as a plugin")
        self.manager.unregister(module)
        self.plugins = [p for p in self.plugins if p.module is not module]

    def add(self, module: Any, plugin: Plugin) -> None:
        """Check a plugin's hooks and what it declares, then register it."""
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
            # A failed registration leaves the hooks that it came to before the wrong one.
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
        """Return the names of one kind ("structures", "surrogates", ...), sorted."""
        return sorted({d.name for p in self.plugins for d in p.declares.get(kind, ())})

    def loss_names(self) -> list[str]:
        """Return the names of all losses."""
        return sorted({n for p in self.plugins for n in p.declares.get("loss_names", ())})

    def find(self, kind: str, name: str) -> Named:
        """Return what is called ``name``; the error lists the known names and broken plugins."""
        found = [(p, d) for p in self.plugins for d in p.declares.get(kind, ()) if d.name == name]
        if len(found) > 1:
            labels = " and ".join(p.label for p, _ in found)
            raise ValueError(
                f"{_one(kind)} {name!r} is declared by {labels}; uninstall one of them"
            )
        if not found:
            raise ValueError(
                f"unknown {_one(kind)} {name!r}; known: {self.names(kind)}{self.broken_note()}"
            )
        return found[0][1]

    def name_of(self, kind: str, value: Any) -> str | None:
        """Return the name under which the class of an object is declared, None where it is not."""
        declared = [d for p in self.plugins for d in p.declares.get(kind, ())]
        own = getattr(value, "name", None)
        for one in declared:
            # A factory that is no class tells by the name that its objects have.
            fits = not isinstance(one.factory, type) or isinstance(value, one.factory)
            if one.name == own and fits:
                return one.name
        return next((one.name for one in declared if one.factory is type(value)), None)

    def first_with(self, file_param: str) -> str | None:
        """Return the first structure that declares such a ``file_params``, ours before others."""
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
        """Return a new object of what ``text`` names: ``name``, or ``name:argument,argument``.

        Arguments are positional; numbers are made numbers.
        """
        name, colon, rest = text.partition(":")
        arguments: list[Any] = []
        if colon and name in self.names(kind):
            arguments = [_number(part.strip()) for part in rest.split(",")]
        else:
            name = text
        return create(kind, text, self.find(kind, name).factory, *arguments)

    def broken_note(self) -> str:
        """Return a sentence on the plugins that failed to load, empty where none did."""
        broken = [f"{p.label}: {p.error}" for p in self.plugins if p.error]
        return f". Not loaded: {'; '.join(broken)}" if broken else ""

    def ask(self, hook: str, expected: Any, **arguments: Any) -> Any:
        """Call a ``firstresult`` hook; check what comes back.

        Raises
        ------
        TypeError
            When a plugin returns something else than ``expected`` or None.
        ImportError
            When what it returns was compiled against another C API.
        ValueError, TypeError, RuntimeError
            What the plugin raised, with its name in front: a ValueError or TypeError (of ours
            without the name) stays one, anything else becomes a RuntimeError.
        """
        with self.blame(hook):
            answer = getattr(self.manager.hook, hook)(**arguments)
        if answer is not None:
            self.check_answer(hook, answer, expected)
        return answer

    @contextlib.contextmanager
    def blame(self, hook: str) -> Iterator[None]:
        """Put the name of the plugin that raised in front of its error."""
        try:
            yield
        except Exception as error:
            owner = self._owner_of_traceback(error)
            kind = next((k for k in (ValueError, TypeError) if isinstance(error, k)), RuntimeError)
            if kind is not RuntimeError and (owner is None or _is_ours(_module_name(owner.module))):
                raise
            raise kind(
                f"{_label(owner)} failed in {hook}: {type(error).__name__}: {error}"
            ) from error

    def check_answer(self, hook: str, answer: Any, expected: Any) -> None:
        """Refuse what is not an ``expected``, or was compiled against another C API."""
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
        # Else a plugin of the same package; the core's modules belong to no plugin.
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
    """One of a kind, as messages call it."""
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
    """Return the registry of installed plugins; entry points are read at the first call."""
    global _registry
    with _lock:
        if _registry is None:
            # Known before it is filled, so that a plugin may come here while it is imported.
            _registry = Registry()
            _registry.load_entry_points()
        return _registry


def create(kind: str, text: str, factory: Any, /, *arguments: Any, **params: Any) -> Any:
    """Return what a plugin's factory makes; its errors name what was to be made."""
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
    structure : str or Structure
    **params
        Constructor arguments of the structure; they go to a copy of a structure object.

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
    """Tell whether labels of a structure, or of that of a name, are those of one node: classes.

    Parameters
    ----------
    structure : str or Structure
        Unknown names are not refused here.
    """
    if isinstance(structure, str):
        try:
            structure = get_structure(structure)
        except (ValueError, TypeError, RuntimeError):
            return False
    return bool(getattr(structure, "single_node", False))


def list_plugins() -> list[dict[str, Any]]:
    """Return one dict per plugin: name, distribution, version, what it declares, status.

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
