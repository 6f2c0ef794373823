"""The local polytope of factor graphs: marginals of nodes and of factors that agree."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from structsolve.lp import Polytope, Polytopes
from structsolve.utils.arrays import padded


class FactorPolytopes(Polytopes):
    """Marginals of nodes, and of the entries of factors that no other one covers.

    Parameters
    ----------
    links : FactorMap
    """

    def __init__(self, links: Any):
        self.links, self.exact = links, bool(links.shape.forest)
        self.note = (
            "exact: without cycles, the local polytope has no other vertices than labelings"
            if self.exact
            else "relaxed: on a cycle, vertices of the local polytope may be fractional"
        )

    def key(self, i: int) -> Any:
        """Return the key that examples with the same factors share."""
        graph = self.links.arrays.graph(i)
        return tuple(array.tobytes() for array in (graph.states, graph.sources, graph.targets))

    def build(self, i: int) -> Polytope:
        """Return the polytope of an example: variables are entries of nodes, then of pairs."""
        graph, (K, most) = self.links.arrays.graph(i), self.links.arrays.most
        n, row = len(graph.states) - len(graph.homes), padded(most)
        states, pairs = graph.states.tolist(), graph.ends[graph.ends[:, 1] < n].tolist()
        starts = np.concatenate([[0], np.cumsum(graph.states)])
        places = [v * row + np.arange(k) for v, k in enumerate(states)]
        # Equations: (rows, columns, sign) of the variables that one row sums.
        rows: list[np.ndarray] = [np.repeat(np.arange(len(states)), states)]
        columns: list[np.ndarray] = [np.arange(starts[-1])]
        signs = [np.ones(starts[-1])]
        count, size = len(states), int(starts[-1])

        def agree(v: int, digits: np.ndarray, first: int) -> None:
            nonlocal count
            rows.extend([count + np.arange(states[v]), count + digits])
            columns.extend([starts[v] + np.arange(states[v]), first + np.arange(len(digits))])
            signs.extend([np.ones(states[v]), -np.ones(len(digits))])
            count += states[v]

        for j, home in enumerate(graph.homes):
            for v, digits in zip(
                home, np.indices([states[v] for v in home]).reshape(len(home), -1)
            ):
                agree(v, digits, int(starts[n + j]))
        for e, (u, v) in enumerate(pairs):
            left, right = np.indices((states[u], states[v])).reshape(2, -1)
            agree(u, left, size)
            agree(v, right, size)
            places.append((len(states) + e * K) * row + left * row + right)
            size += len(left)
        A = sparse.csr_array(
            (np.concatenate(signs), (np.concatenate(rows), np.concatenate(columns))),
            shape=(count, size),
        )
        b = (np.arange(count) < len(states)).astype(float)
        parts = _sources(np.concatenate(places), graph.sources, graph.targets)

        def decode(x: np.ndarray) -> np.ndarray:
            best = (x[first:last].argmax() for first, last in zip(starts[:n], starts[1:]))
            return np.fromiter(best, dtype=np.int32, count=n)

        return Polytope(A, b, b, parts, decode)


def _sources(places: np.ndarray, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the parts whose scores each place gets, a row per place, filled up with -1."""
    order = np.argsort(targets, kind="stable")
    first = np.searchsorted(targets[order], places)
    counts = np.searchsorted(targets[order], places, side="right") - first
    parts = np.full((len(places), max(1, int(counts.max(initial=1)))), -1, dtype=np.int64)
    for k in range(parts.shape[1]):
        there = counts > k
        parts[there, k] = sources[order][first[there] + k]
    return parts
