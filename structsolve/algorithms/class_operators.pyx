"""Operators of structures whose label is one of K classes: oracle, powers, projection.

The scores of the classes are the node row of the part scores, or *steps*: class k then scores
``k u - (b_1 + ... + b_k)`` for thresholds b, in a shared block called "threshold", and the score u
of a direction, the only number in the node row.
"""

cimport cython
from libc.math cimport INFINITY
from libc.string cimport memset
from structsolve.algorithms.classes cimport best_class_in_cone, best_classes, draw_class
from structsolve.algorithms.entropies cimport entropy, entropy_slope, slope_at
from structsolve.algorithms.simplex_projection cimport (
    softmax, sparsemax, square_slope, square_term,
)
from structsolve.operators cimport Cone, ConeOracle, KBest, Operator, Oracle, Projection
from structsolve.part_layout cimport PartLayout
from structsolve.simd.loops cimport ss_loop_table, ss_loops

from structsolve.utils.arrays import padded


cdef struct Classes:
    Py_ssize_t K
    Py_ssize_t node         # start of the node row in theta
    Py_ssize_t stride       # doubles in a row of class scores
    Py_ssize_t room         # the same in scratch memory, in whole cache lines
    bint steps
    const ss_loop_table* loops


cdef Classes _classes_of(Operator operator, bint steps, Py_ssize_t rows):
    # Returns the classes of the operator's examples; sets its number of states, and its scratch
    # memory for this number of score rows.
    cdef PartLayout layout = operator.layout
    cdef Classes classes
    classes.steps, classes.node = steps, layout.shared_size
    if steps:
        # A single class has no thresholds.
        classes.K = layout.shapes.get("threshold", (0,))[0] + 1
    else:
        classes.K = layout.shapes["node"][0]
    classes.stride = padded(classes.K)
    classes.room = (classes.stride + 7) // 8 * 8
    classes.loops = ss_loops(classes.stride)
    operator.n_states, operator.work_bytes = classes.K, 8 * rows * classes.room
    return classes


cdef int _no_scores(Py_ssize_t i) except -1 with gil:
    raise ValueError(
        f"example {i}: by its thresholds a class scores inf or NaN: one is -inf, or they are too "
        "large; expected finite numbers, because a threshold forbids no class"
    )


cdef inline const double* _scores(const Classes* classes, Py_ssize_t i, const double* theta,
                                  double* row) except NULL nogil:
    # Returns the scores of the classes, in `row` if they have to be computed.
    cdef Py_ssize_t k
    if not classes.steps:
        return theta + classes.node
    memset(row, 0, classes.room * sizeof(double))
    for k in range(1, classes.K):
        row[k] = row[k - 1] + (theta[classes.node] - theta[k - 1])
    if not row[classes.K - 1] < INFINITY:  # as any of the sums before
        _no_scores(i)
    return row


@cython.final
cdef class ClassOracle(Oracle):
    """Best of K classes; the first on ties.

    Scores of -inf forbid a class; the value is -inf if all are forbidden.

    Parameters
    ----------
    steps : bool
        Class scores are computed from thresholds and the score of a direction.
    layout : PartLayout
        One node in each example.  It has a node block of shape (K,) and no other; with steps, of
        shape (1,), and K - 1 thresholds.
    """

    cdef Classes classes

    def __init__(self, bint steps, PartLayout layout not None):
        super().__init__(layout)
        self.classes = _classes_of(self, steps, 1)

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef Classes* classes = &self.classes
        label[0] = <int>classes.loops.first_best(
            classes.K, _scores(classes, i, theta, <double*>work), value)
        bound[0] = value[0]
        return 0


@cython.final
cdef class ClassKBest(KBest):
    """The k best classes; only the first, the oracle's answer, may be forbidden.

    Parameters
    ----------
    steps : bool
    layout : PartLayout
        See :class:`ClassOracle`.
    """

    cdef Classes classes

    def __init__(self, bint steps, PartLayout layout not None):
        super().__init__(layout)
        self.classes = _classes_of(self, steps, 1)

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        cdef Classes* classes = &self.classes
        return best_classes(classes.loops, classes.K, _scores(classes, i, theta, <double*>work), k,
                            labels, values)


@cython.final
cdef class ClassCones(ConeOracle):
    """The best class in a cone, by enumeration.

    Parameters
    ----------
    steps : bool
    layout : PartLayout
        See :class:`ClassOracle`.
    """

    cdef Classes classes

    def __init__(self, bint steps, PartLayout layout not None):
        super().__init__(layout)
        self.classes = _classes_of(self, steps, 2)      # scores and costs

    cdef int argmax_in_cone(self, Py_ssize_t i, const double* theta, const double* cost,
                            const Cone* cone, double* mu, int* label, double* value,
                            char* work) except -1 nogil:
        cdef Classes* classes = &self.classes
        cdef double* row = <double*>work
        return best_class_in_cone(classes.K, _scores(classes, i, theta, row),
                                  _scores(classes, i, cost, row + classes.room), cone, label, value)


