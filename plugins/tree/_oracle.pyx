"""Max-product on trees as an oracle: best label, k best, max-marginals, best label per count."""

cimport cython
from structsolve.algorithms.max_product cimport (
    Forest, forest_argmax, forest_bytes, forest_kbest, forest_max_marginals,
)
from structsolve.algorithms.lawler_heap cimport Candidate
from structsolve.simd.loops cimport ss_kernel_table, ss_kernels
from structsolve.operators cimport Oracle

from structsolve.plugins.tree._counting cimport best_per_count, counting_bytes
from structsolve.plugins.tree._shape cimport TreeShape


@cython.final
cdef class TreeOracle(Oracle):
    """Exact maximisation over the labelings of trees and forests by dynamic programming.

    Time and memory are linear in the nodes.  Of equal labelings the one with the smallest state at
    the first node wins, then at the second, and so on, in an order with parents first.

    Scores of -inf forbid a state or a pair of states.  ``argmax`` answers with value -inf when no
    labeling is left; ``kbest`` gives possible labelings only, apart from its first answer, which
    is always that of ``argmax``.

    Parameters
    ----------
    shape : TreeShape
        The trees and where their parts lie.
    """

    cdef TreeShape shape
    cdef const ss_kernel_table* kernels

    def __init__(self, TreeShape shape):
        self.shape = shape
        self.kernels = ss_kernels(shape.stride)
        self.has_kbest = True
        self.has_max_marginals = True
        self.has_counts = True
        self.work_bytes = (shape.buffer_bytes()
                           + forest_bytes(shape.max_nodes, shape.K, shape.stride))

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        return self.shape.limits(i)

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    char* work) except -1 nogil:
        cdef Forest forest = self.shape.forest(i, theta, work)
        value[0] = forest_argmax(self.kernels, &forest, label, work + self.shape.buffer_bytes())
        return 0

    cdef int max_marginals(self, Py_ssize_t i, const double* theta, double* out,
                           char* work) except -1 nogil:
        cdef Forest forest = self.shape.forest(i, theta, work)
        forest_max_marginals(self.kernels, &forest, out, work + self.shape.buffer_bytes())
        return 0

    cpdef Py_ssize_t kbest_bytes(self, Py_ssize_t k) except -1:
        return self.work_bytes + k * self.shape.max_nodes * sizeof(Candidate) + 64

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        cdef Forest forest = self.shape.forest(i, theta, work)
        return forest_kbest(self.kernels, &forest, k, labels, values,
                            <Candidate*>(work + self.work_bytes),
                            work + self.shape.buffer_bytes())

    cpdef Py_ssize_t counts_bytes(self, Py_ssize_t most) except -1:
        return counting_bytes(self.shape, most)

    cdef int argmax_counts(self, Py_ssize_t i, const double* theta, const double* cost,
                           Py_ssize_t most, int* labels, double* values,
                           char* work) except -1 nogil:
        return best_per_count(self.kernels, self.shape, i, theta, cost, most, labels, values, work)
