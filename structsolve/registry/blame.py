"""Which plugin an error or a wrong answer comes from, and the message that names it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pluggy

from .. import abi
from .plugin import Plugin, module_name, modules_of
from .sources import Sources


class Blame(Sources):
    """The plugins behind errors and answers."""

    manager: pluggy.PluginManager

    @contextlib.contextmanager
    def blame(self, hook: str, otherwise: Plugin | None = None) -> Iterator[None]:
        """Put the plugin's name in front of its error.

        Parameters
        ----------
        hook : str
            The hook that is called, for the message.
        otherwise : Plugin, optional
            The plugin to name if the error comes from no plugin's module.

        Yields
        ------
        None

        Raises
        ------
        ValueError, TypeError, RuntimeError
            A ValueError or TypeError keeps its kind, anything else becomes a RuntimeError.  A
            ValueError or TypeError of ours gets no name, nor does a MemoryError of anybody.
        """
        try:
            yield
        except Exception as error:
            blamed = self.blamed(hook, error, otherwise)
            if blamed is error:
                raise
            raise blamed from error

    def blamed(self, hook: str, error: Exception, otherwise: Plugin | None = None) -> Exception:
        """Return an error with the name of the plugin that raised it in front.

        Parameters
        ----------
        hook : str
            The hook that was called, for the message.
        error : Exception
        otherwise : Plugin, optional
            As of :meth:`blame`.

        Returns
        -------
        Exception
            ``error`` itself if it gets no name; see :meth:`blame`.
        """
        if isinstance(error, MemoryError):  # of data, not of a plugin's code
            return error
        owner = self._owner_of_traceback(error) or otherwise
        kind = next((k for k in (ValueError, TypeError) if isinstance(error, k)), RuntimeError)
        if kind is not RuntimeError and (owner is None or owner.is_ours):
            return error
        return kind(failure_of(owner, hook, error))

    def raised_by(self, error: Exception) -> str | None:
        """Return the third-party plugin that raised an error, with its distribution.

        Parameters
        ----------
        error : Exception

        Returns
        -------
        str or None
            None if the error comes from ours.
        """
        owner = self._owner_of_traceback(error)
        return None if owner is None or owner.is_ours else owner.label

    def check_answer(
        self, hook: str, answer: Any, expected: Any, arguments: dict[str, Any] | None = None
    ) -> None:
        """Check the result of a plugin.

        Parameters
        ----------
        hook : str
            The hook that returned it, for the message.
        answer : object
        expected : type
        arguments : dict, optional
            Arguments of the hook, to call it again if the answer does not identify the plugin.

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
            label = label_of(self._owner_of_module(module) or self._who_answers(hook, arguments))
            if stale:
                raise ImportError(f"{label}: {stale}")
            name = getattr(expected, "__qualname__", str(expected))
            given = type(answer).__name__
            if given == name:  # another class of that name
                given = f"{type(answer).__module__}.{given}"
            wanted = f"{expected.__module__}.{name}"
            if expected is Callable:
                wanted = "a callable that takes a layout, such as the operator's class, or None"
            raise TypeError(f"{label} returned {given} from {hook}, expected {wanted}")

    def _who_answers(self, hook: str, arguments: dict[str, Any] | None) -> Plugin | None:
        """Return the plugin that answers; for a space's own methods, the plugin of its class."""
        if arguments is None:
            return None
        for impl in reversed(getattr(self.manager.hook, hook).get_hookimpls()):
            if impl.wrapper or impl.hookwrapper or impl.trylast:
                continue
            if impl.function(*(arguments[name] for name in impl.argnames)) is not None:
                owner = next((p for p in self.plugins if p.module is impl.plugin), None)
                if owner is None or not owner.is_ours or "space" not in arguments:
                    return owner
                return self._owner_of_module(type(arguments["space"]).__module__)
        return None

    def _owner_of_traceback(self, error: BaseException) -> Plugin | None:
        # Blame the innermost frame that belongs to a plugin.
        return next(filter(None, map(self._owner_of_module, modules_of(error))), None)

    def _owner_of_module(self, module: str) -> Plugin | None:
        for plugin in self.plugins:
            name = module_name(plugin.module)
            if plugin.module is not None and (module == name or module.startswith(f"{name}.")):
                return plugin
        # Otherwise a plugin of the same package; the core's modules belong to no plugin.
        package = module.split(".")[0]
        for plugin in self.plugins:
            name = module_name(plugin.module)
            if plugin.module is not None and package == name.split(".")[0] != "structsolve":
                return plugin
        return None


def label_of(owner: Plugin | None) -> str:
    """Return what messages call a plugin, known or not.

    Parameters
    ----------
    owner : Plugin or None

    Returns
    -------
    str
    """
    return "a plugin" if owner is None else owner.label


def failure_of(owner: Plugin | None, hook: str, error: Exception) -> str:
    """Return the message of an error in a hook.

    Parameters
    ----------
    owner : Plugin or None
    hook : str
    error : Exception

    Returns
    -------
    str
    """
    return f"{label_of(owner)} failed in {hook}: {type(error).__name__}: {error}"
