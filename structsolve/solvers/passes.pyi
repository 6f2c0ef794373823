from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsolve.potentials.linear import LinearPotentials
from structsolve.solvers.problem import Problem

class Scratch:
    def __init__(
        self, potentials: LinearPotentials, work_bytes: int, max_entries: int = 1
    ) -> None: ...

def surrogate_bounds(
    problem: Problem,
    w: NDArray[np.float64],
    n_jobs: int | None = 1,
    values: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], int]: ...
def summands(problem: Problem) -> int: ...
def partial_sums(problem: Problem) -> NDArray[np.float64]: ...
def subgradient(
    problem: Problem,
    w: NDArray[np.float64],
    n_jobs: int | None = 1,
    sums: NDArray[np.float64] | None = None,
    each: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], float, NDArray[np.float64], int]: ...
def range_cuts(
    problem: Problem,
    w: NDArray[np.float64],
    parts: Any,
    sums: NDArray[np.float64],
    n_jobs: int | None = 1,
    each: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], int]: ...
