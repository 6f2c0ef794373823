"""Words and candidate arcs of sentences, and the parts of their trees."""

import numpy as np

cimport cython
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t
from structsolve.operators cimport Parts


cdef int _refuse(Py_ssize_t i, double found) except -1 with gil:
    raise ValueError(
        f"example {i}: an arc has the score {found}, expected numbers up to 1e300 (or -inf, which "
        "forbids it); check that the weights are finite"
    )


cdef int _no_tree(Py_ssize_t i) except -1 with gil:
    raise ValueError(
        f"example {i}: no tree is possible: the arcs that it would need are no candidates, or have "
        "the score -inf; allow more arcs, several roots, or trees that are not projective"
    )


cdef class ArcShape:
    """Sentences as their numbers of words, and the arcs that may be in a tree.

    Arcs lie word by word, those of a word by rising head.

    Parameters
    ----------
    words : ndarray of int64 of shape (n + 1,)
        First word of each sentence.
    arcs : ndarray of int64 of shape (n + 1,)
        First arc of each sentence.
    starts : ndarray of int64, optional
        First arc of each word of all sentences, and the end.  By default all arcs but those from a
        word to itself are candidates, n of them for each word of a sentence of n.
    heads : ndarray of int32, optional
        Head of each arc, with ``starts``: 0 is the root, 1 the first word.
    """

    def __init__(self, words, arcs, starts=None, heads=None):
        cdef const int64_t[::1] word_view = np.ascontiguousarray(words, dtype=np.int64)
        cdef const int64_t[::1] arc_view = np.ascontiguousarray(arcs, dtype=np.int64)
        cdef const int64_t[::1] start_view
        cdef const int32_t[::1] head_view
        sizes, counts = np.diff(word_view), np.diff(arc_view)
        self.n = sizes.size
        if self.n < 1 or counts.size != self.n or sizes.min() < 1:
            raise ValueError("words and arcs: expected the offsets of sentences of at least a word")
        self.words, self.arcs = &word_view[0], &arc_view[0]
        self.max_words, self.max_arcs = int(sizes.max()), int(counts.max())
        self.complete = heads is None
        self.owners = word_view, arc_view
        if self.complete:
            if (counts != sizes * sizes).any():
                raise ValueError("arcs: expected n * n of them for a sentence of n words")
            return
        start_view = np.ascontiguousarray(starts, dtype=np.int64)
        head_view = np.ascontiguousarray(heads, dtype=np.int32)
        self.owners += start_view, head_view
        limit = np.repeat(np.repeat(sizes, sizes), np.diff(start_view))
        first = np.asarray(start_view)[np.asarray(word_view)]
        found = np.asarray(head_view)
        if (
            start_view.shape[0] != word_view[self.n] + 1
            or (np.diff(start_view) < 0).any()
            or (first != np.asarray(arc_view)).any()
            or found.size != arc_view[self.n]
            or found.size < 1
            or ((found < 0) | (found > limit)).any()
        ):
            raise ValueError("starts and heads do not fit words and arcs")
        self.starts, self.heads = &start_view[0], &head_view[0]

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``: a state is a head."""
        if not 0 <= i < self.n:
            raise ValueError(f"example {i} of {self.n}: expected 0 to {self.n - 1}")
        return self.arcs[i + 1] - self.arcs[i], self.n_words(i), self.n_words(i) + 1

    cdef Py_ssize_t n_words(self, Py_ssize_t i) noexcept nogil:
        return self.words[i + 1] - self.words[i]

    cdef Py_ssize_t part(self, Py_ssize_t i, Py_ssize_t m, Py_ssize_t head) noexcept nogil:
        cdef Py_ssize_t low, high, middle
        if self.complete:
            if head == m + 1:
                return -1
            return m * self.n_words(i) + (head if head <= m else head - 1)
        low, high = self.starts[self.words[i] + m], self.starts[self.words[i] + m + 1]
        while low < high:
            middle = (low + high) / 2
            if self.heads[middle] < head:
                low = middle + 1
            else:
                high = middle
        if low < self.starts[self.words[i] + m + 1] and self.heads[low] == head:
            return low - self.arcs[i]
        return -1

    cdef int load(self, Py_ssize_t i, const double* theta, double* table) except -1 nogil:
        cdef Py_ssize_t n = self.n_words(i), m, h, a, first = self.arcs[i]
        cdef double wrong = 0
        cdef double* row
        for m in range(n):
            row = table + m * (n + 1)
            if self.complete:
                for h in range(m + 1):
                    row[h] = theta[m * n + h]
                row[m + 1] = -INFINITY
                for h in range(m + 2, n + 1):
                    row[h] = theta[m * n + h - 1]
            else:
                for h in range(n + 1):
                    row[h] = -INFINITY
                for a in range(self.starts[self.words[i] + m], self.starts[self.words[i] + m + 1]):
                    row[self.heads[a]] = theta[a - first]
            for h in range(n + 1):
                if not row[h] <= 1e300:
                    wrong = row[h]
                elif row[h] < -1e300:
                    row[h] = -INFINITY
        return _refuse(i, wrong) if wrong != 0 else 0

    cdef void store(self, Py_ssize_t i, const double* table, double* theta) noexcept nogil:
        cdef Py_ssize_t n = self.n_words(i), m, h, a, first = self.arcs[i]
        cdef const double* row
        for m in range(n):
            row = table + m * (n + 1)
            if self.complete:
                for h in range(m + 1):
                    theta[m * n + h] = row[h]
                for h in range(m + 2, n + 1):
                    theta[m * n + h - 1] = row[h]
            else:
                for a in range(self.starts[self.words[i] + m], self.starts[self.words[i] + m + 1]):
                    theta[a - first] = row[self.heads[a]]

    cdef int impossible(self, Py_ssize_t i) except -1 nogil:
        return _no_tree(i)


@cython.final
cdef class DependencyParts(Parts):
    """One part per candidate arc; arcs that are no candidates have none.

    Parameters
    ----------
    shape : ArcShape
    """

    cdef ArcShape shape

    def __init__(self, ArcShape shape):
        self.shape = shape
        self.max_entries = 2 * shape.max_words

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        return self.shape.limits(i)

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        cdef Py_ssize_t m, part, found = 0
        for m in range(self.shape.n_words(i)):
            part = self.shape.part(i, m, label[m])
            if part >= 0:
                index[found], value[found] = <int>part, 1
                found += 1
        return found

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        cdef Py_ssize_t m, part, found = 0
        for m in range(self.shape.n_words(i)):
            if truth[m] == label[m]:
                continue
            part = self.shape.part(i, m, truth[m])
            if part >= 0:
                index[found], value[found] = <int>part, 1
                found += 1
            part = self.shape.part(i, m, label[m])
            if part >= 0:
                index[found], value[found] = <int>part, -1
                found += 1
        return found
