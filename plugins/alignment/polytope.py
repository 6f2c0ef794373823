"""The hull of the alignments of two sequences as a linear program: paths through their grid."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.lp import Polytope, Polytopes

Node = tuple[int, str, int]


class AlignmentPolytopes(Polytopes):
    """Alignments as paths: one unit flows from the corner of the grid to the opposite one.

    Parameters
    ----------
    space : AlignmentSpace
    examples : Examples
    """

    exact = True
    note = "totally unimodular: paths through the grid of both sequences"

    def __init__(self, space: Any, examples: Any):
        self.space, self.examples = space, examples

    def build(self, i: int) -> Polytope:
        """Return the polytope of an example."""
        from scipy import sparse  # heavy

        n, m, repeats = self.space.sizes_of(self.examples, i)
        arcs = self._arcs(n, m, repeats)
        number: dict[Node, int] = {}
        for source, target, _ in arcs:
            for node in (source, target):
                number.setdefault(node, len(number))
        columns = np.arange(len(arcs))
        ends = np.array([[number[source], number[target]] for source, target, _ in arcs]).T
        shape = (len(number), len(arcs))
        A = sparse.csr_matrix((np.ones(len(arcs)), (ends[0], columns)), shape=shape)
        A -= sparse.csr_matrix((np.ones(len(arcs)), (ends[1], columns)), shape=shape)
        wanted = np.zeros(len(number))
        wanted[number[0, "pair", 0]] = 1
        wanted[number[n, "ready", m + 1]] = -1
        parts = np.array([part for *_, part in arcs])

        def decode(x: np.ndarray) -> np.ndarray:
            label = np.zeros(n, np.int32)
            for (item, kind, partner), taken in zip((arc[1] for arc in arcs), x > 0.5):
                if taken and kind == "pair":
                    label[item - 1] = partner
            return label

        return Polytope(A, wanted, wanted, parts, decode)

    def _arcs(self, n: int, m: int, repeats: np.ndarray) -> list[tuple[Node, Node, int]]:
        """Return (source, target, part) of all arcs between nodes that paths can meet."""
        kind, starts = self.space.structure.kind, self.space.layout.theta_starts
        pairs, gap = starts["node"], starts.get("gap", -1)
        arcs: list[tuple[Node, Node, int]] = []
        for i in range(n + 1):
            for j in range(m + 1):
                if i and kind != "many-to-one":
                    arcs.append(((i, "gap", j), (i, "ready", j + 1), -1))
                if not (kind == "ctc" and 0 < j < m and repeats[j]):
                    arcs.append(((i, "pair", j), (i, "ready", j + 1), -1))
                if kind == "edit" and j:
                    arcs.append(((i, "ready", j), (i, "ready", j + 1), gap + 1))
                if i < n and kind != "many-to-one":
                    arcs.append(((i, "pair", j), (i + 1, "gap", j), gap))
                    arcs.append(((i, "gap", j), (i + 1, "gap", j), gap))
                if i < n and j:
                    part = pairs + i * m + j - 1
                    arcs.append(((i, "ready", j), (i + 1, "pair", j), part))
                    if kind != "edit":
                        arcs.append(((i, "pair", j), (i + 1, "pair", j), part))
        start, end = (0, "pair", 0), (n, "ready", m + 1)
        while True:  # drop arcs from nodes that nothing reaches, and those that lead nowhere
            reached = {start} | {arc[1] for arc in arcs}
            leaving = {end} | {arc[0] for arc in arcs}
            kept = [arc for arc in arcs if arc[0] in reached and arc[1] in leaving]
            if len(kept) == len(arcs):
                return arcs
            arcs = kept
