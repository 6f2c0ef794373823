# build: glue
"""Attachment: the number or the share of words with the wrong head, or the wrong relation."""

from libc.stdint cimport int64_t
from structsolve.operators cimport Loss
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.dependency._shape cimport ArcShape, arc_shape


cdef class AttachmentLoss(Loss):
    """Words whose head or relation is not the true one: a count, or a share.

    As a share it is 1 minus the labelled attachment score, or the unlabelled one, if heads alone
    count or there are no relations.

    Parameters
    ----------
    normalised : bool
        Divide by the number of words.
    heads_alone : bool
        Relations do not count.
    unseen : bool
        True labels may have a relation unseen in training.
    layout : PartLayout
        Layout of a dependency space.
    """

    cdef ArcShape shape
    cdef bint heads_alone, unseen

    def __init__(self, bint normalised, bint heads_alone, bint unseen, PartLayout layout not None):
        super().__init__(layout)
        self.shape = arc_shape(layout)
        self.n_states = self.shape.n_states() + (self.shape.max_words + 1 if unseen else 0)
        self.averaged = normalised
        self.heads_alone, self.unseen = heads_alone and self.shape.classes > 1, unseen
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
                if not 0 <= labels[j] < (self.shape.n_words(i) + 1) * (
                        self.shape.classes + self.unseen):
                    raise ValueError(
                        f"example {i}, word {j - first[i] + 1}: the true head is "
                        f"{labels[j] / self.shape.classes}, "
                        f"expected 0 (the root) to {self.shape.n_words(i)}"
                    )

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        cdef Py_ssize_t m, n = self.shape.n_words(i)
        cdef double total = 0
        for m in range(n):
            total += truth[m] != label[m]
        if self.heads_alone:
            for m in range(n):
                total -= truth[m] != label[m] and (
                    self.shape.head(i, truth[m]) == self.shape.head(i, label[m]))
        return total / n if self.averaged else total

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        # Subtracted from the true part: one operation per word, or one for each relation.
        cdef Py_ssize_t m, c, part, n = self.shape.n_words(i)
        if self.averaged:
            scale /= n
        for m in range(n):
            if self.heads_alone:
                part = self.shape.arc(i, m, self.shape.head(i, truth[m])) * self.shape.stride
                for c in range(self.shape.classes if part >= 0 else 0):
                    theta[part + c] -= scale
                continue
            part = self.shape.part(i, m, truth[m])
            if part >= 0:
                theta[part] -= scale
        return scale * n

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        cdef Py_ssize_t a, c, n = self.shape.n_words(i), stride = self.shape.stride
        cdef double total
        if self.averaged:
            scale /= n
        for a in range((self.shape.arcs[i + 1] - self.shape.arcs[i]) * stride):
            if not self.heads_alone:
                theta[a] -= scale * nu[a]
            elif a % stride == 0:
                total = 0
                for c in range(self.shape.classes):
                    total += nu[a + c]
                for c in range(self.shape.classes):
                    theta[a + c] -= scale * total
        return scale * n
