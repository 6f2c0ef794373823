# Offsets of the parts of segmentations in theta, and the segments of a label.
#
# A label has a number for each token: c where a segment of class c begins, K + c where it goes on,
# 2 K where a segment of a class unseen in training begins (it goes on with K).
from libc.stdint cimport int64_t
from structsolve.part_layout cimport PartLayout
from structsolve.simd.loops cimport ss_loop_table


cdef struct Sizes:
    Py_ssize_t K, stride, most, max_nodes, shared_size, node_size
    Py_ssize_t outside          # class of tokens in no span, of one token each; -1: none
    # First double of the shared blocks; those of a node row, whose first are of its class.
    Py_ssize_t transition, start, end, length, begins, ends
    const int64_t* offsets      # of the layout
    const ss_loop_table* loops  # for rows of `stride`


# Raises ValueError for an example without tokens.
cdef Sizes sizes_of(PartLayout layout, Py_ssize_t outside) except *


cdef inline Py_ssize_t n_tokens(const Sizes* shape, Py_ssize_t i) noexcept nogil:
    return shape.offsets[i + 1] - shape.offsets[i]


cdef struct Segment:
    Py_ssize_t begin, end, cls      # class -1: unseen in training


cdef inline bint goes_on(const int* label, Py_ssize_t v, Py_ssize_t K) noexcept nogil:
    return K <= label[v] < 2 * K


cdef inline Segment segment_from(const int* label, Py_ssize_t n, Py_ssize_t K,
                                 Py_ssize_t begin) noexcept nogil:
    cdef Segment segment
    segment.begin, segment.end, segment.cls = begin, begin + 1, label[begin]
    if segment.cls >= K:
        segment.cls = -1 if segment.cls >= 2 * K else segment.cls - K
    while segment.end < n and goes_on(label, segment.end, K):
        segment.end += 1
    return segment


cdef inline bint is_span(const Sizes* shape, Py_ssize_t cls) noexcept nogil:
    return cls != shape.outside or cls < 0


# Spans of the truth that the label lacks, and spans of the label that the truth lacks.
cdef double span_errors(const Sizes* shape, Py_ssize_t i, const int* truth,
                        const int* label) noexcept nogil

# table[l - 1, c]: scores of the lengths, -inf for an outside segment of several tokens.
cdef void length_scores(const Sizes* shape, const double* theta, double* table) noexcept nogil
