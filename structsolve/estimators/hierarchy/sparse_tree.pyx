"""Single leaves of large trees: stochastic subgradient steps on weights of which most stay zero.

A step changes the weights of the features of one example for the nodes on two paths.  Each feature
has a list of the nodes whose weights were ever changed.  Memory grows with these lists; the time of
a step grows with the lists of its features and with the number of nodes.
"""

import numpy as np

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from ...utils.arrays import check_counts, check_finite, check_numbers, checked_array


cdef enum:
    HAMMING = 0
    PATH = 1
    ZERO_ONE = 2

LOSSES = {"hamming": HAMMING, "path": PATH, "zero-one": ZERO_ONE}


cdef struct Entries:
    # Of one feature: nodes, sums of their steps, sums of steps times the step's number.
    int32_t* node
    double* sum
    double* moment
    Py_ssize_t size, room


cdef int append(Entries* entries, int32_t node) except -1 nogil:
    """Add an entry of zeros; -1 and MemoryError where there is no room for it."""
    cdef Py_ssize_t room
    cdef void* grown
    if entries.size == entries.room:
        room = 4 if entries.room == 0 else entries.room + entries.room // 2
        grown = realloc(entries.node, room * sizeof(int32_t))
        if grown != NULL:
            entries.node = <int32_t*>grown
            grown = realloc(entries.sum, room * sizeof(double))
        if grown != NULL:
            entries.sum = <double*>grown
            grown = realloc(entries.moment, room * sizeof(double))
        if grown == NULL:
            with gil:
                raise MemoryError(
                    "no memory is left for the weights; use fewer passes or a larger alpha"
                )
        entries.moment = <double*>grown
        entries.room = room
    entries.node[entries.size] = node
    entries.sum[entries.size] = 0
    entries.moment[entries.size] = 0
    entries.size += 1
    return 0


