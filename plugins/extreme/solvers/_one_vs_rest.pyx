"""One machine per label on all rows, sixteen labels at a time: dual coordinate descent.

The machine of label c is ``min 1/2 (||w||^2 + b^2) + sum_i cost_i max(0, 1 - s_ic (w . x_i + bias
b))^2`` with the sign ``s_ic`` that tells whether row i has the label.  Hsieh et al., A dual
coordinate descent method for large-scale linear SVM, ICML 2008, algorithm 3.  The order of visits
depends on the seed and the block of labels alone: a second pass in the order of the first one would
see gradients near zero long before the optimum.
"""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memset

from structsolve.utils.arrays import check_numbers, check_offsets
from structsolve.plugins.extreme.weights.feature_lists import checked_rows, flat


cdef extern from "one_vs_rest_loops.h" nogil:
    enum:
        SS_MACHINES
    ctypedef struct ss_rest:
        const int64_t* indptr
        const int32_t* indices
        const float* data
        const float* square
        const float* cost
        const signed char* sign
        float* w
        float* a
        float* b
        int32_t* order
        float bias
        float* above
    int64_t ss_rest_pass(ss_rest* r, int64_t active, float* most, float* least)
    void ss_rest_values(const ss_rest* r, int64_t n, float keep, float share, double* loss,
                        double* loss_kept, double* dual)
    void ss_rest_prune(ss_rest* r, int64_t d, float keep, double* squares, double* squares_kept,
                       int64_t* kept)

#: Labels that are solved together.
BLOCK = SS_MACHINES


