"""Bounds of log-partitions of wide graphs, and relaxed marginals: tree-reweighted sums.

By convexity ``log Z(theta) <= sum_T rho_T log Z(theta_T)`` for any distribution rho over spanning
trees and any scores with ``sum_T rho_T theta_T = theta`` (Wainwright, Jaakkola, Willsky 2005).  All
messages between nodes define such scores, so every bound holds, converged or not.  The least one is
the maximum of ``<theta, mu>`` plus an entropy over the local polytope, where marginals of nodes and
edges agree; mu are the relaxed marginals.  The entropy, the mean of the trees', is concave:

    sum_v H(mu_v) - sum_e share_e I(mu_e).

Messages are damped once the bound rises.  Points of the local polytope come from the marginals of
nodes: Sinkhorn's scaling makes each edge agree with its ends.
"""

cimport cython
from libc.math cimport INFINITY, exp, fabs
from libc.string cimport memset
from structsolve.algorithms.entropies cimport entropy, entropy_slope, slope_at
from structsolve.algorithms.messages cimport (
    SumTable, impossible, log_sum_exp, message_down, message_up, sum_table,
)
from structsolve.operators cimport Projection
from structsolve.part_layout cimport PartLayout
from structsolve.simd.loops cimport ss_loop_table, ss_loops
from structsolve.utils.alignment cimport align

from structsolve.plugins.mrf.elimination._plan cimport Plans
from structsolve.plugins.mrf.elimination._sums cimport EliminationSums, valid_scores
from structsolve.plugins.mrf.relaxation._spanning_trees cimport SpanningTrees, Trees
from structsolve.plugins.mrf.tables._model cimport Model, other_end
from structsolve.plugins.mrf.tables._shape cimport GraphShape

from structsolve.utils.arrays import padded

# Gap of an answer relative to its bound, or to 1 if the bound is smaller; passes at most, and
# between two looks at the gap; the least step of damped messages.
cdef double CLOSE = 1e-6
cdef int PASSES = 200
cdef int LOOK = 4
cdef double LEAST_STEP = 0.05
# Scalings of an edge's table at most, and the error at which they end.
cdef int SCALINGS = 20
cdef double AGREED = 1e-15


cdef struct Room:
    double* nodes           # (n, stride): scores, -inf for states that a node lacks
    double* tables          # (m, K, stride): scores divided by shares, rows for the first ends
    double* exponentials    # the same
    SumTable* sums          # (m,)
    double* messages        # (m, 2, stride): to both ends
    double* belief          # (n, stride): scores of nodes and their messages
    double* above           # (n, stride): while a tree is summed
    double* row             # 2 rows; then K + 2 of them
    double* spare
    double* unary           # marginals of nodes and edges
    double* pair


cdef inline double _less(double x, double y) noexcept nogil:
    return x - y if x > -INFINITY else x


