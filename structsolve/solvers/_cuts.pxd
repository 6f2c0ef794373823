# A growing list of cuts per example: the active set of its dual variable, and the cache.
from libc.stdint cimport int32_t, uint64_t
from ..surrogates.base cimport Cut

cdef struct CutHead:
    uint64_t key
    double b
    double weight       # coefficient in p_i; 0: cached only
    int32_t nnz
    int32_t age         # visits since the weight was last positive

cdef struct CutList:
    char* memory
    Py_ssize_t used, capacity, count
    double* gram        # gram[j * side + k] = <p_j, K_ii p_k>, kept when the loop asks for it
    Py_ssize_t side

cdef inline double* cut_values(CutHead* head) noexcept nogil:
    return <double*>(head + 1)

cdef inline int* cut_index(CutHead* head) noexcept nogil:
    return <int*>(cut_values(head) + head.nnz)

cdef inline Py_ssize_t cut_bytes(Py_ssize_t nnz) noexcept nogil:
    return sizeof(CutHead) + 8 * nnz + 8 * ((nnz + 1) // 2)

# b - <theta, p>
cdef inline double slope(CutHead* head, const double* theta) noexcept nogil:
    cdef double total = head.b
    cdef Py_ssize_t k
    cdef const int* index = cut_index(head)
    cdef const double* value = cut_values(head)
    for k in range(head.nnz):
        total -= theta[index[k]] * value[k]
    return total

# <u, p>
cdef inline double inner(CutHead* head, const double* u) noexcept nogil:
    cdef double total = 0
    cdef Py_ssize_t k
    cdef const int* index = cut_index(head)
    cdef const double* value = cut_values(head)
    for k in range(head.nnz):
        total += u[index[k]] * value[k]
    return total


cdef class CutStore:
    cdef CutList* lists
    cdef readonly Py_ssize_t n
    # Pointers to the cuts of example i; valid until the next append to the same list.
    cdef Py_ssize_t heads(self, Py_ssize_t i, CutHead** out) noexcept nogil
    cdef CutHead* append(self, Py_ssize_t i, const Cut* cut) except NULL nogil
    # The Gram matrix of example i, with room for one more cut.
    cdef double* gram_room(self, Py_ssize_t i) except NULL nogil
    # Drop cuts of weight 0 that are older than max_age; drop those marked by a negative weight.
    cdef void prune(self, Py_ssize_t i, int max_age) noexcept nogil
