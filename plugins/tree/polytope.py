"""The local polytope of a forest: its vertices are the labelings."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from structsolve.lp import Polytope, Polytopes


class TreePolytopes(Polytopes):
    """Marginals of nodes and edges that agree with each other, one polytope per shape of tree.

    Variables are the states of nodes, then (where pairs are scored) the pairs of states of edges,
    then copies of those with a second part: the root table, and edge tables beside transitions.

    Parameters
    ----------
    space : TreeSpace
    examples : Examples
    """

    exact = True
    note = (
        "integral: marginals of nodes and edges that agree locally are those of a distribution "
        "over labelings where the graph has no cycle"
    )

    def __init__(self, space: Any, examples: Any):
        self.layout, self.K = space.layout, len(space.classes_)
        self.offsets, self.parents = examples.offsets, examples.topology["parents"]

    def _parents(self, i: int) -> np.ndarray:
        return self.parents[self.offsets[i] : self.offsets[i + 1]]

    def key(self, i: int) -> Hashable:
        return self._parents(i).tobytes()

    def build(self, i: int) -> Polytope:
        from scipy import sparse

        layout, K, parents = self.layout, self.K, self._parents(i).astype(np.int64)
        stride, n = layout.node_size, len(parents)
        child = np.flatnonzero(parents >= 0)
        top = np.flatnonzero(parents < 0)
        state = np.arange(K)
        node_parts = layout.shared_size + np.arange(n)[:, None] * stride + state
        cell = state[:, None] * stride + state
        parts = [node_parts.ravel()]
        scored = "transition" in layout.starts or layout.edge is not None
        m = len(child) if scored else 0
        size = n * K + m * K * K
        # sum_s x_v(s) = 1
        rows, columns = [np.repeat(np.arange(n), K)], [np.arange(n * K)]
        values, count = [np.ones(n * K)], n
        right = [np.ones(n)]

        def equal(ones: np.ndarray, minus: np.ndarray) -> None:
            # For each row of `ones` (variables): their sum is the variable `minus`.
            nonlocal count
            number = count + np.arange(len(minus))
            rows.extend([np.repeat(number, ones.shape[1]), number])
            columns.extend([ones.ravel(), minus])
            values.extend([np.ones(ones.size), -np.ones(len(minus))])
            right.append(np.zeros(len(minus)))
            count += len(minus)

        if m:
            pair = n * K + np.arange(m * K * K).reshape(m, K, K)
            equal(pair.reshape(m * K, K), (parents[child][:, None] * K + state).ravel())
            equal(pair.transpose(0, 2, 1).reshape(m * K, K), (child[:, None] * K + state).ravel())
            own = layout.shared_size + n * stride
            own = own + np.arange(m)[:, None, None] * layout.edge_size + cell
            shared = np.broadcast_to(layout.starts.get("transition", 0) + cell, (m, K, K))
            if "transition" in layout.starts:
                parts.append(shared.ravel())
                if layout.edge is not None:
                    equal((size + np.arange(pair.size))[:, None], pair.ravel())
                    parts.append(own.ravel())
                    size += pair.size
            else:
                parts.append(own.ravel())
        if "root" in layout.starts:
            copies = len(top) * K
            equal((size + np.arange(copies))[:, None], (top[:, None] * K + state).ravel())
            parts.append(np.tile(layout.starts["root"] + state, len(top)))
            size += copies
        A = sparse.csr_matrix(
            (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
            shape=(count, size),
        )
        bound = np.concatenate(right)
        integer = np.arange(size) < n * K

        def decode(x: np.ndarray) -> np.ndarray:
            return x[: n * K].reshape(n, K).argmax(axis=1).astype(np.int32)

        return Polytope(A, bound, bound, np.concatenate(parts), decode, integer=integer)
