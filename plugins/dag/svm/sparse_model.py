"""Sparse weights of a tree's nodes: training by passes, prediction, arrays for model files."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy import sparse

from structsolve.examples.given import refuse_infinite
from structsolve.examples.packed import Examples
from structsolve.plugins.dag.svm.leaf_search import LeafSearch
from structsolve.plugins.dag.svm.sparse_tree import SparseTree
from structsolve.plugins.extreme.checks import refuse_large
from structsolve.plugins.extreme.weights.postings import Postings
from structsolve.potentials.mercer import Kernel
from structsolve.potentials.model import Coef, Model
from structsolve.solvers.checkpoint import Checkpoint, Content, check_records
from structsolve.solvers.run import rng_state, set_rng_state
from structsolve.utils.parallel import effective_jobs
from structsolve.utils.sparse import csr_of

# Of checkpoints: sums in float32, by lists of 65,536 nodes.
STORAGE = 2


class SparseModel(Model):
    """Weights of features for the nodes of a tree, mostly zero.

    Parameters
    ----------
    hierarchy : structsolve.plugins.dag.hierarchy.Hierarchy
    matrix : scipy.sparse.csr_matrix of shape (n_features, n_nodes)
        Columns in the order of the hierarchy's nodes; the last row is the intercept's, if any.
    intercept : bool

    Attributes
    ----------
    matrix : scipy.sparse.csr_matrix of float32
        8 bytes a weight, used by prediction as well.
    """

    key = "sparse"

    def __init__(self, hierarchy: Any, matrix: sparse.csr_matrix, intercept: bool):
        self.hierarchy, self.intercept = hierarchy, intercept
        self._weights = Postings.from_matrix(matrix)
        shared = self._weights.weights, self._weights.classes, self._weights.indptr
        self.matrix = sparse.csr_matrix(shared, shape=matrix.shape)
        self._search = LeafSearch(_ranked_parents(hierarchy))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.hierarchy, self.matrix, self.intercept)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return arrays for a model file."""
        return {name: getattr(self.matrix, name) for name in ("indptr", "indices", "data")}

    @classmethod
    def from_arrays(
        cls, space: Any, arrays: dict[str, np.ndarray], kernel: Kernel | None
    ) -> SparseModel:
        """Return the model of :meth:`to_arrays`.

        Parameters
        ----------
        space : Space
            Space of a hierarchy.
        arrays : dict of str to ndarray
        kernel : None

        Returns
        -------
        SparseModel

        Raises
        ------
        ValueError
            If the arrays are no CSR matrix of the space's shape.
        """
        layout = space.layout
        shape = layout.n_features + layout.intercept, len(space.hierarchy)
        weights = csr_of(arrays["data"], arrays["indices"], arrays["indptr"], shape, "its weights")
        return cls(space.hierarchy, weights, layout.intercept)

    def attributes(self) -> dict[str, Any]:
        if not self.intercept:
            return {"coef_": Coef(node=self.matrix)}
        last = self.matrix[-1].toarray().ravel()
        return {"coef_": Coef(node=self.matrix[:-1], intercept=last)}

    def best_labels(self, examples: Examples, constrained: bool, n_jobs: int | None) -> np.ndarray:
        if constrained:
            raise ValueError(
                "sparse=True predicts without constraints; leave out allowed, forbidden"
            )
        refuse_infinite(examples.nodes, examples.offsets)
        return self.predict(examples.nodes, effective_jobs(n_jobs))[0]

    def scores(self, examples: Examples, dense: bool = False, n_jobs: int | None = 1) -> Any:
        raise ValueError("a model with sparse=True gives predict and score alone")

    def predict(self, X: Any, n_jobs: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Return the best leaf of every example, and its score.

        Parameters
        ----------
        X : ndarray or CSR of shape (n, n_features)
        n_jobs : int, default=1
            Threads.

        Returns
        -------
        labels : ndarray of int of shape (n,)
            Columns of the leaves in the order of the hierarchy's nodes.
        scores : ndarray of float64 of shape (n,)
        """
        X = _with_intercept(X, self.intercept)
        refuse_large(X, self._weights.most)
        X = X.astype(np.float32)
        X.sort_indices()
        order = self.hierarchy.order.astype(np.int32)
        labels, scores = self._search.best_leaves(self._weights, X, order, n_jobs)
        return order[labels], scores


def _ranked_parents(hierarchy: Any) -> np.ndarray:
    """Return the parent of each node, both numbered by ``hierarchy.order``."""
    above = hierarchy.parent[hierarchy.order]
    return np.where(above >= 0, hierarchy.rank[above], -1).astype(np.int32)


def _with_intercept(X: Any, intercept: bool) -> sparse.csr_matrix:
    """Return features as CSR of float64, a column of ones appended on request."""
    X = sparse.csr_matrix(X, dtype=np.float64)
    if intercept:
        X = sparse.hstack([X, np.ones((X.shape[0], 1))], format="csr")
    return X


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
    checkpoint: Checkpoint | None = None,
) -> tuple[SparseModel, list[dict[str, Any]]]:
    """Make passes of stochastic subgradient steps over examples in random order.

    Parameters
    ----------
    hierarchy : structsolve.plugins.dag.hierarchy.Hierarchy
        A forest.
    X : CSR matrix of shape (n, n_features)
    labels : ndarray of int32 of shape (n,)
        Columns of leaves.
    scale, cost : ndarray of shape (n_nodes,)
        Factors of the nodes' scores, and costs of the nodes in the loss.
    loss : {"hamming", "path", "zero-one"}
    alpha : float
        Regularisation constant, > 0.
    passes : int
        Passes over the examples.
    intercept : bool
        Append a constant feature.
    rng : numpy.random.Generator
        Orders the examples.
    sample_weight : ndarray of shape (n,), optional
    after : callable, optional
        Called with the record of each pass; True ends training.
    checkpoint : Checkpoint, optional
        Training resumes from it, if the file exists, and writes it.

    Returns
    -------
    model : SparseModel
        The mean of all iterates, weighted towards later ones.
    history : list of dict
        Per pass: ``seconds``, ``nonzeros`` (weights kept) and their ``bytes``.
    """
    order = hierarchy.order
    parents = _ranked_parents(hierarchy)
    tree = SparseTree(parents, scale[order], cost[order], loss, X.shape[1] + intercept)
    X, labels = _with_intercept(X, intercept), hierarchy.rank[labels]
    weight = None if sample_weight is None else sample_weight / sample_weight.mean()
    history = [] if checkpoint is None else _resumed(checkpoint, tree, rng)

    def state() -> Content:
        meta = {"storage": STORAGE, "history": history, "steps": tree.steps, "rng": rng_state(rng)}
        return meta, tree.to_arrays()

    while len(history) < passes:
        start = time.perf_counter()
        order_now = rng.permutation(X.shape[0])
        tree.run(X.indptr, X.indices, X.data, labels, order_now, alpha=alpha, weight=weight)
        history.append(
            {
                "pass": len(history) + 1,
                "primal": None,
                "dual": None,
                "gap": None,
                "certified": False,
                "oracle_calls": X.shape[0],
                "seconds": time.perf_counter() - start,
                "nonzeros": tree.sums.n_entries,
                "bytes": tree.sums.nbytes,
            }
        )
        ended = after is not None and bool(after(history[-1]))
        if checkpoint is not None and (ended or len(history) >= passes or checkpoint.due()):
            checkpoint.write(state)
            if checkpoint.error is not None:
                history[-1]["checkpoint_error"] = checkpoint.error
        if ended:
            break
    if checkpoint is not None:
        checkpoint.close()
    indptr, indices, data = tree.weights()
    shape = X.shape[1], len(order)
    placed = sparse.csr_matrix((data, order[indices], indptr), shape=shape)
    placed.sort_indices()
    placed.eliminate_zeros()
    return SparseModel(hierarchy, placed, intercept), history


def _resumed(checkpoint: Checkpoint, tree: Any, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Put tree and rng into a checkpoint's state; return the records of its passes."""
    content = checkpoint.read()
    if content is None:
        return []
    with checkpoint.blame():
        meta, arrays = content
        if meta.get("storage") != STORAGE:
            raise ValueError(
                "its weights are stored in another form than this version's; delete it to start "
                "afresh"
            )
        history = check_records(meta["history"])
        tree.restore(meta["steps"], arrays)
        set_rng_state(rng, meta["rng"])
    return history
