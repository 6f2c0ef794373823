# build: glue
"""Operators of factor graphs: those of their graphs of pairs, with parts and labels translated."""

from libc.stdint cimport uint64_t
from libc.math cimport INFINITY
from libc.string cimport memcpy
from structsolve.operators cimport KBest, MaxMarginals, Oracle, Parts, Projection, Relaxation
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.factor_graph._map cimport FactorMap
from structsolve.utils.arrays import padded


cdef inline Py_ssize_t _rounded(Py_ssize_t size) noexcept nogil:
    return (size + 127) // 64 * 64


cdef class FactorOracle(Oracle):
    """A decoder of the graphs of pairs, whose labels are those of the variables.

    Parameters
    ----------
    oracle : Oracle
        Of the graphs of pairs.
    links : FactorMap
    layout : PartLayout
    """

    cdef Oracle oracle
    cdef FactorMap links

    def __init__(self, Oracle oracle not None, FactorMap links not None,
                 PartLayout layout not None):
        super().__init__(layout)
        self.oracle, self.links, self.exact = oracle, links, oracle.exact
        self.n_states = layout.shapes["node"][0]
        self.work_bytes = links.theta_bytes + links.label_bytes + oracle.work_bytes

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef double* scores = <double*>work
        cdef int* inner = <int*>(work + self.links.theta_bytes)
        self.links.spread(i, theta, True, scores)
        self.oracle.argmax(i, scores, inner, value, bound,
                           work + self.links.theta_bytes + self.links.label_bytes)
        memcpy(label, inner, self.layout.label_size(i) * sizeof(int))
        value[0] = self.links.score(i, theta, label)    # its own entries, whatever factors' nodes say
        bound[0] = value[0] if self.exact else max(bound[0], value[0])
        return 0


cdef class FactorKBest(KBest):
    """The k best labelings, by those of the graphs of pairs.

    Parameters
    ----------
    kbest : KBest
        Of the graphs of pairs.
    links : FactorMap
    layout : PartLayout
    """

    cdef KBest inner
    cdef FactorMap links

    def __init__(self, KBest kbest not None, FactorMap links not None, PartLayout layout not None):
        super().__init__(layout)
        self.inner, self.links = kbest, links
        self.n_states = layout.shapes["node"][0]
        self.work_bytes = self.bytes_for(1)

    cpdef Py_ssize_t bytes_for(self, Py_ssize_t k) except -1:
        """Room for scores, the inner labels, and the inner operator."""
        return (self.links.theta_bytes + _rounded(4 * k * self.links.inner.max_label)
                + self.inner.bytes_for(k))

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        cdef double* scores = <double*>work
        cdef int* inner = <int*>(work + self.links.theta_bytes)
        cdef char* rest = work + self.links.theta_bytes + _rounded(
            4 * k * self.links.inner.max_label)
        cdef Py_ssize_t n = self.layout.label_size(i), j, count, size
        size = self.links.inner.label_size(i)
        self.links.spread(i, theta, True, scores)
        count = self.inner.kbest(i, scores, k, inner, values, rest)
        for j in range(count):
            if j and values[j] == -INFINITY:
                return j
            memcpy(labels + j * n, inner + j * size, n * sizeof(int))
            values[j] = self.links.score(i, theta, labels + j * n)
        return count


cdef class FactorMaxMarginals(MaxMarginals):
    """The best score for each state of each variable.

    Parameters
    ----------
    marginals : MaxMarginals
        Of the graphs of pairs.
    links : FactorMap
    layout : PartLayout
    """

    cdef MaxMarginals inner
    cdef FactorMap links
    cdef Py_ssize_t stride, inner_stride, out_bytes

    def __init__(self, MaxMarginals marginals not None, FactorMap links not None,
                 PartLayout layout not None):
        super().__init__(layout)
        self.inner, self.links = marginals, links
        self.n_states = layout.shapes["node"][0]
        self.stride, self.inner_stride = padded(self.n_states), padded(marginals.n_states)
        self.out_bytes = _rounded(8 * links.inner.max_label * self.inner_stride)
        self.work_bytes = links.theta_bytes + self.out_bytes + marginals.work_bytes

    cdef int max_marginals(self, Py_ssize_t i, const double* theta, double* out,
                           char* work) except -1 nogil:
        cdef double* scores = <double*>work
        cdef double* best = <double*>(work + self.links.theta_bytes)
        cdef Py_ssize_t v
        self.links.spread(i, theta, True, scores)
        self.inner.max_marginals(i, scores, best, work + self.links.theta_bytes + self.out_bytes)
        for v in range(self.layout.label_size(i)):
            memcpy(out + v * self.stride, best + v * self.inner_stride,
                   self.n_states * sizeof(double))
        return 0


