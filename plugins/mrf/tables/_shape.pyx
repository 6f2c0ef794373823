"""Graphs of packed examples, offsets of the parts of their labelings in theta, and the parts."""

import numpy as np

from structsolve.utils.arrays import padded

cimport cython
from libc.stdint cimport int64_t
from libc.string cimport memset
from structsolve.operators cimport Parts
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.mrf.tables._model cimport Model, breadth_first, other_end, scores_of
from structsolve.plugins.mrf.tables._near cimport sort_edges


@cython.final
cdef class GraphShape:
    """Graphs of packed examples, and offsets of the parts of their labelings in ``theta``.

    A label has one entry per node of its graph.

    Parameters
    ----------
    layout : PartLayout
        Layout with a block ``"node"``, and if pairs of states have scores, a block ``"pair"``: one
        shared table, shared tables by edge, or rows of edges.
    ends : ndarray of int32 of shape (m, 2)
        Checked edges; nodes count from 0 in every graph.  The edges of all examples, one after
        the other, split by the examples' ``edge_offsets``; or the edges of the one graph.
    states : int or array of int
        Number of states of every node, or of each node of the one graph.
    one_graph : bool
        All examples have the same graph.
    symmetric : bool, default=False
        (t, s) is the same part as (s, t), stored with the smaller state first.
    skip : bool, default=False
        State 0 of node v has no part; state 1 has the v-th part of the one row of theta.

    Raises
    ------
    ValueError
        If graphs and layout do not match.
    """

    def __init__(self, PartLayout layout not None, ends, states, bint one_graph,
                 bint symmetric=False, bint skip=False):
        cdef Py_ssize_t i, nodes, edges
        cdef const int64_t[::1] edge_view
        self.one_graph, self.symmetric, self.skip = one_graph, symmetric, skip
        self.n = layout.n
        self.n_graphs = min(layout.n, 1) if one_graph else layout.n
        self.offset, self.rows = layout.label_offsets, layout.offsets
        self.owners = (layout.owners,)
        nodes = layout.label_offsets[self.n_graphs]
        self.ends = np.ascontiguousarray(ends, dtype=np.int32).reshape(-1, 2)
        edges = len(self.ends)
        if not one_graph:
            if layout.examples.edge_offsets is None:
                raise ValueError("the examples have no edges; give one graph for all of them")
            edge_view = layout.examples.edge_offsets
            if edge_view.shape[0] != layout.n + 1:
                raise ValueError(f"edge_offsets: found {edge_view.shape[0]}, expected {layout.n + 1}")
            self.edge_offset = &edge_view[0]
            self.owners += (edge_view,)
            edges = edge_view[layout.n]
        if edges != len(self.ends):
            raise ValueError(f"ends: found {len(self.ends)} edges, expected {edges}")
        self._place(layout)
        # One spare entry, so that arrays have an address.
        self.states = np.ones(nodes + 1, dtype=np.int32)[:nodes]
        if nodes:
            self.states[...] = states
        self._index(nodes, edges)
        for i in range(layout.n):
            if one_graph and layout.label_size(i) != nodes:
                raise ValueError(
                    f"example {i}: found {layout.label_size(i)} nodes, expected {nodes} as in all "
                    "examples"
                )
            if self.edge_rows and layout.edges_of(i) != self.graph(i).m:
                raise ValueError(
                    f"example {i}: found {layout.edges_of(i)} rows of edges, expected "
                    f"{self.graph(i).m}, one per edge"
                )
        self.scores_bytes = (8 * (self.max_unary + self.max_pair) + 127) // 64 * 64
        self.marginal_bytes = (8 * (self.max_unary + self.max_cells) + 127) // 64 * 64

    def _place(self, PartLayout layout not None):
        """Set the offsets of the parts from the blocks."""
        K = 2 if self.skip else layout.shapes["node"][0]
        pair = layout.shapes.get("pair", (K, K))
        self.n_states = K
        self.row_size, self.edge_size = layout.node_size, layout.edge_size
        self.node_start = layout.shared_size
        self.node_step = 1 if self.skip else layout.node_size
        self.pair_start = layout.starts.get("pair", 0)
        self.edge_rows = self.pair_start < 0
        self.row = padded(pair[len(pair) - 1])
        # One table for all edges, or one for each edge.
        each = self.edge_rows or len(pair) == 3
        self.edge_step = pair[len(pair) - 2] * self.row if each else 0

    def _index(self, Py_ssize_t nodes, Py_ssize_t edges):
        """Set for each graph the start of scores, edges by node, an order from roots to leaves."""
        cdef Py_ssize_t g, v, e, n, m, first, first_edge, G = self.n_graphs
        cdef const int* ends
        cdef double count
        cdef Model model
        # Starts of scores have one entry more than each graph has nodes or edges.
        cdef Py_ssize_t[::1] unary_at = np.zeros(nodes + G + 1, dtype=np.intp)
        cdef Py_ssize_t[::1] near_at = np.zeros(nodes + G + 1, dtype=np.intp)
        cdef Py_ssize_t[::1] cell_at = np.zeros(edges + G + 1, dtype=np.intp)
        cdef Py_ssize_t[::1] pair_at = cell_at
        cdef int[::1] near = np.empty(2 * edges + 1, dtype=np.int32)
        cdef int[::1] order = np.empty(nodes + 1, dtype=np.int32)
        cdef int[::1] up = np.empty(nodes + 1, dtype=np.int32)
        cdef const int[::1] ends_view = self.ends.ravel() if edges else np.zeros(1, np.int32)
        cdef const int[::1] states = self.states if nodes else np.zeros(1, np.int32)
        self.owners += (unary_at, near_at, cell_at, near, order, up, ends_view, states)
        self.unary_p, self.near_at_p, self.cell_p = &unary_at[0], &near_at[0], &cell_at[0]
        self.near_p, self.order_p, self.up_p = &near[0], &order[0], &up[0]
        self.ends_p, self.states_p = &ends_view[0], &states[0]
        self.max_nodes = self.max_states = self.max_unary = 1
        self.cyclic = -1
        self.labelings = 1
        for g in range(G):
            first, first_edge = self.first_node(g), self.first_edge(g)
            n = self.offset[g + 1] - self.offset[g]
            m = edges if self.one_graph else self.edge_offset[g + 1] - first_edge
            ends = &ends_view[0] + 2 * first_edge
            if n < 1:
                raise ValueError(f"example {g}: a graph of {n} nodes, expected at least 1")
            count = 1
            for v in range(n):
                if not 1 <= states[first + v] <= self.n_states:
                    raise ValueError(
                        f"states: found {states[first + v]}, expected 1 to {self.n_states}"
                    )
                unary_at[first + g + v + 1] = unary_at[first + g + v] + states[first + v]
                self.max_states = max(self.max_states, states[first + v])
                count = min(count * states[first + v], 1e300)
            for e in range(2 * m):
                if not 0 <= ends[e] < n:
                    raise ValueError(
                        "ends: found a node that its graph has not; check_edges() tells which"
                    )
            for e in range(m):
                cell_at[first_edge + g + e + 1] = cell_at[first_edge + g + e] + (
                    <Py_ssize_t>states[first + ends[2 * e]] * states[first + ends[2 * e + 1]])
            sort_edges(n, m, ends, &near_at[first + g], &near[2 * first_edge])
            self.max_nodes, self.max_edges = max(self.max_nodes, n), max(self.max_edges, m)
            self.max_unary = max(self.max_unary, unary_at[first + g + n])
            self.max_cells = max(self.max_cells, cell_at[first_edge + g + m])
            self.labelings = max(self.labelings, count)
            model = self.graph(g)
            if not breadth_first(&model, NULL, &order[first], &up[first]) and self.cyclic < 0:
                self.cyclic = g
        self.binary = self.max_states <= 2
        self.max_pair = self.max_cells
        # Theta has one table, and no node needs only a part of it.
        self.one_table = (nodes > 0 and edges > 0 and not self.edge_rows and self.edge_step == 0
                          and bool((self.states == self.max_states).all()))
        if self.one_table:
            self.max_pair = self.max_states * self.max_states
            pair_at = np.zeros(edges + G + 1, dtype=np.intp)
        self.owners += (pair_at,)
        self.pair_p = &pair_at[0]

    @property
    def forest(self):
        """No graph has a cycle."""
        return self.cyclic < 0

    def _check(self, Py_ssize_t i):
        if not 0 <= i < self.n:
            raise ValueError(f"example {i} of {self.n}: expected 0 to {self.n - 1}")

    def model(self, Py_ssize_t i, theta):
        """Return ``(states, ends, unary, pair)`` of example ``i`` at ``theta``, a table per edge."""
        cdef const double[::1] view
        cdef Model model
        self._check(i)
        if theta is None or len(theta) != self.theta_size(i):
            raise ValueError(f"theta: found {np.size(theta)} scores, expected {self.theta_size(i)}")
        view = theta
        cdef double[::1] room = np.zeros(self.max_unary + self.max_pair + 1)
        model = self.gather(i, &view[0], &room[0])
        return (*self.graph_of(i), *scores_of(&model))

    def graph_of(self, Py_ssize_t i):
        """Return ``(states, ends)`` of example ``i``, as views."""
        cdef Py_ssize_t first, first_edge
        cdef Model model
        self._check(i)
        first, first_edge, model = self.first_node(i), self.first_edge(i), self.graph(i)
        return (self.states[first:first + model.n], self.ends[first_edge:first_edge + model.m])

    cdef Py_ssize_t first_node(self, Py_ssize_t i) noexcept nogil:
        return 0 if self.one_graph else self.offset[i]

    cdef Py_ssize_t first_edge(self, Py_ssize_t i) noexcept nogil:
        return 0 if self.one_graph else self.edge_offset[i]

    cdef Py_ssize_t pairs_of(self, Py_ssize_t i) noexcept nogil:
        # Where the pair tables of example i start in theta.
        if not self.edge_rows:
            return self.pair_start
        return self.node_start + (self.rows[i + 1] - self.rows[i]) * self.row_size

    cdef Py_ssize_t theta_size(self, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t rows = self.rows[i + 1] - self.rows[i]
        return self.node_start + rows * self.row_size + self.graph(i).m * self.edge_size

    cdef Py_ssize_t largest(self, BytesOf bytes_of) noexcept:
        cdef Py_ssize_t g, most = 0
        cdef Model model
        for g in range(self.n_graphs):
            model = self.graph(g)
            most = max(most, bytes_of(&model))
        return most

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
        model.cell_at = self.cell_p + first_edge + g
        model.near = self.near_p + 2 * first_edge
        model.unary, model.pair, model.weight = NULL, NULL, NULL
        return model

    cdef Model gather(self, Py_ssize_t i, const double* theta, double* scores) noexcept nogil:
        cdef Model model = self.graph(i)
        cdef double* unary
        cdef double* pair = scores + self.max_unary
        cdef const double* row = theta + self.node_start
        cdef const double* table = theta + self.pairs_of(i)
        cdef Py_ssize_t v, e
        cdef int s, t, K, rows
        for v in range(model.n):
            unary = scores + model.unary_at[v]
            K = model.states[v]
            if self.skip:
                unary[0] = 0
                for s in range(1, K):
                    unary[s] = row[s - 1]
            else:
                for s in range(K):
                    unary[s] = row[s]
            row += self.node_step
        model.unary, model.pair = scores, pair
        if (self.edge_step == 4 and self.row == 2 and not self.symmetric
                and 4 * model.m == model.cell_at[model.m]):
            model.pair = table      # theta has the model's own layout
            return model
        for e in range(min(model.m, 1) if self.one_table else model.m):
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


@cython.final
cdef class GraphParts(Parts):
    """States of nodes, and pairs of states of the ends of edges.

    Parameters
    ----------
    shape : GraphShape
    layout : PartLayout
    """

    cdef GraphShape shape

    def __init__(self, GraphShape shape not None, PartLayout layout not None):
        super().__init__(layout)
        self.shape = shape
        self.n_states = shape.n_states
        self.max_entries = 2 * (shape.max_nodes + shape.max_edges)

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        cdef Model model = self.shape.graph(i)
        cdef Py_ssize_t v, e, n = 0, table = self.shape.pairs_of(i)
        cdef Py_ssize_t row = self.shape.node_start - self.shape.skip
        for v in range(model.n):
            if label[v] >= self.shape.skip:
                index[n] = <int>(row + v * self.shape.node_step + label[v])
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
                w = other_end(&model, e, v)
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
