"""The best segmentations: the oracle, with wrong spans included, and the k best.

``ends[e - 1, c]`` is the best score of tokens 0 .. e - 1 whose last segment has class c, and
``begins[b, c]`` that of the tokens before b with a segment of class c that begins there, so that a
segment costs O(1) and a token O(K^2 + K L) for lengths up to L.
"""

cimport cython
from libc.math cimport INFINITY
from libc.string cimport memset
from structsolve.algorithms.best_list cimport Entry, insert
from structsolve.operators cimport AugmentedOracle, KBest, Loss, Operator, Oracle
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.semi_markov._shape cimport (
    Segment, Sizes, goes_on, is_span, length_scores, n_tokens, segment_from, sizes_of,
    span_errors,
)

from structsolve.plugins.semi_markov._losses import SpanLoss


@cython.final
cdef class Segmenter:
    """The pass over the tokens, and the way back.

    Parameters
    ----------
    layout : PartLayout
        Layout of a semi-Markov space.
    outside : int
        Class of tokens in no span, or -1.
    """

    cdef Sizes shape
    cdef Py_ssize_t work_bytes

    def __init__(self, PartLayout layout not None, Py_ssize_t outside):
        self.shape = sizes_of(layout, outside)
        # Tables of lengths, of ends and of the last with the scores of the end, of begins; one row.
        rows = self.shape.most + 2 * self.shape.max_nodes + 2
        self.work_bytes = 8 * self.shape.stride * rows

    cdef double* ends(self, double* lengths) noexcept nogil:
        return lengths + self.shape.most * self.shape.stride

    cdef double* begins(self, double* lengths) noexcept nogil:
        return self.ends(lengths) + (self.shape.max_nodes + 1) * self.shape.stride

    cdef void prepare(self, const double* theta, const int* truth, double* lengths) noexcept nogil:
        # With a truth, each span scores 1 more, and a true one 1 less.
        cdef Py_ssize_t l, c
        length_scores(&self.shape, theta, lengths)
        if truth == NULL:
            return
        for l in range(self.shape.most):
            for c in range(self.shape.K):
                if c != self.shape.outside:
                    lengths[l * self.shape.stride + c] += 1

    cdef double forward(self, Py_ssize_t i, const double* theta, const int* truth,
                        double* lengths) noexcept nogil:
        # Returns the value; row n of `ends` has the scores of the end added.
        cdef const Sizes* shape = &self.shape
        cdef Py_ssize_t n = n_tokens(shape, i), K = shape.K, stride = shape.stride, e, l, c, true
        cdef const double* nodes = theta + shape.shared_size
        cdef const double* node
        cdef const double* row
        cdef double* ends = self.ends(lengths)
        cdef double* begins = self.begins(lengths)
        cdef double* inside = begins + shape.max_nodes * stride
        cdef const double* first
        cdef double x = 0, y
        self.prepare(theta, truth, lengths)
        for e in range(1, n + 1):
            node = nodes + (e - 1) * shape.node_size
            first = node + shape.begins
            if e == 1:
                for c in range(stride):
                    begins[c] = theta[shape.start + c] + first[c]
            else:
                shape.loops.maxplus(K, ends, theta + shape.transition, stride, stride, first,
                                    begins)
                ends += stride
            for c in range(stride):
                inside[c] = node[shape.ends + c]
                ends[c] = -INFINITY
            true = self.true_span(truth, n, e)
            for l in range(min(e, shape.most)):
                row = lengths + l * stride
                first = begins - l * stride
                if true == e - l - 1:
                    x = ends[truth[true]]
                for c in range(K):
                    inside[c] += node[c]
                    y = first[c] + (inside[c] + row[c])
                    ends[c] = y if y > ends[c] else ends[c]
                if true == e - l - 1:
                    c = truth[true]
                    y = first[c] + (inside[c] + row[c]) - 2
                    ends[c] = y if y > x else x
                node -= shape.node_size
            begins += stride
        for c in range(K):
            ends[stride + c] = ends[c] + theta[shape.end + c]
        shape.loops.first_best(K, ends + stride, &x)
        return x

    cdef Py_ssize_t true_span(self, const int* truth, Py_ssize_t n, Py_ssize_t e) noexcept nogil:
        # First token of the true span that ends before token e, -1 if none does.
        cdef Py_ssize_t v = e - 1, K = self.shape.K
        if truth == NULL or e < n and goes_on(truth, e, K):
            return -1
        while v > 0 and goes_on(truth, v, K):
            v -= 1
        return v if truth[v] < K and truth[v] != self.shape.outside else -1

    cdef void backtrace(self, Py_ssize_t i, const double* theta, const int* truth,
                        const double* lengths, int* label) noexcept nogil:
        # Searches the first length, and the first class before, that reach the score.
        cdef const Sizes* shape = &self.shape
        cdef Py_ssize_t n = n_tokens(shape, i), K = shape.K, stride = shape.stride, e = n, b, l, s
        cdef Py_ssize_t c, true
        cdef const double* ends = self.ends(<double*>lengths)
        cdef const double* begins = self.begins(<double*>lengths)
        cdef const double* node
        cdef double inside, x, own
        c = shape.loops.first_best(K, ends + n * stride, &x)
        while True:
            node = theta + shape.shared_size + (e - 1) * shape.node_size + c
            inside = node[shape.ends]
            true = self.true_span(truth, n, e)
            b = e - 1
            for l in range(min(e, shape.most)):
                inside += node[-l * shape.node_size]
                x = begins[(e - l - 1) * stride + c] + (inside + lengths[l * stride + c])
                if true == e - l - 1 and truth[true] == c:
                    x -= 2
                if x >= ends[(e - 1) * stride + c]:
                    b = e - l - 1
                    break
            label[b] = <int>c
            for l in range(b + 1, e):
                label[l] = <int>(K + c)
            if b == 0:
                return
            own = theta[shape.shared_size + b * shape.node_size + shape.begins + c]
            e, l = b, 0
            for s in range(K):
                x = ends[(b - 1) * stride + s] + theta[shape.transition + s * stride + c] + own
                if x >= begins[b * stride + c]:
                    l = s
                    break
            c = l

    cdef double best(self, Py_ssize_t i, const double* theta, const int* truth, int* label,
                     char* work) noexcept nogil:
        cdef double value = self.forward(i, theta, truth, <double*>work)
        self.backtrace(i, theta, truth, <double*>work, label)
        return value


