"""Margin rescaling: H_i(w) = max_y L(y, y_i) + <theta_i, mu(y) - mu(y_i)>."""

from libc.string cimport memcpy, memset
from ..utils.alignment cimport align
from ..operators cimport AugmentedOracle, KBest, Loss, Oracle, Parts
from ..part_layout cimport PartLayout
from ..structure.answer_checks cimport check_allowed, check_answer, check_numbers
from .base cimport Cut
from ._one_label cimport OneLabel


cdef class MarginRescaling(OneLabel):
    """One call of the loss-augmented oracle: margin rescaling.

    The bound includes the possible error of an inexact oracle.

    Parameters
    ----------
    layout, oracle, parts, loss
        See OneLabel.
    kbest : KBest, optional
        For the 0-1 loss, if it does not decompose.
    augmented : AugmentedOracle, optional
        Used if it knows ``loss``, unless the oracle is inexact and the loss decomposes, because it
        returns no bound.

    Raises
    ------
    ValueError
        If the loss does not decompose over the parts, unless it is 0-1 and ``kbest`` is given.
    """

    cdef KBest kbest
    cdef AugmentedOracle augmented
    cdef Py_ssize_t label_bytes, pairs

    def __init__(self, PartLayout layout not None, Oracle oracle not None, Parts parts not None,
                 Loss loss not None, KBest kbest=None, AugmentedOracle augmented=None):
        cdef Py_ssize_t scratch = oracle.work_bytes
        if augmented is not None and not augmented.knows(loss):
            augmented = None
        if augmented is None and not loss.decomposes and not (loss.zero_one and kbest is not None):
            raise ValueError(
                f"surrogate 'margin' needs a loss that decomposes over the parts, or the 0-1 loss "
                f"with an oracle that has k-best; {loss} does not decompose and "
                f"{type(oracle).__name__} has "
                f"{'no k-best' if kbest is None else 'k-best but the loss is not 0-1'}"
            )
        super().__init__(layout, oracle, parts, loss)
        if not oracle.exact and loss.decomposes:
            augmented = None
        self.augmented, self.kbest, self.pairs = augmented, kbest, 1
        self.has_simplex = parts.indicator and loss.decomposes and augmented is None
        if augmented is not None:
            scratch = augmented.work_bytes
        elif not loss.decomposes:
            self.pairs, scratch = 2, kbest.bytes_for(2)
        self.label_bytes = 4 * (layout.max_label + 16) * self.pairs + 64
        self.work_bytes = self.theta_bytes + self.label_bytes + scratch + 192

    @property
    def over_hull(self):
        """Whether H_i is the largest ``<theta + c, mu - mu(truth)>`` of the hull of the labels."""
        return self.loss.decomposes and self.augmented is None and self.oracle.exact

    cdef int cut(self, Py_ssize_t i, const double* theta, const int* truth, Cut* cut,
                 char* work) except -1 nogil:
        cdef double* augmented = <double*>align(work)
        cdef int* label = <int*>align(work + self.theta_bytes)
        cdef char* scratch = align(work + self.theta_bytes + self.label_bytes)
        cdef Py_ssize_t n
        cdef double missed = 0, bound, margin
        cdef bint best_is_truth = True
        cdef double value[2]
        if self.augmented is not None:
            self.augmented.argmax(i, theta, truth, label, &value[0], &cut.b, scratch)
            check_answer(self.augmented, i, label, self.parts.n_states)
            check_numbers(self.augmented, i, 1, &cut.b)
        elif self.loss.decomposes:
            memcpy(augmented, theta, self.layout.theta_size(i) * sizeof(double))
            self.loss.augment(i, truth, 1.0, augmented)
            self.oracle.argmax(i, augmented, label, &value[0], &bound, scratch)
            check_answer(self.oracle, i, label, self.parts.n_states)
            cut.b = self.loss.value(i, truth, label)
            if bound > value[0]:
                missed = bound - value[0]
            else:
                self.note(i, augmented, value[0] - bound, 0)
        else:
            # 0-1 loss: the best label, or the best wrong one if it is within the margin.
            n = self.kbest.kbest(i, theta, 2, label, value, scratch)
            check_answer(self.kbest, i, label, self.parts.n_states)
            cut.b = self.loss.value(i, truth, label)
            best_is_truth = cut.b == 0
            if cut.b == 0 and n > 1 and value[1] + 1 > value[0]:
                label += self.layout.label_size(i)
                check_answer(self.kbest, i, label, self.parts.n_states)
                cut.b = self.loss.value(i, truth, label)
        check_allowed(i, value[0] + missed)
        if self.augmented is None:
            check_numbers(self.loss, i, 1, &cut.b)
        margin = self.point_to(i, theta, truth, label, cut)
        if not best_is_truth:
            # The best label scores at least as much as the truth.
            self.note(i, theta, -margin, 0)
        cut.bound = cut.b + margin + missed
        cut.calls = 1
        return 0

    cdef int simplex(self, Py_ssize_t i, const int* truth, double* b,
                     int* truth_index) except -1 nogil:
        cdef Py_ssize_t j, size = self.layout.theta_size(i)
        cdef double constant
        memset(b, 0, size * sizeof(double))
        constant = self.loss.augment(i, truth, 1.0, b)
        for j in range(size):
            b[j] += constant
        truth_index[0] = truth[0]
        return 0
