# The simplex method on small matrix games that grow by rows and columns.

cdef struct Tableau:
    # Row 0 is the objective, column 0 the right-hand side; K rows and L columns of `width` doubles.
    double* a
    int* row_of         # basic variable of a row: l, or -1 - k for the slack of k
    int* column_of
    Py_ssize_t rows, columns, width


cdef Py_ssize_t tableau_bytes(Py_ssize_t most) noexcept nogil
cdef void begin(Tableau* table, Py_ssize_t most, char* memory) noexcept nogil
cdef void add_mover(Tableau* table, int k, const double* payoff) noexcept nogil
cdef void add_reply(Tableau* table, int l, const double* payoff, Py_ssize_t step) noexcept nogil
cdef void solve(Tableau* table) noexcept nogil
cdef bint strategies(const Tableau* table, Py_ssize_t m, Py_ssize_t q, double* movers,
                     double* replies) noexcept nogil
