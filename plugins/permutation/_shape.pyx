"""Sizes of assignment problems, their forbidden pairs, and the parts of their labels."""

import numpy as np

cimport cython
from libc.stdint cimport int64_t
from structsolve.algorithms.difference cimport write_pair
from structsolve.operators cimport Parts
from structsolve.part_layout cimport PartLayout


cdef class PairShape:
    """Rows and columns of each example, and the pairs of them that no label may use.

    Parameters
    ----------
    layout : PartLayout
        Of rankings (a block "node" of labels and ranks), or of matchings (a block "pair"), whose
        topology has "cols", the columns of each example, and "forbidden", None or uint8 of all
        pairs of all examples, row by row: non-zero where a pair is forbidden.

    Raises
    ------
    ValueError
        If sizes do not match.
    """

    def __init__(self, PartLayout layout not None):
        self.n, self.labels, self.owners = layout.n, layout.label_offsets, layout.owners
        self.max_rows = layout.max_label
        if "pair" in layout.shapes:
            self.read_tables(layout)
        else:
            self.read_ranks(layout)

    cdef int read_ranks(self, PartLayout layout) except -1:
        # Every example is a square, and one row of theta in which rows are padded.
        cdef Py_ssize_t K = layout.shapes["node"][0], i
        self.max_cols, self.padded = K, layout.node_size // K
        for i in range(layout.n):
            if layout.nodes_of(i) != 1 or layout.label_size(i) != K:
                raise ValueError(
                    f"example {i}: found {layout.nodes_of(i)} rows of scores and "
                    f"{layout.label_size(i)} ranks, expected 1 and {K}"
                )

    cdef int read_tables(self, PartLayout layout) except -1:
        # Every example is a table of pairs, each of which is a row of theta.
        cdef Py_ssize_t i, rows, cols
        cdef const int64_t[::1] col_view
        cdef const unsigned char[::1] mask_view
        topology = layout.examples.topology
        col_view = np.ascontiguousarray(topology["cols"], dtype=np.int64)
        if col_view.shape[0] != layout.n:
            raise ValueError(f"cols: found {col_view.shape[0]}, expected {layout.n}")
        for i in range(layout.n):
            rows, cols = layout.label_size(i), col_view[i]
            if not 1 <= rows <= cols:
                raise ValueError(
                    f"example {i}: found {rows} rows and {cols} columns, expected at least one "
                    "row and no more rows than columns"
                )
            if rows * cols != layout.nodes_of(i):
                raise ValueError(
                    f"example {i}: found {layout.nodes_of(i)} pairs, expected {rows} x {cols}"
                )
            self.max_cols = max(self.max_cols, cols)
        self.cols, self.pairs = &col_view[0] if layout.n else NULL, layout.offsets
        self.owners += (col_view,)
        forbidden = topology.get("forbidden")
        if forbidden is not None:
            mask_view = np.ascontiguousarray(forbidden, dtype=np.uint8)
            if mask_view.shape[0] != layout.offsets[layout.n]:
                raise ValueError(
                    f"forbidden has {mask_view.shape[0]} entries, expected "
                    f"{layout.offsets[layout.n]}"
                )
            self.mask = &mask_view[0] if layout.n else NULL
            self.owners += (mask_view,)

    cdef Py_ssize_t n_rows(self, Py_ssize_t i) noexcept nogil:
        return self.labels[i + 1] - self.labels[i]

    cdef Py_ssize_t n_cols(self, Py_ssize_t i) noexcept nogil:
        return self.max_cols if self.cols == NULL else self.cols[i]

    cdef Py_ssize_t stride(self, Py_ssize_t i) noexcept nogil:
        return self.padded if self.padded else self.cols[i]

    cdef const unsigned char* forbidden(self, Py_ssize_t i) noexcept nogil:
        return NULL if self.mask == NULL else self.mask + self.pairs[i]


cdef PairShape pair_shape(PartLayout layout):
    return layout.common(PairShape, PairShape)


cdef Py_ssize_t no_such_column(Py_ssize_t i, Py_ssize_t r, int column,
                               Py_ssize_t cols) except -1 with gil:
    raise ValueError(
        f"example {i}, row {r}: the label is column {column}, expected 0 to {cols - 1}"
    )


cdef Py_ssize_t no_assignment(Py_ssize_t i) except -1 with gil:
    raise ValueError(
        f"example {i}: no assignment is possible: the scores of the necessary pairs are "
        "-inf, NaN, beyond 1e300 or forbidden; allow more pairs, and check that the weights are "
        "finite"
    )


@cython.final
cdef class AssignmentParts(Parts):
    """One part per pair of a row and a column.

    Examples may have fewer columns than `n_states`: labels are checked against their own.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef PairShape shape

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.shape = pair_shape(layout)
        self.n_states = self.shape.max_cols
        self.max_entries = 2 * self.shape.max_rows

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        cdef Py_ssize_t r, stride = self.shape.stride(i), cols = self.shape.n_cols(i)
        for r in range(self.shape.n_rows(i)):
            if label[r] >= cols:
                return no_such_column(i, r, label[r], cols)
            index[r] = <int>(r * stride + label[r])
            value[r] = 1
        return self.shape.n_rows(i)

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        cdef Py_ssize_t r, n = 0, stride = self.shape.stride(i), cols = self.shape.n_cols(i)
        for r in range(self.shape.n_rows(i)):
            if truth[r] != label[r]:
                if max(truth[r], label[r]) >= cols:
                    return no_such_column(i, r, max(truth[r], label[r]), cols)
                n = write_pair(index, value, n, r * stride, truth[r], label[r])
        return n
