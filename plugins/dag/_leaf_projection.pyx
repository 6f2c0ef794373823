"""Distributions of single leaves: a softmax over the leaves of a hierarchy."""

cimport cython
from libc.math cimport INFINITY, exp, log
from libc.string cimport memset
from structsolve.utils.alignment cimport align
from structsolve.algorithms.entropies cimport slope_at
from structsolve.operators cimport Projection
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.dag._leaf cimport leaf_scores
from structsolve.plugins.dag._shape cimport HierarchyShape


cdef int _undefined(Py_ssize_t i, double best) except -1 with gil:
    raise ValueError(
        f"example {i}: the best score of a leaf is {best}, so there are no marginals; expected a "
        "finite number; check that the weights are finite and that some leaf is allowed"
    )


@cython.final
cdef class LeafSoftmax(Projection):
    """Entropy: leaves by the exponentials of their scores; inner nodes add up what is below.

    Parameters
    ----------
    shape : HierarchyShape
        With labels that are single leaves.
    layout : PartLayout
    """

    cdef HierarchyShape shape

    def __init__(self, HierarchyShape shape not None, PartLayout layout not None):
        super().__init__(layout)
        if not shape.single:
            raise ValueError("found labels that are sets, expected single leaves")
        self.shape = shape
        self.n_states = shape.n_states
        self.work_bytes = 8 * shape.M + 64
        self.gibbs = self.has_term = self.has_samples = True

    cdef double _weigh(self, Py_ssize_t i, const double* theta, double* weight) except? -1 nogil:
        # weight[leaf] <- its probability; returns the log-partition.
        cdef double top = -INFINITY, total = 0
        cdef Py_ssize_t j, v
        leaf_scores(self.shape, theta, weight)
        for j in range(self.shape.n_leaves):
            v = self.shape.leaves[j]
            if not weight[v] <= top:                # NaN comes through
                top = weight[v]
        if not -INFINITY < top < INFINITY:
            _undefined(i, top)
        for j in range(self.shape.n_leaves):
            v = self.shape.leaves[j]
            weight[v] = exp(weight[v] - top)
            total += weight[v]
        for j in range(self.shape.n_leaves):
            weight[self.shape.leaves[j]] /= total
        return top + log(total)

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef double* weight = <double*>align(work)
        cdef Py_ssize_t j
        cdef int v, leaf, cursor = 0
        value[0] = bound[0] = self._weigh(i, theta, weight)
        memset(marginals, 0, self.shape.size * sizeof(double))
        for j in range(self.shape.n_leaves):
            leaf = self.shape.leaves[j]
            if self.shape.forest:
                marginals[leaf] = weight[leaf]
                continue
            v = self.shape.start(leaf, &cursor)
            while v >= 0:
                marginals[v] += weight[leaf]
                v = self.shape.next(v, &cursor)
        if self.shape.forest:
            for j in range(self.shape.M - 1, -1, -1):
                v = self.shape.order[j]
                if self.shape.parent[v] >= 0:
                    marginals[self.shape.parent[v]] += marginals[v]
        return 0

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        cdef Py_ssize_t j
        cdef double x, total = 0
        for j in range(self.shape.n_leaves):
            x = state[self.shape.leaves[j]]
            if x > 0:
                total -= x * log(x)
        return total

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        cdef Py_ssize_t j, v
        cdef int stuck = 0
        cdef double x, total = 0
        for j in range(self.shape.n_leaves):
            v = self.shape.leaves[j]
            if a[v] == b[v]:
                continue
            x = (1 - gamma) * a[v] + gamma * b[v]
            if x > 0:
                total -= (b[v] - a[v]) * log(x)
            else:
                stuck = 1
        return slope_at(total, gamma, stuck)

    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil:
        cdef double* weight = <double*>align(work)
        cdef Py_ssize_t k, j
        cdef double left
        self._weigh(i, theta, weight)
        for k in range(n):
            left = uniforms[k]
            labels[k] = -1
            for j in range(self.shape.n_leaves):
                # What rounding leaves over falls to the last leaf that is possible.
                if weight[self.shape.leaves[j]] > 0:
                    labels[k] = self.shape.leaves[j]
                    left -= weight[labels[k]]
                    if left < 0:
                        break
        return 0
