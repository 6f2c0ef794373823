"""Stacking of many short arrays, splitting of an array into views, and their checks."""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy
cimport numpy as cnp
from ..utils.new_array cimport view_of

import numpy as np

cnp.import_array()

ctypedef fused integer:
    int32_t
    int64_t

ctypedef fused real:
    float
    double

cdef enum:
    SAMPLE = 8192


def stack_csr(list rows not None, Py_ssize_t n_columns=-1, Py_ssize_t min_rows=0):
    """Stack CSR matrices; return the arrays of the result, or None if scipy must do it.

    Parameters
    ----------
    rows : list of csr_matrix
    n_columns : int, default=-1
        Expected number of columns; -1: that of the first matrix.
    min_rows : int, default=0
        Minimum number of rows of a matrix.

    Returns
    -------
    tuple of (ndarray, ndarray of int32, ndarray of int32, bool, ndarray of int64), or None
        The data, the indices and the indptr; whether indices increase strictly in every row; the
        first row of each matrix.  None if types of values or indices differ, shapes are not as
        expected, or there are 2^31 stored values or columns.

    Raises
    ------
    ValueError
        If the arrays of a matrix do not fit together, or an index is not a column.
    """
    cdef Py_ssize_t i, n_rows = 0, total = 0, n = len(rows)
    cdef cnp.npy_intp ends = n + 1
    cdef cnp.ndarray offsets = cnp.PyArray_EMPTY(1, &ends, cnp.NPY_INT64, 0)
    cdef int64_t* starts = <int64_t*>offsets.data
    starts[0] = 0
    cdef list kept = [None] * n
    cdef cnp.ndarray indptr, indices, data
    cdef int kind = -1, width = -1
    cdef int64_t size
    for i in range(n):
        x = rows[i]
        indptr, indices, data = x.indptr, x.indices, x.data
        if i == 0:
            kind, width = cnp.PyArray_TYPE(data), cnp.PyArray_TYPE(indptr)
        if not (cnp.PyArray_TYPE(data) == kind and (kind == cnp.NPY_DOUBLE or kind == cnp.NPY_FLOAT)
                and cnp.PyArray_TYPE(indices) == width and cnp.PyArray_TYPE(indptr) == width
                and (width == cnp.NPY_INT32 or width == cnp.NPY_INT64)):
            return None
        for array in (indptr, indices, data):
            if not (cnp.PyArray_ISCARRAY_RO(array) and (<cnp.ndarray>array).ndim == 1):
                return None
        shape = x.shape
        if len(shape) != 2:
            return None
        if indptr.shape[0] < 1 or indptr.shape[0] != shape[0] + 1:
            raise ValueError(f"matrix {i}: indptr has {indptr.shape[0]} entries, {shape[0]} rows")
        if n_columns < 0:
            n_columns = shape[1]
        if shape[1] != n_columns or n_columns > 0x7fffffff or shape[0] < min_rows:
            return None
        if width == cnp.NPY_INT32:
            size = (<const int32_t*>indptr.data)[indptr.shape[0] - 1]
        else:
            size = (<const int64_t*>indptr.data)[indptr.shape[0] - 1]
        # The arrays may be longer than the last pointer says.
        if not 0 <= size <= min(indices.shape[0], data.shape[0]):
            raise ValueError(
                f"matrix {i}: indptr ends at {size}, with {indices.shape[0]} indices and "
                f"{data.shape[0]} values"
            )
        kept[i] = (indptr, indices, data)
        n_rows += indptr.shape[0] - 1
        starts[i + 1] = n_rows
        total += size
        if total > 0x7fffffff:
            return None
    all_data = np.empty(total, dtype=np.float64 if kind == cnp.NPY_DOUBLE else np.float32)
    all_indices, all_indptr = np.empty(total, np.int32), np.zeros(n_rows + 1, np.int32)
    cdef char* values = <char*>cnp.PyArray_DATA(all_data)
    cdef int32_t* columns = <int32_t*>cnp.PyArray_DATA(all_indices)
    cdef int32_t* pointers = <int32_t*>cnp.PyArray_DATA(all_indptr)
    cdef Py_ssize_t item = all_data.itemsize, start = 0, row = 0
    cdef bint canonical = True
    for i in range(n):
        indptr, indices, data = kept[i]
        if width == cnp.NPY_INT32:
            size = _append(indptr.shape[0] - 1, <const int32_t*>indptr.data,
                           <const int32_t*>indices.data, start, pointers + row, columns + start,
                           &canonical, n_columns)
        else:
            size = _append(indptr.shape[0] - 1, <const int64_t*>indptr.data,
                           <const int64_t*>indices.data, start, pointers + row, columns + start,
                           &canonical, n_columns)
        if size == -1:
            raise ValueError(f"matrix {i}: indptr does not start at 0 or decreases")
        if size < 0:
            raise ValueError(f"matrix {i}: an index is not from 0 to {n_columns - 1}")
        memcpy(values + start * item, data.data, size * item)
        start += size
        row += indptr.shape[0] - 1
    return all_data, all_indices, all_indptr, canonical, offsets


