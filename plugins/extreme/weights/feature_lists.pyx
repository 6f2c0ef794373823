"""Scores of rows of features on weights kept by feature, and the best classes of each row."""

from functools import partial

import numpy as np
import scipy.sparse as sp

from cython cimport floating
from libc.math cimport INFINITY, fabs, fmax, fmin
from libc.string cimport memcpy, memset

from structsolve.utils.arrays import check_finite, check_numbers, checked_array
from structsolve.utils.parallel import over_examples
from structsolve.utils.sparse import refuse_broken
from structsolve.plugins.extreme.weights._strips cimport Strips
from structsolve.plugins.extreme.weights.best_classes cimport better, offer, offer_range, sorted_heap
from structsolve.plugins.extreme.weights.list_loops cimport FeatureList, add_chosen, add_list

cdef enum:
    SPARSE = 64     # a row with less than 1 weight per SPARSE classes uses the touched classes only
    ENOUGH = 4      # minimum number of a row's weights per class for a scan that may end early
    SPARE = 16      # number of candidates besides the k best
    LOOK_UP = 16    # cost of looking up one weight, in weights read in sequence
    TRIES = 4       # maximum number of times that candidates are scored
    ALONE = 1024    # maximum number of features of a row that is scored alone, in kept memory


# Of float32, less what sums of rounded numbers add.
cdef double MOST = 3e38
# Half of the distance from 1 to the next float32.
cdef double UNIT = 5.9604644775390625e-08


cdef inline void settle(const float* gain, int32_t* queue, Py_ssize_t size,
                        Py_ssize_t j) noexcept nogil:
    # Sift entry j down a heap of features, which has the largest gain at its root.
    cdef int32_t own = queue[j]
    cdef Py_ssize_t child = 2 * j + 1
    while child < size:
        if child + 1 < size and gain[queue[child + 1]] > gain[queue[child]]:
            child += 1
        if gain[queue[child]] <= gain[own]:
            break
        queue[j] = queue[child]
        j, child = child, 2 * child + 1
    queue[j] = own


cdef class Space:
    """Working memory of a thread for scoring rows with FeatureLists.

    Parameters
    ----------
    lists : FeatureLists
    k : int
        Maximum number of classes to return.
    longest : int
        Maximum number of features per row.
    n_rows : int
        Total number of rows.
    """

    def __init__(self, FeatureLists lists not None, Py_ssize_t k, Py_ssize_t longest,
                 Py_ssize_t n_rows):
        C = lists.n_classes
        self.room, self.longest = min(k, C) + SPARE + 1, longest
        self._kept = (
            np.zeros(C, np.float32), np.zeros(C, np.uint8), np.zeros(C, np.int32),
            np.zeros((2, self.room), np.float32), np.zeros((2, self.room), np.int32),
            np.zeros(longest + 1, np.float32), np.zeros(longest + 1, np.int32),
        )
        if lists.intercept is not None:
            self._kept[0][:] = lists.intercept
        cdef float[::1] score = self._kept[0], gain = self._kept[5]
        cdef unsigned char[::1] mark = self._kept[1]
        cdef int32_t[::1] touched = self._kept[2], queue = self._kept[6]
        cdef float[:, ::1] best = self._kept[3]
        cdef int32_t[:, ::1] ids = self._kept[4]
        self.score, self.mark, self.touched = &score[0], &mark[0], &touched[0]
        self.best, self.partial = &best[0, 0], &best[1, 0]
        self.ids, self.candidates = &ids[0, 0], &ids[1, 0]
        self.gain, self.queue = &gain[0], &queue[0]
        self.strips = Strips(min(k, C), longest, n_rows)


