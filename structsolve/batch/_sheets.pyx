"""Conversion of users' arrays of part scores to and from padded rows of doubles.

Operators use doubles; arrays are float32 or float64.
"""

from collections import namedtuple

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset
from ..part_layout cimport PartLayout


cnp.import_array()

ctypedef fused real:
    float
    double


cdef Py_ssize_t _widen(const real* x, Py_ssize_t rows, Py_ssize_t cols, Py_ssize_t stride,
                       double* out) noexcept nogil:
    """Copy rows and pad them with 0; return the number of entries that are NaN or +inf."""
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


class Place(namedtuple("Place", "name kind shape rows cols stride size start")):
    """Position of a block in theta, and its sizes; see :func:`places_of`."""

    __slots__ = ()


def places_of(PartLayout layout not None, blocks):
    """Return the positions of blocks in theta.

    Parameters
    ----------
    layout : PartLayout
    blocks : sequence of Block

    Returns
    -------
    list of Place
        ``rows`` of ``cols`` numbers each, ``stride`` apart, make one row of the block.
    """
    return [
        Place(block.name, block.kind, tuple(block.shape), block.size // block.stride,
              block.shape[len(block.shape) - 1], block.stride, block.size,
              layout.starts[block.name])
        for block in blocks
    ]


cdef inline Py_ssize_t _room(const int64_t[::1] offsets, Py_ssize_t i, Py_ssize_t end,
                             Py_ssize_t longest) except -1:
    # Labels of example i.
    if not (0 <= offsets[i] <= offsets[i + 1] <= end and offsets[i + 1] - offsets[i] <= longest):
        raise ValueError(
            f"example {i}: offsets {offsets[i]} and {offsets[i + 1]}, expected at most {longest} "
            f"labels of {end}"
        )
    return offsets[i + 1] - offsets[i]


def padded_rows(const int[::1] flat not None, const int64_t[::1] offsets not None,
                Py_ssize_t longest, int64_t padding):
    """Labels one after the other as rows of one length.

    Parameters
    ----------
    flat : ndarray of int32
    offsets : ndarray of int64 of shape (n + 1,)
        First label of each example, and the end.
    longest : int
        At least the length of any.
    padding : int
        Behind the labels of an example.

    Returns
    -------
    ndarray of int64 of shape (n, longest)
    """
    cdef Py_ssize_t i, v, n = offsets.shape[0] - 1, size
    cdef cnp.ndarray[int64_t, ndim=2] rows = np.empty((n, longest), np.int64)
    for i in range(n):
        size = _room(offsets, i, flat.shape[0], longest)
        for v in range(size):
            rows[i, v] = flat[offsets[i] + v]
        for v in range(size, longest):
            rows[i, v] = padding
    return rows


def flat_rows(const int64_t[:, :] rows not None, const int64_t[::1] offsets not None):
    """Labels one after the other, from rows of one length; see :func:`padded_rows`.

    Parameters
    ----------
    rows : ndarray of int64 of shape (n, longest)
    offsets : ndarray of int64 of shape (n + 1,)

    Returns
    -------
    ndarray of int64
    """
    cdef Py_ssize_t i, v, n = offsets.shape[0] - 1
    if n < 0 or rows.shape[0] < n:
        raise ValueError(f"rows: found {rows.shape[0]}, expected one per example, {n}")
    cdef int64_t[::1] flat = np.empty(offsets[n], np.int64)
    for i in range(n):
        for v in range(_room(offsets, i, flat.shape[0], rows.shape[1])):
            flat[offsets[i] + v] = rows[i, v]
    return flat.base


def extremes(const int64_t[::1] offsets not None):
    """The least and the largest size of examples; 0 without any.

    Parameters
    ----------
    offsets : ndarray of int64 of shape (n + 1,)

    Returns
    -------
    least, largest : int
    """
    cdef Py_ssize_t i
    cdef int64_t size, least = 0, largest = 0
    for i in range(offsets.shape[0] - 1):
        size = offsets[i + 1] - offsets[i]
        least = size if i == 0 or size < least else least
        largest = max(largest, size)
    return least, largest


