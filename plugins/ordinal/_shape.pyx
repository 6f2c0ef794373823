# build: glue
"""The parts of the labels of the threshold model: steps along one direction.

Class k scores ``k u - (b_1 + ... + b_k)`` for the direction's score u: its parts are k for the
direction and -1 for each threshold up to b_k.
"""

cimport cython
from structsolve.operators cimport Parts
from structsolve.part_layout cimport PartLayout


@cython.final
cdef class ThresholdParts(Parts):
    """Parts: k for the direction, -1 for every threshold below class k.

    Parameters
    ----------
    layout : PartLayout
        Has thresholds in a shared block, one node block of shape (1,), one node per example.
    """

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        # A single class has no thresholds.
        self.n_states = self.max_entries = layout.shapes.get("threshold", (0,))[0] + 1

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        cdef int lowest = 0
        return self.difference(i, label, &lowest, index, value)

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        cdef int k, sign = 1 if truth[0] > label[0] else -1, n = 0
        cdef int low = min(truth[0], label[0]), high = max(truth[0], label[0])
        if low == high:
            return 0
        for k in range(low, high):
            index[n], value[n] = k, -sign
            n += 1
        index[n], value[n] = <int>self.layout.shared_size, truth[0] - label[0]
        return n + 1
