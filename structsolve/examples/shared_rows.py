"""Features that all nodes of an example have from one row, without a copy for each node."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..utils.sparse import valid_csr
from .given import is_sparse

DOUBLE = np.dtype(np.float64)


class Table:
    """Rows of numbers by which nodes share a row of features, the same for all examples.

    Parameters
    ----------
    matrix : CSR matrix of shape (P, C)

    Attributes
    ----------
    native : object
        What compiled loops made of it, once for all examples; None at first.
    """

    def __init__(self, matrix: Any):
        self.matrix, self.shape, self.native = matrix, matrix.shape, None

    def __reduce__(self) -> Any:
        return Table, (self.matrix,)


class SharedRows:
    """Node features ``x_f t_c`` for each row x of a matrix and each row t of a table.

    Node p of example i has ``rows[i, f] * table[p, c]`` in column ``f C + c``: one number for each
    column c of the table, ``t_c = <x_i, w_c>``, gives all its nodes scores, ``table @ t``.
    To all that do not know this it is a CSR matrix, which is made at the first use of its arrays.

    Parameters
    ----------
    rows : ndarray or CSR matrix of shape (n, n_columns)
        Features of the examples.
    table : Table
        Of P rows and C columns; each example has P nodes.
    constant : bool
        Append a constant feature to x.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from structsolve.examples.shared_rows import SharedRows, Table
    >>> table = Table(sparse.csr_matrix([[1.0, 0.0], [1.0, -1.0]]))
    >>> nodes = SharedRows(np.array([[2.0, 3.0]]), table, False)
    >>> nodes.shape, nodes.tocsr().toarray().tolist()
    ((2, 4), [[2.0, 0.0, 3.0, 0.0], [2.0, -2.0, 3.0, -3.0]])
    """

    def __init__(self, rows: Any, table: Table, constant: bool):
        self.rows, self.table, self.constant = rows, table, bool(constant)
        wide = (rows.shape[1] + self.constant) * table.shape[1]
        self.shape = rows.shape[0] * table.shape[0], wide
        self.dtype = DOUBLE

    def __reduce__(self) -> Any:
        return SharedRows, (self.rows, self.table, self.constant)

    def __getitem__(self, rows: Any) -> Any:
        return self._csr[rows]

    @property
    def nnz(self) -> int:
        """Number of stored values of the matrix."""
        stored = self.rows.nnz if is_sparse(self.rows) else self.rows.size
        return int(stored + self.constant * self.rows.shape[0]) * int(self.table.matrix.nnz)

    @cached_property
    def _csr(self) -> Any:
        return self.tocsr()

    @property
    def data(self) -> Any:
        """Values of the matrix."""
        return self._csr.data

    @property
    def indices(self) -> Any:
        """Their columns."""
        return self._csr.indices

    @property
    def indptr(self) -> Any:
        """The first value of each row."""
        return self._csr.indptr

    def tocsr(self) -> Any:
        """Return the matrix.

        Returns
        -------
        CSR matrix of shape (n * P, (n_columns + constant) * C)
        """
        X, T, C = self.rows, self.table.matrix, self.table.shape[1]
        if is_sparse(X):
            sizes, indices, data = np.diff(X.indptr), X.indices, X.data
        else:
            X = np.asarray(X, np.float64)
            row, indices = np.nonzero(X)
            sizes, data = np.bincount(row, minlength=len(X)), X[row, indices]
        if self.constant:
            ends, sizes = np.cumsum(sizes), sizes + 1
            indices, data = np.insert(indices, ends, X.shape[1]), np.insert(data, ends, 1)
        widths = np.diff(T.indptr)
        starts = np.append(0, np.cumsum(np.outer(sizes, widths)))
        # The row of X and that of T of each value, and its place among theirs.
        row, node = np.divmod(np.repeat(np.arange(self.shape[0]), np.diff(starts)), len(widths))
        place = np.arange(starts[-1]) - np.repeat(starts[:-1], np.diff(starts))
        entry, of_table = np.divmod(place, widths[node])
        entry += (np.cumsum(sizes) - sizes)[row]
        of_table += T.indptr[node]
        kind = np.int32 if max(self.shape[1], starts[-1]) < 2**31 else np.int64
        columns = indices[entry].astype(np.int64) * C + T.indices[of_table]
        return valid_csr(
            data[entry] * T.data[of_table],
            columns.astype(kind),
            starts.astype(kind),
            self.shape[1],
            canonical=True,
        )
