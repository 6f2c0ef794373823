"""Linear programs over declared polytopes, by SciPy alone."""

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp


def best_vertex(polytope, theta):
    """(point, value) of the largest score."""
    answer = milp(
        -polytope.scores(theta),
        bounds=Bounds(polytope.lower, polytope.upper),
        constraints=[LinearConstraint(polytope.A, polytope.low, polytope.high)]
        * (polytope.A.shape[0] > 0),
        integrality=np.zeros(polytope.size),
    )
    assert answer.status == 0, answer
    return answer.x, -answer.fun
