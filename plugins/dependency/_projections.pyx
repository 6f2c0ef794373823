"""Marginals of arcs under ``p(y) ~ exp <theta, mu(y)>`` over trees, and samples of trees."""

cimport cython
from libc.math cimport INFINITY, floor, log
from libc.string cimport memcpy
from structsolve.operators cimport Projection
from structsolve.part_layout cimport PartLayout
from structsolve.simd.loops cimport ss_loop_table, ss_loops

from structsolve.plugins.dependency._eisner cimport (
    Chart, chart_bytes, chart_in, fill, spread, trace,
)
from structsolve.plugins.dependency._eisner_derivative cimport spread_along
from structsolve.plugins.dependency._matrix_tree cimport arc_marginals, draw_tree, elimination_bytes
from structsolve.plugins.dependency._semiring cimport LOGS, WEIGHTS
from structsolve.plugins.dependency._span_sums cimport most_span_words, span_bytes, span_marginals
from structsolve.plugins.dependency._tree_derivative cimport arc_derivative, derivative_bytes
from structsolve.plugins.dependency._shape cimport ArcShape, arc_shape

# Weights replace logs where the sum over at most 6.75^n trees of weight up to 1 is so large that
# spans which underflow, 1e-308 times 6.75^n, do not matter.  Outside sums stay below
# 6.75^n / LEAST, 1e283 for the longest sentences.
cdef double LEAST = 1e-100

# Half of the digits of a uniform number.
cdef double HALF = 2.0**26

cdef enum:
    MOST_WORDS = 220