cdef inline uint64_t next_random(uint64_t* state) noexcept nogil:
    """SplitMix64."""
    cdef uint64_t z
    state[0] += <uint64_t>0x9E3779B97F4A7C15
    z = (state[0] ^ (state[0] >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * <uint64_t>0x94D049BB133111EB
    return z ^ (z >> 31)


cdef class RestSpace:
    """Working memory of a thread, for one block of labels after another.

    Parameters
    ----------
    n, n_features : int
        Numbers of rows and of features.
    """

    cdef float[:, ::1] w, a
    cdef float[::1] b
    cdef signed char[:, ::1] sign
    cdef int32_t[::1] order

    def __cinit__(self, *args, **kwargs):
        self.w = self.a = None
        self.order = None

    def __init__(self, Py_ssize_t n, Py_ssize_t n_features):
        # The weights of a feature fill a line of the cache.
        room = np.zeros(BLOCK * (n_features + 1), np.float32)
        skip = -(room.ctypes.data // 4) % BLOCK
        self.w = room[skip : skip + BLOCK * n_features].reshape(n_features, BLOCK)
        self.a, self.b = np.zeros((n, BLOCK), np.float32), np.zeros(BLOCK, np.float32)
        self.sign, self.order = np.zeros((n, BLOCK), np.int8), np.zeros(n, np.int32)

    @staticmethod
    def size(n, n_features):
        """Return the bytes that a space takes.

        Parameters
        ----------
        n, n_features : int

        Returns
        -------
        int
        """
        return 4 * BLOCK * n_features + (5 * BLOCK + 4) * n


cdef class RestMachines:
    """The rows and labels of all machines, and their settings.

    Parameters
    ----------
    X : csr_matrix of float32 of shape (n, n_features)
        ``indices`` int32, ``indptr`` int64.
    start : ndarray of int64 of shape (C + 1,)
        First of each label's rows, and the end.
    rows : ndarray of int32
        Rows that have the label.
    cost : ndarray of float32 of shape (n,)
        Positive.
    bias : float
        Value of a constant feature; 0 for none.
    passes : int
        Visits of a row at most.
    accuracy : float
        A block is done when no gradient is further from what is optimal, in units of scores.
    seed : int

    Raises
    ------
    ValueError
        When shapes do not fit, or rows lie outside of X.
    """

    cdef const int64_t[::1] indptr, start
    cdef const int32_t[::1] indices, rows
    cdef const float[::1] data, cost
    cdef float[::1] square
    cdef float bias, accuracy
    cdef int64_t passes, n, n_features, n_classes
    cdef uint64_t seed

    def __init__(self, X, start, rows, cost, float bias, int64_t passes, float accuracy,
                 uint64_t seed):
        n, d = X.shape
        checked_rows(X, d)
        start, rows = flat(start, np.int64, "start"), flat(rows, np.int32, "rows")
        cost = flat(cost, np.float32, "cost")
        if len(cost) != n:
            raise ValueError(f"cost has {len(cost)} entries, expected {n}, one per row of X")
        if not (np.isfinite(cost) & (cost > 0)).all():
            raise ValueError("cost: expected finite numbers above 0")
        check_offsets(start, len(rows), 0, "start of the labels' rows")
        check_numbers(rows, n, "rows")
        # The first pass visits rows as they lie in memory, in a random order.
        order = np.random.default_rng(seed).permutation(n)
        X, rows, cost = X[order], np.argsort(order).astype(np.int32)[rows], cost[order]
        self.indptr, self.indices, self.data = checked_rows(X, d)
        self.start, self.rows, self.cost, self.bias = start, rows, cost, bias
        self.passes, self.accuracy, self.seed = passes, accuracy, seed
        self.n, self.n_features, self.n_classes = n, d, len(start) - 1
        squares = np.concatenate([[0], np.cumsum(X.data.astype(np.float64) ** 2)])
        squares = squares[X.indptr[1:]] - squares[X.indptr[:n]]
        self.square = (squares + <double>bias * bias).astype(np.float32)

    def train(self, int64_t first, int64_t last, RestSpace space not None, float keep,
              double share=1):
        """Solve the machines of the labels first .. last - 1.

        Parameters
        ----------
        first, last : int
            At most ``BLOCK`` labels.
        space : RestSpace
        keep : float
            Weights of at most this size are left out.
        share : float, default=1
            Factor of each intercept in the model.

        Returns
        -------
        sizes, features, weights, intercepts, figures : ndarray
            As of ``Machines.train``.

        Raises
        ------
        ValueError
            If the labels do not exist, or the space is for other data.
        """
        cdef int64_t m = last - first, l, f, place
        if not 0 <= first <= last <= min(self.n_classes, first + BLOCK):
            raise ValueError(
                f"first is {first}, last {last}: expected at most {BLOCK} of {self.n_classes}"
            )
        if (
            space.order is None or space.order.shape[0] != self.n
            or space.w.shape[0] != self.n_features
        ):
            raise ValueError(f"space: expected one for {self.n} rows, {self.n_features} features")
        sizes, intercepts = np.zeros(m, np.int64), np.zeros(m, np.float32)
        figures = np.zeros((m, 4))
        if not m or not self.n:
            return sizes, np.empty(0, np.int32), np.empty(0, np.float32), intercepts, figures
        cdef double[:, ::1] figures_view = figures
        cdef int64_t[::1] sizes_view = sizes
        cdef float[::1] intercepts_view = intercepts
        with nogil:
            self.solve(first, m, space, keep, share, figures_view, sizes_view)
            for l in range(m):
                intercepts_view[l] = self.bias * space.b[l]
        places = np.concatenate([[0], np.cumsum(sizes)])
        features, weights = np.empty(places[m], np.int32), np.empty(places[m], np.float32)
        cdef int64_t[::1] next_place = places
        cdef int32_t[::1] feature = features
        cdef float[::1] weight = weights
        cdef const float* w = &space.w[0, 0]
        with nogil:
            for f in range(self.n_features):
                for l in range(m):
                    if w[f * SS_MACHINES + l] != 0:
                        place = next_place[l]
                        feature[place], weight[place] = <int32_t>f, w[f * SS_MACHINES + l]
                        next_place[l] = place + 1
        return sizes, features, weights, intercepts, figures

    cdef void solve(self, int64_t first, int64_t m, RestSpace space, float keep, double share,
                    double[:, ::1] figures, int64_t[::1] sizes) noexcept nogil:
        """Solve a block and clear small weights."""
        cdef ss_rest r
        cdef int64_t i, l, t, visits
        cdef double[SS_MACHINES] loss, loss_kept, dual, squares, squares_kept
        cdef int64_t[SS_MACHINES] kept
        r.indptr, r.indices, r.data = &self.indptr[0], &self.indices[0], &self.data[0]
        r.square, r.cost, r.bias = &self.square[0], &self.cost[0], self.bias
        r.sign, r.order = &space.sign[0, 0], &space.order[0]
        r.w, r.a, r.b = &space.w[0, 0], &space.a[0, 0], &space.b[0]
        memset(r.w, 0, self.n_features * SS_MACHINES * sizeof(float))
        memset(r.a, 0, self.n * SS_MACHINES * sizeof(float))
        memset(r.b, 0, SS_MACHINES * sizeof(float))
        for i in range(self.n):
            space.order[i] = <int32_t>i
            for l in range(SS_MACHINES):
                space.sign[i, l] = -1 if l < m else 0
        for l in range(m):
            for t in range(self.start[first + l], self.start[first + l + 1]):
                space.sign[self.rows[t], l] = 1
        visits = self.descend(&r, <uint64_t>first)
        for l in range(SS_MACHINES):
            loss[l] = loss_kept[l] = dual[l] = kept[l] = 0
            squares[l] = <double>space.b[l] * space.b[l]
            squares_kept[l] = share * share * squares[l]
        ss_rest_values(&r, self.n, keep, <float>share, loss, loss_kept, dual)
        ss_rest_prune(&r, self.n_features, keep, squares, squares_kept, kept)
        for l in range(m):
            sizes[l] = kept[l]
            figures[l, 0] = 0.5 * squares[l] + loss[l]
            figures[l, 1] = dual[l] - 0.5 * squares[l]
            figures[l, 2] = <double>visits
            figures[l, 3] = 0.5 * squares_kept[l] + loss_kept[l]

    cdef int64_t descend(self, ss_rest* r, uint64_t stream) noexcept nogil:
        """Visit rows until all gradients are optimal; return the number of visits."""
        cdef int64_t active = self.n, turn, t, other, visits = 0
        cdef int32_t held
        cdef float[SS_MACHINES] most, least
        cdef float widest
        cdef int l
        cdef uint64_t state = self.seed * <uint64_t>0x9E3779B97F4A7C15 + stream
        for l in range(SS_MACHINES):
            r.above[l] = INFINITY
        for turn in range(self.passes):
            for t in range(active - 1 if turn else 0, 0, -1):
                other = <int64_t>(((next_random(&state) >> 32) * <uint64_t>(t + 1)) >> 32)
                held = r.order[t]
                r.order[t] = r.order[other]
                r.order[other] = held
            visits += active
            t = active
            active = ss_rest_pass(r, active, most, least)
            widest = 0
            for l in range(SS_MACHINES):
                widest = max(widest, most[l] - least[l])
            if widest <= self.accuracy:
                if t == self.n:
                    break
                active = self.n
                for l in range(SS_MACHINES):
                    r.above[l] = INFINITY
            else:
                for l in range(SS_MACHINES):
                    r.above[l] = most[l] if most[l] > 0 else INFINITY
        return visits