cdef class FeatureLists:
    """Weights of classes, kept as a list for each feature.

    Attributes
    ----------
    n_features, n_classes : int
    intercept : ndarray of float32 of shape (n_classes,) or None
        Scores of a row without features.
    most : float
        Features up to it, in absolute value, have scores within float32.
    """

    cdef int set_sizes(self, n_features, n_classes, intercept) except -1:
        for name, size in (("n_features", n_features), ("n_classes", n_classes)):
            if not isinstance(size, (int, np.integer)) or not 0 < size < 2**31 - 1:
                raise ValueError(f"{name} is {size!r}, expected an integer from 1 to 2**31 - 2")
        self.n_features, self.n_classes, self.factor, self.most = n_features, n_classes, 1, MOST
        self._bias, self._order, self.intercept, self._bias_size = NULL, NULL, None, 0
        self._spaces = []
        if intercept is None:
            return 0
        intercept = flat(intercept, np.float32, "intercept")
        if len(intercept) != n_classes:
            raise ValueError(f"intercept has {len(intercept)} entries, expected {n_classes}")
        check_finite({"intercept": intercept})
        order = np.argsort(-intercept, kind="stable").astype(np.int32)
        cdef const float[::1] bias = intercept
        cdef const int32_t[::1] ranked = order
        self.intercept, self._order_kept = intercept, order
        self._bias, self._order = &bias[0], &ranked[0]
        self._bias_size = abs(intercept).max()
        return 0

    cdef FeatureList list_of(self, Py_ssize_t f) noexcept nogil:
        cdef FeatureList none
        memset(&none, 0, sizeof(FeatureList))
        return none

    cdef void score_chosen(self, Py_ssize_t nnz, const int32_t* columns, const float* values,
                           Py_ssize_t n, const int32_t* classes, float* score) noexcept nogil:
        cdef Py_ssize_t j
        cdef FeatureList own
        for j in range(n):
            score[j] = self._bias[classes[j]] if self._bias != NULL else 0
        for j in range(nnz):
            own = self.list_of(columns[j])
            add_chosen(&own, <float>(self.factor * values[j]), n, classes, score)

    cdef int64_t scan(self, Py_ssize_t nnz, const int32_t* columns, const float* values,
                      float* score) noexcept nogil:
        cdef Py_ssize_t j
        cdef int64_t entries = 0
        cdef FeatureList own
        for j in range(nnz):
            own = self.list_of(columns[j])
            add_list(&own, <float>(self.factor * values[j]), score)
            entries += own.size
        return entries

    cdef void clear(self, Space space) noexcept nogil:
        if self._bias == NULL:
            memset(space.score, 0, self.n_classes * sizeof(float))
        else:
            memcpy(space.score, self._bias, self.n_classes * sizeof(float))

    cdef int64_t best_of(self, Py_ssize_t nnz, const int32_t* columns, const float* values,
                         Py_ssize_t k, int32_t exclude, double epsilon, Space space, Strips strips,
                         Py_ssize_t row, int32_t* ids, float* scores,
                         double* bound) noexcept nogil:
        cdef Py_ssize_t j, C = self.n_classes
        cdef int64_t entries = 0, lost = 0
        cdef FeatureList own
        for j in range(nnz):
            own = self.list_of(columns[j])
            entries += own.kept
            strips.put(j, &own, <float>(self.factor * values[j]))
        bound[0] = 0
        if entries >= ENOUGH * C and k + SPARE + 2 < C:
            lost = self.best_early(nnz, columns, values, k, exclude, epsilon, space, ids, scores,
                                   bound)
            if bound[0] >= 0:
                return lost
            bound[0] = 0
        elif SPARSE * entries < C:
            self.best_touched(nnz, columns, values, k, exclude, space, ids, scores)
            return entries
        strips.join(nnz, row, exclude)
        return entries + lost

    cdef void best_touched(self, Py_ssize_t nnz, const int32_t* columns, const float* values,
                           Py_ssize_t k, int32_t exclude, Space space, int32_t* ids,
                           float* scores) noexcept nogil:
        # Offer the classes of the lists, then the others in the order of the intercept.
        cdef Py_ssize_t C = self.n_classes, room = k if k < C else C, size = 0, j, e
        cdef Py_ssize_t n_touched = 0
        cdef FeatureList own
        cdef int32_t c
        self.scan(nnz, columns, values, space.score)
        for j in range(nnz):
            own = self.list_of(columns[j])
            for e in range(own.size):
                c = own.classes[e]
                if not space.mark[c]:
                    space.mark[c] = 1
                    space.touched[n_touched] = c
                    n_touched += 1
                    if c != exclude:
                        size = offer(space.best, space.ids, size, room, space.score[c], c)
        for j in range(C):
            c = self._order[j] if self._order != NULL else <int32_t>j
            if space.mark[c] or c == exclude:
                continue
            if size == room and not better(space.score[c], c, space.best[0], space.ids[0]):
                break
            size = offer(space.best, space.ids, size, room, space.score[c], c)
        for j in range(n_touched):
            c = space.touched[j]
            space.mark[c] = 0
            space.score[c] = self._bias[c] if self._bias != NULL else 0
        for j in range(size, k):
            ids[j], scores[j] = -1, -INFINITY
        sorted_heap(space.best, space.ids, size, scores, ids)

    cdef int64_t best_early(self, Py_ssize_t nnz, const int32_t* columns, const float* values,
                            Py_ssize_t k, int32_t exclude, double epsilon, Space space,
                            int32_t* ids, float* scores, double* bound) noexcept nogil:
        # Features are added in descending order of possible change per weight.  `above` bounds what
        # the other features may add to the score of any class.  The scan ends when the best score
        # outside of the candidates plus `above` exceeds the k-th best full score of a candidate by
        # at most epsilon.  The bound is -1 if this never happened (ties).
        cdef Py_ssize_t j, q, size = 0, n_candidates = k + SPARE, tries = 0, kept
        cdef int64_t read = 0
        cdef double above = 0, open = 0, rounding = self._bias_size, target, excess, width
        cdef FeatureList own
        cdef float x
        for j in range(nnz):
            own = self.list_of(columns[j])
            x = <float>(self.factor * values[j])
            rounding += fabs(x) * fmax(fabs(own.low), fabs(own.high))
            if own.kept <= LOOK_UP * n_candidates:  # reading all is faster than look-ups
                add_list(&own, x, space.score)
                read += own.kept
                continue
            above += fmax(x * <double>own.low, x * <double>own.high)
            width = fabs(x) * (<double>own.high - own.low)
            open += width
            space.gain[j] = <float>(width / own.kept)
            space.queue[size] = <int32_t>j
            size += 1
        # Two float32 sums of these products, in any order, differ by at most this.
        rounding *= 2 * (nnz + 3) * UNIT
        for j in range(size // 2 - 1, -1, -1):
            settle(space.gain, space.queue, size, j)
        target = open / 2
        bound[0] = -1
        while size > 0 and tries < TRIES:
            j = space.queue[0]
            size -= 1
            space.queue[0] = space.queue[size]
            settle(space.gain, space.queue, size, 0)
            own = self.list_of(columns[j])
            x = <float>(self.factor * values[j])
            add_list(&own, x, space.score)
            read += own.kept
            above -= fmax(x * <double>own.low, x * <double>own.high)
            open -= fabs(x) * (<double>own.high - own.low)
            if open > target and size > 0:
                continue
            kept = offer_range(space.score, 0, self.n_classes, exclude, n_candidates + 1, 0,
                               space.best, space.ids)
            sorted_heap(space.best, space.ids, kept, space.partial, space.candidates)
            excess = space.partial[n_candidates] + above + rounding
            if size > 0 and excess > space.partial[k - 1] + epsilon:
                # Try again after `open` has dropped by the excess, within limits.
                target = fmin(fmax(open - (excess - space.partial[k - 1] - epsilon), open / 4),
                              open * 0.8)
                continue
            tries += 1
            read += n_candidates * size
            for q in range(size):
                j = space.queue[q]
                own = self.list_of(columns[j])
                add_chosen(&own, <float>(self.factor * values[j]), n_candidates,
                           space.candidates, space.partial)
            kept = 0
            for j in range(n_candidates):
                kept = offer(space.best, space.ids, kept, k, space.partial[j], space.candidates[j])
            if excess < space.best[0] or excess - space.best[0] <= epsilon and epsilon > 0:
                sorted_heap(space.best, space.ids, kept, scores, ids)
                bound[0] = fmax(0, excess - scores[0])
                break
            target = open * 0.6
        self.clear(space)
        return read

    def _top_range(self, Py_ssize_t first, Py_ssize_t last, Space space not None, *, rows, k,
                   exclude, double epsilon, ids_out, scores_out, bounds_out):
        cdef const int64_t[::1] start = rows[0]
        cdef const int32_t[::1] column = rows[1]
        cdef const float[::1] value = rows[2]
        cdef const int32_t[::1] leave = exclude
        cdef int32_t[:, ::1] ids = ids_out
        cdef float[:, ::1] scores = scores_out
        cdef double[::1] bounds = bounds_out
        cdef bint all_classes = leave is None
        cdef Py_ssize_t i, nnz, size = k
        cdef int64_t entries = 0
        cdef Strips strips = space.strips
        with nogil:
            for i in range(first, last):
                nnz = start[i + 1] - start[i]
                if not strips.fits(nnz):
                    strips.run(self.n_classes, self._bias, space.score)
                    strips.give(size, &ids[0, 0], &scores[0, 0])
                entries += self.best_of(
                    nnz, &column[0] + start[i], &value[0] + start[i], size,
                    -1 if all_classes else leave[i], epsilon, space, strips, i, &ids[i, 0],
                    &scores[i, 0], &bounds[i])
            strips.run(self.n_classes, self._bias, space.score)
            strips.give(size, &ids[0, 0], &scores[0, 0])
        return entries

    def top(self, X, k, epsilon=0.0, exclude=None, n_jobs=1):
        """Return the best classes of each row.

        Parameters
        ----------
        X : csr_matrix of float32 of shape (n, n_features)
            Finite, columns sorted within rows.
        k : int
            Number of classes, at least 1.
        epsilon : float, default=0.0
            Largest amount by which an omitted class may exceed the k-th returned one.  The scan of
            a row ends early once this is certain; with 0, once the answer equals a full scan's.
        exclude : ndarray of int32 of shape (n,), optional
            A class to exclude for each row, -1 for none.
        n_jobs : int or None, default=1
            Threads; results do not depend on it.

        Returns
        -------
        ids : ndarray of int32 of shape (n, k)
            Best first, ties by class number; -1 if there are fewer than k.
        scores : ndarray of float32 of shape (n, k)
            Sums of float32, in the order of the features where a row was read in full; -inf where
            there are fewer than k.
        bounds : ndarray of float64 of shape (n,)
            The score of any class is at most ``scores[i, 0] + bounds[i]``; from 0 to epsilon.  The
            bound includes the rounding of omitted features, but not that of the returned scores,
            which is at most (m + 3) 2^-24 sum_f |x_f| max_c |w_cf| for a row with m features.
        entries : int
            Number of weights read or looked up.

        Raises
        ------
        ValueError
            If an argument does not fit; names it.
        """
        if not isinstance(k, (int, np.integer)) or k < 1:
            raise ValueError(f"k is {k!r}, expected an integer of at least 1")
        if not isinstance(epsilon, (int, float, np.number)) or not epsilon >= 0:
            raise ValueError(f"epsilon is {epsilon!r}, expected a number of at least 0")
        rows = checked_rows(X, self.n_features)
        n = X.shape[0]
        if exclude is not None:
            exclude = flat(exclude, np.int32, "exclude")
            if len(exclude) != n:
                raise ValueError(f"exclude has {len(exclude)} entries, expected {n}")
            check_numbers(exclude + np.int64(1), self.n_classes + 1, "exclude plus 1")
        ids, scores = np.empty((n, k), np.int32), np.empty((n, k), np.float32)
        bounds, entries = np.zeros(n), 0
        if n:
            work = partial(self._top_range, rows=rows, k=k, exclude=exclude, epsilon=epsilon,
                           ids_out=ids, scores_out=scores, bounds_out=bounds)
            make = partial(Space, self, k, int(np.diff(rows[0]).max()), n)
            entries = sum(over_examples(work, rows[0] + np.arange(n + 1), n_jobs, make))
        return ids, scores, bounds, entries

    def best_class(self, const int32_t[::1] columns not None, const floating[::1] values not None):
        """Return the best class of one row, in memory kept for the next call.

        Parameters
        ----------
        columns : ndarray of int32 of shape (m,)
        values : ndarray of float32 or float64 of shape (m,)

        Returns
        -------
        int
            The class that :meth:`top` returns; -1 for what this method does not take: rows of no
            features or more than 1024, columns that do not rise or do not exist, values beyond
            ``most``.
        """
        cdef float[ALONE] kept
        cdef Py_ssize_t j, nnz = columns.shape[0]
        cdef int64_t before = -1
        cdef int32_t best = -1
        cdef float score = 0
        cdef double bound = 0
        cdef Space space
        if self._spaces is None or not 0 < nnz <= ALONE or values.shape[0] != nnz:
            return -1
        for j in range(nnz):
            kept[j] = <float>values[j]
            if columns[j] <= before or not fabs(kept[j]) <= self.most:
                return -1
            before = columns[j]
        if before >= self.n_features:
            return -1
        try:
            space = self._spaces.pop()      # another thread has another one
        except IndexError:
            space = Space(self, 1, ALONE, 1)
        self.best_of(nnz, &columns[0], &kept[0], 1, -1, 0, space, space.strips, 0, &best, &score,
                     &bound)
        space.strips.run(self.n_classes, self._bias, space.score)
        space.strips.give(1, &best, &score)
        self._spaces.append(space)
        return best

    def scores(self, X, classes):
        """Return the scores of chosen classes.

        Parameters
        ----------
        X : csr_matrix of float32 of shape (n, n_features)
        classes : ndarray of int32 of shape (n, m)
            Classes of each row; -1 for none.

        Returns
        -------
        ndarray of float32 of shape (n, m)
            Sums of float32 in the order of the features; -inf for -1.

        Raises
        ------
        ValueError
            If an argument does not fit; names it.
        """
        rows = checked_rows(X, self.n_features)
        if not isinstance(classes, np.ndarray) or classes.dtype != np.int32 or classes.ndim != 2:
            raise ValueError("classes: expected an ndarray of int32 of two dimensions")
        if len(classes) != X.shape[0]:
            raise ValueError(f"classes has {len(classes)} rows, expected {X.shape[0]} as X")
        check_numbers(classes + np.int64(1), self.n_classes + 1, "classes plus 1")
        scores_out = np.empty(classes.shape, np.float32)
        cdef const int64_t[::1] start = rows[0]
        cdef const int32_t[::1] column = rows[1]
        cdef const float[::1] value = rows[2]
        cdef const int32_t[:, ::1] chosen = np.maximum(classes, 0)
        cdef float[:, ::1] scores = scores_out
        cdef Py_ssize_t i
        if scores_out.size:
            with nogil:
                for i in range(scores.shape[0]):
                    self.score_chosen(start[i + 1] - start[i], &column[0] + start[i],
                                      &value[0] + start[i], scores.shape[1], &chosen[i, 0],
                                      &scores[i, 0])
        scores_out[classes < 0] = -np.inf
        return scores_out


def flat(x, dtype, what) -> "NDArray[Any]":
    """Check that x is a contiguous 1-D array of ``dtype``, and return it; it may be read-only."""
    checked_array(x, dtype, what)
    return x


def checked_rows(X, Py_ssize_t n_features) -> "tuple[NDArray[Any], ...]":
    """Return the arrays of a CSR matrix in the types of the loops: int64, int32, float32.

    Arrays that would be empty have one spare entry.
    """
    if not sp.issparse(X) or X.format != "csr":
        raise ValueError(f"X: found {type(X).__name__}, expected a sparse matrix in CSR format")
    if X.data.dtype != np.float32:
        raise ValueError(f"X: found values of {X.data.dtype}, expected float32")
    refuse_broken(X, "X")               # also refuses sparse arrays of one dimension
    if X.shape[1] != n_features:
        raise ValueError(f"X has {X.shape[1]} features, expected {n_features}")
    end = X.indptr[X.shape[0]]
    check_finite({"X": X.data[:end]})
    spare = 1 if end == 0 else 0
    start = np.ascontiguousarray(X.indptr, dtype=np.int64)
    column = np.zeros(1, np.int32) if spare else np.ascontiguousarray(X.indices, dtype=np.int32)
    value = np.zeros(1, np.float32) if spare else np.ascontiguousarray(X.data)
    return start, column, value
