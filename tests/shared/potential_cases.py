"""Potentials against their definition: an example's parts as a linear map of w."""

import numpy as np
import pytest

from structsolve.potentials.calls import add, add_gram, dot, score


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
