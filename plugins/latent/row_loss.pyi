import numpy as np
from numpy.typing import NDArray

from structsolve.operators import Loss
from structsolve.part_layout import PartLayout

class RowLoss(Loss):
    def __init__(
        self,
        costs: NDArray[np.float64],
        rows: NDArray[np.int32],
        constants: NDArray[np.float64] | None,
        normalised: bool,
        averaged: bool,
        layout: PartLayout,
    ) -> None: ...
