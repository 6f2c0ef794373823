from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from structsolve.plugins.extreme.weights.feature_lists import FeatureLists

LOSSES: dict[Any, Any]

@final
class LeafSearch:
    @property
    def n_nodes(self) -> int: ...
    @property
    def n_inner(self) -> int: ...
    @property
    def own(self) -> NDArray[np.int32]: ...
    @property
    def given(self) -> NDArray[np.int32]: ...
    def __init__(
        self,
        parent: NDArray[np.int32],
        cost: NDArray[np.float64] | None = None,
        loss: str | None = None,
    ) -> None: ...
    def best_leaf(
        self, scores: NDArray[np.float64], truth: int = -1, all_nodes: bool = True
    ) -> tuple[int, float]: ...
    def another(self) -> LeafSearch: ...
    def best_leaves(
        self, weights: FeatureLists, X: Any, columns: NDArray[np.int32], n_jobs: int | None = 1
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]: ...
