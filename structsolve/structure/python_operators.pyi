from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsolve.operators import (
    AugmentedOracle,
    ConeOracle,
    CountOracle,
    KBest,
    Loss,
    Oracle,
    Parts,
    Relaxation,
)
from structsolve.part_layout import PartLayout
from structsolve.structure.base import Space
from structsolve.structure.task_loss import TaskLoss

POWERS: dict[Any, Any]

class PythonOracle(Oracle):
    def __init__(self, space: Any, layout: PartLayout) -> None: ...

class PythonParts(Parts):
    def __init__(self, space: Any, layout: PartLayout) -> None: ...

class PythonLoss(Loss):
    def __init__(self, space: Space, owner: TaskLoss | None, layout: PartLayout) -> None: ...
    def check_truths(self, labels: NDArray[np.int32]) -> None: ...

class PythonKBest(KBest):
    def __init__(self, space: Any, layout: PartLayout) -> None: ...

class PythonAugmented(AugmentedOracle):
    def __init__(self, space: Any, layout: PartLayout) -> None: ...
    def knows(self, loss: Loss) -> bool: ...

class PythonRelaxation(Relaxation):
    def __init__(self, space: Any, layout: PartLayout) -> None: ...

class PythonCones(ConeOracle):
    def __init__(self, space: Any, layout: PartLayout) -> None: ...

class PythonCounts(CountOracle):
    def __init__(self, space: Any, layout: PartLayout) -> None: ...
