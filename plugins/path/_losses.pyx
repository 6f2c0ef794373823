# build: glue
"""Losses of paths: cells or edges on only one of two paths, true cells that are missed, costs."""

import numpy as np

from structsolve.plugins.path._oracle import PathOracle
from structsolve.structure.calls import argmax

from structsolve.operators cimport Loss
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.path._shape cimport PathShape, path_shape


cdef class PathLoss(Loss):
    """A loss that is a sum over the nodes, or over the edges, of both paths.

    Parameters
    ----------
    missed : bool
        Count the parts of the true path that the other one lacks; else those on only one path.
    edges : bool
        Count edges instead of nodes.
    layout : PartLayout
        Layout of a path space.
    """

    cdef PathShape shape
    cdef bint missed, edges

    def __init__(self, bint missed, bint edges, PartLayout layout not None):
        super().__init__(layout)
        self.shape, self.missed, self.edges = path_shape(layout), missed, edges
        self.n_states = self.shape.max_edges + 1
        self.decomposes = self.has_costs = True

    cdef Py_ssize_t start(self, Py_ssize_t i) noexcept nogil:
        return self.shape.nodes_of(i) if self.edges else 0

    cdef Py_ssize_t size(self, Py_ssize_t i) noexcept nogil:
        return self.shape.edges_of(i) if self.edges else self.shape.nodes_of(i)

    def check_truths(self, const int[::1] labels not None):
        """Refuse true labels that are no paths."""
        self.shape.check(labels)

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        # The sink is on every path.
        cdef Py_ssize_t v
        cdef double total = 0
        cdef bint apart
        for v in range(self.shape.nodes_of(i)):
            if truth[v] == label[v]:
                continue
            apart = self.edges or truth[v] == 0 or label[v] == 0
            total += apart and truth[v] != 0
            total += apart and label[v] != 0 and not self.missed
        return total

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        cdef Py_ssize_t v, n = self.shape.nodes_of(i), used = 0
        cdef double* part = theta + self.start(i)
        if not self.missed:
            for v in range(self.size(i)):
                part[v] += scale
            if not self.edges:
                part[self.shape.sink(i)] -= scale
        for v in range(n):
            if truth[v]:
                used += 1
                part[truth[v] - 1 if self.edges else v] -= scale if self.missed else 2 * scale
        return scale * used

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        # sum_v y'_v - y_v y'_v of a truth y', and y_v - y_v y'_v unless `missed`.
        cdef Py_ssize_t v, first = self.start(i)
        cdef Py_ssize_t sink = -1 if self.edges else self.shape.sink(i)
        cdef double total = 0
        for v in range(self.size(i)):
            if v == sink:
                continue
            theta[first + v] -= scale * nu[first + v] * (1 if self.missed else 2)
            if not self.missed or transposed:
                theta[first + v] += scale
            if not self.missed or not transposed:
                total += nu[first + v]
        return scale * total


cdef class Regret(Loss):
    """What a path costs beyond the true one, by costs of nodes that examples hold.

    Parameters
    ----------
    layout : PartLayout
        Layout of a path space.  The topology of its examples has "costs", one per node.

    Raises
    ------
    ValueError
        If the examples have no costs.
    """

    cdef PathShape shape
    cdef const double* cost
    cdef object owner

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.shape = path_shape(layout)
        self.n_states = self.shape.max_edges + 1
        self.decomposes = self.has_costs = True
        given = layout.examples.topology.get("costs")
        if given is None or np.shape(given) != (layout.offsets[layout.n],):
            raise ValueError("loss 'regret': expected examples with \"costs\" of their nodes")
        cdef const double[::1] view = np.append(given, 0.0).astype(np.float64)
        self.owner, self.cost = view, &view[0]

    def check_truths(self, const int[::1] labels not None):
        """Refuse true labels that are no paths, or cost more than another path."""
        cdef Py_ssize_t i, n
        self.shape.check(labels)
        oracle = PathOracle(self.layout)
        for i in range(self.layout.n):
            n = self.shape.nodes_of(i)
            theta = np.zeros(self.layout.theta_size(i))
            theta[:n] = -np.asarray(<double[:n]>(<double*>self.cost + self.shape.offsets[i]))
            least = -argmax(oracle, i, theta)[1]
            own = self.total(i, &labels[self.shape.offsets[i]]) - theta[self.shape.sink(i)]
            if own > least + 1e-9 * (1 + abs(least)):
                raise ValueError(
                    f"example {i}: the true path costs {own:g} and another one {least:g}; loss "
                    "'regret' needs the path of least cost as y"
                )

    cdef double total(self, Py_ssize_t i, const int* label) noexcept nogil:
        # Without the sink.
        cdef Py_ssize_t v
        cdef double total = 0
        for v in range(self.shape.nodes_of(i)):
            if label[v]:
                total += self.cost[self.shape.offsets[i] + v]
        return total

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        return self.total(i, label) - self.total(i, truth)

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        cdef Py_ssize_t v
        for v in range(self.shape.nodes_of(i)):
            if v != self.shape.sink(i):
                theta[v] += scale * self.cost[self.shape.offsets[i] + v]
        return -scale * self.total(i, truth)

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        cdef Py_ssize_t v
        cdef double total = 0, one
        if transposed:
            scale = -scale
        for v in range(self.shape.nodes_of(i)):
            if v != self.shape.sink(i):
                one = self.cost[self.shape.offsets[i] + v]
                theta[v] += scale * one
                total += one * nu[v]
        return -scale * total
