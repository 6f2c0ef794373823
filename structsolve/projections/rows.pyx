"""Projections of nodes without pairs, row by row: softmax, sparsemax, max-min margin."""

from libc.math cimport INFINITY, fabs
from libc.string cimport memset
from ..operators cimport Projection
from ..part_layout cimport PartLayout
from ..algorithms.simplex_projection cimport simplex_threshold, softmax, sparsemax
from ..simd.loops cimport ss_loops


cdef class NodeRows(Projection):
    """Base of projections onto the product of one simplex per node.

    Parameters
    ----------
    K : int
        States of a node.
    layout : PartLayout
    """

    def __init__(self, Py_ssize_t K, PartLayout layout not None):
        super().__init__(layout)
        if not 1 <= K <= layout.node_size:
            raise ValueError(f"K is {K}, expected 1 to {layout.node_size}, the row of a node")
        self.n_states = self.K = K
        self.stride, self.first = layout.node_size, layout.shared_size
        self.loops = ss_loops(self.stride)
        self.work_bytes = 8 * self.stride + 8

    cdef Py_ssize_t count(self, Py_ssize_t i) noexcept nogil:
        return self.layout.nodes_of(i)

    cdef double least(self, Py_ssize_t i, const double* costs, int* label) noexcept nogil:
        """Return ``min_nu <costs, nu>`` over the node rows; label <- the states that attain it."""
        cdef Py_ssize_t v, s, best
        cdef const double* row = costs + self.first
        cdef double total = 0
        for v in range(self.count(i)):
            best = 0
            for s in range(1, self.K):
                if row[s] < row[best]:
                    best = s
            label[v] = <int>best
            total += row[best]
            row += self.stride
        return total

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef Py_ssize_t v, row = self.first
        memset(marginals, 0, self.layout.theta_size(i) * sizeof(double))
        value[0] = 0
        for v in range(self.count(i)):
            value[0] += self.project_row(i, theta + row, marginals + row, <double*>work)
            row += self.stride
        bound[0] = value[0]
        return 0

    cdef double project_row(self, Py_ssize_t i, const double* row, double* out,
                            double* scratch) except? -1 nogil:
        return 0


cdef class RowSoftmax(NodeRows):
    """Entropy over the node rows only; all other parts have no score and no marginal.

    In the max-min game it is nu's projection if the loss is a sum over nodes.
    """

    cdef double project_row(self, Py_ssize_t i, const double* row, double* out,
                            double* scratch) except? -1 nogil:
        cdef double value
        softmax(i, self.K, self.stride, self.loops, row, out, &value)
        return value


cdef class RowSparsemax(NodeRows):
    """Like :class:`RowSoftmax`, with ``-||mu||^2 / 2`` in place of the entropy."""

    cdef double project_row(self, Py_ssize_t i, const double* row, double* out,
                            double* scratch) except? -1 nogil:
        cdef double value
        sparsemax(i, self.K, self.stride, row, out, &value)
        return value


cdef class RowMaxMin(NodeRows):
    """``max_mu min_nu nu' A mu + <theta, mu>`` node by node: ``A = c (1 - I)`` or ``c |k - l|``.

    With 0-1 costs the m best states share mu: ``max_m (v_(1) + ... + v_(m) + c (m - 1)) / m``, the
    threshold of a projection onto the simplex.  With absolute costs of ordered states two states
    share it: ``max_ij (v_i + v_j + c |i - j|) / 2`` (Nowak-Vila et al. 2020).

    Parameters
    ----------
    K : int
        States of a node.
    kind : {"zero-one", "absolute"}
    scale : float
        c.
    averaged : bool
        The loss is a mean over the nodes: c is divided by their number.
    layout : PartLayout
    """

    def __init__(self, Py_ssize_t K, str kind, double scale, bint averaged,
                 PartLayout layout not None):
        super().__init__(K, layout)
        self.kind, self.absolute = kind, kind == "absolute"
        self.scale, self.averaged = scale, averaged
        self.has_term = True

    cdef double cost(self, Py_ssize_t i) noexcept nogil:
        return self.scale / self.count(i) if self.averaged else self.scale

    cdef double project_row(self, Py_ssize_t i, const double* row, double* out,
                            double* scratch) except? -1 nogil:
        cdef Py_ssize_t s, low = 0, high = 0, kept = 0
        cdef double c = self.cost(i), tau, total = 0
        if self.absolute:
            for s in range(1, self.K):
                if row[s] - c * s > row[low] - c * low:
                    low = s
                if row[s] + c * s >= row[high] + c * high:
                    high = s
            out[low] += 0.5
            out[high] += 0.5
            return (row[low] + row[high] + c * (high - low)) / 2
        for s in range(self.K):
            scratch[s] = row[s] / c
        tau = simplex_threshold(self.K, scratch)
        for s in range(self.K):
            if scratch[s] > tau:
                kept += 1
                total += row[s]
        if kept == 0:       # the best states are equal up to rounding
            for s in range(self.K):
                if kept == 0 or row[s] > total:
                    total, low, kept = row[s], s, 1
            out[low] = 1
        else:
            for s in range(self.K):
                out[s] = 1.0 / kept if scratch[s] > tau else 0.0
        return (total + c * (kept - 1)) / kept

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        cdef Py_ssize_t v
        cdef double total = 0, cost
        for v in range(self.count(i)):
            self._best_prediction(state + self.first + v * self.stride, NULL, 0, &cost)
            total += cost
        return self.cost(i) * total

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        cdef Py_ssize_t v, s, best
        cdef double total = 0, cost
        cdef const double* x
        cdef const double* y
        for v in range(self.count(i)):
            x, y = a + self.first + v * self.stride, b + self.first + v * self.stride
            best = self._best_prediction(x, y, gamma, &cost)
            if self.absolute:
                for s in range(self.K):
                    total += (y[s] - x[s]) * fabs(<double>(s - best))
            else:
                total -= y[best] - x[best]
        return self.cost(i) * total

    cdef Py_ssize_t _best_prediction(self, const double* x, const double* y, double gamma,
                                     double* cost) noexcept nogil:
        """Return the state of least mean cost under (1 - gamma) x + gamma y; cost <- it / c."""
        cdef Py_ssize_t s, best = 0
        cdef double p, below = 0, mean = 0, whole = 0, least = INFINITY, expected
        if self.absolute:
            for s in range(self.K):
                p = x[s] if y == NULL else x[s] + gamma * (y[s] - x[s])
                mean += s * p
                whole += p
            # From one state to the next the cost grows by the mass below minus the mass above.
            expected = mean
            for s in range(self.K):
                if expected < least:
                    least, best = expected, s
                p = x[s] if y == NULL else x[s] + gamma * (y[s] - x[s])
                below += p
                expected += below - (whole - below)
            cost[0] = least
            return best
        least = -INFINITY
        for s in range(self.K):
            p = x[s] if y == NULL else x[s] + gamma * (y[s] - x[s])
            if p > least:
                least, best = p, s
        cost[0] = 1 - least
        return best
