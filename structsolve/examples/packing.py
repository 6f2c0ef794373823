"""Rows of users' arrays, stacked as compiled loops read them; shared by structures."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from ..utils.sparse import as_csr, refuse_broken, refuse_flat, valid_csr
from ..utils.suggest import a_type
from .given import is_sparse
from .packed import Sequences

# Structures find these here, too.
from .sizes import no_edges, no_topology, row_offsets, size_offsets, size_pairs  # noqa: F401
from .stacking import dense_to_csr, stack_csr, stack_dense

# Matrices with at most this share of non-zeros are kept as CSR, which is then faster for any number
# of labels (benchmarks/sparse_rows.py).
DENSITY = 0.5
# Indices of columns have 32 bits.
MOST_COLUMNS = 2**31 - 1


def _checked_dense(x: Any, where: str, ndim: int) -> np.ndarray:
    if hasattr(x, "__next__"):
        raise TypeError(f"{where}: found {a_type(x)}, expected a matrix; pass a list")
    try:
        x = np.asarray(x)
    except ValueError:
        raise ValueError(
            f"{where}: found rows of different lengths, expected a matrix: one row per node, one "
            "column per feature"
        ) from None
    if x.dtype.kind in "OUSMmV":
        try:
            if x.dtype.kind != "O":  # strings of digits are text, too
                raise ValueError("text, dates or records")
            x = np.asarray(x, dtype=np.float64)
        except (TypeError, ValueError) as error:
            advice = "vectorise features first, for example with structsolve.SequenceVectorizer"
            if "NAType" in str(error):  # pandas.NA
                advice = "impute or drop missing values first"
            raise type(error)(
                f"{where}: dtype {x.dtype} is not numeric ({error}); {advice}"
            ) from None
    if x.dtype.kind == "c":
        raise ValueError(f"{where}: Complex data not supported, expected real features")
    if x.ndim != ndim:
        raise ValueError(
            f"{where}: found {x.ndim} dimension(s), shape {x.shape}, expected {ndim}. Reshape your "
            "data: one row per node, one column per feature"
        )
    return x


def as_features(X: Any, what: str = "X") -> Any:
    """Return features in the form of the compiled loops.

    Parameters
    ----------
    X : array or scipy.sparse matrix of shape (n_rows, n_features)
        Real numbers.
    what : str, default="X"
        Name of the argument in errors.

    Returns
    -------
    ndarray in C order, or scipy.sparse CSR with sorted indices and no duplicates
        Of dtype float32 if X is, else float64.

    Raises
    ------
    ValueError
        If a sparse X holds complex numbers, or has more columns than 32 bits can number.
    """
    if is_sparse(X):
        X = _numbered(as_csr(X, what), what)
    return _as_floats(X, what)


def _as_floats(X: Any, what: str) -> Any:
    # Like as_features(), for checked arrays.
    if is_sparse(X):
        import scipy.sparse as sp  # heavy

        if X.dtype.kind not in "fiub":
            raise ValueError(f"{what}: Complex data not supported, found dtype {X.dtype}")
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        if not X.has_canonical_format:
            X = sp.csr_matrix(X, copy=True)
            X.sum_duplicates()
        return X
    X = np.ascontiguousarray(X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def sparsify(X: Any, density: float = DENSITY) -> Any:
    """Return a dense matrix with few non-zeros as CSR, so later costs depend only on its non-zeros.

    Parameters
    ----------
    X : ndarray or scipy.sparse matrix of shape (n_rows, n_features), or None
    density : float, default=.5
        Largest share of non-zeros.

    Returns
    -------
    scipy.sparse CSR, or X itself
    """
    if X is None or is_sparse(X):
        return X
    sparse = _sparse_rows([X], density)
    return X if sparse is None else sparse


def _sparse_rows(rows: list[Any], density: float = DENSITY) -> Any:
    """Stack dense matrices with few non-zeros as one CSR matrix; None for others."""
    arrays = dense_to_csr(rows, density)
    return None if arrays is None else valid_csr(*arrays, rows[0].shape[1], canonical=True)


def _numbered(X: Any, what: str) -> Any:
    """Refuse a sparse matrix of more columns than 32 bits can number."""
    if X.shape[1] > MOST_COLUMNS:
        raise ValueError(
            f"{what} has {X.shape[1]} features, expected at most {MOST_COLUMNS}, which 32 bits can "
            "number: hash them to fewer, for example with "
            "sklearn.feature_extraction.FeatureHasher"
        )
    return X


def _stack_csr(rows: list[Any], n_columns: int, min_rows: int) -> tuple[Any, np.ndarray] | None:
    """Stack CSR matrices without SciPy's overhead per matrix; None for unusual ones."""
    import scipy.sparse as sp  # heavy

    stacked = None
    if set(map(type, rows)) <= {sp.csr_matrix, sp.csr_array}:
        with suppress(ValueError):  # whose error cannot name the example
            stacked = stack_csr(rows, n_columns, min_rows)
    if stacked is None:
        return None
    matrix = valid_csr(*stacked[:3], rows[0].shape[1], stacked[3])
    matrix.sum_duplicates()
    return matrix, stacked[4]


