# The linear assignment problem for other modules, in the caller's memory and without the GIL.

# A problem laid out in the caller's memory.  Rows of `cost` are `ld` doubles; entries beyond the
# columns are infinite, as are forbidden pairs.
cdef struct Assignment:
    Py_ssize_t rows, cols, ld
    double* cost
    double* v           # prices of the columns; beyond them 0
    double* d           # scratch, two rows: least costs of columns, then distances
    double* origin
    double* saved       # scratch: what a search passed, prices and distances
    int* column         # of each row
    int* row            # of each column, -1 if it is free
    int* free           # scratch: rows without a column
    int* passed         # scratch: columns a search has passed

# Bytes for one problem with rows <= cols.
cdef Py_ssize_t assignment_bytes(Py_ssize_t rows, Py_ssize_t cols) noexcept nogil
# Place all arrays in 64-byte aligned memory of that size.
cdef Assignment assignment_in(Py_ssize_t rows, Py_ssize_t cols, char* work) noexcept nogil
# Before each solve: cost <- sign * scores; scores of -sign * inf and NaN forbid a pair, as do
# non-zeros of `forbidden`.
cdef void load_scores(Assignment* task, const double* scores, Py_ssize_t stride, double sign,
                      const unsigned char* forbidden) noexcept nogil
# Least total cost: column, row and v (at most 0 if there are fewer rows than columns), so that
# c_ij - v_j is least in row i at its column.  False if every assignment has an infinite cost.
cdef bint solve_assignment(Assignment* task) noexcept nogil
# A lower bound of every assignment's cost, from the prices, up to rounding of its sum.
cdef double assignment_bound(const Assignment* task) noexcept nogil
# The best assignment of one row, or of two or three rows to as many columns, without any memory;
# False for other sizes, or if no finite one was found.
cdef bint solve_tiny(Py_ssize_t rows, Py_ssize_t cols, const double* scores, Py_ssize_t stride,
                     const unsigned char* forbidden, int* column, double* value) noexcept nogil
