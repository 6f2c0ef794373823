"""Projections of the threshold model: those onto the simplex of its classes."""

cimport cython
from libc.string cimport memset
from structsolve.operators cimport Projection

from structsolve.plugins.ordinal._oracle cimport Steps, class_scores, pool_classes

from structsolve.utils.arrays import padded
from structsolve.plugins.multiclass._projections import Softmax, Sparsemax
from structsolve.plugins.ordinal._oracle import flat_layout, limits_of


@cython.final
cdef class ThresholdProjection(Projection):
    """Softmax or sparsemax of the K scores that thresholds make.

    A state holds the probabilities of the classes: the parts, which pool them, are left out of
    G (Euclidean: ``-|p|^2 / 2`` of the probabilities p).

    Parameters
    ----------
    layout : structsolve.potentials.weight_layout.Layout
        Thresholds in a shared block, one node block of shape (1,).
    K, n : int
        Classes and examples.
    entropy : bool
        Softmax, else sparsemax.
    """

    cdef Steps steps
    cdef Projection classes
    cdef Py_ssize_t n, stride, offset
    cdef object layout

    def __init__(self, layout, Py_ssize_t K, Py_ssize_t n, bint entropy):
        self.layout, self.n = layout, n
        self.steps.K, self.steps.node = K, layout.shared_size
        self.stride = padded(K)
        self.classes = (Softmax if entropy else Sparsemax)(flat_layout(K), n)
        self.gibbs = self.classes.gibbs
        self.has_state = True
        self.has_term = True
        self.has_samples = self.classes.has_samples
        # Scores, probabilities, each on whole cache lines, and what the projection needs.
        self.offset = (self.stride + 7) // 8 * 8
        self.work_bytes = 16 * self.offset + self.classes.work_bytes

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        return limits_of(self.layout, self.steps.K, self.n, i)

    cdef Py_ssize_t state_size(self, Py_ssize_t i) noexcept nogil:
        return self.stride

    cdef inline double* prepare(self, const double* theta, char* work) noexcept nogil:
        memset(work, 0, 16 * self.offset)
        class_scores(&self.steps, theta, <double*>work)
        return <double*>work

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     char* work) except -1 nogil:
        cdef double* p = <double*>work + self.offset
        cdef double bound
        self.project_state(i, theta, p, value, &bound, work)
        pool_classes(&self.steps, p, marginals)
        return 0

    cdef int project_state(self, Py_ssize_t i, const double* theta, double* state, double* value,
                           double* bound, char* work) except -1 nogil:
        cdef double* scores = self.prepare(theta, work)
        self.classes.project(i, scores, state, value, work + 16 * self.offset)
        bound[0] = value[0]
        return 0

    cdef int state_of(self, Py_ssize_t i, const int* label, double* state) except -1 nogil:
        memset(state, 0, self.stride * sizeof(double))
        state[label[0]] = 1
        return 0

    cdef int pool(self, Py_ssize_t i, const double* state, double* marginals) except -1 nogil:
        pool_classes(&self.steps, state, marginals)
        return 0

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        return self.classes.term(i, state, work)

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        return self.classes.slope(i, a, b, gamma, work)

    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil:
        cdef double* scores = self.prepare(theta, work)
        return self.classes.sample(i, scores, n, uniforms, labels, work + 16 * self.offset)
