"""Checks of sparse matrices before any library reads them.

SciPy uses ``indptr`` and ``indices`` without checks: arrays that do not fit together,
from a damaged file or another library, make it read and write outside of its memory.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np


def as_csr(X: Any, what: str = "X") -> Any:
    """Return a sparse matrix in the CSR format, its arrays checked before SciPy converts them.

    Parameters
    ----------
    X : scipy.sparse matrix or array of any format
        Taken as it is where it is CSR already; nothing is sorted or summed.
    what : str
        Name of the argument in errors.

    Returns
    -------
    scipy.sparse matrix or array in CSR format

    Raises
    ------
    ValueError
        If the arrays of X do not fit its shape, or each other.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from structsolve.utils.sparse import as_csr
    >>> X = sp.csr_matrix(np.eye(2))
    >>> X.indptr[1] = 7
    >>> as_csr(X)
    Traceback (most recent call last):
        ...
    ValueError: X: the sparse matrix is broken: indptr decreases at row 1, ...
    """
    refuse_broken(X, what)
    return X.tocsr()


def csr_of(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: Any, what: str = "X"
) -> Any:
    """Return a CSR matrix of arrays from a file.

    Parameters
    ----------
    data, indices, indptr : ndarray
        As in :class:`scipy.sparse.csr_matrix`.
    shape : sequence of two int
    what : str
        Name of the arrays in errors.

    Returns
    -------
    scipy.sparse.csr_matrix

    Raises
    ------
    ValueError
        If the arrays do not fit the shape, or each other.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.utils.sparse import csr_of
    >>> csr_of(np.ones(2), np.array([0, 1]), np.array([0, 1, 2]), (2, 2)).toarray().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    import scipy.sparse as sp  # heavy

    sizes = [int(size) for size in np.ravel(shape)]
    if len(sizes) != 2 or min(sizes) < 0:
        raise ValueError(f"{what}: found shape {sizes}, expected two sizes of at least 0")
    data, indices, indptr = np.asarray(data), np.asarray(indices), np.asarray(indptr)
    if data.dtype.kind not in "biuf":
        raise ValueError(f"{what}: values are of type {data.dtype}, expected numbers")
    trouble = _compressed(data, indices, indptr, sizes[0], sizes[1], "row")
    if trouble:
        raise ValueError(f"{what}: the sparse matrix is broken: {trouble}")
    return sp.csr_matrix((data, indices, indptr), shape=tuple(sizes))


def valid_csr(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, width: int, canonical: bool = False
) -> Any:
    """Return a CSR matrix of valid arrays, without SciPy's checks.

    These take most of the time of a small matrix.

    Parameters
    ----------
    data, indices, indptr : ndarray
        As in :class:`scipy.sparse.csr_matrix`; both index arrays of one type, unless nothing but
        loops of ours reads them.
    width : int
        Columns.
    canonical : bool, default=False
        The columns of each row are sorted, none twice.

    Returns
    -------
    scipy.sparse.csr_matrix

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.utils.sparse import valid_csr
    >>> valid_csr(np.ones(2), np.array([0, 1]), np.array([0, 1, 2]), 3).toarray().tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    matrix: Any
    state = _empty_csr()
    shape = (len(indptr) - 1, width)
    if state is None:
        import scipy.sparse as sp  # heavy

        matrix = sp.csr_matrix((data, indices, indptr), shape=shape, copy=False)
    else:
        kind, plain = state
        matrix = object.__new__(kind)
        vars(matrix).update(plain)
        matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
        matrix._shape = shape
    if canonical:
        matrix.has_canonical_format = True
    return matrix


@functools.cache
def _empty_csr() -> tuple[type, dict[str, Any]] | None:
    """Return CSR's class and what an empty one holds; None for a SciPy that is built otherwise."""
    import scipy.sparse as sp  # heavy

    plain = vars(sp.csr_matrix((1, 1)))
    if not {"_shape", "data", "indices", "indptr"} <= set(plain):
        return None
    return sp.csr_matrix, {k: v for k, v in plain.items() if not isinstance(v, np.ndarray)}


def refuse_flat(X: Any, what: str = "X") -> None:
    """Raise ValueError unless a sparse array has two dimensions.

    Parameters
    ----------
    X : scipy.sparse matrix or array
    what : str
        Name of the argument in errors.

    Raises
    ------
    ValueError
        The message names the shape.
    """
    if len(X.shape) != 2:
        raise ValueError(
            f"{what}: found a sparse array of {len(X.shape)} dimension(s), shape {X.shape}, "
            "expected 2: one row per node, one column per feature"
        )


def refuse_broken(X: Any, what: str = "X") -> None:
    """Raise ValueError if the arrays of a sparse matrix do not fit together.

    Parameters
    ----------
    X : scipy.sparse matrix or array
    what : str
        Name of the argument in errors.

    Raises
    ------
    ValueError
        The message names the array, the row where it is wrong, and what was expected.
    """
    refuse_flat(X, what)
    kind = getattr(X, "format", None)
    check = _CHECKS.get(str(kind))
    # Formats of plain Python objects (lil, dok) check their own indices when they are converted.
    trouble = check(X) if check else None
    if trouble:
        raise ValueError(f"{what}: the sparse matrix is broken: {trouble}")


