"""Multiclass operators: the best of K classes, also in a cone or for each count; parts."""

cimport cython
from libc.math cimport INFINITY, floor
from libc.string cimport memcpy, memset
from structsolve.algorithms.classes cimport best_class, best_class_in_cone, best_classes
from structsolve.simd.loops cimport ss_loop_table, ss_loops
from structsolve.operators cimport (
    Cone, ConeOracle, CountOracle, KBest, MaxMarginals, Oracle, Parts, Relaxation,
)
from structsolve.part_layout cimport PartLayout


cdef int _no_count(Py_ssize_t i, Py_ssize_t s, double cost) except -1 with gil:
    raise ValueError(
        f"example {i}, class {s}: the cost is {cost}, which is no count; expected an integer of at "
        "least 0"
    )


@cython.final
cdef class MulticlassOracle(Oracle):
    """Largest of K scores; of equal ones the first.

    Scores of -inf forbid a class; the value is -inf when none is left.

    Parameters
    ----------
    layout : PartLayout
        With one node block of shape (K,), one node in each example, and no other block.
    """

    cdef Py_ssize_t K, stride
    cdef const ss_loop_table* loops

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.K, self.stride = layout.shapes["node"][0], layout.node_size
        self.n_states = self.K
        self.loops = ss_loops(self.stride)
        self.work_bytes = 8

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        label[0] = best_class(self.loops, self.K, self.stride, theta, value)
        bound[0] = value[0]
        return 0


@cython.final
cdef class MulticlassKBest(KBest):
    """The k best classes; forbidden ones are left out, but for the first, that of the oracle.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef Py_ssize_t K, stride
    cdef const ss_loop_table* loops

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.K, self.stride = layout.shapes["node"][0], layout.node_size
        self.n_states = self.K
        self.loops = ss_loops(self.stride)
        self.work_bytes = 8

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        return best_classes(self.loops, self.K, self.stride, theta, k, labels, values)


@cython.final
cdef class MulticlassMaxMarginals(MaxMarginals):
    """The scores of the classes themselves.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef Py_ssize_t K, stride

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.K, self.stride = layout.shapes["node"][0], layout.node_size
        self.n_states = self.K
        self.work_bytes = 8

    cdef int max_marginals(self, Py_ssize_t i, const double* theta, double* out,
                           char* work) except -1 nogil:
        memset(out, 0, self.stride * sizeof(double))
        memcpy(out, theta, self.K * sizeof(double))
        return 0


@cython.final
cdef class MulticlassRelaxation(Relaxation):
    """The simplex, whose corners are the classes: nothing is ever fractional.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef Py_ssize_t K, stride
    cdef const ss_loop_table* loops

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.K, self.stride = layout.shapes["node"][0], layout.node_size
        self.n_states = self.K
        self.loops = ss_loops(self.stride)
        self.work_bytes = 8

    cdef int relax(self, Py_ssize_t i, const double* theta, double* mu, int* label,
                   double* value, double* bound, char* work) except -1 nogil:
        label[0] = best_class(self.loops, self.K, self.stride, theta, value)
        bound[0] = value[0]
        memset(mu, 0, self.stride * sizeof(double))
        mu[label[0]] = 1
        return 1


@cython.final
cdef class MulticlassCones(ConeOracle):
    """The best class in a cone: each is looked at.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef Py_ssize_t K, stride

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.K, self.stride = layout.shapes["node"][0], layout.node_size
        self.n_states = self.K
        self.work_bytes = 8

    cdef int argmax_in_cone(self, Py_ssize_t i, const double* theta, const double* cost,
                            const Cone* cone, double* mu, int* label, double* value,
                            char* work) except -1 nogil:
        return best_class_in_cone(self.K, theta, cost, cone, label, value)


@cython.final
cdef class MulticlassCounts(CountOracle):
    """The best class of each cost; of equal ones the first.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef Py_ssize_t K, stride

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.K, self.stride = layout.shapes["node"][0], layout.node_size
        self.n_states = self.K
        self.work_bytes = 8

    cdef int argmax_counts(self, Py_ssize_t i, const double* theta, const double* cost,
                           Py_ssize_t most, int* labels, double* values,
                           char* work) except -1 nogil:
        cdef Py_ssize_t c, s
        for c in range(most + 1):
            labels[c], values[c] = 0, -INFINITY
        for s in range(self.K):
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