@cython.final
cdef class DependencyProjection(Projection):
    """The entropy projection: marginals of arcs, and the log of the sum over trees.

    Projective trees: inside and outside sums over spans, O(n^3), of weights or, if these would
    underflow, of their logs.  All trees: elimination of words, O(n^3), without subtractions.

    Parameters
    ----------
    projective, single_root : bool
        The kind of trees allowed.
    layout : PartLayout
        Layout of a dependency space.
    """

    cdef ArcShape shape
    cdef bint projective, single
    cdef Py_ssize_t table_bytes, main_bytes, arc_bytes

    def __init__(self, bint projective, bint single_root, PartLayout layout not None):
        super().__init__(layout)
        self.shape, self.projective, self.single = arc_shape(layout), projective, single_root
        cdef Py_ssize_t n = self.shape.max_words
        self.n_states = self.shape.n_states()
        self.gibbs = self.has_samples = self.has_derivative = True
        self.table_bytes = n * (n + 1) * sizeof(double)
        self.main_bytes = max(2 * chart_bytes(n), span_bytes(n)) if projective else (
            elimination_bytes(n) + (n + 1) * sizeof(double))
        self.main_bytes += 63 - (self.main_bytes + 63) % 64
        # With relations, a number for each arc, or each word.
        self.arc_bytes = self.shape.max_arcs * sizeof(double) if self.shape.classes > 1 else 0
        self.work_bytes = self.main_bytes + 2 * self.table_bytes + 64 + self.arc_bytes
        if self.shape.classes > 1:  # the probabilities of relations
            self.work_bytes += self.shape.max_arcs * self.shape.stride * sizeof(double)

    cdef double weights(self, Py_ssize_t n, const double* table, double* weights) noexcept nogil:
        # Weights of the arcs of each word, the largest 1; returns the log of the divisors.
        cdef Py_ssize_t m, width = n + 1
        cdef double low, top, scale = 0
        cdef const ss_loop_table* loops = ss_loops(8)
        for m in range(n):
            loops.range(1, table + m * width, width, width, -INFINITY, &low, &top)
            if top == -INFINITY:
                return top
            # The last vector of a row overlaps the next one, that of the last row the 64 bytes
            # after the tables.
            loops.exp_rows(1, table + m * width, width, width, top, weights + m * width)
            scale += top
        return scale

    cdef double chart(self, Py_ssize_t n, const double* table, double* scaled, Chart* chart,
                      double* total, char* work) noexcept nogil:
        # Fill a chart of weights where these do not underflow, else of logs; `total` is a number of
        # the chart's kind.
        cdef double scale
        if n <= MOST_WORDS:
            scale = self.weights(n, table, scaled)
            if scale == -INFINITY:
                return scale
            chart[0] = chart_in(WEIGHTS, n, self.single, work)
            total[0] = fill(chart, scaled)
            if total[0] >= LEAST:
                return scale + log(total[0])
        return self.chart_of_logs(n, table, chart, total, work)

    cdef double chart_of_logs(self, Py_ssize_t n, const double* table, Chart* chart, double* total,
                              char* work) noexcept nogil:
        chart[0] = chart_in(LOGS, n, self.single, work)
        total[0] = fill(chart, table)
        return total[0]

    cdef double spans(self, Py_ssize_t n, const double* table, double* arcs,
                      char* work) noexcept nogil:
        # Marginals of the arcs of projective trees; returns the log of the sum over all.
        cdef double scale, total = 0
        cdef Chart chart
        if n <= min(MOST_WORDS, most_span_words()):
            scale = self.weights(n, table, arcs)
            if scale == -INFINITY:
                return scale
            total = span_marginals(n, self.single, arcs, LEAST, arcs, work)
            if total >= LEAST:
                return scale + log(total)
            scale = self.chart_of_logs(n, table, &chart, &total, work)
        else:
            scale = self.chart(n, table, arcs, &chart, &total, work)
        if scale > -INFINITY:
            spread(&chart, total, arcs, work + chart_bytes(n))
        return scale

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef Py_ssize_t n = self.shape.n_words(i), a, c
        cdef double* table = <double*>(work + self.main_bytes)
        cdef double* arcs = <double*>(work + self.main_bytes + self.table_bytes)
        cdef double* room = <double*>(work + self.main_bytes + 2 * self.table_bytes + 64)
        self.shape.load_sums(i, theta, marginals, room, table)
        value[0] = self.arc_marginals(n, table, arcs, work)
        if value[0] == -INFINITY:
            return self.shape.impossible(i)
        bound[0] = value[0]
        if self.shape.classes == 1:
            self.shape.store(i, arcs, marginals)
            return 0
        self.shape.store(i, arcs, room)
        for a in range(self.shape.arcs[i + 1] - self.shape.arcs[i]):
            for c in range(self.shape.stride):
                marginals[a * self.shape.stride + c] *= room[a]
        return 0

    cdef double arc_marginals(self, Py_ssize_t n, const double* table, double* arcs,
                              char* work) noexcept nogil:
        if self.projective:
            return self.spans(n, table, arcs, work)
        return arc_marginals(n, table, self.single, arcs, work)

    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil:
        cdef Py_ssize_t words = self.shape.n_words(i), j, m
        cdef double* table = <double*>(work + self.main_bytes)
        cdef double* other = <double*>(work + self.main_bytes + self.table_bytes)
        cdef double* room = <double*>(work + self.main_bytes + 2 * self.table_bytes + 64)
        cdef double* shares = room + self.arc_bytes / sizeof(double)
        cdef double total = 0
        cdef const double* drawn
        cdef Chart chart
        self.shape.load_sums(i, theta, shares, room, table)
        if self.projective and self.chart(words, table, other, &chart, &total, work) == -INFINITY:
            return self.shape.impossible(i)
        for j in range(n):
            drawn = uniforms + j * words
            if self.shape.classes > 1:
                # The upper half of a number's digits draws the arc, the lower one the relation.
                for m in range(words):
                    room[m] = floor(drawn[m] * HALF) / HALF
                drawn = room
            if self.projective:
                trace(&chart, drawn, labels + j * words)
            else:
                memcpy(other, table, words * (words + 1) * sizeof(double))
                if not draw_tree(words, other, self.single, drawn, labels + j * words, work):
                    return self.shape.impossible(i)
            if self.shape.classes > 1:
                for m in range(words):
                    labels[j * words + m] = self.relation(
                        i, m, labels[j * words + m], shares,
                        (uniforms[j * words + m] - room[m]) * HALF)
        return 0

    cdef int relation(self, Py_ssize_t i, Py_ssize_t m, int head, const double* shares,
                      double uniform) noexcept nogil:
        # The label with a relation drawn for an arc.
        cdef const double* row = shares + self.shape.arc(i, m, head) * self.shape.stride
        cdef Py_ssize_t c, last = 0
        cdef double below = 0
        for c in range(self.shape.classes):
            if row[c] > 0:
                last = c
                below += row[c]
                if uniform < below:
                    break
        return <int>(head * self.shape.classes + last)

    cpdef Py_ssize_t derivative_bytes(self) except -1:
        """Return the bytes for tables and the memory of the sums over them."""
        cdef Py_ssize_t n = self.shape.max_words
        cdef Py_ssize_t sums = 4 * chart_bytes(n) if self.projective else derivative_bytes(n)
        # Marginals of arcs need the memory of project().
        return self._sums_at() + max(sums, self.main_bytes + 64)

    cdef Py_ssize_t _sums_at(self) noexcept nogil:
        return (4 * self.table_bytes + 2 * self.arc_bytes + 127) // 64 * 64

    cdef int derivative(self, Py_ssize_t i, const double* theta, const double* direction,
                        double* out, char* work) except -1 nogil:
        cdef Py_ssize_t n = self.shape.n_words(i), j, a, c, K = self.shape.classes, part
        cdef double* table = <double*>work
        cdef double* along = <double*>(work + self.table_bytes)
        cdef double* arcs = <double*>(work + 2 * self.table_bytes)
        cdef double* weights = <double*>(work + 3 * self.table_bytes)
        cdef double* means = <double*>(work + 4 * self.table_bytes + 64)
        cdef char* sums = work + self._sums_at()
        cdef double total = 0
        cdef Chart chart
        self.shape.load_sums(i, theta, out, means, table)
        if K == 1:
            self.shape.load(i, direction, along)
        else:
            for a in range(self.shape.arcs[i + 1] - self.shape.arcs[i]):
                means[a] = 0
                for c in range(K):
                    part = a * self.shape.stride + c
                    means[a] += out[part] * direction[part]
            self.shape.load(i, means, along)
        for j in range(n * (n + 1)):
            # Arcs outside the candidates have score -inf and marginal 0.
            along[j] = 0 if along[j] == -INFINITY else along[j]
        if self.projective:
            if self.chart(n, table, weights, &chart, &total, sums) == -INFINITY:
                return self.shape.impossible(i)
            spread_along(&chart, total, weights if chart.kind == WEIGHTS else table, along, arcs,
                         sums + chart_bytes(n))
        elif not arc_derivative(n, table, along, self.single, arcs, sums):
            return self.shape.impossible(i)
        if K == 1:
            self.shape.store(i, arcs, out)
            return 0
        # d (p(arc) p(class | arc)) = p(class | arc) (d p(arc) + p(arc) (d score - its mean))
        self.arc_marginals(n, table, weights, sums)
        for j in range(n * (n + 1)):
            arcs[j] -= weights[j] * along[j]
        self.shape.store(i, arcs, means)
        self.shape.store(i, weights, means + self.shape.max_arcs)
        for a in range(self.shape.arcs[i + 1] - self.shape.arcs[i]):
            for c in range(K):
                part = a * self.shape.stride + c
                out[part] *= means[a] + means[self.shape.max_arcs + a] * direction[part]
        return 0
