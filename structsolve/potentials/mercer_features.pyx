"""Node scores by a Mercer kernel: the node block of w holds dual variables and training scores.

The node block of ``w`` holds ``A``, one row of part-space duals per training node, followed by
``F = (K + bias) A``, the scores of all training nodes, column by column.  Solvers use ``w`` only in
linear ways (steps, averages), which keep F equal to ``(K + bias) A``.  Scores are only read, and a
step costs one pass over the rows of K of the nodes that it changes, contiguous in K and in F.
"""

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int64_t
from .features cimport FeatureRows

cdef extern from "structsolve/simd/mercer_columns.h" nogil:
    void ss_add_kernel_row(Py_ssize_t n, const double* k, double bias, Py_ssize_t m,
                           const int* cols, const double* coefs, double* F,
                           Py_ssize_t stride) noexcept nogil
    void ss_distances(Py_ssize_t n_padded, Py_ssize_t n_features, const double* columns,
                      const double* squares, Py_ssize_t i, double scale,
                      double* out) noexcept nogil
    void ss_squares(Py_ssize_t n_padded, Py_ssize_t n_features, const double* columns,
                    double* squares) noexcept nogil

from ..simd.loops cimport ss_loops
from ..utils.arrays import check_blocks
from ..examples.given import packed_bytes
from . import mercer as settings
from .weight_layout import WeightLayout
from .mercer import node_namer

# A sum below this share of its terms' total magnitude is rounding error.
cdef double ROUNDING = 1e-12


