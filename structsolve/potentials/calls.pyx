# build: glue
"""Calls of feature rows and linear potentials from Python, for tests, scripts and single examples.

As in :mod:`structsolve.structure.calls`, everything is checked before native code sees it: a wrong
type, length or index is a ValueError that names the argument.
"""

import numpy as np

from ..utils.arrays import aligned_zeros
from ..utils.arrays import checked_array as _array

from .features cimport FeatureRows
from .linear cimport LinearPotentials


def _weights(FeatureRows rows not None, Py_ssize_t row, W, writable=False):
    if not 0 <= row < rows.n_rows:
        raise ValueError(f"row is {row}, expected 0 to {rows.n_rows - 1}")
    return _array(W, np.float64, "W", rows.weights_size, writable)


def _indices(array, str what, Py_ssize_t stop):
    picked = _array(array, np.int32, what)
    if picked.min() < 0 or picked.max() >= stop:
        raise ValueError(f"{what}: from {picked.min()} to {picked.max()}, expected 0 to {stop - 1}")
    return picked


def row_score(FeatureRows rows not None, Py_ssize_t row, W):
    """Return the product of a row of features, intercept included, with weights.

    Parameters
    ----------
    rows : FeatureRows
    row : int
        Number of the row.
    W : ndarray of float64 of shape (columns * rows.stride,)
        Weights, flat: one padded row per feature.

    Returns
    -------
    ndarray of float64 of shape (rows.stride,)
    """
    cdef const double[::1] weights = _weights(rows, row, W)
    out = aligned_zeros(rows.stride)
    cdef double[::1] view = out
    with nogil:
        rows.score(row, &weights[0], &view[0])
    return out


def row_add(FeatureRows rows not None, Py_ssize_t row, cols, coefs, W):
    """Add multiples of a row of features to columns of the weights, in place.

    Parameters
    ----------
    rows : FeatureRows
    row : int
        Number of the row.
    cols : ndarray of int32 of shape (m,)
        Columns of W.
    coefs : ndarray of float64 of shape (m,)
        ``coefs[c]`` times the row is added to column ``cols[c]``.
    W : ndarray of float64 of shape (columns * rows.stride,)
    """
    cdef const int[::1] picked = _indices(cols, "cols", rows.stride)
    cdef const double[::1] values = _array(coefs, np.float64, "coefs", cols.size)
    cdef double[::1] weights = _weights(rows, row, W, writable=True)
    cdef Py_ssize_t m = cols.size
    with nogil:
        rows.scatter(row, m, &picked[0], &values[0], &weights[0])


def row_dot(FeatureRows rows not None, Py_ssize_t row, cols, W):
    """Return the inner products of a row of features with columns of the weights.

    Parameters
    ----------
    rows : FeatureRows
    row : int
        Number of the row.
    cols : ndarray of int32 of shape (m,)
        Columns of W.
    W : ndarray of float64 of shape (columns * rows.stride,)

    Returns
    -------
    ndarray of float64 of shape (m,)
    """
    cdef const int[::1] picked = _indices(cols, "cols", rows.stride)
    cdef const double[::1] weights = _weights(rows, row, W)
    cdef Py_ssize_t m = cols.size
    out = np.zeros(m + 1)
    cdef double[::1] view = out
    with nogil:
        rows.gather(row, m, &picked[0], &weights[0], &view[0])
    return out[:m]


def row_gram(FeatureRows rows not None, Py_ssize_t row, Py_ssize_t first, Py_ssize_t last):
    """Return the inner products of a row of features with a range of rows.

    Parameters
    ----------
    rows : FeatureRows
    row : int
        Number of the row.
    first, last : int
        The rows ``first`` to ``last - 1``.

    Returns
    -------
    ndarray of float64 of shape (last - first,)
    """
    if not (0 <= row < rows.n_rows and 0 <= first <= last <= rows.n_rows):
        raise ValueError(
            f"row {row}, rows {first} to {last}: expected them within 0 to {rows.n_rows}"
        )
    out = np.zeros(last - first + 1)
    cdef double[::1] view = out, dense = np.zeros(rows.n_cols + 1)
    with nogil:
        rows.gram_row(row, first, last, &dense[0], &view[0])
    if np.asarray(dense).any():
        raise AssertionError("gram_row() did not leave its scratch memory zero")
    return out[:last - first]


def _theta_size(LinearPotentials potentials not None, Py_ssize_t i):
    if not 0 <= i < potentials.n:
        raise ValueError(f"example {i} of {potentials.n}: expected 0 to {potentials.n - 1}")
    return potentials.theta_size(i)


