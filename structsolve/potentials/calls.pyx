# build: glue
"""Python faces of feature rows and linear potentials, for tests and scripts.

As in :mod:`structsolve.structure.calls`, everything is checked before native code sees it.
"""

import numpy as np

from ..utils.arrays import aligned_zeros
from ..utils.arrays import checked_array as _array

from .features cimport Design
from .linear cimport LinearPotentials


def _row(Design design, Py_ssize_t row, W, writable=False):
    if not 0 <= row < design.n_rows:
        raise ValueError(f"row is {row}, expected 0 to {design.n_rows - 1}")
    rows = design.n_cols + (design.intercept != 0)
    return _array(W, np.float64, "W", rows * design.stride, writable)


def _columns(Design design, cols):
    picked = _array(cols, np.int32, "cols")
    if picked.min() < 0 or picked.max() >= design.stride:
        raise ValueError(
            f"cols: from {picked.min()} to {picked.max()}, expected 0 to {design.stride - 1}"
        )
    return picked


def design_score(Design design not None, Py_ssize_t row, W):
    """Product of a row of features (intercept included) with flat weights W."""
    cdef const double[::1] weights = _row(design, row, W)
    out = aligned_zeros(design.stride)
    cdef double[::1] view = out
    with nogil:
        design.score(row, &weights[0], &view[0])
    return out


def design_add(Design design not None, Py_ssize_t row, cols, coefs, W):
    """Add ``coefs[c]`` times a row of features to column ``cols[c]`` of flat weights W."""
    cdef const int[::1] picked = _columns(design, cols)
    cdef const double[::1] values = _array(coefs, np.float64, "coefs", cols.size)
    cdef double[::1] weights = _row(design, row, W, writable=True)
    cdef Py_ssize_t m = cols.size
    with nogil:
        design.scatter(row, m, &picked[0], &values[0], &weights[0])


def design_dot(Design design not None, Py_ssize_t row, cols, W):
    """Inner products of a row of features with the columns ``cols`` of flat weights W."""
    cdef const int[::1] picked = _columns(design, cols)
    cdef const double[::1] weights = _row(design, row, W)
    cdef Py_ssize_t m = cols.size
    out = np.zeros(m + 1)
    cdef double[::1] view = out
    with nogil:
        design.gather(row, m, &picked[0], &weights[0], &view[0])
    return out[:m]


def design_gram(Design design not None, Py_ssize_t row, Py_ssize_t first, Py_ssize_t last):
    """Inner products of a row of features with the rows first .. last - 1."""
    if not (0 <= row < design.n_rows and 0 <= first <= last <= design.n_rows):
        raise ValueError(
            f"row {row}, rows {first} to {last}: expected them within 0 to {design.n_rows}"
        )
    out = np.zeros(last - first + 1)
    cdef double[::1] view = out, dense = np.zeros(design.n_cols + 1)
    with nogil:
        design.gram_row(row, first, last, &dense[0], &view[0])
    if np.asarray(dense).any():
        raise AssertionError("gram_row() did not leave its scratch memory zero")
    return out[:last - first]


def _example(LinearPotentials potentials, Py_ssize_t i):
    if not 0 <= i < potentials.n:
        raise ValueError(f"example {i} of {potentials.n}: expected 0 to {potentials.n - 1}")
    return potentials.theta_size(i)


def _entries(LinearPotentials potentials, Py_ssize_t i, index, value=None):
    size = _example(potentials, i)
    picked = _array(index, np.int32, "index")
    if picked.min() < 0 or picked.max() >= size:
        raise ValueError(
            f"index: from {picked.min()} to {picked.max()}, expected 0 to {size - 1}"
        )
    if value is None:
        return picked
    return picked, _array(value, np.float64, "value", index.size)


def score(LinearPotentials potentials not None, Py_ssize_t i, w, double scale=1.0):
    """Part scores ``scale * Phi_i w`` of example ``i``."""
    theta = aligned_zeros(max(_example(potentials, i), 1))
    cdef const double[::1] weights = _array(w, np.float64, "w", potentials.dim)
    cdef double[::1] out = theta
    with nogil:
        potentials.score(i, &weights[0], scale, &out[0])
    return theta


def add(LinearPotentials potentials not None, Py_ssize_t i, index, value, double coef, w):
    """``w += coef Phi_i' p`` in place."""
    picked, values = _entries(potentials, i, index, value)
    cdef const int[::1] index_view = picked
    cdef const double[::1] value_view = values
    cdef double[::1] weights = _array(w, np.float64, "w", potentials.dim, writable=True)
    cdef Py_ssize_t n = index.size
    with nogil:
        potentials.add(i, n, &index_view[0], &value_view[0], coef, &weights[0])


def dot(LinearPotentials potentials not None, Py_ssize_t i, index, value, w):
    """``<Phi_i w, p>``."""
    picked, values = _entries(potentials, i, index, value)
    cdef const int[::1] index_view = picked
    cdef const double[::1] value_view = values
    cdef const double[::1] weights = _array(w, np.float64, "w", potentials.dim)
    cdef Py_ssize_t n = index.size
    cdef double total
    with nogil:
        total = potentials.dot(i, n, &index_view[0], &value_view[0], &weights[0])
    return total


def add_gram(LinearPotentials potentials not None, Py_ssize_t i, index, value, double coef, u):
    """``u += coef Phi_i Phi_i' p`` in place."""
    picked, values = _entries(potentials, i, index, value)
    cdef const int[::1] index_view = picked
    cdef const double[::1] value_view = values
    cdef double[::1] out = _array(u, np.float64, "u", _example(potentials, i), writable=True)
    cdef double[::1] scratch = np.zeros(potentials.scratch_size)
    cdef Py_ssize_t n = index.size
    with nogil:
        potentials.add_gram(i, n, &index_view[0], &value_view[0], coef, &out[0], &scratch[0])


def move_gram(LinearPotentials potentials not None, Py_ssize_t i, index, double coef, u, theta):
    """Move what ``add_gram`` left in u, times ``coef``, to theta; u is zero again there.

    Without a theta, u is set to zero.
    """
    cdef const int[::1] index_view = _entries(potentials, i, index)
    size = _example(potentials, i)
    cdef double[::1] source = _array(u, np.float64, "u", size, writable=True)
    cdef double[::1] target
    cdef Py_ssize_t n = index.size
    if theta is None:
        with nogil:
            potentials.clear_gram(i, n, &index_view[0], &source[0])
        return
    target = _array(theta, np.float64, "theta", size, writable=True)
    with nogil:
        potentials.move_gram(i, n, &index_view[0], coef, &source[0], &target[0])
