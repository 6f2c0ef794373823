"""The plugin manager: registers plugins, survives broken ones, calls hooks and checks answers."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import pluggy

from .. import hookspecs
from ..hookspecs import BOUND_BEFORE, CONTRACT, FORMER, Lazy, Named
from .blame import Blame, failure_of, label_of
from .distributions import GROUP, described, disabled, installed
from .plugin import LISTS, Plugin, check_contract

logger = logging.getLogger("structsolve.plugins")


class Registry(Blame):
    """The plugins of this process; :func:`default` returns the registry in use.

    Attributes
    ----------
    manager : pluggy.PluginManager
    plugins : list of Plugin
        Loaded and broken ones.
    version : int
        Grows with every change of the plugins in use, which may invalidate earlier results.

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
        super().__init__()
        self.manager = pluggy.PluginManager(GROUP)
        self.manager.add_hookspecs(hookspecs)
        self.version = 0

    def load_entry_points(self, off: Sequence[str] = ()) -> None:
        """Load every installed plugin; broken ones are left out, and their errors stored.

        Parameters
        ----------
        off : sequence of str, optional
            Plugins that are not imported: their names, distributions, or ``distribution:name``;
            beside those of the environment's ``STRUCTSOLVE_DISABLE_PLUGINS``.
        """
        off = [*off, *disabled()]
        for plugin, load in installed():
            plugin.off = not plugin.error and any(map(plugin.is_called, off))
            if plugin.off:
                self.plugins.append(plugin)
                continue
            try:
                if not plugin.error:
                    self.add(load(), plugin)
                    continue
            except (Exception, SystemExit) as error:  # plugins may fail in any way; keep the others
                plugin.error = described(error)
            self.plugins.append(plugin)
            logger.warning("%s was not loaded: %s", plugin.label, plugin.error)
        for name in off:
            if not any(plugin.is_called(name) for plugin in self.plugins):
                logger.warning("%s is to be switched off, but no plugin has this name", name)

    def switch_off(self, name: str) -> None:
        """Disable plugins.

        Parameters
        ----------
        name : str
            Name of a plugin, of a distribution, or ``distribution:name``.

        Raises
        ------
        ValueError
            If there is none.
        """
        called = [plugin for plugin in self.plugins if plugin.is_called(name)]
        if not called:
            known = sorted({p.key for p in self.plugins if not p.is_ours})
            raise ValueError(f"no plugin is called {name!r}; plugins beside our own: {known}")
        for plugin in called:
            if plugin.module is not None:
                self.manager.unregister(plugin.module)
            plugin.module, plugin.error, plugin.off, plugin.declares = None, "", True, {}
        self.version += 1

    def register(self, module: Any, name: str | None = None) -> None:
        """Register hook implementations by hand (for scripts and tests).

        Parameters
        ----------
        module : module or object
            Holds functions marked with ``structsolve.hookimpl``.
        name : str, optional
            By default the name of the module or class.

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
        self.version += 1

    def add(self, module: Any, plugin: Plugin) -> None:
        """Check a plugin's hooks and declarations, then register it.

        Parameters
        ----------
        module : module or object
            Holds the hooks.
        plugin : Plugin
            Receives the module and its declarations.

        Raises
        ------
        ValueError
            If the name or module is taken, or something is declared twice.
        ImportError
            If it was written for another number of the contract.
        TypeError
            If a hook is unknown or not marked, there is none, or one returns the wrong kind.
        RuntimeError
            If a hook of a script's plugin raises anything but a ValueError or TypeError.
        """
        for other in self.plugins:
            if other.module is not None and (other.key == plugin.key or other.module is module):
                what = "the name" if other.key == plugin.key else "the module"
                remedy = "rename or uninstall one"
                if other.module is module:
                    remedy = "it is registered already"
                raise ValueError(f"{what} is taken by {other.label}; {remedy}")
        check_contract(getattr(module, "STRUCTSOLVE_CONTRACT", None))
        known = [n for n in vars(hookspecs) if n.startswith("structsolve_")]
        marked: dict[str, dict[str, Any]] = {}  # by hook: its functions and their options
        for name in dir(module):
            options = self.manager.parse_hookimpl_opts(module, name)
            hook = name if options is None else options.get("specname") or name
            if hook.startswith("structsolve_") and options is not None:
                marked.setdefault(hook, {})[name] = options
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
            self.manager.register(module, name=plugin.key)
            for kind in (*LISTS, "loss_names"):
                hook = f"structsolve_{kind}"
                if hook in marked:
                    declares[kind] = _declared(module, hook, marked[hook], plugin)
                    if hook in FORMER:
                        text = f"{plugin.label}: {hook}() goes; {FORMER[hook]}"
                        warnings.warn(text, FutureWarning, stacklevel=2)
            for hook, argument in BOUND_BEFORE.items():
                impls = getattr(self.manager.hook, hook).get_hookimpls()
                if any(impl.plugin is module and _wraps_bound(hook, impl) for impl in impls):
                    text = f"{plugin.label}: its wrapper of {hook} gets what is bound, as in "
                    text += f"contract 1.0; take no {argument!r} and declare {CONTRACT}, then it "
                    warnings.warn(f"{text}gets a factory", FutureWarning, stacklevel=2)
        except BaseException:
            # A failed registration keeps the hooks before the faulty one.
            if self.manager.is_registered(module):
                self.manager.unregister(module)
            raise
        losses = [*declares.pop("losses", ()), *declares.pop("loss_names", ())]
        for kind, form in (("losses", Named), ("loss_names", str)):
            declares[kind] = [loss for loss in losses if isinstance(loss, form)]
        plugin.module = module
        plugin.declares = {**declares, "hooks": sorted(marked)}
        self.plugins.append(plugin)
        self.version += 1

    def ask(self, hook: str, expected: Any, **arguments: Any) -> Any:
        """Call a ``firstresult`` hook and check the answer.

        Plugins that declare operators of a class of spaces (``hookimpl(trylast=True)``) are not
        called here: the space calls them by :meth:`declared`, unless its class overrides the
        methods.

        Parameters
        ----------
        hook : str
        expected : type
            Type of the answer.
        **arguments
            Arguments of the hook.

        Returns
        -------
        object or None
            None if no plugin answers.

        Raises
        ------
        TypeError
            If a plugin returns something else than ``expected`` or None.
        ImportError
            If the answer was compiled against another C API.
        ValueError, TypeError, RuntimeError
            As of :meth:`blame`, when the plugin raises.

        Warns
        -----
        FutureWarning
            If one returns what is bound, for a hook of ``hookspecs.BOUND_BEFORE``.
        """
        with self.blame(hook):
            answer = self._caller(hook, False)(**arguments)
        if hook in BOUND_BEFORE:
            answer = self._factory(hook, answer, arguments)
        if answer is not None:
            self.check_answer(hook, answer, expected, arguments)
        return answer

    def _factory(self, hook: str, answer: Any, arguments: dict[str, Any]) -> Any:
        """Return a factory for an answer of contract 1.0, which is bound, and for its wrappers."""
        if answer is not None and not callable(answer):
            text = f"returned a bound {type(answer).__name__} from {hook}; return a callable that "
            text += "takes a layout, such as the class or a functools.partial of it"
            owner = label_of(self._who_answers(hook, arguments))
            warnings.warn(f"{owner} {text}", FutureWarning, stacklevel=4)
            answer = partial(_bound, answer)
        impls = getattr(self.manager.hook, hook).get_hookimpls()
        others = [impl.plugin for impl in impls if not _wraps_bound(hook, impl)]
        if len(others) == len(impls):
            return answer
        caller = self.manager.subset_hook_caller(hook, others)
        make = answer or partial(_bound, None)
        return lambda layout: caller.call_extra([lambda: make(layout)], arguments)

    def declared(self, hook: str, **arguments: Any) -> Any:
        """Return the declaration of a ``trylast`` plugin, for a space without its own method.

        Parameters
        ----------
        hook : str
        **arguments
            Arguments of the hook.

        Returns
        -------
        object or None
            None if no such plugin answers.  The caller checks it.
        """
        return self._caller(hook, True)(**arguments)

    def _caller(self, hook: str, last: bool) -> Any:
        """Return a hook of only the ``trylast`` plugins, or of all others and wrappers."""
        impls = getattr(self.manager.hook, hook).get_hookimpls()
        left = [
            impl.plugin
            for impl in impls
            if last is not (impl.trylast and not (impl.wrapper or impl.hookwrapper))
            or _wraps_bound(hook, impl)
        ]
        return self.manager.subset_hook_caller(hook, left)


def _bound(answer: Any, _: Any) -> Any:
    return answer


def _wraps_bound(hook: str, impl: Any) -> bool:
    """Return whether a wrapper is of contract 1.0, where two hooks returned what is bound."""
    if hook not in BOUND_BEFORE or not (impl.wrapper or impl.hookwrapper):
        return False
    former = getattr(impl.plugin, "STRUCTSOLVE_CONTRACT", "") == "1.0"
    return former or BOUND_BEFORE[hook] in impl.argnames


def _declared(module: Any, hook: str, functions: dict[str, Any], plugin: Plugin) -> list[Any]:
    """Return what a plugin's functions declare; ``hookimpl(specname=hook)`` gives any name one."""
    declared: list[Any] = []
    for name, options in functions.items():
        if options.get("wrapper") or options.get("hookwrapper"):
            text = f"{plugin.label}: {hook}() is asked of each plugin by itself: nothing calls a "
            warnings.warn(f"{text}wrapper of it", UserWarning, stacklevel=4)
        else:
            declared += _checked(_called(module, name, hook, plugin), hook)
    return _checked(declared, hook)


