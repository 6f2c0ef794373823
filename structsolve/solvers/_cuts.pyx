"""Sparse cuts of every example in part space: the dual variables and the cache of past cuts."""

import numpy as np

from ..utils.arrays import check_counts, check_finite

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memmove
from ..utils.allocate cimport allocated


cdef class CutStore:
    """One list of sparse cuts per example, each with its weight in the dual variable ``p_i``.

    A cut takes memory for the parts in which it differs from the truth; nothing has the size of
    ``w``.

    Parameters
    ----------
    n : int
        Number of examples.
    """

    def __cinit__(self, Py_ssize_t n):
        if not 0 <= n < 2**40:
            raise ValueError(f"n is {n}, expected a number of examples")
        self.lists = <CutList*>allocated(calloc(n + 1, sizeof(CutList)), b"lists of cuts")
        self.n = n

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.lists != NULL:
            for i in range(self.n):
                free(self.lists[i].memory)
                free(self.lists[i].gram)
            free(self.lists)

    cdef Py_ssize_t heads(self, Py_ssize_t i, CutHead** out) noexcept nogil:
        cdef CutList* cuts = &self.lists[i]
        cdef char* position = cuts.memory
        cdef Py_ssize_t j
        for j in range(cuts.count):
            out[j] = <CutHead*>position
            position += cut_bytes(out[j].nnz)
        return cuts.count

    cdef CutHead* append(self, Py_ssize_t i, const Cut* cut) except NULL nogil:
        cdef CutList* cuts = &self.lists[i]
        cdef Py_ssize_t size = cut_bytes(cut.nnz), wanted
        cdef CutHead* head
        if cuts.used + size > cuts.capacity:
            wanted = cuts.used + size + (cuts.used >> 1)
            cuts.memory = <char*>allocated(realloc(cuts.memory, wanted), b"one more cut")
            cuts.capacity = wanted
        head = <CutHead*>(cuts.memory + cuts.used)
        head.key = cut.key
        head.b = cut.b
        head.weight = 0
        head.nnz = <int32_t>cut.nnz
        head.age = 0
        memcpy(cut_values(head), cut.value, cut.nnz * sizeof(double))
        memcpy(cut_index(head), cut.index, cut.nnz * sizeof(int))
        if cut.nnz % 2:
            cut_index(head)[cut.nnz] = 0
        cuts.used += size
        cuts.count += 1
        return head

    cdef double* gram_room(self, Py_ssize_t i) except NULL nogil:
        cdef CutList* cuts = &self.lists[i]
        cdef Py_ssize_t side, j
        cdef double* gram
        if cuts.count < cuts.side:
            return cuts.gram
        side = cuts.count + (cuts.count >> 1) + 2
        gram = <double*>allocated(malloc(side * side * sizeof(double)), b"one more cut")
        for j in range(cuts.count if cuts.gram != NULL else 0):
            memcpy(gram + j * side, cuts.gram + j * cuts.side, cuts.count * sizeof(double))
        free(cuts.gram)
        cuts.gram = gram
        cuts.side = side
        return gram

    cdef void prune(self, Py_ssize_t i, int max_age) noexcept nogil:
        cdef CutList* cuts = &self.lists[i]
        cdef char* source = cuts.memory
        cdef char* target = cuts.memory
        cdef Py_ssize_t j, k, size, kept = 0, total = cuts.count
        cdef CutHead* head
        cdef double* gram = cuts.gram
        for j in range(total):
            head = <CutHead*>source
            size = cut_bytes(head.nnz)
            if head.weight > 0:
                head.age = 0
            else:
                head.age += 1
            if head.age <= max_age and head.weight >= 0:
                if target != source:
                    memmove(target, source, size)
                    if gram != NULL:
                        memmove(gram + kept * cuts.side, gram + j * cuts.side,
                                total * sizeof(double))
                        for k in range(total):
                            gram[k * cuts.side + kept] = gram[k * cuts.side + j]
                target += size
                kept += 1
            source += size
        cuts.used = target - cuts.memory
        cuts.count = kept

    @property
    def nbytes(self):
        """Bytes of all lists, spare capacity included."""
        cdef Py_ssize_t i, total = self.n * sizeof(CutList)
        for i in range(self.n):
            total += self.lists[i].capacity + 8 * self.lists[i].side * self.lists[i].side
        return total

    @property
    def count(self):
        """Number of cuts kept."""
        cdef Py_ssize_t i, total = 0
        for i in range(self.n):
            total += self.lists[i].count
        return total

    def to_arrays(self):
        """Return the lists as arrays (for checkpoints): counts, heads and entries."""
        cdef Py_ssize_t i, j, k, c = 0, e = 0, total = 0, entries = 0
        cdef char* position
        cdef CutHead* head
        for i in range(self.n):
            position = self.lists[i].memory
            for j in range(self.lists[i].count):
                entries += (<CutHead*>position).nnz
                position += cut_bytes((<CutHead*>position).nnz)
            total += self.lists[i].count
        counts = np.empty(self.n, dtype=np.int64)
        key, b, weight = np.empty(total, np.uint64), np.empty(total), np.empty(total)
        nnz, age = np.empty(total, np.int32), np.empty(total, np.int32)
        index, value = np.empty(entries, np.int32), np.empty(entries)
        cdef int64_t[::1] counts_view = counts
        cdef uint64_t[::1] key_view = key
        cdef double[::1] b_view = b, weight_view = weight, value_view = value
        cdef int[::1] nnz_view = nnz, age_view = age, index_view = index
        for i in range(self.n):
            counts_view[i] = self.lists[i].count
            position = self.lists[i].memory
            for j in range(self.lists[i].count):
                head = <CutHead*>position
                key_view[c], b_view[c], weight_view[c] = head.key, head.b, head.weight
                nnz_view[c], age_view[c] = head.nnz, head.age
                for k in range(head.nnz):
                    index_view[e] = cut_index(head)[k]
                    value_view[e] = cut_values(head)[k]
                    e += 1
                c += 1
                position += cut_bytes(head.nnz)
        return {"counts": counts, "key": key, "b": b, "weight": weight, "nnz": nnz, "age": age,
                "index": index, "value": value}

    @classmethod
    def from_arrays(cls, arrays):
        """Rebuild the lists from ``to_arrays()``."""
        sizes = {len(arrays[name]) for name in ("key", "b", "weight", "nnz", "age")}
        entries = {len(arrays["index"]), len(arrays["value"])}
        if len(sizes) > 1 or len(entries) > 1:
            raise ValueError("the arrays of the cuts do not fit together")
        check_counts(arrays["counts"], sizes.pop(), "counts of the cuts")
        check_counts(arrays["nnz"], entries.pop(), "entries of the cuts")
        check_finite({f"{name} of the cuts": arrays[name] for name in ("b", "weight", "value")})
        cdef CutStore store = cls(arrays["counts"].shape[0])
        cdef const int64_t[::1] counts = arrays["counts"]
        cdef const uint64_t[::1] key = arrays["key"]
        cdef const double[::1] b = arrays["b"], weight = arrays["weight"]
        cdef const int[::1] nnz = arrays["nnz"], age = arrays["age"]
        cdef const int[::1] index = arrays["index"]
        cdef const double[::1] value = arrays["value"]
        cdef Py_ssize_t i, j, c = 0, e = 0
        cdef Cut cut
        cdef CutHead* head
        for i in range(store.n):
            for j in range(counts[i]):
                cut.nnz, cut.key, cut.b = nnz[c], key[c], b[c]
                cut.index = <int*>&index[e] if cut.nnz else NULL
                cut.value = <double*>&value[e] if cut.nnz else NULL
                head = store.append(i, &cut)
                head.weight, head.age = weight[c], age[c]
                e += cut.nnz
                c += 1
        return store
