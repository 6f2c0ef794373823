"""Graphs of one set of examples, where the parts of their labelings lie in theta, the parts."""

import numpy as np

cimport cython
from libc.stdint cimport int64_t
from libc.string cimport memset
from structsolve.operators cimport Parts

from structsolve.plugins.mrf._model cimport Model


@cython.final
cdef class GraphShape:
    """Graphs of one set of examples, and where the parts of their labelings lie in ``theta``.

    Parameters
    ----------
    offsets : ndarray of int64 of shape (n + 1,)
        First node of each example's graph.
    ends : ndarray of int32 of shape (m, 2)
        Edges, checked: nodes count from 0 in every graph.
    edge_offsets : ndarray of int64 of shape (n + 1,) or None
        First edge of each example; None: one graph for all, and ``ends`` are its edges.
    states : ndarray of int32
        Number of states of each node (of the one graph, or of all).
    shared_size, row_size, edge_size : int
        Doubles of theta before the node rows, and in a row of nodes and edges.
    node_step, skip : int
        Node v's state s is part ``v * node_step + s - skip`` of the node rows; states before
        ``skip`` have none.
    pair_start : int or None
        Where pair tables start in theta; None: in the edge rows.
    edge_step, row : int
        States s and t of edge e are part ``e * edge_step + s * row + t`` of them.
    symmetric : bool, default=False
        (t, s) is the same part as (s, t); the one with the smaller state first counts.
    """

    def __init__(self, offsets, ends, edge_offsets, states, *, shared_size, row_size, edge_size=0,
                 node_step, skip=0, pair_start, edge_step, row, symmetric=False):
        cdef const int64_t[::1] offset_view = offsets, edge_view
        cdef const int[::1] states_view, ends_view, near_view, order_view, up_view
        cdef const Py_ssize_t[::1] unary_view, pair_view, near_at_view
        sizes = np.diff(offsets)
        self.n = len(sizes)
        self.one_graph = edge_offsets is None
        self.offsets, self.edge_offsets = offsets, edge_offsets
        self.ends = ends = np.ascontiguousarray(ends, dtype=np.int32).reshape(-1, 2)
        self.states = states = np.ascontiguousarray(states, dtype=np.int32)
        if self.one_graph:
            node_bounds = np.array([0, len(states)], dtype=np.int64)
            edge_bounds = np.array([0, len(ends)], dtype=np.int64)
            if self.n and (sizes != len(states)).any():
                raise ValueError(f"offsets: expected {len(states)} nodes in every example")
        else:
            node_bounds, edge_bounds = offsets, edge_offsets
        self._index(node_bounds, edge_bounds)
        offset_view = offsets
        self.offset = &offset_view[0]
        if not self.one_graph:
            edge_view = edge_offsets
            self.edge_offset = &edge_view[0]
        states_view, ends_view, near_view = states, _spare(ends.ravel()), _spare(self.near)
        order_view, up_view = self.order, self.up
        unary_view, pair_view, near_at_view = self.unary_at, self.pair_at, self.near_at
        self.states_p, self.ends_p, self.near_p = &states_view[0], &ends_view[0], &near_view[0]
        self.order_p, self.up_p = &order_view[0], &up_view[0]
        self.unary_p, self.pair_p = &unary_view[0], &pair_view[0]
        self.near_at_p = &near_at_view[0]
        self.shared_size, self.row_size, self.edge_size = shared_size, row_size, edge_size
        self.node_start, self.node_step, self.skip = shared_size, node_step, skip
        self.edge_rows = pair_start is None
        self.pair_start = 0 if pair_start is None else pair_start
        self.edge_step, self.row, self.symmetric = edge_step, row, symmetric
        self.max_theta = max((self.theta_size(i) for i in range(min(self.n, 1) if self.one_graph else self.n)),
                             default=shared_size)

    def _index(self, nodes, edges):
        """Per graph: where scores start, edges by node, an order from roots to leaves."""
        states, ends = self.states, self.ends
        n_nodes, n_edges = np.diff(nodes), np.diff(edges)
        graphs = len(n_nodes)
        self.max_nodes, self.max_edges = int(n_nodes.max(initial=1)), int(n_edges.max(initial=0))
        self.max_states = int(states.max(initial=1))
        self.binary = self.max_states <= 2
        graph_of_edge = np.repeat(np.arange(graphs), n_edges)
        if (n_nodes < 1).any() or (n_edges < 0).any() or nodes[len(nodes) - 1] != len(states) or (
                edges[len(edges) - 1] != len(ends)) or states.min(initial=1) < 1:
            raise ValueError("graphs: sizes, states and edges do not fit together")
        if (ends < 0).any() or (ends >= n_nodes[graph_of_edge][:, None]).any():
            raise ValueError("ends: found a node that its graph has not; check_edges() tells which")
        stacked = ends + nodes[graph_of_edge][:, None]
        shapes = states[stacked]
        self.unary_at = _restarted(states, nodes)
        self.pair_at = _restarted(shapes.prod(axis=1), edges)
        order = np.argsort(stacked.ravel(), kind="stable")
        self.near = (order // 2 - np.repeat(edges[graph_of_edge], 2)).astype(np.int32)
        self.near_at = _restarted(np.bincount(stacked.ravel(), minlength=int(nodes[len(nodes) - 1])), nodes)
        last = nodes[1:] + np.arange(graphs)
        self.max_unary = int(self.unary_at[last].max(initial=1))
        self.max_pair = int(self.pair_at[edges[1:] + np.arange(graphs)].max(initial=0))
        logs = np.add.reduceat(np.log2(states), nodes[:graphs]) if graphs else np.zeros(1)
        self.labelings = float(2.0 ** np.minimum(logs.max(), 1000.0))
        self.order = np.zeros(max(len(states), 1), dtype=np.int32)
        self.up = np.full(max(len(states), 1), -1, dtype=np.int32)
        self.forest = _search_breadth_first(nodes, edges, _spare(ends.ravel()), self.near_at,
                                            _spare(self.near), self.order, self.up)

    def limits(self, Py_ssize_t i):
        """Sizes that belong to example ``i``, for ``structsolve.structure.calls``."""
        if not 0 <= i < self.n:
            raise ValueError(f"example {i} of {self.n}: expected 0 to {self.n - 1}")
        size = self.offset[i + 1] - self.offset[i]
        return self.theta_size(i), size, self.max_states

    def model(self, Py_ssize_t i, theta):
        """Return ``(states, ends, unary, pair)`` of example ``i`` at ``theta``, as arrays."""
        if not 0 <= i < self.n or len(theta) != self.theta_size(i):
            raise ValueError(f"example {i} of {self.n}: found {len(theta)} scores, expected "
                             f"{self.theta_size(i) if 0 <= i < self.n else 'an example'}")
        cdef const double[::1] view = theta
        cdef Model model
        unary, pair = np.zeros(self.max_unary), np.zeros(self.max_pair + 1)
        cdef double[::1] unary_view = unary, pair_view = pair
        model = self.gather(i, &view[0], &unary_view[0], &pair_view[0])
        unary_size, pair_size = model.unary_at[model.n], model.pair_at[model.m]
        pairs = np.array([model.pair[k] for k in range(pair_size)])
        return (*self.graph_of(i), unary[:unary_size], pairs)

    def graph_of(self, Py_ssize_t i):
        """Return ``(states, ends)`` of example ``i``, as views."""
        first = 0 if self.one_graph else self.offsets[i]
        bounds = (0, len(self.ends)) if self.one_graph else self.edge_offsets[i:i + 2]
        n = self.offsets[i + 1] - self.offsets[i]
        return self.states[first:first + n], self.ends[bounds[0]:bounds[1]]

    cdef Py_ssize_t first_node(self, Py_ssize_t i) noexcept nogil:
        return 0 if self.one_graph else self.offset[i]

    cdef Py_ssize_t pairs_of(self, Py_ssize_t i) noexcept nogil:
        # Where the pair tables of example i start in theta.
        if not self.edge_rows:
            return self.pair_start
        return self.shared_size + (self.offset[i + 1] - self.offset[i]) * self.row_size

    cdef Py_ssize_t theta_size(self, Py_ssize_t i) noexcept nogil:
        cdef Model model = self.graph(i)
        # `row_size` doubles a node, or (label sets) one row of them for all nodes.
        cdef Py_ssize_t rows = 1 if self.skip else model.n
        return self.shared_size + rows * self.row_size + model.m * self.edge_size

    cdef Model graph(self, Py_ssize_t i) noexcept nogil:
        cdef Model model
        cdef Py_ssize_t g = 0, first = 0, first_edge = 0
        if not self.one_graph:
            g, first, first_edge = i, self.offset[i], self.edge_offset[i]
            model.m = self.edge_offset[i + 1] - first_edge
        else:
            model.m = self.max_edges
        model.n = self.offset[i + 1] - self.offset[i]
        model.states = self.states_p + first
        model.ends = self.ends_p + 2 * first_edge
        # These have one entry more than the graph has nodes or edges.
        model.unary_at = self.unary_p + first + g
        model.near_at = self.near_at_p + first + g
        model.pair_at = self.pair_p + first_edge + g
        model.near = self.near_p + 2 * first_edge
        model.unary, model.pair = NULL, NULL
        return model

    cdef Model gather(self, Py_ssize_t i, const double* theta, double* unary,
                      double* pair) noexcept nogil:
        cdef Model model = self.graph(i)
        cdef const double* row = theta + self.node_start
        cdef const double* table = theta + self.pairs_of(i)
        cdef Py_ssize_t v, e, at
        cdef int s, t, K, rows
        for v in range(model.n):
            at = model.unary_at[v]
            K = model.states[v]
            if self.skip:
                unary[at] = 0
                for s in range(1, K):
                    unary[at + s] = row[s - 1]
            else:
                for s in range(K):
                    unary[at + s] = row[s]
            row += self.node_step
        model.unary, model.pair = unary, pair
        if (self.edge_step == 4 and self.row == 2 and not self.symmetric
                and 4 * model.m == model.pair_at[model.m]):
            model.pair = table      # it lies there as the model wants it
            return model
        for e in range(model.m):
            rows, K = model.states[model.ends[2 * e]], model.states[model.ends[2 * e + 1]]
            for s in range(rows):
                if self.symmetric:
                    for t in range(min(s, K)):
                        pair[t] = table[t * self.row + s]
                    for t in range(s, K):
                        pair[t] = table[s * self.row + t]
                else:
                    for t in range(K):
                        pair[t] = table[s * self.row + t]
                pair += K
            table += self.edge_step
        return model

    cdef void scatter(self, Py_ssize_t i, const double* unary, const double* pair,
                      double* mu) noexcept nogil:
        cdef Model model = self.graph(i)
        cdef double* row = mu + self.node_start
        cdef double* table = mu + self.pairs_of(i)
        cdef Py_ssize_t v, e
        cdef int s, t, K
        memset(mu, 0, self.theta_size(i) * sizeof(double))
        for v in range(model.n):
            for s in range(<int>self.skip, model.states[v]):
                row[s - self.skip] = unary[model.unary_at[v] + s]
            row += self.node_step
        for e in range(model.m):
            K = model.states[model.ends[2 * e + 1]]
            for s in range(model.states[model.ends[2 * e]]):
                for t in range(K):
                    if self.symmetric and s > t:
                        table[t * self.row + s] += pair[t]
                    else:
                        table[s * self.row + t] += pair[t]
                pair += K
            table += self.edge_step

    cdef Py_ssize_t cell(self, const int* label, const int* ends) noexcept nogil:
        # Part of an edge's table that a labeling takes.
        cdef Py_ssize_t s = label[ends[0]], t = label[ends[1]]
        if self.symmetric and s > t:
            s, t = t, s
        return s * self.row + t

    cdef void indicate(self, Py_ssize_t i, const int* label, double* mu) noexcept nogil:
        cdef Model model = self.graph(i)
        cdef Py_ssize_t v, e, table = self.pairs_of(i)
        memset(mu, 0, self.theta_size(i) * sizeof(double))
        for v in range(model.n):
            if label[v] >= self.skip:
                mu[self.node_start + v * self.node_step + label[v] - self.skip] = 1
        for e in range(model.m):
            mu[table + e * self.edge_step + self.cell(label, model.ends + 2 * e)] += 1


def _spare(array):
    # One entry at least, so that it has an address.
    return array if array.size else np.zeros(1, array.dtype)


def _restarted(sizes, bounds):
    """Running sums that begin anew, with a 0, in every graph; one entry more than items each."""
    graphs = len(bounds) - 1
    total = np.concatenate([[0], np.cumsum(sizes)])
    items = np.diff(bounds)
    first = np.repeat(np.arange(graphs), items + 1)
    position = np.arange(int(bounds[len(bounds) - 1]) + graphs) - first
    starts = total[position] - total[bounds[:graphs]][first]
    return _spare(starts.astype(np.intp))


def _search_breadth_first(const int64_t[::1] nodes, const int64_t[::1] edges, const int[::1] ends,
                          const Py_ssize_t[::1] near_at, const int[::1] near, int[::1] order,
                          int[::1] up):
    """Order every graph's nodes from roots to leaves, note edges to parents; tell if all are forests."""
    cdef Py_ssize_t g, root, head, tail, v, w, k, n, first, start
    cdef int e
    cdef bint forest = True
    seen_array = np.zeros(order.shape[0], dtype=np.int8)
    cdef signed char[::1] seen = seen_array
    for g in range(nodes.shape[0] - 1):
        first, n, start = nodes[g], nodes[g + 1] - nodes[g], 2 * edges[g]
        tail = head = 0
        for root in range(n):
            if seen[first + root]:
                continue
            seen[first + root] = 1
            order[first + tail] = <int>root
            tail += 1
            while head < tail:
                v = order[first + head]
                head += 1
                for k in range(near_at[first + g + v], near_at[first + g + v + 1]):
                    e = near[start + k]
                    w = ends[start + 2 * e] + ends[start + 2 * e + 1] - v
                    if not seen[first + w]:
                        seen[first + w] = 1
                        order[first + tail] = <int>w
                        up[first + w] = e
                        tail += 1
                    elif up[first + v] != e and up[first + w] != e:
                        forest = False
    return forest


@cython.final
cdef class GraphParts(Parts):
    """States of nodes, and pairs of states of the ends of edges."""

    cdef GraphShape shape

    def __init__(self, GraphShape shape):
        self.shape = shape
        self.max_entries = 2 * (shape.max_nodes + shape.max_edges)

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        return self.shape.limits(i)

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        cdef Model model = self.shape.graph(i)
        cdef Py_ssize_t v, e, n = 0, table = self.shape.pairs_of(i)
        for v in range(model.n):
            if label[v] >= self.shape.skip:
                index[n] = <int>(self.shape.node_start + v * self.shape.node_step + label[v] - self.shape.skip)
                n += 1
        for e in range(model.m):
            index[n] = <int>(table + e * self.shape.edge_step
                             + self.shape.cell(label, model.ends + 2 * e))
            n += 1
        for v in range(n):
            value[v] = 1
        return n

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        cdef Model model = self.shape.graph(i)
        cdef Py_ssize_t v, w, e, k, n = 0, table = self.shape.pairs_of(i), home, away
        cdef Py_ssize_t row = self.shape.node_start - self.shape.skip
        for v in range(model.n):
            if truth[v] == label[v]:
                continue
            if truth[v] >= self.shape.skip:
                index[n] = <int>(row + v * self.shape.node_step + truth[v])
                value[n] = 1
                n += 1
            if label[v] >= self.shape.skip:
                index[n] = <int>(row + v * self.shape.node_step + label[v])
                value[n] = -1
                n += 1
            # Edges at v, except those that the other end has brought already.
            for k in range(model.near_at[v], model.near_at[v + 1]):
                e = model.near[k]
                w = model.ends[2 * e] + model.ends[2 * e + 1] - v
                if w < v and truth[w] != label[w]:
                    continue
                home = self.shape.cell(truth, model.ends + 2 * e)
                away = self.shape.cell(label, model.ends + 2 * e)
                if home != away:
                    index[n] = <int>(table + e * self.shape.edge_step + home)
                    index[n + 1] = <int>(table + e * self.shape.edge_step + away)
                    value[n], value[n + 1] = 1, -1
                    n += 2
        return n
