"""Single leaves of large trees: stochastic subgradient steps on weights that mostly stay zero.

A step changes the weights of the features of one example for the nodes on two paths.  Each feature
has sorted lists of the nodes whose weights were ever changed, one for every 65,536 nodes.  Memory
grows with these lists, and so does the time of a step: all nodes are searched only if the lists of
an example's features hold a quarter as many entries as there are nodes.
"""

import numpy as np

cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from structsolve.plugins.dag.svm.leaf_search cimport LeafSearch
from structsolve.plugins.dag.svm.leaf_search import LOSSES
from structsolve.plugins.dag.svm.node_sums cimport NodeSums, Sums, WIDTH, nodes_of


cdef enum:
    SPARSE = 4          # search all nodes if sums / nodes is at least 1 / SPARSE


@cython.final
cdef class SparseTree:
    """Weights of a tree's nodes for single-leaf labels, and the steps that change them.

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

    Attributes
    ----------
    search : LeafSearch
    sums : NodeSums
        The weights, of which ``n_entries`` are kept.
    steps : int
        Steps made.

    Raises
    ------
    ValueError
        If the sizes do not fit, or a parent does not come before its child.
    MemoryError
        If memory does not suffice for all features.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones(3)
    >>> tree = SparseTree(np.array([-1, 0, 0], dtype=np.int32), one, one, "hamming", 2)
    >>> tree.sums.n_entries
    0
    """

    cdef readonly int64_t steps
    cdef readonly LeafSearch search
    cdef readonly NodeSums sums
    cdef double[::1] square, theta, gain
    cdef int32_t[::1] path

    def __init__(self, parent, scale, cost, loss, Py_ssize_t n_features):
        if loss not in LOSSES:
            raise ValueError(f"loss is {loss!r}, expected one of {list(LOSSES)}")
        if n_features < 1:
            raise ValueError(f"n_features is {n_features}, expected at least 1")
        M, scale = np.size(parent), np.array(scale, dtype=np.float64)
        if scale.shape != (M,) or np.shape(cost) != (M,):
            raise ValueError(
                f"scale and cost have the shapes {np.shape(scale)} and {np.shape(cost)}, expected "
                f"({M},) as parent"
            )
        self.search = LeafSearch(parent, cost, loss)
        # Factors of a step and of the scores; the stored sums include them.
        self.square = np.append(0.0, scale[self.search.given[1:]] ** 2)
        self.theta, self.gain = np.zeros(M + 1), np.zeros(M + 1)
        self.path, self.steps = np.zeros(M + 1, np.int32), 0
        self.sums = NodeSums(n_features, M + 1)

    cdef int check_made(self) except -1:
        if self.sums is None:
            raise ValueError("SparseTree: not initialised")
        return 0

    def run(self, indptr, indices, data, labels, order, *, double alpha, weight=None):
        """Take one Pegasos step for each example of ``order``.

        Parameters
        ----------
        indptr : ndarray of int64
        indices : ndarray of int32
        data : ndarray of float64
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
            If an argument does not fit, which the message names, or weights leave the range of
            float32.
        MemoryError
            If there is no memory for more weights.
        """
        self.check_made()
        cdef const int64_t[::1] rows = np.ascontiguousarray(indptr, dtype=np.int64)
        cdef const int32_t[::1] columns = np.ascontiguousarray(indices, dtype=np.int32)
        cdef const double[::1] values = np.ascontiguousarray(data, dtype=np.float64)
        cdef const int32_t[::1] truth = np.ascontiguousarray(labels, dtype=np.int32)
        cdef const int64_t[::1] visits = np.ascontiguousarray(order, dtype=np.int64)
        cdef const double[::1] factor
        cdef Py_ssize_t n = rows.shape[0] - 1, k, i, M = self.search.n_nodes - 1
        cdef double share = 1
        _check_rows(np.asarray(rows), np.asarray(columns), values.shape[0], self.sums.n_features)
        if truth.shape[0] != n or (n and (np.min(truth) < 0 or np.max(truth) >= M)):
            raise ValueError(f"labels: expected {n} nodes below {M}")
        truth = self.search.own[np.asarray(truth)]
        if n and np.min(truth) < self.search.n_inner:
            raise ValueError(f"labels: found a node with children for example "
                             f"{np.argmin(truth)}, expected leaves")
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
        # There may be no entries.
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
        cdef double* theta = &self.theta[0]
        cdef Py_ssize_t best
        self.steps += 1
        self.search.begin(truth)
        if SPARSE * self.sums.score(nnz, columns, values, past, theta) >= self.search.n_nodes:
            best = self.search.end(True, theta)
            memset(theta, 0, self.search.n_nodes * sizeof(double))
        else:
            self.touch(nnz, columns)
            best = self.search.end(False, theta)
            self.sums.clear(nnz, columns, theta)
        if best != truth:
            self.learn(nnz, columns, values, truth, best, rate)
        return 0

    cdef void touch(self, Py_ssize_t nnz, const int32_t* columns) noexcept nogil:
        cdef Py_ssize_t k, b, e
        cdef const Sums* own
        for k in range(nnz):
            for b in range(self.sums.blocks):
                own = &self.sums.lists[columns[k] * self.sums.blocks + b]
                for e in range(own.size):
                    self.search.touch(b * WIDTH + nodes_of(own)[e], &self.theta[0])

    cdef int learn(self, Py_ssize_t nnz, const int32_t* columns, const double* values,
                   Py_ssize_t a, Py_ssize_t b, double rate) except -1 nogil:
        """Add an example to the weights of a's path, and subtract it from those of b's."""
        cdef Py_ssize_t n = 0, k
        # Up to the common ancestor: the node with the larger number is no ancestor of the other.
        while a != b:
            if a > b:
                self.path[n], self.gain[n] = <int32_t>a, rate * self.square[a]
                a = self.search.up[a]
            else:
                self.path[n], self.gain[n] = <int32_t>b, -rate * self.square[b]
                b = self.search.up[b]
            n += 1
        for k in range(nnz):
            if self.sums.add(columns[k], values[k], n, &self.path[0], &self.gain[0], self.steps):
                with gil:
                    raise ValueError(
                        f"the weights of feature {columns[k]} are beyond the range of float32; "
                        "scale the features, or use a larger alpha"
                    )
        return 0

    def to_arrays(self):
        """Return the state without the number of steps, for checkpoints.

        Returns
        -------
        dict of str to ndarray
            As of :meth:`NodeSums.to_arrays`.
        """
        self.check_made()
        return self.sums.to_arrays()

    def restore(self, int64_t steps, arrays):
        """Continue from a checkpoint.

        Parameters
        ----------
        steps : int
            Steps made so far.
        arrays : mapping of str to ndarray
            As :meth:`to_arrays` returned them.

        Raises
        ------
        ValueError
            If the arrays belong to another problem.
        """
        self.check_made()
        if steps < 0:
            raise ValueError(f"steps is {steps}, expected a number of at least 0")
        self.sums.restore(arrays)
        self.steps = steps

    def weights(self, bint averaged=True):
        """Return the weights, multiplied with the nodes' factors, as CSR arrays by feature.

        Parameters
        ----------
        averaged : bool, default=True
            Return the mean of all iterates, weighted towards later ones, not the last iterate.

        Returns
        -------
        indptr : ndarray of int64
        indices : ndarray of int32
            Not sorted.
        data : ndarray of float32
        """
        self.check_made()
        return self.sums.mean(self.steps, self.search.given, averaged)


def _check_rows(indptr, indices, size, n_features):
    n = len(indptr) - 1
    if n < 0 or indptr[0] != 0 or indptr[n] != size or len(indices) != size or (
        np.diff(indptr) < 0
    ).any():
        raise ValueError("the rows of the features are not those of a CSR matrix")
    if size and (indices.min() < 0 or indices.max() >= n_features):
        raise ValueError(f"the features have columns beyond {n_features}")
