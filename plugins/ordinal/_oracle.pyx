"""Ordered classes on one direction: oracle, its powers, and parts of the threshold model.

Class k scores ``k u - (b_1 + ... + b_k)`` for the direction's score u: its parts are k for the
direction and -1 for each threshold up to b_k.  Oracles look at the K scores that this makes.
"""

cimport cython
from libc.string cimport memset
from structsolve.algorithms.classes cimport best_class, best_class_in_cone, best_classes
from structsolve.simd.loops cimport ss_loop_table, ss_loops
from structsolve.operators cimport Cone, ConeOracle, KBest, Oracle, Parts, Relaxation
from structsolve.part_layout cimport PartLayout

from structsolve.utils.arrays import padded


cdef Steps steps_of(PartLayout layout):
    cdef Steps steps
    # A single class has no thresholds.
    steps.K = layout.shapes["threshold"][0] + 1 if "threshold" in layout.shapes else 1
    steps.node = layout.shared_size
    steps.stride = padded(steps.K)
    steps.room = (steps.stride + 7) // 8 * 8
    return steps


cdef void class_scores(const Steps* steps, const double* theta, double* scores) noexcept nogil:
    cdef Py_ssize_t k
    memset(scores, 0, steps.room * sizeof(double))
    for k in range(1, steps.K):
        scores[k] = scores[k - 1] + (theta[steps.node] - theta[k - 1])


cdef void pool_classes(const Steps* steps, const double* p, double* mu) noexcept nogil:
    cdef Py_ssize_t k
    cdef double above = 0, mean = 0
    memset(mu, 0, (steps.node + 1) * sizeof(double))
    # Probabilities of at least k, from the highest down: no differences, so no cancellation.
    for k in range(steps.K - 1, 0, -1):
        above += p[k]
        mu[k - 1] = -above
        mean += above
    mu[steps.node] = mean


@cython.final
cdef class ThresholdOracle(Oracle):
    """Best of K classes on thresholds; equal ones: the lowest.

    Parameters
    ----------
    layout : PartLayout
        Thresholds in a shared block, one node block of shape (1,), one node in each example.
    """

    cdef Steps steps
    cdef const ss_loop_table* loops

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.steps = steps_of(layout)
        self.n_states = self.steps.K
        self.loops = ss_loops(self.steps.stride)
        self.work_bytes = 8 * self.steps.room

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef double* scores = <double*>work
        class_scores(&self.steps, theta, scores)
        label[0] = best_class(self.loops, self.steps.K, self.steps.stride, scores, value)
        bound[0] = value[0]
        return 0


@cython.final
cdef class ThresholdKBest(KBest):
    """The k best classes on thresholds.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef Steps steps
    cdef const ss_loop_table* loops

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.steps = steps_of(layout)
        self.n_states = self.steps.K
        self.loops = ss_loops(self.steps.stride)
        self.work_bytes = 8 * self.steps.room

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        cdef double* scores = <double*>work
        class_scores(&self.steps, theta, scores)
        return best_classes(self.loops, self.steps.K, self.steps.stride, scores, k, labels,
                            values)


@cython.final
cdef class ThresholdRelaxation(Relaxation):
    """The hull of the parts, which is a simplex: nothing is ever fractional.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef Steps steps
    cdef const ss_loop_table* loops

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.steps = steps_of(layout)
        self.n_states = self.steps.K
        self.loops = ss_loops(self.steps.stride)
        # Scores, and the answer as probabilities.
        self.work_bytes = 16 * self.steps.room

    cdef int relax(self, Py_ssize_t i, const double* theta, double* mu, int* label,
                   double* value, double* bound, char* work) except -1 nogil:
        cdef double* scores = <double*>work
        cdef double* p = scores + self.steps.room
        class_scores(&self.steps, theta, scores)
        label[0] = best_class(self.loops, self.steps.K, self.steps.stride, scores, value)
        bound[0] = value[0]
        memset(p, 0, self.steps.room * sizeof(double))
        p[label[0]] = 1
        pool_classes(&self.steps, p, mu)
        return 1


@cython.final
cdef class ThresholdCones(ConeOracle):
    """The best class in a cone: each is looked at.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef Steps steps

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.steps = steps_of(layout)
        self.n_states = self.steps.K
        # Scores and costs.
        self.work_bytes = 16 * self.steps.room

    cdef int argmax_in_cone(self, Py_ssize_t i, const double* theta, const double* cost,
                            const Cone* cone, double* mu, int* label, double* value,
                            char* work) except -1 nogil:
        cdef double* scores = <double*>work
        cdef double* costs = scores + self.steps.room
        class_scores(&self.steps, theta, scores)
        class_scores(&self.steps, cost, costs)
        return best_class_in_cone(self.steps.K, scores, costs, cone, label, value)


@cython.final
cdef class ThresholdParts(Parts):
    """k for the direction, -1 for every threshold that class k is above.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef Steps steps

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.steps = steps_of(layout)
        self.n_states = self.steps.K
        self.max_entries = self.steps.K

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        cdef int lowest = 0
        return self.difference(i, label, &lowest, index, value)

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        cdef int k, sign = 1 if truth[0] > label[0] else -1, n = 0
        cdef int low = min(truth[0], label[0]), high = max(truth[0], label[0])
        if low == high:
            return 0
        for k in range(low, high):
            index[n], value[n] = k, -sign
            n += 1
        index[n], value[n] = <int>self.steps.node, truth[0] - label[0]
        return n + 1
