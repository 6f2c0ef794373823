"""Linear potentials: the map between weights and part scores, its adjoint, its Gram matrix."""

import numpy as np

from libc.string cimport memcpy

from ..examples.given import refuse_infinite


cdef enum:
    # Maximum number of parts of one feature row per call: rows of w are far apart in memory, so
    # they are read in long pieces.
    TOGETHER = 256


cdef class LinearPotentials:
    """``theta_i = Phi_i w`` for packed examples, and ``Phi_i' p``.

    Parameters
    ----------
    examples : Examples
        Packed features.
    layout : WeightLayout
        Blocks of the weight vector.
    gram_budget : int, default=0
        Maximum number of bytes for the Gram blocks of the examples' node features.  With these
        blocks, steps within one example work on parts and read no feature.
    n_jobs : int or None, default=1
        Threads that check features.
    nodes : FeatureRows, optional
        Scores nodes; rows of ``examples.nodes`` by default.
    node_scale : array of the node block's shape, optional
        Factors s >= 0 of the node parts: part c of a node scores ``s_c <x, w_c>``. Penalising
        ``||w||^2`` then penalises ``||u_c||^2 / s_c^2`` of the weights ``u_c = s_c w_c``.

    Attributes
    ----------
    dim : int
        Length of ``w``.
    max_theta : int
        Longest ``theta_i``.
    node_scale : ndarray of float64 of shape (node_size,) or None
        The factors, padded with zeros as the node block is.

    Raises
    ------
    ValueError
        The message names the example with a feature that is NaN, infinite or beyond 1e100, or the
        part whose factor is negative or not finite.
    """

    def __init__(self, examples, layout, Py_ssize_t gram_budget=0, n_jobs=1,
                 FeatureRows nodes=None, node_scale=None):
        cdef const int64_t[::1] offsets = examples.offsets
        cdef const int64_t[::1] edge_offsets
        cdef const double[::1] factors
        cdef Py_ssize_t i, size, squares = 0, most = 0
        self.layout = layout
        self.n = examples.n
        self.dim = layout.dim
        self.shared_size = layout.shared_size
        self.node_size, self.edge_size = layout.node_size, layout.edge_size
        self.node_start, self.edge_start = layout.node_start, layout.edge_start
        self.owners = (examples.offsets, examples.edge_offsets)
        self.offsets = &offsets[0]
        if nodes is not None:
            self.nodes = nodes
        elif layout.node is not None:
            self.nodes = FeatureRows(examples.nodes, layout.node_size, 1.0 if layout.intercept else 0.0,
                                n_jobs)
            if not self.nodes.finite:
                refuse_infinite(examples.nodes, examples.offsets, "X")
        if node_scale is not None:
            self.node_scale = factors = layout.padded_scale(node_scale)
            self.node_factors = &factors[0]
        if layout.edge is not None:
            edge_offsets = examples.edge_offsets
            self.edge_offsets = &edge_offsets[0]
            self.edges = FeatureRows(examples.edges, layout.edge_size, 0.0, n_jobs)
            if not self.edges.finite:
                refuse_infinite(examples.edges, examples.edge_offsets, "edge features")
        for i in range(self.n):
            size = offsets[i + 1] - offsets[i]
            squares += size * size
            most = max(most, size)
        self.max_nodes = most
        self.max_theta = self.shared_size + most * self.node_size
        if self.edge_size:
            for i in range(self.n):
                self.max_theta = max(self.max_theta, self.theta_size(i))
                self.max_edges = max(self.max_edges, edge_offsets[i + 1] - edge_offsets[i])
        if self.max_theta > 0x7fffffff:
            raise ValueError(
                f"an example has {self.max_theta} part scores, at most 2^31 - 1 are supported"
            )
        if self.nodes is not None and 8 * squares <= gram_budget:
            self.has_gram = True
            starts = np.zeros(self.n + 1, dtype=np.int64)
            np.cumsum(np.diff(examples.offsets) ** 2, out=starts[1:])
            self.gram_offsets = starts
            self.node_gram = np.empty(max(int(starts[self.n]), 1))
            self.nodes.gram_blocks(examples.offsets, starts, self.node_gram)

    @property
    def scratch_size(self) -> int:
        """Doubles of scratch that :meth:`add_gram` needs per thread."""
        cols = [d.n_cols for d in (self.nodes, self.edges) if d is not None]
        return max(cols, default=0) + max(self.max_nodes, self.max_edges) + 16

    @property
    def nbytes(self) -> int:
        """Bytes of the packed features and of the kept Gram blocks."""
        total = sum(d.nbytes for d in (self.nodes, self.edges) if d is not None)
        return total + (self.node_gram.nbytes if self.has_gram else 0)

    @property
    def work(self) -> int:
        """Multiplications of the scores of all examples."""
        own = (self.nodes, self.node_size), (self.edges, self.edge_size)
        return sum(rows.nnz * size for rows, size in own if rows is not None)

    @property
    def node_mix(self) -> object:
        """The matrix of a metric along the last axis of the node block, or None."""
        return None

    @property
    def plain_nodes(self) -> bool:
        """Whether node parts score ``<x, w_c>``, without factors or a metric."""
        return self.node_scale is None and self.node_mix is None

    def model_rows(self, rows, inverse=False):
        """Return the weights of nodes that score features without factors or a metric.

        Parameters
        ----------
        rows : ndarray of float64 of shape (n, node_size)
            Node weights of a solver, a feature in a row.
        inverse : bool, default=False
            Go back, from a model's to a solver's; 0 where a factor is 0.

        Returns
        -------
        ndarray of float64 of shape (n, node_size)
        """
        scale = self.node_scale
        if scale is not None and inverse:
            scale = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
        return rows if scale is None else rows * scale

    def squared_norm(self, w):
        """Return ``||w||^2`` in the space of features.

        Solvers use it instead of ``w @ w``: with a Mercer kernel, w holds duals and scores.

        Parameters
        ----------
        w : ndarray of float64 of shape (dim,)

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If a Mercer kernel failed inside a loop, or proves indefinite.
        """
        if self.nodes is None or not self.nodes.implicit:
            return float(w @ w)
        shared, edge = w[:self.shared_size], w[self.edge_start:]
        return float(shared @ shared + edge @ edge) + self.nodes.squared_norm(self._node_block(w))

    def focus(self, chosen, w):
        """Restrict steps to the nodes of some examples, if that saves time.

        With a Mercer kernel a step changes the scores of all training nodes; the update of scores
        that no step reads may wait for :meth:`unfocus`.

        Parameters
        ----------
        chosen : ndarray of int64
            Distinct examples: the only ones to visit from now on.
        w : ndarray of float64 of shape (dim,)
            No other vector may be read or changed meanwhile.

        Returns
        -------
        bool
            Whether steps are restricted, so that :meth:`unfocus` has to follow.
        """
        if self.has_weights:
            return False
        starts = self.owners[0][chosen]
        sizes = self.owners[0][chosen + 1] - starts
        rows = np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        return self.nodes.focus(rows, self._node_block(w))

    def unfocus(self, w):
        """End :meth:`focus`: w is again valid for all nodes.

        Parameters
        ----------
        w : ndarray of float64 of shape (dim,)
        """
        self.nodes.unfocus(self._node_block(w))

    def _node_block(self, w):
        return w[self.node_start:self.node_start + self.layout.node_rows * self.node_size]

    @property
    def has_weights(self) -> bool:
        """Whether w is a vector of weights; False with a Mercer kernel."""
        return self.nodes is None or not self.nodes.implicit

    @property
    def kernel_rows(self):
        """The training nodes that a Mercer kernel compares; None without one."""
        return None if self.has_weights else self.nodes.X

    cdef Py_ssize_t theta_size(self, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t size = self.shared_size
        size += (self.offsets[i + 1] - self.offsets[i]) * self.node_size
        if self.edge_size:
            size += (self.edge_offsets[i + 1] - self.edge_offsets[i]) * self.edge_size
        return size

    cdef void score(self, Py_ssize_t i, const double* w, double scale,
                    double* theta) noexcept nogil:
        cdef Py_ssize_t v, j, size
        memcpy(theta, w, self.shared_size * sizeof(double))
        cdef double* out = theta + self.shared_size
        if self.node_size:
            for v in range(self.offsets[i], self.offsets[i + 1]):
                self.nodes.score(v, w + self.node_start, out)
                if self.node_factors != NULL:
                    for j in range(self.node_size):
                        out[j] *= self.node_factors[j]
                out += self.node_size
        if self.edge_size:
            for v in range(self.edge_offsets[i], self.edge_offsets[i + 1]):
                self.edges.score(v, w + self.edge_start, out)
                out += self.edge_size
        if scale != 1:
            size = out - theta
            for j in range(size):
                theta[j] *= scale

    cdef inline Place _place(self, Py_ssize_t i, int index) noexcept nogil:
        cdef Place place
        cdef Py_ssize_t position = index - self.shared_size, node_end = 0
        if position < 0:
            place.kind, place.row, place.col = SHARED, index, 0
            return place
        if self.node_size:
            node_end = (self.offsets[i + 1] - self.offsets[i]) * self.node_size
        # theta has less than 2^31 entries; narrow divisions take half the time.
        if position < node_end:
            place.kind = NODE
            place.row = <unsigned int>position / <unsigned int>self.node_size
            place.col = position - place.row * self.node_size
        else:
            position -= node_end
            place.kind = EDGE
            place.row = <unsigned int>position / <unsigned int>self.edge_size
            place.col = position - place.row * self.edge_size
        return place

    cdef inline Py_ssize_t _run(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, Place* place,
                                int* cols) noexcept nogil:
        """Count the first entries in the same row of features; write the row and their columns."""
        cdef Py_ssize_t k = 1
        cdef int first, size
        place[0] = self._place(i, index[0])
        cols[0] = <int>place.col
        if place.kind == SHARED:
            return 1
        first = index[0] - cols[0]
        size = <int>(self.node_size if place.kind == NODE else self.edge_size)
        while k < nnz and k < TOGETHER and first <= index[k] < first + size:
            cols[k] = index[k] - first
            k += 1
        return k

    cdef void add(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, const double* value,
                  double coef, double* w) noexcept nogil:
        cdef Py_ssize_t k, m, j = 0
        cdef Place place
        cdef int[TOGETHER] cols
        cdef double[TOGETHER] coefs
        while j < nnz:
            m = self._run(i, nnz - j, index + j, &place, cols)
            for k in range(m):
                coefs[k] = coef * value[j + k]
            if place.kind == SHARED:
                w[place.row] += coefs[0]
            elif place.kind == NODE:
                if self.node_factors != NULL:
                    for k in range(m):
                        coefs[k] *= self.node_factors[cols[k]]
                self.nodes.scatter(self.offsets[i] + place.row, m, cols, coefs, w + self.node_start)
            else:
                self.edges.scatter(self.edge_offsets[i] + place.row, m, cols, coefs,
                                   w + self.edge_start)
            j += m

    cdef void clear(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, double* w) noexcept nogil:
        cdef Py_ssize_t j
        cdef Place place
        for j in range(nnz):
            place = self._place(i, index[j])
            if place.kind == SHARED:
                w[place.row] = 0
            elif place.kind == NODE:
                self.nodes.clear(self.offsets[i] + place.row, place.col, w + self.node_start)
            else:
                self.edges.clear(self.edge_offsets[i] + place.row, place.col, w + self.edge_start)

    cdef void scores(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, const double* w,
                     double* out) noexcept nogil:
        cdef Py_ssize_t k, m, j = 0
        cdef Place place
        cdef int[TOGETHER] cols
        while j < nnz:
            m = self._run(i, nnz - j, index + j, &place, cols)
            if place.kind == SHARED:
                out[j] = w[place.row]
            elif place.kind == NODE:
                self.nodes.gather(self.offsets[i] + place.row, m, cols, w + self.node_start,
                                  out + j)
                if self.node_factors != NULL:
                    for k in range(m):
                        out[j + k] *= self.node_factors[cols[k]]
            else:
                self.edges.gather(self.edge_offsets[i] + place.row, m, cols, w + self.edge_start,
                                  out + j)
            j += m

    cdef double dot(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, const double* value,
                    const double* w) noexcept nogil:
        cdef Py_ssize_t k, m, j = 0
        cdef double[TOGETHER] score
        cdef double total = 0
        while j < nnz:
            m = min(nnz - j, TOGETHER)
            self.scores(i, m, index + j, w, score)
            for k in range(m):
                total += value[j + k] * score[k]
            j += m
        return total

    cdef void add_gram(self, Py_ssize_t i, Py_ssize_t nnz, const int* index,
                         const double* value, double coef, double* u,
                         double* scratch) noexcept nogil:
        cdef Py_ssize_t j, v, n_nodes = 0, n_edges, held = -1
        cdef Place place
        cdef const double* gram
        cdef double* column
        cdef double c
        # The last computed row of a Gram block, followed by the dense scratch of gram_row().
        cdef double* line = scratch
        cdef double* dense = scratch + (
            self.max_nodes if self.max_nodes > self.max_edges else self.max_edges)
        if self.node_size:
            n_nodes = self.offsets[i + 1] - self.offsets[i]
        for j in range(nnz):
            c = coef * value[j]
            if c == 0:
                continue
            place = self._place(i, index[j])
            if place.kind == SHARED:
                u[place.row] += c
            elif place.kind == NODE:
                if self.has_gram:
                    gram = &self.node_gram[self.gram_offsets[i]] + place.row * n_nodes
                else:
                    if held != place.row:
                        self.nodes.gram_row(self.offsets[i] + place.row, self.offsets[i],
                                            self.offsets[i + 1], dense, line)
                        held = place.row
                    gram = line
                column = u + self.shared_size + place.col
                if self.node_factors != NULL:
                    c *= self.node_factors[place.col] * self.node_factors[place.col]
                for v in range(n_nodes):
                    column[v * self.node_size] += c * gram[v]
            else:
                n_edges = self.edge_offsets[i + 1] - self.edge_offsets[i]
                self.edges.gram_row(self.edge_offsets[i] + place.row, self.edge_offsets[i],
                                    self.edge_offsets[i + 1], dense, line)
                held = -1
                column = u + self.shared_size + n_nodes * self.node_size + place.col
                for v in range(n_edges):
                    column[v * self.edge_size] += c * line[v]
        # `line` is not cleared; `dense` is zero again.

    cdef void move_gram(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, double coef,
                          double* u, double* theta) noexcept nogil:
        cdef Py_ssize_t j, v, first, count, size, n_nodes = 0
        cdef Place place
        if self.node_size:
            n_nodes = self.offsets[i + 1] - self.offsets[i]
        for j in range(nnz):
            place = self._place(i, index[j])
            if place.kind == SHARED:
                theta[place.row] += coef * u[place.row]
                u[place.row] = 0
                continue
            first, count, size = self.shared_size + place.col, n_nodes, self.node_size
            if place.kind == EDGE:
                first += n_nodes * self.node_size
                count = self.edge_offsets[i + 1] - self.edge_offsets[i]
                size = self.edge_size
            for v in range(count):
                theta[first + v * size] += coef * u[first + v * size]
                u[first + v * size] = 0

    cdef void clear_gram(self, Py_ssize_t i, Py_ssize_t nnz, const int* index,
                           double* u) noexcept nogil:
        self.move_gram(i, nnz, index, 0.0, u, u)
