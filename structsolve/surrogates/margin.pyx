"""Margin rescaling: H_i(w) = max_y L(y, y_i) + <theta_i, mu(y) - mu(y_i)>."""

import numpy as np

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset
from ..alignment cimport align
from ..operators cimport Loss, Oracle, Parts
from ..potentials cimport LinearPotentials
from .base cimport Cut, Surrogate


cdef class MarginRescaling(Surrogate):
    """One call of the loss-augmented oracle (FORMULAS.md section 2, first row).

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

    Raises
    ------
    ValueError
        When the loss neither decomposes over the parts nor is 0-1 with a k-best oracle at hand.
    """

    cdef Oracle oracle
    cdef Parts parts
    cdef Loss loss
    cdef LinearPotentials potentials
    cdef const int* labels
    cdef const int64_t* label_offsets
    cdef Py_ssize_t theta_bytes, label_bytes, pairs
    cdef object owners

    def __init__(self, LinearPotentials potentials, Oracle oracle, Parts parts, Loss loss, labels,
                 label_offsets):
        cdef const int[::1] label_view = labels
        cdef const int64_t[::1] offset_view = label_offsets
        if not (oracle.has_augmented or loss.decomposes or (loss.zero_one and oracle.has_kbest)):
            raise ValueError(
                f"surrogate 'margin' needs a loss that decomposes over the parts, or the 0-1 loss "
                f"with an oracle that has k-best; {type(loss).__name__} does not decompose and "
                f"{type(oracle).__name__} has "
                f"{'k-best but the loss is not 0-1' if oracle.has_kbest else 'no k-best'}"
            )
        self.oracle, self.parts, self.loss, self.potentials = oracle, parts, loss, potentials
        self.owners = (labels, label_offsets)
        self.labels = &label_view[0] if label_view.shape[0] else NULL
        self.label_offsets = &offset_view[0]
        self.max_entries = parts.max_entries
        self.exact = True
        self.has_simplex = parts.indicator and loss.decomposes and not oracle.has_augmented
        longest = int(np.diff(label_offsets).max()) if label_offsets.shape[0] > 1 else 0
        self.pairs = 1 if oracle.has_augmented or loss.decomposes else 2
        self.theta_bytes = 8 * potentials.max_theta + 64
        self.label_bytes = 4 * (longest + 16) * self.pairs + 64
        scratch = oracle.work_bytes if self.pairs == 1 else oracle.kbest_bytes(2)
        self.work_bytes = self.theta_bytes + self.label_bytes + scratch + 192

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.faces``."""
        if not 0 <= i < self.potentials.n:
            raise ValueError(
                f"example {i} of {self.potentials.n}: expected 0 to {self.potentials.n - 1}"
            )
        return self.potentials.theta_size(i), None, None

    cdef int cut(self, Py_ssize_t i, const double* theta, Cut* cut, char* work) except -1 nogil:
        cdef double* augmented = <double*>align(work)
        cdef int* label = <int*>align(work + self.theta_bytes)
        cdef char* scratch = align(work + self.theta_bytes + self.label_bytes)
        cdef const int* truth = self.labels + self.label_offsets[i]
        cdef Py_ssize_t size = self.label_offsets[i + 1] - self.label_offsets[i], j, found
        cdef double value[2]
        cdef double constant, margin = 0
        cdef uint64_t key = 1469598103934665603ULL
        if self.oracle.has_augmented:
            self.oracle.argmax_augmented(i, theta, label, &value[0], &cut.b, scratch)
        elif self.loss.decomposes:
            memcpy(augmented, theta, self.potentials.theta_size(i) * sizeof(double))
            constant = self.loss.augment(i, 1.0, augmented)
            self.oracle.argmax(i, augmented, label, &value[0], scratch)
            cut.b = self.loss.value(i, label)
        else:
            # 0-1 loss: the best label, or the best wrong one if it is within the margin.
            found = self.oracle.kbest(i, theta, 2, label, value, scratch)
            cut.b = self.loss.value(i, label)
            if cut.b == 0 and found > 1 and value[1] + 1 > value[0]:
                label += size
                cut.b = self.loss.value(i, label)
        cut.nnz = self.parts.difference(i, truth, label, cut.index, cut.value)
        for j in range(cut.nnz):
            margin += theta[cut.index[j]] * cut.value[j]
        cut.bound = cut.b - margin
        for j in range(size):
            key = (key ^ <uint64_t><unsigned int>label[j]) * 1099511628211ULL
        cut.key = key
        cut.calls = 1
        return 0

    cdef int simplex(self, Py_ssize_t i, double* b, int* truth) except -1 nogil:
        cdef Py_ssize_t j, size = self.potentials.theta_size(i)
        cdef double constant
        memset(b, 0, size * sizeof(double))
        constant = self.loss.augment(i, 1.0, b)
        for j in range(size):
            b[j] += constant
        truth[0] = self.labels[self.label_offsets[i]]
        return 0