@cython.final
cdef class ClassProjection(Projection):
    """Softmax (entropy) or sparsemax (Euclidean) of the scores of the classes.

    Scores of -inf forbid a class; its probability is exactly 0.  With steps a state holds the
    probabilities p of the classes, and G is a function of p, not of the parts, which pool them
    (Euclidean: ``-|p|^2 / 2``).

    Parameters
    ----------
    steps : bool
    entropy : bool
        Softmax if True, else sparsemax.
    layout : PartLayout
        See :class:`ClassOracle`.
    """

    cdef Classes classes

    def __init__(self, bint steps, bint entropy, PartLayout layout not None):
        super().__init__(layout)
        self.classes = _classes_of(self, steps, 2)      # scores and probabilities
        self.gibbs, self.has_samples, self.has_state = entropy, entropy, steps
        self.has_term = self.has_derivative = True

    cdef Py_ssize_t state_size(self, Py_ssize_t i) noexcept nogil:
        return self.classes.stride

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef double* p = <double*>work + self.classes.room if self.classes.steps else marginals
        self.project_state(i, theta, p, value, bound, work)
        if self.classes.steps:
            self.pool(i, p, marginals)
        return 0

    cdef int project_state(self, Py_ssize_t i, const double* theta, double* state, double* value,
                           double* bound, char* work) except -1 nogil:
        cdef Classes* classes = &self.classes
        cdef const double* scores = _scores(classes, i, theta, <double*>work)
        if self.gibbs:
            softmax(i, classes.K, classes.stride, classes.loops, scores, state, value)
        else:
            sparsemax(i, classes.K, classes.stride, scores, state, value)
        bound[0] = value[0]
        return 0

    cdef int state_of(self, Py_ssize_t i, const int* label, double* state) except -1 nogil:
        memset(state, 0, self.classes.stride * sizeof(double))
        state[label[0]] = 1
        return 0

    cdef int pool(self, Py_ssize_t i, const double* state, double* marginals) except -1 nogil:
        cdef Py_ssize_t k
        cdef double above = 0, mean = 0
        memset(marginals, 0, self.layout.theta_size(i) * sizeof(double))
        # Probabilities of at least k, summed from the highest class down, so nothing cancels.
        for k in range(self.classes.K - 1, 0, -1):
            above += state[k]
            marginals[k - 1] = -above
            mean += above
        marginals[self.classes.node] = mean
        return 0

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        return entropy(self.classes.K, state) if self.gibbs else square_term(self.classes.K, state)

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        cdef int stuck = 0
        cdef double inner
        if not self.gibbs:
            return square_slope(self.classes.K, a, b, gamma)
        inner = entropy_slope(self.classes.K, a, b, gamma, &stuck)
        return slope_at(inner, gamma, stuck)

    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil:
        cdef double* p = <double*>work + self.classes.room
        cdef double value, bound
        cdef Py_ssize_t j
        self.project_state(i, theta, p, &value, &bound, work)
        for j in range(n):
            labels[j] = draw_class(self.classes.K, p, uniforms[j])
        return 0

    cpdef Py_ssize_t derivative_bytes(self) except -1:
        """Return the bytes with a third row, the derivative of the probabilities."""
        return 8 * 3 * self.classes.room

    cdef int derivative(self, Py_ssize_t i, const double* theta, const double* direction,
                        double* out, char* work) except -1 nogil:
        cdef Classes* classes = &self.classes
        cdef Py_ssize_t k
        cdef double* p = <double*>work + classes.room
        cdef double* moved = p + classes.room if classes.steps else out
        cdef const double* d
        cdef double value, bound, mean = 0, mass = 0, weight
        self.project_state(i, theta, p, &value, &bound, work)
        d = _scores(classes, i, direction, <double*>work)
        # weight (d - mean): weights are p for softmax, and 1 on the support for sparsemax.
        for k in range(classes.K):
            weight = p[k] if self.gibbs else p[k] > 0
            mean += weight * d[k]
            mass += weight
        mean /= mass
        for k in range(classes.K):
            weight = p[k] if self.gibbs else p[k] > 0
            moved[k] = weight * (d[k] - mean)
        for k in range(classes.K, classes.stride):
            moved[k] = 0
        if classes.steps:
            self.pool(i, moved, out)
        return 0
