"""Words, candidate arcs and relations of sentences, the parts of trees, and invalid heads."""

import numpy as np

from structsolve.utils.arrays import check_offsets

cimport cython
from libc.math cimport INFINITY, log
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset
from structsolve.operators cimport Parts
from structsolve.part_layout cimport PartLayout
from structsolve.simd.loops cimport ss_loop_table, ss_loops


cdef int _refuse(Py_ssize_t i, double score) except -1 with gil:
    raise ValueError(
        f"example {i}: an arc has the score {score}, expected numbers up to 1e300 (or -inf, which "
        "forbids it); check that the weights are finite"
    )


cdef int _no_tree(Py_ssize_t i) except -1 with gil:
    raise ValueError(
        f"example {i}: no tree is possible: the necessary arcs are no candidates, or have "
        "the score -inf; allow more arcs, several roots, or trees that are not projective"
    )


cdef class ArcShape:
    """Sentences as their numbers of words, and the arcs that may be in a tree.

    Arcs are sorted by word, then by head.

    Parameters
    ----------
    layout : PartLayout
        Layout of a dependency space, with a row of scores for each arc and a label for each word.
        The topology of its examples has "arcs", an :class:`~structsolve.plugins.dependency.Arcs`.
        Without it, or where it is complete, all arcs but those from a word to itself are
        candidates, n for each word of a sentence of n words.

    Raises
    ------
    ValueError
        If words and arcs do not fit each other.
    """

    def __init__(self, PartLayout layout not None):
        cdef Py_ssize_t i, words
        arcs = layout.examples.topology.get("arcs")
        self.n, self.words, self.arcs = layout.n, layout.label_offsets, layout.offsets
        self.max_words, self.max_arcs = layout.max_label, layout.max_nodes
        self.classes, self.stride = layout.shapes["arc"][0], layout.node_size
        self.owners = layout.owners
        self.complete = arcs is None or arcs.complete
        for i in range(layout.n):
            words = layout.label_size(i)
            if words < 1:
                raise ValueError(f"example {i}: a sentence of {words} words, expected at least 1")
            if self.complete and layout.nodes_of(i) != words * words:
                raise ValueError(
                    f"example {i}: {layout.nodes_of(i)} arcs, expected {words} for each of {words} "
                    "words"
                )
        if not self.complete:
            self.read_candidates(arcs.starts, arcs.heads)

    cdef int read_candidates(self, object starts, object heads) except -1:
        # First arc of each word of all sentences and the end; the head of each arc, 0 the root.
        cdef const int64_t[::1] start_view = np.ascontiguousarray(starts, dtype=np.int64)
        cdef const int32_t[::1] head_view = np.ascontiguousarray(heads, dtype=np.int32)
        cdef Py_ssize_t i, m, a
        cdef bint fits = (start_view.shape[0] == self.words[self.n] + 1
                          and head_view.shape[0] == self.arcs[self.n])
        if fits:
            fits = start_view[self.words[self.n]] == self.arcs[self.n]
        for i in range(self.n):
            if not fits:
                break
            fits = start_view[self.words[i]] == self.arcs[i]
            for m in range(self.words[i], self.words[i + 1]):
                fits = fits and start_view[m] <= start_view[m + 1] <= self.arcs[i + 1]
                if not fits:
                    break
                for a in range(start_view[m], start_view[m + 1]):
                    fits = fits and 0 <= head_view[a] <= self.n_words(i)
        if not fits:
            raise ValueError("starts and heads do not fit words and arcs")
        self.starts = &start_view[0]
        self.heads = &head_view[0] if head_view.shape[0] else NULL
        self.owners += (start_view, head_view)
        return 0

    cdef Py_ssize_t n_words(self, Py_ssize_t i) noexcept nogil:
        return self.words[i + 1] - self.words[i]

    cdef Py_ssize_t n_states(self) noexcept nogil:
        return (self.max_words + 1) * self.classes

    cdef Py_ssize_t head(self, Py_ssize_t i, Py_ssize_t label) noexcept nogil:
        # Behind the labels of all heads and relations follow the heads with an unseen relation.
        cdef Py_ssize_t known = (self.n_words(i) + 1) * self.classes
        return label / self.classes if label < known else label - known

    cdef Py_ssize_t part(self, Py_ssize_t i, Py_ssize_t m, Py_ssize_t label) noexcept nogil:
        cdef Py_ssize_t arc
        if self.classes == 1:
            return self.arc(i, m, label)
        if label >= (self.n_words(i) + 1) * self.classes:
            return -1
        arc = self.arc(i, m, label / self.classes)
        return -1 if arc < 0 else arc * self.stride + label % self.classes

    cdef Py_ssize_t arc(self, Py_ssize_t i, Py_ssize_t m, Py_ssize_t head) noexcept nogil:
        cdef Py_ssize_t low, high, middle
        if self.complete:
            if head == m + 1 or head > self.n_words(i):
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

    cdef int load_best(self, Py_ssize_t i, const double* theta, double* room,
                       double* table) except -1 nogil:
        if self.classes == 1:
            return self.load(i, theta, table)
        self.maxima(i, theta, room)
        return self.load(i, room, table)

    cdef int load_sums(self, Py_ssize_t i, const double* theta, double* shares, double* room,
                       double* table) except -1 nogil:
        cdef Py_ssize_t a, c, count = self.arcs[i + 1] - self.arcs[i]
        cdef const ss_loop_table* loops = ss_loops(self.stride)
        cdef const double* scores
        cdef double* row
        cdef double total
        if self.classes == 1:
            return self.load(i, theta, table)
        self.maxima(i, theta, room)
        for a in range(count):
            scores, row = theta + a * self.stride, shares + a * self.stride
            if room[a] < -1e300:
                memset(row, 0, self.stride * sizeof(double))
                continue
            loops.exp_rows(1, scores, self.stride, self.classes, room[a], row)
            total = loops.total(self.stride, row)
            room[a] += log(total)
            total = 1 / total
            for c in range(self.stride):
                row[c] *= total
        return self.load(i, room, table)

    cdef int maxima(self, Py_ssize_t i, const double* theta, double* tops) except -1 nogil:
        # The largest score of each arc.  Maxima ignore NaN; a sum is NaN with it.
        cdef Py_ssize_t a, j, count = self.arcs[i + 1] - self.arcs[i], size = count * self.stride
        cdef const ss_loop_table* loops = ss_loops(self.stride)
        cdef double total = loops.total(size, theta), top = -INFINITY
        for a in range(count):
            loops.first_best(self.classes, theta + a * self.stride, tops + a)
            top = max(top, tops[a])
        if top > 1e300 or total != total:
            for j in range(size):
                if not theta[j] <= 1e300:
                    return _refuse(i, theta[j])
        return 0

    cdef int load(self, Py_ssize_t i, const double* arcs, double* table) except -1 nogil:
        cdef Py_ssize_t n = self.n_words(i), m, h, a, first = self.arcs[i]
        cdef double wrong = 0
        cdef double* row
        for m in range(n):
            row = table + m * (n + 1)
            if self.complete:
                for h in range(m + 1):
                    row[h] = arcs[m * n + h]
                row[m + 1] = -INFINITY
                for h in range(m + 2, n + 1):
                    row[h] = arcs[m * n + h - 1]
            else:
                for h in range(n + 1):
                    row[h] = -INFINITY
                for a in range(self.starts[self.words[i] + m], self.starts[self.words[i] + m + 1]):
                    row[self.heads[a]] = arcs[a - first]
            for h in range(n + 1):
                if not row[h] <= 1e300:
                    wrong = row[h]
                elif row[h] < -1e300:
                    row[h] = -INFINITY
        return _refuse(i, wrong) if wrong != 0 else 0

    cdef void store(self, Py_ssize_t i, const double* table, double* arcs) noexcept nogil:
        cdef Py_ssize_t n = self.n_words(i), m, h, a, first = self.arcs[i]
        cdef const double* row
        for m in range(n):
            row = table + m * (n + 1)
            if self.complete:
                for h in range(m + 1):
                    arcs[m * n + h] = row[h]
                for h in range(m + 2, n + 1):
                    arcs[m * n + h - 1] = row[h]
            else:
                for a in range(self.starts[self.words[i] + m], self.starts[self.words[i] + m + 1]):
                    arcs[a - first] = row[self.heads[a]]

    cdef int impossible(self, Py_ssize_t i) except -1 nogil:
        return _no_tree(i)


