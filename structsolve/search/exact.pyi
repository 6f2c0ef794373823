import numpy as np
from numpy.typing import NDArray

from structsolve.search.base import Search
from structsolve.search.plane import LabelPlane

class Counting(Search):
    def __init__(self, max_calls: int = 50, tol: float = 1e-9) -> None: ...
    def extra_bytes(self, plane: LabelPlane, labels: NDArray[np.int32] | None = None) -> int: ...
