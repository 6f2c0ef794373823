"""Loop that writes the parts of labels to the arrays of a batch."""

import numpy as np

from libc.string cimport memset
from ..operators cimport Parts
from ..part_layout cimport PartLayout
from ._sheets cimport Sheet

from ..utils.arrays import aligned_zeros


cdef int _refuse(Py_ssize_t i) except -1 with gil:
    raise ValueError(f"example {i}: its label has parts that the example does not have")


def write_parts(Sheet out not None, Parts parts not None, const int[::1] labels not None):
    """Write mu(y) of one label per example.

    Parameters
    ----------
    out : Sheet
        Overwritten; has separate shared blocks for each example.
    parts : Parts
        Bound to the same examples.
    labels : ndarray of int32
        Labels of all examples, concatenated and checked.

    Raises
    ------
    ValueError
        The message names the example whose label has parts beyond its own.
    """
    cdef PartLayout layout = out.layout
    cdef double[::1] dense = aligned_zeros(layout.max_theta + 8)
    cdef double[::1] value = np.zeros(parts.max_entries + 1)
    cdef int[::1] index = np.zeros(parts.max_entries + 1, np.int32)
    cdef Py_ssize_t i, j, k, n, size
    cdef const int* label = &labels[0] if labels.shape[0] else NULL
    with nogil:
        for i in range(layout.n):
            size = layout.theta_size(i)
            memset(&dense[0], 0, size * sizeof(double))
            n = parts.encode(i, label + layout.label_offsets[i], &index[0], &value[0])
            for k in range(n):
                if not 0 <= index[k] < size:
                    _refuse(i)
                dense[index[k]] += value[k]
            out.write(i, &dense[0], 1)
            for j in range(layout.shared_size):
                out.shared[i * out.shared_step + j] = dense[j]
    out.store(out.shared)
