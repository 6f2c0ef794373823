"""Projections of the threshold model: those onto the simplex of its classes."""

cimport cython
from libc.string cimport memset
from structsolve.algorithms.classes cimport draw_class
from structsolve.algorithms.entropies cimport entropy, entropy_slope, slope_at
from structsolve.algorithms.simplex_projection cimport (
    softmax, sparsemax, square_slope, square_term,
)
from structsolve.simd.loops cimport ss_loop_table, ss_loops
from structsolve.operators cimport Projection
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.ordinal._oracle cimport Steps, class_scores, pool_classes, steps_of


@cython.final
cdef class ThresholdProjection(Projection):
    """Softmax or sparsemax of the K scores that thresholds make.

    A state holds the probabilities of the classes: the parts, which pool them, are left out of
    G (Euclidean: ``-|p|^2 / 2`` of the probabilities p).

    Parameters
    ----------
    entropy : bool
        Softmax, else sparsemax.
    layout : PartLayout
        Thresholds in a shared block, one node block of shape (1,), one node in each example.
    """

    cdef Steps steps
    cdef const ss_loop_table* loops

    def __init__(self, bint entropy, PartLayout layout not None):
        super().__init__(layout)
        self.steps = steps_of(layout)
        self.loops = ss_loops(self.steps.stride)
        self.n_states = self.steps.K
        self.gibbs = entropy
        self.has_state = True
        self.has_term = True
        self.has_samples = entropy
        # Scores and probabilities, each on whole cache lines.
        self.work_bytes = 16 * self.steps.room

    cdef Py_ssize_t state_size(self, Py_ssize_t i) noexcept nogil:
        return self.steps.stride

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef double* p = <double*>work + self.steps.room
        self.project_state(i, theta, p, value, bound, work)
        pool_classes(&self.steps, p, marginals)
        return 0

    cdef int project_state(self, Py_ssize_t i, const double* theta, double* state, double* value,
                           double* bound, char* work) except -1 nogil:
        cdef double* scores = <double*>work
        class_scores(&self.steps, theta, scores)
        if self.gibbs:
            softmax(i, self.steps.K, self.steps.stride, self.loops, scores, state, value)
        else:
            sparsemax(i, self.steps.K, self.steps.stride, scores, state, value)
        bound[0] = value[0]
        return 0

    cdef int state_of(self, Py_ssize_t i, const int* label, double* state) except -1 nogil:
        memset(state, 0, self.steps.stride * sizeof(double))
        state[label[0]] = 1
        return 0

    cdef int pool(self, Py_ssize_t i, const double* state, double* marginals) except -1 nogil:
        pool_classes(&self.steps, state, marginals)
        return 0

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        return entropy(self.steps.K, state) if self.gibbs else square_term(self.steps.K, state)

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        cdef int stuck = 0
        cdef double inner
        if not self.gibbs:
            return square_slope(self.steps.K, a, b, gamma)
        inner = entropy_slope(self.steps.K, a, b, gamma, &stuck)
        return slope_at(inner, gamma, stuck)

    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil:
        cdef double* p = <double*>work + self.steps.room
        cdef double value, bound
        cdef Py_ssize_t j
        self.project_state(i, theta, p, &value, &bound, work)
        for j in range(n):
            labels[j] = draw_class(self.steps.K, p, uniforms[j])
        return 0
