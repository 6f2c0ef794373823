from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsolve.operators import (
    AugmentedOracle,
    ConeOracle,
    CountOracle,
    KBest,
    Loss,
    MaxMarginals,
    Operator,
    Oracle,
    Parts,
    Projection,
    Relaxation,
)
from structsolve.structure.base import ConePair

def scores_of(operator: Operator, i: int, theta: NDArray[np.float64]) -> NDArray[Any]: ...
def label_of(
    operator: Operator, i: int, label: NDArray[np.int32], what: str = "label"
) -> NDArray[Any]: ...
def memory(room: Callable[..., Any] | None, name: str, size: int, dtype: Any) -> NDArray[Any]: ...
def count_of(operator: Operator, method: str, count: int, least: int, most: int) -> int: ...
def work_for(operator: Operator) -> NDArray[np.float64]: ...
def argmax(
    oracle: Oracle, i: int, theta: NDArray[np.float64], room: Callable[..., Any] | None = None
) -> tuple[NDArray[np.int32], float, float]: ...
def repeat_argmax(
    oracle: Oracle,
    i: int,
    theta: NDArray[np.float64],
    label: NDArray[np.int32],
    value: float,
    repeats: int,
    room: Callable[..., Any] | None = None,
) -> tuple[NDArray[np.int32], float] | None: ...
def kbest(
    oracle: KBest,
    i: int,
    theta: NDArray[np.float64],
    k: int,
    banned: Any = (),
    room: Callable[..., Any] | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.float64]]: ...
def max_marginals(
    operator: MaxMarginals,
    i: int,
    theta: NDArray[np.float64],
    n_states: int,
    room: Callable[..., Any] | None = None,
) -> NDArray[np.float64]: ...
def argmax_augmented(
    oracle: AugmentedOracle,
    i: int,
    theta: NDArray[np.float64],
    truth: NDArray[np.int32],
    room: Callable[..., Any] | None = None,
) -> tuple[NDArray[np.int32], float, float]: ...
def relax(
    operator: Relaxation, i: int, theta: NDArray[np.float64], room: Callable[..., Any] | None = None
) -> tuple[NDArray[Any], NDArray[np.int32] | None, float, float]: ...
def argmax_in_cone(
    oracle: ConeOracle,
    i: int,
    theta: NDArray[np.float64],
    cost: NDArray[np.float64],
    cone: ConePair,
    room: Callable[..., Any] | None = None,
) -> tuple[NDArray[np.float64] | None, NDArray[np.int32] | None, float] | None: ...
def argmax_counts(
    oracle: CountOracle,
    i: int,
    theta: NDArray[np.float64],
    cost: NDArray[np.float64],
    most: int,
    room: Callable[..., Any] | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.float64]]: ...
def encode(
    parts: Parts, i: int, label: NDArray[np.int32], room: Callable[..., Any] | None = None
) -> tuple[NDArray[np.int32], NDArray[np.float64]]: ...
def check_label(parts: Parts, i: int, label: NDArray[np.int32]) -> None: ...
def difference(
    parts: Parts,
    i: int,
    truth: NDArray[np.int32],
    label: NDArray[np.int32],
    room: Callable[..., Any] | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.float64]]: ...
def loss_value(loss: Loss, i: int, truth: NDArray[np.int32], label: NDArray[np.int32]) -> float: ...
def augment(
    loss: Loss, i: int, truth: NDArray[np.int32], scale: float, theta: NDArray[np.float64]
) -> float: ...
def project(
    projection: Projection,
    i: int,
    theta: NDArray[np.float64],
    work: NDArray[np.float64] | None = None,
    room: Callable[..., Any] | None = None,
) -> tuple[NDArray[Any], float, float]: ...
def seconds_per_call(
    operator: Operator, i: int, theta: NDArray[np.float64], repeat: int = 1000, k: int = 1
) -> float: ...