cdef Segmenter _program(Operator operator, Py_ssize_t outside):
    # The program of its examples; sets its number of states and scratch memory.
    cdef Segmenter program = Segmenter(operator.layout, outside)
    operator.n_states, operator.work_bytes = 2 * program.shape.K, program.work_bytes
    return program


@cython.final
cdef class SegmentOracle(Oracle):
    """The segmentation of largest score; scores of -inf forbid parts.

    Ties go to the smallest last class, then the shortest last segment, then the smallest class
    before it, and so on.

    Parameters
    ----------
    outside : int
        Class of tokens in no span, or -1.
    layout : PartLayout
        Layout of a semi-Markov space.
    """

    cdef Segmenter program

    def __init__(self, Py_ssize_t outside, PartLayout layout not None):
        super().__init__(layout)
        self.program = _program(self, outside)

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        value[0] = self.program.best(i, theta, NULL, label, work)
        bound[0] = value[0]
        return 0


@cython.final
cdef class SegmentAugmented(AugmentedOracle):
    """The segmentation of largest score and span loss together.

    Parameters
    ----------
    outside : int
    layout : PartLayout
    """

    cdef Segmenter program

    def __init__(self, Py_ssize_t outside, PartLayout layout not None):
        super().__init__(layout)
        self.program = _program(self, outside)

    def knows(self, Loss loss not None):
        """Return whether the loss is that of spans."""
        return isinstance(loss, SpanLoss)

    cdef int argmax(self, Py_ssize_t i, const double* theta, const int* truth, int* label,
                    double* value, double* loss, char* work) except -1 nogil:
        cdef const Sizes* shape = &self.program.shape
        cdef Py_ssize_t n = n_tokens(shape, i), v = 0
        cdef Segment segment
        value[0] = self.program.best(i, theta, truth, label, work)
        while v < n:
            segment = segment_from(truth, n, shape.K, v)
            value[0] += is_span(shape, segment.cls)
            v = segment.end
        loss[0] = span_errors(shape, i, truth, label)
        return 0