def _stack_sparse(rows: list[Any], what: str) -> Any:
    """Stack sparse matrices of any kind."""
    import scipy.sparse as sp  # heavy

    named = [(x, f"{what}, example {i}") for i, x in enumerate(rows)]
    rows = [_numbered(as_csr(*pair), pair[1]) for pair in named]
    stacked = _stack_csr(rows, -1, 0)
    if stacked is not None:
        return stacked[0]
    for i, x in enumerate(rows):
        refuse_broken(x, f"{what}, example {i}")
    # Arrays may be longer than the last pointer; vstack would use all entries.
    return sp.vstack([x if x.nnz == len(x.data) else x[:] for x in rows], format="csr")


def _checked_rows(X: Any, n_features: int | None, what: str, min_rows: int) -> list[Any]:
    """Check the matrices one by one; the error names the first that is wrong."""
    rows: list[Any] = []
    names: list[Any] | None = None
    if hasattr(X, "columns"):  # its items would be names
        raise ValueError(
            f"{what}: found a data frame, expected a list of matrices or frames, one per example; "
            "one alone: [X]"
        )
    if min_rows == 0:
        X = _with_width(X, n_features)
    for i, x in enumerate(X):
        if isinstance(x, np.ndarray) and x.ndim == 2 and x.dtype.kind == "f":
            pass
        elif not is_sparse(x):
            if isinstance(x, (list, tuple)) and x and isinstance(x[0], (dict, str)):
                raise ValueError(
                    f"{what}, example {i}: rows are of type {type(x[0]).__name__}, expected "
                    "numbers; vectorise them with structsolve.SequenceVectorizer"
                )
            if hasattr(x, "columns"):
                own, names = list(x.columns), names or list(x.columns)
                if own != names:
                    raise ValueError(
                        f"{what}, example {i}: found a data frame with columns {own}, expected "
                        f"{names} as in the first one"
                    )
            if np.ndim(x) == 1 if isinstance(x, np.ndarray) else _is_row(x):
                raise ValueError(
                    f"{what}, example {i}: found {np.ndim(x)} dimension(s), shape {np.shape(x)}, "
                    "expected 2: a matrix with one row per node. Pass a list of such matrices; one "
                    "alone: [x]"
                )
            x = _checked_dense(x, f"{what}, example {i}", 2)
        else:
            refuse_flat(x, f"{what}, example {i}")
        n_rows, n_columns = x.shape
        if n_rows < min_rows:
            raise ValueError(_too_few(i, n_rows, what, min_rows))
        n_features = n_columns if n_features is None else n_features
        _expect_columns(n_columns, n_features, what, i)
        rows.append(x)
    return rows


def _is_row(x: Any) -> bool:
    """Return whether x is a flat list of numbers."""
    return isinstance(x, (list, tuple)) and bool(x) and all(isinstance(v, (int, float)) for v in x)


def _with_width(X: Any, n_features: int | None) -> list[Any]:
    """Return X with empty lists as matrices without rows, of the others' width and kind."""
    missing = [isinstance(x, (list, tuple)) and not x for x in X]
    if not any(missing):
        return list(X)
    other = next((x for x, empty in zip(X, missing) if not empty), None)
    sparse = other is not None and is_sparse(other)
    width = n_features
    if width is None and other is not None:
        width = other.shape[1] if sparse else _checked_dense(other, "X", 2).shape[1]
    none: Any = np.zeros((0, width or 0))
    if sparse:
        import scipy.sparse as sp  # heavy

        none = sp.csr_matrix(none)
    return [none if empty else x for x, empty in zip(X, missing)]


def _too_few(i: int, rows: int, what: str, least: int) -> str:
    return (
        f"{what}, example {i}: found {rows} rows, expected at least {least}; drop empty examples "
        "before fitting or predicting (chains take them by ChainStructure(empty=True))"
    )


