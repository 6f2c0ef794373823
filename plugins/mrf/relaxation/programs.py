"""Linear (and integer) programs over the local polytope of a graph."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from structsolve.lp import Highs, local_rows
from structsolve.lp.base import ProgramCache
from structsolve.lp.polytope import bound_of

# Error of simplex solutions at 0, 1/2 and 1.
NEAR = 1e-7


class LocalPolytope:
    """``low <= A x <= high`` of one graph: its marginals of nodes and edges.

    If all nodes have two states, each node and edge has one variable, else each part has one.

    Parameters
    ----------
    states : ndarray of shape (n,)
    ends : ndarray of shape (m, 2)
    by_parts : bool, default=False
        Always one variable per part, so that single parts can be forbidden.

    Attributes
    ----------
    A : scipy.sparse.csr_matrix
    low, high : ndarray
        Bounds of its rows.
    lower, upper : ndarray
        Bounds of the variables, 0 and 1.
    integer : ndarray of bool
        All variables, if the program is an integer program.
    """

    def __init__(self, states: np.ndarray, ends: np.ndarray, by_parts: bool = False):
        from scipy import sparse  # heavy

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
        """Return the objective, to be maximised.

        Parameters
        ----------
        unary, pair : ndarray
            Scores of nodes and of edges, one table after the other.

        Returns
        -------
        c : ndarray of shape (size,)
        constant : float
        """
        if not self.binary:
            return np.concatenate([unary, pair]), 0.0
        node, edge = unary.reshape(-1, 2), pair.reshape(-1, 4)
        c = np.concatenate([node[:, 1] - node[:, 0], edge @ [1.0, -1.0, -1.0, 1.0]])
        np.add.at(c, self.ends[:, 0], edge[:, 2] - edge[:, 0])
        np.add.at(c, self.ends[:, 1], edge[:, 1] - edge[:, 0])
        return c, float(node[:, 0].sum() + edge[:, 0].sum())

    def marginals(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the marginals at a point; values close to 0, 1/2 and 1 are rounded to them.

        Parameters
        ----------
        x : ndarray of shape (size,)

        Returns
        -------
        nodes, pairs : ndarray
            In the layout of the scores.
        """
        x = np.clip(x, 0, 1)
        half = np.round(2 * x) / 2
        x = np.where(np.abs(x - half) < NEAR, half, x)
        if not self.binary:
            return x[: self.unary_at[-1]].copy(), x[self.unary_at[-1] :].copy()
        x, z = x[: self.n], x[self.n :]
        a, b = x[self.ends[:, 0]], x[self.ends[:, 1]]
        z = np.clip(z, np.maximum(0, a + b - 1), np.minimum(a, b))
        # 1 - (a + b - z), not 1 - a - b + z: exactly 0 if it is 0.
        pairs = np.column_stack([1 - (a + b - z), b - z, a - z, z])
        return np.column_stack([1 - x, x]).ravel(), pairs.ravel()

    def round(self, nodes: np.ndarray) -> np.ndarray:
        """Return the most probable state of every node, the first on ties.

        Parameters
        ----------
        nodes : ndarray
            Marginals of nodes.

        Returns
        -------
        ndarray of int32 of shape (n,)
        """
        label = np.zeros(self.n, dtype=np.int32)
        for v in range(self.n):
            label[v] = nodes[self.unary_at[v] : self.unary_at[v + 1]].argmax()
        return label


