"""Forests: orders of their nodes, checks, and the parts of their labelings."""

import numpy as np

from libc.stdint cimport int64_t
from libc.string cimport memset
from structsolve.algorithms.difference cimport write_pair
from structsolve.algorithms.labelings cimport LabelingShape
from structsolve.algorithms.max_product cimport Forest
from structsolve.operators cimport Parts
from structsolve.part_layout cimport PartLayout


cdef class TreeShape(LabelingShape):
    """The forests of packed examples, and offsets of the parts of their labelings in ``theta``.

    Parameters
    ----------
    layout : PartLayout
        Layout of a tree space.  The topology of its examples has the ``"parents"`` of all nodes,
        counted from 0 in every example, -1 at roots; and unless parents already come first,
        ``"order"``, in which they do.

    Raises
    ------
    ValueError
        If these are no forests, or the order is wrong.
    """

    def __init__(self, PartLayout layout not None):
        cdef Py_ssize_t i, total = layout.offsets[layout.n], n = layout.n
        super().__init__(layout)
        topology = layout.examples.topology
        order = topology.get("order")
        cdef const int[::1] parents = _checked(topology["parents"], total, "parents")
        cdef const int[::1] orders = parents if order is None else _checked(order, total, "order")
        # One spare entry, so that every array has an address.
        cdef int[::1] edges = np.empty(total + 1, dtype=np.int32)
        cdef int[::1] degrees = np.empty(total + 1, dtype=np.int32)
        cdef int64_t[::1] edge_offsets = np.zeros(n + 1, dtype=np.int64)
        cdef signed char[::1] seen = np.zeros(layout.max_nodes + 1, dtype=np.int8)
        self.edge_offset = &edge_offsets[0]
        self.parent_p, self.edge_p, self.degree_p = &parents[0], &edges[0], &degrees[0]
        self.order_p = NULL if order is None else &orders[0]
        self.owners = (layout.owners, parents, orders, edges, degrees, edge_offsets)
        self.root = layout.starts.get("root", -1)
        for i in range(n):
            total = self.read_tree(i, &seen[0], &edges[0], &degrees[0])
            if self.edge_size and layout.edges_of(i) != total:
                raise ValueError(
                    f"example {i}: {layout.edges_of(i)} rows of edges, expected {total}, one for "
                    "each node with a parent"
                )
            edge_offsets[i + 1] = edge_offsets[i] + total

    cdef int read_tree(self, Py_ssize_t i, signed char* seen, int* edges, int* degrees) except -1:
        # Writes numbers of edges and degrees; returns the number of edges.  Checks that every
        # node comes once, and after its parent: the loops rely on it.
        cdef Py_ssize_t first = self.offsets[i], n = self.offsets[i + 1] - first, j, v
        cdef const int* parent = self.parent_p + first
        cdef int m = 0
        if n < 1:
            raise ValueError(f"example {i}: a tree of {n} nodes, expected at least 1")
        memset(seen, 0, n)
        memset(degrees + first, 0, n * sizeof(int))
        for v in range(n):
            if not -1 <= parent[v] < n:
                raise ValueError(
                    f"example {i}: parents: found {parent[v]}, which is no node of its tree, "
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

    cdef Py_ssize_t edges_of(self, Py_ssize_t i) noexcept nogil:
        return self.edge_offset[i + 1] - self.edge_offset[i]

    cdef Py_ssize_t buffer_bytes(self) noexcept nogil:
        return (8 * self.K * self.stride + 63) // 64 * 64

    cdef Forest forest(self, Py_ssize_t i, const double* theta, char* buffer) noexcept nogil:
        cdef Forest forest
        cdef Py_ssize_t first = self.offsets[i]
        forest.n = self.offsets[i + 1] - first
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


def order_nodes(const int[::1] parents not None, const int64_t[::1] offsets not None):
    """Return an order of every example's nodes, parents first; None if they already are.

    Parameters
    ----------
    parents : ndarray of int32
        Parents of all nodes, counted from 0 in every example, -1 at roots.
    offsets : ndarray of int64 of shape (n + 1,)
        First node of each example.

    Returns
    -------
    ndarray of int32, or None

    Raises
    ------
    ValueError
        If a node is its own ancestor; the message names the example and nodes of the cycle.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.plugins.tree._shape import order_nodes
    >>> order_nodes(np.array([1, 2, -1], dtype=np.int32), np.array([0, 3])).tolist()
    [2, 1, 0]
    """
    cdef Py_ssize_t i, v, w, first, n, tail
    cdef bint sorted_already = True
    cdef int[::1] order, pending
    if offsets.shape[0] < 1 or offsets[0] != 0 or offsets[offsets.shape[0] - 1] != parents.shape[0]:
        raise ValueError(f"offsets: expected 0 to {parents.shape[0]}, the number of parents")
    for i in range(offsets.shape[0] - 1):
        n = offsets[i + 1] - offsets[i]
        for v in range(n):
            w = parents[offsets[i] + v]
            if not -1 <= w < n:
                raise ValueError(
                    f"example {i}, node {v}: the parent is {w}, expected -1 to {n - 1}"
                )
            sorted_already = sorted_already and w < v
    if sorted_already:
        return None
    positions = np.empty(parents.shape[0], dtype=np.int32)
    # Children that are still to come; -1 once the node has its place.
    order, pending = positions, np.zeros(parents.shape[0], dtype=np.int32)
    for i in range(offsets.shape[0] - 1):
        first = offsets[i]
        tail = n = offsets[i + 1] - first
        for v in range(n):
            if parents[first + v] >= 0:
                pending[first + parents[first + v]] += 1
        # From the end: leaves, then parents once all children have their places.
        for v in range(n - 1, -1, -1):
            w = v
            while w >= 0 and pending[first + w] == 0:
                tail -= 1
                order[first + tail] = <int>w
                pending[first + w] = -1
                w = parents[first + w]
                if w >= 0:
                    pending[first + w] -= 1
        if tail:
            _refuse(i, np.asarray(parents[first:first + n]), np.asarray(pending[first:first + n]))
    return positions


def _refuse(i, parents, pending):
    # From a node without a place, parents lead onto a cycle.
    v = int(np.flatnonzero(pending >= 0)[0])
    for _ in range(len(parents)):
        v = int(parents[v])
    path, w = [v], int(parents[v])
    while w != v and len(path) < 12:
        path.append(w)
        w = int(parents[w])
    named = ", ".join(map(str, path)) + (", ..." if w != v else "")
    raise ValueError(
        f"X, example {i}: node {v} is its own ancestor: the nodes {named} form a cycle (each the "
        "child of the next); expected a tree or a forest"
    )


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
        # A node has one part, and the part of a root or two parts of an edge.
        self.max_entries = 2 * 3 * self.shape.max_nodes

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        cdef Py_ssize_t stride = self.shape.stride, first = self.shape.offsets[i], k = 0, v
        cdef Py_ssize_t n = self.shape.offsets[i + 1] - first, cell
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
        cdef Py_ssize_t stride = self.shape.stride, first = self.shape.offsets[i], k = 0, v
        cdef Py_ssize_t n = self.shape.offsets[i + 1] - first, cell, true_cell
        cdef Py_ssize_t node = self.shape.shared_size, edge = node + n * stride
        cdef const int* parent = self.shape.parent_p + first
        cdef const int* number = self.shape.edge_p + first
        for v in range(n):
            true_cell, cell = truth[v], label[v]
            if true_cell != cell:
                k = write_pair(index, value, k, node + v * stride, true_cell, cell)
                if parent[v] < 0 and self.shape.root >= 0:
                    k = write_pair(index, value, k, self.shape.root, true_cell, cell)
            if parent[v] < 0:
                continue
            true_cell += truth[parent[v]] * stride
            cell += label[parent[v]] * stride
            if true_cell == cell:
                continue
            if self.shape.transition >= 0:
                k = write_pair(index, value, k, self.shape.transition, true_cell, cell)
            if self.shape.edge_size:
                k = write_pair(index, value, k, edge + number[v] * self.shape.edge_size,
                               true_cell, cell)
        return k
