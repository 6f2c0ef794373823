"""Marginals of pairs under ``p(y) ~ exp <theta, mu(y)>`` over alignments, derivatives, samples.

``total[node]`` is the log of the sum over all ways to a node.  Back from the end, a node hands its
probability on by the shares of the arcs into it; ``move`` and ``gain`` are derivatives of both.
"""

cimport cython
from libc.math cimport INFINITY, exp, log
from libc.string cimport memset
from structsolve.algorithms.messages cimport impossible
from structsolve.operators cimport Projection
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.alignment._grid cimport (
    PAIR, READY, Arc, Grid, GridShape, arcs_into, end_of, grid_of, grid_shape, n_nodes, node_at,
)


cdef inline double _at(const double* theta, Py_ssize_t part) noexcept nogil:
    return theta[part] if part >= 0 else 0


cdef inline void _shares(const Arc* arcs, Py_ssize_t count, const double* theta,
                         const double* total, Py_ssize_t node, double* share) noexcept nogil:
    # Of the arcs into a node.  They are divided by their sum, as totals of large scores are rounded
    # by more than the logs of shares.
    cdef Py_ssize_t a
    cdef double sum = 0
    if count == 1:
        share[0] = 1
        return
    for a in range(count):
        share[a] = exp(total[arcs[a].source] + _at(theta, arcs[a].part) - total[node])
        sum += share[a]
    for a in range(count):
        share[a] /= sum


cdef void _forward(const Grid* g, const double* theta, const double* direction, double* total,
                   double* move, double* shares) noexcept nogil:
    # Shares, if wanted, are three for each node.
    cdef Arc arcs[3]
    cdef double* terms
    cdef double own[3]
    cdef Py_ssize_t i, kind, j, a, node, count
    cdef double top, sum, x
    for i in range(g.n + 1):
        for kind in range(3):
            for j in range(g.width):
                node = node_at(g, i, kind, j)
                count = arcs_into(g, i, kind, j, arcs)
                terms = &own[0] if shares == NULL else shares + 3 * node
                top = 0 if node == 0 else -INFINITY
                for a in range(count):
                    terms[a] = total[arcs[a].source] + _at(theta, arcs[a].part)
                    top = top if top >= terms[a] else terms[a]
                total[node] = top
                if direction != NULL:
                    move[node] = 0
                if node == 0 or top == -INFINITY:
                    continue
                sum = 0
                for a in range(count):
                    terms[a] = 1 if terms[a] == top else exp(terms[a] - top)
                    sum += terms[a]
                total[node] += log(sum) if sum != 1 else 0
                if shares == NULL:
                    continue
                for a in range(count):
                    terms[a] /= sum
                    if direction != NULL:
                        x = move[arcs[a].source] + _at(direction, arcs[a].part)
                        move[node] += terms[a] * x


cdef void _backward(const Grid* g, const double* direction, const double* shares,
                    const double* move, double* p, double* gain, double* out) noexcept nogil:
    cdef Arc arcs[3]
    cdef const double* share
    cdef Py_ssize_t i, kind, j, a, node, count, source
    cdef double x
    memset(p, 0, n_nodes(g) * sizeof(double))
    p[end_of(g)] = 1
    if direction != NULL:
        memset(gain, 0, n_nodes(g) * sizeof(double))
    for i in range(g.n, -1, -1):
        for kind in range(2, -1, -1):
            for j in range(g.width - 1, -1, -1):
                node = node_at(g, i, kind, j)
                if p[node] == 0:
                    continue
                count = arcs_into(g, i, kind, j, arcs)
                share = shares + 3 * node
                for a in range(count):
                    source = arcs[a].source
                    x = p[node] * share[a]
                    p[source] += x
                    if direction != NULL:
                        x = share[a] * (gain[node] + p[node] * (
                            move[source] + _at(direction, arcs[a].part) - move[node]))
                        gain[source] += x
                    if arcs[a].part >= 0:
                        out[arcs[a].part] += x


@cython.final
cdef class AlignmentSums(Projection):
    """The entropy projection: marginals of pairs and of items left alone.

    Parameters
    ----------
    kind : str
        See :class:`~structsolve.plugins.alignment._grid.GridShape`.
    layout : PartLayout
        Layout of an alignment space.
    """

    cdef GridShape shape

    def __init__(self, str kind, PartLayout layout not None):
        super().__init__(layout)
        self.shape = grid_shape(layout, kind)
        self.n_states = self.shape.max_others + 1
        self.gibbs = self.has_samples = self.has_derivative = True
        self.work_bytes = 5 * self.shape.max_nodes * sizeof(double)

    cpdef Py_ssize_t derivative_bytes(self) except -1:
        """Room for shares, totals, probabilities and the derivatives of both."""
        return self.work_bytes + 2 * self.shape.max_nodes * sizeof(double)

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef Grid g = grid_of(self.shape, i)
        cdef double* total = <double*>work
        cdef double* shares = total + 2 * n_nodes(&g)
        _forward(&g, theta, NULL, total, NULL, shares)
        value[0] = bound[0] = total[end_of(&g)]
        if not value[0] > -INFINITY:
            return impossible(i)
        memset(marginals, 0, self.layout.theta_size(i) * sizeof(double))
        _backward(&g, NULL, shares, NULL, total + n_nodes(&g), NULL, marginals)
        return 0

    cdef int derivative(self, Py_ssize_t i, const double* theta, const double* direction,
                        double* out, char* work) except -1 nogil:
        cdef Grid g = grid_of(self.shape, i)
        cdef Py_ssize_t size = n_nodes(&g)
        cdef double* total = <double*>work
        _forward(&g, theta, direction, total, total + size, total + 4 * size)
        if not total[end_of(&g)] > -INFINITY:
            return impossible(i)
        memset(out, 0, self.layout.theta_size(i) * sizeof(double))
        _backward(&g, direction, total + 4 * size, total + size, total + 2 * size,
                  total + 3 * size, out)
        return 0

    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil:
        cdef Grid g = grid_of(self.shape, i)
        cdef double* total = <double*>work
        cdef Py_ssize_t s
        _forward(&g, theta, NULL, total, NULL, NULL)
        if not total[end_of(&g)] > -INFINITY:
            return impossible(i)
        for s in range(n):
            self.walk(&g, theta, total, uniforms + s * g.n, labels + s * g.n)
        return 0

    cdef void walk(self, const Grid* g, const double* theta, const double* total,
                   const double* uniforms, int* label) noexcept nogil:
        # Back from the end.  A number decides about all arcs of one item: what is left of it is
        # uniform again.
        cdef Arc arcs[3]
        cdef double share[3]
        cdef Py_ssize_t node = end_of(g), i = g.n, row, a, count, chosen
        cdef double uniform = uniforms[g.n - 1]
        while node > 0:
            row = node / g.width
            if row / 3 < i:
                i = row / 3
                uniform = uniforms[i - 1] if i > 0 else 0.5
            if row % 3 != READY:
                label[i - 1] = <int>(node % g.width) if row % 3 == PAIR else 0
            count = arcs_into(g, i, row % 3, node % g.width, arcs)
            chosen = -1
            _shares(arcs, count, theta, total, node, share)
            for a in range(count):
                if share[a] > 0:
                    chosen = a
                    if uniform < share[a]:
                        uniform /= share[a]
                        break
                    uniform -= share[a]
            else:
                uniform = 0.5
            if chosen < 0:      # scores are NaN
                return
            node = arcs[chosen].source
