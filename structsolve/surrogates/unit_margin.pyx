"""Margins of 1 in units of the loss: H_i(w) = max(0, max_y 1 + h(y) / g(y))."""

import numpy as np

from libc.math cimport isfinite
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy
from ..alignment cimport align
from ..operators cimport Loss, Oracle, Parts
from ..potentials cimport LinearPotentials
from .base cimport Cut, Surrogate


cdef int _unbounded(Py_ssize_t i) except -1 with gil:
    raise ValueError(
        f"example {i}: a label other than the truth has the loss 0, by which its margin cannot be "
        "divided; use a loss that is positive for every wrong label, or surrogate='margin'"
    )


cdef class UnitMarginRescaling(Surrogate):
    """Dinkelbach's method: the oracle is asked for ``h - t g`` while the best ratio t rises.

    The first t is -1, that is margin rescaling: where it has no label above 0, no ratio is above -1.
    Every further label has a larger ratio; there are finitely many, and few are seen.

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
        When the oracle may miss the best label, or the loss does not decompose.
    """

    cdef Oracle oracle
    cdef Parts parts
    cdef Loss loss
    cdef LinearPotentials potentials
    cdef const int* labels
    cdef const int64_t* label_offsets
    cdef Py_ssize_t theta_bytes, label_bytes
    cdef object owners

    def __init__(self, LinearPotentials potentials, Oracle oracle, Parts parts, Loss loss, labels,
                 label_offsets):
        cdef const int[::1] label_view = labels
        cdef const int64_t[::1] offset_view = label_offsets
        if not loss.decomposes:
            raise ValueError(
                f"surrogate 'unit-margin' needs a loss that decomposes over the parts, which "
                f"{type(loss).__name__} does not; use surrogate='margin'"
            )
        if not oracle.exact:
            raise ValueError(
                f"surrogate 'unit-margin' needs an oracle that finds the best label, and "
                f"{type(oracle).__name__} may miss it; use surrogate='margin'"
            )
        self.oracle, self.parts, self.loss, self.potentials = oracle, parts, loss, potentials
        self.owners = (labels, label_offsets)
        self.labels = &label_view[0] if label_view.shape[0] else NULL
        self.label_offsets = &offset_view[0]
        self.max_entries = parts.max_entries
        self.exact = True
        longest = int(np.diff(label_offsets).max()) if label_offsets.shape[0] > 1 else 0
        self.theta_bytes = 8 * potentials.max_theta + 64
        self.label_bytes = 8 * (longest + 16) + 64
        self.work_bytes = self.theta_bytes + self.label_bytes + oracle.work_bytes + 192

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
        cdef const int* truth = self.labels + self.label_offsets[i]
        cdef Py_ssize_t size = self.label_offsets[i + 1] - self.label_offsets[i], j
        cdef int* best = label + size
        cdef char* scratch = align(work + self.theta_bytes + self.label_bytes)
        cdef double value, h, g, ratio = -1
        cdef uint64_t key = 1469598103934665603ULL
        # Until there is a better one, the cut is that of the truth: 0.
        memcpy(best, truth, size * sizeof(int))
        cut.calls = 0
        while True:
            memcpy(augmented, theta, self.potentials.theta_size(i) * sizeof(double))
            self.loss.augment(i, -ratio, augmented)
            self.oracle.argmax(i, augmented, label, &value, scratch)
            cut.calls += 1
            g = self.loss.value(i, label)
            h = self._margin(i, theta, truth, label, cut)
            if not g > 0:
                # Rounding may hide how small a ratio is; a margin that is there is another matter.
                if h > 0:
                    return _unbounded(i)
                break
            if not h / g > ratio:
                break
            if not isfinite(h / g):
                return _unbounded(i)
            ratio = h / g
            memcpy(best, label, size * sizeof(int))
        cut.b = cut.bound = 0
        cut.nnz = 0
        if ratio > -1:
            h = self._margin(i, theta, truth, best, cut)
            g = self.loss.value(i, best)
            for j in range(cut.nnz):
                cut.value[j] /= g
            cut.b = 1
            cut.bound = 1 + h / g
        for j in range(size):
            key = (key ^ <uint64_t><unsigned int>best[j]) * 1099511628211ULL
        cut.key = key
        return 0

    cdef double _margin(self, Py_ssize_t i, const double* theta, const int* truth, const int* label,
                        Cut* cut) except? -1 nogil:
        """The score of a label less that of the truth; what they differ in is left in the cut."""
        cdef Py_ssize_t j
        cdef double margin = 0
        cut.nnz = self.parts.difference(i, truth, label, cut.index, cut.value)
        for j in range(cut.nnz):
            margin -= theta[cut.index[j]] * cut.value[j]
        return margin
