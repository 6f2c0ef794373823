# The list of a feature's weights, and loops over it.  Not part of the C interface.
from libc.stdint cimport int32_t, uint16_t, uint32_t
from libc.string cimport memcpy


cdef struct FeatureList:
    const int32_t* classes  # ascending; NULL: a weight for each class
    const void* weights     # float, or 16 bits each
    bint half
    Py_ssize_t size         # number of weights to read
    Py_ssize_t kept         # number of stored weights
    float low, high         # bounds of all classes' weights; missing classes have 0


cdef inline float from_half(unsigned short bits) noexcept nogil:
    """Convert the bits of a half-precision number to float."""
    # Float32 represents all half-precision numbers: the exponent's bias differs, and subnormals
    # are multiples of 2^-24.
    cdef uint32_t low = bits & 0x7FFF, sign = <uint32_t>(bits & 0x8000) << 16, whole
    cdef float x
    if low < 0x400:
        x = low * <float>5.9604644775390625e-08
        return -x if sign else x
    whole = ((low << 13) + (<uint32_t>112 << 23)) | sign
    memcpy(&x, &whole, 4)
    return x


cdef inline void add_floats(Py_ssize_t size, const int32_t* classes, const float* weights,
                            float x, float* score) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(size):
        score[classes[j]] += x * weights[j]


cdef inline void add_dense(Py_ssize_t size, const float* weights, float x,
                           float* score) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(size):
        score[j] += x * weights[j]


cdef inline void add_halves(Py_ssize_t size, const int32_t* classes, const uint16_t* weights,
                            float x, float* score) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(size):
        score[classes[j]] += x * from_half(weights[j])


cdef inline void add_list(const FeatureList* own, float x, float* score) noexcept nogil:
    """score[c] += x * weight for all classes of a list."""
    if own.classes == NULL:
        add_dense(own.size, <const float*>own.weights, x, score)
    elif own.half:
        add_halves(own.size, own.classes, <const uint16_t*>own.weights, x, score)
    else:
        add_floats(own.size, own.classes, <const float*>own.weights, x, score)


cdef inline void add_chosen(const FeatureList* own, float x, Py_ssize_t n, const int32_t* classes,
                            float* score) noexcept nogil:
    """score[j] += x * weight of classes[j], by a search in the list."""
    cdef Py_ssize_t j, first, left, middle
    if own.size == 0:
        return
    if own.classes == NULL:
        for j in range(n):
            score[j] += x * (<const float*>own.weights)[classes[j]]
        return
    for j in range(n):
        first, left = 0, own.size
        while left > 1:         # branch-free, so that searches of several classes overlap
            middle = left // 2
            first += middle if own.classes[first + middle] <= classes[j] else 0
            left -= middle
        if own.classes[first] == classes[j]:
            score[j] += x * (from_half((<const uint16_t*>own.weights)[first]) if own.half
                             else (<const float*>own.weights)[first])