cdef int64_t _append(Py_ssize_t rows, const integer* indptr, const integer* indices,
                     Py_ssize_t start, int32_t* pointers, int32_t* columns,
                     bint* canonical, Py_ssize_t n_columns) noexcept:
    """Copy one matrix after ``start`` values; return its number of values.

    -1: the pointers are broken; -2: an index is not a column.
    """
    cdef Py_ssize_t v
    cdef integer j, previous
    cdef bint ordered = True, inside = True
    if indptr[0] != 0:
        return -1
    for v in range(rows):
        if indptr[v + 1] < indptr[v] or indptr[v + 1] > indptr[rows]:
            return -1
        pointers[v + 1] = <int32_t>(start + indptr[v + 1])
        previous = -1
        for j in range(indptr[v], indptr[v + 1]):
            columns[j] = <int32_t>indices[j]
            ordered &= indices[j] > previous
            previous = indices[j]
            # Negative numbers become huge.
            inside &= <uint64_t><int64_t>indices[j] < <uint64_t>n_columns
    if not ordered:
        canonical[0] = False
    if not inside:
        return -2
    return indptr[rows]


def stack_dense(list rows not None, Py_ssize_t n_columns, Py_ssize_t min_rows, double density):
    """Stack copies of dense matrices; return None for unusual matrices.

    Parameters
    ----------
    rows : list of ndarray
        Of two dimensions, of float32 or of float64.
    n_columns : int
        Expected number of columns; -1: that of the first matrix.
    min_rows : int
        Minimum number of rows of a matrix.
    density : float
        See :func:`dense_to_csr`, which handles matrices with fewer non-zeros.

    Returns
    -------
    tuple of (ndarray, ndarray of int64), or None
        The matrix, and the first row of each of ``rows`` in it.
    """
    cdef Py_ssize_t i, n = len(rows), n_rows = 0
    cdef cnp.ndarray x
    cdef int kind = -1
    if n == 0:
        return None
    cdef cnp.npy_intp size = n + 1
    cdef cnp.ndarray offsets = cnp.PyArray_EMPTY(1, &size, cnp.NPY_INT64, 0)
    cdef int64_t* starts = <int64_t*>offsets.data
    starts[0] = 0
    for i in range(n):
        if not _is_matrix(rows[i], &kind):
            return None
        x = rows[i]
        if n_columns < 0:
            n_columns = x.shape[1]
        if x.shape[1] != n_columns or x.shape[0] < min_rows:
            return None
        n_rows += x.shape[0]
        starts[i + 1] = n_rows
    if not _is_dense(rows, kind, n_columns, n_rows * n_columns, density):
        return None
    cdef cnp.npy_intp[2] shape
    shape[0], shape[1] = n_rows, n_columns
    cdef cnp.ndarray matrix = cnp.PyArray_EMPTY(2, shape, kind, 0)
    cdef Py_ssize_t item = n_columns * (8 if kind == cnp.NPY_DOUBLE else 4)
    for i in range(n):
        x = rows[i]
        memcpy(matrix.data + starts[i] * item, x.data, x.shape[0] * item)
    return matrix, offsets


cdef bint _is_matrix(x, int* kind):
    """Return whether x is a contiguous matrix of float64 or float32; the first one sets the kind."""
    if not cnp.PyArray_CheckExact(x):
        return False
    cdef cnp.ndarray array = x
    if kind[0] < 0:
        kind[0] = cnp.PyArray_TYPE(array)
    return (cnp.PyArray_TYPE(array) == kind[0]
            and (kind[0] == cnp.NPY_DOUBLE or kind[0] == cnp.NPY_FLOAT)
            and cnp.PyArray_ISCARRAY_RO(array) and array.ndim == 2)


