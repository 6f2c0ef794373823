"""Memory between guard zones, which detect writes out of bounds."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

# Bytes on each side of an operator's memory, and their pattern: as a double it is 1.4e306, so reads
# beyond the end are noticed as well.
GUARD, BYTE = 256, b"\x7f"
UNTOUCHED = BYTE * GUARD


class Guarded:
    """An array on its own cache line, between two guard zones.

    Parameters
    ----------
    size : int
    dtype : dtype
    fill : array or scalar
    """

    def __init__(self, size: int, dtype: Any, fill: Any = 0):
        size, dtype = int(size), np.dtype(dtype)
        n_bytes = size * dtype.itemsize
        # Of Python's bytes: NumPy takes longer for an array's address than for the array.
        self._buffer = buffer = bytearray(BYTE * (n_bytes + 2 * GUARD + 64))
        first = -ctypes.addressof(ctypes.c_char.from_buffer(buffer)) % 64 + GUARD
        self._first, self._end = first, first + n_bytes
        self.array = np.ndarray(size, dtype, buffer, first)
        self.array[...] = fill
        # Empty arrays have room for one entry, whose address operators get.
        self.memory = np.ndarray(max(size, 16 // dtype.itemsize), dtype, buffer, first)

    def damage(self) -> str:
        """Return the side on which the guard zone was written to, empty for neither."""
        if self._buffer[self._first - GUARD : self._first] != UNTOUCHED:
            return "before its start"
        if self._buffer[self._end : self._end + GUARD] != UNTOUCHED:
            return "beyond its end"
        return ""


class Room:
    """Allocates operators' memory, and keeps it for checks of its guard zones.

    Parameters
    ----------
    garbage : int
        Value of each byte of scratch memory.
    """

    def __init__(self, garbage: int):
        self.fill = {np.int8: np.int8(garbage), np.int32: -7, np.float64: np.nan}
        self.given: dict[str, Guarded] = {}

    def __call__(self, name: str, size: int, dtype: Any) -> np.ndarray:
        self.given[name] = Guarded(size, dtype, self.fill[dtype])
        return self.given[name].memory
