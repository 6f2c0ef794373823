# Weights kept as a list for each feature, and what scores rows of features with them.  Solvers
# cimport the nogil functions; not part of the C interface.
from libc.stdint cimport int32_t, int64_t

from ._strips cimport Strips
from .list_loops cimport FeatureList


cdef class Space:
    # Of one thread.  Scores are those of the intercept, and marks zero, between two rows.
    cdef object _kept
    cdef float* score
    cdef unsigned char* mark
    cdef int32_t* touched
    cdef float* best        # a heap of `room` classes, the worst at the root
    cdef int32_t* ids
    # For scans that end early: candidates, and a heap of features by what they cost and may change.
    cdef float* partial
    cdef int32_t* candidates
    cdef Py_ssize_t room, longest
    cdef float* gain
    cdef int32_t* queue
    cdef Strips strips


cdef class FeatureLists:
    cdef readonly Py_ssize_t n_features, n_classes
    cdef readonly object intercept
    cdef double factor      # of all stored weights
    cdef const float* _bias             # NULL: zeros
    cdef const int32_t* _order          # classes by intercept, best first; NULL: as numbered
    cdef object _order_kept
    cdef double _bias_size              # largest absolute value
    cdef list _spaces                   # of best_class(), which no thread uses now
    # The list of a feature; the factor is not in it.
    cdef FeatureList list_of(self, Py_ssize_t f) noexcept nogil
    cdef int set_sizes(self, n_features, n_classes, intercept) except -1
    # Scores of n classes: the intercept, then the features in their order.
    cdef void score_chosen(self, Py_ssize_t nnz, const int32_t* columns, const float* values,
                           Py_ssize_t n, const int32_t* classes, float* score) noexcept nogil
    # Adds to `score`, which starts as the intercept; returns the weights read.
    cdef int64_t scan(self, Py_ssize_t nnz, const int32_t* columns, const float* values,
                      float* score) noexcept nogil
    # The k best classes of row number `row` but `exclude`, best first, -1 for missing ones; or the
    # row joins those that the strips score later.  Returns the weights read, or to be read.
    # The space is one for at least k classes and nnz features.  See top() for epsilon and bound.
    cdef int64_t best_of(self, Py_ssize_t nnz, const int32_t* columns, const float* values,
                         Py_ssize_t k, int32_t exclude, double epsilon, Space space, Strips strips,
                         Py_ssize_t row, int32_t* ids, float* scores,
                         double* bound) noexcept nogil
    cdef void best_touched(self, Py_ssize_t nnz, const int32_t* columns, const float* values,
                           Py_ssize_t k, int32_t exclude, Space space, int32_t* ids,
                           float* scores) noexcept nogil
    cdef int64_t best_early(self, Py_ssize_t nnz, const int32_t* columns, const float* values,
                            Py_ssize_t k, int32_t exclude, double epsilon, Space space,
                            int32_t* ids, float* scores, double* bound) noexcept nogil
    cdef void clear(self, Space space) noexcept nogil
