"""Single leaves: the best leaf of a hierarchy; its score includes its ancestors."""

cimport cython
from libc.math cimport INFINITY, fabs
from libc.string cimport memset
from structsolve.utils.alignment cimport align
from structsolve.lp.cones cimport in_cone, rounding
from structsolve.operators cimport Cone, ConeOracle, KBest, MaxMarginals, Operator, Oracle
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.dag._shape cimport HierarchyShape


cdef void leaf_scores(HierarchyShape shape, const double* theta, double* out) noexcept nogil:
    cdef Py_ssize_t j, k, v
    cdef double total
    if shape.forest:
        for j in range(shape.M):
            v = shape.order[j]
            out[v] = theta[v] + (out[shape.parent[v]] if shape.parent[v] >= 0 else 0.0)
        return
    for j in range(shape.n_leaves):
        total = 0
        # Parents first: the same order of sums as in a forest.
        for k in range(shape.line_first[j + 1] - 1, shape.line_first[j] - 1, -1):
            total += theta[shape.line[k]]
        out[shape.leaves[j]] = total


cdef double _rounding(HierarchyShape shape, const double* theta, double offset) noexcept nogil:
    # Error of the sum of a leaf's score and an offset.
    cdef double most = 0
    cdef Py_ssize_t v
    for v in range(shape.M):
        if fabs(theta[v]) > most and fabs(theta[v]) < INFINITY:
            most = fabs(theta[v])
    return rounding(shape.longest, shape.longest * most + fabs(offset))


cdef int _best_leaf(HierarchyShape shape, const double* theta, double* score) noexcept nogil:
    # The leaf of largest score, the first column on ties; score <- scores of all leaves.
    cdef Py_ssize_t j
    cdef int best = shape.leaves[0], v
    leaf_scores(shape, theta, score)
    for j in range(1, shape.n_leaves):
        v = shape.leaves[j]
        if score[v] > score[best]:
            best = v
    return best


cdef HierarchyShape of_leaves(Operator operator, HierarchyShape shape, Py_ssize_t rows):
    if not shape.single:
        raise ValueError("found labels that are sets, expected single leaves")
    operator.n_states, operator.work_bytes = shape.n_states, 8 * rows * shape.M + 64
    return shape


@cython.final
cdef class LeafOracle(Oracle):
    """The leaf of largest score, the first column on ties.

    Time and memory are linear in the nodes of a forest, and in the ancestors of all leaves of a
    graph.

    Parameters
    ----------
    shape : HierarchyShape
        Its labels are single leaves.
    layout : PartLayout
    """

    cdef HierarchyShape shape

    def __init__(self, HierarchyShape shape not None, PartLayout layout not None):
        super().__init__(layout)
        self.shape = of_leaves(self, shape, 1)

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef double* score = <double*>align(work)
        label[0] = _best_leaf(self.shape, theta, score)
        value[0] = bound[0] = score[label[0]]
        return 0


@cython.final
cdef class LeafCones(ConeOracle):
    """The best leaf in a cone, by enumeration.

    Parameters
    ----------
    shape : HierarchyShape
        Its labels are single leaves.
    layout : PartLayout
    """

    cdef HierarchyShape shape

    def __init__(self, HierarchyShape shape not None, PartLayout layout not None):
        super().__init__(layout)
        self.shape = of_leaves(self, shape, 2)

    cdef int argmax_in_cone(self, Py_ssize_t i, const double* theta, const double* cost,
                            const Cone* cone, double* mu, int* label, double* value,
                            char* work) except -1 nogil:
        cdef double* score = <double*>align(work)
        cdef double* costs = score + self.shape.M
        cdef double h, g, h_slack, g_slack
        cdef Py_ssize_t j
        cdef int v, kind = 0
        leaf_scores(self.shape, theta, score)
        leaf_scores(self.shape, cost, costs)
        h_slack = _rounding(self.shape, theta, cone.h0)
        g_slack = _rounding(self.shape, cost, cone.g0)
        for j in range(self.shape.n_leaves):
            v = self.shape.leaves[j]
            h, g = score[v] + cone.h0, costs[v] + cone.g0
            if (score[v] > -INFINITY and in_cone(cone, h, g, h_slack, g_slack)
                    and (kind == 0 or h + cone.lam * g > value[0])):
                label[0], value[0], kind = v, h + cone.lam * g, 1
        return kind


@cython.final
cdef class LeafKBest(KBest):
    """The k best leaves; only the first can score -inf.

    Parameters
    ----------
    shape : HierarchyShape
        Its labels are single leaves.
    layout : PartLayout
    """

    cdef HierarchyShape shape

    def __init__(self, HierarchyShape shape not None, PartLayout layout not None):
        super().__init__(layout)
        self.shape = of_leaves(self, shape, 1)

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        # A sorted list of the best so far; most leaves are no better than its last entry.
        cdef double* score = <double*>align(work)
        cdef Py_ssize_t count = 1, j, t
        cdef int v
        labels[0] = _best_leaf(self.shape, theta, score)
        values[0] = score[labels[0]]
        for j in range(self.shape.n_leaves):
            v = self.shape.leaves[j]
            if v == labels[0] or not score[v] > -INFINITY:
                continue
            if count == k and score[v] <= values[k - 1]:
                continue
            t = count if count < k else k - 1
            count = t + 1
            while t > 1 and values[t - 1] < score[v]:
                values[t], labels[t] = values[t - 1], labels[t - 1]
                t -= 1
            values[t], labels[t] = score[v], v
        return count


@cython.final
cdef class LeafMaxMarginals(MaxMarginals):
    """For each node, the best score of a leaf at or below it.

    Parameters
    ----------
    shape : HierarchyShape
        Its labels are single leaves.
    layout : PartLayout
    """

    cdef HierarchyShape shape

    def __init__(self, HierarchyShape shape not None, PartLayout layout not None):
        super().__init__(layout)
        self.shape = of_leaves(self, shape, 1)

    cdef int max_marginals(self, Py_ssize_t i, const double* theta, double* out,
                           char* work) except -1 nogil:
        cdef double* score = <double*>align(work)
        cdef Py_ssize_t j
        cdef int v, leaf, cursor = 0
        leaf_scores(self.shape, theta, score)
        for j in range(self.shape.M):
            out[j] = -INFINITY
        memset(out + self.shape.M, 0, (self.shape.size - self.shape.M) * sizeof(double))
        for j in range(self.shape.n_leaves):
            leaf = self.shape.leaves[j]
            out[leaf] = score[leaf]
            if self.shape.forest:
                continue
            v = self.shape.start(leaf, &cursor)
            while v >= 0:
                out[v] = max(out[v], score[leaf])
                v = self.shape.next(v, &cursor)
        if self.shape.forest:
            for j in range(self.shape.M - 1, -1, -1):
                v = self.shape.order[j]
                if self.shape.parent[v] >= 0:
                    out[self.shape.parent[v]] = max(out[self.shape.parent[v]], out[v])
        return 0
