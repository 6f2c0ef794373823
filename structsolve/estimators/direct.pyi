from collections.abc import Callable
from typing import Any

from structsolve.operators import Oracle
from structsolve.part_layout import PartLayout
from structsolve.potentials.model import LinearModel

class Direct:
    @property
    def model(self) -> LinearModel: ...
    def __init__(self, model: LinearModel, bind: Callable[[PartLayout], Oracle]) -> None: ...
    def labels(self, X: Any) -> Any: ...
