"""The plugin manager: finds plugins by entry point, survives broken ones, answers by name."""

from __future__ import annotations

import functools
import importlib.metadata
import logging
import threading
from dataclasses import dataclass, field
from typing import Any

import pluggy

from . import abi, hookspecs
from .hookspecs import Named

GROUP = "structsolve"
LISTS = ("structures", "surrogates", "solvers", "lp_backends")
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
        """Load every installed plugin; a broken one is remembered with its error and left out."""
        seen = set()
        for distribution in importlib.metadata.distributions():
            for entry in distribution.entry_points:
                if entry.group != GROUP or (entry.name, entry.value) in seen:
                    continue
                seen.add((entry.name, entry.value))
                plugin = Plugin(entry.name, distribution.name, distribution.version)
                try:
                    if not entry.module.startswith("structsolve."):
                        stale = abi.stale_modules(entry.module)
                        if stale:
                            raise ImportError("; ".join(stale))
                    self.add(entry.load(), plugin)
                except Exception as error:  # a plugin may fail in any way; the others stay
                    self._broken(plugin, error)

    def register(self, module: Any, name: str | None = None) -> None:
        """Register a module or object with hook implementations (for scripts and tests)."""
        plugin = Plugin(name or getattr(module, "__name__", type(module).__name__))
        self.add(module, plugin)

    def unregister(self, module: Any) -> None:
        """Take a registered module or object out again."""
        self.manager.unregister(module)
        self.plugins = [p for p in self.plugins if p.module is not module]

    def add(self, module: Any, plugin: Plugin) -> None:
        """Check a plugin's hooks and what it declares, then register it."""
        marked = {
            name: options
            for name in dir(module)
            if name.startswith("structsolve_")
            and (options := self.manager.parse_hookimpl_opts(module, name)) is not None
        }
        known = [n for n in vars(hookspecs) if n.startswith("structsolve_")]
        for name in marked:
            if name not in known:
                raise TypeError(f"implements the unknown hook {name!r}; known hooks: {known}")
        if not marked:
            raise TypeError(
                f"{module!r} implements no hook; mark functions with structsolve.hookimpl"
            )
        self.manager.register(module, name=plugin.name)
        try:
            for kind in (*LISTS, "loss_names"):
                hook = f"structsolve_{kind}"
                if hook in marked:
                    plugin.declares[kind] = _checked(getattr(module, hook)(), hook, kind)
        except Exception:
            self.manager.unregister(module)
            raise
        plugin.module = module
        plugin.declares["hooks"] = sorted(marked)
        self.plugins.append(plugin)

    def _broken(self, plugin: Plugin, error: Exception) -> None:
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
                f"{kind[:-1]} {name!r} is declared by {labels}; uninstall one of them"
            )
        if not found:
            raise ValueError(
                f"unknown {kind[:-1].replace('_', ' ')} {name!r}; known: {self.names(kind)}"
                f"{self.broken_note()}"
            )
        return found[0][1]

    def broken_note(self) -> str:
        """Return a sentence on the plugins that failed to load, empty where none did."""
        broken = [f"{p.label}: {p.error}" for p in self.plugins if p.error]
        return f". Not loaded: {'; '.join(broken)}" if broken else ""

    def ask(self, hook: str, expected: type, **arguments: Any) -> Any:
        """Call a ``firstresult`` hook; check what comes back.

        Raises
        ------
        TypeError
            When a plugin returns something else than ``expected`` or None.
        ValueError, ImportError
            What the plugin raised, with its name in front.
        """
        try:
            answer = getattr(self.manager.hook, hook)(**arguments)
        except (ValueError, TypeError):
            raise
        except Exception as error:
            owner = self._owner_of_traceback(error)
            raise RuntimeError(
                f"{owner} failed in {hook}: {type(error).__name__}: {error}"
            ) from error
        if answer is None:
            return None
        stale = abi.stale_object(answer)
        if stale:
            raise ImportError(f"{self._owner(answer)}: {stale}")
        if not isinstance(answer, expected):
            raise TypeError(
                f"{self._owner(answer)} returned {type(answer).__name__} from {hook}, expected "
                f"{expected.__name__}"
            )
        return answer

    def _owner(self, answer: Any) -> str:
        module = type(answer).__module__
        return self._owner_of_modules([module]) or f"a plugin (class of module {module})"

    def _owner_of_traceback(self, error: BaseException) -> str:
        modules = []
        trace = error.__traceback__
        while trace is not None:
            modules.append(trace.tb_frame.f_globals.get("__name__", ""))
            trace = trace.tb_next
        return self._owner_of_modules(modules) or "a plugin"

    def _owner_of_modules(self, modules: list[str]) -> str:
        for plugin in reversed(self.plugins):
            name = getattr(plugin.module, "__name__", type(plugin.module).__module__)
            if any(m == name or m.startswith(f"{name}.") for m in modules):
                return plugin.label
        return ""


def _checked(declared: Any, hook: str, kind: str) -> list[Any]:
    expected = str if kind == "loss_names" else Named
    try:
        declared = list(declared)
    except TypeError:
        raise TypeError(f"{hook} returned {declared!r}, expected a list") from None
    for item in declared:
        if not isinstance(item, expected):
            raise TypeError(
                f"{hook} returned a list with {item!r}, expected {expected.__name__} objects"
            )
    return declared


_lock = threading.Lock()


@functools.lru_cache(maxsize=None)
def _default() -> Registry:
    registry = Registry()
    registry.load_entry_points()
    return registry


def default() -> Registry:
    """Return the registry of installed plugins; entry points are read at the first call."""
    with _lock:
        return _default()


def get_structure(structure: Any = "chain", **params: Any) -> Any:
    """Return a structure by name, with parameters; a structure object passes through.

    Parameters
    ----------
    structure : str or Structure
    **params
        Constructor arguments of the structure.

    Examples
    --------
    >>> import structsolve
    >>> structsolve.get_structure("chain", start_end=False)
    ChainStructure(start_end=False, transitions=True)
    """
    if isinstance(structure, str):
        return default().find("structures", structure).factory(**params)
    if not hasattr(structure, "make_space"):
        raise TypeError(
            f"structure is {structure!r}, expected a name (known: {default().names('structures')}) "
            "or a Structure object"
        )
    return structure.set_params(**params) if params else structure


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
        row["losses"] = list(plugin.declares.get("loss_names", ()))
        hooks = plugin.declares.get("hooks", [])
        for kind in ("oracle", "parts", "projection", "loss"):
            row[f"gives_{kind}"] = f"structsolve_{kind}" in hooks
        row["hooks"] = hooks
        rows.append(row)
    return rows
