import numpy as np
from numpy.typing import NDArray

def project_simplex(q: NDArray[np.float64]) -> NDArray[np.float64]: ...
