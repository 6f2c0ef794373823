"""Linear potentials of examples whose nodes share one row of features, by a table of few numbers."""

import numpy as np

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset
from .features cimport FeatureRows
from .linear cimport LinearPotentials

from ..examples.given import refuse_infinite

# The most columns of a table.
MOST = MOST_SHARED


cdef class SharedTable:
    """A table for the loops.

    Parameters
    ----------
    matrix : CSR matrix of shape (P, C)
        Its columns number at most 1024.

    Raises
    ------
    ValueError
        If they are more.
    """

    def __init__(self, matrix):
        cdef const int32_t[::1] starts, columns, firsts, parts
        cdef const double[::1] values, entries
        if matrix.shape[1] > MOST_SHARED:
            raise ValueError(
                f"the table has {matrix.shape[1]} columns, expected at most {MOST_SHARED}")
        starts, columns, values = by_rows = _arrays(matrix.tocsr())
        firsts, parts, entries = by_columns = _arrays(matrix.tocsc())
        self.owners = by_rows, by_columns
        self.arrays.starts, self.arrays.columns = &starts[0], &columns[0]
        self.arrays.firsts, self.arrays.parts = &firsts[0], &parts[0]
        self.arrays.values, self.arrays.entries = &values[0], &entries[0]
        self.arrays.n_parts, self.arrays.n_columns = matrix.shape
        self.width = np.diff(by_rows[0]).max(initial=0)


