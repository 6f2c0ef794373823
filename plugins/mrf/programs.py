"""Linear (and integer) programs over the local polytope of a graph, by HiGHS and by cvxpy."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

# What simplex solvers leave of 0, 1/2 and 1.
NEAR = 1e-7
# Programs of so many graphs are kept per thread; where there are more, the oldest is forgotten.
KEPT = 64


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
            self.high = np.concatenate([np.zeros(2 * m), np.ones(m)])
            self.low = np.full(3 * m, -np.inf)
        else:
            # sum_s mu_v(s) = 1;  sum_t mu_e(s, t) - mu_u(s) = 0;  sum_s mu_e(s, t) - mu_v(t) = 0.
            U = int(self.unary_at[-1])
            node_of = np.repeat(np.arange(self.n), self.states)
            edge_of = np.repeat(np.arange(self.m), shapes.prod(axis=1))
            within = np.arange(int(self.pair_at[-1])) - self.pair_at[:-1][edge_of]
            s, t = np.divmod(within, shapes[edge_of, 1] if self.m else 1)
            first = self.n + np.concatenate([[0], np.cumsum(shapes.sum(axis=1))])
            row_s = first[edge_of] + s
            row_t = first[edge_of] + (shapes[edge_of, 0] if self.m else 0) + t
            pair = U + np.arange(int(self.pair_at[-1]))
            # Each (edge, end, state) row has one node variable.
            end_of = np.repeat(self.ends.ravel(), shapes.ravel())
            at = np.arange(len(end_of)) - np.repeat(
                np.cumsum(shapes.ravel()) - shapes.ravel(), shapes.ravel()
            )
            rows = np.concatenate([node_of, row_s, row_t, self.n + np.arange(len(end_of))])
            columns = np.concatenate([np.arange(U), pair, pair, self.unary_at[end_of] + at])
            values = np.concatenate([np.ones(U + 2 * len(pair)), -np.ones(len(end_of))])
            self.size = U + len(pair)
            shape = (self.n + len(end_of), self.size)
            self.low = self.high = np.concatenate([np.ones(self.n), np.zeros(len(end_of))])
        self.A = sparse.csr_matrix((values, (rows, columns)), shape=shape)

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

    def bound(self, c: np.ndarray, dual: np.ndarray) -> float:
        """Return an upper bound of ``c x`` from row duals, whatever their quality.

        ``c x = y A x + (c - y A) x``, with ``x`` in [0, 1] and rows within their bounds.
        """
        y = np.where(np.isinf(self.low), np.maximum(dual, 0), dual)
        rest = np.maximum(c - self.A.T @ y, 0)
        return float(y @ self.high + rest.sum())

    def round(self, nodes: np.ndarray) -> np.ndarray:
        """Return the likeliest state of every node, of equal ones the first."""
        label = np.zeros(self.n, dtype=np.int32)
        for v in range(self.n):
            label[v] = nodes[self.unary_at[v] : self.unary_at[v + 1]].argmax()
        return label


class _Program:
    """What HiGHS and cvxpy share: one program per graph and thread, forbidden states, answers."""

    def __init__(self) -> None:
        self._local = threading.local()

    def _solver(self, shape: Any, i: int, finite: bool) -> Any:
        states, ends = shape.graph_of(i)
        key = (not finite, states.tobytes(), ends.tobytes())
        kept = self._local.__dict__.setdefault("programs", {})
        if key not in kept:
            if len(kept) >= KEPT:
                kept.pop(next(iter(kept)))
            kept[key] = self.build(LocalPolytope(states, ends, by_parts=not finite))
        return kept[key]

    def build(self, polytope: LocalPolytope) -> Any:
        """Return a solver of programs over ``polytope``."""
        raise NotImplementedError

    def _ask(self, shape: Any, i: int, unary: Any, pair: Any, warm: bool, side: Any = None) -> Any:
        finite = bool(np.isfinite(unary).all() and np.isfinite(pair).all())
        solver = self._solver(shape, i, finite)
        polytope = solver.polytope
        c, constant = polytope.costs(unary, pair)
        barred = None
        if not finite:
            barred = np.isneginf(c)
            c = np.where(barred, 0.0, c)
        if side is not None:
            cost_unary, cost_pair, cone = side
            d, d_constant = polytope.costs(cost_unary, cost_pair)
            found = solver.constrained(c, constant + cone.h0, d, d_constant + cone.g0, cone, barred)
        else:
            found = solver.solve(c, barred, warm)
        return polytope, constant, found

    def decode(self, shape: Any, i: int, unary: np.ndarray, pair: np.ndarray) -> Any:
        """Return a labeling, to be improved by local search, and an upper bound."""
        polytope, constant, found = self._ask(shape, i, unary, pair, warm=False)
        if found is None:
            return np.zeros(polytope.n, dtype=np.int32), -np.inf
        x, bound = found
        return polytope.round(polytope.marginals(x)[0]), bound + constant

    def relax(self, shape: Any, i: int, unary: np.ndarray, pair: np.ndarray) -> Any:
        """Return node and edge marginals of the relaxation, None where nothing is possible."""
        polytope, _, found = self._ask(shape, i, unary, pair, warm=True)
        return None if found is None else polytope.marginals(found[0])

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
        side = (cost_unary, cost_pair, cone)
        polytope, _, found = self._ask(shape, i, unary, pair, warm=False, side=side)
        return None if found is None else polytope.marginals(found[0])


class HighsProgram(_Program):
    """The relaxation by HiGHS, and the best labeling as an integer program.

    One model per graph and thread is kept, of which only costs change.  ``relax`` starts from the
    last basis; of several optima it may return another one then.  ``decode`` always starts anew, so
    that its labeling depends on nothing but the scores.
    """

    def __init__(self) -> None:
        super().__init__()
        self._integer = _IntegerProgram()

    def build(self, polytope: LocalPolytope) -> Any:
        return _Highs(polytope, integer=False)

    def best(self, shape: Any, i: int, unary: np.ndarray, pair: np.ndarray) -> np.ndarray:
        """Return the best labeling."""
        return self._integer.decode(shape, i, unary, pair)[0]


class _IntegerProgram(_Program):
    """The same with variables 0 and 1."""

    def build(self, polytope: LocalPolytope) -> Any:
        return _Highs(polytope, integer=True)


class _Highs:
    """One HiGHS model."""

    def __init__(self, polytope: LocalPolytope, integer: bool):
        import highspy

        self.polytope, self.integer = polytope, integer
        self.kinds = highspy
        self.highs = highs = highspy.Highs()
        options: dict[str, Any] = {"output_flag": False, "threads": 1}
        if integer:
            options |= {"mip_rel_gap": 0.0, "mip_abs_gap": 0.0}
        else:
            options |= {"presolve": "off", "solver": "simplex"}
        for option, value in options.items():
            highs.setOptionValue(option, value)
        A, lp = polytope.A, highspy.HighsLp()
        lp.num_col_, lp.num_row_ = polytope.size, A.shape[0]
        lp.col_cost_ = np.zeros(polytope.size)
        lp.col_lower_, lp.col_upper_ = np.zeros(polytope.size), np.ones(polytope.size)
        lp.row_lower_, lp.row_upper_ = polytope.low, polytope.high
        lp.sense_ = highspy.ObjSense.kMaximize
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = A.indptr, A.indices
        lp.a_matrix_.value_ = A.data
        if integer:
            lp.integrality_ = [highspy.HighsVarType.kInteger] * polytope.size
        highs.passModel(lp)
        self.columns = np.arange(polytope.size, dtype=np.int32)
        self.barred = False

    def _prepare(self, c: np.ndarray, barred: np.ndarray | None, warm: bool) -> None:
        size = self.polytope.size
        if barred is not None or self.barred:
            top = np.ones(size) if barred is None else np.where(barred, 0.0, 1.0)
            self.highs.changeColsBounds(size, self.columns, np.zeros(size), top)
            self.barred = barred is not None
        self.highs.changeColsCost(size, self.columns, c)
        if not warm:
            self.highs.clearSolver()

    def _run(self) -> np.ndarray | None:
        status = self.kinds.HighsModelStatus
        self.highs.run()
        found = self.highs.getModelStatus()
        if found in (status.kInfeasible, status.kUnboundedOrInfeasible):
            return None
        if found != status.kOptimal:
            # A basis that lost its way: once more from the start.
            self.highs.clearSolver()
            self.highs.run()
            found = self.highs.getModelStatus()
            if found in (status.kInfeasible, status.kUnboundedOrInfeasible):
                return None
            if found != status.kOptimal:
                raise ValueError(
                    f"HiGHS gave up on a graph of {self.polytope.n} nodes: {found}; scale the "
                    "scores"
                )
        return np.array(self.highs.getSolution().col_value)

    def solve(self, c: np.ndarray, barred: Any, warm: bool) -> tuple[np.ndarray, float] | None:
        self._prepare(c, barred, warm and not self.integer)
        x = self._run()
        if x is None:
            return None
        if self.integer:
            x = np.round(x)
            return x, float(c @ x)
        dual = np.array(self.highs.getSolution().row_dual)
        return x, self.polytope.bound(
            np.where(barred, -np.inf, c) if barred is not None else c, dual
        )

    def constrained(
        self, c: np.ndarray, h0: float, d: np.ndarray, g0: float, cone: Any, barred: Any
    ) -> tuple[np.ndarray, float] | None:
        rows = cone_rows(c, h0, d, g0, cone)
        self._prepare(c + cone.lam * d, barred, False)
        n_rows = self.polytope.A.shape[0]
        for row, least in rows:
            used = np.flatnonzero(row).astype(np.int32)
            self.highs.addRow(least, self.kinds.kHighsInf, len(used), used, row[used])
        try:
            x = self._run()
        finally:
            self.highs.deleteRows(len(rows), np.arange(n_rows, n_rows + len(rows), dtype=np.int32))
        return None if x is None else (x, np.nan)


def cone_rows(
    c: np.ndarray, h0: float, d: np.ndarray, g0: float, cone: Any
) -> list[tuple[np.ndarray, float]]:
    """Return the closed sides of a cone as rows ``a x >= b`` of coefficients of moderate size."""
    rows = []
    for factor, sign in ((cone.beta, 1.0), (cone.alpha, -1.0)):
        # sign (g - factor h) >= 0; for an infinite alpha h >= 0 alone.
        scale = max(1.0, abs(factor))
        a, b = sign / scale, -sign * (1.0 if np.isinf(factor) else factor / scale)
        rows.append((a * d + b * c, -(a * g0 + b * h0)))
    return rows


def check_solver(name: str, argument: str = "oracle") -> None:
    """Raise ValueError unless cvxpy has an installed solver of this name."""
    import cvxpy

    installed = cvxpy.installed_solvers()
    if name not in installed:
        raise ValueError(
            f"{argument} is 'cvxpy:{name}', but cvxpy finds no such solver; installed: {installed}"
        )


class CvxpyProgram(_Program):
    """The relaxation by a solver that cvxpy knows; a problem per graph and thread, compiled once.

    Parameters
    ----------
    solver : str
        As in ``cvxpy.installed_solvers()``.
    """

    def __init__(self, solver: str):
        super().__init__()
        self.solver = solver

    def build(self, polytope: LocalPolytope) -> Any:
        return _Cvxpy(polytope, self.solver)


class _Cvxpy:
    """One parametrised problem."""

    def __init__(self, polytope: LocalPolytope, solver: str):
        import cvxpy as cp

        self.polytope, self.solver = polytope, solver
        size = polytope.size
        self.x, self.cost, self.top = cp.Variable(size), cp.Parameter(size), cp.Parameter(size)
        self.sides, self.least = cp.Parameter((2, size)), cp.Parameter(2)
        Ax = polytope.A @ self.x
        equal = not np.isinf(polytope.low).any()
        self.rows = Ax == polytope.high if equal else Ax <= polytope.high
        box = [self.rows, self.x >= 0, self.x <= self.top]
        objective = cp.Maximize(self.cost @ self.x)
        self.plain = cp.Problem(objective, box)
        self.coned = cp.Problem(objective, [*box, self.sides @ self.x >= self.least])

    def _run(self, problem: Any, c: np.ndarray, barred: Any) -> np.ndarray | None:
        self.cost.value = c
        self.top.value = np.ones(len(c)) if barred is None else np.where(barred, 0.0, 1.0)
        problem.solve(solver=self.solver)
        if problem.status in ("infeasible", "infeasible_inaccurate"):
            return None
        if self.x.value is None:
            raise ValueError(
                f"{self.solver} gave up on a graph of {self.polytope.n} nodes: {problem.status}; "
                "scale the scores, or use another solver"
            )
        return np.array(self.x.value)

    def solve(self, c: np.ndarray, barred: Any, warm: bool) -> tuple[np.ndarray, float] | None:
        x = self._run(self.plain, c, barred)
        if x is None:
            return None
        bound = np.inf
        # cvxpy's sign of an equality's dual depends on the problem's sense: the better bound holds.
        given = np.where(barred, -np.inf, c) if barred is not None else c
        for sign in (1.0, -1.0):
            dual = sign * np.asarray(self.rows.dual_value)
            bound = min(bound, self.polytope.bound(given, dual))
        return x, bound

    def constrained(
        self, c: np.ndarray, h0: float, d: np.ndarray, g0: float, cone: Any, barred: Any
    ) -> tuple[np.ndarray, float] | None:
        rows = cone_rows(c, h0, d, g0, cone)
        self.sides.value = np.array([row for row, _ in rows])
        self.least.value = np.array([least for _, least in rows])
        x = self._run(self.coned, c + cone.lam * d, barred)
        return None if x is None else (x, np.nan)
