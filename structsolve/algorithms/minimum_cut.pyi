from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

class MinimumCut(NamedTuple):
    value: float
    source_side: NDArray[np.bool_]
    sink_side: NDArray[np.bool_]
    flow: float

class CutNetwork:
    @property
    def n_nodes(self) -> int: ...
    @property
    def n_arcs(self) -> int: ...
    def __init__(self, n_nodes: int, arcs: NDArray[Any]) -> None: ...
    def cut(
        self,
        capacities: NDArray[np.float64],
        from_source: NDArray[np.float64],
        to_sink: NDArray[np.float64],
        warm_start: bool = True,
    ) -> MinimumCut: ...

def minimum_cut(
    n_nodes: int,
    arcs: NDArray[Any],
    capacities: NDArray[np.float64],
    from_source: NDArray[np.float64],
    to_sink: NDArray[np.float64],
) -> MinimumCut: ...