cdef class SharedPotentials(LinearPotentials):
    """Linear potentials of :class:`~structsolve.examples.shared_rows.SharedRows`.

    An example is scored once for each column of the table, not once for each of its nodes, and its
    Gram matrix is one number times that of the table.

    Parameters
    ----------
    examples : Examples
        With SharedRows as features, a row for each example.
    layout : WeightLayout
        With one block, of kind "node" and shape (1,).
    n_jobs : int or None, default=1
        Threads that check features.

    Raises
    ------
    ValueError
        If the table has more than 1024 columns, or examples or layout are others; and as
        :class:`LinearPotentials` says.
    """

    def __init__(self, examples, layout, n_jobs=1):
        cdef const int64_t[::1] offsets = examples.offsets
        cdef Py_ssize_t i, n = examples.n
        cdef bint fits = not layout.intercept
        shared = examples.nodes
        if shared.table.native is None:
            shared.table.native = SharedTable(shared.table.matrix)
        self.table = shared.table.native
        for i in range(n + 1):
            fits &= offsets[i] == i * self.table.arrays.n_parts
        wide = (-(-shared.shape[1] // 8) * 8, shared.shape[1])
        if not fits or n != shared.rows.shape[0] or (layout.dim, layout.n_features) != wide:
            raise ValueError(
                f"found {shared.rows.shape[0]} rows that give {self.table.arrays.n_parts} nodes "
                f"{shared.shape[1]} features each, expected a row for each of {n} examples, as "
                "many nodes in each, and a layout of one block of shape (1,) for these features"
            )
        columns = self.table.arrays.n_columns
        self.rows = FeatureRows(shared.rows, columns, float(shared.constant), n_jobs)
        if not self.rows.finite:
            refuse_infinite(shared.rows, np.arange(n + 1), "X")
        super().__init__(examples, layout, nodes=self.rows)
        self.nodes = None       # a row of features is not that of a node
        self.has_gram = True

    @property
    def scratch_size(self) -> int:
        """Doubles of scratch that :meth:`add_gram` needs per thread."""
        return self.rows.n_cols + 16

    @property
    def nbytes(self) -> int:
        """Bytes of the packed features."""
        return self.rows.nbytes

    @property
    def work(self) -> int:
        """Multiplications of the scores of all examples."""
        return self.rows.nnz * self.table.arrays.n_columns

    cdef Py_ssize_t gathered(self, Py_ssize_t nnz, const int* index, const double* value,
                             double coef, int* cols, double* coefs) noexcept nogil:
        cdef const TableArrays* table = &self.table.arrays
        cdef Py_ssize_t j, e, n = 0
        cdef int c
        cdef short[MOST_SHARED] places
        memset(places, 255, table.n_columns * sizeof(short))     # -1
        for j in range(nnz):
            for e in range(table.starts[index[j]], table.starts[index[j] + 1]):
                c = table.columns[e]
                if places[c] < 0:
                    places[c], cols[n], coefs[n] = <short>n, c, 0
                    n += 1
                if value != NULL:
                    coefs[places[c]] += coef * value[j] * table.values[e]
        return n

    cdef void score(self, Py_ssize_t i, const double* w, double scale,
                    double* theta) noexcept nogil:
        cdef const TableArrays* table = &self.table.arrays
        cdef double[MOST_SHARED] t
        cdef Py_ssize_t p, e
        cdef double total
        self.rows.score(i, w, t)
        for p in range(table.n_parts):
            total = 0
            for e in range(table.starts[p], table.starts[p + 1]):
                total += table.values[e] * t[table.columns[e]]
            theta[p] = scale * total

    cdef void add(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, const double* value,
                  double coef, double* w) noexcept nogil:
        cdef int[MOST_SHARED] cols
        cdef double[MOST_SHARED] coefs
        cdef Py_ssize_t m
        m = self.gathered(nnz, index, value, coef, cols, coefs)
        if m:
            self.rows.scatter(i, m, cols, coefs, w)

    cdef void clear(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, double* w) noexcept nogil:
        cdef int[MOST_SHARED] cols
        cdef double[MOST_SHARED] coefs
        cdef Py_ssize_t m, k
        m = self.gathered(nnz, index, NULL, 0, cols, coefs)
        for k in range(m):
            self.rows.clear(i, cols[k], w)

    cdef void scores(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, const double* w,
                     double* out) noexcept nogil:
        cdef const TableArrays* table = &self.table.arrays
        cdef int[MOST_SHARED] cols
        cdef double[MOST_SHARED] some, t
        cdef Py_ssize_t m, k, j, e
        if not nnz:
            return
        m = self.gathered(nnz, index, NULL, 0, cols, some)
        self.rows.gather(i, m, cols, w, some)
        for k in range(m):
            t[cols[k]] = some[k]
        for j in range(nnz):
            out[j] = 0
            for e in range(table.starts[index[j]], table.starts[index[j] + 1]):
                out[j] += table.values[e] * t[table.columns[e]]

    cdef void add_gram(self, Py_ssize_t i, Py_ssize_t nnz, const int* index,
                       const double* value, double coef, double* u,
                       double* scratch) noexcept nogil:
        cdef const TableArrays* table = &self.table.arrays
        cdef int[MOST_SHARED] cols
        cdef double[MOST_SHARED] coefs
        cdef double square
        cdef Py_ssize_t m, k, e
        self.rows.gram_row(i, i, i + 1, scratch, &square)
        m = self.gathered(nnz, index, value, coef * square, cols, coefs)
        for k in range(m):
            for e in range(table.firsts[cols[k]], table.firsts[cols[k] + 1]):
                u[table.parts[e]] += coefs[k] * table.entries[e]

    cdef void move_gram(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, double coef,
                        double* u, double* theta) noexcept nogil:
        cdef const TableArrays* table = &self.table.arrays
        cdef int[MOST_SHARED] cols
        cdef double[MOST_SHARED] coefs
        cdef Py_ssize_t m, k, e, p
        m = self.gathered(nnz, index, NULL, 0, cols, coefs)
        for k in range(m):
            for e in range(table.firsts[cols[k]], table.firsts[cols[k] + 1]):
                p = table.parts[e]
                theta[p] += coef * u[p]
                u[p] = 0


def _arrays(table):
    """Return the arrays of a CSR or CSC matrix for the loops."""
    kinds = np.int32, np.int32, np.float64
    given = table.indptr, table.indices, table.data
    arrays = [np.ascontiguousarray(a, kind) for a, kind in zip(given, kinds)]
    return [a if a.size else np.zeros(1, a.dtype) for a in arrays]
