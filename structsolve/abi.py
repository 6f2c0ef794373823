"""The C API number that every compiled plugin carries in its binary without doing anything for it."""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import mmap
import sys
from pathlib import Path
from typing import Any

MARKER = b"structsolve-c-abi="


@functools.lru_cache(maxsize=None)
def number_in_file(path: str) -> str | None:
    """Return the C API number that a compiled module was built against, None where it has none."""
    with open(path, "rb") as file:
        try:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                start = data.find(MARKER)
                if start < 0:
                    return None
                return data[start + len(MARKER) : data.find(b";", start)].decode("ascii", "replace")
        except ValueError:  # an empty file
            return None


def ours() -> str:
    """Return the C API number of this structsolve."""
    from .operators import ABI

    return ABI


def stale_modules(module_name: str) -> list[str]:
    """Describe the compiled modules beside ``module_name`` that another C API was baked into.

    The package is looked at on disk, before any of it is imported.
    """
    top = module_name.split(".")[0]
    spec = importlib.util.find_spec(top)
    if spec is None:
        return []
    files: list[Path] = []
    suffixes = tuple(importlib.machinery.EXTENSION_SUFFIXES)
    if spec.submodule_search_locations:
        for folder in spec.submodule_search_locations:
            files += [p for p in Path(folder).rglob("*") if p.name.endswith(suffixes)]
    elif spec.origin and spec.origin.endswith(suffixes):
        files.append(Path(spec.origin))
    return [text for path in files if (text := _complaint(str(path))) is not None]


def stale_object(obj: Any) -> str | None:
    """Describe the module of ``obj``'s class when it was built against another C API."""
    for cls in type(obj).__mro__:
        path = getattr(sys.modules.get(cls.__module__), "__file__", None)
        if path and path.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
            text = _complaint(path)
            if text is not None:
                return text
    return None


def _complaint(path: str) -> str | None:
    number = number_in_file(path)
    if number is None or number == ours():
        return None
    return (
        f"{Path(path).name} was compiled against structsolve C API {number}, this structsolve "
        f"provides {ours()}; rebuild or upgrade the plugin"
    )
