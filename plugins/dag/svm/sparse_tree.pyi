from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from structsolve.plugins.dag.svm.leaf_search import LeafSearch
from structsolve.plugins.dag.svm.node_sums import NodeSums

@final
class SparseTree:
    @property
    def steps(self) -> int: ...
    @property
    def search(self) -> LeafSearch: ...
    @property
    def sums(self) -> NodeSums: ...
    def __init__(
        self,
        parent: NDArray[np.int32],
        scale: NDArray[np.float64],
        cost: NDArray[np.float64],
        loss: str,
        n_features: int,
    ) -> None: ...
    def run(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float64],
        labels: NDArray[np.int32],
        order: NDArray[np.int64],
        *,
        alpha: float,
        weight: NDArray[np.float64] | None = None,
    ) -> None: ...
    def to_arrays(self) -> dict[str, NDArray[Any]]: ...
    def restore(self, steps: int, arrays: Mapping[str, NDArray[Any]]) -> None: ...
    def weights(
        self, averaged: bool = True
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]: ...
