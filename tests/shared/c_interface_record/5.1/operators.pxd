from structsolve.abi_number cimport structsolve_abi_marker
from structsolve.part_layout cimport PartLayout
cdef class Operator:
    cdef readonly PartLayout layout
    cdef readonly Py_ssize_t work_bytes
    cdef readonly Py_ssize_t n_states
    cdef bint _flag0, _flag1, _flag2, _flag3
    cdef Py_ssize_t _room0, _room1, _room2, _room3
    cdef void _slot0(self) noexcept nogil
    cdef void _slot1(self) noexcept nogil
    cdef void _slot2(self) noexcept nogil
    cdef void _slot3(self) noexcept nogil
    cdef void _slot4(self) noexcept nogil
    cdef void _slot5(self) noexcept nogil
    cdef void _slot6(self) noexcept nogil
    cdef void _slot7(self) noexcept nogil
cdef class Oracle(Operator):
    cdef readonly bint exact
    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value, double* bound, char* work) except -1 nogil
cdef class KBest(Operator):
    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels, double* values, char* work) except -1 nogil
    cpdef Py_ssize_t bytes_for(self, Py_ssize_t k) except -1
cdef class MaxMarginals(Operator):
    cdef int max_marginals(self, Py_ssize_t i, const double* theta, double* out, char* work) except -1 nogil
cdef class AugmentedOracle(Operator):
    cdef int argmax(self, Py_ssize_t i, const double* theta, const int* truth, int* label, double* value, double* loss, char* work) except -1 nogil
cdef class Relaxation(Operator):
    cdef int relax(self, Py_ssize_t i, const double* theta, double* mu, int* label, double* value, double* bound, char* work) except -1 nogil
cdef struct Cone:
    double h0, g0
    double lam
    double alpha, beta
    bint twin
cdef class ConeOracle(Operator):
    cdef int argmax_in_cone(self, Py_ssize_t i, const double* theta, const double* cost, const Cone* cone, double* mu, int* label, double* value, char* work) except -1 nogil
cdef class CountOracle(Operator):
    cdef int argmax_counts(self, Py_ssize_t i, const double* theta, const double* cost, Py_ssize_t most, int* labels, double* values, char* work) except -1 nogil
    cpdef Py_ssize_t bytes_for(self, Py_ssize_t most) except -1
cdef class Parts(Operator):
    cdef readonly Py_ssize_t max_entries
    cdef readonly bint indicator
    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index, double* value) except -1 nogil
    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index, double* value) except -1 nogil
cdef class Loss(Operator):
    cdef readonly bint decomposes
    cdef readonly bint zero_one
    cdef readonly bint averaged
    cdef readonly bint takes_unseen
    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil
    cdef double augment(self, Py_ssize_t i, const int* truth, double scale, double* theta) except? -1 nogil
    cdef readonly bint has_costs
    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale, double* theta) except? -1 nogil
cdef class Projection(Operator):
    cdef readonly bint gibbs
    cdef readonly bint exact
    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value, double* bound, char* work) except -1 nogil
    cdef readonly bint has_state
    cdef Py_ssize_t state_size(self, Py_ssize_t i) noexcept nogil
    cdef int project_state(self, Py_ssize_t i, const double* theta, double* state, double* value, double* bound, char* work) except -1 nogil
    cdef int state_of(self, Py_ssize_t i, const int* label, double* state) except -1 nogil
    cdef int pool(self, Py_ssize_t i, const double* state, double* marginals) except -1 nogil
    cdef readonly bint has_term
    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil
    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma, char* work) except? -1 nogil
    cdef readonly bint has_samples
    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms, int* labels, char* work) except -1 nogil
    cdef readonly bint has_derivative
    cdef int derivative(self, Py_ssize_t i, const double* theta, const double* direction, double* out, char* work) except -1 nogil
    cpdef Py_ssize_t derivative_bytes(self) except -1
