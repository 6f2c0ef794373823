"""The local polytope of chains, whose vertices are label sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.lp.local import LocalPolytopes, label_parts


class ChainPolytopes(LocalPolytopes):
    """Node and edge marginals of chains; chains of the same length share a polytope.

    Parameters
    ----------
    layout : WeightLayout
    offsets : ndarray of int64 of shape (n + 1,)
    """

    def __init__(self, layout: Any, offsets: np.ndarray):
        super().__init__(exact=True)
        self.layout, self.lengths = layout, np.diff(offsets)

    def key(self, i: int) -> int:
        """Return what examples of the same polytope share: the length."""
        return int(self.lengths[i])

    def graph(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the nodes' numbers of states, and the edges."""
        L = self.lengths[i]
        first = np.arange(L - 1)
        return np.full(L, self.layout.node.shape[0]), np.column_stack([first, first + 1])

    def parts(self, i: int) -> np.ndarray:
        """Return which parts each variable adds to, -1 for none."""
        L = int(self.lengths[i])
        return label_parts(self.layout, L, L - 1, {"start": [0], "end": [L - 1]})
