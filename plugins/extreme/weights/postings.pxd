from libc.stdint cimport int32_t, int64_t

from structsolve.plugins.extreme.weights.feature_lists cimport FeatureLists
from structsolve.plugins.extreme.weights.list_loops cimport FeatureList


cdef class Postings(FeatureLists):
    cdef readonly object indptr, classes, weights
    cdef const int64_t* _start
    cdef const int32_t* _class
    cdef const char* _weight
    cdef Py_ssize_t _width      # bytes of a weight
    cdef bint half
    cdef object _low_kept, _high_kept, _place_kept, _dense_kept
    # Dense rows of weights, and the row of each feature (-1: none).
    cdef const int32_t* _place
    cdef const float* _dense
    cdef const float* _low
    cdef const float* _high
    cdef bint read(self, Py_ssize_t f, float* low, float* high) noexcept nogil
    cdef float entry(self, Py_ssize_t j) noexcept nogil
