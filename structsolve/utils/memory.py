"""Available memory, to refuse arrays that do not fit before allocation."""

from __future__ import annotations

import contextlib
import functools
import os
from pathlib import Path


@functools.cache  # a prediction of one graph would wait for the system to tell
def memory_limit() -> int | None:
    """Return the memory limit of this process in bytes: the machine's or its control group's.

    Returns
    -------
    int or None
        None if unknown.
    """
    limits = []
    with contextlib.suppress(AttributeError, ValueError, OSError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with contextlib.suppress(OSError, ValueError):  # "max" where there is none
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text("ascii")))
    return min((limit for limit in limits if limit > 0), default=None)


def refuse_too_large(
    size: float, what: str, advice: str, max_memory: float | None = None, half: bool = False
) -> None:
    """Refuse arrays that are larger than ``max_memory`` or memory.

    Parameters
    ----------
    size : float
        Bytes.
    what, advice : str
        The part that needs them, and what to do.
    max_memory : float, optional
        Bytes.
    half : bool, default=False
        Refuse more than half of memory.

    Raises
    ------
    ValueError
        With the size.

    Examples
    --------
    >>> refuse_too_large(8e18, "a graph of 10^18 edges", "cut it")
    Traceback (most recent call last):
        ...
    ValueError: a graph of 10^18 edges would take 8e+09 GB, more than the ... GB of memory: cut it
    """
    if max_memory is not None and size > max_memory:
        raise ValueError(
            f"{what} would take {size / 1e9:.3g} GB, more than max_memory of "
            f"{max_memory / 1e9:.3g} GB: {advice}"
        )
    limit = memory_limit()
    if limit is not None and size > (limit / 2 if half else limit):
        raise ValueError(
            f"{what} would take {size / 1e9:.3g} GB, more than {'half of ' if half else ''}the "
            f"{limit / 1e9:.3g} GB of memory: {advice}"
        )
