"""Single leaves of large trees: stochastic subgradient steps on weights of which most stay zero.

A step changes the weights of the features of one example for the nodes on two paths.  Each feature
has sorted lists of the nodes whose weights were ever changed, one for every 65,536 nodes.  Memory
grows with these lists, and so does the time of a step: all nodes are looked at only where the lists
of an example's features hold a quarter as many entries as there are nodes.
"""

import numpy as np

cimport cython
from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t, uint16_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memmove, memset

from ...extreme.feature_rows cimport room_for
from ...utils.arrays import check_counts, check_finite, checked_array
from .leaf_search cimport LeafSearch
from .leaf_search import LeafSearch, LOSSES


cdef enum:
    WIDTH = 65536       # nodes of a list
    SPARSE = 4          # entries of an example that are worth a look at every node: one in so many
    ENTRY = 10          # bytes


# Of float32.
cdef double MOST = 3.4028234e38


cdef struct Sums:
    # room_for(size) sums of steps, as many sums of steps times the step's number, both in float32,
    # then the nodes less the list's first one, in 16 bits, rising.
    char* block
    int32_t size


cdef inline float* sums_of(const Sums* own) noexcept nogil:
    return <float*>own.block


cdef inline float* moments_of(const Sums* own) noexcept nogil:
    return <float*>own.block + room_for(own.size)


cdef inline uint16_t* nodes_of(const Sums* own) noexcept nogil:
    return <uint16_t*>(<float*>own.block + 2 * room_for(own.size))


cdef inline void move(char* target, Py_ssize_t room, const char* source, Py_ssize_t old,
                      Py_ssize_t first, Py_ssize_t last, Py_ssize_t shift) noexcept nogil:
    # Entries first .. last - 1 of a block with room for `old` go `shift` places up, to another one.
    cdef Py_ssize_t n = last - first
    memmove(target + 8 * room + 2 * (first + shift), source + 8 * old + 2 * first, 2 * n)
    memmove(target + 4 * (room + first + shift), source + 4 * (old + first), 4 * n)
    memmove(target + 4 * (first + shift), source + 4 * first, 4 * n)


cdef inline void add_scores(const Sums* own, double x, double* theta) noexcept nogil:
    cdef const uint16_t* node = nodes_of(own)
    cdef const float* sum = sums_of(own)
    cdef Py_ssize_t e
    for e in range(own.size):
        theta[node[e]] += x * sum[e]


cdef inline void clear_scores(const Sums* own, double* theta) noexcept nogil:
    cdef const uint16_t* node = nodes_of(own)
    cdef Py_ssize_t e
    for e in range(own.size):
        theta[node[e]] = 0


