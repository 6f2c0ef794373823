"""The local polytope of chains, whose vertices are label sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.lp import LocalPolytopes


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
        return int(self.lengths[i])

    def graph(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        L = self.lengths[i]
        first = np.arange(L - 1)
        return np.full(L, self.layout.node.shape[0]), np.column_stack([first, first + 1])

    def parts(self, i: int) -> np.ndarray:
        layout, L = self.layout, int(self.lengths[i])
        K, stride = layout.node.shape[0], layout.node.stride
        states, table = np.arange(K), stride * np.arange(K)[:, None] + np.arange(K)
        nodes = np.full((L, K, 3), -1)
        nodes[:, :, 0] = layout.shared_size + layout.node_size * np.arange(L)[:, None] + states
        if "start" in layout.starts:
            nodes[0, :, 1] = layout.starts["start"] + states
            nodes[L - 1, :, 2] = layout.starts["end"] + states
        edges = np.full((L - 1, K, K, 3), -1)
        if "transition" in layout.starts:
            edges[..., 0] = layout.starts["transition"] + table
        if layout.edge is not None:
            rows = layout.shared_size + L * layout.node_size + layout.edge_size * np.arange(L - 1)
            edges[..., 1] = rows[:, None, None] + table
        return np.concatenate([nodes.reshape(-1, 3), edges.reshape(-1, 3)])
