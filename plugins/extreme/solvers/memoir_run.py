"""One run of MEMOIR: draws batches, queries rivals, takes steps, and writes records."""

from __future__ import annotations

import math
import numbers
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from structsolve.plugins.extreme.solvers.base import ExtremeProblem, refuse_overflow
from structsolve.plugins.extreme.solvers.k_rivals import KRivals
from structsolve.plugins.extreme.solvers.rival_checks import ask_rivals, check_rivals
from structsolve.plugins.extreme.solvers.rivals import CertifiedRivals, ExactRivals, make_rivals
from structsolve.plugins.extreme.weights.feature_rows import FeatureRows
from structsolve.plugins.extreme.weights.postings import Postings
from structsolve.utils.parallel import effective_jobs
from structsolve.utils.params import check_choice, check_count

if TYPE_CHECKING:
    from structsolve.plugins.extreme.solvers.memoir import Memoir

#: Bytes of a weight in training, and of its frozen copy between passes.
BYTES_GROWING, BYTES_FROZEN = 12, 8
# Maximum first step, well below the float32 limit.
MOST_STEP = 1e30
# Rows per pass whose rivals are compared with a full scan, to detect wrong bounds.
CHECKED = 10
# Rows for the estimate of the primal.
PRIMAL_ROWS = 1000
# What a checkpoint holds as it is.
KEPT = ("t", "history", "missed", "mass", "start_norm", "seconds")


