"""Losses of many labels at once."""

import numpy as np

from libc.stdint cimport int64_t
from ..operators cimport Loss


def losses(Loss loss, const int[::1] labels, const int64_t[::1] label_offsets):
    """Loss of every example's label against the truth that ``loss`` is bound to."""
    cdef Py_ssize_t i, n = label_offsets.shape[0] - 1
    values = np.empty(n)
    cdef double[::1] out = values
    with nogil:
        for i in range(n):
            out[i] = loss.value(i, &labels[0] + label_offsets[i])
    return values
