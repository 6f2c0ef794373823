"""One plugin: its source, its declarations, and why it is not in use."""

from __future__ import annotations

import re
import traceback
import types
from dataclasses import dataclass, field
from typing import Any

from ..hookspecs import CONTRACT

LISTS = (
    "structures",
    "surrogates",
    "solvers",
    "lp_backends",
    "losses",
    "searches",
    "readers",
    "rival_indexes",
    "metrics",
    "estimators",
)
# Kinds whose singular is not the plural without its last letter.
_ONE = {"losses": "loss", "searches": "search", "rival_indexes": "rival index"}


@dataclass
class Plugin:
    """One plugin: registered, broken or switched off.

    Parameters
    ----------
    name : str
        Name of the entry point, or as given to :meth:`Registry.register`.
    distribution, version : str
        Name and version of the installed package; empty for plugins registered by hand.
    module : module or object, optional
        The hooks; None unless registered.
    error : str
        Why it was not loaded; empty if loaded.
    off : bool
        Whether it was switched off, and not imported.
    declares : dict of str to list
        Its contents, by kind, and the names of its hooks.
    """

    name: str
    distribution: str = ""
    version: str = ""
    module: Any = None
    error: str = ""
    off: bool = False
    declares: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Name, distribution and version, for messages."""
        source = f" ({self.distribution} {self.version})" if self.distribution else ""
        return f"plugin {self.name!r}{source}"

    @property
    def source(self) -> str:
        """The prefix of names that identifies the plugin."""
        return self.distribution or self.name

    @property
    def key(self) -> str:
        """Distribution and name, or only the name; unique among plugins."""
        return f"{self.distribution}:{self.name}" if self.distribution else self.name

    @property
    def is_ours(self) -> bool:
        """Whether it comes with structsolve."""
        return self.module is not None and is_ours(module_name(self.module))

    def is_called(self, text: str) -> bool:
        """Return whether a text is its name, its distribution, or both with a colon.

        Parameters
        ----------
        text : str

        Returns
        -------
        bool
        """
        return normalized(text) in map(normalized, (self.name, self.source, self.key))


def normalized(name: str) -> str:
    """Return the normalised name of a distribution.

    Parameters
    ----------
    name : str

    Returns
    -------
    str
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def is_ours(module: str) -> bool:
    """Return whether a module comes with structsolve.

    Parameters
    ----------
    module : str
        Dotted name.

    Returns
    -------
    bool
    """
    return module.split(".")[0] == "structsolve"


def module_name(plugin: Any) -> str:
    """Return the module of a plugin, or of its class.

    Parameters
    ----------
    plugin : module or object

    Returns
    -------
    str
    """
    if isinstance(plugin, types.ModuleType):
        return plugin.__name__
    return getattr(plugin, "__module__", None) or type(plugin).__module__


def modules_of(error: BaseException) -> list[str]:
    """Return the modules that an error passed through, the innermost first.

    Parameters
    ----------
    error : BaseException

    Returns
    -------
    list of str
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return [frame.f_globals.get("__name__", "") for frame in reversed(frames)]


def one(kind: str) -> str:
    """Return the singular of a kind, for messages.

    Parameters
    ----------
    kind : str
        One of ``LISTS``.

    Returns
    -------
    str
    """
    return _ONE.get(kind, kind[:-1]).replace("_", " ")


def check_contract(number: Any) -> None:
    """Refuse a plugin that was written for another number of the Python contract.

    Parameters
    ----------
    number : str or None
        Its ``STRUCTSOLVE_CONTRACT``; None if it has none.

    Raises
    ------
    ImportError
        If the major differs, or the minor is later than ours; also if it is no number.

    Examples
    --------
    >>> check_contract("1.0")
    >>> check_contract("2.0")
    Traceback (most recent call last):
    ImportError: it was written for contract 2.0 of structsolve.plugin, this structsolve has 1.3; \
install a structsolve with that contract, or a version of the plugin for 1.3
    """
    if number is None:
        return
    parts = re.fullmatch(r"(\d+)\.(\d+)", number) if isinstance(number, str) else None
    if parts is None:
        raise ImportError(
            f"STRUCTSOLVE_CONTRACT is {number!r}, expected a text such as {CONTRACT!r}"
        )
    major, minor = map(int, CONTRACT.split("."))
    if int(parts[1]) != major or int(parts[2]) > minor:
        raise ImportError(
            f"it was written for contract {number} of structsolve.plugin, this structsolve has "
            f"{CONTRACT}; install a structsolve with that contract, or a version of the plugin for "
            f"{CONTRACT}"
        )
