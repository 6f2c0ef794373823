"""Bundles of cutting planes: dense cuts of sums of examples, or sparse cuts of each example."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..examples.given import HUGE
from ..utils.arrays import aligned_zeros, check_finite, check_numbers
from ..utils.sparse import csr_of
from ._nslack import violated_cuts
from .passes import partial_sums, range_cuts, subgradient
from .weight_constraints import Rows


class Bundle:
    """Cuts ``R_g(w) >= b_j - <g_j, w>``, each of the surrogate of one group of examples.

    Parameters
    ----------
    caps : ndarray of shape (n_groups,)
        Weight of each group in the objective.

    Attributes
    ----------
    cuts : ndarray or scipy.sparse CSR of shape (m, dim)
        Rows ``g_j``.
    b : ndarray of shape (m,)
    group : ndarray of int of shape (m,)
    idle : ndarray of int of shape (m,)
        Number of consecutive programs in which each cut had no weight.
    gram : ndarray, or None
        Inner products of the constraints' rows and the cuts, if kept.
    step, inactive : float, int
        Defaults of the parameters of :class:`~structsolve.solvers.CuttingPlane`; a default step
        below 1 is the initial step.
    """

    cuts: Any
    gram: np.ndarray | None = None
    step, inactive = 1.0, 5

    def __init__(self, caps: np.ndarray):
        self.caps, self.b = caps, np.zeros(0)
        self.idle, self.group = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)

    def add_cuts(self, run: Any, w: np.ndarray) -> tuple[float, float, int]:
        """Take cuts at ``w``, in one pass over the examples.

        Parameters
        ----------
        run : CuttingPlaneRun
        w : ndarray of shape (dim,)

        Returns
        -------
        mean : float
            The mean surrogate at ``w``.
        rise : float
            Rise of the model at its current minimiser by the new cuts.
        calls : int
            Oracle calls.
        """
        raise NotImplementedError

    def _extend(self, b: np.ndarray, group: np.ndarray) -> None:
        self.b, self.group = np.append(self.b, b), np.append(self.group, group)
        self.idle = np.append(self.idle, np.zeros(len(b), dtype=np.int64))

    def keep(self, mask: np.ndarray) -> None:
        """Drop the cuts outside a mask.

        Parameters
        ----------
        mask : ndarray of bool of shape (m,)
        """
        self.b, self.group, self.idle = self.b[mask], self.group[mask], self.idle[mask]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the state for a checkpoint."""
        return {"b": self.b, "idle": self.idle, "group": self.group}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore the cuts of a checkpoint; refuse those of another problem."""
        m = arrays["b"].size
        for name, kind in (("b", "f"), ("idle", "i"), ("group", "i")):
            if arrays[name].shape != (m,) or arrays[name].dtype.kind != kind:
                raise ValueError(f"{name} of the cuts has shape {arrays[name].shape}")
        check_numbers(arrays["group"], len(self.caps), "groups of the cuts")
        check_finite({f"{name} of the cuts": array for name, array in arrays.items()})
        # Programs with such numbers take minutes to fail.
        for name, array in arrays.items():
            if array.dtype.kind == "f" and (largest := np.abs(array).max(initial=0)) > HUGE:
                raise ValueError(f"{name} of the cuts is up to {largest:.2g}, expected {HUGE:g}")
        self.b, self.idle, self.group = (arrays[k].copy() for k in ("b", "idle", "group"))


class OneSlackBundle(Bundle):
    """Cuts of the mean surrogate, dense, with the Gram matrix of their penalised columns.

    The mean may be split into groups of examples, each with its own cuts.

    Parameters
    ----------
    dim : int
    constraints : Rows
        Constraints on w.
    penalised : ndarray of shape (dim,)
        1 where w is in the norm, else 0.
    parts : list of tuple of int, optional
        First example of each group, and the one after its last; by default one group.
    """

    step, inactive = 0.2, 50

    def __init__(
        self,
        dim: int,
        constraints: Rows,
        penalised: np.ndarray,
        parts: list[tuple[int, int]] | None = None,
    ):
        super().__init__(np.ones(len(parts) if parts else 1))
        self.A, self.penalised, self.parts = constraints.A, penalised, parts
        self._memory: np.ndarray = aligned_zeros(0).reshape(0, dim)
        self.cuts: np.ndarray = self._memory
        rows = self.A.multiply(penalised).tocsr() if self.A.shape[0] else self.A
        self.gram: np.ndarray = (rows @ rows.T).toarray()
        self.sums: np.ndarray | None = None

    def add_cuts(self, run: Any, w: np.ndarray) -> tuple[float, float, int]:
        problem, n_jobs, values = run.given.problem, run.given.n_jobs, run.model().slacks(run.w)
        if self.parts is None:
            if self.sums is None:
                self.sums = partial_sums(problem)
            g, b, bounds, calls = subgradient(problem, w, n_jobs, self.sums)
            rise = b - float(g @ run.w) - values[0]
            self._append(g[None], np.array([b]), np.zeros(1, dtype=np.int64))
        else:
            if self.sums is None:
                self.sums = aligned_zeros(len(self.parts) * problem.dim).reshape(-1, problem.dim)
            cuts, constants, bounds, calls = range_cuts(problem, w, self.parts, self.sums, n_jobs)
            rises = constants - cuts @ run.w - values
            new = np.flatnonzero(rises > run.threshold / len(self.parts))
            rise = float(rises[new].sum())
            self._append(cuts[new], constants[new], new)
        return float(problem.weights @ problem.checked_bounds(w, bounds)), rise, calls

    def _append(self, g: np.ndarray, b: np.ndarray, group: np.ndarray) -> None:
        m, k, r, dim = len(self.b), len(b), self.A.shape[0], g.shape[1]
        if not k:
            return
        if m + k > len(self._memory):
            self._memory = aligned_zeros((2 * m + k + 15) * dim).reshape(-1, dim)
            self._memory[:m] = self.cuts
        self._memory[m : m + k] = g
        self.cuts = self._memory[: m + k]
        inside = (g * self.penalised).T
        gram = np.empty((r + m + k,) * 2)
        gram[:-k, :-k] = self.gram
        columns = np.vstack([-(self.A @ inside), self.cuts @ inside])
        gram[:, -k:] = columns
        gram[-k:] = columns.T
        self.gram = gram
        self._extend(b, group)

    def keep(self, mask: np.ndarray) -> None:
        m = int(mask.sum())
        self._memory[:m] = self.cuts[mask]
        self.cuts = self._memory[:m]
        both = np.concatenate([np.ones(self.A.shape[0], dtype=bool), mask])
        self.gram = self.gram[np.ix_(both, both)]
        super().keep(mask)

    def arrays(self) -> dict[str, np.ndarray]:
        return super().arrays() | {"G": self.cuts, "gram": self.gram}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        super().restore(arrays)
        G, gram = arrays["G"], arrays["gram"]
        m, dim = len(self.b), self.cuts.shape[1]
        side = m + self.A.shape[0]
        if G.shape != (m, dim) or G.dtype != np.float64:
            raise ValueError(f"the cuts have shape {G.shape}, expected ({m}, {dim})")
        if gram.shape != (side, side) or gram.dtype != np.float64:
            raise ValueError(f"the cuts' Gram matrix has shape {gram.shape}, expected {side} rows")
        self.gram = gram.copy()
        self._memory = self.cuts = aligned_zeros(G.size).reshape(G.shape)
        self.cuts[:] = G


class NSlackBundle(Bundle):
    """Cuts of each example, as sparse rows.

    Parameters
    ----------
    dim : int
    caps : ndarray of shape (n,)
        Weights of the examples.
    """

    def __init__(self, dim: int, caps: np.ndarray):
        import scipy.sparse as sp  # heavy

        super().__init__(caps)
        self.cuts = sp.csr_matrix((0, dim))

    def add_cuts(self, run: Any, w: np.ndarray) -> tuple[float, float, int]:
        import scipy.sparse as sp  # heavy

        problem, rise, values = run.given.problem, 0.0, run.model().slacks(run.w)
        bounds, rows, calls = violated_cuts(
            problem, w, run.w, values, run.threshold, run.given.n_jobs
        )
        if rows:
            group, b, columns, entries = (list(column) for column in zip(*rows))
            ends = np.concatenate([[0], np.cumsum([len(c) for c in columns])])
            new = sp.csr_matrix(
                (np.concatenate(entries), np.concatenate(columns), ends),
                shape=(len(rows), problem.dim),
            )
            rise = float(self.caps[group] @ (np.array(b) - new @ run.w - values[group]))
            self.cuts = sp.vstack([self.cuts, new], format="csr")
            self._extend(np.array(b), np.array(group, dtype=np.int64))
        return float(problem.weights @ problem.checked_bounds(w, bounds)), rise, calls

    def keep(self, mask: np.ndarray) -> None:
        self.cuts = self.cuts[mask]
        super().keep(mask)

    def arrays(self) -> dict[str, np.ndarray]:
        own = {name: getattr(self.cuts, name) for name in ("data", "indices", "indptr")}
        return super().arrays() | own

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        super().restore(arrays)
        data, indices, indptr = (arrays[k].copy() for k in ("data", "indices", "indptr"))
        shape = len(self.b), self.cuts.shape[1]
        self.cuts = csr_of(data, indices, indptr, shape, "the cuts")
