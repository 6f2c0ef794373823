"""Offsets of the parts of segmentations, and the parts of their labels."""

cimport cython
from libc.math cimport INFINITY
from structsolve.operators cimport Parts
from structsolve.part_layout cimport PartLayout
from structsolve.simd.loops cimport ss_loops


cdef Sizes sizes_of(PartLayout layout, Py_ssize_t outside) except *:
    cdef Sizes shape
    cdef Py_ssize_t i
    starts, shapes = layout.starts, layout.shapes
    shape.transition, shape.start = starts["transition"], starts["start"]
    shape.end, shape.length = starts["end"], starts["length"]
    shape.most, shape.K = shapes["length"]
    shape.shared_size, shape.node_size = layout.shared_size, layout.node_size
    shape.stride = shape.node_size // 3
    shape.begins, shape.ends = shape.stride, 2 * shape.stride
    shape.outside, shape.max_nodes, shape.offsets = outside, layout.max_nodes, layout.offsets
    shape.loops = ss_loops(shape.stride)
    for i in range(layout.n):
        if layout.nodes_of(i) < 1:
            raise ValueError(f"example {i}: a sequence without tokens, expected at least one")
    return shape


cdef void length_scores(const Sizes* shape, const double* theta, double* table) noexcept nogil:
    cdef Py_ssize_t j, size = shape.most * shape.stride
    for j in range(size):
        table[j] = theta[shape.length + j]
    if shape.outside >= 0:
        for j in range(1, shape.most):
            table[j * shape.stride + shape.outside] = -INFINITY


cdef double span_errors(const Sizes* shape, Py_ssize_t i, const int* truth,
                        const int* label) noexcept nogil:
    cdef Py_ssize_t n = n_tokens(shape, i), total = 0
    cdef Segment t = segment_from(truth, n, shape.K, 0), p = segment_from(label, n, shape.K, 0)
    cdef Py_ssize_t v
    for v in range(n):
        if v == t.end:
            t = segment_from(truth, n, shape.K, v)
        if v == p.end:
            p = segment_from(label, n, shape.K, v)
        if v == t.begin and v == p.begin and t.end == p.end and t.cls == p.cls >= 0:
            continue
        total += v == t.begin and is_span(shape, t.cls)
        total += v == p.begin and is_span(shape, p.cls)
    return total


cdef inline void _put(int* index, double* value, Py_ssize_t* n, Py_ssize_t first, Py_ssize_t t,
                      Py_ssize_t p) noexcept nogil:
    # The parts of truth and label at one place, -1 for none.
    if t == p:
        return
    if t >= 0:
        index[n[0]], value[n[0]] = <int>(first + t), 1
        n[0] += 1
    if p >= 0:
        index[n[0]], value[n[0]] = <int>(first + p), -1
        n[0] += 1


@cython.final
cdef class SegmentParts(Parts):
    """Classes of tokens, segments' first and last tokens, lengths, and pairs of segments.

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
        self.max_entries = 10 * self.shape.max_nodes + 4

    cdef Py_ssize_t length_cell(self, const Segment* s, Py_ssize_t v) noexcept nogil:
        if v + 1 != s.end or s.cls < 0 or s.end - s.begin > self.shape.most:
            return -1
        return (s.end - s.begin - 1) * self.shape.stride + s.cls

    cdef Py_ssize_t pair_cell(self, const Segment* s, Py_ssize_t v,
                              Py_ssize_t before) noexcept nogil:
        if v == 0 or v != s.begin or s.cls < 0 or before < 0:
            return -1
        return before * self.shape.stride + s.cls

    cdef Py_ssize_t write(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                          double* value) noexcept nogil:
        # Token by token; a label that is NULL has no parts.
        cdef const Sizes* shape = &self.shape
        cdef Py_ssize_t L = n_tokens(shape, i), n = 0, v, node, t_before = -1, p_before = -1
        cdef Segment t = segment_from(truth, L, shape.K, 0), p
        p.begin, p.end, p.cls = -1, -1, -1
        if label != NULL:
            p = segment_from(label, L, shape.K, 0)
        _put(index, value, &n, shape.start, t.cls, p.cls)
        for v in range(L):
            if v == t.end:
                t_before = t.cls
                t = segment_from(truth, L, shape.K, v)
            if v == p.end:
                p_before = p.cls
                p = segment_from(label, L, shape.K, v)
            node = shape.shared_size + v * shape.node_size
            _put(index, value, &n, node, t.cls, p.cls)
            _put(index, value, &n, node + shape.begins, t.cls if v == t.begin else -1,
                 p.cls if v == p.begin else -1)
            _put(index, value, &n, node + shape.ends, t.cls if v + 1 == t.end else -1,
                 p.cls if v + 1 == p.end else -1)
            _put(index, value, &n, shape.length, self.length_cell(&t, v), self.length_cell(&p, v))
            _put(index, value, &n, shape.transition, self.pair_cell(&t, v, t_before),
                 self.pair_cell(&p, v, p_before))
        _put(index, value, &n, shape.end, t.cls, p.cls)
        return n

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        return self.write(i, label, NULL, index, value)

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        return self.write(i, truth, label, index, value)
