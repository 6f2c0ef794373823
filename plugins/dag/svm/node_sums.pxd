# Two sums for each stored pair of a feature and a node; not part of the C interface.
from libc.stdint cimport int32_t, int64_t, uint16_t

from structsolve.plugins.extreme.weights.feature_rows cimport room_for


cdef enum:
    WIDTH = 65536       # number of nodes per list


cdef struct Sums:
    # room_for(size) sums of steps, then as many sums of steps times the step's number, both
    # float32, then ascending node numbers relative to the list's first node, in 16 bits.
    char* block
    int32_t size


cdef inline float* sums_of(const Sums* own) noexcept nogil:
    return <float*>own.block


cdef inline float* moments_of(const Sums* own) noexcept nogil:
    return <float*>own.block + room_for(own.size)


cdef inline uint16_t* nodes_of(const Sums* own) noexcept nogil:
    return <uint16_t*>(<float*>own.block + 2 * room_for(own.size))


cdef class NodeSums:
    cdef readonly Py_ssize_t n_features, n_nodes, n_entries
    cdef Py_ssize_t blocks      # lists of a feature; those of feature j begin at j * blocks
    cdef Sums* lists
    cdef int32_t[::1] place, missing
    # Adds values[k] * factor times the sums of feature columns[k] to theta, for all k; returns how
    # many were read.
    cdef Py_ssize_t score(self, Py_ssize_t nnz, const int32_t* columns, const double* values,
                          double factor, double* theta) noexcept nogil
    # Makes theta zero again.
    cdef void clear(self, Py_ssize_t nnz, const int32_t* columns, double* theta) noexcept nogil
    # Adds value * gain[j] to the sums of a feature for node path[j], in descending order, and that
    # times `number` to the moments.  Returns True if one leaves the range of float32.
    cdef bint add(self, Py_ssize_t feature, double value, Py_ssize_t n, const int32_t* path,
                  const double* gain, int64_t number) except -1 nogil
    cdef bint add_to(self, Sums* own, double value, Py_ssize_t n, const int32_t* path,
                     const double* gain, int64_t number) except -1 nogil
    cdef bint insert(self, Sums* own, double value, Py_ssize_t n, const int32_t* path,
                     const double* gain, int64_t number) except -1 nogil
    cdef void _free(self) noexcept
