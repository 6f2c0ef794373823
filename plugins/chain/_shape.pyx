"""Offsets of the parts of chains, and the parts of their labels."""

from structsolve.algorithms.difference cimport write_pair
from structsolve.algorithms.labelings cimport LabelingShape
from structsolve.operators cimport Parts
from structsolve.part_layout cimport PartLayout


cdef class ChainShape(LabelingShape):
    """Offsets of the parts of chains in ``theta``, and their sizes, for the loops.

    Parameters
    ----------
    layout : PartLayout
        Layout of a chain space.  If edges have rows, a chain has one row fewer than nodes.  An
        empty chain has no rows, one empty label, and the score 0.

    Raises
    ------
    ValueError
        If a chain has a wrong number of edges.
    """

    def __init__(self, PartLayout layout not None):
        cdef Py_ssize_t i
        super().__init__(layout)
        self.start = layout.starts.get("start", -1)
        self.end = layout.starts.get("end", -1)
        for i in range(layout.n):
            if self.edge_size and layout.edges_of(i) != self.edges_of(i):
                raise ValueError(
                    f"example {i}: {layout.edges_of(i)} rows of edges, expected "
                    f"{self.edges_of(i)}, one less than nodes"
                )

    cdef Py_ssize_t edges_of(self, Py_ssize_t i) noexcept nogil:
        return max(self.nodes_of(i) - 1, 0)


cdef ChainShape chain_shape(PartLayout layout):
    return layout.common(ChainShape, ChainShape)


cdef class ChainParts(Parts):
    """Node states, transitions, and the states of both ends.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef ChainShape shape

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.shape = chain_shape(layout)
        self.n_states = self.shape.K
        self.max_entries = 2 * (self.shape.max_nodes + 2 * (self.shape.max_nodes - 1) + 2)

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        cdef Py_ssize_t stride = self.shape.stride, L = chain_length(self.shape, i), n = 0, v, cell
        cdef Py_ssize_t node = self.shape.shared_size, edge = node + L * stride
        if L == 0:
            return 0
        for v in range(L):
            index[n] = <int>(node + v * stride + label[v])
            n += 1
        for v in range(L - 1):
            cell = label[v] * stride + label[v + 1]
            if self.shape.transition >= 0:
                index[n] = <int>(self.shape.transition + cell)
                n += 1
            if self.shape.edge_size:
                index[n] = <int>(edge + v * self.shape.edge_size + cell)
                n += 1
        if self.shape.start >= 0:
            index[n] = <int>(self.shape.start + label[0])
            n += 1
        if self.shape.end >= 0:
            index[n] = <int>(self.shape.end + label[L - 1])
            n += 1
        for v in range(n):
            value[v] = 1
        return n

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        cdef Py_ssize_t stride = self.shape.stride, L = chain_length(self.shape, i), n = 0, v
        cdef Py_ssize_t node = self.shape.shared_size, edge = node + L * stride, cell, true_cell
        if L == 0:
            return 0
        for v in range(L):
            if truth[v] != label[v]:
                n = write_pair(index, value, n, node + v * stride, truth[v], label[v])
        for v in range(L - 1):
            true_cell = truth[v] * stride + truth[v + 1]
            cell = label[v] * stride + label[v + 1]
            if true_cell == cell:
                continue
            if self.shape.transition >= 0:
                n = write_pair(index, value, n, self.shape.transition, true_cell, cell)
            if self.shape.edge_size:
                n = write_pair(index, value, n, edge + v * self.shape.edge_size, true_cell, cell)
        if self.shape.start >= 0 and truth[0] != label[0]:
            n = write_pair(index, value, n, self.shape.start, truth[0], label[0])
        if self.shape.end >= 0 and truth[L - 1] != label[L - 1]:
            n = write_pair(index, value, n, self.shape.end, truth[L - 1], label[L - 1])
        return n
