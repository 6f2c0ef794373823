"""The curvature that quasi-Newton steps know: past moves, and what they changed of the gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.blas import get_blas_funcs

# From so many weights on, past steps are kept in single precision: half of their memory, and half
# of what a direction reads.
LONG = 100_000
# Less curvature than this share of the squared change of the gradient is rounding.
CURVED = 1e-16


class Curvature:
    """The last moves of the weights, and the changes of the smooth gradient over them.

    Vectors have largest entries of 1, whatever the units of features: no square leaves the range
    of single precision.

    Parameters
    ----------
    memory : int
        Pairs to keep.
    dim : int
        Number of weights.
    """

    def __init__(self, memory: int, dim: int):
        self.memory = memory
        self.dtype = np.dtype(np.float32 if dim >= LONG else np.float64)
        self.forget()

    def __len__(self) -> int:
        return len(self.moves)

    def forget(self) -> None:
        """Drop all pairs."""
        self.moves: list[np.ndarray] = []
        self.turns: list[np.ndarray] = []
        #: Units of the moves over those of the turns.
        self.units: list[float] = []

    def add(self, move: np.ndarray, turn: np.ndarray) -> None:
        """Keep a pair, in place of the oldest if there are enough.

        Parameters
        ----------
        move, turn : ndarray of float64 of shape (dim,)
            Overwritten.
        """
        units = []
        for vector, kept in ((move, self.moves), (turn, self.turns)):
            units.append(float(np.abs(vector).max(initial=0)) or 1.0)
            vector /= units[-1]
            kept.append(vector.astype(self.dtype, copy=False))
        self.units.append(units[0] / units[1])
        del self.moves[: -self.memory], self.turns[: -self.memory], self.units[: -self.memory]

    def direction(self, slopes: np.ndarray, free: Any) -> np.ndarray:
        """Return the quasi-Newton direction of the free weights; without pairs, of length 1.

        The curvature is that among the free weights alone: the others stay where they are.

        Parameters
        ----------
        slopes : ndarray of float64
            Of the objective, at the free weights; not all 0.
        free : slice or ndarray of int
            Their positions.

        Returns
        -------
        ndarray of float64
        """
        unit = float(np.abs(slopes).max())
        direction = (slopes / -unit).astype(self.dtype, copy=False)
        pairs = []
        for move, turn, ratio in zip(self.moves, self.turns, self.units):
            s, y = move[free], turn[free]
            curvature, size = float(s @ y), float(y @ y)
            if ratio * curvature > CURVED * size:
                pairs.append((s, y, curvature, ratio))
                scale = ratio * curvature / size
        if not pairs:
            return np.asarray(direction / np.linalg.norm(direction), dtype=np.float64)
        axpy, shares = get_blas_funcs("axpy", (direction,)), []
        for s, y, curvature, ratio in reversed(pairs):
            share = float(s @ direction) / curvature
            shares.append(share * (ratio / scale))
            direction = axpy(y, direction, a=-share)
        for (s, y, curvature, _), share in zip(pairs, reversed(shares)):
            direction = axpy(s, direction, a=share - float(y @ direction) / curvature)
        return direction * np.float64(scale * unit)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(vector.nbytes for vector in (*self.moves, *self.turns))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return arrays for a checkpoint.

        Returns
        -------
        dict of str to ndarray
        """
        arrays = {f"move_{k}": move for k, move in enumerate(self.moves)}
        return arrays | {f"turn_{k}": turn for k, turn in enumerate(self.turns)}

    def restore(self, units: list[float], moves: list[Any], turns: list[Any]) -> None:
        """Take pairs over from a checkpoint.

        Parameters
        ----------
        units : list of float
        moves, turns : list of ndarray of shape (dim,)
        """
        self.forget()
        for unit, move, turn in zip(units, moves, turns, strict=True):
            self.add(move, turn)
            self.units[-1] *= unit
