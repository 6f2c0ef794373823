"""The best labeling of a super-modular model by one minimum cut.

Nodes of the network are pairs of a node v and a state a >= 1, which is on the source's side where
v's state is at least a (Schlesinger, Flach 2006; Ishikawa 2003); with two states they are the
nodes.  A table is

    g(y, y') = g(0, 0) + p(y) + q(y') + sum_{a <= y, b <= y'} D(a, b)

with p and q from its first column and row, and D its second differences.  Half of ``D x x'``
goes to either end and ``- D/2 |x - x'|`` to a pair of arcs, so that D must not be negative.
"""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset
from structsolve.algorithms.minimum_cut cimport (
    Cut, CutGraph, build_cut_graph, cut_bytes, cut_graph_bytes, cut_side, load_cut, place_cut,
    solve_cut,
)

from structsolve.plugins.mrf.tables._model cimport Model
from structsolve.plugins.mrf.tables._shape cimport GraphShape

# A negative second difference of smaller size, relative to the largest of its four scores, counts
# as 0: weights satisfy constraints up to rounding, those of some solvers to 4e-9.
cdef double TOLERANCE = 1e-8
# ... or relative to the largest score of a node: weights of tables may be the small remainder of
# larger numbers.
cdef double REST = 1e-13
# So does one smaller than this: 0 up to rounding.
cdef double ROUNDING = 1e-14
# Maximum number of pairs of arcs of a network: their numbers are 32-bit integers.
MOST_PAIRS = 2**30 - 1
# Maximum number of bytes of flows to keep between calls.  Training solves nearly the same cuts
# again: BCFW on twenty pictures of 128 x 128, two states, takes 5 % less time in the first five
# passes than without kept flows, and 38 % less from the tenth on.
MOST_FLOWS = 2**28


cdef inline double _entry(const double* table, Py_ssize_t row, bint symmetric, int s,
                          int t) noexcept nogil:
    return table[t * row + s] if symmetric and s > t else table[s * row + t]


cdef inline bint _second_difference(double low, double right, double down, double both,
                                    double rest, double* D, double* slack) noexcept nogil:
    # D <- low + both - right - down, or 0 if within tolerance, which costs half of D; False
    # if D is negative, or a score infinite.
    cdef double size = max(max(fabs(low), fabs(right)), max(fabs(down), fabs(both)))
    D[0] = (low - right) + (both - down)
    if ROUNDING * size < D[0] < INFINITY:
        return True
    if not (size < INFINITY and D[0] >= -max(TOLERANCE * size, rest)):
        return False
    slack[0] += fabs(D[0]) / 2
    D[0] = 0
    return True


# Contribution of an edge of two states: to the terminals of its ends, and to the arcs that are cut
# if the first end alone, or the second alone, is on.
cdef struct Two:
    double u, v, first, second


cdef inline bint _two(const double* t, Py_ssize_t row, bint symmetric, double rest, Two* edge,
                      double* slack, Obstacle* obstacle) noexcept nogil:
    # pair_energy() takes less for rounding, 1e-15 where TOLERANCE is 1e-8, and bans states.
    cdef double low = t[0], right = t[1], down = t[1] if symmetric else t[row], both = t[row + 1]
    cdef double D = 0
    if low > -INFINITY and both > -INFINITY and (right == -INFINITY or down == -INFINITY):
        if down == right:
            edge.u = edge.v = (both - low) / 2
        elif right == -INFINITY:
            edge.u, edge.v = down - low, both - down
        else:
            edge.u, edge.v = both - right, right - low
        edge.first = INFINITY if down == -INFINITY else 0
        edge.second = INFINITY if right == -INFINITY else 0
        return True
    if not _second_difference(low, right, down, both, rest, &D, slack):
        obstacle.a = obstacle.b = 0
        obstacle.amount = (low - right) + (both - down)
        return False
    edge.u = ((down - low) + (both - right)) / 2
    edge.v = ((right - low) + (both - down)) / 2
    edge.first = edge.second = D / 2
    return True


