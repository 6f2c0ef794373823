# Costs of node states, shared by losses over nodes.
from structsolve.abi_number cimport structsolve_abi_marker
from structsolve.part_layout cimport PartLayout


cdef class NodeCosts:
    cdef readonly Py_ssize_t K
    cdef readonly bint normalised, zero_one
    cdef readonly object cost_matrix            # (rows, K), rows >= K
    cdef readonly str name, advice
    cdef const double* cost
    cdef const double* transposed               # (K, K)
    cdef bint ones_off_diagonal                 # the K x K part is 0 on the diagonal, else 1
    cdef bint hamming                           # and the rows below are 1
    cdef object owners
    # Reserved for future fields; see abi_number.pxd.
    cdef bint _flag0, _flag1, _flag2, _flag3
    cdef Py_ssize_t _room0, _room1, _room2, _room3


# Refuse labels that have no row of costs.
cdef int check_states(NodeCosts costs, PartLayout layout, labels) except -1
