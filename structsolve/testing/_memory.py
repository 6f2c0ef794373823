"""Memory between guard zones, which detect writes out of bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

# Bytes on each side of an operator's memory, and their pattern: as a double it is 1.4e306, so reads
# beyond the end are noticed as well.
GUARD, PATTERN = 256, 0x7F
UNTOUCHED = bytes([PATTERN]) * GUARD


class Guarded:
    """An array on its own cache line, between two guard zones.

    Parameters
    ----------
    size : int
    dtype : dtype
    fill : array or scalar
    """

    def __init__(self, size: int, dtype: Any, fill: Any = 0):
        n_bytes = int(size) * np.dtype(dtype).itemsize
        buffer = np.empty(n_bytes + 2 * GUARD + 64, dtype=np.uint8)
        buffer.fill(PATTERN)
        start = -buffer.__array_interface__["data"][0] % 64
        self._before = buffer[start : start + GUARD]
        self._after = buffer[start + GUARD + n_bytes : start + 2 * GUARD + n_bytes]
        self.array = buffer[start + GUARD : start + GUARD + n_bytes].view(dtype)
        self.array[...] = fill
        # Empty arrays have room for one entry, whose address operators get.
        self.memory = buffer[start + GUARD : start + 2 * GUARD + n_bytes]
        self.memory = self.memory[: max(n_bytes, 16)].view(dtype)

    def damage(self) -> str:
        """Return the side on which the guard zone was written to, empty for neither."""
        for zone, where in ((self._before, "before its start"), (self._after, "beyond its end")):
            if zone.tobytes() != UNTOUCHED:
                return where
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
