# Weights kept as a list for each feature, and what scores rows of features with them.  Solvers
# cimport the nogil functions; not part of the C interface.
from libc.stdint cimport int32_t, int64_t


cdef struct FeatureList:
    const int32_t* classes  # -1 for free slots; NULL: a weight for each class
    const void* weights     # float, or 16 bits each where the lists are of half precision
    Py_ssize_t size         # slots, free ones as well
    float low, high         # of all classes' weights, 0 for classes that are not in the list


cdef class Space:
    # Of one thread.  Scores are those of the intercept, and marks zero, between two rows.
    cdef object _kept
    cdef float* score       # n_classes, and a slot in front for free slots
    cdef unsigned char* mark
    cdef int32_t* touched
    cdef float* best        # a heap, the worst at the root
    cdef int32_t* ids


cdef class FeatureLists:
    cdef readonly Py_ssize_t n_features, n_classes
    cdef readonly object intercept
    cdef bint half
    cdef double factor      # of all stored weights
    cdef const float* _bias             # NULL: zeros
    cdef const int32_t* _order          # classes by intercept, best first; NULL: as numbered
    cdef object _bias_kept, _order_kept
    # The list of a feature, and one of its weights; the factor is not in them.
    cdef FeatureList list_of(self, Py_ssize_t f) noexcept nogil
    cdef float weight_of(self, Py_ssize_t f, int32_t c) noexcept nogil
    cdef int set_sizes(self, n_features, n_classes, intercept) except -1
    # Score of one class: the intercept, then the features in their order.
    cdef float score_of(self, Py_ssize_t nnz, const int32_t* columns, const float* values,
                        int32_t c) noexcept nogil
    # Adds to `score`, which starts as the intercept; returns the weights read.
    cdef int64_t scan(self, Py_ssize_t nnz, const int32_t* columns, const float* values,
                      float* score) noexcept nogil
    # The k best classes of a row but `exclude`, best first, -1 for missing ones; weights read.
    cdef int64_t best_of(self, Py_ssize_t nnz, const int32_t* columns, const float* values,
                         Py_ssize_t k, int32_t exclude, Space space, int32_t* ids,
                         float* scores) noexcept nogil


# The half-precision number of these bits.
cdef float from_half(unsigned short bits) noexcept nogil
