"""Margin rescaling: H_i(w) = max_y L(y, y_i) + <theta_i, mu(y) - mu(y_i)>."""

from libc.string cimport memcpy, memset
from ..utils.alignment cimport align
from ..operators cimport Loss, Oracle, Parts
from ..potentials.linear cimport LinearPotentials
from ._base cimport Cut
from ._one_label cimport OneLabel


cdef class MarginRescaling(OneLabel):
    """One call of the loss-augmented oracle (FORMULAS.md section 2, first row).

    Parameters
    ----------
    potentials, oracle, parts, loss, labels, label_offsets
        As of OneLabel.

    Raises
    ------
    ValueError
        When the loss neither decomposes over the parts nor is 0-1 with a k-best oracle at hand.
    """

    cdef Py_ssize_t label_bytes, pairs

    def __init__(self, LinearPotentials potentials, Oracle oracle, Parts parts, Loss loss, labels,
                 label_offsets):
        if not (oracle.has_augmented or loss.decomposes or (loss.zero_one and oracle.has_kbest)):
            raise ValueError(
                f"surrogate 'margin' needs a loss that decomposes over the parts, or the 0-1 loss "
                f"with an oracle that has k-best; {type(loss).__name__} does not decompose and "
                f"{type(oracle).__name__} has "
                f"{'k-best but the loss is not 0-1' if oracle.has_kbest else 'no k-best'}"
            )
        super().__init__(potentials, oracle, parts, loss, labels, label_offsets)
        self.has_simplex = parts.indicator and loss.decomposes and not oracle.has_augmented
        self.pairs = 1 if oracle.has_augmented or loss.decomposes else 2
        self.label_bytes = 4 * (self.longest + 16) * self.pairs + 64
        scratch = oracle.work_bytes if self.pairs == 1 else oracle.kbest_bytes(2)
        self.work_bytes = self.theta_bytes + self.label_bytes + scratch + 192

    cdef int cut(self, Py_ssize_t i, const double* theta, Cut* cut, char* work) except -1 nogil:
        cdef double* augmented = <double*>align(work)
        cdef int* label = <int*>align(work + self.theta_bytes)
        cdef char* scratch = align(work + self.theta_bytes + self.label_bytes)
        cdef Py_ssize_t found
        cdef double value[2]
        if self.oracle.has_augmented:
            self.oracle.argmax_augmented(i, theta, label, &value[0], &cut.b, scratch)
        elif self.loss.decomposes:
            memcpy(augmented, theta, self.potentials.theta_size(i) * sizeof(double))
            self.loss.augment(i, 1.0, augmented)
            self.oracle.argmax(i, augmented, label, &value[0], scratch)
            cut.b = self.loss.value(i, label)
        else:
            # 0-1 loss: the best label, or the best wrong one if it is within the margin.
            found = self.oracle.kbest(i, theta, 2, label, value, scratch)
            cut.b = self.loss.value(i, label)
            if cut.b == 0 and found > 1 and value[1] + 1 > value[0]:
                label += self.label_offsets[i + 1] - self.label_offsets[i]
                cut.b = self.loss.value(i, label)
        cut.bound = cut.b + self.point_to(i, theta, label, cut)
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