def first_of_ranges(const int64_t[::1] offsets not None, const double[::1] shares not None):
    """First example of each range of about equal numbers of nodes, and the end.

    Parameters
    ----------
    offsets : ndarray of int64 of shape (n + 1,)
    shares : ndarray of float64
        Share of all nodes before each range but the first, rising.

    Returns
    -------
    ndarray of int64
    """
    cdef Py_ssize_t i = 0, k, many = 1, n = offsets.shape[0] - 1
    cdef cnp.npy_intp size = shares.shape[0] + 2
    cdef cnp.ndarray answer = cnp.PyArray_ZEROS(1, &size, cnp.NPY_INT64, 0)
    cdef int64_t* first = <int64_t*>answer.data
    for k in range(shares.shape[0] if n > 1 else 0):
        while i < n and offsets[i] < offsets[n] * shares[k]:
            i += 1
        if first[many - 1] < i < n:
            first[many] = i
            many += 1
    if n:
        first[many] = n
        many += 1
    return answer[:many]


def one_for_each(shared, list places not None):
    """Whether each example has shared blocks of its own: all arrays have one more axis.

    Parameters
    ----------
    shared : mapping of str to ndarray or None
    places : list of Place

    Returns
    -------
    bool
    """
    cdef bint some = False
    for place in places:
        array = shared.get(place.name)
        if array is not None:
            axes = array.ndim if isinstance(array, np.ndarray) else np.ndim(array)
            if axes != len(place.shape) + 1:
                return False
            some = True
    return some


cdef int _refuse(Sheet sheet, Py_ssize_t i, const double* theta) except -1 with gil:
    # Find the score that is not a number.
    cdef Py_ssize_t start = sheet.layout.shared_size, middle = sheet.layout.edge_start(i), k
    for k in range(start, sheet.layout.theta_size(i)):
        if not theta[k] < INFINITY:
            kind, first = ("node", start) if k < middle else ("edge", middle)
            place = next(place for place in sheet.places if place.kind == kind)
            row, rest = divmod(k - first, place.size)
            raise ValueError(
                f"example {i}: the block {place.name!r} holds {theta[k]} at {kind} {row}, "
                f"{_index(place, rest)}; expected numbers, or -inf for what is forbidden"
            )
    return 0


def _index(place, Py_ssize_t k):
    # Convert the position of a double in theta to an index in a row of its block.
    axes = [*place.shape]
    axes[len(axes) - 1] = place.stride
    return [int(x) for x in np.unravel_index(k, axes)]


