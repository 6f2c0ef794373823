# build: glue
"""Max-product on trees as an oracle: best label, k best, max-marginals, best label per count."""

cimport cython
from structsolve.algorithms.max_product cimport (
    Forest, forest_argmax, forest_bytes, forest_kbest, forest_max_marginals,
)
from structsolve.algorithms.lawler_heap cimport Candidate
from structsolve.operators cimport CountOracle, KBest, MaxMarginals, Oracle
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.tree._counting cimport best_per_count, counting_bytes
from structsolve.plugins.tree._shape cimport TreeShape, tree_shape


@cython.final
cdef class TreeOracle(Oracle):
    """Exact maximisation over the labelings of trees and forests by dynamic programming.

    Time and memory are linear in the nodes.  Ties go to the labeling with the smallest state at
    the first node, then at the second, and so on, in an order with parents first.

    Scores of -inf forbid a state or a pair of states; the value is -inf when no labeling is left.

    Parameters
    ----------
    layout : PartLayout
        Layout of a tree space.
    """

    cdef TreeShape shape

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.shape = tree_shape(layout)
        self.n_states, self.work_bytes = self.shape.K, program_bytes(self.shape)

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef Forest forest = self.shape.forest(i, theta, work)
        value[0] = forest_argmax(self.shape.loops, &forest, label, work + self.shape.buffer_bytes())
        bound[0] = value[0]
        return 0


@cython.final
cdef class TreeMaxMarginals(MaxMarginals):
    """The best value of a labeling for each state of each node, by a pass up and one down.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef TreeShape shape

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.shape = tree_shape(layout)
        self.n_states, self.work_bytes = self.shape.K, program_bytes(self.shape)

    cdef int max_marginals(self, Py_ssize_t i, const double* theta, double* out,
                           char* work) except -1 nogil:
        cdef Forest forest = self.shape.forest(i, theta, work)
        forest_max_marginals(self.shape.loops, &forest, out, work + self.shape.buffer_bytes())
        return 0


@cython.final
cdef class TreeKBest(KBest):
    """The k best labelings of forests; the first is always the answer of the oracle.

    None of the others scores -inf.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef TreeShape shape

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.shape = tree_shape(layout)
        self.n_states, self.work_bytes = self.shape.K, program_bytes(self.shape)

    cpdef Py_ssize_t bytes_for(self, Py_ssize_t k) except -1:
        return self.work_bytes + k * self.shape.max_nodes * sizeof(Candidate) + 64

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        cdef Forest forest = self.shape.forest(i, theta, work)
        return forest_kbest(self.shape.loops, &forest, k, labels, values,
                            <Candidate*>(work + self.work_bytes),
                            work + self.shape.buffer_bytes())


@cython.final
cdef class TreeCounts(CountOracle):
    """The best labeling for each value of an integer cost.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef TreeShape shape

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.shape = tree_shape(layout)
        self.n_states = self.shape.K

    cpdef Py_ssize_t bytes_for(self, Py_ssize_t most) except -1:
        return counting_bytes(self.shape, most)

    cdef int argmax_counts(self, Py_ssize_t i, const double* theta, const double* cost,
                           Py_ssize_t most, int* labels, double* values,
                           char* work) except -1 nogil:
        return best_per_count(self.shape, i, theta, cost, most, labels, values, work)


cdef Py_ssize_t program_bytes(TreeShape shape) noexcept:
    return shape.buffer_bytes() + forest_bytes(shape.max_nodes, shape.K, shape.stride)
