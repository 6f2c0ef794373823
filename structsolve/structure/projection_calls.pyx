# build: glue
"""Python calls of projections (states, terms, slopes, samples, derivatives) and loss costs.

Arguments are checked as in :mod:`structsolve.structure.calls`.
"""

import numpy as np

from libc.math cimport NAN

from .call_arguments import label_of, memory, scores_of
from ..utils.arrays import checked_array

from ..operators cimport Loss, Projection


def _state(Projection projection not None, i, state, str what="state"):
    array = checked_array(state, np.float64, what, state_size(projection, i))
    # Rounding may leave a state slightly below 0.
    if not np.isfinite(array).all() or array.min() < -1e-9:
        raise ValueError(f"{what}: found negative numbers, NaN or infinity, expected marginals")
    return array


def _needs(operator, str flag):
    if not getattr(operator, flag):
        raise ValueError(f"{type(operator).__name__} has {flag} = False: call not supported")


def state_size(Projection projection not None, Py_ssize_t i):
    """Return the number of doubles in a state of example ``i``.

    Parameters
    ----------
    projection : Projection
    i : int

    Returns
    -------
    int
        The size of theta if states are marginals.
    """
    size = projection.layout.sizes(i)[0]
    return projection.state_size(i) if projection.has_state else size


def project_state(Projection projection not None, Py_ssize_t i, theta, room=None):
    """Return the state of the regularised maximiser of example ``i``.

    Parameters
    ----------
    projection : Projection
    i : int
    theta : ndarray of float64
    room : callable, optional
        Gives the memory to write to.

    Returns
    -------
    state : ndarray
        :func:`state_size` doubles; the marginals if ``has_state`` is False.
    value, bound : float
        G plus the score of the state; an upper bound of the maximum.
    """
    cdef const double[::1] scores = scores_of(projection, i, theta)
    size = state_size(projection, i)
    state = memory(room, "state", size, np.float64)
    cdef double[::1] out = state
    cdef char[::1] work = memory(room, "work", projection.work_bytes, np.int8)
    cdef double value = NAN, bound = NAN
    with nogil:
        projection.project_state(i, &scores[0], &out[0], &value, &bound, &work[0])
    return state[:size], value, bound


def state_of(Projection projection not None, Py_ssize_t i, label, room=None):
    """Return the state of one label of example ``i``.

    Parameters
    ----------
    projection : Projection
    i : int
    label : ndarray of int32
    room : callable, optional
        Gives the memory to write to.

    Returns
    -------
    ndarray of float64
    """
    _needs(projection, "has_state")
    cdef const int[::1] view = label_of(projection, i, label)
    size = state_size(projection, i)
    state = memory(room, "state", size, np.float64)
    cdef double[::1] out = state
    with nogil:
        projection.state_of(i, &view[0], &out[0])
    return state[:size]


def pool(Projection projection not None, Py_ssize_t i, state, room=None):
    """Return the marginals of a state of example ``i``.

    Parameters
    ----------
    projection : Projection
    i : int
    state : ndarray of float64
    room : callable, optional
        Gives the memory to write to.

    Returns
    -------
    ndarray of float64
        Flat, in the layout of theta.
    """
    _needs(projection, "has_state")
    cdef const double[::1] given = _state(projection, i, state)
    size = projection.layout.sizes(i)[0]
    marginals = memory(room, "marginals", size, np.float64)
    cdef double[::1] out = marginals
    with nogil:
        projection.pool(i, &given[0], &out[0])
    return marginals[:size]


def term(Projection projection not None, Py_ssize_t i, state, room=None):
    """Return the value of G at a state of example ``i``.

    Parameters
    ----------
    projection : Projection
    i : int
    state : ndarray of float64
    room : callable, optional
        Gives the memory to write to.

    Returns
    -------
    float
    """
    _needs(projection, "has_term")
    cdef const double[::1] given = _state(projection, i, state)
    cdef char[::1] work = memory(room, "work", projection.work_bytes, np.int8)
    cdef double value
    with nogil:
        value = projection.term(i, &given[0], &work[0])
    return value


def slope(Projection projection not None, Py_ssize_t i, a, b, double gamma, room=None):
    """Return the derivative of G at ``(1 - gamma) a + gamma b`` from ``a`` towards ``b``.

    Parameters
    ----------
    projection : Projection
    i : int
    a, b : ndarray of float64
        States.
    gamma : float
        From 0 to 1.
    room : callable, optional
        Gives the memory to write to.

    Returns
    -------
    float
        May be infinite for gamma 0 and 1.
    """
    _needs(projection, "has_term")
    cdef const double[::1] first = _state(projection, i, a, "a")
    cdef const double[::1] second = _state(projection, i, b, "b")
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma is {gamma}, expected a number from 0 to 1")
    cdef char[::1] work = memory(room, "work", projection.work_bytes, np.int8)
    cdef double value
    with nogil:
        value = projection.slope(i, &first[0], &second[0], gamma, &work[0])
    return value


