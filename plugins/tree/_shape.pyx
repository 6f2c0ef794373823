"""Forests of one set of examples, and the parts of their labelings."""

import numpy as np

from libc.stdint cimport int64_t
from libc.string cimport memset
from structsolve.algorithms.max_product cimport Forest
from structsolve.operators cimport Parts


def _spare(array):
    # One entry at least, so that it has an address.
    return array if array.size else np.zeros(1, array.dtype)


cdef class TreeShape:
    """The forests of one set of examples, and where the parts of their labels lie in ``theta``.

    Parameters
    ----------
    layout : structsolve.potentials.weight_layout.Layout
        Layout of a tree space.
    offsets : ndarray of int64 of shape (n + 1,)
        First node of each example.
    parents : ndarray of int32
        Of all nodes, counted from 0 in every example, -1 at roots.
    order : ndarray of int32 or None
        An order of every example's nodes in which parents come first; None where they are in one.
    """

    def __init__(self, layout, offsets, parents, order=None):
        cdef const int64_t[::1] offset_view = offsets, edge_view
        cdef const int[::1] parent_view, order_view, number_view, degree_view
        sizes = np.diff(offsets)
        starts, total = offsets[:sizes.size], int(offsets[sizes.size])
        if sizes.size and sizes.min() < 1:
            raise ValueError(
                f"example {int(sizes.argmin())}: a tree of {sizes.min()} nodes, expected at least 1"
            )
        if len(parents) != total or (order is not None and len(order) != total):
            raise ValueError(f"parents: found {len(parents)}, expected {total}, one per node")
        n_nodes = np.repeat(sizes, sizes)
        if ((parents < -1) | (parents >= n_nodes)).any():
            raise ValueError("parents: found a node that its tree has not, expected -1 at roots")
        self._check_order(offsets, parents, order)
        below = parents >= 0
        counted = np.concatenate([[0], np.cumsum(below)])
        self.edge_offsets = counted[offsets].astype(np.int64)
        first = np.repeat(self.edge_offsets[:sizes.size], sizes)
        self.edges = _spare(np.where(below, counted[:total] - first, -1).astype(np.int32))
        stacked = (parents + np.repeat(starts, sizes))[below]
        self.degrees = _spare((np.bincount(stacked, minlength=total) + below).astype(np.int32))
        self.offsets, self.parents, self.order = offsets, _spare(parents), order
        self.offset, edge_view = &offset_view[0], self.edge_offsets
        self.edge_offset = &edge_view[0]
        parent_view, number_view, degree_view = self.parents, self.edges, self.degrees
        self.parent_p, self.edge_p = &parent_view[0], &number_view[0]
        self.degree_p, self.order_p = &degree_view[0], NULL
        if order is not None:
            order_view = order = _spare(order)
            self.order, self.order_p = order, &order_view[0]
        self.n = sizes.size
        self.K = layout.node.shape[0]
        self.stride = layout.node_size
        self.shared_size = layout.shared_size
        self.edge_size = layout.edge_size
        self.transition = layout.starts.get("transition", -1)
        self.root = layout.starts.get("root", -1)
        self.pairs = self.transition >= 0 or self.edge_size > 0
        self.max_nodes = int(sizes.max(initial=1))
        self.max_edges = int(np.diff(self.edge_offsets).max(initial=0))

    def _check_order(self, const int64_t[::1] offsets, const int[::1] parents, order):
        # Every node once, and after its parent: the loops rely on it.
        cdef Py_ssize_t i, j, v
        cdef const int[::1] given
        cdef signed char[::1] seen = np.zeros(parents.shape[0] + 1, dtype=np.int8)
        cdef bint sound = True
        if order is None:
            bounds = np.asarray(offsets)
            sizes = np.diff(bounds)
            order = np.arange(len(parents)) - np.repeat(bounds[:sizes.size], sizes)
        given = np.ascontiguousarray(order, dtype=np.int32)
        for i in range(offsets.shape[0] - 1):
            for j in range(offsets[i], offsets[i + 1]):
                v = given[j]
                if not 0 <= v < offsets[i + 1] - offsets[i] or seen[offsets[i] + v]:
                    sound = False
                    break
                seen[offsets[i] + v] = 1
                if parents[offsets[i] + v] >= 0:
                    sound = sound and seen[offsets[i] + parents[offsets[i] + v]]
        if not sound:
            raise ValueError(
                "order: expected every node of a tree once, and parents before their children, as "
                "structsolve.plugins.tree._topology.order_nodes() gives them"
            )

    def limits(self, Py_ssize_t i):
        """Sizes that belong to example ``i``: doubles in theta, nodes of a label, states a node.

        ``structsolve.structure.calls`` checks its arguments against them.
        """
        if not 0 <= i < self.n:
            raise ValueError(f"example {i} of {self.n}: expected 0 to {self.n - 1}")
        cdef Py_ssize_t n = self.offset[i + 1] - self.offset[i]
        cdef Py_ssize_t m = self.edge_offset[i + 1] - self.edge_offset[i]
        return self.shared_size + n * self.stride + m * self.edge_size, n, self.K

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


cdef class TreeParts(Parts):
    """States of nodes, pairs of states of parents and children, states of roots."""

    cdef TreeShape shape

    def __init__(self, TreeShape shape):
        self.shape = shape
        # A node has a root's score or those of an edge.
        self.max_entries = 2 * 3 * shape.max_nodes

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        return self.shape.limits(i)

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