cdef bint _is_dense(list rows, int kind, Py_ssize_t n_columns, Py_ssize_t size, double density):
    """Return whether the first few values have more non-zeros than ``density`` allows.

    The rows are checked already: contiguous, of one type, with ``n_columns``.
    """
    cdef Py_ssize_t i, v, seen = 0, nnz = 0
    cdef cnp.ndarray x
    for i in range(len(rows)):
        x = rows[i]
        for v in range(x.shape[0]):
            if kind == cnp.NPY_DOUBLE:
                nnz += _count(n_columns, <const double*>x.data + v * n_columns)
            else:
                nnz += _count(n_columns, <const float*>x.data + v * n_columns)
            seen += n_columns
            if seen >= SAMPLE:
                return nnz > density * seen
    return size > 0 and nnz > <Py_ssize_t>(density * size)


cdef Py_ssize_t _count(Py_ssize_t n, const real* x) noexcept:
    cdef Py_ssize_t j, nnz = 0
    for j in range(n):
        nnz += x[j] != 0
    return nnz


def dense_to_csr(list rows not None, double density):
    """Stack dense matrices as CSR; return the arrays, or None unless most values are zero.

    Parameters
    ----------
    rows : list of ndarray
        Of two dimensions, of float32 or of float64, with the same number of columns.
        Other arrays, or arrays of several types, give None.
    density : float
        Largest share of values that may differ from zero.  The first few thousand values decide:
        if they have too many non-zeros, the result is None.

    Returns
    -------
    tuple of (ndarray, ndarray of int32, ndarray of int32), or None
        The data, the indices and the indptr.
    """
    cdef Py_ssize_t i, v, n_rows = 0, size = 0, n_columns = -1, limit, nnz = 0, row = 0
    cdef cnp.ndarray x
    cdef int kind = -1
    for i in range(len(rows)):
        if not _is_matrix(rows[i], &kind):
            return None
        x = rows[i]
        if i == 0:
            n_columns = x.shape[1]
        if x.shape[1] != n_columns:
            return None
        n_rows += x.shape[0]
    size = n_rows * n_columns
    limit = <Py_ssize_t>(density * size)
    if size == 0 or max(limit, n_columns) > 0x7fffffff:
        return None
    if _is_dense(rows, kind, n_columns, size, density):
        return None
    # One extra: a value is written before it is compared with zero.
    data = np.empty(limit + 1, dtype=np.float64 if kind == cnp.NPY_DOUBLE else np.float32)
    indices, indptr = np.empty(limit + 1, np.int32), np.zeros(n_rows + 1, np.int32)
    cdef char* values = <char*>cnp.PyArray_DATA(data)
    cdef int32_t* columns = <int32_t*>cnp.PyArray_DATA(indices)
    cdef int32_t* pointers = <int32_t*>cnp.PyArray_DATA(indptr)
    for i in range(len(rows)):
        x = rows[i]
        for v in range(x.shape[0]):
            if kind == cnp.NPY_DOUBLE:
                nnz = _compress(n_columns, <const double*>x.data + v * n_columns, nnz, limit,
                                <double*>values, columns)
            else:
                nnz = _compress(n_columns, <const float*>x.data + v * n_columns, nnz, limit,
                                <float*>values, columns)
            row += 1
            pointers[row] = <int32_t>nnz
            if nnz < 0:
                return None
    data.resize(nnz, refcheck=False)
    indices.resize(nnz, refcheck=False)
    return data, indices, indptr


cdef Py_ssize_t _compress(Py_ssize_t n, const real* x, Py_ssize_t nnz, Py_ssize_t limit,
                          real* values, int32_t* columns) noexcept:
    """Append the non-zeros of a row; return the new number of values, or -1 above the limit."""
    cdef Py_ssize_t j
    if nnz + n <= limit:
        for j in range(n):      # branch-free, because zeros are unpredictable
            values[nnz] = x[j]
            columns[nnz] = <int32_t>j
            nnz += x[j] != 0
        return nnz
    for j in range(n):
        if x[j] != 0:
            if nnz == limit:
                return -1
            values[nnz] = x[j]
            columns[nnz] = <int32_t>j
            nnz += 1
    return nnz


