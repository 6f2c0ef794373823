"""Two sums for each stored pair of a feature and a node, in sorted lists by feature."""

import numpy as np

cimport cython
from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t, uint16_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memmove
from structsolve.utils.allocate cimport allocated

from structsolve.plugins.extreme.weights.feature_rows cimport room_for
from structsolve.utils.arrays import check_counts, check_finite, checked_array


cdef enum:
    ENTRY = 10          # bytes

# Of float32.
cdef double MOST = 3.4028234e38


cdef inline void move(char* target, Py_ssize_t room, const char* source, Py_ssize_t old,
                      Py_ssize_t first, Py_ssize_t last, Py_ssize_t shift) noexcept nogil:
    # Copy entries first .. last - 1 of a block with room for `old`, `shift` places up, to another.
    cdef Py_ssize_t n = last - first
    memmove(target + 8 * room + 2 * (first + shift), source + 8 * old + 2 * first, 2 * n)
    memmove(target + 4 * (room + first + shift), source + 4 * (old + first), 4 * n)
    memmove(target + 4 * (first + shift), source + 4 * first, 4 * n)


cdef inline bint change(Sums* own, Py_ssize_t e, double gain, int64_t number) noexcept nogil:
    cdef float* sum = sums_of(own) + e
    cdef float* moment = moments_of(own) + e
    sum[0] = <float>(sum[0] + gain)
    moment[0] = <float>(moment[0] + number * gain)
    return not (fabs(sum[0]) <= MOST and fabs(moment[0]) <= MOST)


