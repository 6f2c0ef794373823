from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsolve.examples.packed import Examples
from structsolve.potentials.weight_layout import WeightLayout

def stack_csr(
    rows: list[Any], n_columns: int = -1, min_rows: int = 0
) -> tuple[NDArray[Any], NDArray[np.int32], NDArray[np.int32], bool, NDArray[np.int64]] | None: ...
def stack_dense(rows: list[Any], n_columns: int, min_rows: int, density: float) -> Any: ...
def dense_to_csr(
    rows: list[Any], density: float
) -> tuple[NDArray[Any], NDArray[np.int32], NDArray[np.int32]] | None: ...
def pieces(flat: NDArray[Any], offsets: NDArray[Any]) -> Any: ...
def arrays_fit(examples: Examples, layout: WeightLayout, columns: bool, features: bool) -> bool: ...
