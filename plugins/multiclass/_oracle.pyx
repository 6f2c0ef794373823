"""Multiclass: parts, max-marginals and counts.

All structures whose label is one of K classes share the oracle, its other powers and the
projections: see `structsolve.algorithms.class_operators`.
"""

cimport cython
from libc.math cimport INFINITY, floor
from libc.string cimport memcpy, memset
from structsolve.operators cimport CountOracle, MaxMarginals, Parts
from structsolve.part_layout cimport PartLayout


cdef int _no_count(Py_ssize_t i, Py_ssize_t s, double cost) except -1 with gil:
    raise ValueError(
        f"example {i}, class {s}: the cost is {cost}, which is no count; expected an integer of at "
        "least 0"
    )


@cython.final
cdef class MulticlassMaxMarginals(MaxMarginals):
    """The scores of the classes themselves.

    Parameters
    ----------
    layout : PartLayout
        Has one node block of shape (K,), one node in each example, and no other block.
    """

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.n_states, self.work_bytes = layout.shapes["node"][0], 8

    cdef int max_marginals(self, Py_ssize_t i, const double* theta, double* out,
                           char* work) except -1 nogil:
        memset(out, 0, self.layout.node_size * sizeof(double))
        memcpy(out, theta, self.n_states * sizeof(double))
        return 0


@cython.final
cdef class MulticlassCounts(CountOracle):
    """The best class of each cost; the first on ties.

    Parameters
    ----------
    layout : PartLayout
    """

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.n_states, self.work_bytes = layout.shapes["node"][0], 8

    cdef int argmax_counts(self, Py_ssize_t i, const double* theta, const double* cost,
                           Py_ssize_t most, int* labels, double* values,
                           char* work) except -1 nogil:
        cdef Py_ssize_t c, s
        for c in range(most + 1):
            labels[c], values[c] = 0, -INFINITY
        for s in range(self.n_states):
            if not (cost[s] >= 0 and cost[s] < INFINITY and floor(cost[s]) == cost[s]):
                return _no_count(i, s, cost[s])
            if cost[s] <= most:
                c = <Py_ssize_t>cost[s]
                if theta[s] > values[c]:
                    labels[c], values[c] = <int>s, theta[s]
        return 0


@cython.final
cdef class MulticlassParts(Parts):
    """One part per class.

    Parameters
    ----------
    layout : PartLayout
    """

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.n_states = layout.shapes["node"][0]
        self.max_entries = 2
        self.indicator = True

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        index[0] = label[0]
        value[0] = 1
        return 1

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        if truth[0] == label[0]:
            return 0
        index[0], index[1] = truth[0], label[0]
        value[0], value[1] = 1, -1
        return 2
