# Weights stored as a list for each feature, and the scores of rows.  Solvers cimport the nogil
# functions.  Not part of the C interface.
from libc.stdint cimport int32_t, int64_t

from structsolve.plugins.extreme.weights._strips cimport Strips
from structsolve.plugins.extreme.weights.list_loops cimport FeatureList


cdef class Space:
    # Owned by one thread.  Between two rows, scores equal the intercept and marks are zero.
    cdef object _kept
    cdef float* score
    cdef unsigned char* mark
    cdef int32_t* touched
    cdef float* best        # a heap of `room` classes, the worst at the root
    cdef int32_t* ids
    # For scans that end early: candidates, and a heap of features by possible change per weight.
    cdef float* partial
    cdef int32_t* candidates
    cdef Py_ssize_t room, longest
    cdef float* gain
    cdef int32_t* queue
    cdef Strips strips


cdef class FeatureLists:
    cdef readonly Py_ssize_t n_features, n_classes
    cdef readonly object intercept
    cdef double factor      # multiplies all stored weights
    cdef readonly double most           # with values up to it scores stay within float32
    cdef const float* _bias             # NULL: zeros
    cdef const int32_t* _order          # classes by intercept, best first; NULL: as numbered
    cdef object _order_kept
    cdef double _bias_size              # largest absolute value
    cdef list _spaces                   # free spaces of best_class()
    # The list of a feature, not multiplied by the factor.
    cdef FeatureList list_of(self, Py_ssize_t f) noexcept nogil
    cdef int set_sizes(self, n_features, n_classes, intercept) except -1
    # Scores of n classes: the intercept, plus the features in their order.
    cdef void score_chosen(self, Py_ssize_t nnz, const int32_t* columns, const float* values,
                           Py_ssize_t n, const int32_t* classes, float* score) noexcept nogil
    # Adds to `score`, which holds the intercept; returns the number of weights read.
    cdef int64_t scan(self, Py_ssize_t nnz, const int32_t* columns, const float* values,
                      float* score) noexcept nogil
    # Writes the k best classes of row number `row` except `exclude`, best first, -1 for missing
    # ones, or adds the row to the strips, which score it later.  Returns the number of weights
    # read, or to be read.  The space has room for k classes and nnz features.  See top() for
    # epsilon and bound.
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
