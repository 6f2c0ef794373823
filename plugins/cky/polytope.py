"""The hull of a sentence's trees as a linear program: each span is built as often as it is used."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any

import numpy as np

from structsolve.lp import Polytope, Polytopes


class CKYPolytopes(Polytopes):
    """Trees as corners of a polytope, with a variable for each span and class, and for each step.

    A step joins two neighbours by a rule (Martin, Rardin and Campbell 1990): O(n^3 R) variables for
    n words and R rules.

    Parameters
    ----------
    space : CKYSpace
    examples : Examples
    """

    exact = True
    note = "every vertex is a tree: the steps of a dynamic program (Martin, Rardin, Campbell 1990)"

    def __init__(self, space: Any, examples: Any):
        self.space = space
        self.n_words = (np.diff(examples.label_offsets) + 1) // 2

    def key(self, i: int) -> Hashable:
        """Return the number of words."""
        return int(self.n_words[i])

    def build(self, i: int) -> Polytope:
        """Return the polytope of a sentence."""
        from scipy import sparse  # heavy

        n, K = int(self.n_words[i]), self.space.width
        layout = self.space.layout
        rules = [(0, 0, 0, -1)] if self.space.rules is None else self.space.rules.tolist()
        states = 1 if self.space.rules is None else K
        row: dict[tuple[int, int], int] = {}
        for a in range(n):
            for b in range(n, a, -1):
                row[a, b] = len(row)
        rows = len(row)
        parts = [
            layout.shared_size + r * layout.node_size + c for r in range(rows) for c in range(K)
        ]
        # Equations of each span and state: it is used as often as taken, and built as often.
        entries = []
        for r in range(rows):
            for c in range(K):
                item = r * states + c % states
                entries += [(item, r * K + c, 1.0), (rows * states + item, r * K + c, 1.0)]
        for (a, b), r in row.items():
            for k in range(a + 1, b):
                for parent, left, right, part in rules:
                    step = len(parts)
                    parts.append(part)
                    entries.append((rows * states + r * states + parent, step, -1.0))
                    entries.append((row[a, k] * states + left, step, -1.0))
                    entries.append((row[k, b] * states + right, step, -1.0))
        index, column, value = (np.array(x) for x in zip(*entries, strict=True))
        words = [
            rows * states + row[a, a + 1] * states + s for a in range(n) for s in range(states)
        ]
        A = sparse.csr_matrix((value, (index, column)), shape=(2 * rows * states, len(parts)))
        # Words are not built; the whole sentence is used once.
        kept = np.ones(2 * rows * states, dtype=bool)
        kept[words] = kept[:states] = False
        once = sparse.csr_matrix((np.ones(K), (np.zeros(K, int), np.arange(K))), (1, len(parts)))
        sides = np.append(np.zeros(kept.sum()), 1.0)
        decode = partial(_decode, rows * K)
        A = sparse.vstack([A[kept], once], format="csr")
        return Polytope(A, sides, sides, np.array(parts, dtype=np.int64), decode)


def _decode(size: int, x: np.ndarray) -> np.ndarray:
    return np.flatnonzero(x[:size] > 0.5).astype(np.int32)
