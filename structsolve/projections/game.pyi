from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsolve.operators import Loss, Oracle, Parts, Projection
from structsolve.part_layout import PartLayout
from structsolve.projections.rows import NodeRows

class MaxMinGame(Projection):
    @property
    def rows(self) -> NodeRows: ...
    @property
    def max_iter(self) -> int: ...
    @property
    def tol(self) -> float: ...
    @property
    def warm_start(self) -> bool: ...
    def __init__(
        self,
        layout: PartLayout,
        oracle: Oracle,
        loss: Loss,
        parts: Parts,
        labels: NDArray[np.int32],
        rows: NodeRows,
        max_iter: int,
        tol: float,
        warm_start: bool,
        vectors: int,
        more_bytes: int,
    ) -> None: ...
    def counts(self) -> tuple[int, int]: ...
    def memory_of_examples(self) -> dict[str, NDArray[Any]]: ...
    def remember(self, arrays: Mapping[str, NDArray[Any]]) -> None: ...