cdef class Sheet:
    """The arrays of one :class:`~structsolve.batch.Scores`, checked against the examples' layout.

    Parameters
    ----------
    layout : PartLayout
    places : list of Place
        From the same layout.
    node, edge : ndarray of float32 or float64, or None
        One row of the block's shape for each node, or edge; None: zeros.
    shared : dict of str to ndarray
        Arrays of the blocks' shapes; with ``each``, one such array per example.
    rows, edge_rows : ndarray of int64 of shape (n,), optional
        First row of each example; by default, examples follow each other without gaps.
    each : bool, default=False
        Each example has its own shared blocks.
    written : bool, default=False
        The arrays are outputs: they must be contiguous, and are not read.

    Raises
    ------
    ValueError, TypeError
        The message names the block, what was found and what was expected.
    """

    def __init__(self, PartLayout layout not None, list places not None, node, shared, edge,
                 rows=None, edge_rows=None, bint each=False, bint written=False):
        cdef cnp.npy_intp size
        self.layout, self.places, self.owners, self.tables = layout, places, [], []
        self.written = written
        self.n_shared = layout.n if each else 1
        self.shared_step = layout.shared_size if each else 0
        size = self.n_shared * layout.shared_size + 1
        self.table = cnp.PyArray_ZEROS(1, &size, cnp.NPY_DOUBLE, 0)
        self.shared = <double*>cnp.PyArray_DATA(self.table)
        if shared:
            known = {place.name: place for place in places if place.kind == "shared"}
            for name, array in shared.items():
                if name not in known:
                    raise ValueError(
                        f"scores: found a shared block {name!r}, expected some of {sorted(known)}"
                    )
                if array is not None:
                    self.take(known[name], array, each)
        kinds = {place.kind: place for place in places if place.kind != "shared"}
        for kind, array, first in (("node", node, rows), ("edge", edge, edge_rows)):
            if array is None:
                continue
            place = kinds.get(kind)
            if place is None:
                raise ValueError(
                    f"scores: found an array of shape {np.shape(array)} for {kind}s, expected "
                    f"None: the space has no {kind} block"
                )
            array = _checked(array, place, written)
            if kind == "node":
                self.node_array = array
                self.open(&self.node, place, array, first)
            else:
                self.edge_array = array
                self.open(&self.edge, place, array, first)

    cdef bint again(self, blocks, arrays) except -1:
        cdef Py_ssize_t k = 0
        self.each = NULL
        for block, array in zip(blocks, arrays):
            kind = block.kind
            if kind == "shared":
                place, old = self.tables[k] if k < len(self.tables) else (None, None)
                if not _alike(array, old, self.written) or place.name != block.name:
                    return False
                self.tables[k] = place, array
                self.read_table(place, array)
                k += 1
            elif not _alike(array, self.node_array if kind == "node" else self.edge_array,
                            self.written):
                return False
            elif kind == "node":
                self.node.data = <char*>cnp.PyArray_DATA(array)
            else:
                self.edge.data = <char*>cnp.PyArray_DATA(array)
        return True

    cdef int take(self, place, array, bint each) except -1:
        # A shared block.
        array = _checked(array, place, self.written)
        expected = (self.n_shared, *place.shape) if each else place.shape
        if (<cnp.ndarray>array).ndim != len(expected) or array.shape != expected:
            raise _misfit(place, array, expected)
        self.tables.append((place, array))
        return self.read_table(place, array)

    cdef int read_table(self, place, array) except -1:
        # The numbers of a shared block are copied to the table, or later from there.
        cdef Py_ssize_t i, start = place.start, size = place.rows * place.cols, bad = 0
        cdef Py_ssize_t rows = place.rows, cols = place.cols, stride = place.stride
        cdef char* data = <char*>cnp.PyArray_DATA(array)
        if self.written:
            return 0
        for i in range(self.n_shared):
            if cnp.PyArray_TYPE(array) == cnp.NPY_FLOAT:
                bad += _widen(<float*>data + i * size, rows, cols, stride,
                              self.shared + i * self.shared_step + start)
            else:
                bad += _widen(<double*>data + i * size, rows, cols, stride,
                              self.shared + i * self.shared_step + start)
        if bad:
            where = np.argwhere(~(array < np.inf))[0].tolist()
            raise ValueError(
                f"scores: the block {place.name!r} holds {array[tuple(where)]} at {where}; "
                "expected numbers, or -inf for what is forbidden"
            )
        return 0

    cdef int open_each(self, Py_ssize_t start) except -1:
        cdef Py_ssize_t i, first
        for place, array in self.tables if self.shared_step else ():
            if place.start == start and cnp.PyArray_TYPE(array) == cnp.NPY_FLOAT:
                self.each = <float*>cnp.PyArray_DATA(array)
                continue
            for i in range(self.n_shared):  # loops add to what may be left from other arrays
                first = i * self.shared_step + <Py_ssize_t>place.start
                memset(self.shared + first, 0, <Py_ssize_t>place.size * sizeof(double))
        return 0

    cdef int store(self, const double* theta) except -1:
        # Copy the shared blocks' doubles in theta to the arrays, one set or one per example.
        cdef Py_ssize_t i, start, size, rows, cols, stride
        cdef char* data
        for place, array in self.tables:
            start, rows, cols, stride = place.start, place.rows, place.cols, place.stride
            size, data = rows * cols, <char*>cnp.PyArray_DATA(array)
            if data == <char*>self.each:
                continue
            for i in range(self.n_shared):
                if cnp.PyArray_TYPE(array) == cnp.NPY_FLOAT:
                    _narrow(theta + i * self.shared_step + start, 1, rows, cols, stride,
                            <float*>data + i * size)
                else:
                    _narrow(theta + i * self.shared_step + start, 1, rows, cols, stride,
                            <double*>data + i * size)
        return 0

    cdef int open(self, Rows* rows, place, array, first) except -1:
        # Rows of nodes or edges.
        cdef PartLayout layout = self.layout
        cdef bint nodes = place.kind == "node"
        cdef const int64_t* bounds = layout.offsets if nodes else layout.edge_offsets
        cdef const int64_t[::1] view
        cdef Py_ssize_t i, end = 0 if bounds == NULL else bounds[layout.n]
        cdef Py_ssize_t n_rows = 0
        shape = array.shape
        if not (shape[1:] == place.shape if len(shape) > 1 else
                len(shape) == 1 and place.shape == (1,)):
            raise _misfit(place, array, (end if first is None else "rows", *place.shape))
        n_rows = shape[0]
        if first is None:
            if n_rows != end:
                raise _misfit(place, array, (end, *place.shape))
            rows.first = bounds
        else:
            if getattr(first, "dtype", None) != np.int64 or np.shape(first) != (layout.n,):
                raise ValueError(
                    f"scores: rows of {place.kind}s: found {type(first).__name__} of shape "
                    f"{np.shape(first)}, expected int64 ({layout.n},): the first of each example"
                )
            # A copy, so it cannot change during a pass.
            view = np.array(first)
            end = 0
            for i in range(layout.n):
                if view[i] < end:
                    raise ValueError(
                        f"example {i}: its {place.kind}s begin at row {view[i]}, expected at "
                        f"least {end}: behind those of the example before"
                    )
                end = view[i] + (layout.nodes_of(i) if nodes else layout.edges_of(i))
                if end > n_rows:
                    raise ValueError(
                        f"example {i}: its {place.kind}s are the rows {view[i]} to {end - 1}, and "
                        f"the array of block {place.name!r} has {n_rows}"
                    )
            if layout.n:
                rows.first = &view[0]
            self.owners.append(view)
        rows.data = <char*>cnp.PyArray_DATA(array)
        rows.single = cnp.PyArray_TYPE(array) == cnp.NPY_FLOAT
        rows.rows, rows.cols, rows.stride = place.rows, place.cols, place.stride
        return 0

    cdef int read(self, Py_ssize_t i, double* theta) except -1 nogil:
        memcpy(theta, self.shared + i * self.shared_step,
               self.layout.shared_size * sizeof(double))
        return self.read_rows(i, theta)

    cdef int read_rows(self, Py_ssize_t i, double* theta) except -1 nogil:
        cdef Py_ssize_t bad, start = self.layout.shared_size
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