def stack_rows(
    X: Any,
    n_features: int | None = None,
    what: str = "X",
    min_rows: int = 1,
    compress: bool = False,
) -> tuple[Any, np.ndarray]:
    """Stack a list of feature matrices; return the stacked matrix and the offsets.

    Parameters
    ----------
    X : Sequences, or list of arrays or sparse matrices of shape (rows, n_features)
    n_features : int, optional
        Columns expected; those of the first matrix by default.
    what : str
        Name of the argument in errors.
    min_rows : int
        Fewest rows an example may have.
    compress : bool, default=False
        Keep dense matrices with few non-zeros as CSR, to save memory if only the loops read the
        features.  By default dense matrices stay dense.

    Returns
    -------
    matrix : ndarray (float64 or float32) or scipy.sparse CSR of shape (sum of rows, n_features)
    offsets : ndarray of int64 of shape (n + 1,)

    Raises
    ------
    ValueError
        The message names an example that is empty or has another number of columns.
    """
    if isinstance(X, Sequences):
        matrix = as_features(
            X.features if is_sparse(X.features) else _checked_dense(X.features, what, 2), what
        )
        _expect_columns(matrix.shape[1], n_features, what, None)
        counts = np.diff(X.offsets)
        if len(counts) and counts.min() < min_rows:
            raise ValueError(_too_few(int(counts.argmin()), int(counts.min()), what, min_rows))
        return (sparsify(matrix) if compress else matrix), X.offsets
    if isinstance(X, (str, bytes, dict)) or not hasattr(X, "__len__"):
        raise ValueError(
            f"{what} is {a_type(X)}, expected a list with one feature matrix per example"
        )
    if is_sparse(X):
        raise ValueError(
            f"{what} is one sparse matrix of shape {X.shape}, expected a list with one matrix per "
            "sequence; use structsolve.Sequences(X, lengths) for stacked rows"
        )
    if len(X) == 0:
        raise ValueError(f"{what} is empty: expected at least one example")
    if isinstance(X, (list, tuple)):
        density = DENSITY if compress else -1.0  # for no matrix
        given, n_columns = list(X), -1 if n_features is None else n_features
        stacked = stack_dense(given, n_columns, min_rows, density)
        if stacked is None and hasattr(X[0], "indptr"):
            stacked = _stack_csr(given, n_columns, min_rows)
        if stacked is not None:
            return stacked
    rows = _checked_rows(X, n_features, what, min_rows)
    sparse = [is_sparse(x) for x in rows]
    if any(sparse) and not all(sparse):
        i = sparse.index(not sparse[0])
        raise ValueError(
            f"{what}, example {i}: dense and sparse matrices are mixed; use one kind for all"
        )
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([x.shape[0] for x in rows], out=offsets[1:])
    if sparse[0]:
        matrix = _stack_sparse(rows, what)
    else:
        matrix = _sparse_rows(rows) if compress else None
        if matrix is None:
            matrix = np.concatenate(rows)
    return _as_floats(matrix, what), offsets


def _expect_columns(n_columns: int, expected: int | None, what: str, i: int | None) -> None:
    if expected is not None and n_columns != expected:
        where = what if i is None else f"{what}, example {i}"
        raise ValueError(
            f"{where}: found {n_columns} features, expected {expected} as in "
            f"{'the first example' if i else 'training'}"
        )


def single_rows(
    X: Any, n_features: int | None = None, compress: bool = False
) -> tuple[Any, np.ndarray]:
    """Check a plain 2-D X, one node per example; return it with its offsets.

    Parameters
    ----------
    X : array, data frame or scipy.sparse matrix of shape (n, n_features)
    n_features : int, optional
        Columns expected; any number by default.
    compress : bool, default=False
        As for :func:`stack_rows`.

    Returns
    -------
    matrix : ndarray (float64 or float32) or scipy.sparse CSR of shape (n, n_features)
    offsets : ndarray of int64 of shape (n + 1,)

    Raises
    ------
    ValueError
        If X is empty, not numeric, or has another number of dimensions or columns.
    """
    if not is_sparse(X):
        if hasattr(X, "columns"):
            X = X.to_numpy()
        X = _checked_dense(X, "X", 2)
    else:
        refuse_flat(X)
    if X.shape[0] == 0:
        raise ValueError("X: found array with 0 sample(s), expected a minimum of 1 is required")
    if X.shape[1] == 0:
        raise ValueError(
            f"X: found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required."
        )
    if n_features is not None and X.shape[1] != n_features:
        raise ValueError(
            f"X has {X.shape[1]} features, but StructuredSVM is expecting {n_features} features "
            "as input"
        )
    features = as_features(X)
    return (sparsify(features) if compress else features), np.arange(X.shape[0] + 1, dtype=np.int64)
