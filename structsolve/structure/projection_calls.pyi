from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsolve.operators import Loss, Projection

def state_size(projection: Projection, i: int) -> int: ...
def project_state(
    projection: Projection,
    i: int,
    theta: NDArray[np.float64],
    room: Callable[..., Any] | None = None,
) -> tuple[NDArray[Any], float, float]: ...
def state_of(
    projection: Projection, i: int, label: NDArray[np.int32], room: Callable[..., Any] | None = None
) -> NDArray[np.float64]: ...
def pool(
    projection: Projection,
    i: int,
    state: NDArray[np.float64],
    room: Callable[..., Any] | None = None,
) -> NDArray[np.float64]: ...
def term(
    projection: Projection,
    i: int,
    state: NDArray[np.float64],
    room: Callable[..., Any] | None = None,
) -> float: ...
def slope(
    projection: Projection,
    i: int,
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    gamma: float,
    room: Callable[..., Any] | None = None,
) -> float: ...
def sample(
    projection: Projection,
    i: int,
    theta: NDArray[np.float64],
    uniforms: NDArray[np.float64],
    room: Callable[..., Any] | None = None,
) -> NDArray[np.int32]: ...
def derivative(
    projection: Projection,
    i: int,
    theta: NDArray[np.float64],
    direction: NDArray[np.float64],
    room: Callable[..., Any] | None = None,
) -> NDArray[np.float64]: ...
def costs(
    loss: Loss,
    i: int,
    nu: NDArray[np.float64],
    transposed: bool = False,
    scale: float = 1.0,
    room: Callable[..., Any] | None = None,
) -> tuple[NDArray[Any], float]: ...
