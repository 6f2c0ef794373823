# Projections of nodes without pairs: one simplex per node row.
from ..operators cimport Projection
from ..simd.loops cimport ss_loop_table


cdef class NodeRows(Projection):
    cdef Py_ssize_t K, stride, first
    cdef const ss_loop_table* loops     # for rows of `stride`
    cdef Py_ssize_t count(self, Py_ssize_t i) noexcept nogil
    cdef double least(self, Py_ssize_t i, const double* costs, int* label) noexcept nogil
    # out <- the marginals of one node, 0 before; returns the value.  scratch has room for one row.
    cdef double project_row(self, Py_ssize_t i, const double* row, double* out,
                            double* scratch) except? -1 nogil


cdef class RowSoftmax(NodeRows):
    pass


cdef class RowSparsemax(NodeRows):
    pass


cdef class RowMaxMin(NodeRows):
    cdef readonly str kind
    cdef bint absolute, averaged
    cdef double scale
    cdef double cost(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t _best_prediction(self, const double* x, const double* y, double gamma,
                                     double* cost) noexcept nogil
