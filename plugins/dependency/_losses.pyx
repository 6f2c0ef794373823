# build: glue
"""Attachment: the number or the share of words with the wrong head."""

from libc.stdint cimport int64_t
from structsolve.operators cimport Loss
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.dependency._shape cimport ArcShape, arc_shape


cdef class AttachmentLoss(Loss):
    """Words whose head is not the true one: a count, or 1 minus the unlabelled attachment score.

    Parameters
    ----------
    normalised : bool
        Divide by the number of words.
    layout : PartLayout
        Layout of a dependency space.
    """

    cdef ArcShape shape

    def __init__(self, bint normalised, PartLayout layout not None):
        super().__init__(layout)
        self.shape = arc_shape(layout)
        self.n_states = self.shape.max_words + 1
        self.averaged = normalised
        self.decomposes = True
        self.has_costs = True

    def check_truths(self, const int[::1] labels not None):
        """Refuse true heads beyond their sentences; arcs outside the candidates are accepted."""
        cdef const int64_t* first = self.shape.words
        cdef Py_ssize_t i, j
        if labels.shape[0] != first[self.shape.n]:
            raise ValueError(f"found {labels.shape[0]} heads, expected {first[self.shape.n]}")
        for i in range(self.shape.n):
            for j in range(first[i], first[i + 1]):
                if not 0 <= labels[j] <= self.shape.n_words(i):
                    raise ValueError(
                        f"example {i}, word {j - first[i] + 1}: the true head is {labels[j]}, "
                        f"expected 0 (the root) to {self.shape.n_words(i)}"
                    )

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        cdef Py_ssize_t m, n = self.shape.n_words(i)
        cdef double total = 0
        for m in range(n):
            total += truth[m] != label[m]
        return total / n if self.averaged else total

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        # Subtracted from the true arc: one operation per word.
        cdef Py_ssize_t m, part, n = self.shape.n_words(i)
        if self.averaged:
            scale /= n
        for m in range(n):
            part = self.shape.part(i, m, truth[m])
            if part >= 0:
                theta[part] -= scale
        return scale * n

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        cdef Py_ssize_t a, n = self.shape.n_words(i)
        if self.averaged:
            scale /= n
        for a in range(self.shape.arcs[i + 1] - self.shape.arcs[i]):
            theta[a] -= scale * nu[a]
        return scale * n