cdef class CutNetworks:
    """The networks of graphs, whose minimum cuts are best labelings.

    Parameters
    ----------
    shape : GraphShape
    keep : bool, default=False
        Keep the flow of each example, for graphs of two states: the next call starts from it.

    Raises
    ------
    ValueError
        If a network has more than 2^30 pairs of arcs.
    """

    def __init__(self, GraphShape shape not None, bint keep=False):
        cdef Py_ssize_t g, v, e, total_nodes = 0, room = 0, nodes, pairs
        cdef Model model
        cdef const int* ends
        self.shape = shape
        self.plain = shape.binary and (len(shape.states) == 0 or shape.states.min() == 2)
        self.max_nodes = self.max_pairs = 0
        for g in range(shape.n_graphs):
            model = shape.graph(g)
            nodes = pairs = 0
            for v in range(model.n):
                nodes += model.states[v] - 1
                pairs += max(model.states[v] - 2, 0)
            for e in range(model.m):
                pairs += (<Py_ssize_t>model.states[model.ends[2 * e]] - 1) * (
                    model.states[model.ends[2 * e + 1]] - 1)
            if max(nodes, pairs) > MOST_PAIRS:
                raise ValueError(
                    f"example {g}: a minimum cut would have {nodes} nodes and {pairs} pairs of "
                    f"arcs, about {40 * (nodes + pairs) / 2**30:.0f} GiB, expected at most 2**30 "
                    "of each; use oracle='trws'"
                )
            self.max_nodes, self.max_pairs = max(self.max_nodes, nodes), max(self.max_pairs, pairs)
            total_nodes += model.n
            room += cut_graph_bytes(model.n, model.m)
        self.work_bytes = (cut_bytes(self.max_nodes, self.max_pairs) + self.max_nodes + 15) // 8 * 8
        self.owners = ()
        if not self.plain:
            # Terminals, ends of the pairs, and the graph, built at each call.
            self.work_bytes += 8 * (self.max_nodes + self.max_pairs) + cut_graph_bytes(
                self.max_nodes, self.max_pairs)
            return
        cdef char[::1] memory = np.zeros(room // 8 + 1).view(np.int8)
        cdef char[::1] graphs = np.zeros(shape.n_graphs * sizeof(CutGraph) // 8 + 1).view(np.int8)
        cdef int[::1] leaving = np.zeros(total_nodes + 1, dtype=np.int32)
        cdef CutGraph* made = <CutGraph*>&graphs[0]
        cdef Py_ssize_t entries = (
            shape.n * shape.max_edges if shape.one_graph else len(shape.ends))
        cdef double[::1] flows
        self.owners = (memory, graphs, leaving)
        if keep and 8 * entries <= MOST_FLOWS:
            flows = np.zeros(entries + 1)
            self.flows = &flows[0]
            self.owners += (flows,)
        self.graphs, self.leaving = made, &leaving[0]
        room = 0
        for g in range(shape.n_graphs):
            model = shape.graph(g)
            made[g] = build_cut_graph(model.n, model.m, model.ends, &memory[room])
            room += cut_graph_bytes(model.n, model.m)
            ends = model.ends
            for e in range(model.m):
                leaving[shape.first_node(g) + ends[2 * e]] += 1

    cdef double* _flow(self, Py_ssize_t i) noexcept nogil:
        if self.flows == NULL:
            return NULL
        return self.flows + (
            i * self.shape.max_edges if self.shape.one_graph else self.shape.first_edge(i))

    cdef bint solve(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, Obstacle* obstacle, char* work) noexcept nogil:
        cdef Model model = self.shape.graph(i)
        cdef const double* row = theta + self.shape.node_start
        cdef const double* table = theta + self.shape.pairs_of(i)
        cdef Py_ssize_t v, e
        cdef double total = 0, slack = 0
        cdef bint solved
        if self.plain:
            solved = self._solve_two(i, theta, label, &slack, obstacle, work)
        else:
            solved = self._solve_many(i, theta, label, &slack, obstacle, work)
        if not solved:
            return False
        for v in range(model.n):
            if label[v] >= self.shape.skip:
                total += row[label[v] - self.shape.skip]
            row += self.shape.node_step
        if self.plain and self.shape.edge_step == 0:
            total += self._shared_pairs(model, table, label)
        else:
            for e in range(model.m):
                total += table[self.shape.cell(label, model.ends + 2 * e)]
                table += self.shape.edge_step
        value[0], bound[0] = total, total + slack
        return True

    cdef double _shared_pairs(self, Model model, const double* table,
                              const int* label) noexcept nogil:
        # The score of all pairs of two states: the count of each cell times its entry.
        cdef Py_ssize_t e, first = 0, second = 0, both = 0
        cdef int s, t
        for e in range(model.m):
            s, t = label[model.ends[2 * e]], label[model.ends[2 * e + 1]]
            first += s
            second += t
            both += s & t
        cdef Py_ssize_t[4] counts
        counts[0], counts[1] = model.m - first - second + both, second - both
        counts[2], counts[3] = first - both, both
        cdef double total = 0
        for e in range(4):
            if counts[e]:       # an entry that does not occur may be -inf
                total += counts[e] * _entry(table, self.shape.row, self.shape.symmetric, e >> 1,
                                            e & 1)
        return total

    cdef bint _solve_two(self, Py_ssize_t i, const double* theta, int* label, double* slack,
                         Obstacle* obstacle, char* work) noexcept nogil:
        cdef Model model = self.shape.graph(i)
        cdef const CutGraph* graph = self.graphs + (0 if self.shape.one_graph else i)
        cdef Cut cut = place_cut(graph, work)
        cdef const double* row = theta + self.shape.node_start
        cdef const double* table = theta + self.shape.pairs_of(i)
        cdef const int* leaving = self.leaving + self.shape.first_node(i)
        cdef double* residual = cut.residual
        cdef double* terminal = cut.terminal
        cdef signed char* inside
        cdef Py_ssize_t v, e, s, m = model.m
        cdef double* flow = self._flow(i)
        cdef double sent, rest = 0
        cdef Two edge
        cdef bint possible = True
        edge.u = edge.v = edge.first = edge.second = 0
        for v in range(model.n):
            # A forbidden state makes it infinite, two make it NaN.
            terminal[v] = row[0] if self.shape.skip else row[1] - row[0]
            possible = possible and terminal[v] == terminal[v]
            for s in range(2 - self.shape.skip):
                rest = max(rest, fabs(row[s]) if row[s] > -INFINITY else 0)
            row += self.shape.node_step
        rest *= REST
        if self.shape.edge_step == 0 and m:
            obstacle.edge = 0
            if not _two(table, self.shape.row, self.shape.symmetric, rest, &edge, slack, obstacle):
                return False
            slack[0] *= m
            for v in range(model.n):
                terminal[v] += leaving[v] * edge.u + (
                    model.near_at[v + 1] - model.near_at[v] - leaving[v]) * edge.v
            for e in range(m):
                residual[2 * e], residual[2 * e + 1] = edge.first, edge.second
        else:
            for e in range(m):
                obstacle.edge = e
                if not _two(table, self.shape.row, self.shape.symmetric, rest, &edge, slack,
                        obstacle):
                    return False
                residual[2 * e], residual[2 * e + 1] = edge.first, edge.second
                terminal[model.ends[2 * e]] += edge.u
                terminal[model.ends[2 * e + 1]] += edge.v
                table += self.shape.edge_step
        if flow != NULL:
            load_cut(&cut, cut.residual, cut.terminal, flow)
        if not possible or solve_cut(&cut) == INFINITY:
            memset(label, 0, model.n * sizeof(int))
            return True
        if flow != NULL:
            # Capacities are the same both ways, where they are finite.
            for e in range(m):
                sent = (residual[2 * e + 1] - residual[2 * e]) / 2
                flow[e] = sent if fabs(sent) < INFINITY else 0
        inside = <signed char*>(work + cut_bytes(model.n, m))
        cut_side(&cut, False, inside)
        for v in range(model.n):
            label[v] = inside[v]
        return True

    cdef bint _solve_many(self, Py_ssize_t i, const double* theta, int* label, double* slack,
                          Obstacle* obstacle, char* work) noexcept nogil:
        cdef Model model = self.shape.graph(i)
        cdef const double* row = theta + self.shape.node_start
        cdef const double* table = theta + self.shape.pairs_of(i)
        cdef double* terminal = <double*>work
        cdef int* ends = <int*>(terminal + self.max_nodes)
        cdef char* graph_memory = <char*>(ends + 2 * self.max_pairs)
        cdef char* memory = graph_memory + cut_graph_bytes(self.max_nodes, self.max_pairs)
        cdef double* residual = <double*>memory     # as placed by place_cut()
        cdef Py_ssize_t v, e, n = model.unary_at[model.n] - model.n, pairs = 0, at_u, at_v
        cdef int a, b, K, L, last
        cdef double score, before, rest = 0, D = 0, low, right, down, both
        cdef Py_ssize_t width = self.shape.row
        cdef bint symmetric = self.shape.symmetric
        cdef CutGraph graph
        cdef Cut cut
        cdef signed char* inside
        for v in range(model.n):
            at_v, K = model.unary_at[v] - v - 1, model.states[v]
            last, before = -1, 0        # the last possible state, and its score
            for a in range(K):
                score = row[a - self.shape.skip] if a >= self.shape.skip else 0
                if a:
                    terminal[at_v + a] = 0
                if a > 1:       # at least a, but not a - 1
                    ends[2 * pairs], ends[2 * pairs + 1] = <int>(at_v + a), <int>(at_v + a - 1)
                    residual[2 * pairs] = INFINITY
                    # ... state a - 1
                    residual[2 * pairs + 1] = 0 if last == a - 1 else INFINITY
                    pairs += 1
                if score == -INFINITY:
                    continue
                rest = max(rest, fabs(score))
                if last < 0 and a:
                    terminal[at_v + 1] = INFINITY
                elif a:
                    terminal[at_v + a] += score - before
                last, before = a, score
            if last < 0:
                memset(label, 0, model.n * sizeof(int))
                return True
            if last < K - 1:
                terminal[at_v + K - 1] = -INFINITY
            row += self.shape.node_step
        rest *= REST
        for e in range(model.m):
            obstacle.edge = e
            v = model.ends[2 * e]
            at_u, K = model.unary_at[v] - v - 1, model.states[v]
            v = model.ends[2 * e + 1]
            at_v, L = model.unary_at[v] - v - 1, model.states[v]
            if K == 1 or L == 1:    # no second differences below find forbidden pairs
                for a in range(K):
                    for b in range(L):
                        if _entry(table, width, symmetric, a, b) == -INFINITY:
                            obstacle.a, obstacle.b, obstacle.amount = a, b, INFINITY
                            return False
            # Half of the first differences at both ends of the other's states.
            for a in range(1, K):
                terminal[at_u + a] += (
                    (_entry(table, width, symmetric, a, 0)
                     - _entry(table, width, symmetric, a - 1, 0))
                    + (_entry(table, width, symmetric, a, L - 1)
                       - _entry(table, width, symmetric, a - 1, L - 1))) / 2
            for b in range(1, L):
                terminal[at_v + b] += (
                    (_entry(table, width, symmetric, 0, b)
                     - _entry(table, width, symmetric, 0, b - 1))
                    + (_entry(table, width, symmetric, K - 1, b)
                       - _entry(table, width, symmetric, K - 1, b - 1))) / 2
            for a in range(1, K):
                for b in range(1, L):
                    low = _entry(table, width, symmetric, a - 1, b - 1)
                    right = _entry(table, width, symmetric, a - 1, b)
                    down = _entry(table, width, symmetric, a, b - 1)
                    both = _entry(table, width, symmetric, a, b)
                    if not _second_difference(low, right, down, both, rest, &D, slack):
                        obstacle.a, obstacle.b = a - 1, b - 1
                        obstacle.amount = (low - right) + (both - down)
                        return False
                    if D > 0:
                        ends[2 * pairs] = <int>(at_u + a)
                        ends[2 * pairs + 1] = <int>(at_v + b)
                        residual[2 * pairs] = residual[2 * pairs + 1] = D / 2
                        pairs += 1
            table += self.shape.edge_step
        memset(label, 0, model.n * sizeof(int))
        if n == 0:
            return True
        graph = build_cut_graph(n, pairs, ends, graph_memory)
        cut = place_cut(&graph, memory)
        memcpy(cut.terminal, terminal, n * sizeof(double))
        if solve_cut(&cut) == INFINITY:
            return True
        inside = <signed char*>(memory + cut_bytes(n, pairs))
        cut_side(&cut, False, inside)
        for v in range(model.n):
            for a in range(model.states[v] - 1):
                label[v] += inside[a]
            inside += model.states[v] - 1
        return True
