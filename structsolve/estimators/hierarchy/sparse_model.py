"""Sparse weights of a tree's nodes: training by passes, prediction, what goes into model files."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from scipy import sparse


class SparseModel:
    """Weights of features for the nodes of a tree, of which most are zero.

    Parameters
    ----------
    hierarchy : structsolve.structure.hierarchy.Hierarchy
    weights : scipy.sparse.csr_matrix of shape (n_features, n_nodes)
        Columns in the order of the hierarchy's nodes; the last row is the intercept's, where there
        is one.
    intercept : bool
    """

    def __init__(self, hierarchy: Any, weights: sparse.csr_matrix, intercept: bool):
        self.hierarchy, self.weights, self.intercept = hierarchy, weights, intercept
        self._parent = ranked_parents(hierarchy)
        placed = weights[:, hierarchy.order].tocsr()
        self._weights = placed.indptr, placed.indices, placed.data

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return what :meth:`from_arrays` needs."""
        found = self.weights
        return {"indptr": found.indptr, "indices": found.indices, "data": found.data}

    @classmethod
    def from_arrays(cls, space: Any, arrays: dict[str, np.ndarray]) -> SparseModel:
        """Make the model of a file; ValueError where the arrays are no such weights."""
        layout = space.layout
        shape = layout.n_features + layout.intercept, len(space.hierarchy)
        weights = sparse.csr_matrix(
            (arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape, dtype=np.float64
        )
        weights.check_format()
        return cls(space.hierarchy, weights, layout.intercept)

    @property
    def coef(self) -> dict[str, Any]:
        """Weights by block name, the intercept apart."""
        if not self.intercept:
            return {"node": self.weights}
        last = self.weights[-1].toarray().ravel()
        return {"node": self.weights[:-1], "intercept": last}

    def predict(self, X: Any, n_jobs: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns of the best leaves, and their scores."""
        from .sparse_tree import best_leaves

        X = with_intercept(X, self.intercept)
        if n_jobs == 1 or X.shape[0] < 2 * n_jobs:
            found = [best_leaves(self._parent, self._weights, (X.indptr, X.indices, X.data))]
        else:
            bounds = np.linspace(0, X.shape[0], n_jobs + 1).astype(int)
            pieces = [X[a:b] for a, b in zip(bounds[:-1], bounds[1:])]
            with ThreadPoolExecutor(n_jobs) as pool:
                tasks = [
                    pool.submit(
                        best_leaves, self._parent, self._weights, (x.indptr, x.indices, x.data)
                    )
                    for x in pieces
                ]
                found = [task.result() for task in tasks]
        labels, scores = (np.concatenate(parts) for parts in zip(*found))
        return self.hierarchy.order[labels], scores


def ranked_parents(hierarchy: Any) -> np.ndarray:
    """Return the parent of each node, both numbered by ``hierarchy.order``."""
    above = hierarchy.parent[hierarchy.order]
    return np.where(above >= 0, hierarchy.rank[above], -1).astype(np.int32)


def with_intercept(X: Any, intercept: bool) -> sparse.csr_matrix:
    """Return features as CSR of float64, a column of ones appended on request."""
    X = sparse.csr_matrix(X, dtype=np.float64)
    if intercept:
        X = sparse.hstack([X, np.ones((X.shape[0], 1))], format="csr")
    return X


def packed_bytes(X: Any) -> int:
    """Return the bytes of packed features, dense or CSR."""
    if sparse.issparse(X):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return int(X.nbytes)


def train(
    hierarchy: Any,
    X: Any,
    labels: np.ndarray,
    *,
    scale: np.ndarray,
    cost: np.ndarray,
    loss: str,
    alpha: float,
    passes: int,
    intercept: bool,
    rng: np.random.Generator,
    sample_weight: np.ndarray | None = None,
    after: Any = None,
) -> tuple[SparseModel, list[dict[str, Any]]]:
    """Make passes of stochastic subgradient steps over examples in random order.

    Parameters
    ----------
    hierarchy : structsolve.structure.hierarchy.Hierarchy
        A forest.
    X : CSR matrix of shape (n, n_features)
    labels : ndarray of int32 of shape (n,)
        Columns of leaves.
    scale, cost : ndarray of shape (n_nodes,)
        Factors of the nodes' scores, and what the loss charges for each.
    loss : {"hamming", "path", "zero-one"}
    alpha : float
    passes : int
    intercept : bool
    rng : numpy Generator
    sample_weight : ndarray of shape (n,), optional
    after : callable, optional
        Called with the record of each pass; True ends training.

    Returns
    -------
    model : SparseModel
        Of the mean of all iterates, the later ones weighing more.
    history : list of dict
        Per pass: ``seconds``, ``nonzeros`` (weights that are kept) and ``bytes`` (that they take).
    """
    from .sparse_tree import SparseTree

    order = hierarchy.order
    parents = ranked_parents(hierarchy)
    tree = SparseTree(parents, scale[order], cost[order], loss, X.shape[1] + intercept)
    X, labels = with_intercept(X, intercept), hierarchy.rank[labels]
    weight = None if sample_weight is None else sample_weight / sample_weight.mean()
    history: list[dict[str, Any]] = []
    for _ in range(passes):
        start = time.perf_counter()
        tree.run(X.indptr, X.indices, X.data, labels, rng.permutation(X.shape[0]), alpha, weight)
        history.append(
            {
                "pass": len(history) + 1,
                "primal": None,
                "dual": None,
                "gap": None,
                "certified": False,
                "oracle_calls": X.shape[0],
                "seconds": time.perf_counter() - start,
                "nonzeros": tree.n_entries,
                "bytes": tree.nbytes,
            }
        )
        if after is not None and after(history[-1]):
            break
    indptr, indices, data = tree.weights()
    shape = X.shape[1], len(order)
    placed = sparse.csr_matrix((data, order[indices], indptr), shape=shape)
    placed.sort_indices()
    placed.eliminate_zeros()
    return SparseModel(hierarchy, placed, intercept), history
