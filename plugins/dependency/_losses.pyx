"""Attachment: the number or the share of words with the wrong head."""

from structsolve.operators cimport Loss

from structsolve.plugins.dependency._shape cimport ArcShape


cdef class AttachmentLoss(Loss):
    """Words whose head is not the true one: a count, or 1 minus the unlabelled attachment score.

    Parameters
    ----------
    labels : ndarray of int32
        True heads of all words, from 0, the root.
    shape : ArcShape
    normalised : bool, default=False
        Divide by the number of words.
    """

    cdef const int* labels
    cdef ArcShape shape
    cdef object owners

    def __init__(self, labels, ArcShape shape, bint normalised=False):
        cdef const int[::1] view = labels
        if view.shape[0] != shape.words[shape.n]:
            raise ValueError(f"found {view.shape[0]} heads, expected {shape.words[shape.n]}")
        self.owners, self.shape, self.labels = labels, shape, &view[0]
        self.averaged = normalised
        self.decomposes = True
        self.has_costs = True

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        return self.shape.limits(i)

    cdef double value(self, Py_ssize_t i, const int* label) except? -1 nogil:
        cdef Py_ssize_t m, n = self.shape.n_words(i)
        cdef const int* truth = self.labels + self.shape.words[i]
        cdef double total = 0
        for m in range(n):
            total += truth[m] != label[m]
        return total / n if self.averaged else total

    cdef double augment(self, Py_ssize_t i, double scale, double* theta) except? -1 nogil:
        # Taking it from the true arc costs one operation a word.
        cdef Py_ssize_t m, part, n = self.shape.n_words(i)
        cdef const int* truth = self.labels + self.shape.words[i]
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