# -- the k best ---------------------------------------------------------------------------------

@cython.final
cdef class SegmentKBest(KBest):
    """The k best segmentations: lists of the k best in place of the oracle's scores.

    The first is always the answer of the oracle; none of the others scores -inf.

    Parameters
    ----------
    outside : int
    layout : PartLayout
    """

    cdef Sizes shape

    def __init__(self, Py_ssize_t outside, PartLayout layout not None):
        super().__init__(layout)
        self.shape = _program(self, outside).shape

    cpdef Py_ssize_t bytes_for(self, Py_ssize_t k) except -1:
        cdef Py_ssize_t lists = (2 * self.shape.max_nodes * self.shape.K + 1)
        return (lists * (k * sizeof(Entry) + sizeof(int))
                + self.shape.most * self.shape.stride * sizeof(double) + 64)

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        cdef const Sizes* shape = &self.shape
        cdef Py_ssize_t n = n_tokens(shape, i), K = shape.K, stride = shape.stride, e, l, c, s, j
        cdef Py_ssize_t cells = shape.max_nodes * K, cell, before
        cdef double* lengths = <double*>work
        # Lists of ends, by length less 1, of begins, by class before, and of the whole; their sizes.
        cdef Entry* ends = <Entry*>(lengths + shape.most * stride)
        cdef Entry* begins = ends + cells * k
        cdef Entry* whole = begins + cells * k
        cdef int* sizes = <int*>(whole + k)
        cdef const double* node
        cdef double inside, own
        length_scores(shape, theta, lengths)
        memset(sizes, 0, (2 * cells + 1) * sizeof(int))
        for e in range(1, n + 1):
            for c in range(K):
                cell = (e - 1) * K + c
                node = theta + shape.shared_size + (e - 1) * shape.node_size + c
                own = node[shape.begins]
                if e == 1:
                    insert(begins + cell * k, sizes + cells + cell, k,
                           theta[shape.start + c] + own, 0, 0)
                for s in range(K if e > 1 else 0):
                    before = (e - 2) * K + s
                    for j in range(sizes[before]):
                        if not insert(begins + cell * k, sizes + cells + cell, k,
                                      ends[before * k + j].value
                                      + theta[shape.transition + s * stride + c] + own, s, j):
                            break
                inside = node[shape.ends]
                for l in range(min(e, shape.most)):
                    inside += node[-l * shape.node_size]
                    before = (e - l - 1) * K + c
                    for j in range(sizes[cells + before]):
                        if not insert(ends + cell * k, sizes + cell, k,
                                      begins[before * k + j].value
                                      + (inside + lengths[l * stride + c]), l, j):
                            break
        for c in range(K):
            cell = (n - 1) * K + c
            for j in range(sizes[cell]):
                if not insert(whole, sizes + 2 * cells, k,
                              ends[cell * k + j].value + theta[shape.end + c], c, j):
                    break
        for j in range(sizes[2 * cells]):
            values[j] = whole[j].value
            self.trace(n, k, ends, begins, whole[j].back, whole[j].rank, labels + j * n)
        return sizes[2 * cells]

    cdef void trace(self, Py_ssize_t n, Py_ssize_t k, const Entry* ends, const Entry* begins,
                    Py_ssize_t c, Py_ssize_t rank, int* label) noexcept nogil:
        cdef Py_ssize_t K = self.shape.K, e = n, b, v
        cdef const Entry* entry
        while True:
            entry = ends + ((e - 1) * K + c) * k + rank
            b = e - entry.back - 1
            label[b] = <int>c
            for v in range(b + 1, e):
                label[v] = <int>(K + c)
            if b == 0:
                return
            entry = begins + (b * K + c) * k + entry.rank
            e, c, rank = b, entry.back, entry.rank
