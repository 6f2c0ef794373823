# One of K classes by its score: the best, the best few, the best in a cone of the label plane.
# Scores of -inf forbid a class.
from libc.math cimport INFINITY, isinf
from structsolve.operators cimport Cone
from structsolve.simd.loops cimport ss_loop_table


cdef inline Py_ssize_t best_classes(const ss_loop_table* loops, Py_ssize_t K,
                                    const double* scores, Py_ssize_t k, int* labels,
                                    double* values) noexcept nogil:
    # The k best, best first.  Only the first, which is always the oracle's, may be forbidden.
    # Keeps a sorted list of the best so far: most scores fail at its last entry.
    cdef Py_ssize_t count = 1, s, j
    labels[0] = <int>loops.first_best(K, scores, values)
    for s in range(K):
        if s == labels[0] or not scores[s] > -INFINITY:
            continue
        if count == k and scores[s] <= values[k - 1]:
            continue
        j = count if count < k else k - 1
        count = j + 1
        while j > 1 and values[j - 1] < scores[s]:
            values[j] = values[j - 1]
            labels[j] = labels[j - 1]
            j -= 1
        values[j] = scores[s]
        labels[j] = <int>s
    return count


cdef inline bint in_cone(const Cone* cone, double h, double g) noexcept nogil:
    # False for h = -inf, a forbidden class, in any cone.
    if isinf(cone.alpha):
        if not h >= 0:
            return False
    elif not (g < cone.alpha * h if cone.twin else g <= cone.alpha * h):
        return False
    return g >= cone.beta * h if cone.twin else g > cone.beta * h


cdef inline int best_class_in_cone(Py_ssize_t K, const double* scores, const double* cost,
                                   const Cone* cone, int* label, double* value) noexcept nogil:
    # Returns 1, or 0 if the cone is empty.
    cdef Py_ssize_t s
    cdef double h, g
    cdef int kind = 0
    for s in range(K):
        h, g = scores[s] + cone.h0, cost[s] + cone.g0
        if in_cone(cone, h, g) and (kind == 0 or h + cone.lam * g > value[0]):
            label[0], value[0], kind = <int>s, h + cone.lam * g, 1
    return kind


cdef inline int draw_class(Py_ssize_t K, const double* p, double uniform) noexcept nogil:
    # Draw a class by probabilities that sum to 1.
    cdef double total = 0
    cdef Py_ssize_t s, last = 0
    for s in range(K):
        if p[s] > 0:
            total += p[s]
            last = s
            if uniform < total:
                return <int>s
    return <int>last                            # the sum is 1 up to rounding
