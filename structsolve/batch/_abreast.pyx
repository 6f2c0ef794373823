"""Batches of chains for loops that treat one chain in each lane of a vector, in float32.

Only scores in float32 take this way: all others, and chains whose scores span too much, are for the
projections' own loops in doubles.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset
from ..part_layout cimport PartLayout
from ..simd.loops cimport ss_loop_table, ss_loops
from ._sheets cimport Sheet

cdef extern from "structsolve/batch/abreast_loops.h" nogil:
    const double ABREAST_SPAN
    const abreast_loops* loops_of "abreast_of"(const char*)

cnp.import_array()

cdef enum:
    LEAST_CHAINS = 8            # fewer leave most lanes empty
    MOST_BYTES = 1 << 22        # more memory is beyond the caches


cdef void _scale(Py_ssize_t n, float factor, float* x) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        x[j] *= factor


cdef class Abreast:
    """The tables of a batch of chains."""

    cdef const int64_t[::1] order(self, Py_ssize_t first, Py_ssize_t last):
        if self.even:
            return self.all[first:last]
        lengths = np.diff(np.asarray(self.sheet.layout.examples.offsets)[first : last + 1])
        # Those of one length keep their order, so sums over chains do not depend on threads.
        return first + np.argsort(-lengths, kind="stable")

    cdef void place(self, Block* b, const int64_t* chains, Py_ssize_t n,
                    char* memory) noexcept nogil:
        cdef Py_ssize_t k, size = self.rows * self.K * self.count, K = self.K
        cdef const float* rows = <const float*>self.sheet.node.data
        memset(b, 0, sizeof(Block))
        b.n, b.K = n, K
        for k in range(n):
            b.length[k] = self.sheet.layout.nodes_of(chains[k])
            b.rows[k] = rows + self.sheet.node.first[chains[k]] * K
            b.L = max(b.L, b.length[k])
        for k in range(n, self.count):  # all lanes hold some chain
            b.length[k], b.rows[k] = b.length[0], b.rows[0]
        b.factors, b.turned = self.scores + K * K, self.scores + 2 * K * K
        if self.start >= 0:
            b.start = self.scores + 3 * K * K
        if self.end >= 0:
            b.end = self.scores + 3 * K * K + K
        b.scores = <float*>memory
        b.ahead, b.alpha, b.pairs = b.scores + size, b.scores + 2 * size, b.scores + 3 * size
        for k in range(n):
            if b.length[k] == 0:
                b.bad |= 1U << k

    cdef void open(self, Block* b, const int64_t* chains, Py_ssize_t n,
                   char* memory) noexcept nogil:
        self.place(b, chains, n, memory)
        self.loops.weigh(b)

    cdef void sums(self, Block* b, bint nodes, bint pairs) noexcept nogil:
        self.loops.forward(b)
        self.loops.backward(b, nodes)
        if pairs:
            self.loops.outer(b)

    cdef float* spare(self, Block* b) noexcept nogil:
        return b.pairs + self.K * self.K * self.count

    cdef void keep(self, Block* b) noexcept nogil:
        cdef float* spare = self.spare(b)
        cdef Py_ssize_t table = self.K * self.K * self.count
        memcpy(spare, b.pairs, table * sizeof(float))
        memcpy(spare + table, b.scores, b.L * self.K * self.count * sizeof(float))

    cdef void subtract_kept(self, Block* b) noexcept nogil:
        cdef const float* spare = self.spare(b)
        cdef Py_ssize_t k, table = self.K * self.K * self.count
        for k in range(table):
            b.pairs[k] -= spare[k]
        for k in range(b.L * self.K * self.count):
            b.scores[k] -= spare[table + k]

    cdef void covariances(self, Block* b, bint own, bint less, const float* table,
                          double* out) noexcept nogil:
        cdef float* d = self.spare(b)
        cdef Py_ssize_t k
        self.loops.forward(b)
        for k in range(b.L * self.K * self.count):
            if own:
                d[k] = b.scores[k] - (d[k] if less else 0)
            b.scores[k] = d[k]
        self.loops.backward(b, True)
        self.loops.outer(b)
        self.add_means(b, table, out)
        self.loops.slope(b, table, d)

    cdef void write(self, const Block* b, const int64_t* chains, Sheet out) noexcept nogil:
        cdef float* rows[ABREAST_MOST]
        cdef Py_ssize_t k
        for k in range(b.n):
            rows[k] = <float*>out.node.data + out.node.first[chains[k]] * self.K
        self.loops.scatter(b, b.scores, self.K, False, rows)

    cdef float* pairs(self, Block* b, const int64_t* chains, Sheet out) noexcept nogil:
        cdef float* tables[ABREAST_MOST]
        cdef Py_ssize_t k, size = self.K * self.K
        for k in range(b.n):
            if out.each != NULL:
                tables[k] = out.each + chains[k] * size
            else:
                tables[k] = self.spare(b) + k * size
        self.loops.scatter(b, b.pairs, size, True, tables)
        return self.spare(b)

    cdef void weigh(self, const Block* b, Py_ssize_t lane, Py_ssize_t i, const float* pairs,
                    double factor, Sheet out, double* shared) noexcept nogil:
        cdef Py_ssize_t K = self.K, s, t, last = (b.length[lane] - 1) * K
        cdef float* rows = <float*>out.node.data + out.node.first[i] * K
        cdef double* table = shared + self.transition
        if factor != 1:
            _scale(b.length[lane] * K, <float>factor, rows)
        if out.each != NULL:
            if factor != 1:
                _scale(K * K, <float>factor, out.each + i * K * K)
        else:
            pairs += lane * K * K
            for s in range(K):
                for t in range(K):
                    table[s * self.stride + t] += factor * pairs[s * K + t]
        for s in range(K):
            if self.start >= 0:
                shared[self.start + s] += rows[s]
            if self.end >= 0:
                shared[self.end + s] += rows[last + s]

    cdef void add_label(self, const Block* b, Py_ssize_t lane, Py_ssize_t i, const int* label,
                        double factor, Sheet out, double* shared) noexcept nogil:
        cdef float* rows = <float*>out.node.data + out.node.first[i] * self.K
        cdef Py_ssize_t v, last = b.length[lane] - 1
        for v in range(last + 1):
            rows[v * self.K + label[v]] += <float>factor
            if v and out.each != NULL:
                out.each[(i * self.K + label[v - 1]) * self.K + label[v]] += <float>factor
            elif v:
                shared[self.transition + label[v - 1] * self.stride + label[v]] += factor
        if self.start >= 0:
            shared[self.start + label[0]] += factor
        if self.end >= 0:
            shared[self.end + label[last]] += factor

    cdef void to_each(self, Py_ssize_t i, Sheet out) noexcept nogil:
        cdef const double* table = out.shared + i * out.shared_step + self.transition
        cdef Py_ssize_t s, t
        if out.each == NULL:
            return
        for s in range(self.K):
            for t in range(self.K):
                out.each[(i * self.K + s) * self.K + t] = <float>table[s * self.stride + t]

    cdef double log_partition(self, const Block* b, Py_ssize_t lane) noexcept nogil:
        return b.logs[lane] + b.tops[lane] + (b.length[lane] - 1) * self.top + self.end_tops

    cdef double log_proba(self, const Block* b, Py_ssize_t lane,
                          const int* label) noexcept nogil:
        cdef const double* pairs = self.sheet.shared + self.transition
        cdef Py_ssize_t v, last = b.length[lane] - 1
        cdef double total = -self.log_partition(b, lane)
        if last < 0:
            return total
        for v in range(last + 1):
            total += b.rows[lane][v * self.K + label[v]]
            if v:
                total += pairs[label[v - 1] * self.stride + label[v]]
        if self.start >= 0:
            total += self.sheet.shared[self.start + label[0]]
        if self.end >= 0:
            total += self.sheet.shared[self.end + label[last]]
        return total

    cdef void add_means(self, const Block* b, const float* table, double* out) noexcept nogil:
        cdef Py_ssize_t k
        self.loops.mean_pairs(b, table, out)
        for k in range(b.n):
            out[k] += b.mean[k]

    cdef void means(self, Block* b, double* out) noexcept nogil:
        self.sums(b, False, True)
        self.add_means(b, self.scores, out)

    cdef void means_of(self, Block* b, Block* second, bint divergence, const float* table,
                       double* out) noexcept nogil:
        cdef Py_ssize_t k
        self.loops.forward(b)
        if divergence:
            for k in range(b.L * self.K * self.count):
                b.scores[k] -= second.scores[k]
        else:
            b.scores = second.scores
        self.loops.backward(b, False)
        self.loops.outer(b)
        self.add_means(b, table, out)


cdef Abreast abreast_of(projection, Sheet sheet, Abreast own=None):
    cdef PartLayout layout = sheet.layout
    cdef Py_ssize_t s, t, K = sheet.node.cols, stride = sheet.node.stride
    cdef double low, ignored
    cdef double[2] tops = [0, 0]    # of the first state's scores, of the last one's
    cdef const ss_loop_table* loops = ss_loops(stride)
    cdef const abreast_loops* own_loops = loops_of(loops.name)
    cdef const double* pairs
    cdef cnp.npy_intp size
    cdef double* exponentials
    cdef float* table
    if (own_loops == NULL or layout.n < LEAST_CHAINS or sheet.shared_step
            or not sheet.node.single or sheet.node.data == NULL):
        return None
    starts = getattr(projection, "linear_chain", None)
    if starts is None:
        return None
    for _, array in sheet.tables:
        if cnp.PyArray_TYPE(array) != cnp.NPY_FLOAT:
            return None
    if own is None:
        own = Abreast.__new__(Abreast)
        size = K * stride
        own.exponentials = cnp.PyArray_EMPTY(1, &size, cnp.NPY_DOUBLE, 0)
        size = 3 * K * K + 2 * K
        own.tables = cnp.PyArray_EMPTY(1, &size, cnp.NPY_FLOAT, 0)
        own.even = layout.offsets[layout.n] == layout.n * layout.max_nodes
        own.all = np.arange(layout.n)
    own.loops, own.sheet, own.K, own.count = own_loops, sheet, K, own_loops.lanes
    own.rows = max(layout.max_nodes + 1, K)
    own.transition, own.start, own.end = starts
    own.stride = stride
    # Rows of scores, of two kinds of messages, and two of spare(); a table.
    own.bytes = 4 * own.count * K * (5 * own.rows + K) + 64
    pairs = sheet.shared + own.transition
    loops.range(K, pairs, stride, K, -INFINITY, &low, &own.top)
    if own.bytes > MOST_BYTES or not own.top - low <= ABREAST_SPAN:
        return None
    for s in (own.start, own.end):
        if s >= 0:
            loops.range(1, sheet.shared + s, stride, K, -INFINITY, &low, &tops[s == own.end])
            if not tops[s == own.end] - low <= ABREAST_SPAN:
                return None
    own.end_tops = tops[0] + tops[1]
    loops.range(K, pairs, stride, K, INFINITY, &low, &ignored)
    own.forbids = low == -INFINITY
    exponentials = <double*>cnp.PyArray_DATA(own.exponentials)
    loops.exp_rows(K, pairs, stride, K, own.top, exponentials)
    own.scores = table = <float*>cnp.PyArray_DATA(own.tables)
    for s in range(K):
        for t in range(K):
            table[s * K + t] = max(pairs[s * stride + t] - own.top, -2 * ABREAST_SPAN)
            table[(K + s) * K + t] = table[(2 * K + t) * K + s] = exponentials[s * stride + t]
    for s in range(K):
        if own.start >= 0:
            table[3 * K * K + s] = sheet.shared[own.start + s] - tops[0]
        if own.end >= 0:
            table[3 * K * K + K + s] = sheet.shared[own.end + s] - tops[1]
    return own
