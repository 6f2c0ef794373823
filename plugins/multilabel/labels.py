"""Label sets as users give them (indicator matrices), and the pairs of labels with scores."""

from __future__ import annotations

import logging
from collections.abc import Callable
from reprlib import repr as brief
from typing import Any

import numpy as np

from structsolve.examples.given import check_row_counts, is_sparse
from structsolve.plugins.mrf.tables.graphs import check_edges
from structsolve.utils.arrays import plain_numbers
from structsolve.utils.sparse import as_csr

logger = logging.getLogger("structsolve.multilabel")

# Labels up to which "auto" takes all pairs, and up to which it looks for pairs: that is dense
# arithmetic, and takes seconds for 1000.
FEW, MANY = 8, 1000
# The share of chance: the probability that any of the pairs is taken although none is related.
CHANCE = 0.05
# Budget of pairs: per label, and per row, since each costs time for each row in each pass.
PER_LABEL, ROW_PAIRS = 2, 500_000
# Labels up to which all pairs are taken where there are no training labels to choose by.
MOST_FULL = 50


def indicators(Y: Any, n: int, n_labels: int | None = None) -> np.ndarray:
    """Return Y as an array, checked to hold 0 and 1 only.

    Parameters
    ----------
    Y : array, sparse matrix or data frame of shape (n, L)
    n : int
        Number of rows of X.
    n_labels : int, optional
        The number of labels in training.

    Returns
    -------
    ndarray of int32 of shape (n, L)

    Raises
    ------
    ValueError
        For a wrong shape or entry; the message names the first.
    """
    if Y is None:
        raise ValueError(
            "multilabel requires y to be passed, but the target y is None: give a matrix of 0 and "
            "1, one row per row of X"
        )
    if is_sparse(Y):
        matrix = as_csr(Y, "y").toarray()
    elif hasattr(Y, "columns"):
        matrix = Y.to_numpy()
    else:
        try:
            matrix = np.asarray(Y)
        except ValueError:
            raise ValueError(
                "y: found rows of several lengths, expected a matrix of 0 and 1 with one column "
                "per label; lists of labels become one with "
                "sklearn.preprocessing.MultiLabelBinarizer"
            ) from None
    matrix = plain_numbers(matrix)
    if matrix.ndim != 2:
        raise ValueError(
            f"y: found {matrix.ndim} dimension(s), shape {matrix.shape}, expected a matrix of 0 "
            "and 1 with one column per label; lists of labels become one with "
            f"sklearn.preprocessing.MultiLabelBinarizer{_of_one_label(matrix)}"
        )
    check_row_counts(n, len(matrix), "rows of y")
    if matrix.shape[1] < 1:
        raise ValueError("y: found no columns, expected at least one label")
    if n_labels is not None and matrix.shape[1] != n_labels:
        raise ValueError(
            f"y: found {matrix.shape[1]} columns, expected {n_labels} labels as in training"
        )
    if matrix.dtype.kind not in "iubf":
        raise ValueError(
            f"y: Unknown label type: found dtype {matrix.dtype}, expected a matrix of 0 and 1"
        )
    wrong = np.argwhere((matrix != 0) & (matrix != 1))
    if len(wrong):
        i, j = wrong[0].tolist()
        raise ValueError(
            f"example {i}, label {j}: y holds {matrix[i, j]}, expected 0 (off) or 1 (on)"
        )
    return np.ascontiguousarray(matrix, dtype=np.int32)


def _of_one_label(y: np.ndarray) -> str:
    """Advice for an array that is not a matrix."""
    if y.ndim != 1:
        return ""
    if y.dtype.kind == "f" and (y != np.floor(y)).any():
        return ". Unknown label type: continuous"
    return (
        ". Only binary classification is supported. For one class a row take structure 'multiclass'"
    )


