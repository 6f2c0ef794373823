"""Python faces of what projections and losses give beside marginals and losses of labels.

Bounds, states, terms, slopes and samples of projections, and costs of losses, checked as in
:mod:`structsolve.structure.calls`.
"""

import numpy as np

from .calls import _label, _label_size, scores_of, work_for
from ..utils.arrays import checked_array

from ..operators cimport Loss, Projection


def _state(Projection projection, i, state, str what="state"):
    array = checked_array(state, np.float64, what, state_size(projection, i))
    if not np.isfinite(array).all() or array.min() < 0:
        raise ValueError(f"{what}: found negative numbers, NaN or infinity, expected marginals")
    return array


def _theta_size(operator, i):
    if i < 0:
        raise ValueError(f"example {i}: expected a number of at least 0")
    told = getattr(operator, "limits", None)
    if told is None or told(i)[0] is None:
        raise ValueError(
            f"{type(operator).__name__} does not tell the sizes of example {i}; give it a method "
            "limits(i)"
        )
    return told(i)[0]


def _needs(operator, str flag):
    if not getattr(operator, flag):
        raise ValueError(f"{type(operator).__name__} has {flag} = False: it cannot be asked that")


def project_bounded(Projection projection not None, Py_ssize_t i, theta):
    """Regularised maximiser of example ``i`` and an upper bound of the maximum.

    Returns
    -------
    marginals : ndarray
        Flat, in the layout of ``theta``.
    value, bound : float
    """
    cdef const double[::1] scores = scores_of(projection, i, theta)
    marginals = np.zeros(max(theta.size, 1))
    cdef double[::1] out = marginals, work = work_for(projection)
    cdef double value = 0, bound = 0
    with nogil:
        projection.project_bounded(i, &scores[0], &out[0], &value, &bound, <char*>&work[0])
    return marginals[:theta.size], value, bound


def state_size(Projection projection not None, Py_ssize_t i):
    """Doubles in a state of example ``i``; those of theta where states are marginals."""
    size = _theta_size(projection, i)
    return projection.state_size(i) if projection.has_state else size


def project_state(Projection projection not None, Py_ssize_t i, theta):
    """State of the regularised maximiser of example ``i``.

    Returns
    -------
    state : ndarray
        Of :func:`state_size` doubles; the marginals where ``has_state`` is False.
    value, bound : float
    """
    cdef const double[::1] scores = scores_of(projection, i, theta)
    state = np.zeros(max(state_size(projection, i), 1))
    cdef double[::1] out = state, work = work_for(projection)
    cdef double value = 0, bound = 0
    with nogil:
        projection.project_state(i, &scores[0], &out[0], &value, &bound, <char*>&work[0])
    return state[:state_size(projection, i)], value, bound


def state_of(Projection projection not None, Py_ssize_t i, label):
    """State of one label of example ``i``."""
    _needs(projection, "has_state")
    cdef const int[::1] view = _label(projection, i, label)
    state = np.zeros(max(state_size(projection, i), 1))
    cdef double[::1] out = state
    with nogil:
        projection.state_of(i, &view[0], &out[0])
    return state[:state_size(projection, i)]


def pool(Projection projection not None, Py_ssize_t i, state):
    """Marginals, flat in the layout of ``theta``, of a state of example ``i``."""
    _needs(projection, "has_state")
    cdef const double[::1] given = _state(projection, i, state)
    size = _theta_size(projection, i)
    marginals = np.zeros(max(size, 1))
    cdef double[::1] out = marginals
    with nogil:
        projection.pool(i, &given[0], &out[0])
    return marginals[:size]


def term(Projection projection not None, Py_ssize_t i, state):
    """Value of the projection's G at a state of example ``i``."""
    _needs(projection, "has_term")
    cdef const double[::1] given = _state(projection, i, state)
    cdef double[::1] work = work_for(projection)
    cdef double value
    with nogil:
        value = projection.term(i, &given[0], <char*>&work[0])
    return value


def slope(Projection projection not None, Py_ssize_t i, a, b, double gamma):
    """Derivative of G at ``(1 - gamma) a + gamma b`` towards the state ``b``."""
    _needs(projection, "has_term")
    cdef const double[::1] first = _state(projection, i, a, "a")
    cdef const double[::1] second = _state(projection, i, b, "b")
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma is {gamma}, expected a number from 0 to 1")
    cdef double[::1] work = work_for(projection)
    cdef double value
    with nogil:
        value = projection.slope(i, &first[0], &second[0], gamma, <char*>&work[0])
    return value


def sample(Projection projection not None, Py_ssize_t i, theta, uniforms):
    """Labels of example ``i`` drawn from ``p(y) ~ exp <theta, mu(y)>``.

    Parameters
    ----------
    projection : Projection
    i : int
    theta : ndarray of float64
    uniforms : ndarray of float64 of shape (n, label size)
        Numbers from [0, 1), one for each entry of each label.

    Returns
    -------
    labels : ndarray of int32 of shape (n, label size)
    """
    _needs(projection, "has_samples")
    cdef const double[::1] scores = scores_of(projection, i, theta)
    if not isinstance(uniforms, np.ndarray) or uniforms.ndim != 2:
        raise ValueError("uniforms: expected an array of shape (n, label size)")
    size = _label_size(projection, i, uniforms.shape[1])
    if not uniforms.size:
        raise ValueError("uniforms is empty: expected at least one row")
    cdef const double[::1] given = checked_array(
        np.ascontiguousarray(uniforms).ravel(), np.float64, "uniforms")
    if not (uniforms.min() >= 0 and uniforms.max() < 1):
        raise ValueError(
            f"uniforms: found numbers from {uniforms.min()} to {uniforms.max()}, expected [0, 1)"
        )
    labels = np.zeros((len(uniforms), size), dtype=np.int32)
    cdef int[:, ::1] out = labels
    cdef double[::1] work = work_for(projection)
    cdef Py_ssize_t n = len(uniforms)
    with nogil:
        projection.sample(i, &scores[0], n, &given[0], &out[0, 0], <char*>&work[0])
    return labels


def costs(Loss loss not None, Py_ssize_t i, nu, bint transposed=False, double scale=1.0):
    """What each part of a prediction costs where truths have the marginals ``nu``.

    Parameters
    ----------
    loss : Loss
    i : int
    nu : ndarray of float64
        Marginals in the layout of theta.
    transposed : bool
        What each part of a truth costs where predictions have them.
    scale : float

    Returns
    -------
    costs : ndarray
        In the layout of theta, so that ``<costs, mu(y)> + const`` is the mean loss of y.
    const : float
    """
    _needs(loss, "has_costs")
    cdef const double[::1] given = checked_array(nu, np.float64, "nu")
    needed = _theta_size(loss, i)
    if nu.size < needed:
        raise ValueError(f"nu: found {nu.size} entries, expected at least {needed}")
    found = np.zeros(max(nu.size, 1))
    cdef double[::1] out = found
    cdef double const
    with nogil:
        const = loss.costs(i, &given[0], transposed, scale, &out[0])
    return found[:nu.size], const
