from typing import Any

import numpy as np
from numpy.typing import NDArray

class Space:
    def __init__(self, lists: FeatureLists, k: int, longest: int, n_rows: int) -> None: ...

class FeatureLists:
    @property
    def n_features(self) -> int: ...
    @property
    def n_classes(self) -> int: ...
    @property
    def intercept(self) -> NDArray[np.float32] | None: ...
    def top(
        self,
        X: Any,
        k: int,
        epsilon: float = 0.0,
        exclude: NDArray[np.int32] | None = None,
        n_jobs: int | None = 1,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float64], int]: ...
    def scores(self, X: Any, classes: NDArray[np.int32]) -> NDArray[np.float32]: ...

def flat(x: Any, dtype: Any, what: Any) -> Any: ...
def checked_rows(X: Any, n_features: int) -> Any: ...
