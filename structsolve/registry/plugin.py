"""One plugin: where it comes from, what it declares, and why it is not in use."""

from __future__ import annotations

import re
import types
from dataclasses import dataclass, field
from typing import Any

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
)
# Kinds whose one is not the plural without its last letter.
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
        Holds the hooks; None unless it is registered.
    error : str
        Why it was not loaded; empty where it was.
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
        """The text before a colon and a name, which says whose it is."""
        return self.distribution or self.name

    @property
    def key(self) -> str:
        """Distribution and name, or the name alone: no two plugins have the same."""
        return f"{self.distribution}:{self.name}" if self.distribution else self.name

    @property
    def is_ours(self) -> bool:
        """Whether it comes with structsolve."""
        return self.module is not None and is_ours(module_name(self.module))

    def is_called(self, text: str) -> bool:
        """Return whether it is meant by its name, its distribution, or both with a colon.

        Parameters
        ----------
        text : str

        Returns
        -------
        bool
        """
        return normalized(text) in map(normalized, (self.name, self.source, self.key))


def normalized(name: str) -> str:
    """Return the name of a distribution as indexes compare it.

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
    """Return the module that a plugin is, or whose class it is of.

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


def one(kind: str) -> str:
    """Return what messages call one of a kind.

    Parameters
    ----------
    kind : str
        One of ``LISTS``.

    Returns
    -------
    str
    """
    return _ONE.get(kind, kind[:-1]).replace("_", " ")
