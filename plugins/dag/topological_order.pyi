from typing import Any

import numpy as np
from numpy.typing import NDArray

def compressed(
    M: int, tails: NDArray[Any], heads: NDArray[Any]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]: ...
def topological_order(
    first: NDArray[np.int32], child: NDArray[np.int32], n_parents: NDArray[Any]
) -> NDArray[np.int32]: ...
def leaf_lines(
    up_first: NDArray[np.int32],
    up: NDArray[np.int32],
    rank: NDArray[np.int32],
    leaves: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]: ...
def add_ancestors(
    Y: NDArray[np.int32],
    order: NDArray[np.int32],
    up_first: NDArray[np.int32],
    up: NDArray[np.int32],
) -> None: ...
def first_open(
    Y: NDArray[np.int32],
    order: NDArray[np.int32],
    up_first: NDArray[np.int32],
    up: NDArray[np.int32],
) -> tuple[int, int, int] | None: ...
def first_barren(
    Y: NDArray[np.int32], child_first: NDArray[np.int32], child: NDArray[np.int32]
) -> tuple[int, int] | None: ...
def share_out(
    order: NDArray[np.int32],
    up_first: NDArray[np.int32],
    up: NDArray[np.int32],
    child_first: NDArray[np.int32],
) -> NDArray[np.float64]: ...