def _checked(array, place, bint written):
    # Return an array of the right type; the caller checks its shape.
    cdef int kind
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"scores: the block {place.name!r} is a {type(array).__name__}, expected a NumPy array"
        )
    if type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray):
        raise TypeError(
            f"scores: the block {place.name!r} is a masked array, expected a plain one: "
            "-inf forbids a part, and rows= leaves rows out"
        )
    kind = cnp.PyArray_TYPE(array)
    if kind != cnp.NPY_FLOAT and kind != cnp.NPY_DOUBLE or not array.dtype.isnative:
        raise TypeError(
            f"scores: the block {place.name!r} has dtype {array.dtype}, expected float32 or float64"
        )
    if cnp.PyArray_CHKFLAGS(array, cnp.NPY_ARRAY_CARRAY if written else cnp.NPY_ARRAY_CARRAY_RO):
        return array
    if written:
        raise ValueError(
            f"out: the array of block {place.name!r} is read-only or not contiguous, expected one "
            "that can be written to, in C order"
        )
    return np.ascontiguousarray(array)


def again(Sheet sheet not None, blocks, arrays):
    """Point a sheet at other arrays, which the caller keeps as long as they are used.

    Parameters
    ----------
    sheet : Sheet
    blocks : sequence of Block
        Those of the sheet.
    arrays : sequence of ndarray

    Returns
    -------
    bool
        False: their types or sizes are others, so they need another sheet.

    Raises
    ------
    ValueError
        For scores that are no numbers.
    """
    return sheet.again(blocks, arrays)


cdef bint _alike(cnp.ndarray array, cnp.ndarray old, bint written):
    # Whether an array may replace one that was checked.
    return (old is not None and array is not None and cnp.PyArray_TYPE(array) == cnp.PyArray_TYPE(old)
            and cnp.PyArray_SIZE(array) == cnp.PyArray_SIZE(old)
            and (cnp.PyArray_ISCARRAY(array) if written else cnp.PyArray_ISCARRAY_RO(array)))


def _misfit(place, array, expected):
    shape = ", ".join(map(str, expected)) + ("," if len(expected) == 1 else "")
    return ValueError(
        f"scores: the array of block {place.name!r} has shape {np.shape(array)}, expected "
        f"({shape})"
    )
