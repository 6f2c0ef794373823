# Class scores of the threshold model: theta holds the thresholds, then the score of the direction.
from structsolve.part_layout cimport PartLayout


cdef struct Steps:
    Py_ssize_t K                # classes
    Py_ssize_t node             # of the direction's score in theta; thresholds come first
    Py_ssize_t stride           # of a row of class scores
    Py_ssize_t room             # doubles that such a row takes: whole cache lines

cdef Steps steps_of(PartLayout layout)
# scores[k] <- sum_{j <= k} (theta[node] - theta[j - 1]), padding 0; a row of `room` doubles.
cdef void class_scores(const Steps* steps, const double* theta, double* scores) noexcept nogil
# mu <- sum_k p[k] mu(k), dense.
cdef void pool_classes(const Steps* steps, const double* p, double* mu) noexcept nogil
