from structsolve.abi_number cimport structsolve_abi_marker
from structsolve.part_layout cimport PartLayout
cdef class NodeCosts:
    cdef readonly Py_ssize_t K
    cdef readonly bint normalised, zero_one
    cdef readonly object cost_matrix
    cdef readonly str name, advice
    cdef const double* cost
    cdef const double* transposed
    cdef bint ones_off_diagonal
    cdef bint hamming
    cdef object owners
    cdef bint _flag0, _flag1, _flag2, _flag3
    cdef Py_ssize_t _room0, _room1, _room2, _room3
cdef int check_states(NodeCosts costs, PartLayout layout, labels) except -1
