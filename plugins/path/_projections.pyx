"""Sums over the paths of graphs without cycles: marginals, entropy, samples, derivatives.

A path is a walk of a Markov chain: from place p it takes each step with a probability that depends
on p alone.  A *state* has the probability of every edge; if the source is the sink, only a 1.
"""

cimport cython
from libc.math cimport INFINITY, exp, log
from libc.string cimport memset
from structsolve.operators cimport Projection
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.path._shape cimport PathShape, path_shape


cdef inline double _xlogx(double x) noexcept nogil:
    return x * log(x) if x > 0 else 0


@cython.final
cdef class PathProjection(Projection):
    """Marginals of ``p(y) ~ exp <theta, mu(y)>`` over paths, and ``log sum_y exp <theta, mu(y)>``.

    The entropy projection.  Scores of -inf forbid a node or an edge; its marginal is exactly 0.

    Parameters
    ----------
    layout : PartLayout
        Layout of a path space.

    Raises
    ------
    ValueError
        If a graph has a cycle.
    """

    cdef PathShape shape
    cdef Py_ssize_t step_bytes, node_bytes

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.shape = path_shape(layout)
        self.shape.refuse_cycles("a sum over paths")
        self.n_states = self.shape.max_edges + 1
        self.gibbs = self.has_state = self.has_term = True
        self.has_samples = self.has_derivative = True
        self.step_bytes = (8 * self.shape.max_edges + 63) // 64 * 64
        self.node_bytes = (8 * self.shape.max_nodes + 63) // 64 * 64
        self.work_bytes = 2 * self.step_bytes + self.node_bytes

    cdef int chances(self, Py_ssize_t i, const double* theta, double* steps, double* sums,
                     double* value) except -1 nogil:
        # steps <- the probability of each step from its start; 0 where no path goes on.
        cdef Py_ssize_t p, k
        cdef const int* first = self.shape.first_of(i)
        cdef const int* targets = self.shape.targets_of(i)
        cdef double top, total
        self.shape.load(i, theta, steps)
        p = self.shape.places_of(i) - 1
        sums[p] = 0
        while p:
            p -= 1
            top, total = -INFINITY, 0
            for k in range(first[p], first[p + 1]):
                steps[k] += sums[targets[k]]
                top = max(top, steps[k])
            if top == -INFINITY:
                sums[p] = top
                for k in range(first[p], first[p + 1]):
                    steps[k] = 0
                continue
            for k in range(first[p], first[p + 1]):
                steps[k] = exp(steps[k] - top)
                total += steps[k]
            sums[p] = top + log(total)
            for k in range(first[p], first[p + 1]):
                steps[k] /= total
        value[0] = theta[self.shape.source(i)] + sums[0]
        return self.shape.impossible(i) if value[0] < -1e300 else 0

    cdef void flow(self, Py_ssize_t i, double* steps, double* inflow) noexcept nogil:
        # steps <- the probability of each step, from its probability at its start.
        cdef Py_ssize_t p, k, n = self.shape.places_of(i)
        cdef const int* first = self.shape.first_of(i)
        cdef const int* targets = self.shape.targets_of(i)
        memset(inflow, 0, n * sizeof(double))
        inflow[0] = 1
        for p in range(n):
            for k in range(first[p], first[p + 1]):
                steps[k] *= inflow[p]
                inflow[targets[k]] += steps[k]

    cdef void store(self, Py_ssize_t i, const double* steps, bint by_edge, double source,
                    double* marginals) noexcept nogil:
        # Parts from the probability of each step, or of each edge; `source` is that of the source.
        cdef Py_ssize_t k, e, n = self.shape.nodes_of(i)
        cdef double x
        cdef const int* edges = self.shape.edges + self.shape.edge_offsets[i]
        cdef const int* heads = self.shape.heads + self.shape.edge_offsets[i]
        memset(marginals, 0, self.layout.theta_size(i) * sizeof(double))
        marginals[self.shape.source(i)] = source
        for k in range(self.shape.first_of(i)[self.shape.places_of(i)]):
            e = edges[k]
            x = steps[e if by_edge else k]
            marginals[heads[e]] += x
            if self.shape.scored:
                marginals[n + e] = x

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef double* steps = <double*>work
        cdef double* sums = <double*>(work + 2 * self.step_bytes)
        self.chances(i, theta, steps, sums, value)
        bound[0] = value[0]
        self.flow(i, steps, sums)
        self.store(i, steps, False, 1, marginals)
        return 0

    cdef Py_ssize_t state_size(self, Py_ssize_t i) noexcept nogil:
        return max(self.shape.edges_of(i), 1)

    cdef int project_state(self, Py_ssize_t i, const double* theta, double* state, double* value,
                           double* bound, char* work) except -1 nogil:
        cdef double* steps = <double*>work
        cdef double* sums = <double*>(work + 2 * self.step_bytes)
        cdef const int* edges = self.shape.edges + self.shape.edge_offsets[i]
        cdef Py_ssize_t k
        self.chances(i, theta, steps, sums, value)
        bound[0] = value[0]
        self.flow(i, steps, sums)
        memset(state, 0, self.state_size(i) * sizeof(double))
        for k in range(self.shape.first_of(i)[self.shape.places_of(i)]):
            state[edges[k]] = steps[k]
        if self.shape.places_of(i) == 1:
            state[0] = 1
        return 0

    cdef int state_of(self, Py_ssize_t i, const int* label, double* state) except -1 nogil:
        cdef Py_ssize_t v, m = self.shape.edges_of(i)
        memset(state, 0, self.state_size(i) * sizeof(double))
        for v in range(self.shape.nodes_of(i)):
            if 0 < label[v] <= m:
                state[label[v] - 1] = 1
        if self.shape.places_of(i) == 1:
            state[0] = 1
        return 0

    cdef int pool(self, Py_ssize_t i, const double* state, double* marginals) except -1 nogil:
        cdef const int* edges = self.shape.edges + self.shape.edge_offsets[i]
        # All paths leave the source, unless it is the sink.
        cdef double source = state[0] if self.shape.places_of(i) == 1 else 0
        cdef Py_ssize_t k
        for k in range(self.shape.first_of(i)[1]):
            source += state[edges[k]]
        self.store(i, state, True, source, marginals)
        return 0

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        # The mean over places of the entropy of their steps.
        cdef Py_ssize_t p, k
        cdef const int* first = self.shape.first_of(i)
        cdef const int* edges = self.shape.edges + self.shape.edge_offsets[i]
        cdef double total = 0, out
        for p in range(self.shape.places_of(i)):
            out = 0
            for k in range(first[p], first[p + 1]):
                out += state[edges[k]]
                total -= _xlogx(state[edges[k]])
            total += _xlogx(out)
        return total

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        cdef Py_ssize_t p, k, e
        cdef const int* first = self.shape.first_of(i)
        cdef const int* edges = self.shape.edges + self.shape.edge_offsets[i]
        cdef double total = 0, out, gain, x
        for p in range(self.shape.places_of(i)):
            out = gain = 0
            for k in range(first[p], first[p + 1]):
                e = edges[k]
                out += (1 - gamma) * a[e] + gamma * b[e]
                gain += b[e] - a[e]
            for k in range(first[p], first[p + 1]):
                e = edges[k]
                x = (1 - gamma) * a[e] + gamma * b[e]
                if b[e] == a[e]:
                    continue
                if x > 0:
                    total -= (b[e] - a[e]) * log(x / out)
                elif out > 0:
                    return INFINITY if b[e] > a[e] else -INFINITY
                else:
                    total -= (b[e] - a[e]) * log((b[e] - a[e]) / gain)
        return total

    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil:
        cdef double* steps = <double*>work
        cdef double* sums = <double*>(work + 2 * self.step_bytes)
        cdef int* via = <int*>sums
        cdef Py_ssize_t j, size = self.shape.nodes_of(i), last = self.shape.places_of(i) - 1
        cdef const int* first = self.shape.first_of(i)
        cdef Py_ssize_t p, k, turn
        cdef double value, below
        self.chances(i, theta, steps, sums, &value)
        for j in range(n):
            p = turn = 0
            while p != last:
                below = 0
                for k in range(first[p], first[p + 1]):
                    if steps[k] > 0:
                        via[p] = <int>k
                        below += steps[k]
                        if uniforms[j * size + turn] < below:
                            break
                p = self.shape.targets_of(i)[via[p]]
                turn += 1
            self.shape.follow(i, via, labels + j * size)
        return 0

    cpdef Py_ssize_t derivative_bytes(self) except -1:
        """Return the bytes for probabilities of steps and places, and their gains."""
        return 2 * self.step_bytes + 3 * self.node_bytes

    cdef int derivative(self, Py_ssize_t i, const double* theta, const double* direction,
                        double* out, char* work) except -1 nogil:
        # Gains of the sums, backwards, then of the probabilities, forwards.
        cdef double* steps = <double*>work
        cdef double* gains = <double*>(work + self.step_bytes)
        cdef double* sums = <double*>(work + 2 * self.step_bytes)
        cdef double* inflow = sums + self.shape.max_nodes
        cdef double* moved = inflow + self.shape.max_nodes
        cdef Py_ssize_t p, k, n = self.shape.places_of(i)
        cdef const int* first = self.shape.first_of(i)
        cdef const int* targets = self.shape.targets_of(i)
        cdef double value, chance
        self.chances(i, theta, steps, sums, &value)
        self.shape.load_direction(i, direction, gains)
        sums[n - 1] = 0
        for p in range(n - 2, -1, -1):
            sums[p] = 0
            for k in range(first[p], first[p + 1]):
                gains[k] += sums[targets[k]]
                if steps[k] > 0:
                    sums[p] += steps[k] * gains[k]
            for k in range(first[p], first[p + 1]):
                gains[k] = steps[k] * (gains[k] - sums[p]) if steps[k] > 0 else 0
        memset(inflow, 0, n * sizeof(double))
        memset(moved, 0, n * sizeof(double))
        inflow[0] = 1
        for p in range(n):
            for k in range(first[p], first[p + 1]):
                chance = steps[k] * inflow[p]
                gains[k] = gains[k] * inflow[p] + steps[k] * moved[p]
                inflow[targets[k]] += chance
                moved[targets[k]] += gains[k]
        self.store(i, gains, False, 0, out)
        return 0
