"""Potentials against their definition: an example's parts as a linear map of w."""

import numpy as np
import pytest

from structsolve import StructuredSVM
from structsolve.potentials.calls import add, add_gram, dot, score
from structsolve.solvers.driver import drive
from structsolve.solvers.run import Start


def adjoint_agrees(potentials, i, w, theta, index, value, gram_atol, atol=1e-12):
    """Check ``<theta, p>``, its adjoint and Gram matrix; theta are the scores of w, p the parts."""
    p = np.zeros(theta.size)
    np.add.at(p, index, value)
    assert dot(potentials, i, index, value, w) == pytest.approx(p @ theta, abs=atol)
    adjoint = np.zeros(w.size)
    add(potentials, i, index, value, 1.0, adjoint)
    assert adjoint @ w == pytest.approx(p @ theta, abs=atol)
    u = np.zeros(theta.size)
    add_gram(potentials, i, index, value, 1.5, u)
    np.testing.assert_allclose(u, score(potentials, i, adjoint, 1.5), atol=gram_atol)


def trained(problem, alpha, solver, passes=3000, tol=1e-6):
    """The weights by a solver named as of estimators, and the last record."""
    model = StructuredSVM(solver=solver, alpha=alpha, tol=tol, max_iter=passes)
    run = model._solver().start(Start(problem, alpha, np.random.default_rng(0), 1, None, tol))
    outcome = drive(run, passes, tol)
    return outcome.w, outcome.history[-1]
