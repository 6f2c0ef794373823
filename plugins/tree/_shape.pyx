"""Forests, and the parts of their labelings."""

import numpy as np

from libc.stdint cimport int64_t
from libc.string cimport memset
from structsolve.algorithms.max_product cimport Forest
from structsolve.operators cimport Parts
from structsolve.part_layout cimport PartLayout


cdef class TreeShape:
    """The forests of packed examples, and where the parts of their labelings lie in ``theta``.

    Parameters
    ----------
    layout : PartLayout
        Of a tree space.  The topology of its examples has ``"parents"``, of all nodes, counted from
        0 in every example, -1 at roots; and where nodes are not in such an order already,
        ``"order"``, in which parents come first.

    Raises
    ------
    ValueError
        When these are no forests, or the order is another.
    """

    def __init__(self, PartLayout layout not None):
        cdef Py_ssize_t i, total = layout.offsets[layout.n], n = layout.n
        topology = layout.examples.topology
        order = topology.get("order")
        cdef const int[::1] parents = _checked(topology["parents"], total, "parents")
        cdef const int[::1] orders = parents if order is None else _checked(order, total, "order")
        # One spare entry, so that each has an address.
        cdef int[::1] edges = np.empty(total + 1, dtype=np.int32)
        cdef int[::1] degrees = np.empty(total + 1, dtype=np.int32)
        cdef int64_t[::1] edge_offsets = np.zeros(n + 1, dtype=np.int64)
        cdef signed char[::1] seen = np.zeros(layout.max_nodes + 1, dtype=np.int8)
        self.offset, self.edge_offset = layout.offsets, &edge_offsets[0]
        self.parent_p, self.edge_p, self.degree_p = &parents[0], &edges[0], &degrees[0]
        self.order_p = NULL if order is None else &orders[0]
        self.owners = (layout.owners, parents, orders, edges, degrees, edge_offsets)
        self.n = n
        self.K = layout.shapes["node"][0]
        self.stride = layout.node_size
        self.shared_size = layout.shared_size
        self.edge_size = layout.edge_size
        self.transition = layout.starts.get("transition", -1)
        self.root = layout.starts.get("root", -1)
        self.pairs = self.transition >= 0 or self.edge_size > 0
        self.max_nodes = max(layout.max_nodes, 1)
        for i in range(n):
            total = self.read_tree(i, &seen[0], &edges[0], &degrees[0])
            if self.edge_size and layout.edges_of(i) != total:
                raise ValueError(
                    f"example {i}: {layout.edges_of(i)} rows of edges, expected {total}, one for "
                    "each node with a parent"
                )
            edge_offsets[i + 1] = edge_offsets[i] + total
            self.max_edges = max(self.max_edges, total)

    cdef int read_tree(self, Py_ssize_t i, signed char* seen, int* edges,
                       int* degrees) except -1:
        # Numbers of the edges, and degrees; returns how many edges there are.  Every node is there
        # once, and after its parent: the loops rely on it.
        cdef Py_ssize_t first = self.offset[i], n = self.offset[i + 1] - first, j, v
        cdef const int* parent = self.parent_p + first
        cdef int m = 0
        if n < 1:
            raise ValueError(f"example {i}: a tree of {n} nodes, expected at least 1")
        memset(seen, 0, n)
        memset(degrees + first, 0, n * sizeof(int))
        for v in range(n):
            if not -1 <= parent[v] < n:
                raise ValueError(
                    f"example {i}: parents: found {parent[v]}, a node that its tree has not, "
                    "expected -1 at roots"
                )
            edges[first + v] = -1
            if parent[v] >= 0:
                edges[first + v] = m
                m += 1
                degrees[first + v] += 1
                degrees[first + parent[v]] += 1
        for j in range(n):
            v = j if self.order_p == NULL else self.order_p[first + j]
            if not 0 <= v < n or seen[v] or (parent[v] >= 0 and not seen[parent[v]]):
                raise ValueError(
                    f"example {i}: order: expected every node of a tree once, and parents before "
                    "their children, as structsolve.plugins.tree.trees.stack_trees() gives them"
                )
            seen[v] = 1
        return m

    cdef Py_ssize_t buffer_bytes(self) noexcept nogil:
        return (8 * self.K * self.stride + 63) // 64 * 64

    cdef Forest forest(self, Py_ssize_t i, const double* theta, char* buffer) noexcept nogil:
        cdef Forest forest
        cdef Py_ssize_t first = self.offset[i]
        forest.n = self.offset[i + 1] - first
        forest.parent, forest.edge = self.parent_p + first, self.edge_p + first
        forest.order = NULL if self.order_p == NULL else self.order_p + first
        forest.nodes = theta + self.shared_size
        forest.roots = theta + self.root if self.root >= 0 else NULL
        forest.K, forest.stride = self.K, self.stride
        forest.pairs.shared = theta + self.transition if self.transition >= 0 else NULL
        forest.pairs.edges = forest.nodes + forest.n * self.stride if self.edge_size else NULL
        forest.pairs.buffer = <double*>buffer
        if not self.pairs:
            memset(buffer, 0, self.K * self.stride * sizeof(double))
            forest.pairs.shared = <double*>buffer
        return forest