cdef ArcShape arc_shape(PartLayout layout):
    return layout.common(ArcShape, ArcShape)


@cython.final
cdef class DependencyParts(Parts):
    """One part per candidate arc and relation; other arcs, and unseen relations, have none.

    Parameters
    ----------
    layout : PartLayout
        Layout of a dependency space.
    """

    cdef ArcShape shape

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.shape = arc_shape(layout)
        self.n_states = self.shape.n_states()
        self.max_entries = 2 * self.shape.max_words

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        cdef Py_ssize_t m, part, k = 0
        for m in range(self.shape.n_words(i)):
            part = self.shape.part(i, m, label[m])
            if part >= 0:
                index[k], value[k] = <int>part, 1
                k += 1
        return k

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        cdef Py_ssize_t m, part, k = 0
        for m in range(self.shape.n_words(i)):
            if truth[m] == label[m]:
                continue
            part = self.shape.part(i, m, truth[m])
            if part >= 0:
                index[k], value[k] = <int>part, 1
                k += 1
            part = self.shape.part(i, m, label[m])
            if part >= 0:
                index[k], value[k] = <int>part, -1
                k += 1
        return k


# -- invalid heads ------------------------------------------------------------------------------

cdef enum Fault:
    NONE
    UNKNOWN
    CYCLE
    ROOTS
    CROSSING


