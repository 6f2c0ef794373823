# Prices of columns that make the rows' own answers doubly stochastic.
from structsolve.simd.loops cimport ss_loop_table


# Where things lie in work memory; rows are `ld` doubles.
cdef struct Search:
    const ss_loop_table* loops
    bint euclidean
    Py_ssize_t rows, cols, ld
    bint square
    const double* cost      # -theta, infinite if forbidden and beyond the columns
    double* q               # answers of the rows
    double* trial
    double* H               # cols x ld
    double* factor          # cols x ld
    double* p               # prices; 0 beyond the columns
    double* p_new
    double* g               # 1 - sums of columns
    double* g_new
    double* d
    double* b
    double* a               # one per row
    int* free               # one per column: those whose prices may move
    int* active             # one per column
    int* queue              # one per column
    bint barred             # some pair is forbidden
    int* column             # the best assignment


# How far from optimal prices p are, given the gradient g there.
cdef double distance(const Search* s, const double* p, const double* g) noexcept nogil
# q <- the rows' answers at prices p, g <- the gradient; returns phi.
cdef double answer_rows(Search* s, const double* p, double* g) noexcept nogil
# s.p <- prices after as many scalings as are quick (entropy only).
cdef void sinkhorn(Search* s, double target) noexcept nogil
# One step on s.p, s.g and phi; False if rounding leaves nothing to gain.
cdef bint newton_step(Search* s, double* phi, double* ridge) noexcept nogil
