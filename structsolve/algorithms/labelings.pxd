# Labelings of nodes with scores of nodes and pairs: offsets of parts, and marginals.
from libc.stdint cimport int64_t
from structsolve.abi_number cimport structsolve_abi_marker
from structsolve.algorithms.messages cimport Marginals
from structsolve.operators cimport Projection
from structsolve.part_layout cimport PartLayout
from structsolve.simd.loops cimport ss_loop_table


cdef class LabelingShape:
    cdef readonly Py_ssize_t K, stride, shared_size, edge_size, max_nodes
    # First double of the table of pairs in theta, or -1 if the space has none.
    cdef readonly Py_ssize_t transition
    cdef readonly bint pairs            # whether pairs of states are scored
    cdef const ss_loop_table* loops     # for rows of `stride`
    cdef const int64_t* offsets         # those of the layout
    cdef object owners                  # not the layout itself, which holds this shape

    cdef Py_ssize_t nodes_of(self, Py_ssize_t i) noexcept nogil
    # Subclasses set it.
    cdef Py_ssize_t edges_of(self, Py_ssize_t i) noexcept nogil


cdef class LabelingProjection(Projection):
    cdef LabelingShape base

    # Subclasses implement: the log-partition only; marginals and log-partition (`out.transition`
    # and pooled blocks are 0 before); marginals of blocks that pool node rows, from these rows.
    cdef int partition(self, Py_ssize_t i, const double* theta, double* value,
                       char* work) except -1 nogil
    cdef int sums(self, Py_ssize_t i, const double* theta, const Marginals* out, double* value,
                  char* work) except -1 nogil
    cdef void pool_nodes(self, Py_ssize_t i, const double* nodes, double* marginals) noexcept nogil
    # If has_derivative: the derivatives of the marginals of nodes and edges along a direction;
    # `out` is as in sums().
    cdef Py_ssize_t move_bytes          # its bytes of scratch memory
    cdef void move(self, Py_ssize_t i, const double* direction, const Marginals* marginals,
                   const Marginals* out, char* work) noexcept nogil
    cdef Marginals _parts(self, Py_ssize_t i, double* marginals) noexcept nogil
    cdef Marginals _tables(self, Py_ssize_t i, double* state) noexcept nogil
    cdef Py_ssize_t _state_bytes(self) noexcept nogil