def _compressed(data: Any, indices: Any, indptr: Any, major: int, minor: int, line: str) -> str:
    for name, array in (("indptr", indptr), ("indices", indices)):
        if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in "iu":
            return f"{name} is no 1-D array of integers"
    if len(indptr) != major + 1:
        return f"indptr has {len(indptr)} entries, expected {major + 1} for {major} {line}s"
    if indptr[0] != 0:
        return f"indptr starts at {indptr[0]}, expected 0"
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        v = int(falls.argmax())
        return f"indptr decreases at {line} {v}, from {indptr[v]} to {indptr[v + 1]}"
    stored = int(indptr[-1])
    if stored > min(len(indices), len(data)):
        return f"indptr ends at {stored}, with {len(indices)} indices and {len(data)} values"
    used = indices[:stored]
    # Negative ones are huge without their sign: one maximum tells of both ends.
    if stored and used.view(f"u{used.itemsize}").max() >= minor:
        wrong = int(np.flatnonzero((used < 0) | (used >= minor))[0])
        v = int(np.searchsorted(indptr, wrong, side="right")) - 1
        other = "row" if line == "column" else "column"
        return f"{other} index {used[wrong]} in {line} {v}, expected 0 to {minor - 1}"
    return ""


def _rows(X: Any) -> str:
    return _compressed(X.data, X.indices, X.indptr, X.shape[0], X.shape[1], "row")


def _columns(X: Any) -> str:
    return _compressed(X.data, X.indices, X.indptr, X.shape[1], X.shape[0], "column")


def _blocks(X: Any) -> str:
    if X.data.ndim != 3:
        return f"values have shape {X.data.shape}, expected three dimensions"
    height, width = X.data.shape[1:]
    if min(height, width) < 1 or X.shape[0] % height or X.shape[1] % width:
        return f"blocks of {height} x {width} do not fill the shape {X.shape}"
    sizes = X.shape[0] // height, X.shape[1] // width
    return _compressed(X.data, X.indices, X.indptr, sizes[0], sizes[1], "row of blocks")


def _coordinates(X: Any) -> str:
    for name, ends, size in (("row", X.row, X.shape[0]), ("column", X.col, X.shape[1])):
        if ends.ndim != 1 or len(ends) != len(X.data) or ends.dtype.kind not in "iu":
            return f"{name} numbers of shape {ends.shape} for {len(X.data)} values"
        if len(ends) and not (ends.min() >= 0 and ends.max() < size):
            return f"{name} numbers from {ends.min()} to {ends.max()}, expected 0 to {size - 1}"
    return ""


def _diagonals(X: Any) -> str:
    if X.offsets.ndim != 1 or X.data.ndim != 2 or len(X.offsets) != len(X.data):
        return f"{X.offsets.size} offsets for values of shape {X.data.shape}"
    return ""


_CHECKS = {"csr": _rows, "csc": _columns, "bsr": _blocks, "coo": _coordinates, "dia": _diagonals}


def split_rows(matrix: Any, offsets: Any) -> list[Any]:
    """Split a matrix into blocks of rows, ``offsets[i]:offsets[i + 1]``, without copying values.

    Parameters
    ----------
    matrix : ndarray or sparse matrix
        Sparse ones other than CSR are converted.
    offsets : sequence of int
        From 0 to the number of rows.

    Returns
    -------
    list of ndarray or of CSR matrices
        Views: changes of their values also change `matrix`.

    Examples
    --------
    >>> [block.tolist() for block in split_rows(np.eye(3), [0, 1, 3])]
    [[[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]]
    """
    import scipy.sparse as sp  # heavy

    offsets = np.asarray(offsets).tolist()
    if isinstance(matrix, np.ndarray):
        return [matrix[a:b] for a, b in pairwise(offsets)]
    matrix = matrix.tocsr()
    kind, width = type(matrix), matrix.shape[1]
    arrays = _split_arrays(matrix.data, matrix.indices, matrix.indptr, offsets)
    if kind is sp.csr_matrix:
        # The parts of a valid matrix are valid.
        canonical = bool(matrix.has_canonical_format)
        return [valid_csr(*parts, width, canonical) for parts in arrays]
    return [kind(parts, shape=(len(parts[2]) - 1, width), copy=False) for parts in arrays]


def _split_arrays(
    data: Any, indices: Any, indptr: Any, offsets: Any
) -> Iterator[tuple[Any, Any, Any]]:
    """The arrays of each block of rows."""
    ends = indptr.tolist()
    for a, b in pairwise(offsets):
        lo, hi = ends[a], ends[b]
        yield data[lo:hi], indices[lo:hi], indptr[a : b + 1] - indptr[a]