cdef class FactorRelaxation(Relaxation):
    """The linear relaxation of the graphs of pairs.

    Parameters
    ----------
    relaxation : Relaxation
        Of the graphs of pairs.
    links : FactorMap
    layout : PartLayout
    """

    cdef Relaxation inner
    cdef FactorMap links

    def __init__(self, Relaxation relaxation not None, FactorMap links not None,
                 PartLayout layout not None):
        super().__init__(layout)
        self.inner, self.links = relaxation, links
        self.n_states = layout.shapes["node"][0]
        self.work_bytes = 2 * links.theta_bytes + links.label_bytes + relaxation.work_bytes

    cdef int relax(self, Py_ssize_t i, const double* theta, double* mu, int* label,
                   double* value, double* bound, char* work) except -1 nogil:
        cdef double* scores = <double*>work
        cdef double* wide = <double*>(work + self.links.theta_bytes)
        cdef int* inner = <int*>(work + 2 * self.links.theta_bytes)
        cdef int whole
        self.links.spread(i, theta, True, scores)
        whole = self.inner.relax(i, scores, wide, inner, value, bound,
                                 work + 2 * self.links.theta_bytes + self.links.label_bytes)
        self.links.collect(i, wide, mu)
        if whole:
            memcpy(label, inner, self.layout.label_size(i) * sizeof(int))
        return whole


cdef class FactorSums(Projection):
    """The projection "entropy", by sums over the graphs of pairs.

    A state is the marginals of the graph of pairs, then the inner operator's state.

    Parameters
    ----------
    sums : Projection
        Of the graphs of pairs.
    links : FactorMap
    layout : PartLayout
    """

    cdef Projection inner
    cdef FactorMap links
    cdef Py_ssize_t drawn_bytes, rest_at

    def __init__(self, Projection sums not None, FactorMap links not None,
                 PartLayout layout not None):
        super().__init__(layout)
        self.inner, self.links = sums, links
        self.exact, self.gibbs, self.has_state = sums.exact, sums.gibbs, sums.has_state
        self.has_term, self.has_samples = sums.has_term, sums.has_samples
        self.has_derivative = sums.has_derivative
        self.n_states = layout.shapes["node"][0]
        self.drawn_bytes = _rounded(8 * links.inner.max_label)
        # Scores, then marginals; in sample() numbers and a label in place of the latter.
        self.rest_at = links.theta_bytes + max(links.theta_bytes,
                                               self.drawn_bytes + links.label_bytes)
        self.work_bytes = self.rest_at + sums.work_bytes

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef double* scores = <double*>work
        cdef double* wide = <double*>(work + self.links.theta_bytes)
        self.links.spread(i, theta, True, scores)
        self.inner.project(i, scores, wide, value, bound, work + self.rest_at)
        self.links.collect(i, wide, marginals)
        return 0

    cdef Py_ssize_t state_size(self, Py_ssize_t i) noexcept nogil:
        if not self.has_state:
            return self.layout.theta_size(i)
        return self.links.inner.theta_size(i) + self.inner.state_size(i)

    cdef int project_state(self, Py_ssize_t i, const double* theta, double* state, double* value,
                           double* bound, char* work) except -1 nogil:
        cdef double* own = state + self.links.inner.theta_size(i)
        if not self.has_state:
            return self.project(i, theta, state, value, bound, work)
        self.links.spread(i, theta, True, <double*>work)
        self.inner.project_state(i, <double*>work, own, value, bound, work + self.rest_at)
        return self.inner.pool(i, own, state)

    cdef int state_of(self, Py_ssize_t i, const int* label, double* state) except -1 nogil:
        cdef double* own = state + self.links.inner.theta_size(i)
        # The marginals' room holds the inner label first.
        self.links.complete(i, label, <int*>state)
        self.inner.state_of(i, <int*>state, own)
        return self.inner.pool(i, own, state)

    cdef int pool(self, Py_ssize_t i, const double* state, double* marginals) except -1 nogil:
        self.links.collect(i, state, marginals)
        return 0

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        return self.inner.term(i, state + self.links.inner.theta_size(i), work)

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        cdef Py_ssize_t first = self.links.inner.theta_size(i)
        return self.inner.slope(i, a + first, b + first, gamma, work)

    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil:
        cdef double* numbers = <double*>(work + self.links.theta_bytes)
        cdef int* inner = <int*>(work + self.links.theta_bytes + self.drawn_bytes)
        cdef Py_ssize_t size = self.layout.label_size(i), j, v
        cdef Py_ssize_t wide = self.links.inner.label_size(i)
        self.links.spread(i, theta, True, <double*>work)
        for j in range(n):
            memcpy(numbers, uniforms + j * size, size * sizeof(double))
            for v in range(size, wide):
                numbers[v] = _mixed(uniforms + j * size, size, v)
            self.inner.sample(i, <double*>work, 1, numbers, inner, work + self.rest_at)
            memcpy(labels + j * size, inner, size * sizeof(int))
        return 0

    cpdef Py_ssize_t derivative_bytes(self) except -1:
        """Room for scores, a direction, the result, and the inner operator."""
        return 3 * self.links.theta_bytes + self.inner.derivative_bytes()

    cdef int derivative(self, Py_ssize_t i, const double* theta, const double* direction,
                        double* out, char* work) except -1 nogil:
        cdef double* towards = <double*>(work + self.links.theta_bytes)
        cdef double* moved = <double*>(work + 2 * self.links.theta_bytes)
        self.links.spread(i, theta, True, <double*>work)
        self.links.spread(i, direction, False, towards)
        self.inner.derivative(i, <double*>work, towards, moved, work + 3 * self.links.theta_bytes)
        self.links.collect(i, moved, out)
        return 0


