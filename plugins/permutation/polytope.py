"""The polytope of assignments (Birkhoff), whose vertices are the assignments."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.lp import Polytope, Polytopes


class AssignmentPolytopes(Polytopes):
    """Every row takes one column, every column at most one row.

    Parameters
    ----------
    space : RankingSpace or MatchingSpace
    examples : Examples
    """

    exact = True
    note = "totally unimodular: the incidence matrix of a bipartite graph (Birkhoff)"

    def __init__(self, space: Any, examples: Any):
        self.space, self.examples = space, examples

    def key(self, i: int) -> Any:
        """Return the key that examples of the same polytope share."""
        allowed = self.space.allowed(self.examples, i)
        return allowed.shape, allowed.tobytes()

    def build(self, i: int) -> Polytope:
        """Return the polytope of an example."""
        from scipy import sparse  # heavy

        allowed = self.space.allowed(self.examples, i)
        rows, cols = allowed.shape
        A = sparse.vstack(
            [
                sparse.kron(sparse.eye(rows), np.ones((1, cols))),
                sparse.kron(np.ones((1, rows)), sparse.eye(cols)),
            ]
        )
        low = np.concatenate([np.ones(rows), np.full(cols, 1.0 if rows == cols else -np.inf)])
        # A ranking is one row of theta with a padded table, a matching one row per pair.
        block = self.space.layout.node
        stride = block.stride if len(block.shape) == 2 else cols
        parts = stride * np.arange(rows)[:, None] + np.arange(cols)

        def decode(x: np.ndarray) -> np.ndarray:
            return x.reshape(rows, cols).argmax(axis=1).astype(np.int32)

        upper = allowed.ravel().astype(np.float64)
        return Polytope(A, low, np.ones(rows + cols), parts.ravel(), decode, upper=upper)
