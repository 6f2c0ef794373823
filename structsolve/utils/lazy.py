"""Names of a package whose modules are imported at first use, and names that moved."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package that imports its modules at first use.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : mapping of str to str
        The module of the package for each name.

    Returns
    -------
    callable

    Examples
    --------
    >>> from structsolve.utils.lazy import lazy_names
    >>> lazy_names("structsolve", {"CostMatrix": "structure.losses"})("CostMatrix").__name__
    'CostMatrix'
    """

    def getattribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)

    return getattribute


def moved(old: str, new: str, *names: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a former module, which hands on with a warning.

    Parameters
    ----------
    old, new : str
        Names of the former module, and of the one that has its names now.
    *names : str
        The names that moved, if others stayed.

    Returns
    -------
    callable
    """

    def getattribute(name: str) -> Any:
        if name.startswith("__") or (names and name not in names):
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(new), name)
        warnings.warn(f"{old} is {new} now; import {name} from there", FutureWarning, stacklevel=2)
        return value

    return getattribute
