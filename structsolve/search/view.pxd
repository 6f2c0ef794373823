# The state of one search on one example's label plane.
from libc.math cimport fabs
from libc.stdint cimport uint64_t
from structsolve.abi_number cimport structsolve_abi_marker

# Relative difference below which sums of scores are equal: linear programs are no more accurate.
cdef inline double rounding_of(const double* theta, Py_ssize_t size) noexcept nogil:
    cdef double most = 0
    cdef Py_ssize_t j
    for j in range(size):
        most = max(most, fabs(theta[j]))
    return 1e-6 * most

cdef enum:
    SLOTS = 40          # largest number of points that are kept
    LINES = 256         # largest number of oracle calls

cdef enum Kind:
    TRUTH = 0
    LABEL = 1
    FRACTIONAL = 2

cdef struct Point:
    double h, g
    double shift        # the part of h that does not depend on weights
    uint64_t key        # equal labels have equal keys
    Kind kind
    int slot            # slot of its label or parts; -1 for the truth
    Py_ssize_t nnz      # parts of a fractional point

cdef struct Visit:      # one answer of the oracle: h + lam g <= bound for every label
    double lam, bound, h, g
    double above        # bound - (h + lam g): the possible error of an inexact oracle

cdef struct View:       # one search on one example; the work memory begins with it
    Py_ssize_t i
    const double* theta
    const int* truth    # the true label
    double truth_score  # once costs are set
    double low, high    # range of g
    double unit         # for a search among labels: every label's g is a multiple of it; else 0
    Py_ssize_t least, most      # smallest and largest multiple
    int calls, n, n_visits
    bint has_costs
    bint exact          # all answers so far are proven maxima
    double h_const, g_const
    Point points[SLOTS]
    Visit visits[LINES]
    double* scaled      # theta + lam cost
    double* costs       # of g, once requested
    double* shifts      # of h, if it has a separate loss
    double* mu
    int* labels
    double* values      # parts of fractional points
    int* index
    int* entry_index    # scratch for differences of parts
    double* entry_value
    char* scratch