cdef Fault _first_fault(Py_ssize_t n, const int* heads, bint single, bint projective, int* seen,
                        Py_ssize_t* word) noexcept nogil:
    cdef Py_ssize_t m, v, low, high, other_low, other_high, roots = 0
    for m in range(n):
        if not 0 <= heads[m] <= n:
            word[0] = m
            return UNKNOWN
    for m in range(n):
        seen[m] = -1
        if heads[m] == 0:
            roots += 1
            if roots == 2 and single:
                word[0] = m
                return ROOTS
    for m in range(n):
        v = m
        while v >= 0 and seen[v] < 0:
            seen[v] = <int>m
            v = heads[v] - 1
        if v >= 0 and seen[v] == m:
            word[0] = v
            return CYCLE
    if not projective:
        return NONE
    for m in range(n):
        low, high = heads[m], m + 1
        if low > high:
            low, high = high, low
        for v in range(m):
            other_low, other_high = heads[v], v + 1
            if other_low > other_high:
                other_low, other_high = other_high, other_low
            if low < other_low < high < other_high or other_low < low < other_high < high:
                word[0] = m
                return CROSSING
    return NONE


def first_fault(const int[::1] heads not None, const int64_t[::1] offsets not None, bint single,
                bint projective):
    """Return the first sentence whose heads are no tree of the given kind.

    Parameters
    ----------
    heads : ndarray of int32
        The head of every word, from 0 (the root) to the number of words of its sentence.
    offsets : ndarray of int64 of shape (n + 1,)
    single, projective : bool
        One child of the root; no crossing arcs.

    Returns
    -------
    None, or tuple (sentence, word, fault)
        The fault is "unknown" for a head that is no word of the sentence, "cycle", "roots" or
        "crossing"; words count from 0.

    Raises
    ------
    ValueError
        If heads and offsets do not fit each other.
    """
    cdef Py_ssize_t i, n, most = 0, word = 0
    cdef Fault fault = NONE
    check_offsets(offsets, heads.shape[0], 1, "heads")
    for i in range(offsets.shape[0] - 1):
        n = offsets[i + 1] - offsets[i]
        most = n if n > most else most
    if not most:
        return None
    cdef int[::1] seen = np.empty(most, dtype=np.int32)
    with nogil:
        for i in range(offsets.shape[0] - 1):
            n = offsets[i + 1] - offsets[i]
            fault = _first_fault(n, &heads[offsets[i]], single, projective, &seen[0], &word)
            if fault != NONE:
                break
    if fault == NONE:
        return None
    kinds = {UNKNOWN: "unknown", CYCLE: "cycle", ROOTS: "roots", CROSSING: "crossing"}
    return i, word, kinds[fault]