def pieces(cnp.ndarray flat not None, offsets):
    """Return views of the rows ``offsets[i]`` to ``offsets[i + 1]`` of ``flat``, one per i.

    More than twice as fast as a loop of slices.

    Parameters
    ----------
    flat : ndarray of at least one dimension
    offsets : array of int of shape (n + 1,)
        Non-decreasing, within the rows of ``flat``.

    Returns
    -------
    list of n ndarrays

    Raises
    ------
    TypeError
        If ``flat`` is not a plain ndarray of at least one dimension.
    ValueError
        If offsets decrease or lie outside of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.examples.stacking import pieces
    >>> pieces(np.arange(5), [0, 2, 2, 5])
    [array([0, 1]), array([], dtype=int64), array([2, 3, 4])]
    """
    cdef const int64_t[::1] ends = np.ascontiguousarray(offsets, dtype=np.int64)
    cdef Py_ssize_t i, n = ends.shape[0] - 1
    cdef int k, ndim = flat.ndim, flags = cnp.PyArray_FLAGS(flat) & ~cnp.NPY_ARRAY_OWNDATA
    cdef cnp.npy_intp[64] shape
    if type(flat) is not np.ndarray or not 0 < ndim <= 64:
        raise TypeError(f"flat is a {type(flat).__name__} with {ndim} dimensions; expected a plain "
                        "ndarray of at least one")
    for k in range(ndim):
        shape[k] = flat.shape[k]
    for i in range(n):
        if not 0 <= ends[i] <= ends[i + 1] <= flat.shape[0]:
            raise ValueError(f"offsets {ends[i]} and {ends[i + 1]}: expected them non-decreasing, "
                             f"0 to {flat.shape[0]}")
    cdef list views = [None] * max(n, 0)
    for i in range(n):
        shape[0] = ends[i + 1] - ends[i]
        views[i] = view_of(
            flat, ndim, shape, flat.strides, flat.data + ends[i] * flat.strides[0], flags)
    return views


def size_starts(sizes, int64_t least):
    """Return the start of each example and the end, by a fast way.

    Parameters
    ----------
    sizes : ndarray of int64 of shape (n,)
    least : int

    Returns
    -------
    ndarray of int64 of shape (n + 1,), or None
        None for any other array, no size, and a size below ``least``.
    """
    cdef Py_ssize_t i, n
    cdef const int64_t* size
    cdef int64_t* start
    cdef cnp.ndarray offsets
    if not cnp.PyArray_CheckExact(sizes) or (<cnp.ndarray>sizes).ndim != 1 or (
            cnp.PyArray_TYPE(sizes) != cnp.NPY_INT64 or not cnp.PyArray_ISCARRAY_RO(sizes)):
        return None
    n = (<cnp.ndarray>sizes).shape[0]
    size = <const int64_t*>(<cnp.ndarray>sizes).data
    offsets = np.empty(n + 1, np.int64)
    start = <int64_t*>offsets.data
    start[0] = 0
    for i in range(n):
        if size[i] < least:
            return None
        start[i + 1] = start[i] + size[i]
    return offsets if n else None


def distinct_pairs(given, int64_t end):
    """Return pairs of different integers from 0 to ``end - 1`` as an array, by a fast way.

    Parameters
    ----------
    given : list of lists or tuples of two integers, or array of int of shape (m, 2)
    end : int
        At most 2^31.

    Returns
    -------
    ndarray of int32 of shape (m, 2), or None
        None for others, if only unusual, and for no pair.
    """
    cdef Py_ssize_t k, n = len(given) if type(given) is list else 0
    cdef cnp.ndarray array
    cdef cnp.npy_intp[2] shape
    cdef int64_t a, b
    cdef bint wide = False
    if cnp.PyArray_CheckExact(given):
        array = given
        if array.ndim != 2 or array.shape[1] != 2 or not cnp.PyArray_ISCARRAY_RO(array):
            return None
        wide = cnp.PyArray_TYPE(array) == cnp.NPY_INT64
        n = array.shape[0] if wide or cnp.PyArray_TYPE(array) == cnp.NPY_INT32 else 0
    if n == 0:
        return None
    shape[0], shape[1] = n, 2
    cdef cnp.ndarray pairs = cnp.PyArray_EMPTY(2, shape, cnp.NPY_INT32, 0)
    cdef int32_t* out = <int32_t*>pairs.data
    for k in range(n):
        if type(given) is list:
            pair = given[k]
            if not (type(pair) is list or type(pair) is tuple) or len(pair) != 2:
                return None
            first, second = pair
            if type(first) is not int or type(second) is not int or not (
                    0 <= first < end and 0 <= second < end):
                return None
            a, b = first, second
        elif wide:
            a, b = (<const int64_t*>array.data)[2 * k], (<const int64_t*>array.data)[2 * k + 1]
        else:
            a, b = (<const int32_t*>array.data)[2 * k], (<const int32_t*>array.data)[2 * k + 1]
        if a == b or not (0 <= a < end and 0 <= b < end):
            return None
        out[2 * k], out[2 * k + 1] = <int32_t>a, <int32_t>b
    return pairs


