"""The leaf of a tree with the best path, by a search of all leaves or only of touched nodes."""

import numpy as np

cimport cython
from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from structsolve.plugins.extreme.weights.feature_lists cimport FeatureLists
from structsolve.plugins.extreme.weights.feature_lists import checked_rows
from structsolve.utils.arrays import check_numbers, checked_array
from structsolve.utils.parallel import over_examples


cdef enum:
    NONE = 0
    HAMMING = 1
    PATH = 2
    ZERO_ONE = 3

LOSSES: dict = {"hamming": HAMMING, "path": PATH, "zero-one": ZERO_ONE}


@cython.final
cdef class LeafSearch:
    """Finds the leaf with the largest sum of the scores on its path and its loss.

    Nodes are renumbered: a spare root 0 above all roots, then nodes with children, then
    leaves by parent, so that the leaves of a parent are one range.

    Parameters
    ----------
    parent : ndarray of int32 of shape (M,)
        -1 for roots; else less than the node's own number.
    cost : ndarray of float64 of shape (M,), optional
        Cost in the loss of a node that is on the path of only one of two leaves, >= 0.
    loss : {"hamming", "path", "zero-one"}, optional
        The sum of the costs, its square root, or 1 for any other leaf; zero without it.

    Attributes
    ----------
    own, given : ndarray of int32
        New numbers by those of ``parent``, and the reverse.

    Raises
    ------
    ValueError
        If the sizes do not fit, or a parent does not come before its child.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from structsolve.plugins.extreme.weights.postings import Postings
    >>> search = LeafSearch(np.array([-1, 0, 0, 1, 1]))
    >>> weights = Postings.from_matrix(sp.csr_matrix([[0.0, 1, 2, -1, 3], [0, 0, 1, 0, 0]]))
    >>> X = sp.eye(2, dtype=np.float32, format="csr")
    >>> search.best_leaves(weights, X, np.arange(5, dtype=np.int32))
    (array([4, 2], dtype=int32), array([4., 1.]))
    """

    def __init__(self, parent, cost=None, loss=None):
        cdef Py_ssize_t v, p
        if loss is not None and loss not in LOSSES:
            raise ValueError(f"loss is {loss!r}, expected one of {list(LOSSES)}")
        kind = NONE if loss is None else LOSSES[loss]
        parent = np.array(parent, dtype=np.int32)
        M = len(parent) if parent.ndim == 1 else 0
        cost = np.zeros(M) if cost is None else np.array(cost, dtype=np.float64)
        if not 1 <= M < 2**31 - 1 or cost.shape != (M,):
            raise ValueError(f"cost has the shape {cost.shape}, expected ({M},) as parent")
        wrong = np.flatnonzero((parent < -1) | (parent >= np.arange(M)))
        if wrong.size:
            raise ValueError(
                f"node {wrong[0]}: its parent is {parent[wrong[0]]}, expected -1 or an "
                "earlier node"
            )
        if not (cost >= 0).all():
            raise ValueError(f"cost of node {(~(cost >= 0)).argmax()}: expected a number >= 0")
        has_children = np.zeros(M + 1, dtype=bool)
        has_children[parent] = True         # roots have -1, the spare entry at the end
        has_children = has_children[:M]
        inner, leaves = np.flatnonzero(has_children), np.flatnonzero(~has_children)
        own = np.zeros(M + 1, dtype=np.int32)       # own[-1] is the spare root, too
        own[inner] = np.arange(1, len(inner) + 1)
        leaves = leaves[np.argsort(own[parent[leaves]], kind="stable")]
        own[leaves] = np.arange(len(inner) + 1, M + 1)
        given = np.concatenate([[-1], inner, leaves]).astype(np.int32)
        up = np.concatenate([[-1], own[parent[given[1:]]]]).astype(np.int32)
        n_inner = len(inner) + 1
        down = np.concatenate([[0.0], cost[given[1:]]])
        cdef double[::1] depth = down
        cdef int32_t[::1] above = up
        for v in range(1, M + 1):
            depth[v] += depth[above[v]]
        leaf_start = n_inner + np.searchsorted(up[n_inner:], np.arange(n_inner + 1))
        farthest, best_below = np.full(n_inner, -np.inf), np.zeros(n_inner, dtype=np.int32)
        # The best leaf if scores are zero: the farthest one, the first on ties.
        far = down if kind in (HAMMING, PATH) else np.zeros(M + 1)
        cdef double[::1] far_of = far, farthest_of = farthest
        cdef int32_t[::1] below = best_below, name = given
        for v in range(M, 0, -1):
            p = above[v]
            best = v if v >= n_inner else below[v]
            if v >= n_inner and depth[v] > farthest_of[p]:
                farthest_of[p] = depth[v]
            if below[p] == 0 or far_of[best] > far_of[below[p]] or (
                far_of[best] == far_of[below[p]] and name[best] < name[below[p]]
            ):
                below[p] = best
        child = np.arange(1, n_inner, dtype=np.int32)
        leaf = best_below[1:]
        child = child[np.lexsort((given[leaf], -far[leaf], up[1:n_inner]))]
        child_start = np.searchsorted(up[child], np.arange(n_inner + 1))
        self._keep(n_inner, kind, own[:M], given, up, down, leaf_start.astype(np.int32), farthest,
                   child_start.astype(np.int32), np.append(child, np.int32(0)), best_below)

    def _keep(self, n_inner, kind, own, given, up, down, leaf_starts, farthest, child_starts,
              children, best_below):
        work = (
            np.zeros(n_inner), np.zeros(n_inner), np.zeros(n_inner, np.uint8),
            np.zeros(n_inner, np.uint8), np.zeros(n_inner, np.int32), np.zeros(n_inner, np.int32),
        )
        cdef int32_t[::1] parents = up, names = given, leaf_start = leaf_starts
        cdef int32_t[::1] child_start = child_starts, child = children, below = best_below
        cdef double[::1] depth = down, far = farthest, total = work[0], meet = work[1]
        cdef unsigned char[::1] above_truth = work[2], opened = work[3]
        cdef int32_t[::1] open = work[4], climb = work[5]
        self.n_nodes, self.n_inner, self.kind = len(up), n_inner, kind
        self.own, self.given = own, given
        self._kept = (
            given, up, down, leaf_starts, farthest, child_starts, children, best_below, work
        )
        self.up, self.down, self.name = &parents[0], &depth[0], &names[0]
        self.leaf_start = &leaf_start[0]
        self.farthest, self.child_start, self.child = &far[0], &child_start[0], &child[0]
        self.best_below, self.total, self.meet = &below[0], &total[0], &meet[0]
        self.above_truth, self.opened = &above_truth[0], &opened[0]
        self.deepest = np.max(down)
        self.open, self.climb, self.n_open = &open[0], &climb[0], 0

    cdef inline double loss(self, double apart) noexcept nogil:
        # The loss of another leaf; `apart` is the cost of the nodes on only one of the paths.
        if self.kind == ZERO_ONE:
            return 1
        if self.kind == NONE:
            return 0
        apart = apart if apart > 0 else 0
        return sqrt(apart) if self.kind == PATH else apart

    cdef void begin(self, Py_ssize_t truth) noexcept nogil:
        cdef Py_ssize_t v = self.up[truth] if truth >= 0 else -1
        while v >= 0:
            self.above_truth[v] = 1
            v = self.up[v]
        self.truth, self.n_open = truth, 0
        self.total[0], self.meet[0] = 0, 0

    cdef inline void enter(self, Py_ssize_t p, const double* theta) noexcept nogil:
        self.total[p] = self.total[self.up[p]] + theta[p]
        # Costs of the nodes on both paths: of the truth's ancestors down to where they part.
        self.meet[p] = self.down[p] if self.above_truth[p] else self.meet[self.up[p]]

    cdef void touch(self, Py_ssize_t node, const double* theta) noexcept nogil:
        cdef Py_ssize_t p = node if node < self.n_inner else self.up[node], n = 0
        while p >= 0 and not self.opened[p]:
            self.opened[p] = 1
            self.climb[n] = <int32_t>p
            n += 1
            p = self.up[p]
        while n > 0:
            n -= 1
            p = self.climb[n]
            self.open[self.n_open] = <int32_t>p
            self.n_open += 1
            if p > 0:
                self.enter(p, theta)

    cdef Py_ssize_t end(self, bint all_nodes, const double* theta) noexcept nogil:
        cdef Py_ssize_t p, k, truth = self.truth
        self.best, self.most, self.reach = 0, -INFINITY, 0
        if all_nodes:
            for p in range(1, self.n_inner):
                self.enter(p, theta)
        else:
            self.touch(0, theta)
            if truth >= 0:
                self.touch(truth, theta)
        if truth >= 0:
            # The touched nodes first: few leaves are better, and bounds skip the others.
            self.best, self.most = truth, self.total[self.up[truth]] + theta[truth]
            self.reach = self.down[truth]
        self.most_loss = self.loss(self.reach + self.deepest)
        if all_nodes:
            for p in range(self.n_inner):
                self.family(p, theta)
        else:
            for k in range(self.n_open):
                self.family(self.open[k], theta)
                self.untouched(self.open[k])
            for k in range(self.n_open):
                self.opened[self.open[k]] = 0
        p = self.up[truth] if truth >= 0 else -1
        while p >= 0:
            self.above_truth[p] = 0
            p = self.up[p]
        return self.best

    cdef void family(self, Py_ssize_t p, const double* theta) noexcept nogil:
        """Search the leaves of p."""
        cdef Py_ssize_t v, first = self.leaf_start[p], last = self.leaf_start[p + 1]
        cdef double top = -INFINITY, value, total = self.total[p]
        cdef double apart = self.reach - 2 * self.meet[p]
        for v in range(first, last):
            top = theta[v] if theta[v] > top else top
        # Rounding is monotone: no leaf of p exceeds these sums.
        if first == last or (total + top) + self.most_loss < self.most:
            return
        if (total + top) + self.loss(apart + self.farthest[p]) < self.most:
            return
        for v in range(first, last):
            if v == self.truth:
                continue
            value = (total + theta[v]) + self.loss(apart + self.down[v])
            if value > self.most or value == self.most and self.name[v] < self.name[self.best]:
                self.most, self.best = value, v

    cdef void untouched(self, Py_ssize_t p) noexcept nogil:
        """Search the best leaf below the untouched children of p."""
        cdef Py_ssize_t k, v
        cdef double value
        for k in range(self.child_start[p], self.child_start[p + 1]):
            if not self.opened[self.child[k]]:
                v = self.best_below[self.child[k]]
                value = self.total[p] + self.loss(self.reach - 2 * self.meet[p] + self.down[v])
                if value > self.most or value == self.most and self.name[v] < self.name[self.best]:
                    self.most, self.best = value, v
                return

    def best_leaf(self, scores, truth=-1, bint all_nodes=True):
        """Return the best leaf for given scores of the nodes.

        Parameters
        ----------
        scores : ndarray of float64 of shape (M,)
        truth : int, default=-1
            The true leaf of the loss; -1 for a search without a loss.
        all_nodes : bool, default=True
            Search all nodes, or only those with nonzero scores; the result is the same.

        Returns
        -------
        leaf : int
            The first on ties.
        most : float
            Its sum of scores and its loss.

        Raises
        ------
        ValueError
            If the sizes do not fit.
        """
        cdef Py_ssize_t M = self.n_nodes - 1, v, best
        scores = checked_array(scores, np.float64, "scores", M)
        if not (truth == -1 and self.kind == NONE or (
            0 <= truth < M and self.own[truth] >= self.n_inner
        )):
            raise ValueError(f"truth is {truth}, expected a leaf below {M}, or -1 without a loss")
        cdef double[::1] theta = np.append(0.0, scores[self.given[1:]])
        cdef Py_ssize_t own = self.own[truth] if truth >= 0 else -1
        self.begin(own)
        if not all_nodes:
            for v in range(1, self.n_nodes):
                if theta[v] != 0:
                    self.touch(v, &theta[0])
        best = self.end(all_nodes, &theta[0])
        return self.name[best], self.most

    def another(self):
        """Return the same search for another thread.

        Returns
        -------
        LeafSearch
        """
        cdef LeafSearch made = LeafSearch.__new__(LeafSearch)
        made._keep(self.n_inner, self.kind, self.own, *self._kept[:len(self._kept) - 1])
        return made

    def _best_range(self, FeatureLists weights not None, rows, places, work, *, labels, scores,
                    Py_ssize_t first, Py_ssize_t last):
        # Positions of the scores of the renumbered nodes; the spare root has none.
        cdef const int32_t[::1] place = places
        cdef const int64_t[::1] start = rows[0]
        cdef const int32_t[::1] column = rows[1]
        cdef const float[::1] value = rows[2]
        cdef int32_t[::1] label = labels
        cdef double[::1] best = scores, theta = work[0]
        cdef float[::1] score = work[1]
        cdef Py_ssize_t i, v
        with nogil:
            for i in range(first, last):
                memset(&score[0], 0, score.shape[0] * sizeof(float))
                weights.scan(start[i + 1] - start[i], &column[0] + start[i], &value[0] + start[i],
                             &score[0])
                for v in range(1, self.n_nodes):
                    theta[v] = score[place[v]]
                self.begin(-1)
                label[i] = self.name[self.end(True, &theta[0])]
                best[i] = self.most

    def best_leaves(self, weights, X, columns, n_jobs=1):
        """Return the best leaf of every example, and its score.

        Parameters
        ----------
        weights : FeatureLists
            Weights of each feature for each node, without intercept.
        X : csr_matrix of float32 of shape (n, n_features)
            Finite, columns sorted within rows.
        columns : ndarray of int32 of shape (M,)
            The class in ``weights`` of each node of ``parent``.
        n_jobs : int or None, default=1
            Threads; the result does not depend on it.

        Returns
        -------
        labels : ndarray of int32 of shape (n,)
            Numbers of ``parent``; the lowest on ties.
        scores : ndarray of float64 of shape (n,)
            Sums of the nodes' scores, which are sums of float32.

        Raises
        ------
        ValueError
            If an argument does not fit; the message names it.
        """
        if not isinstance(weights, FeatureLists) or weights.intercept is not None:
            raise ValueError(
                f"weights: found {type(weights).__name__}, expected FeatureLists without intercept"
            )
        if self.kind != NONE:
            raise ValueError("LeafSearch: made with a loss, expected none for prediction")
        columns = checked_array(columns, np.int32, "columns", self.n_nodes - 1)
        check_numbers(columns, weights.n_classes, "columns")
        rows = checked_rows(X, weights.n_features)
        n = X.shape[0]
        labels, scores = np.zeros(n, np.int32), np.zeros(n)
        places = np.append(np.int32(0), columns[self.given[1:]])

        def make():
            return self.another(), (np.zeros(self.n_nodes), np.zeros(weights.n_classes, np.float32))

        def work(first, last, scratch):
            search, own = scratch
            search._best_range(weights, rows, places, own, labels=labels, scores=scores,
                               first=first, last=last)

        over_examples(work, rows[0] + np.arange(n + 1), n_jobs, make)
        return labels, scores
