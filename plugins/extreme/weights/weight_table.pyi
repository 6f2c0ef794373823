from typing import Any

import numpy as np
from numpy.typing import NDArray

class WeightTable:
    @property
    def n_features(self) -> int: ...
    @property
    def n_classes(self) -> int: ...
    def __new__(cls, n_features: int, n_classes: int) -> WeightTable: ...
    def fill(
        self, indptr: NDArray[np.int64], classes: NDArray[np.int32], weights: NDArray[np.float32]
    ) -> None: ...
    def freeze(
        self, cut: float
    ) -> tuple[
        NDArray[Any],
        NDArray[Any],
        NDArray[Any],
        NDArray[np.float32],
        NDArray[np.float32],
        float,
        int,
    ]: ...
    @property
    def nbytes(self) -> int: ...