@cython.final
cdef class SparseTree:
    """Weights of a tree's nodes for single leaves, and the steps that move them.

    Nodes are numbered so that parents come first.  A weight takes 10 bytes, and at most an eighth
    more where its feature has many; a feature takes 16 for every 65,536 nodes.

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
    n_entries, nbytes : int
        Weights kept, and the bytes that they take.

    Raises
    ------
    ValueError
        When the sizes do not fit, or a parent does not come before its child.
    MemoryError
        When there is none for so many features.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones(3)
    >>> tree = SparseTree(np.array([-1, 0, 0], dtype=np.int32), one, one, "hamming", 2)
    >>> tree.n_entries
    0
    """

    cdef readonly Py_ssize_t n_features, n_entries
    cdef readonly int64_t steps
    cdef readonly LeafSearch search
    cdef Py_ssize_t blocks
    cdef Sums* lists
    cdef double[::1] square, theta, gain
    cdef int32_t[::1] path, place, missing

    def __cinit__(self, parent, scale, cost, loss, Py_ssize_t n_features):
        self.lists = NULL

    def __init__(self, parent, scale, cost, loss, Py_ssize_t n_features):
        self._free()
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
        # The scale of a step, and that of the scores, which the stored sums hold as well.
        self.square = np.append(0.0, scale[self.search.given[1:]] ** 2)
        self.theta, self.gain = np.zeros(M + 1), np.zeros(M + 1)
        self.path, self.place = np.zeros(M + 1, np.int32), np.zeros(M + 1, np.int32)
        self.missing = np.zeros(M + 1, np.int32)
        self.n_features, self.n_entries, self.steps = n_features, 0, 0
        self.blocks = M // WIDTH + 1
        self.lists = <Sums*>calloc(n_features * self.blocks, sizeof(Sums))
        if self.lists == NULL:
            raise MemoryError(f"no memory for the weights of {n_features} features")

    def __dealloc__(self):
        self._free()

    cdef void _free(self) noexcept:
        cdef Py_ssize_t j
        if self.lists != NULL:
            for j in range(self.n_features * self.blocks):
                free(self.lists[j].block)
            free(self.lists)
            self.lists = NULL

    @property
    def nbytes(self):
        cdef Py_ssize_t j, rooms = 0, n = self.n_features * self.blocks
        for j in range(n):
            rooms += room_for(self.lists[j].size)
        return ENTRY * rooms + n * sizeof(Sums)

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
            Naming the argument that does not fit, or when weights leave the range of float32.
        MemoryError
            When there is no memory for more weights.
        """
        cdef const int64_t[::1] rows = np.ascontiguousarray(indptr, dtype=np.int64)
        cdef const int32_t[::1] columns = np.ascontiguousarray(indices, dtype=np.int32)
        cdef const double[::1] values = np.ascontiguousarray(data, dtype=np.float64)
        cdef const int32_t[::1] truth = np.ascontiguousarray(labels, dtype=np.int32)
        cdef const int64_t[::1] visits = np.ascontiguousarray(order, dtype=np.int64)
        cdef const double[::1] factor
        cdef Py_ssize_t n = rows.shape[0] - 1, k, i, M = self.search.n_nodes - 1
        cdef double share = 1
        _check_rows(np.asarray(rows), np.asarray(columns), values.shape[0], self.n_features)
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
        cdef double* theta = &self.theta[0]
        cdef Py_ssize_t best, k, b, entries = 0
        cdef Sums* own
        self.steps += 1
        self.search.begin(truth)
        for k in range(nnz):
            for b in range(self.blocks):
                own = &self.lists[columns[k] * self.blocks + b]
                add_scores(own, values[k] * past, theta + b * WIDTH)
                entries += own.size
        if SPARSE * entries >= self.search.n_nodes:
            best = self.search.end(True, theta)
            memset(theta, 0, self.search.n_nodes * sizeof(double))
        else:
            for k in range(nnz):
                for b in range(self.blocks):
                    self.touch(&self.lists[columns[k] * self.blocks + b], b * WIDTH)
            best = self.search.end(False, theta)
            for k in range(nnz):
                for b in range(self.blocks):
                    clear_scores(&self.lists[columns[k] * self.blocks + b], theta + b * WIDTH)
        if best != truth:
            self.learn(nnz, columns, values, truth, best, rate)
        return 0

    cdef void touch(self, const Sums* own, Py_ssize_t first) noexcept nogil:
        cdef const uint16_t* node = nodes_of(own)
        cdef Py_ssize_t e
        for e in range(own.size):
            self.search.touch(first + node[e], &self.theta[0])

    cdef int learn(self, Py_ssize_t nnz, const int32_t* columns, const double* values,
                   Py_ssize_t a, Py_ssize_t b, double rate) except -1 nogil:
        """Add an example to the weights of a's path, and take it from those of b's."""
        cdef Py_ssize_t n = 0, k, first, last, block
        # Up to where the paths meet: the node with the larger number is no ancestor of the other.
        while a != b:
            if a > b:
                self.path[n], self.gain[n] = <int32_t>a, rate * self.square[a]
                a = self.search.up[a]
            else:
                self.path[n], self.gain[n] = <int32_t>b, -rate * self.square[b]
                b = self.search.up[b]
            n += 1
        for k in range(nnz):
            first = 0
            while first < n:
                block, last = self.path[first] // WIDTH, first + 1
                while last < n and self.path[last] // WIDTH == block:
                    last += 1
                if self.add(&self.lists[columns[k] * self.blocks + block], values[k], first, last):
                    with gil:
                        raise ValueError(
                            f"the weights of feature {columns[k]} are beyond the range of float32; "
                            "scale the features, or use a larger alpha"
                        )
                first = last
        return 0

    cdef bint add(self, Sums* own, double value, Py_ssize_t first,
                  Py_ssize_t last) except -1 nogil:
        """Add to the weights of path[first:last], which falls; return True where one overflows."""
        cdef const uint16_t* node = nodes_of(own)
        cdef Py_ssize_t j, low, middle, left, size = own.size, n_missing = 0
        cdef uint16_t wanted
        cdef bint beyond = False
        for j in range(first, last):
            wanted = <uint16_t>(self.path[j] % WIDTH)
            low, left = 0, size
            while left > 0:
                middle = left // 2
                if node[low + middle] < wanted:
                    low += middle + 1
                    left -= middle + 1
                else:
                    left = middle
            if low < size and node[low] == wanted:
                beyond |= self.change(own, low, value * self.gain[j])
            else:
                self.place[n_missing], self.missing[n_missing] = <int32_t>low, <int32_t>j
                n_missing += 1
            size = low
        if n_missing:
            beyond |= self.insert(own, value, n_missing)
        return beyond

    cdef inline bint change(self, Sums* own, Py_ssize_t e, double gain) noexcept nogil:
        cdef float* sum = sums_of(own) + e
        cdef float* moment = moments_of(own) + e
        sum[0] = <float>(sum[0] + gain)
        moment[0] = <float>(moment[0] + self.steps * gain)
        return not (fabs(sum[0]) <= MOST and fabs(moment[0]) <= MOST)

    cdef bint insert(self, Sums* own, double value, Py_ssize_t n) except -1 nogil:
        """Add n entries, those that are missing, at their places, which fall."""
        cdef Py_ssize_t old = room_for(own.size), room = room_for(own.size + n), k, end = own.size
        cdef char* block = own.block
        cdef bint beyond = False
        if room != old:
            block = <char*>malloc(ENTRY * room)
            if block == NULL:
                with gil:
                    raise MemoryError(
                        "no memory is left for the weights; use fewer passes or a larger alpha"
                    )
        for k in range(n):
            move(block, room, own.block, old, self.place[k], end, n - k)
            end = self.place[k]
        if block != own.block:
            move(block, room, own.block, old, 0, end, 0)
            free(own.block)
            own.block = block
        own.size += <int32_t>n
        self.n_entries += n
        for k in range(n):
            end = self.place[k] + n - k - 1
            nodes_of(own)[end] = <uint16_t>(self.path[self.missing[k]] % WIDTH)
            sums_of(own)[end] = moments_of(own)[end] = 0
            beyond |= self.change(own, end, value * self.gain[self.missing[k]])
        return beyond

    def to_arrays(self):
        """Return the state, for checkpoints.

        Returns
        -------
        dict of str to ndarray
            ``counts`` of entries by list (a feature has one for every 65,536 nodes), then of each
            entry ``node`` in 16 bits, ``sum`` and ``moment`` in float32.
        """
        cdef Py_ssize_t j, e, position = 0, n = self.n_features * self.blocks
        counts, nodes = np.empty(n, np.int64), np.empty(self.n_entries, np.uint16)
        sums, moments = np.empty(self.n_entries, np.float32), np.empty(self.n_entries, np.float32)
        cdef int64_t[::1] count = counts
        cdef uint16_t[::1] node = nodes
        cdef float[::1] total = sums, moment = moments
        cdef const Sums* own
        for j in range(n):
            own = &self.lists[j]
            count[j] = own.size
            for e in range(own.size):
                node[position] = nodes_of(own)[e]
                total[position] = sums_of(own)[e]
                moment[position] = moments_of(own)[e]
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
        cdef Py_ssize_t j, e, position = 0, n = self.n_features * self.blocks
        size = len(arrays["node"])
        nodes = checked_array(arrays["node"], np.uint16, "node", size)
        sums = checked_array(arrays["sum"], np.float32, "sum", size)
        moments = checked_array(arrays["moment"], np.float32, "moment", size)
        counts = checked_array(arrays["counts"], np.int64, "counts", n)
        check_counts(counts, size, "counts of weights")
        check_finite({"sum": sums, "moment": moments})
        if steps < 0 or counts.max() > WIDTH:
            raise ValueError("weights: expected steps of at least 0, and a node once for a feature")
        lists = np.repeat(np.arange(n), counts)
        places = lists * WIDTH + nodes[:size]
        number = places % (self.blocks * WIDTH)
        if (np.diff(places) <= 0).any():
            raise ValueError("weights: found a node twice for a feature, or nodes that do not rise")
        if size and (number.min() < 1 or number.max() >= self.search.n_nodes):
            raise ValueError(
                f"nodes of weights: expected numbers from 1 to {self.search.n_nodes - 1}"
            )
        cdef const int64_t[::1] count = counts
        cdef const uint16_t[::1] node = nodes
        cdef const float[::1] total = sums, moment = moments
        cdef Sums* own
        self.n_entries, self.steps = 0, steps
        for j in range(n):
            own = &self.lists[j]
            free(own.block)
            own.block, own.size = NULL, 0
            if count[j]:
                own.block = <char*>malloc(ENTRY * room_for(count[j]))
                if own.block == NULL:
                    raise MemoryError(f"no memory for {size} weights")
            own.size = <int32_t>count[j]
            self.n_entries += count[j]
            for e in range(count[j]):
                nodes_of(own)[e] = node[position]
                sums_of(own)[e] = total[position]
                moments_of(own)[e] = moment[position]
                position += 1

    def weights(self, bint averaged=True):
        """Return the weights, multiplied with the nodes' factors, as CSR arrays by feature.

        Parameters
        ----------
        averaged : bool, default=True
            Return the mean of all iterates, in which later ones weigh more, not the last iterate.

        Returns
        -------
        indptr : ndarray of int64
        indices : ndarray of int32
            Not sorted.
        data : ndarray of float32
        """
        cdef Py_ssize_t j, b, e, position = 0
        indptr = np.zeros(self.n_features + 1, np.int64)
        indices, data = np.empty(self.n_entries, np.int32), np.empty(self.n_entries, np.float32)
        cdef int64_t[::1] row = indptr
        cdef int32_t[::1] column = indices
        cdef float[::1] value = data
        cdef double t = max(self.steps, 1), sum
        cdef const Sums* own
        for j in range(self.n_features):
            for b in range(self.blocks):
                own = &self.lists[j * self.blocks + b]
                for e in range(own.size):
                    column[position] = self.search.name[b * WIDTH + nodes_of(own)[e]]
                    sum = sums_of(own)[e]
                    if averaged:
                        # sum_k k w_k = (t + 1) sum - moment
                        sum = 2 / (t * (t + 1)) * ((t + 1) * sum - moments_of(own)[e])
                    else:
                        sum = sum / t
                    value[position] = <float>sum
                    position += 1
            row[j + 1] = position
        return indptr, indices, data


def _check_rows(indptr, indices, size, n_features):
    n = len(indptr) - 1
    if n < 0 or indptr[0] != 0 or indptr[n] != size or len(indices) != size or (
        np.diff(indptr) < 0
    ).any():
        raise ValueError("the rows of the features are not those of a CSR matrix")
    if size and (indices.min() < 0 or indices.max() >= n_features):
        raise ValueError(f"the features have columns beyond {n_features}")
