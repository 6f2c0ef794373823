"""Rivals by a navigable small-world graph (Malkov et al. 2014) from the library nmslib."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from structsolve.plugins.extreme.solvers.lsh import class_rows
from structsolve.plugins.extreme.solvers.rivals import Answer, RivalIndex, best_of
from structsolve.utils.params import check_count

if TYPE_CHECKING:
    from scipy import sparse

# Share of changed classes at which the graph is built again.
STALE = 0.5


class GraphRivals(RivalIndex):
    """Find classes on a walk through a graph of classes and score them exactly; needs nmslib.

    The graph is built from the weights at :meth:`start`, which solvers call once a pass, and again
    when half of the classes have changed.  In between, the graph may be out of date, but scores
    use the current weights.

    Parameters
    ----------
    neighbors : int, default=10
        Edges of each added class.
    walk : int, default=100
        Classes kept on a walk ("ef"); at most these are scored exactly.

    Notes
    -----
    The errors are not bounded: bounds are inf.

    Examples
    --------
    >>> from structsolve.plugins.extreme.solvers.rivals import make_rivals
    >>> make_rivals("graph:20")
    GraphRivals(neighbors=20, walk=100)
    """

    name = "graph"

    def __init__(self, neighbors: int = 10, walk: int = 100):
        self.neighbors = neighbors
        self.walk = walk

    def check(self) -> None:
        """Raise ValueError for invalid settings."""
        check_count("neighbors", self.neighbors)
        check_count("walk", self.walk)

    def memory(self, n_features: int, n_classes: int) -> int:
        """Return the bytes of the edges, without the copy of the weights."""
        return 16 * self.neighbors * n_classes

    def start(self, weights: Any, seed: int = 0, n_jobs: int = 1) -> None:
        """Build the graph; see :meth:`RivalIndex.start`.

        Raises
        ------
        ImportError
            If nmslib is not installed; the message has the install command.
        """
        super().start(weights, seed, n_jobs)
        self._library = _nmslib()
        self._stale = np.zeros(weights.n_classes, bool)
        self._build()

    def _build(self) -> None:
        n_classes = self._weights.n_classes
        rows = class_rows(self._weights, np.arange(n_classes))
        self._stale[:] = False
        # Classes without weights score zero for every row: no edge would lead to other classes.
        self._in_graph = np.flatnonzero(np.diff(rows.indptr)).astype(np.int32)
        self._graph = None
        if len(self._in_graph) < 2:
            return
        kind = self._library.DataType.SPARSE_VECTOR
        self._graph = self._library.init(
            method="sw-graph", space="negdotprod_sparse_fast", data_type=kind
        )
        self._graph.addDataPointBatch(rows[self._in_graph], ids=self._in_graph)
        # Several threads would build a different graph.
        settings = {"NN": self.neighbors, "efConstruction": self.walk, "indexThreadQty": 1}
        self._graph.createIndex(settings, print_progress=False)
        self._graph.setQueryTimeParams({"efSearch": self.walk})

    def changed(self, classes: np.ndarray) -> None:
        """Mark classes as changed; see :meth:`RivalIndex.changed`."""
        self._stale[classes] = True

    def rivals(
        self, X: sparse.csr_matrix, exclude: np.ndarray, k: int, epsilon: float | None = None
    ) -> Answer:
        """Return the best classes that a walk visits; see :meth:`RivalIndex.rivals`."""
        n_classes = self._weights.n_classes
        if self._stale.sum() >= STALE * n_classes:
            self._build()
        n, m = X.shape[0], max(self.walk, k + 1)
        ids = np.full((n, m + k + 1), -1, np.int32)
        asked = np.flatnonzero(np.diff(X.indptr))
        if self._graph is not None and len(asked):
            answers = self._graph.knnQueryBatch(X[asked], k=m, num_threads=self._n_jobs)
            for i, (classes, _) in zip(asked, answers):
                ids[i, : len(classes)] = classes
        # The first classes fill up when a walk visits too few.
        spare = np.arange(min(k + 1, n_classes), dtype=np.int32)
        known = (ids[:, :m, None] == spare).any(1)
        ids[:, m : m + len(spare)] = np.where(known, -1, spare)
        ids[ids == exclude[:, None]] = -1
        ids, scores = best_of(self._weights, X, ids, k)
        return ids, scores, np.full(n, np.inf)


def _nmslib() -> Any:
    try:
        return importlib.import_module("nmslib")
    except ImportError as error:
        raise ImportError(
            'rivals="graph" needs nmslib, which is not installed: pip install '
            "'structsolve-learn[extreme]'"
        ) from error
