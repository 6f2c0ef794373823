from libc.math cimport log
from structsolve.abi_number cimport structsolve_abi_marker
from structsolve.simd.loops cimport ss_loop_table
cdef extern from *:
    """
    /* The scaled recursion keeps every number that is not 0 well inside the range of doubles, so
     * that 0 always means "forbidden": scores may span SPAN, a row of messages stays above TINY,
     * its largest entry between SCALE and 1 / SCALE.  A message times two exponentials is then at
     * least 1e-281, and what is divided by a sum of at least MASS stays below 1e181. */
    #define SPAN 150.0
    #define TINY 1e-150
    #define SCALE 1e-30
    #define MASS 1e-120
    /* Tables without forbidden pairs may span more: what is lost beside their smallest entry,
     * e^-FULL_SPAN, is below e^-708 (exp_rows). */
    #define FULL_SPAN 300.0
    """
    const double SPAN, TINY, SCALE, MASS, FULL_SPAN
cdef struct Marginals:
    double* nodes
    double* edges
    double* transition
cdef enum TableKind:
    FULL
    PARTIAL
    WIDE
cdef struct SumTable:
    const double* scores
    double* exponentials
    double shift
    TableKind kind
cdef double log_sum_exp(Py_ssize_t n, const double* x) noexcept nogil
cdef int draw(Py_ssize_t K, const double* weights, double uniform) noexcept nogil
cdef int impossible(Py_ssize_t i) except -1 nogil
cdef bint exponentials(const ss_loop_table* loops, Py_ssize_t rows, const double* x, Py_ssize_t stride, Py_ssize_t K, double* out, double* shift) noexcept nogil
cdef inline bint rescale(double* row, Py_ssize_t stride, double low, double top, double* total) noexcept nogil:
    cdef Py_ssize_t s
    if not (low >= TINY and top > 0):
        return False
    if SCALE <= top <= 1 / SCALE:
        return True
    total[0] += log(top)
    for s in range(stride):
        row[s] /= top
    return low >= TINY * top
cdef void log_columns(const ss_loop_table* loops, Py_ssize_t K, Py_ssize_t stride, double* table, double* tops, double* out) noexcept nogil
cdef void log_rows(const ss_loop_table* loops, Py_ssize_t K, Py_ssize_t stride, double* table, double* tops, double* out) noexcept nogil
cdef SumTable sum_table(const ss_loop_table* loops, Py_ssize_t K, Py_ssize_t stride, const double* scores, double* exponentials) noexcept nogil
cdef void message_up(const ss_loop_table* loops, const SumTable* table, Py_ssize_t K, Py_ssize_t stride, const double* x, double* out, double* spare) noexcept nogil
cdef void message_down(const ss_loop_table* loops, const SumTable* table, Py_ssize_t K, Py_ssize_t stride, const double* x, double* out, double* spare) noexcept nogil
