"""The local polytope of trees: its vertices are the labelings."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from structsolve.lp.local import LocalPolytopes, label_parts


class TreePolytopes(LocalPolytopes):
    """Node and edge marginals of forests; equal forests share a polytope.

    Parameters
    ----------
    space : TreeSpace
    examples : Examples
    """

    def __init__(self, space: Any, examples: Any):
        super().__init__(exact=True)
        self.layout, self.offsets = space.layout, examples.offsets
        self.parents = examples.topology["parents"]  # counted from 0 in every example, -1 at roots

    def _parents(self, i: int) -> np.ndarray:
        return self.parents[self.offsets[i] : self.offsets[i + 1]]

    def key(self, i: int) -> Hashable:
        """Return the parents, which examples of the same polytope share."""
        return self._parents(i).tobytes()

    def graph(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the nodes' numbers of states, and the edges."""
        parents = self._parents(i)
        child = np.flatnonzero(parents >= 0)
        states = np.full(len(parents), self.layout.node.shape[0])
        return states, np.column_stack([parents[child], child])

    def parts(self, i: int) -> np.ndarray:
        """Return the parts that each variable adds to, -1 for none."""
        parents = self._parents(i)
        roots = np.flatnonzero(parents < 0)
        return label_parts(self.layout, len(parents), len(parents) - len(roots), {"root": roots})
