"""Newton steps on the log-likelihood of multiclass rows, with few weights and enumerated labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from scipy.special import logsumexp, xlogy

from structsolve.plugins.multiclass.class_rows import (
    MOST_HALVINGS,
    ROUNDING,
    ClassRows,
    factor_system,
)
from structsolve.solvers.base import Solver
from structsolve.solvers.run import Run, Start, checked_weights

# Required decrease of a step, as a share of the decrease predicted by the slope.
SUFFICIENT = 1e-4
# Rounding dominates after MOST_IDLE passes that each leave the share IDLE of the gap.
MOST_IDLE, IDLE = 20, 0.999
# What a checkpoint holds as it is.
KEPT = ("best_primal", "best_dual", "spent", "idle")


class NewtonRun(Run):
    """One optimisation of ``"crf"`` by :class:`InteriorPoint`.

    Parameters
    ----------
    solver : InteriorPoint
    start : Start

    Attributes
    ----------
    other : str
        The solver to use where rounding dominates.
    least : float
        Rounding error of losses and scores, which limits the accuracy of objectives.
    """

    other = "lbfgs"
    least = 0.0
    #: Names of the arrays in a checkpoint besides the best weights.
    iterates: tuple[str, ...] = ("v",)

    def __init__(self, solver: Solver, start: Start):
        self.solver, self.given = solver, start
        self.classes = ClassRows(start.problem).turned()
        self.best_w = np.zeros(start.problem.dim) if start.w is None else np.array(start.w)
        self._begin()

    def _begin(self) -> None:
        """Start from w = 0."""
        self.v = np.zeros(self.classes.basis.shape[1])
        self.best_primal, self.best_dual, self.idle = np.inf, -np.inf, 0
        self.spent = self._keep_best([self.best_w])

    def _value(self, v: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective at v, and the class probabilities of every row."""
        scores = self.classes.scores(v)
        logs = logsumexp(scores, axis=1, keepdims=True)
        self.least = ROUNDING * max(1.0, float(np.abs(scores).max()))
        value = 0.5 * self.given.alpha * float(v @ v) + float((self.classes.u * logs).sum())
        return value, np.exp(scores - logs)

    def step(self) -> dict[str, Any]:
        """Take a Newton step, halved until the objective falls enough, and certify the result."""
        classes, alpha, v = self.classes, self.given.alpha, self.v
        value, q = self._value(v)
        slope = alpha * v + classes.gather(q)
        H = classes.matrix(q)
        H.flat[:: len(H) + 1] += alpha
        try:
            move = factor_system(H)(-slope)
        except (LinAlgError, ValueError):
            return self._record("rounding has spoilt the Newton system")
        promised, far = float(slope @ move), 1.0
        for _ in range(MOST_HALVINGS):
            if self._value(v + far * move)[0] <= value + SUFFICIENT * far * promised:
                self.v = v + far * move
                return self._record(None)
            far /= 2
        return self._record("steps have become as short as rounding errors")

    def _record(self, failed: str | None) -> dict[str, Any]:
        """Return the certified record of a pass, with the reason why further passes are useless."""
        before = self.best_primal - self.best_dual
        record = self.certify()
        record["oracle_calls"] += self.spent
        self.spent = 0
        self.idle = self.idle + 1 if record["gap"] >= IDLE * before else 0
        if failed is None and self.idle >= MOST_IDLE:
            failed = "steps change the objective by no more than rounding errors"
        if failed is None and record["primal"] <= self.least:
            failed = "the objective is as small as rounding errors of losses and scores"
        if failed is not None and record["gap"] > self.given.tol * abs(record["primal"]):
            record["failed"] = f"{failed}; scale the features, or use solver={self.other!r}"
        return record

    def _bounds(self, dual: float, candidates: list[np.ndarray]) -> dict[str, Any]:
        """Return the certified record of the best weights and dual objective so far."""
        self.best_dual = max(self.best_dual, dual)
        spent, before = 0, self.best_primal
        for v in candidates:  # the weights of the dual are rarely better than iterates that are
            if self.best_primal == before:
                spent += self._keep_best([self.classes.padded(v)])
        dual = self._near(self.best_dual, self.least)
        size = float(np.linalg.norm(candidates[-1]))
        off = ROUNDING * self.classes.size  # rounding error of the sums in the dual's weights
        allowed = off * (2 * size + off / self.given.alpha)
        if self.best_primal < dual <= self.best_primal + allowed:
            dual = max(self.best_primal - allowed, 0.0)
        return self._certified(dual, spent)

    def certify(self) -> dict[str, Any]:
        """Return primal, dual and gap of the current w and its probabilities, or of better ones."""
        classes, alpha = self.classes, self.given.alpha
        _, q = self._value(self.v)
        of_q = classes.gather(q) / -alpha
        entropy = -float((classes.u * xlogy(q, q)).sum())
        return self._bounds(max(0.0, entropy - 0.5 * alpha * float(of_q @ of_q)), [self.v, of_q])

    def weights(self) -> np.ndarray:
        """Return a copy of the best weights."""
        return self.best_w.copy()

    def memory(self) -> dict[str, int]:
        """Return the bytes held by the rows and weights."""
        return {"examples": self.classes.X.nbytes, "weights": 2 * self.best_w.nbytes}

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything a checkpoint needs; see :meth:`Run.state`."""
        meta = {name: getattr(self, name) for name in KEPT} | {"alpha": self.given.alpha}
        return meta, {name: getattr(self, name) for name in ("best_w", *self.iterates)}

    def restore(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint."""
        (best_w,) = checked_weights(self, arrays, ["best_w"])
        for name in self.iterates:
            here, given = getattr(self, name), arrays[name]
            if given.shape != here.shape or not np.isfinite(given).all():
                raise ValueError(
                    f"{name}: found the shape {given.shape}, expected finite numbers of the shape "
                    f"{here.shape}"
                )
        for name in KEPT:
            setattr(self, name, meta[name])
        for name in self.iterates:
            setattr(self, name, arrays[name].copy())
        self.best_w, self.given.alpha = best_w, meta["alpha"]

    def continue_at(self, alpha: float) -> None:
        """Restart with another alpha (a path over alpha), no worse than the best weights.

        Parameters
        ----------
        alpha : float
        """
        self.given.alpha = alpha
        self._begin()