class MemoirRun:
    """State of a training run: weights, iteration count and records.

    Parameters
    ----------
    solver : Memoir
        Its settings are checked here.
    problem : ExtremeProblem

    Attributes
    ----------
    t, T : int
        Iterations done, and to do.
    history : list of dict
    settings : dict of str to object
    """

    def __init__(self, solver: Memoir, problem: ExtremeProblem):
        self.solver, self.problem = solver, problem
        self.X, self.y = problem.X, np.ascontiguousarray(problem.y, np.int32)
        self.n, self.n_features = self.X.shape
        self.surrogate = KRivals(problem.surrogate)
        self.index = make_rivals("exact" if problem.rivals is None else problem.rivals)
        self._read_settings()
        self._refuse_too_large()
        self.n_jobs = effective_jobs(problem.n_jobs)
        given = problem.sample_weight  # equal ones draw the rows that none draw
        even = given is None or bool((given == given[:1]).all())
        self.cumulated = None if even else np.cumsum(problem.shares)
        order = np.random.default_rng([problem.seed, 0, 2]).permutation(self.n)
        self.sample = np.sort(order[:PRIMAL_ROWS])
        self.history: list[dict[str, Any]] = []
        self.t, self.missed, self.seconds = 0, 0.0, 0.0
        self.weights = self._grown(problem.start)
        self.start_norm = math.sqrt(self.weights.norm2())
        # The sum of iterates is mass * W - behind; each update changes few entries of both.
        self.behind = FeatureRows(self.n_features, problem.n_classes) if solver.averaging else None
        self.mass = 0.0
        self.answer: Postings | None = None

    def _read_settings(self) -> None:
        solver, problem = self.solver, self.problem
        alpha, n_classes = float(problem.alpha), int(problem.n_classes)
        check_choice("penalty", problem.penalty, ("l2", "l1"))
        check_choice("Memoir: steps", solver.steps, ("mean", "printed"))
        if not (math.isfinite(alpha) and alpha > 0):
            raise ValueError(f"alpha is {problem.alpha!r}, expected a finite number above 0")
        self.l1 = problem.penalty == "l1"
        if solver.averaging and self.l1:
            raise ValueError("Memoir: averaging is True, expected False with penalty='l1'")
        check_count("Memoir: k", solver.k)
        self.k = min(int(solver.k), n_classes - 1)
        if solver.n_iter is not None:
            check_count("Memoir: n_iter", solver.n_iter)
        self.batch = _batch(solver.batch, n_classes, self.n)
        self.per_pass = -(-self.n // self.batch)
        self.T = problem.max_iter * self.per_pass if solver.n_iter is None else int(solver.n_iter)
        mean = solver.steps == "mean"
        default = (1 / alpha, 1.0) if mean and not self.l1 else (0.1, 0.02)
        if mean and self.l1:
            default = (0.1 * self.batch, 0.02)
        self.eta0 = _number("eta0", solver.eta0, default[0])
        self.eta_step = _number("eta_step", solver.eta_step, default[1])
        if not self.eta(1) <= MOST_STEP:
            raise ValueError(
                f"Memoir: the first step is {self.eta(1):g} (1 / alpha by default), expected at "
                f"most {MOST_STEP:g}, which float32 weights bear; take a larger alpha, or scale "
                "sample_weight"
            )
        if not self.l1 and alpha * self.eta(1) >= 1:
            raise ValueError(
                f"Memoir: alpha * eta0 / (1 + eta_step) is {alpha * self.eta(1):g}, expected less "
                "than 1: a first step this large turns all weights round"
            )
        self.radius = math.inf
        if solver.ball and not self.l1:
            at_zero = self.surrogate.evaluate(np.zeros((1, self.k + 1)))[0][0]
            margin = self.surrogate.name == "margin"
            self.radius = math.sqrt((1 if margin else 2 * at_zero) / alpha)
        bounded = solver.averaging and mean and self.surrogate.name == "margin"
        self.in_theory = bounded and math.isclose(self.eta_step, alpha * self.eta0)
        self.settings = {
            "batch": self.batch,
            "n_iter": self.T,
            "eta0": self.eta0,
            "eta_step": self.eta_step,
            "rivals": repr(self.index),
        }

    def _refuse_too_large(self) -> None:
        limit = self.problem.max_memory
        if limit is None:
            return
        # Weights of the rows' own classes, and of their rivals.
        entries = self.X.nnz
        rivals = self.k * self.T * self.batch * entries / max(1, self.n)
        read = np.unique(self.X.indices).size
        weights = min(entries + rivals, float(read) * self.problem.n_classes)
        each = (BYTES_GROWING + BYTES_FROZEN) * (2 if self.solver.averaging else 1)
        index = self.index.memory(self.n_features, self.problem.n_classes)
        size = weights * each + 16 * self.n_features + index
        if size > limit:
            raise ValueError(
                f"training by Memoir may take {size / 1e6:.4g} MB ({weights:.3g} weights), more "
                f"than max_memory = {limit / 1e6:.4g} MB; take fewer iterations, penalty='l1', or "
                "leave out rare features"
            )

    def eta(self, t: int) -> float:
        """Return the step of an iteration.

        Parameters
        ----------
        t : int
            From 1.

        Returns
        -------
        float
        """
        return self.eta0 / (1 + self.eta_step * t)

    def _grown(self, start: Postings | None) -> FeatureRows:
        if start is None:
            return FeatureRows(self.n_features, self.problem.n_classes)
        return FeatureRows.from_postings(start)

    def _draw(self, t: int) -> np.ndarray:
        rng = np.random.default_rng([self.problem.seed, t, 0])
        if self.cumulated is None:
            return rng.integers(0, self.n, self.batch)
        places = rng.random(self.batch) * self.cumulated[-1]
        return np.minimum(np.searchsorted(self.cumulated, places, side="right"), self.n - 1)

    def step(self) -> dict[str, Any]:
        """Draw about n examples, take steps, and compute the objective.

        Returns
        -------
        dict of str to object
            The record, which is also in the history.
        """
        begun = time.perf_counter()
        self.index.start(self.weights, self.problem.seed, self.n_jobs)
        last, steps, before = min(self.T, self.t + self.per_pass), 0, self.missed
        drawn = (last - self.t) * self.batch
        for t in range(self.t + 1, last + 1):
            steps += self._iterate(t, check=t == last)
        entries, self.t = self.index.entries, last
        # Apply lazy updates in every run, so that a resumed run gives the same result.
        self.weights = FeatureRows.from_postings(self.weights.freeze())
        if self.behind is not None:
            self.behind = FeatureRows.from_postings(self.behind.freeze())
        self.answer = self._frozen()
        primal, norm = self._primal(self.answer)
        missed = (self.missed - before) / drawn
        record = {
            "pass": len(self.history) + 1,
            "primal": primal,
            "dual": None,
            "gap": None,
            "mean_epsilon": missed if math.isfinite(missed) else None,
            "entries": entries,
            "iterations": self.t,
            "active": steps / drawn,
            "norm": norm,
            "primal_rows": len(self.sample),
            "expected_gap": self._expected_gap(),
        }
        self.seconds += time.perf_counter() - begun
        record["seconds"] = self.seconds
        self.history.append(record)
        return record

    def more(self) -> bool:
        """Return whether iterations are left.

        Returns
        -------
        bool
        """
        return self.t < self.T

    def reason(self) -> str:
        """Return "tol" if the last pass closed the expected gap, else "max_iter".

        Returns
        -------
        str
        """
        last = self.history[-1] if self.history else {}
        gap = last.get("expected_gap")
        done = gap is not None and gap <= self.problem.tol * last["primal"]
        return "tol" if done else "max_iter"

    def _iterate(self, t: int, check: bool) -> int:
        """Take step t; return how many examples of its batch are within the margin."""
        alpha, eta, W, problem = float(self.problem.alpha), self.eta(t), self.weights, self.problem
        rows = self._draw(t)
        X, y = rows_of(self.X, rows), self.y[rows]
        if not self.l1:
            W.shrink(1 - alpha * eta)
            self.mass = self.mass / (1 - alpha * eta) + 1
        self.index.batch(t)
        answer = ask_rivals(self.index, W, X, y, self.k, examples=rows)
        if check:
            some = slice(0, CHECKED)
            few = (answer[0][some], answer[1][some], answer[2][some])
            check_rivals(self.index, W, X[some], y[some], few, rows[some])
        ids, scores, bounds = answer
        self.missed += float(bounds.sum())
        _, steps = self.surrogate.evaluate(np.hstack([W.scores(X, y[:, None]), scores]))
        classes = np.hstack([y[:, None], ids])
        which, place = np.nonzero(steps)
        factors = steps[which, place] * (eta / self.batch if self._mean else eta)
        which = which.astype(np.int64)
        W.add_rows(X, which, classes[which, place], factors)
        if self.behind is not None:
            self.behind.add_rows(X, which, classes[which, place], factors * self.mass)
        changed = classes[which, place]
        if self.l1:
            changed = classes[classes >= 0]
        changed, norm = np.unique(changed), math.sqrt(W.norm2())
        refuse_overflow(len(self.history), norm)
        if self.l1:
            cut = problem.n_classes / len(changed) * alpha * eta
            W.soft_threshold(changed, cut / 2 if self._mean else cut)
        elif norm > self.radius:
            W.shrink(self.radius / norm)
            self.mass *= norm / self.radius
        self.index.changed(changed)
        return len(np.unique(which))

    def _frozen(self) -> Postings:
        """Return the weights, or the mean of all iterates."""
        weights = self.weights.freeze()
        if self.behind is None or self.t == 0:
            return weights
        whole = (self.mass / self.t) * weights.to_matrix().astype(np.float64)
        mean = whole - self.behind.freeze().to_matrix().astype(np.float64) / self.t
        return Postings.from_matrix(mean.astype(np.float32))

    @property
    def _mean(self) -> bool:
        return self.solver.steps == "mean"

    def _primal(self, weights: Postings) -> tuple[float, float]:
        """Return the objective on the sample, with the rivals' bounds added, and the norm."""
        rows = self.sample
        X, y = rows_of(self.X, rows), self.y[rows]
        index = self.index
        index.start(weights, self.problem.seed, self.n_jobs)
        index.batch(0)
        ids, scores, bounds = ask_rivals(index, weights, X, y, self.k, examples=rows)
        unknown = np.flatnonzero(~np.isfinite(bounds))
        if len(unknown):
            best = weights.top(X[unknown], self.k, exclude=y[unknown], n_jobs=self.n_jobs)
            scores[unknown], bounds[unknown] = best[1], 0
        own = weights.scores(X, y[:, None])
        most = scores + bounds[:, None]
        if type(index) not in (ExactRivals, CertifiedRivals):
            # Other indexes bound only the best rival; the others may score as high.
            told = np.setdiff1d(np.arange(len(rows)), unknown)
            most[told] = most[told, :1]
        values, _ = self.surrogate.evaluate(np.hstack([own, most]))
        shares = self.problem.shares[rows]
        size = (
            np.abs(weights.weights).sum() if self.l1 else (weights.weights.astype(float) ** 2).sum()
        )
        mean = float(values @ shares / shares.sum()) if shares.sum() > 0 else 0.0
        return mean + float(self.problem.alpha) / 2 * float(size), math.sqrt(
            float((weights.weights.astype(float) ** 2).sum())
        )

    def _expected_gap(self) -> float | None:
        if not self.in_theory or not math.isfinite(self.missed):
            return None
        alpha, t = float(self.problem.alpha), self.t
        first = self.start_norm * (1 - alpha * self.eta(1))
        square = self.X.multiply(self.X).sum(1).max()
        etas = float(np.sum(self.eta0 / (1 + self.eta_step * np.arange(1, t + 1))))
        begin = (first + 1 / math.sqrt(alpha)) ** 2 * (1 + 1 / self.eta_step) / 2 + first**2 / 2
        return (alpha * begin + float(square) * etas) / t + self.missed / (t * self.batch)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the content of a checkpoint.

        Returns
        -------
        meta, arrays : dict
        """
        meta = {name: getattr(self, name) for name in KEPT}
        arrays = {}
        for name, rows in (("weights", self.weights), ("behind", self.behind)):
            if rows is not None:
                frozen = rows.freeze()
                arrays[f"{name}_indptr"] = frozen.indptr
                arrays[f"{name}_classes"] = frozen.classes
                arrays[f"{name}_values"] = frozen.weights
        return meta, arrays

    def resume(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Resume from the result of :meth:`state`.

        Parameters
        ----------
        meta, arrays : dict
        """
        for name in KEPT:
            setattr(self, name, meta[name])

        def rows(name: str) -> FeatureRows:
            indptr, classes, values = (
                arrays[f"{name}_{part}"] for part in ("indptr", "classes", "values")
            )
            postings = Postings(indptr, classes, values, self.problem.n_classes)
            return FeatureRows.from_postings(postings)

        self.weights = rows("weights")
        if self.behind is not None:
            self.behind = rows("behind")
        self.answer = self._frozen()

    def result(self) -> Postings:
        """Return the weights of the last record, or the current weights before the first one.

        Returns
        -------
        Postings
        """
        return self.weights.freeze() if self.answer is None else self.answer


def rows_of(X: sparse.csr_matrix, rows: np.ndarray) -> sparse.csr_matrix:
    """Return some rows, without SciPy's conversion of all indices.

    Parameters
    ----------
    X : csr_matrix of float32
    rows : ndarray of int

    Returns
    -------
    csr_matrix of float32 of shape (len(rows), n_features)
    """
    first = X.indptr[rows]
    sizes = X.indptr[rows + 1] - first
    indptr = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(sizes, out=indptr[1:])
    place = np.repeat(first - indptr[:-1], sizes) + np.arange(indptr[-1])
    return sparse.csr_matrix(
        (X.data[place], X.indices[place], indptr), (len(rows), X.shape[1]), copy=False
    )


def _batch(batch: Any, n_classes: int, n: int) -> int:
    if isinstance(batch, str) and batch == "auto":
        return max(1, min(n, int(100.0 * math.sqrt(n_classes))))
    if isinstance(batch, numbers.Integral) and not isinstance(batch, bool):
        if int(batch) >= 1:
            return int(batch)
    elif isinstance(batch, float) and math.isfinite(batch) and batch > 0:
        return max(1, int(batch * math.sqrt(n_classes)))
    raise ValueError(
        f"Memoir: batch is {batch!r}, expected 'auto', an integer of at least 1 (examples), or a "
        "float above 0 (times the root of the number of classes)"
    )


def _number(name: str, value: Any, default: float) -> float:
    if isinstance(value, str) and value == "auto":
        return default
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    least = 0 if name == "eta_step" else 5e-324
    if not number or not math.isfinite(value) or value < least:
        bound = "of at least 0" if name == "eta_step" else "above 0"
        raise ValueError(f"Memoir: {name} is {value!r}, expected 'auto' or a finite number {bound}")
    return float(value)
