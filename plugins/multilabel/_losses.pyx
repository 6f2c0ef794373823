# build: glue
"""Losses of label sets: wrong labels, and labels that are on."""

from structsolve.operators cimport Loss
from structsolve.part_layout cimport PartLayout


cdef class LabelSetLoss(Loss):
    """Base of the losses of label sets.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef Py_ssize_t L, start

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.L, self.start, self.n_states = layout.shapes["node"][0], layout.shared_size, 2
        self.decomposes = True


cdef class LabelSetHamming(LabelSetLoss):
    """Cost of the labels that are wrongly on or off, or its mean over the labels.

    Parameters
    ----------
    normalised : bool
        Divide by L.
    missed, extra : float
        Cost of a label that is wrongly off, and of one that is wrongly on.
    layout : PartLayout
    """

    cdef readonly double missed, extra

    def __init__(self, bint normalised, double missed, double extra, PartLayout layout not None):
        super().__init__(layout)
        cdef double weight = 1.0 / self.L if normalised else 1.0
        self.missed, self.extra = weight * missed, weight * extra
        self.averaged = normalised
        self.has_costs = True

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        cdef Py_ssize_t v, missed = 0, extra = 0
        for v in range(self.L):
            missed += truth[v] > label[v]
            extra += truth[v] < label[v]
        return self.missed * missed + self.extra * extra

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        # A label that is off costs `extra` when it is turned on; one that is on saves `missed`.
        cdef Py_ssize_t v, on = 0
        cdef double* row = theta + self.start
        cdef double extra = scale * self.extra, both = extra + scale * self.missed
        for v in range(self.L):
            row[v] += extra - both * truth[v]
            on += truth[v]
        return scale * self.missed * on

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        # sum_v missed y_v + extra y'_v - (missed + extra) y_v y'_v for the truth y.  Labels that
        # are off have no part: the cost of a label that is on is affine in nu, and so is the
        # constant.
        cdef Py_ssize_t v
        cdef double on = 0
        cdef double* row = theta + self.start
        cdef double both = scale * (self.missed + self.extra)
        cdef double own = scale * (self.missed if transposed else self.extra)
        nu += self.start
        for v in range(self.L):
            row[v] += own - both * nu[v]
            on += nu[v]
        return (both - own) * on


cdef class LabelSetCount(LabelSetLoss):
    """Number of labels in a set and in the true set: the denominator of micro-F1.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        cdef Py_ssize_t v, on = 0
        for v in range(self.L):
            on += truth[v] + label[v]
        return on

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        cdef Py_ssize_t v, on = 0
        cdef double* row = theta + self.start
        for v in range(self.L):
            row[v] += scale
            on += truth[v]
        return scale * on
