from libc.math cimport fabs
from libc.stdint cimport uint64_t
from structsolve.abi_number cimport structsolve_abi_marker
cdef inline double rounding_of(const double* theta, Py_ssize_t size) noexcept nogil:
    cdef double most = 0
    cdef Py_ssize_t j
    for j in range(size):
        most = max(most, fabs(theta[j]))
    return 1e-6 * most
cdef enum:
    SLOTS = 40
    LINES = 256
cdef enum Kind:
    TRUTH = 0
    LABEL = 1
    FRACTIONAL = 2
cdef struct Point:
    double h, g
    double shift
    uint64_t key
    Kind kind
    int slot
    Py_ssize_t nnz
cdef struct Visit:
    double lam, bound, h, g
    double above
cdef struct View:
    Py_ssize_t i
    const double* theta
    const int* truth
    double truth_score
    double low, high
    double unit
    Py_ssize_t least, most
    int calls, n, n_visits
    bint has_costs
    bint exact
    double h_const, g_const
    Point points[SLOTS]
    Visit visits[LINES]
    double* scaled
    double* costs
    double* shifts
    double* mu
    int* labels
    double* values
    int* index
    int* entry_index
    double* entry_value
    char* scratch
