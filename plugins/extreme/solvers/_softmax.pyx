"""Stochastic gradient descent for softmax regression with very many classes.

A row's gradient is computed over the most frequent classes and one random block of the others.
Frequent features store a weight for each class.  Other features store a list of classes, and their
gradients are rounded at random so that few classes enter it.
"""

import numpy as np
from scipy.sparse import csr_matrix

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset
from structsolve.utils.allocate cimport allocated

from structsolve.utils.arrays import check_numbers, check_offsets
from structsolve.plugins.extreme.weights.feature_lists import flat
from structsolve.plugins.extreme.weights.sorted_row cimport (
    SortedRow, add_sorted, in_tail, prefetch_parts
)
from structsolve.plugins.extreme.weights.weight_table cimport SS_PREFETCH, Slot

cdef enum:
    AHEAD = 3               # features whose weights are prefetched
    # Rows one after the other share a block, which stays in the cache: up to so many, and fewer
    # where a block would come less than so many times a pass.
    MOST_SHARING = 256
    TIMES = 16

cdef const char* LEFT = b"the weights; use fewer features or classes"


cdef extern from "math.h" nogil:
    float logf(float x)

cdef extern from "softmax_loops.h" nogil:
    ctypedef struct ss_barrier:
        pass
    enum: SS_LANES
    void ss_add(Py_ssize_t n, float a, const float* w, float* out)
    void ss_shift(Py_ssize_t n, float scale, const float* bias, float more, float* x)
    float ss_softmax(Py_ssize_t n, float* x)
    Py_ssize_t ss_above(Py_ssize_t n, const float* w, float scale, double least)
    void ss_keep(Py_ssize_t n, const int32_t* place, const float* w, float scale, double least,
                 int32_t* number, float* value)
    float ss_clipped(const float* x, float most)
    uint64_t ss_draw(uint64_t seed, uint64_t row, uint64_t purpose)
    void* ss_zeroed(size_t n, size_t size)
    void ss_wait(ss_barrier* barrier, long threads)


cdef struct Gradient:
    # Gradient of one row of a batch, by the scores of its classes.
    float* part         # head and block, `width` entries, and SS_LANES for the own class
    int32_t* ids        # classes of the rounded gradient
    float* rounded
    Py_ssize_t n_rounded
    int32_t base, own   # first class of the block; true class if outside of head and block, or -1
    float own_part, weight, loss
    int64_t row, read


