"""Arrays as compiled loops want them: aligned, padded, checked."""

from __future__ import annotations

from typing import Any

import numpy as np


def padded(width: int) -> int:
    """Return the storage width of a row of ``width`` states.

    Rows of more than four states are padded to whole cache lines (8 doubles), so that the
    vector loops never meet a remainder.

    Parameters
    ----------
    width : int

    Returns
    -------
    int
        At least `width`.

    Examples
    --------
    >>> [padded(k) for k in (1, 2, 3, 5, 26)]
    [1, 2, 4, 8, 32]
    """
    if width <= 2:
        return width
    return 4 if width <= 4 else -(-width // 8) * 8


def aligned_zeros(size: int) -> np.ndarray:
    """Return zeros of float64 that start on a cache line (64 bytes).

    Parameters
    ----------
    size : int

    Returns
    -------
    ndarray of float64, shape (size,)
    """
    buffer = np.zeros(size + 8)
    start = (-buffer.__array_interface__["data"][0] % 64) // 8
    return buffer[start : start + size]


def checked_array(
    x: Any, dtype: Any, what: str, size: int | None = None, writable: bool = False
) -> np.ndarray:
    """Return x; refuse what is no flat contiguous array of ``dtype`` (and of ``size`` entries).

    Parameters
    ----------
    x : ndarray
    dtype : dtype
    what : str
        What messages call it.
    size : int, optional
        Number of entries.
    writable : bool, default=False
        Whether a loop writes to it.

    Returns
    -------
    ndarray
        `x`; one spare entry where it is empty, so that it has an address.

    Raises
    ------
    ValueError
        For another type, shape or size, and for memory that is not contiguous or read-only.
    """
    if not isinstance(x, np.ndarray) or x.dtype != dtype or x.ndim != 1:
        kind = f"{x.dtype}, {x.ndim}-D" if isinstance(x, np.ndarray) else type(x).__name__
        raise ValueError(f"{what}: found {kind}, expected a 1-D array of {np.dtype(dtype)}")
    if not x.flags.c_contiguous or not x.flags.aligned:
        raise ValueError(f"{what}: not contiguous; pass np.ascontiguousarray({what})")
    if writable and not x.flags.writeable:
        raise ValueError(f"{what}: read-only, expected an array that can be written to")
    if size is not None and x.size != size:
        raise ValueError(f"{what}: found {x.size} entries, expected {size}")
    return x if x.size else np.zeros(1, dtype)