def sample(Projection projection not None, Py_ssize_t i, theta, uniforms, room=None):
    """Draw labels of example ``i`` from ``p(y) ~ exp <theta, mu(y)>``.

    Parameters
    ----------
    projection : Projection
    i : int
    theta : ndarray of float64
    uniforms : ndarray of float64 of shape (n, label size)
        Numbers from [0, 1), one for each entry of each label.
    room : callable, optional
        Gives the memory to write to.

    Returns
    -------
    labels : ndarray of int32 of shape (n, label size)
    """
    _needs(projection, "has_samples")
    cdef const double[::1] scores = scores_of(projection, i, theta)
    if not isinstance(uniforms, np.ndarray) or uniforms.ndim != 2:
        raise ValueError("uniforms: expected an array of shape (n, label size)")
    size = projection.layout.sizes(i)[1]
    if uniforms.shape[1] != size:
        raise ValueError(f"uniforms: found {uniforms.shape[1]} columns, expected {size}")
    if not len(uniforms):
        raise ValueError("uniforms is empty: expected at least one row")
    if not size:    # the only label has no entries
        return np.zeros(uniforms.shape, dtype=np.int32)
    cdef const double[::1] given = checked_array(
        np.ascontiguousarray(uniforms).ravel(), np.float64, "uniforms")
    if not (uniforms.min() >= 0 and uniforms.max() < 1):
        raise ValueError(
            f"uniforms: found numbers from {uniforms.min()} to {uniforms.max()}, expected [0, 1)"
        )
    labels = memory(room, "labels", uniforms.size, np.int32)
    cdef int[::1] out = labels
    cdef char[::1] work = memory(room, "work", projection.work_bytes, np.int8)
    cdef Py_ssize_t n = len(uniforms)
    with nogil:
        projection.sample(i, &scores[0], n, &given[0], &out[0], &work[0])
    return labels[:uniforms.size].reshape(uniforms.shape)


def derivative(Projection projection not None, Py_ssize_t i, theta, direction, room=None):
    """Return the derivative of the marginals of example ``i`` along ``direction``.

    Parameters
    ----------
    projection : Projection
    i : int
    theta : ndarray of float64
    direction : ndarray of float64
        In the layout of theta; finite.
    room : callable, optional
        Gives the memory to write to.

    Returns
    -------
    ndarray of float64
        ``J direction`` in the layout of theta, where J is the Jacobian d marginals / d theta.  J is
        symmetric, so this is also the vector-Jacobian product.
    """
    _needs(projection, "has_derivative")
    cdef const double[::1] scores = scores_of(projection, i, theta)
    size = projection.layout.sizes(i)[0]
    cdef const double[::1] given = checked_array(direction, np.float64, "direction", size)
    if not np.isfinite(direction).all():
        raise ValueError("direction: found NaN or infinity, expected finite numbers")
    product = memory(room, "derivative", size, np.float64)
    cdef double[::1] out = product
    cdef char[::1] work = memory(room, "work", projection.derivative_bytes(), np.int8)
    with nogil:
        projection.derivative(i, &scores[0], &given[0], &out[0], &work[0])
    return product[:size]


def costs(Loss loss not None, Py_ssize_t i, nu, bint transposed=False, double scale=1.0, room=None):
    """Return the cost of each part of a prediction, given the marginals ``nu`` of true labels.

    Parameters
    ----------
    loss : Loss
    i : int
    nu : ndarray of float64
        Marginals in the layout of theta.
    transposed : bool
        If True, return the cost of each part of a true label, given the marginals ``nu`` of
        predictions.
    scale : float
    room : callable, optional
        Gives the memory to write to.

    Returns
    -------
    costs : ndarray
        In the layout of theta, so that ``<costs, mu(y)> + const`` is the mean loss of y.
    const : float
    """
    _needs(loss, "has_costs")
    cdef const double[::1] given = checked_array(nu, np.float64, "nu", loss.layout.sizes(i)[0])
    scores = memory(room, "theta", nu.size, np.float64)
    scores[:nu.size] = 0
    cdef double[::1] out = scores
    cdef double const
    with nogil:
        const = loss.costs(i, &given[0], transposed, scale, &out[0])
    return scores[:nu.size], const
