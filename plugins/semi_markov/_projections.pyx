"""Marginals of ``p(y) ~ exp <theta, mu(y)>`` over segmentations, their derivatives, and samples.

The recursion is that of the oracle with sums in place of maxima, on logarithms.  Back from the end,
probabilities are handed on by the shares of the terms of each sum, so that they add up to 1 however
large scores are.  Derivatives of all of them along a direction come from the same passes: that of a
log of a sum is the mean of those of its terms.
"""

cimport cython
from libc.math cimport INFINITY, exp, log
from libc.string cimport memset
from structsolve.algorithms.messages cimport impossible, log_sum_exp
from structsolve.operators cimport Projection
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.semi_markov._shape cimport Sizes, length_scores, n_tokens, sizes_of


cdef struct Messages:
    # Of tokens: logs of sums over what is before the end of a segment, and before its tokens, and
    # probabilities that a segment ends and begins there, each with a row of classes.
    double* ends
    double* begins
    double* ending
    double* beginning
    double* whole               # row: of all segmentations, by the last class
    double* last                # row: probabilities of the last class
    double total                # log of the sum over all


cdef struct Memory:
    double* lengths
    double* table               # rows of terms
    double* sums                # row
    double* run                 # row
    Messages logs, moves        # moves: derivatives, where there is a direction


cdef Py_ssize_t _draw(Py_ssize_t K, const double* weights, double* uniform) noexcept nogil:
    # A class by its weights; what is left of the uniform number is uniform again.
    cdef double total = 0, x
    cdef Py_ssize_t c, drawn = 0
    for c in range(K):
        total += weights[c]
    x = uniform[0] * total
    for c in range(K):
        if weights[c] > 0:
            drawn = c
            if x < weights[c]:
                uniform[0] = x / weights[c]
                return drawn
            x -= weights[c]
    uniform[0] = 0.5
    return drawn