cdef class _Parts:
    # Checked sparse parts p of example i.
    cdef const int[::1] index
    cdef const double[::1] value
    cdef Py_ssize_t n

    def __init__(self, potentials, i, index, *values):
        self.index = _indices(index, "index", _theta_size(potentials, i))
        self.n = index.size
        if values:  # if values are needed; None needs none
            self.value = _array(values[0], np.float64, "value", self.n)


def score(LinearPotentials potentials not None, Py_ssize_t i, w, double scale=1.0):
    """Return the part scores ``scale * Phi_i w`` of an example.

    Parameters
    ----------
    potentials : LinearPotentials
    i : int
        Number of the example.
    w : ndarray of float64 of shape (potentials.dim,)
    scale : float, default=1

    Returns
    -------
    ndarray of float64 of shape (size of theta_i,)
    """
    theta = aligned_zeros(max(_theta_size(potentials, i), 1))
    cdef const double[::1] weights = _array(w, np.float64, "w", potentials.dim)
    cdef double[::1] out = theta
    with nogil:
        potentials.score(i, &weights[0], scale, &out[0])
    return theta


def add(LinearPotentials potentials not None, Py_ssize_t i, index, value, double coef, w):
    """``w += coef Phi_i' p`` in place, p sparse.

    Parameters
    ----------
    potentials : LinearPotentials
    i : int
        Number of the example.
    index : ndarray of int32 of shape (nnz,)
        Entries of theta_i where p is not zero.
    value : ndarray of float64 of shape (nnz,)
        The values of p there.
    coef : float
    w : ndarray of float64 of shape (potentials.dim,)
    """
    cdef _Parts p = _Parts(potentials, i, index, value)
    cdef double[::1] weights = _array(w, np.float64, "w", potentials.dim, writable=True)
    with nogil:
        potentials.add(i, p.n, &p.index[0], &p.value[0], coef, &weights[0])


def dot(LinearPotentials potentials not None, Py_ssize_t i, index, value, w):
    """Return ``<Phi_i w, p>`` for sparse p.

    Parameters
    ----------
    potentials : LinearPotentials
    i : int
        Number of the example.
    index : ndarray of int32 of shape (nnz,)
    value : ndarray of float64 of shape (nnz,)
        p, as for :func:`add`.
    w : ndarray of float64 of shape (potentials.dim,)

    Returns
    -------
    float
    """
    cdef _Parts p = _Parts(potentials, i, index, value)
    cdef const double[::1] weights = _array(w, np.float64, "w", potentials.dim)
    cdef double total
    with nogil:
        total = potentials.dot(i, p.n, &p.index[0], &p.value[0], &weights[0])
    return total


def add_gram(LinearPotentials potentials not None, Py_ssize_t i, index, value, double coef, u):
    """``u += coef Phi_i Phi_i' p`` in place, p sparse.

    Parameters
    ----------
    potentials : LinearPotentials
    i : int
        Number of the example.
    index : ndarray of int32 of shape (nnz,)
    value : ndarray of float64 of shape (nnz,)
        p, as for :func:`add`.
    coef : float
    u : ndarray of float64 of shape (size of theta_i,)
    """
    cdef _Parts p = _Parts(potentials, i, index, value)
    cdef double[::1] out = _array(u, np.float64, "u", _theta_size(potentials, i), writable=True)
    cdef double[::1] scratch = np.zeros(potentials.scratch_size)
    with nogil:
        potentials.add_gram(i, p.n, &p.index[0], &p.value[0], coef, &out[0], &scratch[0])


def move_gram(LinearPotentials potentials not None, Py_ssize_t i, index, double coef, u, theta):
    """Add ``coef`` times the entries of u that :func:`add_gram` wrote to theta, and clear them.

    Parameters
    ----------
    potentials : LinearPotentials
    i : int
        Number of the example.
    index : ndarray of int32 of shape (nnz,)
        Entries of p, as for :func:`add_gram`.
    coef : float
    u : ndarray of float64 of shape (size of theta_i,)
    theta : ndarray of float64 like u, or None
        None only clears u.
    """
    cdef _Parts p = _Parts(potentials, i, index)
    size = _theta_size(potentials, i)
    cdef double[::1] source = _array(u, np.float64, "u", size, writable=True)
    cdef double[::1] target
    if theta is None:
        with nogil:
            potentials.clear_gram(i, p.n, &p.index[0], &source[0])
        return
    target = _array(theta, np.float64, "theta", size, writable=True)
    with nogil:
        potentials.move_gram(i, p.n, &p.index[0], coef, &source[0], &target[0])
