"""Projections onto the simplex: softmax (entropy) and sparsemax (Euclidean)."""

cimport cython
from libc.math cimport INFINITY, log
from structsolve.algorithms.entropies cimport entropy, entropy_slope, slope_at
from structsolve.simd.loops cimport ss_kernel_table, ss_kernels
from structsolve.operators cimport Projection
from structsolve.algorithms.simplex_projection cimport simplex_threshold


cdef int _impossible(Py_ssize_t i) except -1 with gil:
    raise ValueError(
        f"example {i}: every class is forbidden (its score is -inf or NaN), so there are no "
        "marginals; allow at least one class, and check that the weights are finite"
    )


cdef int softmax(Py_ssize_t i, Py_ssize_t K, Py_ssize_t stride, const ss_kernel_table* kernels,
                 const double* theta, double* p, double* value) except -1 nogil:
    cdef double low, top, total = 0
    cdef Py_ssize_t s
    kernels.range(1, theta, stride, K, 0, &low, &top)
    kernels.exp_rows(1, theta, stride, K, top, p)
    for s in range(K):
        total += p[s]
    if not (top > -INFINITY and total > 0):     # a NaN comes out of the sum
        _impossible(i)
    for s in range(K):
        p[s] /= total
    value[0] = top + log(total)
    return 0


cdef int sparsemax(Py_ssize_t i, Py_ssize_t K, Py_ssize_t stride, const double* theta, double* p,
                   double* value) except -1 nogil:
    cdef double top = -INFINITY, tau, total = 0
    cdef Py_ssize_t s, n = 0
    for s in range(K):
        if not theta[s] < INFINITY:             # a NaN, too
            _impossible(i)
        top = theta[s] if theta[s] > top else top
    if top == -INFINITY:
        _impossible(i)
    # The scores of those that are allowed, from 0 down, where the answer is to be.  What is more
    # than 1 below the top has no part in it.
    for s in range(K):
        if theta[s] - top > -1:
            p[n] = theta[s] - top
            n += 1
    tau = simplex_threshold(n, p)
    for s in range(K):
        p[s] = theta[s] - top - tau if theta[s] - top > tau else 0.0
        total += p[s]
    value[0] = 0
    for s in range(K):
        p[s] /= total
        # Forbidden classes score -inf and have none of it.
        value[0] += p[s] * (theta[s] - top - p[s] / 2) if p[s] > 0 else 0.0
    value[0] += top
    for s in range(K, stride):
        p[s] = 0
    return 0


cdef int draw(Py_ssize_t K, const double* p, double uniform) noexcept nogil:
    cdef double total = 0
    cdef Py_ssize_t s, last = 0
    for s in range(K):
        if p[s] > 0:
            total += p[s]
            last = s
            if uniform < total:
                return <int>s
    return <int>last                            # the sum is 1 but for rounding


cdef class SimplexProjection(Projection):
    """What both projections share.

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
        self.work_bytes = 8 * self.stride
        self.has_term = True

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        if not 0 <= i < self.n:
            raise ValueError(f"example {i} of {self.n}: expected 0 to {self.n - 1}")
        return self.stride, 1, self.K

    cdef Py_ssize_t state_size(self, Py_ssize_t i) noexcept nogil:
        return self.stride


@cython.final
cdef class Softmax(SimplexProjection):
    """Entropy projection on the simplex: ``exp(theta) / sum exp(theta)``, log-sum-exp its value.

    Scores of -inf forbid a class; its probability is exactly 0.
    """

    def __init__(self, layout, Py_ssize_t n):
        super().__init__(layout, n)
        self.gibbs = True
        self.has_samples = True

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     char* work) except -1 nogil:
        return softmax(i, self.K, self.stride, self.kernels, theta, marginals, value)

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        return entropy(self.K, state)

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        cdef int stuck = 0
        cdef double found = entropy_slope(self.K, a, b, gamma, &stuck)
        return slope_at(found, gamma, stuck)

    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil:
        cdef double* p = <double*>work
        cdef double value
        cdef Py_ssize_t j
        softmax(i, self.K, self.stride, self.kernels, theta, p, &value)
        for j in range(n):
            labels[j] = draw(self.K, p, uniforms[j])
        return 0


@cython.final
cdef class Sparsemax(SimplexProjection):
    """The point of the simplex nearest to ``theta``; its value is that of ``<theta, mu> - |mu|^2 / 2``.

    Scores of -inf forbid a class; its part is exactly 0.
    """

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     char* work) except -1 nogil:
        return sparsemax(i, self.K, self.stride, theta, marginals, value)

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        cdef Py_ssize_t s
        cdef double total = 0
        for s in range(self.K):
            total += state[s] * state[s]
        return -total / 2

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        cdef Py_ssize_t s
        cdef double total = 0
        for s in range(self.K):
            total -= ((1 - gamma) * a[s] + gamma * b[s]) * (b[s] - a[s])
        return total
