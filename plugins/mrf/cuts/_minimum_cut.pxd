# The best labeling of a super-modular model by one minimum cut.
from structsolve.algorithms.minimum_cut cimport CutGraph

from structsolve.plugins.mrf.tables._model cimport Model
from structsolve.plugins.mrf.tables._shape cimport GraphShape


# Why a table is not super-modular: the second difference of `edge` between states (a, b) and
# (a + 1, b + 1), which is negative; or -INFINITY if the cut cannot express the scores of -inf.
cdef struct Obstacle:
    Py_ssize_t edge
    int a, b
    double amount


cdef class CutNetworks:
    cdef readonly GraphShape shape
    # Bytes of `work`, 8-byte aligned, that solve() needs.
    cdef readonly Py_ssize_t work_bytes
    cdef bint plain                     # every node of every graph has two states
    cdef Py_ssize_t max_nodes, max_pairs
    cdef object owners
    cdef const CutGraph* graphs         # of each graph; only where `plain`
    cdef const int* leaving             # edges that begin at each node, of all graphs
    # The flow of each example's last cut, an entry per edge; NULL if not kept.  Any numbers are
    # a valid start: two threads at one example do no harm.
    cdef double* flows

    # label <- a best one, value <- its score, bound <- an upper bound of all scores, equal to the
    # value up to second differences that count as 0.  Returns whether all tables are
    # super-modular; else `obstacle` describes the first that is not.
    cdef bint solve(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, Obstacle* obstacle, char* work) noexcept nogil
    cdef double* _flow(self, Py_ssize_t i) noexcept nogil
    cdef bint _solve_two(self, Py_ssize_t i, const double* theta, int* label, double* slack,
                         Obstacle* obstacle, char* work) noexcept nogil
    cdef bint _solve_many(self, Py_ssize_t i, const double* theta, int* label, double* slack,
                          Obstacle* obstacle, char* work) noexcept nogil
    cdef double _shared_pairs(self, Model model, const double* table,
                              const int* label) noexcept nogil
