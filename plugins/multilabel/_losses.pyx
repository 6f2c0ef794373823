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
    """Number of labels that are wrongly on or off, or its mean over the labels.

    Parameters
    ----------
    normalised : bool
        Divide by L.
    layout : PartLayout
    """

    cdef readonly double weight

    def __init__(self, bint normalised, PartLayout layout not None):
        super().__init__(layout)
        self.weight = 1.0 / self.L if normalised else 1.0
        self.averaged = normalised
        self.has_costs = True

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        cdef Py_ssize_t v, wrong = 0
        for v in range(self.L):
            wrong += truth[v] != label[v]
        return self.weight * wrong

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        # A label that is off costs 1 when it is turned on; one that is on saves 1.
        cdef Py_ssize_t v, on = 0
        cdef double* row = theta + self.start
        scale *= self.weight
        for v in range(self.L):
            row[v] += scale * (1 - 2 * truth[v])
            on += truth[v]
        return scale * on

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        # sum_v y_v + y'_v - 2 y_v y'_v, the same both ways.  Labels that are off have no part:
        # the cost of a label that is on is affine in nu, and so is the constant.
        cdef Py_ssize_t v
        cdef double on = 0
        cdef double* row = theta + self.start
        nu += self.start
        scale *= self.weight
        for v in range(self.L):
            row[v] += scale * (1 - 2 * nu[v])
            on += nu[v]
        return scale * on


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