cdef class SparseTree:
    """Weights of a tree's nodes for single leaves, and the steps that move them.

    Nodes are numbered so that parents come first.

    Parameters
    ----------
    parent : ndarray of int32 of shape (M,)
        -1 for roots; else less than the node's own number.
    scale : ndarray of float64 of shape (M,)
        Factors of the nodes' scores.
    cost : ndarray of float64 of shape (M,)
        Cost in the loss of a node that is on the path of only one of two leaves.
    loss : {"hamming", "path", "zero-one"}
        The sum of the costs, its square root, or 1 for any other leaf.
    n_features : int

    Raises
    ------
    ValueError
        When the sizes do not fit, or a parent does not come before its child.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones(3)
    >>> tree = SparseTree(np.array([-1, 0, 0], dtype=np.int32), one, one, "hamming", 2)
    >>> tree.n_entries
    0
    """

    cdef readonly Py_ssize_t n_nodes, n_features
    cdef readonly int64_t steps
    cdef int kind
    cdef Entries* entries
    cdef int32_t[::1] parent
    cdef double[::1] scale, down
    cdef unsigned char[::1] leaf
    cdef double[::1] theta, total, meet
    cdef unsigned char[::1] marked
    cdef int32_t[::1] touched, changed

    def __cinit__(self, parent, scale, cost, loss, Py_ssize_t n_features):
        self.entries = NULL

    def __init__(self, parent, scale, cost, loss, Py_ssize_t n_features):
        cdef Py_ssize_t v
        self._free()
        if loss not in LOSSES:
            raise ValueError(f"loss is {loss!r}, expected one of {list(LOSSES)}")
        if n_features < 1:
            raise ValueError(f"n_features is {n_features}, expected at least 1")
        self.parent = np.array(parent, dtype=np.int32)
        self.scale = np.array(scale, dtype=np.float64)
        M = self.n_nodes = self.parent.shape[0]
        self.n_features, self.kind = n_features, LOSSES[loss]
        if M < 1 or self.scale.shape[0] != M or np.shape(cost) != (M,):
            raise ValueError(
                f"scale and cost have the shapes {np.shape(scale)} and {np.shape(cost)}, expected "
                f"({M},) as parent"
            )
        number = np.arange(M)
        wrong = np.flatnonzero((np.asarray(self.parent) < -1) | (np.asarray(self.parent) >= number))
        if wrong.size:
            raise ValueError(
                f"node {wrong[0]}: its parent is {self.parent[wrong[0]]}, expected -1 or an "
                "earlier node"
            )
        self.down = np.array(cost, dtype=np.float64)
        inner = np.zeros(M, dtype=np.uint8)
        for v in range(M):
            if self.parent[v] >= 0:
                self.down[v] += self.down[self.parent[v]]
                inner[self.parent[v]] = 1
        self.leaf = np.asarray(inner == 0, dtype=np.uint8)
        self.theta, self.total, self.meet = np.zeros(M), np.zeros(M), np.zeros(M)
        self.marked = np.zeros(M, dtype=np.uint8)
        self.touched, self.changed = np.zeros(M, np.int32), np.zeros(M, np.int32)
        self.entries = <Entries*>calloc(n_features, sizeof(Entries))
        if self.entries == NULL:
            raise MemoryError(f"no memory for the weights of {n_features} features")

    def __dealloc__(self):
        self._free()

    cdef void _free(self) noexcept:
        cdef Py_ssize_t j
        if self.entries != NULL:
            for j in range(self.n_features):
                free(self.entries[j].node)
                free(self.entries[j].sum)
                free(self.entries[j].moment)
            free(self.entries)
            self.entries = NULL

    @property
    def n_entries(self):
        """Number of weights kept."""
        cdef Py_ssize_t j, total = 0
        for j in range(self.n_features):
            total += self.entries[j].size
        return total

    @property
    def nbytes(self):
        """Bytes of the weights kept."""
        cdef Py_ssize_t j, total = self.n_features * sizeof(Entries)
        for j in range(self.n_features):
            total += self.entries[j].room * (sizeof(int32_t) + 2 * sizeof(double))
        return total

    def run(self, indptr, indices, data, labels, order, double alpha, weight=None):
        """Make one step of Pegasos for each example of ``order``.

        Parameters
        ----------
        indptr, indices, data : ndarray of int64, of int32, of float64
            Features of n examples as CSR rows.
        labels : ndarray of int32 of shape (n,)
            Leaves, as numbers of nodes.
        order : ndarray of int64
            Examples to visit, one after the other.
        alpha : float
            Regularisation constant, > 0.
        weight : ndarray of float64 of shape (n,), optional
            Factors of the examples' losses, 1 on average.

        Raises
        ------
        ValueError
            Naming the argument that does not fit.
        MemoryError
            When there is no memory for more weights.
        """
        cdef const int64_t[::1] rows = np.ascontiguousarray(indptr, dtype=np.int64)
        cdef const int32_t[::1] columns = np.ascontiguousarray(indices, dtype=np.int32)
        cdef const double[::1] values = np.ascontiguousarray(data, dtype=np.float64)
        cdef const int32_t[::1] truth = np.ascontiguousarray(labels, dtype=np.int32)
        cdef const int64_t[::1] visits = np.ascontiguousarray(order, dtype=np.int64)
        cdef const double[::1] factor
        cdef Py_ssize_t n = rows.shape[0] - 1, k, i
        cdef double share = 1
        _check_rows(np.asarray(rows), np.asarray(columns), values.shape[0], self.n_features)
        if truth.shape[0] != n or (n and (np.min(truth) < 0 or np.max(truth) >= self.n_nodes)):
            raise ValueError(f"labels: expected {n} nodes below {self.n_nodes}")
        if visits.shape[0] and (np.min(visits) < 0 or np.max(visits) >= n):
            raise ValueError(f"order: expected examples below {n}")
        if not alpha > 0:
            raise ValueError(f"alpha is {alpha}, expected a positive number")
        if weight is not None:
            factor = np.ascontiguousarray(weight, dtype=np.float64)
            if factor.shape[0] != n:
                raise ValueError(f"weight has {factor.shape[0]} entries, expected {n}")
        given = weight is not None
        cdef bint weighted = given
        # There may be no entries at all.
        cdef const int32_t* column = &columns[0] if columns.shape[0] else NULL
        cdef const double* value = &values[0] if values.shape[0] else NULL
        with nogil:
            for k in range(visits.shape[0]):
                i = visits[k]
                if weighted:
                    share = factor[i]
                self.step(rows[i + 1] - rows[i], column + rows[i], value + rows[i],
                          truth[i], share / alpha)

    cdef int step(self, Py_ssize_t nnz, const int32_t* columns, const double* values,
                  Py_ssize_t truth, double rate) except -1 nogil:
        # After t steps w = sum / t: Pegasos with the rate 1 / (alpha t) multiplies w by 1 - 1 / t.
        cdef double past = 1.0 / self.steps if self.steps else 0.0
        cdef Py_ssize_t best, a, b, n_changed = 0, k
        cdef Entries* entries
        cdef Py_ssize_t n_touched = 0, e, j
        cdef int32_t node
        self.steps += 1
        for k in range(nnz):
            entries = &self.entries[columns[k]]
            for e in range(entries.size):
                node = entries.node[e]
                if not self.marked[node]:
                    self.marked[node] = 1
                    self.touched[n_touched] = node
                    n_touched += 1
                self.theta[node] += values[k] * entries.sum[e]
        for k in range(n_touched):
            self.marked[self.touched[k]] = 0
        best = self.decode(past, truth)
        for k in range(n_touched):
            self.theta[self.touched[k]] = 0
        if best == truth:
            return 0
        # Go up both paths to where they meet: the node with the larger number is no ancestor.
        a, b = truth, best
        while a != b:
            if a > b:
                self.changed[n_changed] = a
                self.theta[a] = rate * self.scale[a]
                a = self.parent[a]
            else:
                self.changed[n_changed] = b
                self.theta[b] = -rate * self.scale[b]
                b = self.parent[b]
            n_changed += 1
        for k in range(nnz):
            self.add(&self.entries[columns[k]], values[k], n_changed)
        for j in range(n_changed):
            self.theta[self.changed[j]] = 0
        return 0

    cdef int add(self, Entries* entries, double value, Py_ssize_t n_changed) except -1 nogil:
        cdef Py_ssize_t e, j, left = n_changed
        cdef int32_t node
        cdef double change
        for j in range(n_changed):
            self.marked[self.changed[j]] = 1
        for e in range(entries.size):
            node = entries.node[e]
            if self.marked[node]:
                self.marked[node] = 0
                change = value * self.theta[node]
                entries.sum[e] += change
                entries.moment[e] += self.steps * change
                left -= 1
                if left == 0:
                    return 0
        for j in range(n_changed):
            node = self.changed[j]
            if self.marked[node]:
                self.marked[node] = 0
                append(entries, node)
                change = value * self.theta[node]
                entries.sum[entries.size - 1] = change
                entries.moment[entries.size - 1] = self.steps * change
        return 0

    cdef Py_ssize_t decode(self, double factor, Py_ssize_t truth) noexcept nogil:
        """Return the best leaf for ``factor`` times theta; losses are added if truth >= 0."""
        cdef Py_ssize_t v, p, best = 0
        cdef double value, most = -INFINITY, end = 0
        if truth >= 0:
            end = self.down[truth]
            v = truth
            while v >= 0:
                self.marked[v] = 1
                v = self.parent[v]
        for v in range(self.n_nodes):
            p = self.parent[v]
            value = factor * self.scale[v] * self.theta[v]
            if p >= 0:
                value += self.total[p]
            self.total[v] = value
            if truth >= 0:
                # Cost of the nodes on both paths: the truth's ancestors down to where paths part.
                self.meet[v] = self.down[v] if self.marked[v] else (self.meet[p] if p >= 0 else 0)
            if self.leaf[v]:
                if truth >= 0 and v != truth:
                    if self.kind == ZERO_ONE:
                        value += 1
                    elif self.kind == PATH:
                        value += sqrt(_positive(end + self.down[v] - 2 * self.meet[v]))
                    else:
                        value += end + self.down[v] - 2 * self.meet[v]
                if value > most:
                    most, best = value, v
        v = truth
        while v >= 0:
            self.marked[v] = 0
            v = self.parent[v]
        self.total[best] = most
        return best

    def to_arrays(self):
        """Return the state, for checkpoints.

        Returns
        -------
        dict of str to ndarray
            ``counts`` of entries by feature, then of each entry ``node``, ``sum`` and ``moment``.
        """
        cdef Py_ssize_t j, e, position = 0, size = self.n_entries
        counts, nodes = np.empty(self.n_features, np.int64), np.empty(size, np.int32)
        sums, moments = np.empty(size), np.empty(size)
        cdef int64_t[::1] count = counts
        cdef int32_t[::1] node = nodes
        cdef double[::1] total = sums, moment = moments
        for j in range(self.n_features):
            count[j] = self.entries[j].size
            for e in range(self.entries[j].size):
                node[position] = self.entries[j].node[e]
                total[position] = self.entries[j].sum[e]
                moment[position] = self.entries[j].moment[e]
                position += 1
        return {"counts": counts, "node": nodes, "sum": sums, "moment": moments}

    def restore(self, int64_t steps, arrays):
        """Continue from a checkpoint.

        Parameters
        ----------
        steps : int
            Steps made so far.
        arrays : dict of str to ndarray
            As :meth:`to_arrays` returned them.

        Raises
        ------
        ValueError
            When they are those of another problem.
        """
        cdef Py_ssize_t j, e, position = 0
        size = len(arrays["node"])
        nodes = checked_array(arrays["node"], np.int32, "node", size)
        counts = checked_array(arrays["counts"], np.int64, "counts", self.n_features)
        check_counts(counts, size, "counts of weights")
        check_numbers(arrays["node"], self.n_nodes, "nodes of weights")
        check_finite({name: arrays[name] for name in ("sum", "moment")})
        places = np.repeat(np.arange(self.n_features), counts) * self.n_nodes + arrays["node"]
        if np.unique(places).size != places.size or steps < 0:
            raise ValueError("weights: found a node twice for a feature")
        cdef const int64_t[::1] count = counts
        cdef const int32_t[::1] node = nodes
        cdef const double[::1] total = checked_array(arrays["sum"], np.float64, "sum", size)
        cdef const double[::1] moment = checked_array(arrays["moment"], np.float64, "moment", size)
        for j in range(self.n_features):
            self.entries[j].size = 0
            for e in range(count[j]):
                append(&self.entries[j], node[position])
                self.entries[j].sum[e] = total[position]
                self.entries[j].moment[e] = moment[position]
                position += 1
        self.steps = steps

    def weights(self, bint averaged=True):
        """Return the weights as CSR arrays, one row per feature, multiplied with the nodes' factors.

        Parameters
        ----------
        averaged : bool, default=True
            Return the mean of all iterates, in which later ones weigh more, not the last iterate.

        Returns
        -------
        indptr : ndarray of int64
        indices : ndarray of int32
        data : ndarray of float64
        """
        cdef Py_ssize_t j, e, position = 0, size = self.n_entries
        indptr = np.zeros(self.n_features + 1, np.int64)
        indices, data = np.empty(size, np.int32), np.empty(size)
        cdef int64_t[::1] row = indptr
        cdef int32_t[::1] column = indices
        cdef double[::1] value = data
        cdef double t = max(self.steps, 1)
        for j in range(self.n_features):
            for e in range(self.entries[j].size):
                column[position] = self.entries[j].node[e]
                if averaged:
                    # sum_k k w_k = (t + 1) sum - moment
                    value[position] = 2 / (t * (t + 1)) * ((t + 1) * self.entries[j].sum[e]
                                                           - self.entries[j].moment[e])
                else:
                    value[position] = self.entries[j].sum[e] / t
                value[position] *= self.scale[column[position]]
                position += 1
            row[j + 1] = position
        return indptr, indices, data


