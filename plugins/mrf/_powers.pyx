# build: glue
"""The k best labelings of graphs, and max-marginals: of forests, and of few labelings."""

from libc.math cimport INFINITY
from libc.string cimport memset
from structsolve.operators cimport KBest, MaxMarginals
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.mrf._forest cimport (
    forest_bytes, forest_kbest, forest_kbest_bytes, forest_marginals,
)
from structsolve.plugins.mrf._gray_code cimport (
    gray_bytes, gray_kbest, gray_kbest_bytes, gray_marginals,
)
from structsolve.plugins.mrf._model cimport Model
from structsolve.plugins.mrf._shape cimport GraphShape

from structsolve.utils.arrays import padded


cdef class GraphKBest(KBest):
    """The k best labelings: of forests by max-product, of other graphs all are looked through.

    Parameters
    ----------
    shape : GraphShape
        Where a graph has a cycle, of few labelings.
    layout : PartLayout
    """

    cdef GraphShape shape
    cdef bint forest

    def __init__(self, GraphShape shape not None, PartLayout layout not None):
        super().__init__(layout)
        self.shape, self.n_states, self.forest = shape, shape.n_states, shape.forest
        self.work_bytes = self.bytes_for(1)

    cpdef Py_ssize_t bytes_for(self, Py_ssize_t k) except -1:
        cdef Py_ssize_t nodes = self.shape.max_nodes, unary = self.shape.max_unary
        if self.forest:
            return self.shape.scores_bytes + forest_kbest_bytes(nodes, unary, k)
        return self.shape.scores_bytes + gray_kbest_bytes(nodes, unary, k)

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        cdef char* rest = work + self.shape.scores_bytes
        cdef Model model = self.shape.gather(i, theta, <double*>work)
        cdef Py_ssize_t first = self.shape.first_node(i), count
        if self.forest:
            return forest_kbest(&model, self.shape.order_p + first, self.shape.up_p + first, k,
                                labels, values, rest)
        count = gray_kbest(&model, k, labels, values, rest)
        if count:
            return count
        memset(labels, 0, model.n * sizeof(int))        # nothing is possible, as argmax says
        values[0] = -INFINITY
        return 1


cdef class GraphMaxMarginals(MaxMarginals):
    """The best score for each state of each node; as :class:`GraphKBest`.

    States that a node has not score -inf.  Rows have the width of the space's states, padded.

    Parameters
    ----------
    shape : GraphShape
        Where a graph has a cycle, of few labelings.
    layout : PartLayout
    """

    cdef GraphShape shape
    cdef bint forest
    cdef Py_ssize_t stride

    def __init__(self, GraphShape shape not None, PartLayout layout not None):
        super().__init__(layout)
        self.shape, self.n_states, self.forest = shape, shape.n_states, shape.forest
        self.stride = padded(shape.n_states)
        needed = forest_bytes(shape.max_unary)
        if not self.forest:
            needed = gray_bytes(shape.max_nodes, shape.max_unary)
        # Scores, max-marginals as the model has them, and what the program needs.
        self.work_bytes = shape.scores_bytes + 8 * shape.max_unary + needed

    cdef int max_marginals(self, Py_ssize_t i, const double* theta, double* out,
                           char* work) except -1 nogil:
        cdef double* best = <double*>(work + self.shape.scores_bytes)
        cdef char* rest = <char*>(best + self.shape.max_unary)
        cdef Model model = self.shape.gather(i, theta, <double*>work)
        cdef Py_ssize_t first = self.shape.first_node(i), v, s
        if self.forest:
            forest_marginals(&model, self.shape.order_p + first, self.shape.up_p + first, best,
                             rest)
        else:
            gray_marginals(&model, best, rest)
        for v in range(model.n):
            for s in range(self.stride):
                out[s] = best[model.unary_at[v] + s] if s < model.states[v] else -INFINITY
            out += self.stride
        return 0
