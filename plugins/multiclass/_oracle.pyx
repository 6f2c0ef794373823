"""Multiclass operators: the best of K classes, also in a cone or for each count; parts."""

cimport cython
from libc.math cimport INFINITY, floor, isinf
from libc.string cimport memcpy, memset
from structsolve.simd.loops cimport ss_kernel_table, ss_kernels
from structsolve.operators cimport Cone, Oracle, Parts


def _limits(Py_ssize_t i, Py_ssize_t n, Py_ssize_t stride, Py_ssize_t K):
    if not 0 <= i < n:
        raise ValueError(f"example {i} of {n}: expected 0 to {n - 1}")
    return stride, 1, K


cdef int _no_count(Py_ssize_t i, Py_ssize_t s, double found) except -1 with gil:
    raise ValueError(
        f"example {i}, class {s}: the cost is {found}, which is no count; expected an integer of at "
        "least 0"
    )


cdef inline bint _inside(const Cone* cone, double h, double g) noexcept nogil:
    # False for h = -inf, a class that is forbidden, whatever the cone.
    if isinf(cone.alpha):
        if not h >= 0:
            return False
    elif not (g < cone.alpha * h if cone.twin else g <= cone.alpha * h):
        return False
    return g >= cone.beta * h if cone.twin else g > cone.beta * h


@cython.final
cdef class MulticlassOracle(Oracle):
    """Largest of K scores, of all classes, of those in a cone or of those of one cost.

    Of equal ones the first.  The relaxation is the simplex, whose corners are the classes.
    Scores of -inf forbid a class: ``kbest`` leaves it out, but for its first answer, which is
    always that of ``argmax``.

    Parameters
    ----------
    layout : structsolve.potentials.weight_layout.Layout
        With one node block of shape (K,) and no other.
    n : int
        Number of examples.
    """

    cdef Py_ssize_t n, K, stride
    cdef const ss_kernel_table* kernels

    def __init__(self, layout, Py_ssize_t n):
        self.n, self.K, self.stride = n, layout.node.shape[0], layout.node_size
        self.kernels = ss_kernels(self.stride)
        self.has_kbest = True
        self.has_max_marginals = True
        self.has_relaxed = True
        self.has_constrained = True
        self.has_counts = True
        self.work_bytes = 8

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        return _limits(i, self.n, self.stride, self.K)

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    char* work) except -1 nogil:
        cdef double low
        cdef Py_ssize_t s
        self.kernels.range(1, theta, self.stride, self.K, 0, &low, value)
        label[0] = 0
        for s in range(self.K):
            if theta[s] == value[0]:
                label[0] = <int>s
                break
        return 0

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        # A sorted list of the best so far; most scores fail at its last entry.
        cdef Py_ssize_t found, s, j
        self.argmax(i, theta, labels, values, work)
        found = 1
        for s in range(self.K):
            if s == labels[0] or not theta[s] > -INFINITY:
                continue
            if found == k and theta[s] <= values[k - 1]:
                continue
            j = found if found < k else k - 1
            found = j + 1
            while j > 1 and values[j - 1] < theta[s]:
                values[j] = values[j - 1]
                labels[j] = labels[j - 1]
                j -= 1
            values[j] = theta[s]
            labels[j] = <int>s
        return found

    cdef int max_marginals(self, Py_ssize_t i, const double* theta, double* out,
                           char* work) except -1 nogil:
        memset(out, 0, self.stride * sizeof(double))
        memcpy(out, theta, self.K * sizeof(double))
        return 0

    cdef int relax(self, Py_ssize_t i, const double* theta, double* mu, int* label,
                   double* value, char* work) except -1 nogil:
        # The corners of the simplex are the classes: nothing is ever fractional.
        self.argmax(i, theta, label, value, work)
        memset(mu, 0, self.stride * sizeof(double))
        mu[label[0]] = 1
        return 1

    cdef int argmax_constrained(self, Py_ssize_t i, const double* theta, const double* cost,
                                const Cone* cone, double* mu, int* label, double* value,
                                char* work) except -1 nogil:
        cdef Py_ssize_t s
        cdef double h, g
        cdef int kind = 0
        for s in range(self.K):
            h, g = theta[s] + cone.h0, cost[s] + cone.g0
            if _inside(cone, h, g) and (kind == 0 or h + cone.lam * g > value[0]):
                label[0], value[0], kind = <int>s, h + cone.lam * g, 1
        return kind

    cdef int argmax_counts(self, Py_ssize_t i, const double* theta, const double* cost,
                           Py_ssize_t most, int* labels, double* values,
                           char* work) except -1 nogil:
        cdef Py_ssize_t c, s
        for c in range(most + 1):
            labels[c], values[c] = 0, -INFINITY
        for s in range(self.K):
            if not (cost[s] >= 0 and cost[s] < INFINITY and floor(cost[s]) == cost[s]):
                return _no_count(i, s, cost[s])
            if cost[s] <= most:
                c = <Py_ssize_t>cost[s]
                if theta[s] > values[c]:
                    labels[c], values[c] = <int>s, theta[s]
        return 0


@cython.final
cdef class MulticlassParts(Parts):
    """One part per class."""

    cdef Py_ssize_t n, K, stride

    def __init__(self, layout, Py_ssize_t n):
        self.n, self.K, self.stride = n, layout.node.shape[0], layout.node_size
        self.max_entries = 2
        self.indicator = True

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        return _limits(i, self.n, self.stride, self.K)

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        index[0] = label[0]
        value[0] = 1
        return 1

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        if truth[0] == label[0]:
            return 0
        index[0], index[1] = truth[0], label[0]
        value[0], value[1] = 1, -1
        return 2
