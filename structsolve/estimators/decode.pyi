from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsolve.lp.oracle import ProgramOracle
from structsolve.operators import KBest, Operator, Oracle, Projection
from structsolve.potentials.linear import LinearPotentials

class Room:
    def __new__(cls, potentials: LinearPotentials, work_bytes: int) -> Room: ...

class Masks:
    @property
    def has_shared(self) -> bool: ...
    @property
    def has_nodes(self) -> bool: ...
    @property
    def forces(self) -> bool: ...
    def __init__(self, layout: Any, masks: Any) -> None: ...
    def check(self, potentials: LinearPotentials) -> None: ...

def decode(
    potentials: LinearPotentials,
    oracle: Oracle,
    w: NDArray[np.float64],
    masks: Any,
    n_jobs: int | None = 1,
    bounds: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.float64]]: ...
def refuse_impossible(scores: NDArray[np.float64]) -> None: ...
def decode_kbest(
    potentials: LinearPotentials,
    kbest: KBest,
    w: NDArray[np.float64],
    masks: Any,
    k: int,
    n_jobs: int | None = 1,
) -> tuple[list[NDArray[np.int32]], list[NDArray[np.float64]]]: ...
def draw(
    potentials: LinearPotentials,
    projection: Projection,
    w: NDArray[np.float64],
    n: int,
    *,
    scale: float,
    seed: int,
    n_jobs: int | None = 1,
) -> NDArray[np.int32]: ...
def node_rows(
    potentials: LinearPotentials,
    operator: Operator,
    w: NDArray[np.float64],
    masks: Any,
    *,
    scale: float = 1.0,
    n_jobs: int | None = 1,
    state_rows: int = 0,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

class Batches(Oracle):
    @property
    def answers(self) -> Any: ...
    def __init__(self, oracle: ProgramOracle, run: Callable[..., Any], wave: int) -> None: ...
    def finish(self) -> None: ...

def decode_in_batches(
    potentials: LinearPotentials,
    oracle: ProgramOracle,
    w: NDArray[np.float64],
    masks: Any,
    n_jobs: int | None = 1,
) -> tuple[NDArray[np.int32], NDArray[np.float64]]: ...
