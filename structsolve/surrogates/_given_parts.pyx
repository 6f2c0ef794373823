# build: glue
"""Parts that are given in place of labels: marginals of every example's nodes and pairs."""

from libc.stdint cimport int64_t
from ..operators cimport Parts
from ..part_layout cimport PartLayout

import numpy as np
from ..utils.arrays import checked_array


cdef class GivenParts(Parts):
    """Encodes any label of an example as the parts that are given for it.

    Parameters
    ----------
    parts : Parts
        Of the structure, bound to the same examples.
    starts : ndarray of int64 of shape (n + 1,)
        First entry of each example.
    index : ndarray of int32
        Positions in theta.
    value : ndarray of float64
    """

    cdef const int64_t[::1] starts
    cdef const int[::1] index
    cdef const double[::1] value

    def __init__(self, Parts parts not None, starts, index, value):
        cdef PartLayout layout = parts.layout
        cdef Py_ssize_t i, j
        super().__init__(layout)
        self.starts = checked_array(starts, np.int64, "starts", layout.n + 1)
        size = len(value)
        self.index = checked_array(index, np.int32, "index", size)
        self.value = checked_array(value, np.float64, "value", size)
        if self.starts[0] != 0 or self.starts[layout.n] != size:
            raise ValueError(f"starts end at {self.starts[layout.n]}, expected 0 to {size}")
        if (np.diff(starts) < 0).any():
            raise ValueError("starts decrease, expected rising numbers")
        for i in range(layout.n):
            for j in range(self.starts[i], self.starts[i + 1]):
                if not 0 <= self.index[j] < layout.theta_size(i):
                    raise ValueError(f"index {self.index[j]} of example {i} is no part of it")
            self.max_entries = max(self.max_entries, self.starts[i + 1] - self.starts[i])
        self.n_states = parts.n_states

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        cdef Py_ssize_t first = self.starts[i], n = self.starts[i + 1] - first, k
        for k in range(n):
            index[k], value[k] = self.index[first + k], self.value[first + k]
        return n