@cython.final
cdef class TreeReweightedSums(Projection):
    """Relaxed marginals of wide graphs with cycles, and a bound of ``log sum_y exp <theta, mu(y)>``.

    Stands for the entropy projection, and is not exact.  Examples with a plan of elimination have
    exact sums.  A state holds the marginals of nodes and of edges (as in cell_at), of examples with
    a plan those of :class:`EliminationSums`.

    Parameters
    ----------
    trees : SpanningTrees
        Of the graphs of `shape`.
    plans : Plans
        The same.
    shape : GraphShape
    layout : PartLayout
    """

    cdef GraphShape shape
    cdef SpanningTrees trees
    cdef EliminationSums narrow
    cdef const ss_loop_table* loops
    cdef Py_ssize_t K, stride
    cdef double allowed

    def __cinit__(self, *args, **kwargs):
        self.exact = False

    def __init__(self, SpanningTrees trees not None, Plans plans not None,
                 GraphShape shape not None, PartLayout layout not None):
        super().__init__(layout)
        if trees.shape is not shape:
            raise ValueError("trees: found those of other graphs, expected those of `shape`")
        self.shape, self.trees, self.n_states = shape, trees, shape.n_states
        self.narrow = EliminationSums(plans, shape, layout, True)
        self.K, self.stride = shape.max_states, padded(shape.max_states)
        self.loops = ss_loops(self.stride)
        self.gibbs = True
        self.has_state = self.has_term = self.narrow.has_state
        cdef Py_ssize_t rows = 3 * shape.max_nodes + 2 + self.K + 2 + shape.max_edges * (2 * self.K + 2)
        self.work_bytes = max(self.narrow.work_bytes, 128 + shape.scores_bytes
                              + 8 * rows * self.stride + shape.marginal_bytes
                              + shape.max_edges * <Py_ssize_t>sizeof(SumTable))

    def allow(self, double gap):
        """Set the gap between value and bound that the next answers may have.

        Parameters
        ----------
        gap : float
            0: as small as possible.
        """
        self.allowed = gap

    cdef Room room(self, char* work) noexcept nogil:
        cdef Room r
        cdef Py_ssize_t rows = self.shape.max_nodes * self.stride
        cdef Py_ssize_t m = self.shape.max_edges
        r.nodes = <double*>(align(work) + self.shape.scores_bytes)
        r.belief = r.nodes + rows
        r.above = r.belief + rows
        r.row = r.above + rows
        r.spare = r.row + 2 * self.stride
        r.tables = r.spare + (self.K + 2) * self.stride
        r.exponentials = r.tables + m * self.K * self.stride
        r.messages = r.exponentials + m * self.K * self.stride
        r.unary = r.messages + 2 * m * self.stride
        r.pair = r.unary + self.shape.max_unary
        r.sums = <SumTable*>(<char*>r.unary + self.shape.marginal_bytes)
        return r

    cdef Trees trees_of(self, Py_ssize_t i) noexcept nogil:
        return self.trees.of(0 if self.shape.one_graph else i)

    cdef void gather(self, const Model* model, const Trees* trees, Room* r) noexcept nogil:
        cdef Py_ssize_t v, e, s, t, K = self.K, stride = self.stride, columns
        cdef const double* pair
        cdef double* table = r.tables
        for v in range(model.n):
            for s in range(stride):
                r.nodes[v * stride + s] = -INFINITY
            for s in range(model.states[v]):
                r.nodes[v * stride + s] = model.unary[model.unary_at[v] + s]
        memset(r.messages, 0, 2 * model.m * stride * sizeof(double))
        memset(table, 0, model.m * K * stride * sizeof(double))
        for e in range(model.m):
            pair, columns = model.pair + model.pair_at[e], model.states[model.ends[2 * e + 1]]
            for s in range(model.states[model.ends[2 * e]]):
                for t in range(columns):
                    table[s * stride + t] = pair[s * columns + t] / trees.share[e]
            r.sums[e] = sum_table(self.loops, K, stride, table, r.exponentials + e * K * stride)
            table += K * stride

    cdef void believe(self, const Model* model, const Trees* trees, Py_ssize_t v,
                      Room* r) noexcept nogil:
        # Belief of v from its messages.
        cdef Py_ssize_t j, e, s, stride = self.stride
        cdef double* belief = r.belief + v * stride
        cdef const double* message
        for s in range(stride):
            belief[s] = r.nodes[v * stride + s]
        for j in range(model.near_at[v], model.near_at[v + 1]):
            e = model.near[j]
            message = r.messages + (2 * e + (model.ends[2 * e + 1] == v)) * stride
            for s in range(self.K):
                belief[s] += trees.share[e] * message[s]

    cdef double through(self, const Model* model, Py_ssize_t e, Py_ssize_t v, const double* given,
                        double* out, Room* r) noexcept nogil:
        # out <- what v sends over e if `given` is its belief, less its largest entry, which is
        # returned.
        cdef Py_ssize_t s, stride = self.stride
        cdef bint second = model.ends[2 * e + 1] == v
        cdef const double* back = r.messages + (2 * e + second) * stride
        cdef double top = -INFINITY
        for s in range(stride):
            r.row[s] = _less(given[s], back[s])
        if second:
            message_up(self.loops, &r.sums[e], self.K, stride, r.row, out, r.spare)
        else:
            message_down(self.loops, &r.sums[e], self.K, stride, r.row, out, r.spare)
        for s in range(self.K):
            top = out[s] if out[s] > top else top
        if top > -INFINITY:
            for s in range(self.K):
                out[s] -= top
        return top

    cdef void sweep(self, const Model* model, const Trees* trees, double step, bint back,
                    Room* r) noexcept nogil:
        # Each node in turn sends to the later ones; `back`: in the other order.
        cdef Py_ssize_t k, v, w, j, e, s
        cdef double* out = r.row + self.stride
        cdef double* message
        for k in range(model.n):
            v = model.n - 1 - k if back else k
            self.believe(model, trees, v, r)
            for j in range(model.near_at[v], model.near_at[v + 1]):
                e = model.near[j]
                w = other_end(model, e, v)
                if (w < v) != back:
                    continue
                self.through(model, e, v, r.belief + v * self.stride, out, r)
                message = r.messages + (2 * e + (model.ends[2 * e + 1] == w)) * self.stride
                for s in range(self.K):
                    message[s] = out[s] if step == 1 or out[s] == -INFINITY else (
                        message[s] + step * (out[s] - message[s]))

    cdef double bound_of(self, const Model* model, const Trees* trees, Room* r) noexcept nogil:
        # The mean of the trees' log-partitions.
        cdef Py_ssize_t tree, j, v, p, s, stride = self.stride
        cdef const int* order = trees.order
        cdef const int* up = trees.up
        cdef double* out = r.row + stride
        cdef double* message
        cdef double total = 0
        cdef int e
        for v in range(model.n):
            self.believe(model, trees, v, r)
        for tree in range(trees.count):
            for s in range(model.n * stride):
                r.above[s] = r.belief[s]
            for j in range(model.n - 1, -1, -1):
                v = order[j]
                e = up[v]
                if e < 0:
                    total += log_sum_exp(self.K, r.above + v * stride)
                    continue
                p = other_end(model, e, v)
                total += self.through(model, e, v, r.above + v * stride, out, r)
                message = r.messages + (2 * e + (model.ends[2 * e + 1] == p)) * stride
                for s in range(self.K):
                    r.above[p * stride + s] += _less(out[s], message[s])
            order += model.n
            up += model.n
        return total / trees.count

    cdef double agree(self, const Model* model, const Trees* trees, double* unary, double* pair,
                      Room* r) noexcept nogil:
        # unary, pair <- a point of the local polytope; returns its value.  Beliefs are given.
        cdef Py_ssize_t v, e, s, stride = self.stride
        cdef double* row
        cdef double total, value = 0
        for v in range(model.n):
            row, total = r.belief + v * stride, log_sum_exp(self.K, r.belief + v * stride)
            for s in range(model.states[v]):
                unary[model.unary_at[v] + s] = exp(row[s] - total)
            total = 0
            for s in range(model.unary_at[v], model.unary_at[v + 1]):
                total += unary[s]
            for s in range(model.unary_at[v], model.unary_at[v + 1]):
                unary[s] /= total
                if unary[s] > 0:
                    value += unary[s] * model.unary[s]
        for e in range(model.m):
            value += self.agree_edge(model, e, unary, pair + model.cell_at[e], r)
        return value + self.entropy_of(model, trees, unary, pair)

    cdef double agree_edge(self, const Model* model, Py_ssize_t e, const double* unary,
                           double* cells, Room* r) noexcept nogil:
        cdef Py_ssize_t u = model.ends[2 * e], v = model.ends[2 * e + 1], s, t, stride = self.stride
        cdef Py_ssize_t rows = model.states[u], columns = model.states[v]
        cdef const double* at_u = unary + model.unary_at[u]
        cdef const double* at_v = unary + model.unary_at[v]
        cdef const double* scores = model.pair + model.pair_at[e]
        cdef const double* table = r.tables + e * self.K * stride
        cdef double* left = r.spare             # of rows and of columns: scores, then factors
        cdef double* right = r.spare + stride
        cdef double top = -INFINITY, mass = 0, off, value = 0
        cdef int k
        for s in range(rows):
            left[s] = _less(r.belief[u * stride + s], r.messages[2 * e * stride + s])
        for t in range(columns):
            right[t] = _less(r.belief[v * stride + t], r.messages[(2 * e + 1) * stride + t])
        for s in range(rows):
            for t in range(columns):
                cells[s * columns + t] = left[s] + table[s * stride + t] + right[t]
                top = max(top, cells[s * columns + t])
        for s in range(rows * columns):
            cells[s] = exp(cells[s] - top) if cells[s] > -INFINITY else 0
        for k in range(SCALINGS):
            off = _scale(rows, columns, columns, 1, cells, at_u, left, False)
            off += _scale(columns, rows, 1, columns, cells, at_v, right, False)
            if k and off < AGREED:
                break
        # What is missing after the last scaling, which only takes away, is spread.
        _scale(rows, columns, columns, 1, cells, at_u, left, True)
        _scale(columns, rows, 1, columns, cells, at_v, right, True)
        for s in range(rows):
            left[s] = at_u[s]
            for t in range(columns):
                left[s] -= cells[s * columns + t]
            left[s] = max(left[s], 0)
            mass += left[s]
        for t in range(columns):
            right[t] = at_v[t]
            for s in range(rows):
                right[t] -= cells[s * columns + t]
            right[t] = max(right[t], 0)
        for s in range(rows):
            for t in range(columns):
                if scores[s * columns + t] == -INFINITY:
                    if mass > 0 and left[s] * right[t] / mass > 1e-9:
                        value = -INFINITY   # the ends do not agree: no point of the polytope
                    continue
                if mass > 0:
                    cells[s * columns + t] += left[s] * right[t] / mass
                if cells[s * columns + t] > 0:
                    value += cells[s * columns + t] * scores[s * columns + t]
        return value

    cdef double entropy_of(self, const Model* model, const Trees* trees, const double* unary,
                           const double* pair) noexcept nogil:
        cdef Py_ssize_t v, e, j
        cdef double total = 0, factor
        for v in range(model.n):
            factor = 1
            for j in range(model.near_at[v], model.near_at[v + 1]):
                factor -= trees.share[model.near[j]]
            total += factor * entropy(model.states[v], unary + model.unary_at[v])
        for e in range(model.m):
            total += trees.share[e] * entropy(model.cell_at[e + 1] - model.cell_at[e],
                                              pair + model.cell_at[e])
        return total

    cdef int solve(self, Py_ssize_t i, const double* theta, double* unary, double* pair,
                   double* value, double* bound, char* work) except -1 nogil:
        cdef Model model = self.shape.gather(i, theta, <double*>align(work))
        cdef Trees trees = self.trees_of(i)
        cdef Room r = self.room(work)
        cdef double step = 1, last = INFINITY, now
        cdef int k
        if not valid_scores(&model):
            impossible(i)
        self.gather(&model, &trees, &r)
        bound[0] = INFINITY
        for k in range(1, PASSES + 1):
            self.sweep(&model, &trees, step, False, &r)
            self.sweep(&model, &trees, step, True, &r)
            if k % LOOK and k < PASSES and k > 1:
                continue
            now = self.bound_of(&model, &trees, &r)
            if not -INFINITY < now < INFINITY:
                impossible(i)
            bound[0] = min(bound[0], now)
            value[0] = min(self.agree(&model, &trees, unary, pair, &r), bound[0])
            if bound[0] - value[0] <= max(CLOSE * max(1, fabs(bound[0])), self.allowed):
                break
            if now > last:
                step = max(step / 2, LEAST_STEP)
            last = now
        return 0

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef Room r = self.room(work)
        if self.narrow.takes(i):
            return self.narrow.project(i, theta, marginals, value, bound, work)
        self.solve(i, theta, r.unary, r.pair, value, bound, work)
        self.shape.scatter(i, r.unary, r.pair, marginals)
        return 0

    cdef Py_ssize_t state_size(self, Py_ssize_t i) noexcept nogil:
        return self.narrow.state_size(i)

    cdef int project_state(self, Py_ssize_t i, const double* theta, double* state, double* value,
                           double* bound, char* work) except -1 nogil:
        cdef Model model = self.shape.graph(i)
        if not self.has_state:
            return self.project(i, theta, state, value, bound, work)
        if self.narrow.takes(i):
            return self.narrow.project_state(i, theta, state, value, bound, work)
        return self.solve(i, theta, state, state + model.unary_at[model.n], value, bound, work)

    cdef int state_of(self, Py_ssize_t i, const int* label, double* state) except -1 nogil:
        return self.narrow.state_of(i, label, state)

    cdef int pool(self, Py_ssize_t i, const double* state, double* marginals) except -1 nogil:
        return self.narrow.pool(i, state, marginals)

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        cdef Model model = self.shape.graph(i)
        cdef Trees trees = self.trees_of(i)
        if self.narrow.takes(i):
            return self.narrow.term(i, state, work)
        return self.entropy_of(&model, &trees, state, state + model.unary_at[model.n])

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        # If the probability of a node's state leaves or reaches 0, so do those on its edges, whose
        # slopes outweigh the node's.
        cdef Model model = self.shape.graph(i)
        cdef Trees trees = self.trees_of(i)
        cdef Py_ssize_t v, e, j, first
        cdef int stuck = 0, ignored = 0
        cdef double total = 0, factor
        if self.narrow.takes(i):
            return self.narrow.slope(i, a, b, gamma, work)
        for v in range(model.n):
            factor, first = 1, model.unary_at[v]
            for j in range(model.near_at[v], model.near_at[v + 1]):
                factor -= trees.share[model.near[j]]
            total += factor * entropy_slope(
                model.states[v], a + first, b + first, gamma,
                &ignored if model.near_at[v] < model.near_at[v + 1] else &stuck)
        for e in range(model.m):
            first = model.unary_at[model.n] + model.cell_at[e]
            total += trees.share[e] * entropy_slope(
                model.cell_at[e + 1] - model.cell_at[e], a + first, b + first, gamma, &stuck)
        return slope_at(total, gamma, stuck)


cdef double _scale(Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t step, Py_ssize_t each,
                   double* cells, const double* wanted, double* factor,
                   bint down) noexcept nogil:
    # Scales rows to the wanted sums, `down`: only where these are less; returns the largest error.
    cdef Py_ssize_t s, t
    cdef double total, off = 0
    for s in range(rows):
        total = 0
        for t in range(columns):
            total += cells[s * step + t * each]
        off = max(off, fabs(total - wanted[s]))
        factor[s] = wanted[s] / total if total > 0 else 0
        if down and factor[s] > 1:
            factor[s] = 1
        for t in range(columns):
            cells[s * step + t * each] *= factor[s]
    return off
