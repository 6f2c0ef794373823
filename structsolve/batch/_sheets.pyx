"""Arrays of part scores as users hold them, read to and written from padded rows of doubles.

Everything that operators see is double; arrays are float32 or float64.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset
from ..part_layout cimport PartLayout

from ..utils.arrays import aligned_zeros

cnp.import_array()

ctypedef fused real:
    float
    double


cdef Py_ssize_t _widen(const real* x, Py_ssize_t rows, Py_ssize_t cols, Py_ssize_t stride,
                       double* out) noexcept nogil:
    """Copy rows and pad them with 0; return how many numbers are NaN or +inf."""
    cdef Py_ssize_t r, s, bad = 0
    for r in range(rows):
        for s in range(cols):
            out[s] = x[s]
            bad += not x[s] < INFINITY
        for s in range(cols, stride):
            out[s] = 0
        x += cols
        out += stride
    return bad


cdef void _narrow(const double* x, double weight, Py_ssize_t rows, Py_ssize_t cols,
                  Py_ssize_t stride, real* out) noexcept nogil:
    cdef Py_ssize_t r, s
    for r in range(rows):
        for s in range(cols):
            out[s] = <real>(weight * x[s])
        x += stride
        out += cols


cdef int _refuse(Sheet sheet, Py_ssize_t i, const double* theta) except -1 with gil:
    # Some score of the example is no number: which?
    cdef Py_ssize_t start = sheet.layout.shared_size, middle = sheet.layout.edge_start(i), k
    for k in range(start, sheet.layout.theta_size(i)):
        if not theta[k] < INFINITY:
            kind, first = ("node", start) if k < middle else ("edge", middle)
            block = next(block for block in sheet.blocks if block.kind == kind)
            row, rest = divmod(k - first, block.size)
            axes = [*block.shape]
            axes[len(axes) - 1] = block.stride
            place = [int(x) for x in np.unravel_index(rest, axes)]
            raise ValueError(
                f"example {i}: the block {block.name!r} holds {theta[k]} at {kind} {row}, "
                f"{place}; expected numbers, or -inf for what is forbidden"
            )
    return 0


cdef class Sheet:
    """The arrays of one :class:`~structsolve.batch.Scores`, checked against the examples' layout.

    Parameters
    ----------
    layout : PartLayout
    blocks : sequence of Block
        Of the same space.
    node, edge : ndarray of float32 or float64, or None
        One row of the block's shape for each node, or edge; None: zeros.
    shared : dict of str to ndarray
        Arrays of the blocks' shapes; with ``each`` one such array per example.
    rows, edge_rows : ndarray of int64 of shape (n,), optional
        First row of each example; without it rows follow each other.
    each : bool, default=False
        Shared blocks differ from example to example.
    written : bool, default=False
        The arrays are to be written: they must be contiguous, and are not read.

    Raises
    ------
    ValueError, TypeError
        Naming the block, what was found and what was expected.
    """

    def __init__(self, PartLayout layout not None, blocks, node, shared, edge, rows=None,
                 edge_rows=None, bint each=False, bint written=False):
        cdef Py_ssize_t n = layout.n if each else 1
        cdef double[::1] view
        self.layout, self.blocks, self.owners = layout, blocks, []
        self.shared_step = layout.shared_size if each else 0
        self.table = aligned_zeros(n * layout.shared_size + 8)
        view = self.table
        self.shared = &view[0]
        if shared:
            known = {block.name: block for block in blocks if block.kind == "shared"}
            for name, array in shared.items():
                if name not in known:
                    raise ValueError(
                        f"scores: found a shared block {name!r}, expected some of {sorted(known)}"
                    )
                if array is not None:
                    self._take(known[name], array, n, each, written)
        kinds = {block.kind: block for block in blocks if block.kind != "shared"}
        for kind, array, first in (("node", node, rows), ("edge", edge, edge_rows)):
            block = kinds.get(kind)
            if block is None:
                if array is not None:
                    raise ValueError(
                        f"scores: found an array of shape {np.shape(array)} for {kind}s, expected "
                        f"None: the space has no {kind} block"
                    )
            elif array is not None:
                array = _checked(array, block, written)
                self._open(&self.node if kind == "node" else &self.edge, block, array, first)
                if kind == "node":
                    self.node_array = array
                else:
                    self.edge_array = array

    def _take(self, block, array, Py_ssize_t n, bint each, bint written):
        # A shared block: into the table.
        array = _checked(array, block, written)
        expected = (n, *block.shape) if each else tuple(block.shape)
        if array.shape != expected:
            raise _misfit(block, array, expected)
        if written:
            return
        place = self.block_views(block)
        place[...] = array if each else array[None]
        if not (array < np.inf).all():
            where = np.argwhere(~(array < np.inf))[0].tolist()
            raise ValueError(
                f"scores: the block {block.name!r} holds {array[tuple(where)]} at {where}; "
                "expected numbers, or -inf for what is forbidden"
            )

    cdef int _open(self, Rows* place, block, array, first) except -1:
        # Rows of nodes or edges.
        cdef PartLayout layout = self.layout
        cdef bint nodes = block.kind == "node"
        cdef const int64_t* bounds = layout.offsets if nodes else layout.edge_offsets
        cdef const int64_t[::1] view
        cdef Py_ssize_t i, end = 0 if bounds == NULL else bounds[layout.n]
        cdef Py_ssize_t n_rows = array.shape[0] if array.ndim else 0
        shape = tuple(block.shape)
        flat = shape == (1,) and array.ndim == 1
        if not flat and np.shape(array)[1:] != shape or not array.ndim:
            raise _misfit(block, array, (end if first is None else "rows", *shape))
        if first is None:
            if n_rows != end:
                raise _misfit(block, array, (end, *shape))
            place.first = bounds
        else:
            if getattr(first, "dtype", None) != np.int64 or np.shape(first) != (layout.n,):
                raise ValueError(
                    f"scores: rows of {block.kind}s: found {type(first).__name__} of shape "
                    f"{np.shape(first)}, expected int64 ({layout.n},): the first of each example"
                )
            view = np.ascontiguousarray(first)
            end = 0
            for i in range(layout.n):
                if view[i] < end:
                    raise ValueError(
                        f"example {i}: its {block.kind}s begin at row {view[i]}, expected at "
                        f"least {end}: behind those of the example before"
                    )
                end = view[i] + (layout.nodes_of(i) if nodes else layout.edges_of(i))
                if end > n_rows:
                    raise ValueError(
                        f"example {i}: its {block.kind}s are the rows {view[i]} to {end - 1}, and "
                        f"the array of block {block.name!r} has {n_rows}"
                    )
            if layout.n:
                place.first = &view[0]
            self.owners.append(view)
        place.data = <char*>cnp.PyArray_DATA(array)
        place.single = cnp.PyArray_TYPE(array) == cnp.NPY_FLOAT
        place.cols, place.stride = shape[len(shape) - 1], block.stride
        place.rows = block.size // block.stride
        self.owners.append(array)
        return 0

    def block_views(self, block):
        """Return a shared block of the table: one array per example, or one in all.

        Parameters
        ----------
        block : Block

        Returns
        -------
        ndarray of float64 of shape (n or 1, *block.shape)
            A view.
        """
        return views_of(self.table[:self.table.size - 8], self.layout, block)

    cdef int read(self, Py_ssize_t i, double* theta) except -1 nogil:
        cdef Py_ssize_t bad, start = self.layout.shared_size
        memcpy(theta, self.shared + i * self.shared_step, start * sizeof(double))
        bad = _read(&self.node, i, self.layout.nodes_of(i), self.layout.node_size, theta + start)
        if self.layout.edge_size:
            bad += _read(&self.edge, i, self.layout.edges_of(i), self.layout.edge_size,
                         theta + self.layout.edge_start(i))
        return _refuse(self, i, theta) if bad else 0

    cdef void write(self, Py_ssize_t i, const double* theta, double weight) noexcept nogil:
        _write(&self.node, i, self.layout.nodes_of(i), theta + self.layout.shared_size, weight)
        if self.layout.edge_size:
            _write(&self.edge, i, self.layout.edges_of(i), theta + self.layout.edge_start(i),
                   weight)


cdef Py_ssize_t _read(const Rows* x, Py_ssize_t i, Py_ssize_t n, Py_ssize_t size,
                      double* out) noexcept nogil:
    cdef Py_ssize_t start
    if x.data == NULL:
        memset(out, 0, n * size * sizeof(double))
        return 0
    start = x.first[i] * x.rows * x.cols
    if x.single:
        return _widen(<const float*>x.data + start, n * x.rows, x.cols, x.stride, out)
    return _widen(<const double*>x.data + start, n * x.rows, x.cols, x.stride, out)


cdef void _write(const Rows* x, Py_ssize_t i, Py_ssize_t n, const double* theta,
                 double weight) noexcept nogil:
    cdef Py_ssize_t start
    if x.data == NULL:
        return
    start = x.first[i] * x.rows * x.cols
    if x.single:
        _narrow(theta, weight, n * x.rows, x.cols, x.stride, <float*>x.data + start)
    else:
        _narrow(theta, weight, n * x.rows, x.cols, x.stride, <double*>x.data + start)


def views_of(table, PartLayout layout not None, block):
    """Return a shared block in rows of the shared part of theta, without its padding.

    Parameters
    ----------
    table : ndarray of float64
        Rows of ``layout.shared_size`` doubles.
    layout : PartLayout
    block : Block

    Returns
    -------
    ndarray of float64 of shape (rows, *block.shape)
        A view.
    """
    start, shape = layout.starts[block.name], [*block.shape]
    width = shape.pop()
    rows = table.reshape(len(table) // layout.shared_size, layout.shared_size)[:, start:start + block.size]
    return rows.reshape(len(rows), *shape, block.stride)[..., :width]


def _checked(array, block, bint written):
    # An array of the right type; its shape is checked where it is known.
    cdef int kind
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"scores: the block {block.name!r} is a {type(array).__name__}, expected a NumPy array"
        )
    kind = cnp.PyArray_TYPE(array)
    if kind != cnp.NPY_FLOAT and kind != cnp.NPY_DOUBLE or not array.dtype.isnative:
        raise TypeError(
            f"scores: the block {block.name!r} has dtype {array.dtype}, expected float32 or float64"
        )
    if cnp.PyArray_CHKFLAGS(array, cnp.NPY_ARRAY_CARRAY if written else cnp.NPY_ARRAY_CARRAY_RO):
        return array
    if written:
        raise ValueError(
            f"out: the array of block {block.name!r} is read-only or not contiguous, expected one "
            "that can be written to, in C order"
        )
    return np.ascontiguousarray(array)


def _misfit(block, array, expected):
    shape = ", ".join(map(str, expected)) + ("," if len(expected) == 1 else "")
    return ValueError(
        f"scores: the array of block {block.name!r} has shape {np.shape(array)}, expected "
        f"({shape})"
    )
