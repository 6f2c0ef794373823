from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsolve.potentials.features import FeatureRows
from structsolve.potentials.linear import LinearPotentials

def row_score(rows: FeatureRows, row: int, W: NDArray[np.float64]) -> NDArray[np.float64]: ...
def row_add(
    rows: FeatureRows,
    row: int,
    cols: NDArray[np.int32],
    coefs: NDArray[np.float64],
    W: NDArray[np.float64],
) -> None: ...
def row_dot(
    rows: FeatureRows, row: int, cols: NDArray[np.int32], W: NDArray[np.float64]
) -> NDArray[np.float64]: ...
def row_gram(rows: FeatureRows, row: int, first: int, last: int) -> NDArray[np.float64]: ...
def score(
    potentials: LinearPotentials, i: int, w: NDArray[np.float64], scale: float = 1.0
) -> NDArray[np.float64]: ...
def add(
    potentials: LinearPotentials,
    i: int,
    index: NDArray[np.int32],
    value: NDArray[np.float64],
    coef: float,
    w: NDArray[np.float64],
) -> None: ...
def dot(
    potentials: LinearPotentials,
    i: int,
    index: NDArray[np.int32],
    value: NDArray[np.float64],
    w: NDArray[np.float64],
) -> float: ...
def add_gram(
    potentials: LinearPotentials,
    i: int,
    index: NDArray[np.int32],
    value: NDArray[np.float64],
    coef: float,
    u: NDArray[np.float64],
) -> None: ...
def move_gram(
    potentials: LinearPotentials,
    i: int,
    index: NDArray[np.int32],
    coef: float,
    u: NDArray[np.float64],
    theta: Any,
) -> None: ...
