"""What surrogates share whose cut is that of one label: the operators, and how a cut is written."""

import numpy as np

from ..structure.label_key cimport label_key


cdef class OneLabel(Surrogate):
    """Holds what such a surrogate needs, and writes entries and key of a label's cut.

    Parameters
    ----------
    potentials : LinearPotentials
        For the sizes of the scores only.
    oracle, parts, loss : Oracle, Parts, Loss
        Of the structure, bound to the same examples.
    labels : ndarray of int32
        True labels, one after the other.
    label_offsets : ndarray of int64
        Where each example's label starts.
    """

    def __init__(self, LinearPotentials potentials, Oracle oracle, Parts parts, Loss loss, labels,
                 label_offsets):
        cdef const int[::1] label_view = labels
        cdef const int64_t[::1] offset_view = label_offsets
        self.oracle, self.parts, self.loss, self.potentials = oracle, parts, loss, potentials
        self.owners = (labels, label_offsets)
        self.labels = &label_view[0] if label_view.shape[0] else NULL
        self.label_offsets = &offset_view[0]
        self.max_entries = parts.max_entries
        self.exact = True
        self.longest = int(np.diff(label_offsets).max()) if label_offsets.shape[0] > 1 else 0
        self.theta_bytes = 8 * potentials.max_theta + 64

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        if not 0 <= i < self.potentials.n:
            raise ValueError(
                f"example {i} of {self.potentials.n}: expected 0 to {self.potentials.n - 1}"
            )
        return self.potentials.theta_size(i), None, None

    cdef double point_to(self, Py_ssize_t i, const double* theta, const int* label,
                         Cut* cut) except? -1 nogil:
        cdef const int* truth = self.labels + self.label_offsets[i]
        cdef Py_ssize_t j
        cdef double margin = 0
        cut.nnz = self.parts.difference(i, truth, label, cut.index, cut.value)
        for j in range(cut.nnz):
            margin -= theta[cut.index[j]] * cut.value[j]
        cut.key = label_key(label, self.label_offsets[i + 1] - self.label_offsets[i])
        return margin