cdef class MercerRows(FeatureRows):
    """Rows of a Mercer kernel's matrix over the training nodes, computed on demand and cached.

    A new block of rows replaces the one least recently used.  Steps must come from one
    thread; scores may be read from many.

    Parameters
    ----------
    X : ndarray of float64 of shape (n_nodes, n_features), or scipy.sparse CSR
        Node features; "precomputed": the kernel matrix itself.
    kernel : Kernel
    offsets : ndarray of int64
        First node of each example.
    width : int
        Padded width of a row of parts.
    bias : float, default=0
        Added to every kernel value: the square of a constant feature.
    """

    def __init__(self, X, kernel, offsets, Py_ssize_t width, double bias=0.0):
        cdef const double[:, ::1] given
        cdef Py_ssize_t n = X.shape[0], n_blocks
        kernel.check(X, offsets)
        self.n_rows, self.n_cols, self.stride = n, 0, width
        self.X, self.kernel, self.offsets, self.bias = X, kernel, offsets, bias
        self.finite = True
        self.column_stride = _column_stride(n)
        self.owners = ()
        self.max_row_nnz = n
        if kernel.precomputed:
            given = X
            self.matrix = &given[0, 0] if n else NULL
            return
        self.block_rows = max(1, min(n, settings.BLOCK_BYTES // (8 * max(n, 1))))
        self.row_stride = n
        gamma = kernel.gaussian(X)
        if gamma is not None:
            self._keep_columns(gamma)
        n_blocks = (n + self.block_rows - 1) // self.block_rows
        block_bytes = 8 * self.block_rows * self.row_stride
        self.n_slots = max(1, min(n_blocks, kernel.cache_bytes // max(block_bytes, 1)))
        self.pool = np.empty(max(1, self.n_slots * self.block_rows * self.row_stride))
        self.slot_of_block = np.full(max(n_blocks, 1), -1, dtype=np.int64)
        self.block_of_slot = np.full(self.n_slots, -1, dtype=np.int64)
        self.last_use = np.zeros(self.n_slots, dtype=np.int64)

    def _keep_columns(self, double gamma):
        """Prepare to compute single rows here, because a call of the kernel would cost more."""
        cdef Py_ssize_t n = self.n_rows, n_features = self.X.shape[1]
        self.block_rows, self.row_stride, self.scale = 1, max(8 * ((n + 7) // 8), 8), -gamma
        self.gaussian = True
        columns = np.zeros((n_features, self.row_stride))
        columns[:n_features, :n] = self.X.T
        self.columns, self.squares = columns, np.empty(self.row_stride)
        ss_squares(self.row_stride, n_features, &self.columns[0, 0], &self.squares[0])

    @property
    def weights_size(self) -> int:
        """Number of doubles for dual variables and scores."""
        return (self.n_rows + self.column_stride) * self.stride

    @property
    def nbytes(self) -> int:
        """Bytes of the features, and of the cached kernel rows."""
        total = packed_bytes(self.X)
        if self.matrix == NULL:
            used = int((np.asarray(self.block_of_slot) >= 0).sum())
            total += 8 * used * self.block_rows * self.row_stride
        if self.gaussian:
            total += self.columns.nbytes + self.squares.nbytes
        return total

    @property
    def implicit(self) -> bool:
        """True: there are no weights of features."""
        return True

    @property
    def nnz(self) -> int:
        """Number of kernel values."""
        return self.n_rows * self.n_rows

    def check(self):
        """Raise the error of a loop that computed kernel rows.

        Raises
        ------
        Exception
            The kernel's exception; KeyboardInterrupt after Ctrl-C.
        """
        if self.error is not None:
            raise self.error
        if self.interrupted:
            self.interrupted = False
            raise KeyboardInterrupt

    def squared_norm(self, W):
        """Return ``trace A' (K + bias) A`` of the node block.

        Parameters
        ----------
        W : ndarray of float64 of shape (rows of the layout * width,)
            Node block of w.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If it is negative, so that the kernel is not positive semi-definite.
        """
        self.check()
        A, F = split_block(W, self.n_rows, self.stride)
        if self.inner_size:
            # ||w + d||^2 = ||w||^2 + <d, scores before and after>, d of these nodes alone.
            before, scores, value = self.outer
            rows = np.asarray(self.inner_rows)
            both = scores[:, rows] + F[:, :self.inner_size]
            return value + float(np.einsum("vs,sv->", A[rows] - before, both))
        value = float(np.einsum("vs,sv->", A, F))
        if (value < 0 and value < -1e-6 * float(np.einsum("vs,sv->", np.abs(A), np.abs(F)))
                and value < -ROUNDING * self._magnitude(A)):
            raise ValueError(
                f"kernel {self.kernel.name!r} is not positive semi-definite: training met weights "
                f"with ||w||^2 = {value:g}; use another kernel, or clip the spectrum of its matrix"
            )
        return value

    def focus(self, rows, W):
        """Restrict steps to some nodes: the scores of others wait for :meth:`unfocus`.

        A step then costs time in the number of these nodes, not of all training nodes.

        Parameters
        ----------
        rows : ndarray of int64
            Distinct nodes: the only ones to score or change from now on.
        W : ndarray of float64 of shape (rows of the layout * width,)
            Node block of w; the nodes' scores move to the front of each column.

        Returns
        -------
        bool
            False, without a change, if it would not save time or would take too much memory.

        Raises
        ------
        ValueError
            If a node does not exist, or W has the wrong size.
        """
        cdef Py_ssize_t size, j, k
        cdef const double* row
        rows = np.ascontiguousarray(rows, dtype=np.int64)
        size = len(rows)
        if rows.ndim != 1 or (size and not 0 <= rows.min() <= rows.max() < self.n_rows):
            raise ValueError(f"rows: expected numbers of nodes below {self.n_rows}")
        self._check_size(W)
        if (self.inner_size or not 0 < size <= settings.FOCUS_SHARE * self.n_rows
                or 8 * size * size > settings.FOCUS_BYTES):
            return False
        norm = self.squared_norm(W)
        A, F = split_block(W, self.n_rows, self.stride)
        self.inner_rows = rows
        self.places = np.full(self.n_rows, -1, dtype=np.int64)
        self.inner = np.empty((size, size))
        with nogil:
            for j in range(size):
                self.places[self.inner_rows[j]] = j
                row = self.kernel_row(self.inner_rows[j])
                for k in range(size):
                    self.inner[j, k] = row[self.inner_rows[k]]
        self.outer = A[rows], F.copy(), norm
        F[:, :size] = F[:, rows]
        self.inner_size = size
        return True

    def unfocus(self, W):
        """Bring the scores of all nodes up to date with the steps since :meth:`focus`.

        Parameters
        ----------
        W : ndarray of float64 of shape (rows of the layout * width,)
            Node block of w.

        Raises
        ------
        ValueError
            If no nodes are focused, or W has the wrong size.
        """
        if not self.inner_size:
            raise ValueError("unfocus(): no nodes are focused; call focus() first")
        self._check_size(W)
        cdef Py_ssize_t j, c, m
        cdef int[::1] cols = np.zeros(self.stride, dtype=np.int32)
        cdef double[::1] coefs = np.zeros(self.stride)
        cdef double[:, ::1] change
        cdef double[::1] view = W
        cdef double* scores = &view[self.n_rows * self.stride]
        rows = np.asarray(self.inner_rows)
        A, F = split_block(W, self.n_rows, self.stride)
        before, F[:], _ = self.outer
        change = A[rows] - before
        self.inner_size = 0
        with nogil:
            for j in range(change.shape[0]):
                m = 0
                for c in range(self.stride):
                    if change[j, c] != 0:
                        cols[m], coefs[m] = <int>c, change[j, c]
                        m += 1
                if m:
                    ss_add_kernel_row(self.n_rows, self.kernel_row(self.inner_rows[j]), self.bias,
                                      m, &cols[0], &coefs[0], scores, self.column_stride)
        self.inner = self.outer = None

    def _check_size(self, W):
        if np.shape(W) != (self.weights_size,):
            raise ValueError(f"W has shape {np.shape(W)}, expected ({self.weights_size},)")

    def _magnitude(self, const double[:, :] A not None):
        """``sum |A| |K + bias| |A|``: the scale of rounding errors where scores cancel."""
        cdef Py_ssize_t v, u, s
        cdef double total = 0, row_sum
        cdef const double* k
        for v in range(self.n_rows):
            row_sum = 0
            for s in range(self.stride):
                row_sum += fabs(A[v, s])
            if row_sum == 0:
                continue
            k = self.kernel_row(v)
            for u in range(self.n_rows):
                for s in range(self.stride):
                    total += fabs(A[v, s] * (k[u] + self.bias) * A[u, s])
        self.check()
        return total

    def gram_blocks(self, const int64_t[::1] offsets not None, const int64_t[::1] starts not None,
                    double[::1] out not None):
        """Compute Gram blocks: kernel values within each example, bias included, block after block.

        Parameters
        ----------
        offsets : ndarray of int64 of shape (n + 1,)
            First row of each example.
        starts : ndarray of int64 of shape (n + 1,)
            First entry of each example's block in ``out``.
        out : ndarray of float64
        """
        check_blocks(np.asarray(offsets), np.asarray(starts), out.shape[0], self.n_rows)
        cdef Py_ssize_t n = offsets.shape[0] - 1, first = 0, last, i, a, z
        if self.gaussian and np.array_equal(offsets, np.arange(n + 1)):
            np.asarray(out)[:n] = 1 + self.bias     # one node each, at distance 0 from itself
            return
        offsets_array, starts_array, flat = map(np.asarray, (offsets, starts, out))
        while first < n:
            last = first + 1
            while last < n and offsets[last + 1] - offsets[first] <= settings.TOGETHER:
                last += 1
            a, z = offsets[first], offsets[last]
            if self.matrix != NULL:
                block = self.X[a:z, a:z]
            else:
                name = node_namer(offsets_array, range(a, z))
                block = self.kernel.matrix(self.X[a:z], self.X[a:z], name, name)
            diagonal = block.diagonal()
            self.kernel.refuse_negative_diagonal(diagonal, node_namer(offsets_array, range(a, z)))
            if last - first == z - a:       # one node each
                flat[starts[first]:starts[last]] = diagonal + self.bias
            else:
                for i in range(first, last):
                    part = block[offsets[i] - a:offsets[i + 1] - a, offsets[i] - a:offsets[i + 1] - a]
                    flat[starts[i]:starts[i + 1]] = part.ravel() + self.bias
            first = last

    cdef const double* kernel_row(self, Py_ssize_t row) noexcept nogil:
        cdef Py_ssize_t block, slot
        if self.matrix != NULL:
            return self.matrix + row * self.n_rows
        block = row // self.block_rows
        slot = self.slot_of_block[block]
        if slot < 0:
            if self.gaussian:
                slot = self._compute_gaussian(block)
            else:
                with gil:
                    slot = self._compute(block)
        self.clock += 1
        self.last_use[slot] = self.clock
        return &self.pool[(slot * self.block_rows + row - block * self.block_rows)
                          * self.row_stride]

    cdef Py_ssize_t _free_slot(self) noexcept nogil:
        """Return a free slot; if there is none, empty the least recently used one."""
        cdef Py_ssize_t slot = 0, other
        if self.n_filled < self.n_slots:
            self.n_filled += 1
            return self.n_filled - 1
        for other in range(1, self.n_slots):
            if self.last_use[other] < self.last_use[slot]:
                slot = other
        if self.block_of_slot[slot] >= 0:
            self.slot_of_block[self.block_of_slot[slot]] = -1
            self.block_of_slot[slot] = -1
        return slot

    cdef Py_ssize_t _compute_gaussian(self, Py_ssize_t row) noexcept nogil:
        cdef Py_ssize_t slot = self._free_slot()
        cdef double* out = &self.pool[slot * self.row_stride]
        ss_distances(self.row_stride, self.columns.shape[0], &self.columns[0, 0], &self.squares[0],
                     row, self.scale, out)
        ss_loops(8).exp_rows(1, out, self.row_stride, self.n_rows, 0, out)
        self.computed += 1
        self.slot_of_block[row], self.block_of_slot[slot] = slot, row
        return slot

    cdef Py_ssize_t _compute(self, Py_ssize_t block) noexcept:
        """Compute a block of rows into the least recently used slot; check() raises errors."""
        cdef Py_ssize_t slot = self._free_slot(), size = self.block_rows * self.n_rows
        first = block * self.block_rows
        last = min(first + self.block_rows, self.n_rows)
        target = np.asarray(self.pool)[slot * size:(slot + 1) * size]
        target = target.reshape(self.block_rows, self.n_rows)
        while self.error is None:
            try:
                target[:last - first] = self.kernel.matrix(
                    self.X[first:last], self.X,
                    node_namer(self.offsets, range(first, last)),
                    node_namer(self.offsets, range(self.n_rows)))
                self.computed += 1
                self.slot_of_block[block], self.block_of_slot[slot] = slot, block
                return slot
            except KeyboardInterrupt as interrupt:
                # Finish the step, or F would differ from (K + bias) A; a second Ctrl-C ends it.
                if self.interrupted:
                    self.error = interrupt
                self.interrupted = True
            except BaseException as error:
                self.error = error
        target[:] = 0
        return slot

    cdef inline Py_ssize_t _place(self, Py_ssize_t row) noexcept nogil:
        return self.places[row] if self.inner_size else row

    cdef void score(self, Py_ssize_t row, const double* W, double* out) noexcept nogil:
        cdef Py_ssize_t t
        cdef const double* F = W + self.n_rows * self.stride + self._place(row)
        for t in range(self.stride):
            out[t] = F[t * self.column_stride]

    cdef void gather(self, Py_ssize_t row, Py_ssize_t m, const int* cols, const double* W,
                     double* out) noexcept nogil:
        cdef Py_ssize_t c
        cdef const double* F = W + self.n_rows * self.stride + self._place(row)
        for c in range(m):
            out[c] = F[cols[c] * self.column_stride]

    cdef void scatter(self, Py_ssize_t row, Py_ssize_t m, const int* cols, const double* coefs,
                      double* W) noexcept nogil:
        cdef const double* k
        cdef double* F = W + self.n_rows * self.stride
        cdef Py_ssize_t c, size = self.n_rows
        if self.inner_size:
            size = self.inner_size
            k = &self.inner[self.places[row], 0]
        else:
            k = self.kernel_row(row)
        for c in range(m):
            W[row * self.stride + cols[c]] += coefs[c]
        ss_add_kernel_row(size, k, self.bias, m, cols, coefs, F, self.column_stride)

    cdef void clear(self, Py_ssize_t row, Py_ssize_t col, double* W) noexcept nogil:
        cdef Py_ssize_t v
        cdef double* F = W + self.n_rows * self.stride + col * self.column_stride
        W[row * self.stride + col] = 0
        for v in range(self.n_rows):
            F[v] = 0

    cdef void gram_row(self, Py_ssize_t row, Py_ssize_t first, Py_ssize_t last, double* dense,
                       double* out) noexcept nogil:
        cdef const double* k = self.kernel_row(row)
        cdef Py_ssize_t v
        for v in range(first, last):
            out[v - first] = k[v] + self.bias

    cdef Py_ssize_t row_cost(self, Py_ssize_t row) noexcept nogil:
        return self.n_rows


cdef Py_ssize_t _column_stride(Py_ssize_t n):
    """Return the number of doubles between two columns of the scores of n nodes.

    It is an odd number of cache lines: the scores of one node then lie in different
    sets of the cache.
    """
    return 8 * ((n + 7) // 8 | 1)


def kernel_layout(layout, Py_ssize_t n_nodes):
    """Return the layout of the vector of duals and scores that solvers change instead of ``w``.

    Parameters
    ----------
    layout : WeightLayout
        Layout of the weights for linear features.
    n_nodes : int
        Training nodes.

    Returns
    -------
    WeightLayout
        The same blocks, with duals and scores of the training nodes as the node block.
    """
    rows = n_nodes + _column_stride(n_nodes)
    return WeightLayout(layout.blocks, rows, layout.n_edge_features, False)


def split_block(W, Py_ssize_t n_nodes, Py_ssize_t stride):
    """Return views of the duals A and the scores F in a node block.

    Parameters
    ----------
    W : ndarray of float64
        The node block, flat.
    n_nodes : int
        Training nodes.
    stride : int
        Padded width of a row of parts.

    Returns
    -------
    A : ndarray of float64 of shape (n_nodes, stride)
    F : ndarray of float64 of shape (stride, n_nodes)
    """
    A = W[:n_nodes * stride].reshape(n_nodes, stride)
    F = W[n_nodes * stride:].reshape(stride, _column_stride(n_nodes))[:, :n_nodes]
    return A, F
