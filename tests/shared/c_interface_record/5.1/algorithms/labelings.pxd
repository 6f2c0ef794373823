from libc.stdint cimport int64_t
from structsolve.abi_number cimport structsolve_abi_marker
from structsolve.algorithms.messages cimport Marginals
from structsolve.operators cimport Projection
from structsolve.part_layout cimport PartLayout
from structsolve.simd.loops cimport ss_loop_table
cdef class LabelingShape:
    cdef readonly Py_ssize_t K, stride, shared_size, edge_size, max_nodes
    cdef readonly Py_ssize_t transition
    cdef readonly bint pairs
    cdef const ss_loop_table* loops
    cdef const int64_t* offsets
    cdef object owners
    cdef Py_ssize_t nodes_of(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t edges_of(self, Py_ssize_t i) noexcept nogil
cdef class LabelingProjection(Projection):
    cdef LabelingShape base
    cdef int partition(self, Py_ssize_t i, const double* theta, double* value, char* work) except -1 nogil
    cdef int sums(self, Py_ssize_t i, const double* theta, const Marginals* out, double* value, char* work) except -1 nogil
    cdef void pool_nodes(self, Py_ssize_t i, const double* nodes, double* marginals) noexcept nogil
    cdef Py_ssize_t move_bytes
    cdef void move(self, Py_ssize_t i, const double* direction, const Marginals* marginals, const Marginals* out, char* work) noexcept nogil
    cdef Marginals _parts(self, Py_ssize_t i, double* marginals) noexcept nogil
    cdef Marginals _tables(self, Py_ssize_t i, double* state) noexcept nogil
    cdef Py_ssize_t _state_bytes(self) noexcept nogil