@cython.final
cdef class SegmentSums(Projection):
    """The entropy projection: marginals of tokens, ends, lengths and pairs of segments.

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
        self.gibbs = self.has_samples = self.has_derivative = True
        rows = self.shape.most + max(self.shape.most, self.shape.K) + 2
        self.work_bytes = 8 * self.shape.stride * rows + self.message_bytes()

    cdef Py_ssize_t message_bytes(self) noexcept nogil:
        return 8 * self.shape.stride * (4 * self.shape.max_nodes + 2)

    cpdef Py_ssize_t derivative_bytes(self) except -1:
        """Room for the messages and their derivatives."""
        return self.work_bytes + self.message_bytes()

    cdef Messages messages(self, double* room) noexcept nogil:
        cdef Messages own
        cdef Py_ssize_t rows = self.shape.max_nodes * self.shape.stride
        own.ends, own.begins, own.ending = room, room + rows, room + 2 * rows
        own.beginning, own.whole = room + 3 * rows, room + 4 * rows
        own.last = own.whole + self.shape.stride
        own.total = 0
        return own

    cdef Memory memory(self, const double* theta, const double* direction,
                       char* work) noexcept nogil:
        cdef Memory m
        cdef Py_ssize_t stride = self.shape.stride
        cdef double* room
        m.lengths = <double*>work
        m.table = m.lengths + self.shape.most * stride
        m.sums = m.table + max(self.shape.most, self.shape.K) * stride
        m.run = m.sums + stride
        room = m.run + stride
        m.logs = self.messages(room)
        m.moves = self.messages(room + self.message_bytes() // 8)
        if direction == NULL:
            m.moves.ends = NULL
        length_scores(&self.shape, theta, m.lengths)
        return m

    cdef void log_sums(self, Py_ssize_t rows, const Memory* m, double* out) noexcept nogil:
        # out <- log of the sum of exp of each column of the table, which becomes its weights.
        cdef Py_ssize_t K = self.shape.K, stride = self.shape.stride, r, c
        cdef double* row
        for c in range(K):
            out[c], m.sums[c] = -INFINITY, 0
        for r in range(rows):
            row = m.table + r * stride
            for c in range(K):
                out[c] = row[c] if row[c] > out[c] else out[c]
        for c in range(K):
            out[c] = out[c] if out[c] > -INFINITY else 0
        for r in range(rows):
            row = m.table + r * stride
            for c in range(K):
                row[c] -= out[c]
        self.shape.loops.exp_rows(rows, m.table, stride, K, 0, m.table)
        for r in range(rows):
            row = m.table + r * stride
            for c in range(K):
                m.sums[c] += row[c]
        for c in range(K):
            out[c] += log(m.sums[c])
            m.sums[c] = 1 / m.sums[c] if m.sums[c] > 0 else 0
        for r in range(rows):
            row = m.table + r * stride
            for c in range(K):
                row[c] *= m.sums[c]

    cdef void forward(self, Py_ssize_t i, const double* theta, const double* direction,
                      Memory* m) noexcept nogil:
        cdef const Sizes* shape = &self.shape
        cdef Py_ssize_t n = n_tokens(shape, i), K = shape.K, stride = shape.stride, e, s, c
        cdef Py_ssize_t row, node
        cdef double* begins
        cdef double* move
        cdef double total = 0
        for e in range(1, n + 1):
            row = (e - 1) * stride
            node = shape.shared_size + (e - 1) * shape.node_size
            begins = m.logs.begins + row
            move = m.moves.begins + row
            if e == 1:
                for c in range(K):
                    begins[c] = theta[shape.start + c]
                    if direction != NULL:
                        move[c] = direction[shape.start + c]
            else:
                for s in range(K):
                    for c in range(K):
                        m.table[s * stride + c] = (m.logs.ends[row - stride + s]
                                                   + theta[shape.transition + s * stride + c])
                self.log_sums(K, m, begins)
                if direction != NULL:
                    memset(move, 0, stride * sizeof(double))
                    for s in range(K):
                        for c in range(K):
                            move[c] += m.table[s * stride + c] * (
                                m.moves.ends[row - stride + s]
                                + direction[shape.transition + s * stride + c])
            for c in range(K):
                begins[c] += theta[node + shape.begins + c]
                if direction != NULL:
                    move[c] += direction[node + shape.begins + c]
            self.lengths_before(theta, m.lengths, m.logs.begins, e, m.run, m.table, NULL)
            self.log_sums(min(e, shape.most), m, m.logs.ends + row)
            if direction != NULL:
                self.lengths_before(direction, direction + shape.length, m.moves.begins, e, m.run,
                                    m.table, m.moves.ends + row)
        for c in range(K):
            m.logs.whole[c] = m.logs.ends[(n - 1) * stride + c] + theta[shape.end + c]
        m.logs.total = log_sum_exp(K, m.logs.whole)
        for c in range(K):
            m.logs.last[c] = exp(m.logs.whole[c] - m.logs.total)
            total += m.logs.last[c]
        m.moves.total = 0
        for c in range(K):
            m.logs.last[c] /= total
            if direction != NULL:
                m.moves.whole[c] = m.moves.ends[(n - 1) * stride + c] + direction[shape.end + c]
                m.moves.total += m.logs.last[c] * m.moves.whole[c]

    cdef void lengths_before(self, const double* theta, const double* lengths,
                             const double* begins, Py_ssize_t e, double* inside, double* table,
                             double* mean) noexcept nogil:
        # Scores of the segments that end before token e, and of all before them, by length: to
        # `table`, or their means by its weights.
        cdef const Sizes* shape = &self.shape
        cdef Py_ssize_t K = shape.K, stride = shape.stride, l, c
        cdef const double* node = theta + shape.shared_size + (e - 1) * shape.node_size
        cdef const double* first
        cdef double x
        for c in range(K):
            inside[c] = node[shape.ends + c]
            if mean != NULL:
                mean[c] = 0
        for l in range(min(e, shape.most)):
            first = begins + (e - l - 1) * stride
            for c in range(K):
                inside[c] += node[c]
                x = first[c] + (inside[c] + lengths[l * stride + c])
                if mean == NULL:
                    table[l * stride + c] = x
                else:
                    mean[c] += table[l * stride + c] * x
            node -= shape.node_size

    cdef void backward(self, Py_ssize_t i, const double* theta, const double* direction,
                       Memory* m, double* out) noexcept nogil:
        # Adds the marginals, or their derivatives, to `out`, which is 0.
        cdef const Sizes* shape = &self.shape
        cdef Py_ssize_t n = n_tokens(shape, i), K = shape.K, stride = shape.stride, b, c, node
        cdef const double* begun = m.logs.beginning if direction == NULL else m.moves.beginning
        cdef double x
        memset(m.logs.beginning, 0, n * stride * sizeof(double))
        if direction != NULL:
            memset(m.moves.beginning, 0, n * stride * sizeof(double))
        for c in range(K):
            x = m.logs.ending[(n - 1) * stride + c] = m.logs.last[c]
            if direction != NULL:
                x *= m.moves.whole[c] - m.moves.total
                m.moves.ending[(n - 1) * stride + c] = x
            out[shape.end + c] = x
        for b in range(n - 1, -1, -1):
            # With the segments that end here, all are known that begin here.
            self.segments(theta, direction, b + 1, m, out)
            node = shape.shared_size + b * shape.node_size
            for c in range(K):
                out[node + shape.begins + c] = begun[b * stride + c]
            if b > 0:
                self.pairs(theta, direction, b, m, out + shape.transition)
        for c in range(K):
            out[shape.start + c] = begun[c]

    cdef void pairs(self, const double* theta, const double* direction, Py_ssize_t b, Memory* m,
                    double* out) noexcept nogil:
        # Pairs of a segment that ends before token b, in rows, and one that begins there.
        cdef const Sizes* shape = &self.shape
        cdef Py_ssize_t K = shape.K, stride = shape.stride, s, c, before = (b - 1) * stride
        cdef const double* mass = m.logs.beginning + b * stride
        cdef const double* gain = m.moves.beginning + b * stride
        cdef const double* mean = m.moves.begins + b * stride
        cdef const double* begins = direction + shape.shared_size + b * shape.node_size + shape.begins
        cdef double x
        theta += shape.transition
        for s in range(K):
            for c in range(K):
                m.table[s * stride + c] = m.logs.ends[before + s] + theta[s * stride + c]
        self.log_sums(K, m, m.run)
        for s in range(K):
            m.logs.ending[before + s] = 0
            for c in range(K):
                x = m.table[s * stride + c] * mass[c]
                m.logs.ending[before + s] += x
                if direction == NULL:
                    out[s * stride + c] += x
        if direction == NULL:
            return
        direction += shape.transition
        for s in range(K):
            m.moves.ending[before + s] = 0
            for c in range(K):
                x = m.moves.ends[before + s] + direction[s * stride + c] - (mean[c] - begins[c])
                x = m.table[s * stride + c] * (gain[c] + mass[c] * x)
                m.moves.ending[before + s] += x
                out[s * stride + c] += x

    cdef void segments(self, const double* theta, const double* direction, Py_ssize_t e, Memory* m,
                       double* out) noexcept nogil:
        # The parts of the segments that end before token e.
        cdef const Sizes* shape = &self.shape
        cdef Py_ssize_t K = shape.K, stride = shape.stride, l, c, count = min(e, shape.most)
        cdef Py_ssize_t last = (e - 1) * stride, first, place
        cdef Py_ssize_t node = shape.shared_size + (e - 1) * shape.node_size
        cdef const double* mass = m.logs.ending + last
        cdef double* row
        cdef double x, share
        self.lengths_before(theta, m.lengths, m.logs.begins, e, m.run, m.table, NULL)
        self.log_sums(count, m, m.run)
        for c in range(K):
            out[node + shape.ends + c] = mass[c] if direction == NULL else m.moves.ending[last + c]
            m.run[c] = 0 if direction == NULL else direction[node + shape.ends + c]
        for l in range(count):
            row, first, place = m.table + l * stride, last - l * stride, node - l * shape.node_size
            for c in range(K):
                share = row[c]
                row[c] *= mass[c]
                m.logs.beginning[first + c] += row[c]
                if direction != NULL:
                    m.run[c] += direction[place + c]
                    x = m.moves.begins[first + c] + m.run[c] + direction[shape.length + l * stride + c]
                    row[c] = (share * m.moves.ending[last + c]
                              + row[c] * (x - m.moves.ends[last + c]))
                    m.moves.beginning[first + c] += row[c]
                out[shape.length + l * stride + c] += row[c]
        memset(m.run, 0, stride * sizeof(double))
        for l in range(count - 1, -1, -1):
            place = node - l * shape.node_size
            for c in range(K):
                m.run[c] += m.table[l * stride + c]
                out[place + c] += m.run[c]

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef Memory m = self.memory(theta, NULL, work)
        self.forward(i, theta, NULL, &m)
        if not m.logs.total > -INFINITY:
            return impossible(i)
        memset(marginals, 0, self.layout.theta_size(i) * sizeof(double))
        self.backward(i, theta, NULL, &m, marginals)
        value[0] = bound[0] = m.logs.total
        return 0

    cdef int derivative(self, Py_ssize_t i, const double* theta, const double* direction,
                        double* out, char* work) except -1 nogil:
        cdef Memory m = self.memory(theta, direction, work)
        self.forward(i, theta, direction, &m)
        if not m.logs.total > -INFINITY:
            return impossible(i)
        memset(out, 0, self.layout.theta_size(i) * sizeof(double))
        self.backward(i, theta, direction, &m, out)
        return 0

    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil:
        # From the last segment to the first: its class and its length by one number.
        cdef const Sizes* shape = &self.shape
        cdef Py_ssize_t size = n_tokens(shape, i), K = shape.K, stride = shape.stride, j, e, b, l, c
        cdef Memory m = self.memory(theta, NULL, work)
        cdef double uniform, top
        cdef int* label
        self.forward(i, theta, NULL, &m)
        if not m.logs.total > -INFINITY:
            return impossible(i)
        for j in range(n):
            label, e = labels + j * size, size
            for c in range(K):
                m.sums[c] = exp(m.logs.whole[c] - m.logs.total)
            while True:
                uniform = uniforms[j * size + e - 1]
                c = _draw(K, m.sums, &uniform)
                self.lengths_before(theta, m.lengths, m.logs.begins, e, m.run, m.table, NULL)
                for l in range(min(e, shape.most)):
                    m.table[l] = exp(m.table[l * stride + c] - m.logs.ends[(e - 1) * stride + c])
                b = e - 1 - _draw(min(e, shape.most), m.table, &uniform)
                label[b] = <int>c
                for l in range(b + 1, e):
                    label[l] = <int>(K + c)
                if b == 0:
                    break
                top = -INFINITY
                for l in range(K):
                    m.sums[l] = (m.logs.ends[(b - 1) * stride + l]
                                 + theta[shape.transition + l * stride + c])
                    top = max(top, m.sums[l])
                for l in range(K):
                    m.sums[l] = exp(m.sums[l] - top)
                e = b
        return 0
