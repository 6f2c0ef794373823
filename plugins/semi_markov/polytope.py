"""The hull of a sequence's segmentations as a linear program: paths over its segments."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.lp import Polytope, Polytopes


class SegmentPolytopes(Polytopes):
    """Segmentations as paths: one unit flows from the start over segments and pairs to the end.

    Parameters
    ----------
    space : SemiMarkovSpace
    offsets : ndarray of int64 of shape (n + 1,)
    """

    exact = True
    note = "totally unimodular: paths from the first token to the last over segments"

    def __init__(self, space: Any, examples: Any):
        self.space, self.sizes = space, np.diff(examples.offsets)

    def key(self, i: int) -> int:
        """Return the length, which examples of the same polytope share."""
        return int(self.sizes[i])

    def build(self, i: int) -> Polytope:
        """Return the polytope of a sequence."""
        from scipy import sparse  # heavy

        space, n = self.space, int(self.sizes[i])
        K, layout = len(space.classes_), space.layout
        starts, stride = layout.theta_starts, layout.block("transition").stride
        node = starts["node"] + np.arange(n) * layout.node_size
        steps: list[tuple[int, int, list[int]]] = []  # nodes of the graph, and parts
        # Node (b, c, 0): a segment of class c begins at b; (e, c, 1): one ends before e.
        number = {
            key: j + 1
            for j, key in enumerate(
                (v, c, side) for v in range(n + 1) for c in range(K) for side in (0, 1)
            )
        }
        segments = []
        for c in range(K):
            steps.append((0, number[0, c, 0], [starts["start"] + c]))
            steps.append((number[n, c, 1], -1, [starts["end"] + c]))
            for b in range(n):
                most = 1 if c == space.outside else space.longest
                for e in range(b + 1, min(b + most, n) + 1):
                    parts = [starts["length"] + (e - b - 1) * stride + c, *(node[b:e] + c)]
                    parts += [node[b] + stride + c, node[e - 1] + 2 * stride + c]
                    segments.append((len(steps), b, e, c))
                    steps.append((number[b, c, 0], number[e, c, 1], parts))
                if b:
                    for after in range(K):
                        pair = starts["transition"] + c * stride + after
                        steps.append((number[b, c, 1], number[b, after, 0], [pair]))
        sources, targets = np.array([step[:2] for step in steps]).T
        columns = np.arange(len(steps))
        shape = (len(number) + 1, len(steps))
        A = sparse.csr_matrix((np.ones(len(steps)), (sources, columns)), shape=shape)
        inner = targets >= 0
        into = targets[inner], columns[inner]
        A -= sparse.csr_matrix((np.ones(inner.sum()), into), shape=shape)
        wanted = np.zeros(shape[0])
        wanted[0] = 1
        width = max(len(step[2]) for step in steps)
        table = np.array([step[2] + [-1] * (width - len(step[2])) for step in steps])

        def decode(x: np.ndarray) -> np.ndarray:
            label = np.zeros(n, np.int32)
            for column, b, e, c in segments:
                if x[column] > 0.5:
                    label[b:e] = K + c
                    label[b] = c
            return label

        return Polytope(A, wanted, wanted, table, decode)