def _check_rows(indptr, indices, size, n_features):
    if len(indptr) < 1 or n_features < 0 or indptr[0] != 0 or indptr[len(indptr) - 1] != size or len(indices) != size or (
        np.diff(indptr) < 0
    ).any():
        raise ValueError("the rows of the features are not those of a CSR matrix")
    if size and (indices.min() < 0 or indices.max() >= n_features):
        raise ValueError(f"the features have columns beyond {n_features}")


cdef inline double _positive(double x) noexcept nogil:
    return x if x > 0 else 0


def best_leaves(parent, weights, features):
    """Return the best leaf of every example, and its score.

    Parameters
    ----------
    parent : ndarray of int32 of shape (M,)
        As of :class:`SparseTree`.
    weights : tuple
        ``(indptr, indices, data)`` as :meth:`SparseTree.weights` gives them.
    features : tuple
        ``(indptr, indices, data)`` of the examples, CSR.

    Returns
    -------
    labels : ndarray of int32
    scores : ndarray of float64
    """
    if len(weights) != 3 or len(features) != 3:
        raise ValueError("weights, features: expected three arrays each, of a CSR matrix")
    cdef const int32_t[::1] up = np.ascontiguousarray(parent, dtype=np.int32)
    cdef const int64_t[::1] w_row = np.ascontiguousarray(weights[0], dtype=np.int64)
    cdef const int32_t[::1] w_column = np.ascontiguousarray(weights[1], dtype=np.int32)
    cdef const double[::1] w_value = np.ascontiguousarray(weights[2], dtype=np.float64)
    cdef const int64_t[::1] row = np.ascontiguousarray(features[0], dtype=np.int64)
    cdef const int32_t[::1] column = np.ascontiguousarray(features[1], dtype=np.int32)
    cdef const double[::1] value = np.ascontiguousarray(features[2], dtype=np.float64)
    cdef Py_ssize_t M = up.shape[0], n = row.shape[0] - 1, i, k, e, v, j
    _check_rows(np.asarray(w_row), np.asarray(w_column), w_value.shape[0], M)
    _check_rows(np.asarray(row), np.asarray(column), value.shape[0], w_row.shape[0] - 1)
    number = np.arange(M)
    if ((np.asarray(up) < -1) | (np.asarray(up) >= number)).any():
        raise ValueError("parent: expected -1 or an earlier node for every node")
    labels, scores = np.zeros(n, dtype=np.int32), np.zeros(n)
    inner = np.zeros(M + 1, dtype=np.uint8)
    inner[np.asarray(up)] = 1       # roots have -1, the spare entry at the end
    cdef unsigned char[::1] has_children = inner
    cdef int32_t[::1] best = labels
    cdef double[::1] score = scores, total = np.zeros(M)
    with nogil:
        for i in range(n):
            if M:
                memset(&total[0], 0, M * sizeof(double))
            for k in range(row[i], row[i + 1]):
                j = column[k]
                for e in range(w_row[j], w_row[j + 1]):
                    total[w_column[e]] += value[k] * w_value[e]
            score[i] = -INFINITY
            for v in range(M):
                if up[v] >= 0:
                    total[v] += total[up[v]]
                if not has_children[v] and total[v] > score[i]:
                    score[i], best[i] = total[v], v
    return labels, scores
