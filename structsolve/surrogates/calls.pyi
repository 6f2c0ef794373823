from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structsolve.surrogates.base import Surrogate

class CutCall(NamedTuple):
    index: NDArray[np.int32]  # type: ignore[assignment]  # hides tuple.index
    value: NDArray[np.float64]
    b: float
    bound: float
    key: int
    calls: int

def cut(
    surrogate: Surrogate,
    i: int,
    theta: NDArray[np.float64],
    truth: NDArray[np.int32],
    room: Callable[..., Any] | None = None,
) -> CutCall: ...
