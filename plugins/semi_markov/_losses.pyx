# build: glue
"""Losses of segmentations: tokens of wrong classes, and wrong spans."""

cimport cython
from structsolve.operators cimport Loss
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.semi_markov._shape cimport (
    Segment, Sizes, n_tokens, segment_from, sizes_of, span_errors,
)


@cython.final
cdef class TokenLoss(Loss):
    """Tokens in a segment of a wrong class: their number, or their share.

    Parameters
    ----------
    normalised : bool
        Divide by the number of tokens.
    outside : int
        Class of tokens in no span, or -1.
    layout : PartLayout
        Layout of a semi-Markov space.
    """

    cdef Sizes shape

    def __init__(self, bint normalised, Py_ssize_t outside, PartLayout layout not None):
        super().__init__(layout)
        self.shape = sizes_of(layout, outside)
        self.n_states = 2 * self.shape.K
        self.averaged = normalised
        self.decomposes = self.has_costs = self.takes_unseen = True

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        cdef Py_ssize_t n = n_tokens(&self.shape, i), K = self.shape.K, v
        cdef Segment t = segment_from(truth, n, K, 0), p = segment_from(label, n, K, 0)
        cdef double total = 0
        for v in range(n):
            if v == t.end:
                t = segment_from(truth, n, K, v)
            if v == p.end:
                p = segment_from(label, n, K, v)
            total += t.cls != p.cls
        return total / n if self.averaged else total

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        # Subtracted from the true class: one operation per token.
        cdef Py_ssize_t n = n_tokens(&self.shape, i), v
        cdef Segment t = segment_from(truth, n, self.shape.K, 0)
        cdef double* row = theta + self.shape.shared_size
        if self.averaged:
            scale /= n
        for v in range(n):
            if v == t.end:
                t = segment_from(truth, n, self.shape.K, v)
            if t.cls >= 0:
                row[t.cls] -= scale
            row += self.shape.node_size
        return scale * n

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        cdef Py_ssize_t n = n_tokens(&self.shape, i), v, c, row = self.shape.shared_size
        if self.averaged:
            scale /= n
        for v in range(n):
            for c in range(self.shape.K):
                theta[row + c] -= scale * nu[row + c]
            row += self.shape.node_size
        return scale * n


@cython.final
cdef class SpanLoss(Loss):
    """Missing and spurious spans: a span is right only if both ends and its class are.

    Parameters
    ----------
    outside : int
        Class of tokens in no span, or -1.
    layout : PartLayout
        Layout of a semi-Markov space.
    """

    cdef Sizes shape

    def __init__(self, Py_ssize_t outside, PartLayout layout not None):
        super().__init__(layout)
        self.shape = sizes_of(layout, outside)
        self.n_states = 2 * self.shape.K
        self.takes_unseen = True

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        return span_errors(&self.shape, i, truth, label)
