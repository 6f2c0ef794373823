"""Linear (and integer) programs over the local polytope of a graph, by HiGHS and by cvxpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.lp import Cvxpy, Highs, local_rows
from structsolve.lp.base import ProgramCache, cone_rows
from structsolve.lp.polytope import bound_of

# What simplex solvers leave of 0, 1/2 and 1.
NEAR = 1e-7


class LocalPolytope:
    """``A x <= b`` of one graph: two states by one variable per node and edge, else one per part.

    Parameters
    ----------
    states : ndarray of shape (n,)
    ends : ndarray of shape (m, 2)
    by_parts : bool, default=False
        One variable per part with two states too: parts may be forbidden then.

    Attributes
    ----------
    A : scipy.sparse.csr_matrix
    low, high : ndarray
        Bounds of its rows.
    lower, upper : ndarray
        Bounds of the variables, 0 and 1.
    integer : ndarray of bool
        All, where a program is an integer program.
    """

    def __init__(self, states: np.ndarray, ends: np.ndarray, by_parts: bool = False):
        from scipy import sparse

        self.states, self.ends = states.astype(np.int64), ends.astype(np.int64).reshape(-1, 2)
        self.n, self.m = len(states), len(self.ends)
        self.binary = not by_parts and bool((states == 2).all())
        self.unary_at = np.concatenate([[0], np.cumsum(self.states)])
        shapes = self.states[self.ends]
        self.pair_at = np.concatenate([[0], np.cumsum(shapes.prod(axis=1))])
        u, v = self.ends.T
        if self.binary:
            # x_v = mu_v(1), z_e = mu_e(1, 1): z <= x_u, z <= x_v, x_u + x_v - z <= 1.
            e, m, n = np.arange(self.m), self.m, self.n
            rows = np.concatenate([e, e, m + e, m + e, 2 * m + e, 2 * m + e, 2 * m + e])
            columns = np.concatenate([n + e, u, n + e, v, u, v, n + e])
            one = np.ones(m)
            values = np.concatenate([one, -one, one, -one, one, one, -one])
            self.size = n + m
            shape = (3 * m, n + m)
            self.A = sparse.csr_matrix((values, (rows, columns)), shape=shape)
            self.high = np.concatenate([np.zeros(2 * m), np.ones(m)])
            self.low = np.full(3 * m, -np.inf)
        else:
            self.A, self.high = local_rows(self.states, self.ends)
            self.low, self.size = self.high, self.A.shape[1]
        self.lower, self.upper = np.zeros(self.size), np.ones(self.size)
        self.integer = np.ones(self.size, dtype=bool)

    def costs(self, unary: np.ndarray, pair: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the linear objective (scores, to be maximised) and its constant."""
        if not self.binary:
            return np.concatenate([unary, pair]), 0.0
        node, edge = unary.reshape(-1, 2), pair.reshape(-1, 4)
        c = np.concatenate([node[:, 1] - node[:, 0], edge @ [1.0, -1.0, -1.0, 1.0]])
        np.add.at(c, self.ends[:, 0], edge[:, 2] - edge[:, 0])
        np.add.at(c, self.ends[:, 1], edge[:, 1] - edge[:, 0])
        return c, float(node[:, 0].sum() + edge[:, 0].sum())

    def marginals(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return node and edge marginals; what simplex leaves of 0, 1/2 and 1 is put right."""
        x = np.clip(x, 0, 1)
        half = np.round(2 * x) / 2
        x = np.where(np.abs(x - half) < NEAR, half, x)
        if not self.binary:
            return x[: self.unary_at[-1]].copy(), x[self.unary_at[-1] :].copy()
        x, z = x[: self.n], x[self.n :]
        a, b = x[self.ends[:, 0]], x[self.ends[:, 1]]
        z = np.clip(z, np.maximum(0, a + b - 1), np.minimum(a, b))
        # 1 - (a + b - z), not 1 - a - b + z: exactly 0 where it is 0.
        pairs = np.column_stack([1 - (a + b - z), b - z, a - z, z])
        return np.column_stack([1 - x, x]).ravel(), pairs.ravel()

    def round(self, nodes: np.ndarray) -> np.ndarray:
        """Return the likeliest state of every node, of equal ones the first."""
        label = np.zeros(self.n, dtype=np.int32)
        for v in range(self.n):
            label[v] = nodes[self.unary_at[v] : self.unary_at[v + 1]].argmax()
        return label


class Programs:
    """Labelings, marginals and bounds by the linear programs of a backend.

    One program per graph and thread is kept, of which only costs change.  ``relax`` starts where
    the example's last one ended; of several optima it may return another one then.  ``decode``
    always starts anew, so that its labeling depends on nothing but the scores.

    Parameters
    ----------
    backend : structsolve.lp.Backend
    """

    def __init__(self, backend: Any):
        self.backend, self._integer = backend, Highs(integer=True)
        self._starts: dict[int, Any] = {}
        self._programs = ProgramCache()

    def _kept(self, shape: Any, i: int, finite: bool, backend: Any) -> tuple[LocalPolytope, Any]:
        states, ends = shape.graph_of(i)
        key = (backend.name, not finite, states.tobytes(), ends.tobytes())

        def make() -> tuple[LocalPolytope, Any]:
            polytope = LocalPolytope(states, ends, by_parts=not finite)
            return polytope, backend.program(polytope)

        return self._programs.get(key, make)

    def _ask(
        self,
        shape: Any,
        i: int,
        unary: Any,
        pair: Any,
        *,
        backend: Any = None,
        warm: bool = False,
        side: Any = None,
    ) -> tuple[LocalPolytope, np.ndarray, float] | None:
        """Return the polytope, the optimal point and an upper bound; None where it is empty."""
        finite = bool(np.isfinite(unary).all() and np.isfinite(pair).all())
        polytope, program = self._kept(shape, i, finite, backend or self.backend)
        c, constant = polytope.costs(unary, pair)
        upper, sides = None, None
        if not finite:
            barred = np.isneginf(c)
            c, upper = np.where(barred, 0.0, c), np.where(barred, 0.0, 1.0)
        costs = c
        if side is not None:
            cost_unary, cost_pair, cone = side
            d, d_constant = polytope.costs(cost_unary, cost_pair)
            sides = cone_rows(c, constant + cone.h0, d, d_constant + cone.g0, cone)
            costs = c + cone.lam * d
        answer = program.solve(costs, upper, self._starts.get(i) if warm else None, sides)
        if answer is None:
            return None
        if warm:
            self._starts[i] = answer.start
        bound = (
            float(c @ answer.x)
            if answer.dual is None
            else bound_of(polytope, c, answer.dual, upper)
        )
        return polytope, answer.x, bound + constant

    def decode(self, shape: Any, i: int, unary: np.ndarray, pair: np.ndarray) -> Any:
        """Return a labeling, to be improved by local search, and an upper bound."""
        found = self._ask(shape, i, unary, pair)
        if found is None:
            return np.zeros(len(shape.graph_of(i)[0]), dtype=np.int32), -np.inf
        polytope, x, bound = found
        return polytope.round(polytope.marginals(x)[0]), bound

    def best(self, shape: Any, i: int, unary: np.ndarray, pair: np.ndarray) -> np.ndarray:
        """Return the best labeling, by an integer program of HiGHS."""
        found = self._ask(shape, i, unary, pair, backend=self._integer)
        if found is None:
            return np.zeros(len(shape.graph_of(i)[0]), dtype=np.int32)
        polytope, x, _ = found
        return polytope.round(polytope.marginals(x)[0])

    def relax(self, shape: Any, i: int, unary: np.ndarray, pair: np.ndarray) -> Any:
        """Return node and edge marginals of the relaxation and an upper bound of the best score.

        None where nothing is possible.
        """
        answer = self._ask(shape, i, unary, pair, warm=True)
        if answer is None:
            return None
        polytope, x, bound = answer
        return *polytope.marginals(x), bound

    def constrained(
        self,
        shape: Any,
        i: int,
        unary: np.ndarray,
        pair: np.ndarray,
        cost_unary: np.ndarray,
        cost_pair: np.ndarray,
        cone: Any,
    ) -> Any:
        """Return marginals with the largest h + lam g in the closed cone, None if it is empty."""
        found = self._ask(shape, i, unary, pair, side=(cost_unary, cost_pair, cone))
        return None if found is None else found[0].marginals(found[1])


def programs(name: str) -> Programs:
    """Return the programs called "lp" (HiGHS) or "cvxpy:SOLVER"."""
    return Programs(Highs() if name == "lp" else Cvxpy(name.removeprefix("cvxpy:")))
