"""Sizes of chains, and the parts of their labels."""

import numpy as np

from libc.stdint cimport int64_t
from structsolve.operators cimport Parts


cdef class ChainShape:
    """Sizes of the chains of one set of examples, and where their parts lie in ``theta``.

    Parameters
    ----------
    layout : structsolve.potentials.weight_layout.Layout
        Layout of a chain space.
    offsets : ndarray of int64 of shape (n + 1,)
        First node of each chain; every chain has at least one.
    """

    def __init__(self, layout, offsets):
        cdef const int64_t[::1] view = offsets
        lengths = np.diff(offsets)
        if lengths.size and lengths.min() < 1:
            raise ValueError(
                f"example {int(lengths.argmin())}: a chain of {lengths.min()} nodes, expected at "
                "least 1"
            )
        self.owners = offsets
        self.offsets = &view[0]
        self.n = lengths.size
        self.K = layout.node.shape[0]
        self.stride = layout.node_size
        self.shared_size = layout.shared_size
        self.edge_size = layout.edge_size
        self.transition = layout.starts.get("transition", -1)
        self.start = layout.starts.get("start", -1)
        self.end = layout.starts.get("end", -1)
        self.max_length = int(lengths.max()) if lengths.size else 1

    def limits(self, Py_ssize_t i):
        """Sizes that belong to example ``i``: doubles in theta, nodes of a label, states a node.

        ``structsolve.structure.calls`` checks its arguments against them.
        """
        if not 0 <= i < self.n:
            raise ValueError(f"example {i} of {self.n}: expected 0 to {self.n - 1}")
        cdef Py_ssize_t L = self.offsets[i + 1] - self.offsets[i]
        return self.shared_size + L * self.stride + (L - 1) * self.edge_size, L, self.K


cdef class ChainParts(Parts):
    """Node states, transitions, and the states of both ends."""

    cdef ChainShape shape

    def __init__(self, ChainShape shape):
        self.shape = shape
        self.max_entries = 2 * (shape.max_length + 2 * (shape.max_length - 1) + 2)

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        return self.shape.limits(i)

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        cdef Py_ssize_t stride = self.shape.stride, n = 0, v, table = self.shape.K * stride
        cdef Py_ssize_t L = self.shape.offsets[i + 1] - self.shape.offsets[i]
        cdef int node = <int>self.shape.shared_size, edge = <int>(node + L * stride)
        for v in range(L):
            index[n] = <int>(node + v * stride + label[v])
            n += 1
        for v in range(L - 1):
            if self.shape.transition >= 0:
                index[n] = <int>(self.shape.transition + label[v] * stride + label[v + 1])
                n += 1
            if self.shape.edge_size:
                index[n] = <int>(edge + v * table + label[v] * stride + label[v + 1])
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
        cdef Py_ssize_t stride = self.shape.stride, n = 0, v, table = self.shape.K * stride
        cdef Py_ssize_t L = self.shape.offsets[i + 1] - self.shape.offsets[i]
        cdef int node = <int>self.shape.shared_size, edge = <int>(node + L * stride)
        for v in range(L):
            if truth[v] != label[v]:
                index[n] = <int>(node + v * stride + truth[v])
                value[n] = 1
                index[n + 1] = <int>(node + v * stride + label[v])
                value[n + 1] = -1
                n += 2
        for v in range(L - 1):
            if truth[v] != label[v] or truth[v + 1] != label[v + 1]:
                if self.shape.transition >= 0:
                    index[n] = <int>(self.shape.transition + truth[v] * stride + truth[v + 1])
                    value[n] = 1
                    index[n + 1] = <int>(self.shape.transition + label[v] * stride + label[v + 1])
                    value[n + 1] = -1
                    n += 2
                if self.shape.edge_size:
                    index[n] = <int>(edge + v * table + truth[v] * stride + truth[v + 1])
                    value[n] = 1
                    index[n + 1] = <int>(edge + v * table + label[v] * stride + label[v + 1])
                    value[n + 1] = -1
                    n += 2
        if self.shape.start >= 0 and truth[0] != label[0]:
            index[n] = <int>(self.shape.start + truth[0])
            value[n] = 1
            index[n + 1] = <int>(self.shape.start + label[0])
            value[n + 1] = -1
            n += 2
        if self.shape.end >= 0 and truth[L - 1] != label[L - 1]:
            index[n] = <int>(self.shape.end + truth[L - 1])
            value[n] = 1
            index[n + 1] = <int>(self.shape.end + label[L - 1])
            value[n + 1] = -1
            n += 2
        return n
