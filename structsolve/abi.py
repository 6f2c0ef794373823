"""The number of the C interface that every compiled plugin carries in its binary, and its check.

A binary runs under the number that it was compiled against and under every later minor of the same
major, by the rules for additions in ``abi_number.pxd``.
"""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import mmap
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MARKER = b"structsolve-c-abi="


@functools.cache
def number_in_file(path: str) -> str | None:
    """Return the C API number that a compiled module was built against.

    Parameters
    ----------
    path : str

    Returns
    -------
    str or None
        None if the module has no number.
    """
    with open(path, "rb") as file:
        try:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                start = data.find(MARKER)
                if start < 0:
                    return None
                start += len(MARKER)
                return data[start : start + 32].partition(b";")[0].decode("ascii", "replace")
        except ValueError:  # an empty file
            return None


def ours() -> str:
    """Return the C API number of this structsolve.

    Returns
    -------
    str
        ``MAJOR.MINOR``.
    """
    from .operators import ABI  # compiled; only for the check

    return ABI


def fits(number: str, provided: str) -> bool:
    """Return whether a module compiled against one number runs under another.

    Parameters
    ----------
    number : str
        The module's number; anything but ``MAJOR.MINOR`` is incompatible.
    provided : str
        The number of the package that runs it.

    Returns
    -------
    bool
        True for the same major and no later minor.

    Examples
    --------
    >>> from structsolve.abi import fits
    >>> [fits(number, "5.1") for number in ("5.0", "5.1", "5.2", "4.9", "6.0")]
    [True, True, False, False, False]
    """
    try:
        (major, minor), (our_major, our_minor) = (
            map(int, text.split(".")) for text in (number, provided)
        )
    except ValueError:
        return False
    return major == our_major and minor <= our_minor


def _loadable(path: Path) -> bool:
    # Builds for other interpreters may lie in the same folder: the suffix must be ours.
    return "." + path.name.partition(".")[2] in importlib.machinery.EXTENSION_SUFFIXES


@functools.cache
def _compiled(path: str) -> bool:
    # Called for every class of every answer of a plugin: parsing paths is slow.
    return _loadable(Path(path))


def stale_modules(module_name: str, files: Iterable[Path] = ()) -> list[str]:
    """Describe a plugin's compiled modules that were built against another C API.

    The files are read on disk, before any module is imported.

    Parameters
    ----------
    module_name : str
        Module of the plugin; all compiled modules of its top-level package are checked.
    files : iterable of Path
        Further files of the plugin's distribution.

    Returns
    -------
    list of str
        One complaint per stale module.
    """
    candidates = {Path(path).resolve() for path in files}
    spec = importlib.util.find_spec(module_name.split(".")[0])
    if spec is not None and spec.submodule_search_locations:
        for folder in spec.submodule_search_locations:
            candidates.update(path.resolve() for path in Path(folder).rglob("*.*"))
    elif spec is not None and spec.origin:
        candidates.add(Path(spec.origin).resolve())
    paths = sorted(str(path) for path in candidates if _loadable(path) and path.is_file())
    return [text for path in paths if (text := _complaint(path)) is not None]


def stale_object(obj: Any) -> str | None:
    """Describe the module of an object's class when it was built against another C API.

    Parameters
    ----------
    obj : object

    Returns
    -------
    str or None
        A complaint, or None.
    """
    for cls in type(obj).__mro__:
        path = getattr(sys.modules.get(cls.__module__), "__file__", None)
        if path and _compiled(path):
            text = _complaint(path)
            if text is not None:
                return text
    return None


def refuse_stale(obj: Any) -> None:
    """Refuse a native object that was compiled against another C API; before its first call.

    Parameters
    ----------
    obj : object
        An object of a user or plugin.

    Raises
    ------
    ImportError
    """
    text = stale_object(obj)
    if text is not None:
        raise ImportError(f"{type(obj).__module__}.{type(obj).__qualname__}: {text}")


def _complaint(path: str) -> str | None:
    number = number_in_file(path)
    if number is None or fits(number, ours()):
        return None
    advice = "upgrade structsolve" if _newer(number, ours()) else "rebuild or upgrade the plugin"
    return (
        f"{Path(path).name} was compiled against structsolve C API {number}, this structsolve "
        f"provides {ours()}; {advice}"
    )


def _newer(number: str, provided: str) -> bool:
    try:
        return [*map(int, number.split("."))] > [*map(int, provided.split("."))]
    except ValueError:
        return False
