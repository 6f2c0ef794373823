"""The simplex of classes as a polytope for linear programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.lp import Polytope, Polytopes


class Simplex(Polytopes):
    """Probabilities of K classes; one polytope for all examples.

    Parameters
    ----------
    layout : WeightLayout
    """

    exact = True
    note = "totally unimodular: one row"

    def __init__(self, layout: Any):
        self.layout = layout

    def key(self, i: int) -> int:
        """Return the key that examples of the same polytope share."""
        return 0

    def build(self, i: int) -> Polytope:
        """Return the polytope of an example."""
        from scipy import sparse  # heavy

        K, one = self.layout.node.shape[0], np.ones(1)
        parts = self.layout.shared_size + np.arange(K)
        A = sparse.csr_matrix(np.ones((1, K)))
        return Polytope(A, one, one, parts, lambda x: np.array([x.argmax()], dtype=np.int32))
