"""Rankings and matchings as users give them, checked and encoded; features of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.examples.given import check_labels_of, check_listed, check_row_counts, is_sparse
from structsolve.utils.arrays import real_array
from structsolve.utils.suggest import a_type


def _shape_of(Y: Any) -> str:
    return f" of shape {Y.shape}" if hasattr(Y, "shape") else ""


def _integers(y: Any, where: str) -> np.ndarray:
    """Return y as a flat array of int64 after checking that it holds whole numbers."""
    try:
        y = np.asarray(y)
    except ValueError as error:
        raise ValueError(f"{where}: not a list of numbers ({error})") from None
    if y.ndim != 1:
        raise ValueError(f"{where}: found {y.ndim} dimensions, expected a flat list of numbers")
    if y.dtype == object and all(isinstance(v, (int, np.integer)) for v in y.tolist()):
        y = y.astype(np.int64)
    if y.dtype.kind not in "iuf":
        raise ValueError(f"{where}: found dtype {y.dtype}, expected whole numbers from 0")
    if y.dtype.kind == "f":
        missing = np.flatnonzero(~np.isfinite(y))
        if missing.size:
            raise ValueError(
                f"{where}: entry {missing[0]} is {y[missing[0]]}: partial labels are refused; "
                "expected one whole number for every entry: complete or drop the example"
            )
        broken = np.flatnonzero(y != np.floor(y))
        if broken.size:
            raise ValueError(
                f"{where}: entry {broken[0]} is {y[broken[0]]}, expected whole numbers from 0; a "
                "mean rank of a tie is none: break ties first"
            )
        # Values beyond all integers are out of range; the check of ranges refuses them.
        y = np.clip(y, -(2.0**53), 2.0**53)
    return y.astype(np.int64)


def rankings(Y: Any, n: int, K: int | None = None) -> np.ndarray:
    """Return Y as an array whose rows are permutations of 0 .. K-1.

    Parameters
    ----------
    Y : array, data frame or list of rows
    n : int
        Number of examples.
    K : int, optional
        Number of labels; by default the number of ranks in the first row.

    Returns
    -------
    ndarray of int32 of shape (n, K)

    Raises
    ------
    ValueError
        The message names the example and the entry.
    """
    if Y is None:
        raise ValueError("y is None: rankings require y, one row of ranks per row of X")
    if hasattr(Y, "columns"):
        Y = Y.to_numpy()
    if hasattr(Y, "toarray"):
        Y = Y.toarray()
    listed = hasattr(Y, "__len__") and getattr(Y, "ndim", 1) > 0
    if isinstance(Y, (str, bytes, dict)) or not listed or np.ndim(Y[:1]) < 2:
        raise ValueError(
            f"y is {a_type(Y)}{_shape_of(Y)}, expected an array of shape (n, labels): one "
            "row of ranks per row of X"
        )
    check_row_counts(n, len(Y), "rankings in y")
    K = len(Y[0]) if K is None else K
    if K < 1:
        raise ValueError("y: found no columns, expected at least one label")
    whole = np.asarray(Y) if isinstance(Y, np.ndarray) and Y.dtype.kind in "iu" else None
    if whole is not None and whole.shape == (n, K) and (np.sort(whole) == np.arange(K)).all():
        return whole.astype(np.int32)
    ranks = np.empty((n, K), dtype=np.int32)
    for i, row in enumerate(Y):  # names the one that is wrong
        where = f"example {i}: the ranking"
        row = _integers(row, where)
        if len(row) != K:
            raise ValueError(
                f"{where} has {len(row)} ranks, expected {K}, one for every label; partial "
                "rankings are not supported"
            )
        _refuse_repeats(row, K, i, "ranking", "label", "rank")
        ranks[i] = row
    return ranks


def _refuse_repeats(
    row: np.ndarray, most: int, i: int, what: str, entry: str, number: str, *, shown: bool = True
) -> None:
    """Raise ValueError unless the numbers of a row differ and lie in 0 .. most - 1."""
    beyond = np.flatnonzero((row < 0) | (row >= most))
    listed = f" {_short(row)}" if shown else ""
    if beyond.size:
        position = int(beyond[0])
        hint = "; ranks count from 0" if what == "ranking" and row.min() == 1 else ""
        raise ValueError(
            f"example {i}, {entry} {position}: the {what}{listed} holds {number} {row[position]}, "
            f"expected 0 to {most - 1}{hint}"
        )
    _, first, counts = np.unique(row, return_index=True, return_counts=True)
    if (counts > 1).any():
        value = row[first[counts > 1][0]]
        pair = np.flatnonzero(row == value)[:2]
        hint = "a tie: break ties first" if what == "ranking" else "one row for each column at most"
        raise ValueError(
            f"example {i}: the {what}{listed} gives {entry}s {pair[0]} and {pair[1]} the same "
            f"{number} {value}, expected distinct {number}s ({hint})"
        )


def _short(row: np.ndarray) -> str:
    text = str(row[:12].tolist())
    return text if len(row) <= 12 else f"{text[:-1]}, ...]"


def matchings(Y: Any, rows: np.ndarray, cols: np.ndarray, forbidden: Any = None) -> np.ndarray:
    """Return all labels as one array: the column of every row of every example.

    Parameters
    ----------
    Y : list of sequences of int, or array
    rows, cols : ndarray of shape (n,)
    forbidden : ndarray of uint8, optional
        Non-zero for pairs that no label may use, of all examples, row by row.

    Returns
    -------
    ndarray of int32

    Raises
    ------
    ValueError
        The message names the example and the row.
    """
    n = len(rows)
    check_labels_of(Y, n, "a list with the columns of all rows, one list per example")
    flat = []
    start = 0
    for i, y in enumerate(Y):
        y = _integers(y, f"example {i}: the matching")
        if len(y) != rows[i]:
            raise ValueError(
                f"example {i}: X has {rows[i]} rows and y has {len(y)} columns; expected the "
                "column of every row"
            )
        _refuse_repeats(y, int(cols[i]), i, "matching", "row", "column", shown=False)
        if forbidden is not None:
            table = forbidden[start : start + rows[i] * cols[i]].reshape(rows[i], cols[i])
            wrong = np.flatnonzero(table[np.arange(len(y)), y])
            if wrong.size:
                raise ValueError(
                    f"example {i}, row {wrong[0]}: y holds column {y[wrong[0]]}, a forbidden pair: "
                    "its features are NaN"
                )
            start += rows[i] * cols[i]
        flat.append(y)
    return np.concatenate(flat).astype(np.int32)


def holds_pairs(X: Any) -> bool:
    """Return whether X is a list of tables of pairs (or one array of them), not a matrix.

    Parameters
    ----------
    X : object

    Returns
    -------
    bool
    """
    if hasattr(X, "columns") or is_sparse(X):
        return False
    if isinstance(X, np.ndarray) and X.dtype != object:
        return X.ndim == 4
    if not isinstance(X, (list, tuple, np.ndarray)) or not len(X):
        return False
    try:
        return np.ndim(X[0]) == 3
    except ValueError:  # rows of several lengths; stacking reports them
        return False


def stack_pairs(
    X: Any, n_features: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Check features of pairs and stack them, one row per pair.

    Parameters
    ----------
    X : list of arrays of shape (rows, columns, n_features)
        Pairs whose features are all NaN are forbidden.
    n_features : int, optional
        The number in training.

    Returns
    -------
    features : ndarray of shape (pairs, n_features)
        Zero where a pair is forbidden.
    rows, cols : ndarray of int64 of shape (n,)
    forbidden : ndarray of uint8 of shape (pairs,), or None if none is

    Raises
    ------
    ValueError
        For other shapes, and forbidden pairs that leave no matching of all rows.
    """
    check_listed(X, "a list with one array of shape (rows, columns, n_features) per example")
    pieces: list[np.ndarray] = []
    for i, x in enumerate(X):
        x = real_array(x, f"X, example {i}", single=True)
        if x.ndim != 3:
            raise ValueError(
                f"X, example {i}: found shape {x.shape}, expected (rows, columns, n_features)"
            )
        if not 1 <= x.shape[0] <= x.shape[1]:
            raise ValueError(
                f"X, example {i}: found {x.shape[0]} rows and {x.shape[1]} columns, expected at "
                "least one row and no more rows than columns; swap the two sides, or add columns "
                "for rows that stay alone"
            )
        width = n_features if n_features is not None else (pieces or [x])[0].shape[2]
        if x.shape[2] != width or width < 1:
            raise ValueError(
                f"X, example {i}: found {x.shape[2]} features of a pair, expected {width or 'some'}"
                f"{' as in training' if n_features is not None else ''}"
            )
        pieces.append(x)
    rows = np.array([x.shape[0] for x in pieces], dtype=np.int64)
    cols = np.array([x.shape[1] for x in pieces], dtype=np.int64)
    features = np.concatenate([x.reshape(-1, x.shape[2]) for x in pieces])
    missing = np.isnan(features)
    if not missing.any():
        return np.ascontiguousarray(features), rows, cols, None
    forbidden = missing.all(axis=1)
    bounds = np.concatenate([[0], np.cumsum(rows * cols)])
    partly = np.flatnonzero(missing.any(axis=1) & ~forbidden)
    if partly.size:
        i = int(np.searchsorted(bounds, partly[0], side="right")) - 1
        a, b = divmod(int(partly[0] - bounds[i]), int(cols[i]))
        raise ValueError(
            f"X, example {i}, row {a}, column {b}: Input contains NaN in some features; expected "
            "finite features, or NaN in all of them to forbid the pair"
        )
    _refuse_impossible(forbidden, bounds, rows, cols)
    features = np.array(features)
    features[forbidden] = 0
    return features, rows, cols, forbidden.astype(np.uint8)


def _refuse_impossible(
    forbidden: np.ndarray, bounds: np.ndarray, rows: np.ndarray, cols: np.ndarray
) -> None:
    """Raise ValueError for an example in which forbidden pairs leave no matching of all rows."""
    from scipy.sparse import csr_matrix  # heavy
    from scipy.sparse.csgraph import maximum_bipartite_matching

    for i in range(len(rows)):
        table = forbidden[bounds[i] : bounds[i + 1]].reshape(rows[i], cols[i])
        if not table.any():
            continue
        alone = np.flatnonzero(table.all(axis=1))
        if not alone.size:
            columns = maximum_bipartite_matching(csr_matrix(~table), perm_type="column")
            alone = np.flatnonzero(columns < 0)
        if alone.size:
            raise ValueError(
                f"X, example {i}, row {alone[0]}: no matching of all rows is possible, too many "
                "pairs are forbidden (their features are NaN); allow more"
            )
