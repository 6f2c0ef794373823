# Growing weights for training; not part of the C interface.
from libc.stdint cimport int32_t

from structsolve.plugins.extreme.weights.feature_lists cimport FeatureLists
from structsolve.plugins.extreme.weights.list_loops cimport FeatureList


cdef struct Row:
    char* block             # room_for(size) classes, then as many weights; NULL if empty
    int32_t size, updates   # number of weights; pending updates of this feature
    float low, high         # smallest and largest weight, 0 included


cdef class FeatureRows(FeatureLists):
    cdef Row* _rows
    cdef double _squares    # sum of the squared weights, without the factor
    cdef readonly Py_ssize_t nnz
    # Adds values (divided by the factor) to the weights of a feature for n ascending classes;
    # overwrites both arrays.  Raises MemoryError if out of memory.
    cdef int add_list(self, Py_ssize_t f, Py_ssize_t n, int32_t* classes,
                      float* values) except -1 nogil
    cdef int resize(self, Row* row, Py_ssize_t size) except -1 nogil
    cdef void measure(self, Row* row) noexcept nogil
    cdef void free_all(self) noexcept nogil
    cdef void fold(self) noexcept nogil


# Capacity of a list of `size` weights.
cdef Py_ssize_t room_for(Py_ssize_t size) noexcept nogil