def counts_of(Y: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return how often each pair of labels is on, and at the end the number of rows.

    Parameters
    ----------
    Y : ndarray of shape (n, L)
        0 and 1.
    weights : ndarray of shape (n,), optional
        How often each row counts.

    Returns
    -------
    ndarray of shape (L + 1, L + 1)
    """
    Z = np.ones((len(Y), Y.shape[1] + 1))
    Z[:, :-1] = Y
    return Z.T @ (Z if weights is None else Z * weights[:, None])


def related_pairs(counts: np.ndarray) -> np.ndarray:
    """Return the choice of ``edges="auto"``: pairs that the labels show to be related.

    A pair counts if its labels occur together more or less often than by chance: by the G-test,
    corrected for the number of pairs.  A budget takes the most informative of them.

    Parameters
    ----------
    counts : ndarray of shape (L + 1, L + 1)
        See :func:`counts_of`.

    Returns
    -------
    ndarray of int32 of shape (m, 2)

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.plugins.multilabel.labels import counts_of, related_pairs
    >>> Y = np.random.default_rng(0).integers(0, 2, (200, 9))
    >>> Y[:, 7] = 1 - Y[:, 2]
    >>> related_pairs(counts_of(Y)).tolist()
    [[2, 7]]
    """
    n, L = counts[-1, -1], len(counts) - 1
    pairs = np.column_stack(np.triu_indices(L, 1)).astype(np.int32)
    from scipy.special import chdtri  # heavy

    ratio = 2 * n * mutual_information(counts)[pairs[:, 0], pairs[:, 1]]
    related = np.flatnonzero(ratio > chdtri(1, CHANCE / len(pairs)))
    budget = int(min(PER_LABEL * L, ROW_PAIRS / n))
    kept = related[np.argsort(-ratio[related], kind="stable")[:budget]]
    logger.info(
        "multilabel: edges is 'auto', which is %d of %d pairs of labels: %d occur together more or "
        "less often than by chance, the budget is %d; edges='full' takes all",
        len(kept),
        len(pairs),
        len(related),
        budget,
    )
    return pairs[np.sort(kept)]


def learned_pairs(edges: Any, L: int) -> Callable[[np.ndarray], np.ndarray] | None:
    """Return what chooses pairs by the counts of labels.

    Parameters
    ----------
    edges : str or array
    L : int
        Number of labels.

    Returns
    -------
    callable or None
        None: the labels do not matter, as for "auto" with up to 8 labels, which is all pairs, or
        more than 1000, which is none.
    """
    if not isinstance(edges, str):
        return None
    return {"tree": chow_liu, "auto": related_pairs if FEW < L <= MANY else None}.get(edges)


def label_pairs(edges: Any, Y: np.ndarray, names: np.ndarray, weights: Any = None) -> np.ndarray:
    """Return the pairs of labels that have scores.

    Parameters
    ----------
    edges : {"auto", "full", "tree", "none"} or array of shape (m, 2)
        "auto" chooses by the labels, see :func:`related_pairs`.  Pairs are column numbers, or names
        of labels if they are strings.
    Y : ndarray of shape (n, L)
    names : ndarray of shape (L,)
    weights : ndarray of shape (n,), optional
        Of the rows.

    Returns
    -------
    ndarray of int32 of shape (m, 2)

    Raises
    ------
    ValueError
        For unknown labels, loops and repeated pairs.
    """
    L = Y.shape[1]
    if isinstance(edges, str):
        choose = learned_pairs(edges, L)
        if choose is not None:
            return choose(counts_of(Y, weights))
        if edges == "auto":
            edges = "full" if L <= FEW else "none"
        if edges == "full":
            return np.column_stack(np.triu_indices(L, 1)).astype(np.int32)
        if edges == "none":
            return np.zeros((0, 2), dtype=np.int32)
        raise ValueError(
            f"edges is {edges!r}, expected 'auto', 'full', 'tree', 'none' or an array of pairs of "
            "labels"
        )
    pairs = np.asarray(edges)
    if pairs.dtype.kind in "US":
        if names.dtype.kind not in "US":
            raise ValueError(
                "edges: found names of labels, but the labels have none; use numbers of columns, "
                "or a data frame as y"
            )
        unknown = sorted(set(pairs.ravel().tolist()) - set(names.tolist()))
        if unknown:
            raise ValueError(
                f"edges: unknown labels {brief(unknown)}; known: {brief(names.tolist())}"
            )
        column = {name: j for j, name in enumerate(names.tolist())}
        pairs = np.vectorize(column.get, otypes=[np.int64])(pairs)
    return check_edges(pairs, L, "edges", "label")


def label_groups(edges: np.ndarray, L: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the groups of labels that pairs connect; labels without a pair are one group.

    Parameters
    ----------
    edges : ndarray of int of shape (m, 2)
    L : int
        Number of labels.

    Returns
    -------
    sizes : ndarray of int
        Labels in each group.
    of_label : ndarray of int of shape (L,)
        The group of each label.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.plugins.multilabel.labels import label_groups
    >>> label_groups(np.array([[1, 4]]), 5)[1].tolist()
    [1, 0, 1, 1, 0]
    """
    from scipy.sparse import coo_matrix  # heavy
    from scipy.sparse.csgraph import connected_components

    graph = coo_matrix((np.ones(len(edges)), edges.T), shape=(L, L))
    _, of_label = connected_components(graph, directed=False)
    alone = np.bincount(of_label)[of_label] == 1
    of_label = np.where(alone, L, of_label)
    _, of_label, sizes = np.unique(of_label, return_inverse=True, return_counts=True)
    return sizes, of_label


def chow_liu(counts: np.ndarray) -> np.ndarray:
    """Return the tree of largest mutual information between labels (Chow and Liu 1968).

    Parameters
    ----------
    counts : ndarray of shape (L + 1, L + 1)
        See :func:`counts_of`.

    Returns
    -------
    ndarray of int32 of shape (L - 1, 2)
        Sorted; ties are broken in a fixed way.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.plugins.multilabel.labels import chow_liu, counts_of
    >>> a, b = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    >>> chow_liu(counts_of(np.column_stack([a, b, a]))).tolist()
    [[0, 1], [0, 2]]
    """
    L = len(counts) - 1
    information = mutual_information(counts)
    # Prim's algorithm on a dense matrix.
    inside = np.zeros(L, dtype=bool)
    inside[0] = True
    best, parent = information[0].copy(), np.zeros(L, dtype=np.int64)
    pairs = []
    for _ in range(L - 1):
        v = int(np.where(inside, -np.inf, best).argmax())
        pairs.append(sorted((int(parent[v]), v)))
        inside[v] = True
        closer = information[v] > best
        best = np.where(closer, information[v], best)
        parent[closer] = v
    return np.array(sorted(pairs), dtype=np.int32).reshape(-1, 2)


def mutual_information(counts: np.ndarray) -> np.ndarray:
    """Return the mutual information of each pair of columns, in nats.

    Parameters
    ----------
    counts : ndarray of shape (L + 1, L + 1)
        See :func:`counts_of`.

    Returns
    -------
    ndarray of shape (L, L)
    """
    both = counts[:-1, :-1] / counts[-1, -1]
    on = both.diagonal()
    total = np.zeros_like(both)
    for a, b, joint in (
        (on, on, both),
        (on, 1 - on, on[:, None] - both),
        (1 - on, on, on[None] - both),
        (1 - on, 1 - on, 1 - on[:, None] - on[None] + both),
    ):
        joint = np.maximum(joint, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            term = joint * np.log(joint / (a[:, None] * b[None]))
        total += np.where(joint > 1e-15, term, 0)
    # Rounding must not decide ties.
    return np.round(total, 12)
