import numpy as np
from numpy.typing import NDArray

from structsolve.operators import Loss

def losses(
    loss: Loss, truths: NDArray[np.int32], labels: NDArray[np.int32]
) -> NDArray[np.float64]: ...
