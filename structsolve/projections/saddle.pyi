from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsolve.operators import Loss, Oracle, Parts, Projection
from structsolve.part_layout import PartLayout
from structsolve.projections.game import MaxMinGame
from structsolve.projections.rows import NodeRows

class SaddleProx(MaxMinGame):
    @property
    def projection(self) -> Projection: ...
    def __init__(
        self,
        layout: PartLayout,
        projection: Projection,
        oracle: Oracle,
        loss: Loss,
        parts: Parts,
        labels: NDArray[np.int32],
        rows: NodeRows | None = None,
        max_iter: int = 10,
        tol: float = 1e-4,
        warm_start: bool = True,
    ) -> None: ...
    def memory_of_examples(self) -> dict[str, NDArray[Any]]: ...
