"""The hull of a sentence's trees as a linear program, of flows or, if projective, of spans."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any

import numpy as np

from structsolve.lp import Polytope, Polytopes


class TreePolytopes(Polytopes):
    """Trees as corners of a polytope, with O(n^3) variables for n words.

    All trees: every word has one arc, and for each word one unit flows from the root to it over
    arcs that are taken (Wong). Projective trees: variables count the steps of Eisner's algorithm
    (Martin, Rardin and Campbell). One child of the root is a face of either polytope. A labelled
    arc is a sum of variables, one for each relation.

    Parameters
    ----------
    space : DependencySpace
    examples : Examples
    """

    exact = True

    def __init__(self, space: Any, examples: Any):
        self.structure, self.block = space.structure, space.layout.node
        self.arcs = examples.topology["arcs"]
        steps = "the steps of a dynamic program (Martin, Rardin, Campbell 1990)"
        flows = "one flow to each word (Wong 1984)"
        self.note = f"every vertex is a tree: {steps if self.structure.projective else flows}"

    def key(self, i: int) -> Hashable:
        """Return the number of words where all arcs are candidates, else the example."""
        return ("complete", int(self.arcs.n_words[i])) if self.arcs.complete else i

    def build(self, i: int) -> Polytope:
        """Return the polytope of a sentence."""
        arcs = self.arcs[i]
        heads, modifiers, n = arcs.heads, arcs.modifiers, int(arcs.n_words[0])
        build = _of_steps if self.structure.projective else _of_flows
        A, low, high, arc = build(n, heads, modifiers, self.structure.single_root)
        # A column of an arc is repeated for each of its relations.
        (width,), stride = self.block.shape, self.block.stride
        columns = np.repeat(np.arange(len(arc)), np.where(arc < 0, 1, width))
        again = np.arange(len(columns)) - np.searchsorted(columns, columns)
        parts = np.where(arc[columns] < 0, -1, arc[columns] * stride + again)
        word = np.where(parts < 0, -1, modifiers[arc[columns]] - 1)
        decode = partial(_decode, n, word, heads[arc[columns]] * width + again)
        return Polytope(A[:, columns], low, high, parts, decode)


def _of_flows(n: int, heads: np.ndarray, modifiers: np.ndarray, single: bool) -> tuple[Any, ...]:
    """Return the rows of flows, and the arc of each column: arcs, then each word's flows."""
    from scipy import sparse  # heavy

    count = len(heads)
    arc = np.arange(count)
    ones = np.ones(count)
    into = sparse.csr_matrix((ones, (modifiers - 1, arc)), shape=(n, count))
    inner = heads > 0
    out = sparse.csr_matrix((ones[inner], (heads[inner] - 1, arc[inner])), shape=(n, count))
    rows = [
        [into, None],
        # Inflow less outflow is 1 at the word that the flow leads to, else 0.
        [None, sparse.kron(sparse.identity(n), into - out)],
        [sparse.kron(np.ones((n, 1)), -sparse.identity(count)), sparse.identity(n * count)],
    ]
    low = [np.ones(n), np.eye(n).ravel(), np.full(n * count, -np.inf)]
    high = [np.ones(n), np.eye(n).ravel(), np.zeros(n * count)]
    if single:
        rows.append([sparse.csr_matrix((heads == 0).astype(float)[None]), None])
        low.append(np.ones(1))
        high.append(np.ones(1))

    parts = np.concatenate([arc, np.full(n * count, -1)])
    return sparse.bmat(rows, format="csr"), np.concatenate(low), np.concatenate(high), parts


def _of_steps(n: int, heads: np.ndarray, modifiers: np.ndarray, single: bool) -> tuple[Any, ...]:
    """Return the rows of Eisner's steps: each span is built as often as it is used."""
    from scipy import sparse  # heavy

    part = {arc: k for k, arc in enumerate(zip(heads.tolist(), modifiers.tolist()))}
    steps: list[tuple[tuple[Any, ...], list[tuple[Any, ...]], int]] = []
    for i in range(1 if single else 0, n + 1):
        for j in range(i + 1, n + 1):
            for kind, arc in (("arc right", (i, j)), ("arc left", (j, i))):
                if arc in part:
                    for k in range(i, j):
                        tails = [("right", i, k), ("left", k + 1, j)]
                        steps.append(((kind, i, j), tails, part[arc]))
            for k in range(i + 1, j + 1):
                steps.append((("right", i, j), [("arc right", i, k), ("right", k, j)], -1))
            for k in range(i, j):
                steps.append((("left", i, j), [("left", i, k), ("arc left", k, j)], -1))
    goal: tuple[Any, ...] = ("right", 0, n)
    if single:
        goal = ("all",)
        for r in range(1, n + 1):
            if (0, r) in part:
                steps.append((goal, [("left", 1, r), ("right", r, n)], part[0, r]))
    # Spans of one word need no step.
    number: dict[tuple[Any, ...], int] = {goal: 0}
    entries: list[tuple[int, int, float]] = []
    for step, (made, used, _) in enumerate(steps):
        for sign, items in ((1.0, [made]), (-1.0, used)):
            for item in items:
                if item == goal or len(item) < 3 or item[1] < item[2]:
                    entries.append((number.setdefault(item, len(number)), step, sign))
    row, column, value = (np.array(x) for x in zip(*entries))
    wanted = np.zeros(len(number))
    wanted[0] = 1
    parts = np.array([p for *_, p in steps], dtype=np.int64)

    A = sparse.csr_matrix((value, (row, column)), shape=(len(number), len(steps)))
    return A, wanted, wanted, parts


def _decode(n: int, word: np.ndarray, chosen: np.ndarray, x: np.ndarray) -> np.ndarray:
    taken = (x > 0.5) & (word >= 0)
    label = np.zeros(n, dtype=np.int32)
    label[word[taken]] = chosen[taken]
    return label
