# build: glue
"""Margins of 1 in units of the loss: H_i(w) = max(0, max_y 1 + h(y) / g(y))."""

from libc.math cimport fabs, isfinite
from libc.string cimport memcpy
from ..utils.alignment cimport align
from ..operators cimport Loss, Oracle, Parts
from ..part_layout cimport PartLayout
from .base cimport Cut
from ..structure.answer_checks cimport check_allowed, check_answer, check_numbers
from ..structure.label_key cimport label_key
from ._one_label cimport OneLabel


cdef int _unbounded(Py_ssize_t i) except -1 with gil:
    raise ValueError(
        f"example {i}: a label other than the truth has the loss 0, so its margin cannot be "
        "divided by it; use a loss that is positive for every wrong label, or surrogate='margin'"
    )


cdef class UnitMarginRescaling(OneLabel):
    """Dinkelbach's method: the oracle maximises ``h - t g`` while the best ratio t rises.

    The first t is -1, which is margin rescaling: if no label is above 0, no ratio is above -1.
    Every further label has a larger ratio; there are finitely many, and few are seen.

    Parameters
    ----------
    layout, oracle, parts, loss
        See OneLabel.

    Raises
    ------
    ValueError
        If the oracle may miss the best label, or the loss does not decompose.
    """

    cdef Py_ssize_t label_bytes

    def __init__(self, PartLayout layout not None, Oracle oracle not None, Parts parts not None,
                 Loss loss not None):
        if not loss.decomposes:
            # Of losses that do not decompose, margin rescaling supports only the 0-1 loss.
            other = "; use surrogate='margin'" if loss.zero_one else ""
            raise ValueError(
                f"surrogate 'unit-margin' needs a loss that decomposes over the parts, which "
                f"{type(loss).__name__} does not{other}"
            )
        if not oracle.exact:
            raise ValueError(
                f"surrogate 'unit-margin' needs an oracle that finds the best label, and "
                f"{type(oracle).__name__} may miss it; use surrogate='margin'"
            )
        super().__init__(layout, oracle, parts, loss)
        self.label_bytes = 8 * (layout.max_label + 16) + 64
        self.work_bytes = self.theta_bytes + self.label_bytes + oracle.work_bytes + 192

    cdef int cut(self, Py_ssize_t i, const double* theta, const int* truth, Cut* cut,
                 char* work) except -1 nogil:
        cdef double* augmented = <double*>align(work)
        cdef int* label = <int*>align(work + self.theta_bytes)
        cdef Py_ssize_t size = self.layout.label_size(i), j
        cdef int* best = label + size
        cdef char* scratch = align(work + self.theta_bytes + self.label_bytes)
        cdef double value, bound, h, g, ratio = -1
        # Without a better label, the cut is that of the truth: 0.
        memcpy(best, truth, size * sizeof(int))
        cut.calls = 0
        while True:
            memcpy(augmented, theta, self.layout.theta_size(i) * sizeof(double))
            self.loss.augment(i, truth, -ratio, augmented)
            self.oracle.argmax(i, augmented, label, &value, &bound, scratch)
            check_allowed(i, value)
            check_answer(self.oracle, i, label, self.parts.n_states)
            cut.calls += 1
            g = self.loss.value(i, truth, label)
            check_numbers(self.loss, i, 1, &g)
            h = self.point_to(i, theta, truth, label, cut)
            # The previous best label has the value 0, and so has the truth.
            self.note(i, augmented, ratio * g - h, fabs(h))
            if not g > 0:
                # Rounding may hide a tiny ratio, but not a margin.
                if h > 0:
                    return _unbounded(i)
                break
            if not h / g > ratio:
                break
            ratio = h / g
            memcpy(best, label, size * sizeof(int))
            if not isfinite(ratio):  # the truth is forbidden, or scores are too large
                break
        cut.b = cut.bound = 0
        cut.nnz = 0
        if ratio > -1:
            h = self.point_to(i, theta, truth, best, cut)
            g = self.loss.value(i, truth, best)
            for j in range(cut.nnz):
                cut.value[j] /= g
            cut.b = 1
            cut.bound = 1 + h / g
        cut.key = label_key(best, size)
        return 0
