# Sums over the rules of two neighbouring spans by exponentials, taken once for each span.
from libc.stdint cimport int32_t


cdef struct Linear:
    Py_ssize_t n, states, rules
    const int32_t* parent
    const int32_t* left
    const int32_t* right
    double* cell        # of each row and state: exp(beta - peak)
    double* peak        # of each row: the largest beta
    double* span        # of each row: the peak less the smallest beta that is not -inf
    double* rule        # exp(weight - top)
    double* range       # top and span of the rules
    double* pairs       # of the states of two neighbours, summed over splits
    double* own         # the same of shares
    double* sums        # of each state
    double* factor      # of each split


# The row of the span of words i .. j - 1: starts rise, then ends fall, which is preorder in a tree.
cdef inline Py_ssize_t row_of(Py_ssize_t n, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    return i * n - i * (i - 1) // 2 + n - j


cdef Py_ssize_t linear_doubles(Py_ssize_t n, Py_ssize_t states, Py_ssize_t rules) noexcept nogil
# Places the arrays in memory of so many doubles; the caller sets rules and their states.
cdef void linear_in(Linear* x, Py_ssize_t n, Py_ssize_t states, Py_ssize_t rules,
                    double* memory) noexcept nogil
# Exponentials of rules, and of the states of a row.
cdef void weigh_rules(const Linear* x, const double* weight) noexcept nogil
cdef void weigh_row(const Linear* x, Py_ssize_t row, const double* beta) noexcept nogil
# inner <- the log of the sum over rules and splits, for each state.  False if scores span too much.
cdef bint sum_inside(const Linear* x, Py_ssize_t i, Py_ssize_t j, double* inner) noexcept nogil
# Hands the mass of the states of a span on to its parts and rules.  False like sum_inside().
cdef bint share_mass(const Linear* x, Py_ssize_t i, Py_ssize_t j, double* mass,
                     double* of_rules) noexcept nogil