def _called(module: Any, name: str, hook: str, plugin: Plugin) -> Any:
    """Return the declarations of a hook; errors of a script's plugin get its name in front."""
    try:
        return getattr(module, name)()
    except Exception as error:
        if plugin.distribution:  # the loader names it
            raise
        kind = next((k for k in (ValueError, TypeError) if isinstance(error, k)), RuntimeError)
        raise kind(failure_of(plugin, hook, error)) from error


def _checked(declared: Any, hook: str) -> list[Any]:
    names_too = hook in ("structsolve_losses", "structsolve_loss_names")
    expected = "Named objects or names" if names_too else "Named objects"
    if isinstance(declared, (str, bytes)) or not isinstance(declared, Iterable):
        raise TypeError(f"{hook} returned {declared!r}, expected a list of {expected}")
    declared = list(declared)
    for item in declared:
        if not isinstance(item, (Named, str) if names_too else Named):
            raise TypeError(f"{hook} returned a list with {item!r}, expected {expected}")
    names = [getattr(item, "name", item) for item in declared]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{hook} declares {name!r} twice")
    for item in declared if hook == "structsolve_estimators" else ():
        if not (item.name.isidentifier() and item.name[0].isupper()):
            expected = "the name of a class, with a capital letter"
            raise ValueError(f"{hook} declares {item.name!r}, expected {expected}")
        if not isinstance(item.factory, (type, Lazy)):
            text = f"{hook} declares {item.name!r} as {item.factory!r}, expected a class or Lazy"
            raise TypeError(text)
    return declared
