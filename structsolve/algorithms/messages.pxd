# Steps of sum-product recursions: exponentials in range, and messages through tables of pairs.
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
    # Output of marginals.  Every table has K rows of `stride` doubles.
    double* nodes           # one row per node
    double* edges           # one table per edge; NULL for none
    double* transition      # the sum of all edges' tables, 0 before; NULL for none


cdef enum TableKind:
    FULL                    # exponentials; no pair is forbidden
    PARTIAL                 # exponentials; scores of messages may span SPAN
    WIDE                    # no exponentials: the scores span too much


cdef struct SumTable:
    # A table of pairs, ready for messages: exponentials of scores minus `shift`, depending on kind.
    const double* scores
    double* exponentials
    double shift
    TableKind kind


cdef double log_sum_exp(Py_ssize_t n, const double* x) noexcept nogil
# Draws a state by its weights.
cdef int draw(Py_ssize_t K, const double* weights, double uniform) noexcept nogil
# Raises ValueError.
cdef int impossible(Py_ssize_t i) except -1 nogil

# out = exp(x - shift), with the maximum 1.  False if the scores do not suit the scaled form.
cdef bint exponentials(const ss_loop_table* loops, Py_ssize_t rows, const double* x,
                       Py_ssize_t stride, Py_ssize_t K, double* out, double* shift) noexcept nogil


cdef inline bint rescale(double* row, Py_ssize_t stride, double low, double top,
                         double* total) noexcept nogil:
    # Divides a row of messages, from `low` to `top`, to keep it in range, and adds the logarithm of
    # the divisor to total.  False if that is impossible.
    cdef Py_ssize_t s
    if not (low >= TINY and top > 0):
        return False
    if SCALE <= top <= 1 / SCALE:
        return True
    total[0] += log(top)
    for s in range(stride):
        row[s] /= top
    return low >= TINY * top


# table[s, t] holds a score: out[t] <- log sum_s exp table[s, t].  Overwrites the table; `tops` is a
# row.
cdef void log_columns(const ss_loop_table* loops, Py_ssize_t K, Py_ssize_t stride,
                      double* table, double* tops, double* out) noexcept nogil
# The same along rows: out[s] <- log sum_t exp table[s, t]; table <- exp(table[s, t] - tops[s]).
cdef void log_rows(const ss_loop_table* loops, Py_ssize_t K, Py_ssize_t stride, double* table,
                   double* tops, double* out) noexcept nogil

# Prepares a table for the functions below; `exponentials` has room for one.
cdef SumTable sum_table(const ss_loop_table* loops, Py_ssize_t K, Py_ssize_t stride,
                        const double* scores, double* exponentials) noexcept nogil
# out[s] <- log sum_t exp(scores[s, t] + x[t]).  `spare` has room for a table and two rows.
cdef void message_up(const ss_loop_table* loops, const SumTable* table, Py_ssize_t K,
                     Py_ssize_t stride, const double* x, double* out, double* spare) noexcept nogil
# out[t] <- log sum_s exp(x[s] + scores[s, t]).
cdef void message_down(const ss_loop_table* loops, const SumTable* table, Py_ssize_t K,
                       Py_ssize_t stride, const double* x, double* out,
                       double* spare) noexcept nogil
