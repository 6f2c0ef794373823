"""Constraints on weights."""

import numpy as np
import scipy.sparse as sp
from solver_cases import K

from structsolve.solvers import LinearConstraint, SuperModular, WeightBounds
from structsolve.solvers.weight_constraints import assemble


def rows_of(case, constraints):
    """Return A and b in the enumeration's order, equations as two rows."""
    rows = assemble(constraints, case.problem.space.layout)
    A = np.array([case.flat(row) for row in rows.A.toarray()]).reshape(len(rows.c), -1)
    same = rows.equal
    return np.vstack([A, -A[same]]), np.concatenate([rows.c, -rows.c[same]])


def supermodular():
    """Return rows g(y, y') + g(y + 1, y' + 1) >= g(y, y' + 1) + g(y + 1, y') for all neighbours."""
    table = np.zeros(((K - 1) ** 2, K, K))
    for row, (a, b) in enumerate(np.ndindex(K - 1, K - 1)):
        table[row, a, b] = table[row, a + 1, b + 1] = -1
        table[row, a, b + 1] = table[row, a + 1, b] = 1
    return LinearConstraint({"transition": table}, upper=0.0)


CONSTRAINTS = {
    "signs": [WeightBounds("transition", upper=0.0)],
    "box": [WeightBounds("node", lower=-0.1, upper=np.full((3, K), 0.2))],
    "supermodular": [supermodular()],
    "infeasible-at-0": [
        LinearConstraint({"transition": np.eye(K)}, lower=0.5),
        WeightBounds("start", lower=[0.1, -1, -np.inf], upper=1),
    ],
    "equation": [
        LinearConstraint({"start": np.ones(K), "end": -np.ones(K)}, upper=0.3, lower=0.3),
        LinearConstraint({"node": np.eye(3)}, upper=0, lower=0),
    ],
    "sparse": [
        LinearConstraint(
            {"transition": sp.csr_matrix(np.eye(K * K)[[0, 4]]), "end": np.zeros((2, K))},
            upper=[-0.2, 5.0],
        )
    ],
}

NAMED = dict(CONSTRAINTS, preset=[SuperModular("transition")])