class Programs:
    """Labelings, marginals and bounds by the linear programs of a backend.

    Each thread keeps one program per graph and changes only its costs.  ``relax`` starts from the
    example's last solution, so it may return another one of several optima.  ``decode`` always
    starts anew, so its labeling depends only on the scores.

    In all methods ``shape`` is the GraphShape of the examples, ``i`` an example, and ``unary`` and
    ``pair`` are its scores of nodes and of edges, one table after the other.

    Parameters
    ----------
    make : callable
        Returns the structsolve.lp.Backend, at the first use.
    """

    def __init__(self, make: Callable[[], Any]):
        self._make = make
        self._starts: dict[int, Any] = {}
        self._programs = ProgramCache()

    @cached_property
    def backend(self) -> Any:
        """The backend."""
        return self._make()

    @cached_property
    def _integer(self) -> Any:
        return Highs(integer=True)

    @cached_property
    def _sure(self) -> Any:
        return Highs()

    def _program_of(
        self, shape: Any, i: int, finite: bool, backend: str
    ) -> tuple[LocalPolytope, Any]:
        states, ends = shape.graph_of(i)
        key = (backend, not finite, states.tobytes(), ends.tobytes())

        def make() -> tuple[LocalPolytope, Any]:
            polytope = LocalPolytope(states, ends, by_parts=not finite)
            return polytope, getattr(self, backend).program(polytope)

        return self._programs.get(key, make)

    def _ask(
        self,
        shape: Any,
        i: int,
        unary: Any,
        pair: Any,
        *,
        backend: str = "backend",
        warm: bool = False,
    ) -> tuple[LocalPolytope, np.ndarray, float] | None:
        """Return the polytope, the optimal point and an upper bound; None if it is empty."""
        finite = bool(np.isfinite(unary).all() and np.isfinite(pair).all())
        polytope, program = self._program_of(shape, i, finite, backend)
        c, constant = polytope.costs(unary, pair)
        upper = None
        if not finite:
            barred = np.isneginf(c)
            c, upper = np.where(barred, 0.0, c), np.where(barred, 0.0, 1.0)
        start = self._starts.get(i) if warm and self.backend.warm else None
        answer = self._solved(program, i, c, upper, start)
        unproved = answer is not None and answer.dual is None and not self.backend.accurate
        if answer is not None and (answer.limited or unproved):
            # A solver stopped by its limit returns a point far from the relaxation, or none; and
            # a rough point without duals proves no bound.
            _, program = self._program_of(shape, i, finite, "_sure")
            answer = self._solved(program, i, c, upper)
        if answer is None:
            return None
        if warm:
            self._starts[i] = answer.start
        bound = float(c @ answer.x)
        if answer.dual is not None:
            bound = bound_of(polytope, c, answer.dual, upper)
        return polytope, answer.x, bound + constant

    @staticmethod
    def _solved(program: Any, i: int, *given: Any) -> Any:
        try:
            return program.solve(*given)
        except ValueError as error:
            raise ValueError(f"example {i}: {error}") from error

    def _label(self, shape: Any, i: int, solved: Any) -> tuple[np.ndarray, float]:
        # A labeling near the optimal point, and the bound.
        if solved is None:
            return np.zeros(len(shape.graph_of(i)[0]), dtype=np.int32), -np.inf
        polytope, x, bound = solved
        return polytope.round(polytope.marginals(x)[0]), bound

    def decode(self, shape: Any, i: int, unary: np.ndarray, pair: np.ndarray) -> Any:
        """Return a rounded solution of the relaxation.

        Parameters
        ----------
        shape, i, unary, pair
            See the class.

        Returns
        -------
        label : ndarray of int32 of shape (n,)
            Local search may improve it.
        bound : float
            Upper bound of all scores; -inf if all labelings are forbidden.
        """
        return self._label(shape, i, self._ask(shape, i, unary, pair))

    def best(self, shape: Any, i: int, unary: np.ndarray, pair: np.ndarray) -> np.ndarray:
        """Return the best labeling, by an integer program of HiGHS.

        Parameters
        ----------
        shape, i, unary, pair
            See the class.

        Returns
        -------
        ndarray of int32 of shape (n,)
        """
        return self._label(shape, i, self._ask(shape, i, unary, pair, backend="_integer"))[0]

    def relax(self, shape: Any, i: int, unary: np.ndarray, pair: np.ndarray) -> Any:
        """Return the optimal point of the relaxation.

        Parameters
        ----------
        shape, i, unary, pair
            See the class.

        Returns
        -------
        (nodes, pairs, bound) or None
            Marginals of nodes and of edges, and an upper bound of the best score; None if every
            labeling is forbidden.
        """
        answer = self._ask(shape, i, unary, pair, warm=True)
        if answer is None:
            return None
        polytope, x, bound = answer
        return *polytope.marginals(x), bound
