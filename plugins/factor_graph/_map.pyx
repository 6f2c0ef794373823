# build: glue
"""From the parts and labels of factor graphs to those of their graphs of pairs, and back."""

import numpy as np

from structsolve.plugins.factor_graph.graphs import FactorArrays
from structsolve.plugins.mrf.graph_operators import common_graphs

from libc.string cimport memcpy, memset
from structsolve.part_layout cimport PartLayout


cdef const Py_ssize_t* _kept(list owners, array) except NULL:
    # One spare entry, so that arrays have an address.
    cdef const Py_ssize_t[::1] view = np.append(array, 0).astype(np.intp)
    owners.append(view)
    return &view[0]


cdef class FactorMap:
    """Links between factor graphs and the graphs of pairs that decoders take.

    Parameters
    ----------
    space : FactorGraphSpace
    layout : PartLayout
        Of the factor graphs.
    """

    def __init__(self, space, PartLayout layout not None):
        cdef Py_ssize_t i, g, most = 1
        cdef const int[::1] sources, targets
        cdef const double[::1] base
        arrays = FactorArrays(space, layout)
        self.layout, self.inner, self.one_graph = layout, arrays.inner, arrays.one_graph
        self.arrays = arrays
        self.shape = common_graphs(self.inner, arrays.ends, arrays.states, arrays.one_graph)
        owners = []
        sources, targets, base = arrays.sources, arrays.targets, arrays.base
        self.sources, self.targets, self.base = &sources[0], &targets[0], &base[0]
        self.owners = [sources, targets, base, owners]
        self.link_at = _kept(owners, arrays.link_at)
        self.base_at = _kept(owners, arrays.base_at)
        self.factor_at = _kept(owners, arrays.factor_at)
        self.table_at = _kept(owners, arrays.table_at)
        self.member_at = _kept(owners, arrays.member_at)
        self.members = _kept(owners, arrays.members)
        self.steps = _kept(owners, arrays.steps)
        self.home_at = _kept(owners, arrays.home_at)
        self.home_member_at = _kept(owners, arrays.home_member_at)
        self.home_members = _kept(owners, arrays.home_members)
        self.home_steps = _kept(owners, arrays.home_steps)
        for i in range(layout.n):
            g = 0 if self.one_graph else i
            most = max(most, self.base_at[g + 1] - self.base_at[g])
            self.max_factors = max(self.max_factors, self.factor_at[g + 1] - self.factor_at[g])
        self.theta_bytes = (8 * most + 127) // 64 * 64
        self.label_bytes = (4 * self.inner.max_label + 127) // 64 * 64

    cdef void spread(self, Py_ssize_t i, const double* theta, bint with_base,
                     double* out) noexcept nogil:
        cdef Py_ssize_t g = 0 if self.one_graph else i, j
        cdef Py_ssize_t first = self.base_at[g], size = self.base_at[g + 1] - first
        if with_base:
            memcpy(out, self.base + first, size * sizeof(double))
        else:
            memset(out, 0, size * sizeof(double))
        for j in range(self.link_at[g], self.link_at[g + 1]):
            out[self.targets[j]] += theta[self.sources[j]]

    cdef void collect(self, Py_ssize_t i, const double* mu, double* out) noexcept nogil:
        cdef Py_ssize_t g = 0 if self.one_graph else i, j
        memset(out, 0, self.layout.theta_size(i) * sizeof(double))
        for j in range(self.link_at[g], self.link_at[g + 1]):
            out[self.sources[j]] += mu[self.targets[j]]

    cdef void complete(self, Py_ssize_t i, const int* label, int* inner) noexcept nogil:
        cdef Py_ssize_t g = 0 if self.one_graph else i, n = self.layout.label_size(i), f, k, entry
        memcpy(inner, label, n * sizeof(int))
        for f in range(self.home_at[g], self.home_at[g + 1]):
            entry = 0
            for k in range(self.home_member_at[f], self.home_member_at[f + 1]):
                entry += label[self.home_members[k]] * self.home_steps[k]
            inner[n] = <int>entry
            n += 1

    cdef Py_ssize_t cell(self, Py_ssize_t f, const int* label) noexcept nogil:
        cdef Py_ssize_t k, part = self.table_at[f]
        for k in range(self.member_at[f], self.member_at[f + 1]):
            part += label[self.members[k]] * self.steps[k]
        return part

    cdef double score(self, Py_ssize_t i, const double* theta, const int* label) noexcept nogil:
        cdef Py_ssize_t g = 0 if self.one_graph else i, v, f
        cdef const double* row = theta + self.layout.shared_size
        cdef double total = 0
        for v in range(self.layout.label_size(i)):
            total += row[label[v]]
            row += self.layout.node_size
        for f in range(self.factor_at[g], self.factor_at[g + 1]):
            total += theta[self.cell(f, label)]
        return total
