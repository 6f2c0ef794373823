"""Projections onto the simplex: softmax (entropy) and sparsemax (Euclidean)."""

cimport cython
from structsolve.algorithms.classes cimport draw_class
from structsolve.algorithms.entropies cimport entropy, entropy_slope, slope_at
from structsolve.algorithms.simplex_projection cimport (
    softmax, sparsemax, square_slope, square_term,
)
from structsolve.simd.loops cimport ss_loop_table, ss_loops
from structsolve.operators cimport Projection
from structsolve.part_layout cimport PartLayout


cdef class SimplexProjection(Projection):
    """What both projections share.

    Parameters
    ----------
    layout : PartLayout
        With one node block of shape (K,), one node in each example, and no other block.
    """

    cdef Py_ssize_t K, stride
    cdef const ss_loop_table* loops

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.K, self.stride = layout.shapes["node"][0], layout.node_size
        self.n_states = self.K
        self.loops = ss_loops(self.stride)
        self.work_bytes = 8 * self.stride
        self.has_term = True

    cdef Py_ssize_t state_size(self, Py_ssize_t i) noexcept nogil:
        return self.stride


@cython.final
cdef class Softmax(SimplexProjection):
    """Entropy projection on the simplex: ``exp(theta) / sum exp(theta)``, log-sum-exp its value.

    Scores of -inf forbid a class; its probability is exactly 0.

    Parameters
    ----------
    layout : PartLayout
    """

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.gibbs = True
        self.has_samples = True

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        softmax(i, self.K, self.stride, self.loops, theta, marginals, value)
        bound[0] = value[0]
        return 0

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        return entropy(self.K, state)

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        cdef int stuck = 0
        cdef double inner = entropy_slope(self.K, a, b, gamma, &stuck)
        return slope_at(inner, gamma, stuck)

    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil:
        cdef double* p = <double*>work
        cdef double value
        cdef Py_ssize_t j
        softmax(i, self.K, self.stride, self.loops, theta, p, &value)
        for j in range(n):
            labels[j] = draw_class(self.K, p, uniforms[j])
        return 0


@cython.final
cdef class Sparsemax(SimplexProjection):
    """The point of the simplex nearest to ``theta``; its value is that of ``<theta, mu> - |mu|^2 / 2``.

    Scores of -inf forbid a class; its part is exactly 0.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        sparsemax(i, self.K, self.stride, theta, marginals, value)
        bound[0] = value[0]
        return 0

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        return square_term(self.K, state)

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        return square_slope(self.K, a, b, gamma)