def arrays_fit(examples, layout, bint columns, bint features):
    """Return whether packed arrays fit each other and the layout, by a fast check.

    Parameters
    ----------
    examples : Examples
    layout : WeightLayout
    columns, features : bool
        See :meth:`Examples.check`, which names the fault.

    Returns
    -------
    bool
        May be False for valid but unusual arrays.
    """
    cdef int64_t n_nodes, n_labels, n_edges = -1
    cdef Py_ssize_t i, n
    cdef cnp.ndarray array
    cdef const double* weight
    if not cnp.PyArray_CheckExact(examples.offsets) or not isinstance(examples.topology, dict):
        return False
    array = examples.offsets
    n = array.shape[0] if array.ndim == 1 else 0
    n_nodes = n_labels = _end(array, n)
    if examples.label_offsets is not array:
        n_labels = _end(examples.label_offsets, n)
    if n_nodes < 0 or n_labels < 0:
        return False
    if examples.edge_offsets is not None:
        n_edges = _end(examples.edge_offsets, n)
        if n_edges < 0:
            return False
    if features:
        if layout.node is not None and not _has_shape(
                examples.nodes, n_nodes, <Py_ssize_t>layout.n_features if columns else -1):
            return False
        if layout.edge is not None and not _has_shape(
                examples.edges, n_edges, layout.n_edge_features):
            return False
    if examples.labels is not None:
        if not cnp.PyArray_CheckExact(examples.labels):
            return False
        array = examples.labels
        if array.ndim != 1 or array.shape[0] != n_labels or (
                cnp.PyArray_TYPE(array) != cnp.NPY_INT32 or not cnp.PyArray_ISCARRAY_RO(array)):
            return False
    if examples.sample_weight is not None:
        if not cnp.PyArray_CheckExact(examples.sample_weight):
            return False
        array = examples.sample_weight
        if array.ndim != 1 or array.shape[0] != n - 1 or (
                cnp.PyArray_TYPE(array) != cnp.NPY_DOUBLE or not cnp.PyArray_ISCARRAY_RO(array)):
            return False
        weight = <const double*>array.data
        for i in range(n - 1):
            if not (weight[i] >= 0 and weight[i] - weight[i] == 0):
                return False
    return True


cdef int64_t _end(object offsets, Py_ssize_t size):
    """Return the last of ``size`` offsets that rise from 0, or -1 for any other array."""
    cdef Py_ssize_t i
    cdef cnp.ndarray array
    cdef const int64_t* starts
    if not cnp.PyArray_CheckExact(offsets):
        return -1
    array = offsets
    if array.ndim != 1 or array.shape[0] != size or size < 1 or (
            cnp.PyArray_TYPE(array) != cnp.NPY_INT64 or not cnp.PyArray_ISCARRAY_RO(array)):
        return -1
    starts = <const int64_t*>array.data
    if starts[0] != 0:
        return -1
    for i in range(size - 1):
        if starts[i + 1] < starts[i]:
            return -1
    return starts[size - 1]


cdef bint _has_shape(object X, int64_t n_rows, Py_ssize_t n_columns):
    """Return whether X has two axes, with these numbers of rows and columns; -1: any."""
    shape = getattr(X, "shape", None)
    if type(shape) is not tuple or len(shape) != 2 or shape[0] != n_rows:
        return False
    return n_columns < 0 or shape[1] == n_columns
