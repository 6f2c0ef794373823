"""The local polytope of chains, whose vertices are label sequences."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from structsolve.lp.local import LocalPolytopes, label_parts
from structsolve.lp.polytope import Polytope


class ChainPolytopes(LocalPolytopes):
    """Node and edge marginals of chains; chains of the same length share a polytope.

    Parameters
    ----------
    layout : WeightLayout
    offsets : ndarray of int64 of shape (n + 1,)
    forbidden : tuple (pairs, first, last) of ndarray, optional
        -inf for the pairs of states, first and last states whose variables are 0; else 0.
    """

    def __init__(self, layout: Any, offsets: np.ndarray, forbidden: Any = None):
        super().__init__(exact=True)
        self.layout, self.lengths, self.forbidden = layout, np.diff(offsets), forbidden

    def key(self, i: int) -> int:
        """Return the length, which examples of the same polytope share."""
        return int(self.lengths[i])

    def graph(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the nodes' numbers of states, and the edges."""
        L = self.lengths[i]
        first = np.arange(L - 1)
        return np.full(L, self.layout.node.shape[0]), np.column_stack([first, first + 1])

    def parts(self, i: int) -> np.ndarray:
        """Return the parts that each variable adds to, -1 for none."""
        L = int(self.lengths[i])
        return label_parts(self.layout, L, L - 1, {"start": [0], "end": [L - 1]})

    def build(self, i: int) -> Polytope:
        """Return the polytope of a chain; a face of it where neighbours are forbidden."""
        if not self.lengths[i]:
            return _no_nodes()
        polytope = super().build(i)
        if self.forbidden is None:
            return polytope
        pairs, first, last = self.forbidden
        nodes = np.zeros((self.lengths[i], len(first)))
        nodes[0] += first
        nodes[-1] += last
        free = np.concatenate([nodes.ravel(), np.tile(pairs.ravel(), self.lengths[i] - 1)]) == 0
        return dataclasses.replace(polytope, upper=free.astype(np.float64))


def _no_nodes() -> Polytope:
    """Return the polytope of a chain without nodes: one variable that is 1 and has no score."""
    import scipy.sparse as sp  # heavy

    one = np.ones(1)
    return Polytope(
        sp.csr_matrix(one[None]), one, one, np.array([-1]), lambda x: np.zeros(0, dtype=np.int32)
    )
