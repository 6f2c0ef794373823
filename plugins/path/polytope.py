"""The polytope of paths in graphs without cycles: one unit flows from the source to the sink."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from structsolve.lp import Polytope, Polytopes
from structsolve.plugins.path.labels import Graph


class PathPolytopes(Polytopes):
    """Flows of one unit.

    Variables are the edges, each with the score of the node where it ends, and an arc back from the
    sink to the source, with the score of the source.

    Parameters
    ----------
    examples : Examples
    scored : bool
        Edges have scores, too.
    """

    exact = True
    note = "totally unimodular: every column has one 1 and one -1 (conservation of flow)"

    def __init__(self, examples: Any, scored: bool):
        self.examples, self.scored = examples, scored

    def key(self, i: int) -> Hashable:
        """Return the graph, which examples of the same polytope share."""
        graph = Graph(self.examples, i)
        ends = graph.source, graph.sink, graph.size
        return ends, graph.tails.tobytes(), graph.heads.tobytes()

    def build(self, i: int) -> Polytope:
        """Return the polytope of an example."""
        from scipy import sparse  # heavy

        graph = Graph(self.examples, i)
        n, m = graph.size, len(graph.tails)
        tails, heads = np.append(graph.tails, graph.sink), np.append(graph.heads, graph.source)
        if graph.source == graph.sink:
            # The arc back is all of the path.
            upper, balance = np.append(np.zeros(m), 1.0), np.zeros(n)
        else:
            upper, balance = np.ones(m + 1), np.zeros(n)
        arcs = np.arange(m + 1)
        signs = np.append(np.ones(m + 1), -np.ones(m + 1))
        A = sparse.csr_matrix(
            (signs, (np.append(heads, tails), np.append(arcs, arcs))), shape=(n, m + 1)
        )
        parts = heads.astype(np.int64)
        if self.scored:
            parts = np.column_stack([parts, np.append(n + np.arange(m), -1)])

        def decode(x: np.ndarray) -> np.ndarray:
            label = np.zeros(n, dtype=np.int32)
            used = np.flatnonzero(x[:-1] > 0.5)
            label[graph.tails[used]] = used + 1
            return label

        return Polytope(A, balance, balance, parts, decode, np.eye(1, m + 1, m)[0], upper)