@cython.final
cdef class NodeSums:
    """Sums of steps, and sums of steps times their number, by feature and node.

    A pair takes 10 bytes, and at most an eighth more if its feature has many; a feature takes 16
    bytes for every 65,536 nodes.

    Parameters
    ----------
    n_features : int
    n_nodes : int
        Less than 2**31; node 0 never has a sum.

    Attributes
    ----------
    n_entries, nbytes : int
        Number of stored pairs, and their size in bytes.

    Raises
    ------
    ValueError
        If a size is out of range.
    MemoryError
        If there is no memory for all features.
    """

    def __cinit__(self, Py_ssize_t n_features, Py_ssize_t n_nodes):
        self.lists = NULL
        if n_features < 1 or not 1 <= n_nodes < 2**31:
            raise ValueError(f"n_features is {n_features}, n_nodes {n_nodes}: expected 1 at least")
        self.n_features, self.n_nodes, self.n_entries = n_features, n_nodes, 0
        self.blocks = (n_nodes - 1) // WIDTH + 1
        self.place, self.missing = np.zeros(n_nodes, np.int32), np.zeros(n_nodes, np.int32)
        self.lists = <Sums*>allocated(calloc(n_features * self.blocks, sizeof(Sums)), b"weights")

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
    def nbytes(self) -> int:
        cdef Py_ssize_t j, rooms = 0, n = self.n_features * self.blocks
        for j in range(n):
            rooms += room_for(self.lists[j].size)
        return ENTRY * rooms + n * sizeof(Sums)

    cdef Py_ssize_t score(self, Py_ssize_t nnz, const int32_t* columns, const double* values,
                          double factor, double* theta) noexcept nogil:
        cdef Py_ssize_t k, b, e, read = 0
        cdef const Sums* own
        cdef const uint16_t* node
        cdef const float* sum
        cdef double x
        cdef double* part
        for k in range(nnz):
            x = values[k] * factor
            for b in range(self.blocks):
                own = &self.lists[columns[k] * self.blocks + b]
                node, sum, part = nodes_of(own), sums_of(own), theta + b * WIDTH
                for e in range(own.size):
                    part[node[e]] += x * sum[e]
                read += own.size
        return read

    cdef void clear(self, Py_ssize_t nnz, const int32_t* columns, double* theta) noexcept nogil:
        cdef Py_ssize_t k, b, e
        cdef const Sums* own
        for k in range(nnz):
            for b in range(self.blocks):
                own = &self.lists[columns[k] * self.blocks + b]
                for e in range(own.size):
                    theta[b * WIDTH + nodes_of(own)[e]] = 0

    cdef bint add(self, Py_ssize_t feature, double value, Py_ssize_t n, const int32_t* path,
                  const double* gain, int64_t number) except -1 nogil:
        cdef Py_ssize_t first = 0, last, block
        cdef bint beyond = False
        while first < n:
            block, last = path[first] // WIDTH, first + 1
            while last < n and path[last] // WIDTH == block:
                last += 1
            beyond |= self.add_to(&self.lists[feature * self.blocks + block], value, last - first,
                                  path + first, gain + first, number)
            first = last
        return beyond

    cdef bint add_to(self, Sums* own, double value, Py_ssize_t n, const int32_t* path,
                     const double* gain, int64_t number) except -1 nogil:
        cdef const uint16_t* node = nodes_of(own)
        cdef Py_ssize_t j, low, middle, left, size = own.size, n_missing = 0
        cdef uint16_t wanted
        cdef bint beyond = False
        for j in range(n):
            wanted = <uint16_t>(path[j] % WIDTH)
            low, left = 0, size
            while left > 0:
                middle = left // 2
                if node[low + middle] < wanted:
                    low += middle + 1
                    left -= middle + 1
                else:
                    left = middle
            if low < size and node[low] == wanted:
                beyond |= change(own, low, value * gain[j], number)
            else:
                self.place[n_missing], self.missing[n_missing] = <int32_t>low, <int32_t>j
                n_missing += 1
            size = low
        if n_missing:
            beyond |= self.insert(own, value, n_missing, path, gain, number)
        return beyond

    cdef bint insert(self, Sums* own, double value, Py_ssize_t n, const int32_t* path,
                     const double* gain, int64_t number) except -1 nogil:
        """Insert n missing entries at their places, which are given in descending order."""
        cdef Py_ssize_t old = room_for(own.size), room = room_for(own.size + n), k, end = own.size
        cdef char* block = own.block
        cdef bint beyond = False
        if room != old:
            block = <char*>allocated(
                malloc(ENTRY * room), b"more weights; use fewer passes or a larger alpha")
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
            nodes_of(own)[end] = <uint16_t>(path[self.missing[k]] % WIDTH)
            sums_of(own)[end] = moments_of(own)[end] = 0
            beyond |= change(own, end, value * gain[self.missing[k]], number)
        return beyond

    def to_arrays(self):
        """Return the state, for checkpoints.

        Returns
        -------
        dict of str to ndarray
            ``counts`` of entries by list (a feature has one for every 65,536 nodes); for each entry
            ``node`` in 16 bits, ``sum`` and ``moment`` in float32.
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

    def restore(self, arrays):
        """Continue from a checkpoint.

        Parameters
        ----------
        arrays : mapping of str to ndarray
            As :meth:`to_arrays` returned them.

        Raises
        ------
        ValueError
            If the arrays belong to another problem.
        """
        cdef Py_ssize_t j, e, position = 0, n = self.n_features * self.blocks
        size = len(arrays["node"])
        nodes = checked_array(arrays["node"], np.uint16, "node", size)
        sums = checked_array(arrays["sum"], np.float32, "sum", size)
        moments = checked_array(arrays["moment"], np.float32, "moment", size)
        counts = checked_array(arrays["counts"], np.int64, "counts", n)
        check_counts(counts, size, "counts of weights")
        check_finite({"sum": sums, "moment": moments})
        if counts.max() > WIDTH:
            raise ValueError("counts of weights: found a node twice for a feature")
        lists = np.repeat(np.arange(n), counts)
        places = lists * WIDTH + nodes[:size]
        number = places % (self.blocks * WIDTH)
        if (np.diff(places) <= 0).any():
            raise ValueError("weights: found a node twice for a feature, or nodes that do not rise")
        if size and (number.min() < 1 or number.max() >= self.n_nodes):
            raise ValueError(f"nodes of weights: expected numbers from 1 to {self.n_nodes - 1}")
        cdef const int64_t[::1] count = counts
        cdef const uint16_t[::1] node = nodes
        cdef const float[::1] total = sums, moment = moments
        cdef Sums* own
        self.n_entries = 0
        for j in range(n):
            own = &self.lists[j]
            free(own.block)
            own.block, own.size = NULL, 0
            if count[j]:
                own.block = <char*>allocated(malloc(ENTRY * room_for(count[j])), b"weights")
            own.size = <int32_t>count[j]
            self.n_entries += count[j]
            for e in range(count[j]):
                nodes_of(own)[e] = node[position]
                sums_of(own)[e] = total[position]
                moments_of(own)[e] = moment[position]
                position += 1

    def mean(self, int64_t number, names, bint averaged=True):
        """Return sums divided by the number of steps, as CSR arrays by feature.

        Parameters
        ----------
        number : int
            Number of steps, at least 1.
        names : ndarray of int32 of shape (n_nodes,)
            Numbers of the nodes in the result.
        averaged : bool, default=True
            Return the mean of all iterates, weighted towards later ones, not the last iterate.

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
        cdef double t = max(number, 1), sum
        cdef const int32_t[::1] name = checked_array(names, np.int32, "names", self.n_nodes)
        cdef const Sums* own
        for j in range(self.n_features):
            for b in range(self.blocks):
                own = &self.lists[j * self.blocks + b]
                for e in range(own.size):
                    column[position] = name[b * WIDTH + nodes_of(own)[e]]
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
