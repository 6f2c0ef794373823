"""The local polytope of trees: its vertices are the labelings."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from structsolve.lp import LocalPolytopes


class TreePolytopes(LocalPolytopes):
    """Node and edge marginals of forests; equal forests share a polytope.

    Parameters
    ----------
    layout : WeightLayout
    offsets : ndarray of int64 of shape (n + 1,)
    parents : ndarray of int32
        Of all nodes, counted from 0 in every example, -1 at roots.
    """

    def __init__(self, layout: Any, offsets: np.ndarray, parents: np.ndarray):
        super().__init__(exact=True)
        self.layout, self.offsets, self.parents = layout, offsets, parents

    def _parents(self, i: int) -> np.ndarray:
        return self.parents[self.offsets[i] : self.offsets[i + 1]]

    def key(self, i: int) -> Hashable:
        return self._parents(i).tobytes()

    def graph(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        parents = self._parents(i)
        child = np.flatnonzero(parents >= 0)
        states = np.full(len(parents), self.layout.node.shape[0])
        return states, np.column_stack([parents[child], child])

    def parts(self, i: int) -> np.ndarray:
        layout, parents = self.layout, self._parents(i)
        n, m = len(parents), int((parents >= 0).sum())
        K, stride = layout.node.shape[0], layout.node.stride
        states, table = np.arange(K), stride * np.arange(K)[:, None] + np.arange(K)
        nodes = np.full((n, K, 2), -1)
        nodes[:, :, 0] = layout.shared_size + layout.node_size * np.arange(n)[:, None] + states
        if "root" in layout.starts:
            nodes[parents < 0, :, 1] = layout.starts["root"] + states
        edges = np.full((m, K, K, 2), -1)
        if "transition" in layout.starts:
            edges[..., 0] = layout.starts["transition"] + table
        if layout.edge is not None:
            rows = layout.shared_size + n * layout.node_size + layout.edge_size * np.arange(m)
            edges[..., 1] = rows[:, None, None] + table
        return np.concatenate([nodes.reshape(-1, 2), edges.reshape(-1, 2)])
