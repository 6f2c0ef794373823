"""Marginals of arcs of projective trees in weights, with vectors over all spans of a length.

It computes the sums of `_eisner.pyx`, whose charts serve to trace a tree.  Here the spans of a
length are adjacent in memory, and outside sums are derivatives, without a division.
"""

from libc.string cimport memset
from structsolve.simd.loops cimport ss_loops
from structsolve.utils.alignment cimport align

cdef extern from "spans.h" nogil:
    ctypedef struct dep_spans:
        Py_ssize_t n, width
        double* right
        double* left
        double* arc_right
        double* arc_left
        double* weight_right
        double* weight_left
        double* of_right
        double* of_left
        double* of_arc_right
        double* of_arc_left
    ctypedef void (*dep_pass)(const dep_spans*) noexcept nogil
    Py_ssize_t DEP_SQUARES
    Py_ssize_t dep_width(Py_ssize_t)
    size_t dep_bytes(Py_ssize_t)
    Py_ssize_t dep_passes_of(const char*, dep_pass*, dep_pass*)

cdef dep_pass _inside
cdef dep_pass _outside
cdef Py_ssize_t _most = dep_passes_of(ss_loops(8).name, &_inside, &_outside)


cdef Py_ssize_t most_span_words() noexcept nogil:
    return _most


cdef Py_ssize_t span_bytes(Py_ssize_t n) noexcept nogil:
    return <Py_ssize_t>dep_bytes(n)


cdef dep_spans _spans_in(Py_ssize_t n, char* memory) noexcept nogil:
    cdef dep_spans s
    cdef Py_ssize_t square = (n + 1) * dep_width(n)
    s.n, s.width = n, dep_width(n)
    s.right = <double*>align(memory)
    memset(s.right, 0, DEP_SQUARES * square * sizeof(double))
    s.left = s.right + square
    s.arc_right = s.left + square
    s.arc_left = s.arc_right + square
    s.weight_right = s.arc_left + square
    s.weight_left = s.weight_right + square
    s.of_right = s.weight_left + square
    s.of_left = s.of_right + square
    s.of_arc_right = s.of_left + square
    s.of_arc_left = s.of_arc_right + square
    return s


cdef double _by_root(const dep_spans* s, const double* weights, double* out,
                     double whole) noexcept nogil:
    # The sum over trees by their only root, a word between two complete spans.  Given this `whole`,
    # also the derivatives of these spans, and the marginals of the root's arcs.
    cdef Py_ssize_t n = s.n, w = s.width, j, before, behind
    cdef double total = 0, arc
    for j in range(1, n + 1):
        before, behind = (j - 1) * w + 1, (n - j) * w + j
        arc = weights[(j - 1) * (n + 1)]
        total += s.left[before] * arc * s.right[behind]
        if whole > 0:
            arc /= whole
            s.of_left[before] += arc * s.right[behind]
            s.of_right[behind] += arc * s.left[before]
            out[(j - 1) * (n + 1)] = s.left[before] * arc * s.right[behind]
    return total


cdef double span_marginals(Py_ssize_t n, bint single, const double* weights, double least,
                           double* out, char* memory) noexcept nogil:
    cdef dep_spans s = _spans_in(n, memory)
    cdef Py_ssize_t w = s.width, m, h
    cdef const double* row
    cdef double* marginals
    cdef double total
    for h in range(n + 1):
        s.right[h] = s.left[h] = 1
    for m in range(n):
        row = weights + m * (n + 1)
        # With a single root, the root's arcs come last: until then it has none.
        for h in range(1 if single else 0, m + 1):
            s.weight_right[(m + 1 - h) * w + h] = row[h]
        for h in range(m + 2, n + 1):
            s.weight_left[(h - m - 1) * w + m + 1] = row[h]
    _inside(&s)
    total = _by_root(&s, weights, out, 0) if single else s.right[n * w]
    if not total >= least:
        return total
    if single:
        _by_root(&s, weights, out, total)
    else:
        s.of_right[n * w] = 1 / total
    _outside(&s)
    for m in range(n):
        marginals = out + m * (n + 1)
        for h in range(1 if single else 0, m + 1):
            marginals[h] = s.weight_right[(m + 1 - h) * w + h]
        marginals[m + 1] = 0
        for h in range(m + 2, n + 1):
            marginals[h] = s.weight_left[(h - m - 1) * w + m + 1]
    return total