cdef double _mixed(const double* uniforms, Py_ssize_t n, Py_ssize_t number) noexcept nogil:
    # A number from [0, 1) for the node of a factor, by a hash of those for the variables: the
    # caller has none for it (the steps are those of SplitMix64).
    cdef uint64_t x = <uint64_t>number, one
    cdef Py_ssize_t v
    for v in range(n):
        memcpy(&one, uniforms + v, sizeof(double))
        x = (x ^ one) + <uint64_t>0x9e3779b97f4a7c15
        x = (x ^ (x >> 30)) * <uint64_t>0xbf58476d1ce4e5b9
        x = (x ^ (x >> 27)) * <uint64_t>0x94d049bb133111eb
        x ^= x >> 31
    return <double>(x >> 11) * 2.0 ** -53


cdef class FactorParts(Parts):
    """States of variables, and entries of factors.

    Parameters
    ----------
    links : FactorMap
    layout : PartLayout
    """

    cdef FactorMap links

    def __init__(self, FactorMap links not None, PartLayout layout not None):
        super().__init__(layout)
        self.links = links
        self.n_states = layout.shapes["node"][0]
        self.max_entries = 2 * (layout.max_label + links.max_factors)

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        cdef Py_ssize_t g = 0 if self.links.one_graph else i, v, f, n = 0
        cdef Py_ssize_t row = self.layout.shared_size
        for v in range(self.layout.label_size(i)):
            index[n] = <int>(row + v * self.layout.node_size + label[v])
            value[n] = 1
            n += 1
        for f in range(self.links.factor_at[g], self.links.factor_at[g + 1]):
            index[n] = <int>self.links.cell(f, label)
            value[n] = 1
            n += 1
        return n

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        cdef Py_ssize_t g = 0 if self.links.one_graph else i, v, f, n = 0
        cdef Py_ssize_t row = self.layout.shared_size, home, away
        for v in range(self.layout.label_size(i)):
            if truth[v] != label[v]:
                n = _pair(n, row + truth[v], row + label[v], index, value)
            row += self.layout.node_size
        for f in range(self.links.factor_at[g], self.links.factor_at[g + 1]):
            home, away = self.links.cell(f, truth), self.links.cell(f, label)
            if home != away:
                n = _pair(n, home, away, index, value)
        return n


cdef inline Py_ssize_t _pair(Py_ssize_t n, Py_ssize_t home, Py_ssize_t away, int* index,
                             double* value) noexcept nogil:
    index[n], index[n + 1] = <int>home, <int>away
    value[n], value[n + 1] = 1, -1
    return n + 2