cdef TreeShape tree_shape(PartLayout layout):
    return layout.common(TreeShape, TreeShape)


def _checked(array, Py_ssize_t total, what):
    if array.shape != (total,) or array.dtype != np.int32:
        raise ValueError(
            f"{what}: found {array.dtype} of shape {array.shape}, expected int32 ({total},), one "
            "per node"
        )
    # One spare entry at least, so that it has an address.
    return np.ascontiguousarray(array) if total else np.zeros(1, np.int32)


cdef class TreeParts(Parts):
    """States of nodes, pairs of states of parents and children, states of roots.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef TreeShape shape

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.shape = tree_shape(layout)
        self.n_states = self.shape.K
        # A node has a root's score or those of an edge.
        self.max_entries = 2 * 3 * self.shape.max_nodes

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        cdef Py_ssize_t stride = self.shape.stride, first = self.shape.offset[i], k = 0, v
        cdef Py_ssize_t n = self.shape.offset[i + 1] - first, cell
        cdef Py_ssize_t node = self.shape.shared_size, edge = node + n * stride
        cdef const int* parent = self.shape.parent_p + first
        cdef const int* number = self.shape.edge_p + first
        for v in range(n):
            index[k] = <int>(node + v * stride + label[v])
            k += 1
            if parent[v] < 0:
                if self.shape.root >= 0:
                    index[k] = <int>(self.shape.root + label[v])
                    k += 1
                continue
            cell = label[parent[v]] * stride + label[v]
            if self.shape.transition >= 0:
                index[k] = <int>(self.shape.transition + cell)
                k += 1
            if self.shape.edge_size:
                index[k] = <int>(edge + number[v] * self.shape.edge_size + cell)
                k += 1
        for v in range(k):
            value[v] = 1
        return k

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        cdef Py_ssize_t stride = self.shape.stride, first = self.shape.offset[i], k = 0, v
        cdef Py_ssize_t n = self.shape.offset[i + 1] - first, home, away, start
        cdef Py_ssize_t node = self.shape.shared_size, edge = node + n * stride
        cdef const int* parent = self.shape.parent_p + first
        cdef const int* number = self.shape.edge_p + first
        for v in range(n):
            home, away = truth[v], label[v]
            if home != away:
                k = _pair(index, value, k, node + v * stride, home, away)
                if parent[v] < 0 and self.shape.root >= 0:
                    k = _pair(index, value, k, self.shape.root, home, away)
            if parent[v] < 0:
                continue
            home += truth[parent[v]] * stride
            away += label[parent[v]] * stride
            if home == away:
                continue
            if self.shape.transition >= 0:
                k = _pair(index, value, k, self.shape.transition, home, away)
            if self.shape.edge_size:
                start = edge + number[v] * self.shape.edge_size
                k = _pair(index, value, k, start, home, away)
        return k


cdef inline Py_ssize_t _pair(int* index, double* value, Py_ssize_t k, Py_ssize_t start,
                             Py_ssize_t home, Py_ssize_t away) noexcept nogil:
    index[k], value[k] = <int>(start + home), 1
    index[k + 1], value[k + 1] = <int>(start + away), -1
    return k + 2
