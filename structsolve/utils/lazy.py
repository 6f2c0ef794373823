"""Names of a package whose modules are imported at first use, and packages that moved."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
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


class _Moved(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of a former package where they are now, and warns."""

    def __init__(self, old: str, new: Sequence[str]) -> None:
        self.old, self.new = old, new

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        own = name.startswith(f"{self.old}.")
        return importlib.machinery.ModuleSpec(name, self) if own else None

    def create_module(self, spec: Any) -> Any:
        places = [package + spec.name[len(self.old) :] for package in self.new]
        place = next((p for p in places if importlib.util.find_spec(p)), places[0])
        warnings.warn(f"{spec.name} is {place} now", FutureWarning, stacklevel=2)
        module = importlib.import_module(place)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: Any) -> None:
        module.__spec__ = self.spec  # importlib has set that of the former name


def moved_package(old: str, *new: str) -> list[str]:
    """Let imports of a former package's modules find them where they are now, with a warning.

    Parameters
    ----------
    old : str
        The name of the former package.
    *new : str
        Names of those that have its modules now.

    Returns
    -------
    list of str
        The former package's ``__path__``.
    """
    sys.meta_path.append(_Moved(old, new))
    return []