cdef class SoftmaxWeights:
    """Weights of softmax regression, and their gradient steps.

    Classes are numbered so that the ``head`` comes first, then blocks of ``block`` classes.

    Parameters
    ----------
    rows : tuple of indptr int64, indices int32, data float32
        Rows of features, CSR.
    labels : ndarray of int32 of shape (n,)
    weights : ndarray of float32 of shape (n,)
        Weight of each example, about 1.
    intercept : ndarray of float32 of shape (head + blocks * block,)
        -inf for unused numbers.
    head, block : int
        ``block`` is 0 if the head holds all classes.
    dense : ndarray of bool of shape (n_features,)
        Features that store a weight for each class.
    batch : int
        Number of rows whose gradients are computed at the same weights.
    rounding : float
        In lists, gradient entries below it are rounded to it or 0 at random, with the same mean; 0
        disables rounding.
    seed : int

    Raises
    ------
    ValueError
        If sizes do not match, or a number is out of range.
    MemoryError
        If there is no memory for the weights of dense features.
    """

    cdef readonly Py_ssize_t n_features, n_classes, head, block, blocks, width, batch, sharing
    cdef readonly double scale
    cdef double rounding
    cdef float each
    cdef uint64_t seed
    cdef const int64_t[::1] indptr
    cdef const int32_t[::1] indices, labels
    cdef const float[::1] data, weights, intercept
    cdef SortedRow* rows
    cdef Gradient* gradients
    cdef float* parts
    cdef float* dense
    cdef float* rounded
    cdef int32_t* ids
    cdef ss_barrier barrier
    cdef bint failed, made

    def __cinit__(self, *args, **kwargs):
        self.rows = NULL
        self.gradients = NULL
        self.parts = self.rounded = self.dense = NULL
        self.ids = NULL
        self.made = False

    def __init__(self, rows, labels, weights, intercept, head, block, dense, batch, rounding, seed):
        cdef Py_ssize_t f, s, stride
        if self.rows != NULL:
            raise ValueError("SoftmaxWeights: made already")
        indptr, indices, data = rows
        indptr = np.asarray(indptr, np.int64)
        indices, data = flat(indices, np.int32, "indices"), flat(data, np.float32, "data")
        self.indptr, self.indices, self.data = indptr, indices, data
        self.labels, self.weights, self.intercept = labels, weights, intercept
        dense = flat(dense, np.bool_, "dense")
        self.head, self.block, self.batch = head, block, batch
        self.n_features, self.n_classes = len(dense), len(intercept)
        n = len(labels)
        check_offsets(indptr, len(indices), 0, "indptr")
        check_numbers(indices, self.n_features, "indices")
        check_numbers(labels, self.n_classes, "labels")
        left = self.n_classes - self.head
        if len(indptr) != n + 1 or len(data) != len(indices) or len(weights) != n:
            raise ValueError("rows, labels and weights: expected as many labels as rows")
        if not 0 <= rounding < np.inf:
            raise ValueError(f"rounding is {rounding}, expected a finite number of at least 0")
        if self.n_classes >= 2**31 or self.head < 1 or self.block < 0 or left < 0 or batch < 1 or (
            left % max(self.block, 1) or (self.block < 1 and left)
        ):
            raise ValueError(
                f"head is {head}, block {block}, batch {batch}: expected parts of "
                f"{self.n_classes} classes"
            )
        self.blocks = left // self.block if self.block else 0
        self.sharing = max(1, min(MOST_SHARING, n // (TIMES * max(1, self.blocks))))
        self.width = self.head + (self.block if self.blocks else 0)
        self.width = (self.width + SS_LANES - 1) // SS_LANES * SS_LANES
        self.rounding, self.seed, self.scale = rounding, seed, 1.0
        self.each = 1.0 / max(left, 1)
        self.rows = <SortedRow*>allocated(ss_zeroed(self.n_features, sizeof(SortedRow)), LEFT)
        self.gradients = <Gradient*>allocated(calloc(self.batch, sizeof(Gradient)), LEFT)
        stride = self.width + SS_LANES
        self.parts = <float*>allocated(ss_zeroed(self.batch, stride * sizeof(float)), LEFT)
        self.rounded = <float*>allocated(calloc(self.batch, stride * sizeof(float)), LEFT)
        self.ids = <int32_t*>allocated(calloc(self.batch, stride * sizeof(int32_t)), LEFT)
        for s in range(self.batch):
            self.gradients[s].part = self.parts + s * stride
            self.gradients[s].rounded = self.rounded + s * stride
            self.gradients[s].ids = self.ids + s * stride
        frequent = np.flatnonzero(dense)
        stride = (self.n_classes + SS_LANES - 1) // SS_LANES * SS_LANES
        self.dense = <float*>allocated(ss_zeroed(len(frequent), stride * sizeof(float)), LEFT)
        for s, f in enumerate(frequent):
            self.rows[f].dense = self.dense + s * stride
            self.rows[f].size = <int32_t>self.n_classes
        self.made = True

    cdef int check_made(self) except -1:
        if not self.made:
            raise ValueError("SoftmaxWeights: not made yet, or its making failed")
        return 0

    def __dealloc__(self):
        cdef Py_ssize_t f
        if self.rows != NULL:
            for f in range(self.n_features):
                free(self.rows[f].slots)
        free(self.rows)
        free(self.gradients)
        free(self.parts)
        free(self.rounded)
        free(self.ids)
        free(self.dense)

    @property
    def nbytes(self):
        """Size of the weights in bytes, with free places of lists."""
        cdef Py_ssize_t f, total = self.n_features * sizeof(SortedRow)
        self.check_made()
        for f in range(self.n_features):
            if self.rows[f].dense != NULL:
                total += self.n_classes * sizeof(float)
            else:
                total += self.rows[f].capacity * sizeof(Slot)
        return total

    def begin(self):
        """Reset the out-of-memory flag; call it before threads call :meth:`steps`."""
        self.failed = False

    def steps(self, const int64_t[::1] order not None, Py_ssize_t first, Py_ssize_t last,
              uint64_t pass_, rates, double alpha, double[::1] losses not None, int thread,
              int threads):
        """Take gradient steps on the rows ``order[first:last]``, as one of several threads.

        All threads call it with the same arguments, except for their own number.  One thread
        computes each row's gradient, and one thread updates each feature's weights, in the order of
        the rows.  The answer is the same for any number of threads.

        Parameters
        ----------
        order : ndarray of int64
            Numbers of rows.
        first, last : int
        pass_ : int
            Number of the pass.  Random draws depend on it, the row and the seed.
        rates : tuple of two float
            Step sizes at the first row of `order` and after the last.
        alpha : float
            Weights shrink by ``rate * alpha`` for each row.
        losses : ndarray of float64
            Losses in the order of `order`; this thread writes those of its rows.
        thread, threads : int

        Returns
        -------
        int
            Number of weights read by this thread.
        """
        cdef Py_ssize_t b, s, many, n = order.shape[0]
        rate_of_first, rate_after = rates
        cdef double rate = rate_of_first, fall = rate_after - rate, eta, shrink
        cdef int64_t read = 0
        cdef uint64_t seed = ss_draw(self.seed, pass_, 7)
        self.check_made()
        if not 0 <= first <= last <= n == losses.shape[0] or not 0 <= thread < threads:
            raise ValueError(f"first is {first}, last {last}: expected a part of {n} rows")
        check_numbers(order[first:last], self.labels.shape[0], "order")
        with nogil:
            b = first
            while b < last:
                many = min(self.batch, last - b)
                eta = rate + fall * b / n
                s = thread
                while s < many:
                    self.fetch(&order[b + s], last - b - s, threads)
                    self.take(&self.gradients[s], order[b + s], seed, (b + s) // self.sharing)
                    losses[b + s] = self.gradients[s].loss
                    read += self.gradients[s].read
                    s += threads
                ss_wait(&self.barrier, threads)
                shrink = 1 - min(eta * alpha * many, 0.5)
                self.move(many, eta / (self.scale * shrink), thread, threads)
                ss_wait(&self.barrier, threads)
                if thread == 0:
                    self.scale *= shrink
                ss_wait(&self.barrier, threads)
                if self.failed:
                    break
                b += many
            if self.scale < 1e-6:
                self.settle(thread, threads)
        if self.failed:
            raise MemoryError("no memory is left for the weights; use fewer features or classes")
        return read

    cdef void settle(self, int thread, int threads) noexcept nogil:
        """Multiply the weights by the common factor, and reset it to 1."""
        cdef Py_ssize_t f, j
        cdef float factor = self.scale
        cdef SortedRow* row
        ss_wait(&self.barrier, threads)
        f = thread
        while f < self.n_features:
            row = &self.rows[f]
            for j in range(row.size):
                if row.dense != NULL:
                    row.dense[j] *= factor
                else:
                    row.slots[j].w *= factor
            f += threads
        ss_wait(&self.barrier, threads)
        if thread == 0:
            self.scale = 1.0
        ss_wait(&self.barrier, threads)

    cdef void fetch(self, const int64_t* order, Py_ssize_t left, Py_ssize_t step) noexcept nogil:
        """Prefetch this thread's next rows: where they are, then features, then whose weights."""
        cdef Py_ssize_t k
        if 3 * step < left:
            SS_PREFETCH(&self.indptr[order[3 * step]])
        if 2 * step < left:
            k = self.indptr[order[2 * step]]
            if k < self.indptr[order[2 * step] + 1]:
                SS_PREFETCH(&self.indices[k])
                SS_PREFETCH(&self.data[k])
        if step < left:
            for k in range(self.indptr[order[step]], self.indptr[order[step] + 1]):
                SS_PREFETCH(&self.rows[self.indices[k]])

    cdef void fetch_weights(self, Py_ssize_t k, int32_t base, int32_t own) noexcept nogil:
        """Prefetch a feature's weights of the head, of a block, and of class `own` unless -1."""
        cdef Py_ssize_t j = 0
        cdef const SortedRow* row = &self.rows[self.indices[k]]
        if row.dense == NULL:
            prefetch_parts(row, base, own, <int32_t>self.head, self.each)
            return
        while j < self.head:                            # all cache lines, so that misses overlap
            SS_PREFETCH(row.dense + j)
            j += SS_LANES
        j = 0
        while j < self.block:
            SS_PREFETCH(row.dense + base + j)
            j += SS_LANES
        if own >= 0:
            SS_PREFETCH(row.dense + own)

    cdef void take(self, Gradient* taken, int64_t i, uint64_t seed, uint64_t drawn) noexcept nogil:
        """Compute the gradient of a row with respect to its scores, with block number `drawn`."""
        cdef Py_ssize_t k, j, width = self.width, head = self.head, block = self.block
        cdef Py_ssize_t first = self.indptr[i], last = self.indptr[i + 1]
        cdef int32_t y = self.labels[i], base = <int32_t>head, e
        cdef float* part = taken.part
        cdef float a, scale = self.scale, more = 0, own = 0, log_sum, target, each = self.each
        cdef const SortedRow* row
        memset(part, 0, (width + SS_LANES) * sizeof(float))
        if self.blocks:
            base += <int32_t>((ss_draw(seed, drawn, 0) >> 11) % <uint64_t>self.blocks * block)
            more = logf(<float>self.blocks)
        taken.row, taken.read, taken.weight, taken.base = i, 0, self.weights[i], base
        taken.own = -1 if y < head or base <= y < base + block else y
        for k in range(first, min(first + AHEAD, last)):
            self.fetch_weights(k, base, taken.own)
        for k in range(first, last):
            if k + AHEAD < last:
                self.fetch_weights(k + AHEAD, base, taken.own)
            row, a = &self.rows[self.indices[k]], self.data[k]
            if row.dense != NULL:
                ss_add(head, a, row.dense, part)
                if self.blocks:
                    ss_add(block, a, row.dense + base, part + head)
                taken.read += head + block
                continue
            taken.read += row.first
            for e in range(row.first):
                part[row.slots[e].c] += a * row.slots[e].w
            e = in_tail(row, base, <int32_t>head, each)
            while e < row.size and row.slots[e].c < base + block:
                part[row.slots[e].c - base + head] += a * row.slots[e].w
                e, taken.read = e + 1, taken.read + 1
        ss_shift(head, scale, &self.intercept[0], 0, part)
        if self.blocks:
            ss_shift(block, scale, &self.intercept[base], more, part + head)
        for j in range(head + (block if self.blocks else 0), width + SS_LANES):
            part[j] = -INFINITY
        if y < head:
            j = y
        elif taken.own < 0:
            j = y - base + head
            part[j] -= more
        else:                           # always included, after the head and the block
            for k in range(first, last):
                row = &self.rows[self.indices[k]]
                if row.dense != NULL:
                    own += self.data[k] * row.dense[y]
                    continue
                e = in_tail(row, y, <int32_t>head, each)
                if e < row.size and row.slots[e].c == y:
                    own += self.data[k] * row.slots[e].w
            j = width
            part[j] = scale * own + self.intercept[y]
        target = part[j]
        log_sum = ss_softmax(width + SS_LANES, part)
        taken.loss = taken.weight * (log_sum - target)
        part[j] -= 1
        taken.own_part = part[width]
        taken.n_rounded = self.round(taken, j, seed)

    cdef Py_ssize_t round(self, Gradient* taken, Py_ssize_t own, uint64_t seed) noexcept nogil:
        """Draw the gradient for lists: the true class, and few others by systematic sampling.

        Each entry has the same expectation as without rounding.
        """
        cdef Py_ssize_t group, first, j, n = 0, width = self.width, head = self.head
        cdef float tau = self.rounding, passed = 0, step, part
        cdef float next = tau * ((ss_draw(seed, taken.row, 1) >> 40) * <float>(1.0 / 16777216.0))
        for group in range(width // SS_LANES):
            first = group * SS_LANES
            if tau > 0 and not first <= own < first + SS_LANES:
                step = ss_clipped(taken.part + first, tau)
                if passed + step < next:
                    passed += step
                    continue
            for j in range(first, first + SS_LANES):
                part = taken.part[j]
                if j == own:
                    pass
                elif tau <= 0:
                    if part == 0:
                        continue
                else:
                    passed += min(part, tau)
                    if passed >= next:
                        next += tau
                        part = max(part, tau)
                    elif part < tau:
                        continue
                taken.ids[n] = <int32_t>(j if j < head else taken.base + j - head)
                taken.rounded[n] = part
                n += 1
        if taken.own >= 0:              # to its place, as classes ascend
            j = n
            while j > 0 and taken.ids[j - 1] > taken.own:
                taken.ids[j], taken.rounded[j] = taken.ids[j - 1], taken.rounded[j - 1]
                j -= 1
            taken.ids[j], taken.rounded[j] = taken.own, taken.own_part
            n += 1
        return n

    cdef void move(self, Py_ssize_t many, double step, int thread, int threads) noexcept nogil:
        """Update the weights of this thread's features with the gradients of a batch."""
        cdef Py_ssize_t s, k, head = self.head, block = self.block if self.blocks else 0
        cdef int32_t f
        cdef float a
        cdef Gradient* taken
        cdef SortedRow* row
        for s in range(many):
            taken = &self.gradients[s]
            for k in range(self.indptr[taken.row], self.indptr[taken.row + 1]):
                f = self.indices[k]
                if threads > 1 and (<uint32_t>f * <uint32_t>2654435769 >> 16) % threads != thread:
                    continue
                row, a = &self.rows[f], -step * taken.weight * self.data[k]
                if row.dense != NULL:
                    ss_add(head, a, taken.part, row.dense)
                    ss_add(block, a, taken.part + head, row.dense + taken.base)
                    if taken.own >= 0:
                        row.dense[taken.own] += a * taken.own_part
                elif not add_sorted(row, taken.ids, taken.rounded, taken.n_rounded, a,
                                    <int32_t>head, self.each):
                    self.failed = True
                    return

    def entries(self, double least, order=None, bint scaled=True):
        """Return the weights above a size.

        Parameters
        ----------
        least : float
            Only weights of greater absolute value are returned; if negative, all stored weights
            are, with zeros.
        order : ndarray of int32, optional
            Other numbers for classes: ``order[c]`` is the number of class c.  Classes without one
            have no weights.
        scaled : bool, default=True
            Whether to multiply the weights by the common factor `scale`.

        Returns
        -------
        indptr : ndarray of int64 of shape (n_features + 1,)
        classes : ndarray of int32
            For each feature ascending; with an `order`, those of rare features are not sorted.
        weights : ndarray of float32
        """
        cdef Py_ssize_t f, j, size = 0
        cdef float scale = self.scale if scaled else 1.0
        cdef const SortedRow* row
        self.check_made()
        order = np.arange(self.n_classes, dtype=np.int32) if order is None else order
        order = flat(order, np.int32, "order")
        check_numbers(order, self.n_classes, "order")
        classes = np.full(self.n_classes, -1, np.int32)
        classes[order] = np.arange(len(order))
        left = np.asarray(self.intercept)[classes < 0]
        if len(order) + len(left) != self.n_classes or (
            len(left) and (least < 0 or left.max() > -np.inf)
        ):
            raise ValueError("order: found a number twice, or none for a class with weights")
        cdef const int32_t[::1] class_of = classes, number_of = order
        starts = np.zeros(self.n_features + 1, np.int64)
        cdef int64_t[::1] start = starts
        for f in range(self.n_features):
            row = &self.rows[f]
            if row.dense != NULL:
                size += ss_above(row.size, row.dense, scale, least)
            else:
                for j in range(row.size):
                    size += abs(scale * row.slots[j].w) > least
            start[f + 1] = size
        numbers, values = np.empty(size + 1, np.int32), np.empty(size + 1, np.float32)
        cdef int32_t[::1] number = numbers
        cdef float[::1] value = values
        for f in range(self.n_features):
            row, size = &self.rows[f], start[f]
            if row.dense != NULL:
                ss_keep(
                    number_of.shape[0], &number_of[0], row.dense, scale, least, &number[size],
                    &value[size],
                )
                continue
            for j in range(row.size):
                number[size], value[size] = class_of[row.slots[j].c], scale * row.slots[j].w
                size += abs(value[size]) > least
        size = start[self.n_features]
        return starts, numbers[:size], values[:size]

    def load(self, const int64_t[::1] start not None, const int32_t[::1] number not None,
             const float[::1] value not None, double scale=1.0):
        """Replace the weights by those returned by :meth:`entries`.

        Raises
        ------
        ValueError
            If shapes do not match.
        """
        cdef Py_ssize_t f, j
        cdef SortedRow* row
        self.check_made()
        check_offsets(start, len(number), 0, "start")
        check_numbers(number, self.n_classes, "classes")
        if len(start) != self.n_features + 1 or len(value) != len(number) or not scale > 0:
            raise ValueError("weights: found those of other features")
        shape = self.n_features, self.n_classes
        matrix = csr_matrix((value, number, start), shape=shape, copy=True)
        matrix.sum_duplicates()         # sorts, too
        start, number = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
        value = matrix.data
        for f in range(self.n_features):
            row = &self.rows[f]
            if row.dense != NULL:
                memset(row.dense, 0, self.n_classes * sizeof(float))
                for j in range(start[f], start[f + 1]):
                    row.dense[number[j]] = value[j]
                continue
            row.size = row.first = 0
            if start[f] < start[f + 1] and not add_sorted(
                row, &number[start[f]], &value[start[f]], start[f + 1] - start[f], 1,
                <int32_t>self.head, self.each,
            ):
                raise MemoryError(f"no memory for {LEFT.decode()}")
        self.scale = scale
