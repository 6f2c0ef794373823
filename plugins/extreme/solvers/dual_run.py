"""A run of dual ascent: visits, scans for rivals, certificate, memory, checkpoints."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from structsolve.plugins.extreme.solvers._dual import DualAscent
from structsolve.plugins.extreme.solvers.base import ExtremeProblem, refuse_overflow
from structsolve.plugins.extreme.solvers.class_means import class_means
from structsolve.plugins.extreme.solvers.rival_checks import ask_rivals, check_rivals
from structsolve.plugins.extreme.solvers.rivals import CertifiedRivals, ExactRivals
from structsolve.plugins.extreme.weights.feature_lists import checked_rows
from structsolve.plugins.extreme.weights.postings import Postings
from structsolve.plugins.extreme.weights.weight_table import WeightTable
from structsolve.surrogates.fenchel_young import CRF, MaxMin, SparseMAP
from structsolve.surrogates.margin import Margin
from structsolve.utils.memory import refuse_too_large
from structsolve.utils.parallel import over_examples

if TYPE_CHECKING:
    from structsolve.plugins.extreme.solvers.dual import ExtremeDual

# Surrogates whose value depends on the strongest rival only.
HINGES = ("margin", "squared-hinge")
SURROGATES = {made.name: made for made in (Margin, CRF, SparseMAP, MaxMin)}
# Rivals of an example that a scan returns.
PER_SCAN = 16
# Examples per native call: few enough for a quick response to Ctrl-C.
EXAMPLES_PER_CALL = 2000
# Entries of the normalised class means up to this size are dropped in the first scan.
PRUNE = 0.02
FIRST_EPSILON = 0.1
# Shares of the last gap: the error of a scan, and the least change of a score in a visit.
EPSILON_OF_GAP, STILL_OF_GAP = 0.5, 0.05
# Bytes of a weight in a table, which grows by a third when four fifths full; of its copy in a
# scan; and of an example without its rivals.
TABLE_BYTES, SCAN_BYTES, EXAMPLE_BYTES = 14, 8, 100
# Answers of an index of rivals compared with a full scan, per pass.
CHECKED = 5


def surrogate_name(surrogate: Any) -> str:
    """Return the name of a surrogate that has a dual over rivals.

    Parameters
    ----------
    surrogate : str or object

    Returns
    -------
    str

    Raises
    ------
    ValueError
        For any other surrogate.
    """
    name = surrogate if isinstance(surrogate, str) else getattr(surrogate, "name", "")
    ours = isinstance(surrogate, str) or type(surrogate) is SURROGATES.get(name)
    if ours and (name == "squared-hinge" or name in SURROGATES):
        return str(name)
    known = ", ".join(repr(one) for one in ["squared-hinge", *SURROGATES])
    raise ValueError(f"surrogate is {surrogate!r}, expected one of {known} for solver 'dual'")


class DualRun:
    """State of one training.

    Parameters
    ----------
    solver : ExtremeDual
    problem : ExtremeProblem
    """

    def __init__(self, solver: ExtremeDual, problem: ExtremeProblem):
        self.solver, self.problem = solver, problem
        self.begun, self.spent = time.perf_counter(), 0.0
        self.history: list[dict[str, Any]] = []
        self.rows = checked_rows(problem.X, problem.X.shape[1])
        self.n, self.n_features = problem.X.shape
        self.shares = problem.shares
        others = problem.n_classes - 1
        self.k = min(PER_SCAN, others)
        # Other surrogates may depend on all classes: if an example keeps them all, scans return
        # them all, and the gap closes.
        if surrogate_name(problem.surrogate) not in HINGES and others <= solver.max_rivals:
            self.k = others
        self.most = self._affordable()
        self.index, epsilon = problem.rivals, solver.epsilon
        if type(self.index) is CertifiedRivals:  # subclasses may answer differently
            self.index, epsilon = None, self.index.epsilon
        elif type(self.index) is ExactRivals:
            self.index, epsilon = None, 0.0
        self.given = epsilon
        self.epsilon = FIRST_EPSILON if epsilon is None else float(epsilon)
        size = np.abs(self.rows[2][: self.rows[0][-1]]).sum(dtype=np.float64)
        self.length = float(size / self.n) or 1.0
        self._restart()

    def _restart(self) -> None:
        problem = self.problem
        self.table = WeightTable(self.n_features, problem.n_classes)
        self.ascent = DualAscent(
            self.table,
            *self.rows,
            problem.y,
            self.shares / problem.alpha,
            surrogate_name(problem.surrogate),
            self.most,
        )

    def _weights_kept(self, rivals: int) -> int:
        """Maximum number of weights if each example has so many rivals."""
        return int(self.rows[0][-1]) * (1 + rivals)

    def _affordable(self) -> int:
        """Rivals per example that fit in memory; raise ValueError if one does not."""
        most = min(self.solver.max_rivals, self.problem.n_classes - 1)

        def size(rivals: int) -> float:
            whole = self.n_features * self.problem.n_classes
            kept = min(self._weights_kept(rivals + self.k), whole)
            example = EXAMPLE_BYTES + 16 * rivals + 9 * self.k
            return float(kept * (TABLE_BYTES + SCAN_BYTES) + self.n * example)

        least = size(1)
        advice = "use fewer features or a higher cut of rare ones, or solver='one-vs-some'"
        limit = self.problem.max_memory
        refuse_too_large(least, "dual ascent with one rival for each example", advice, limit)
        if limit is None:
            return most
        return max(rivals for rivals in range(1, most + 1) if size(rivals) <= limit)

    def _begin(self) -> None:
        """Find the first rivals with class means as weights."""
        X, y, C = self.problem.X, self.problem.y, self.problem.n_classes
        means = Postings.from_matrix(class_means(X, self.problem.own, C, self.shares, PRUNE).T)
        ids, scores, _, _ = means.top(X, self.k, exclude=y, n_jobs=self.problem.n_jobs)
        # Classes without a feature of the example are not its rivals.
        self.ascent.renew(ids, (scores != 0).astype(np.int8))

    def step(self) -> dict[str, Any]:
        """Visit the examples, scan and certify.

        Returns
        -------
        dict
            The record.
        """
        problem, number, moved = self.problem, len(self.history), 0
        if not number:
            self._begin()
        last = self.history[-1]["gap"] if self.history else None
        still = max(STILL_OF_GAP * (FIRST_EPSILON if last is None else last), 1e-7)
        for inner in range(self.solver.inner):
            rng = np.random.default_rng([problem.seed, number, inner])
            # Consecutive examples of a class use the same weights, which stay in the cache.
            order = np.argsort(rng.permutation(problem.n_classes)[problem.y], kind="stable")
            for first in range(0, self.n, EXAMPLES_PER_CALL):
                end = min(first + EXAMPLES_PER_CALL, self.n)
                moved += self.ascent.run(order, first, end, still)
        scan = self.scan(number)
        ids, known, upper, wanted = self.certify(*scan[:3])
        entries, squares, kept = scan[3:]
        alpha = problem.alpha
        dual = alpha * (self.ascent.terms() - squares / 2)
        # Examples with share 0 have no term.
        upper[self.shares == 0] = known[self.shares == 0] = 0
        bound = alpha / 2 * squares + float(self.shares @ upper)
        primal = epsilon = gap = None
        if np.isfinite(bound):
            primal, epsilon, gap = bound, float(self.shares @ (upper - known)), bound - dual
        record = {
            "pass": number + 1,
            "primal": primal,
            "dual": dual,
            "gap": gap,
            "mean_epsilon": epsilon,
            "entries": entries,
            "seconds": self.spent + time.perf_counter() - self.begun,
            "moved": moved,
            "rivals": len(self.ascent.rivals) / self.n,
        }
        self.history.append(record)
        self.ascent.renew(ids, wanted)
        # Drop the weights of forgotten rivals before they take more memory than estimated.
        if kept > self._weights_kept(self.most):
            self.rebuild()
        if self.given is None and gap is not None:
            self.epsilon = min(FIRST_EPSILON, EPSILON_OF_GAP * max(gap, 0.0))
        return record

    def more(self) -> bool:
        """Return whether passes are left.

        Returns
        -------
        bool
        """
        return len(self.history) < self.problem.max_iter

    def scan(self, number: int) -> tuple[Any, ...]:
        """Find rivals at the current weights.

        Parameters
        ----------
        number : int
            Number of the pass.

        Returns
        -------
        ids, scores, slack : ndarray
            Arguments of :meth:`DualAscent.certify`.
        entries : int
            Weights read.
        squares : float
            Sum of the squares of all weights.
        kept : int
            Number of non-zero weights.
        """
        problem = self.problem
        cut = 0.0 if self.index is not None else self.epsilon / self.length
        *frozen, low, high, squares, kept = self.table.freeze(cut)
        refuse_overflow(number, squares)
        weights = self._postings(*frozen)
        if self.index is not None:
            self.index.start(weights, problem.seed, problem.n_jobs)
            self.index.batch(number)
            answer = ask_rivals(self.index, weights, problem.X, problem.y, self.k)
            chosen = np.random.default_rng([problem.seed, number]).permutation(self.n)[:CHECKED]
            check_rivals(
                self.index,
                weights,
                problem.X[chosen],
                problem.y[chosen],
                (answer[0][chosen], answer[1][chosen], answer[2][chosen]),
                chosen,
            )
            return (*answer, self.index.entries, squares, kept)
        ids, scores, _, entries = weights.top(
            problem.X, self.k, exclude=problem.y, n_jobs=problem.n_jobs
        )
        slack = problem.X.maximum(0) @ high.astype(float) + problem.X.minimum(0) @ low.astype(float)
        return ids, scores, slack, entries, squares, kept

    def certify(self, ids: Any, scores: Any, slack: Any) -> tuple[Any, ...]:
        """Bound H of all examples from the result of a scan.

        Parameters
        ----------
        ids, scores, slack : ndarray

        Returns
        -------
        ids : ndarray
            As given.
        known, upper : ndarray of shape (n,)
            H on these rivals, and an upper bound of H.
        wanted : ndarray of int8
            Marks the rivals that would gain a dual variable.
        """
        known, upper = np.empty(self.n), np.empty(self.n)
        wanted, of_best = np.empty(ids.shape, np.int8), self.index is not None

        def work(first: int, last: int, space: Any) -> None:
            given = first, last, ids, scores, slack, of_best
            self.ascent.certify(*given, known=known, upper=upper, wanted=wanted)

        over_examples(work, self.rows[0], self.problem.n_jobs, lambda: None)
        return ids, known, upper, wanted

    def rebuild(self) -> None:
        """Rebuild the table from the dual variables."""
        caches = self.ascent.starts, self.ascent.rivals, self.ascent.variables
        self._restart()
        self.ascent.keep(*caches)
        self.ascent.fill_table()

    def reason(self) -> str:
        """Return "tol" if the gap is small enough.

        Returns
        -------
        str
            "tol" or "max_iter".
        """
        last = self.history[-1] if self.history else {}
        done = last.get("gap") is not None and last["gap"] <= self.problem.tol * last["primal"]
        return "tol" if done else "max_iter"

    def _postings(self, indptr: Any, classes: Any, weights: Any) -> Postings:
        shape = self.n_features, self.problem.n_classes
        matrix = sparse.csr_matrix((weights, classes, indptr), shape)
        matrix.sort_indices()
        return Postings.from_matrix(matrix)

    def weights(self) -> Postings:
        """Return the weights, frozen.

        Returns
        -------
        Postings
        """
        return self._postings(*self.table.freeze(0.0)[:3])

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the content of a checkpoint.

        Returns
        -------
        meta, arrays : dict
        """
        indptr, classes, weights = self.table.freeze(0.0)[:3]
        meta = {
            "history": self.history,
            "seconds": self.spent + time.perf_counter() - self.begun,
            "epsilon": self.epsilon,
        }
        return meta, {
            "indptr": indptr,
            "classes": classes,
            "weights": weights,
            "starts": self.ascent.starts,
            "rivals": self.ascent.rivals,
            "variables": self.ascent.variables,
        }

    def resume(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Resume from the content of a checkpoint.

        Parameters
        ----------
        meta, arrays : dict
        """
        self.history, self.spent = list(meta["history"]), float(meta["seconds"])
        self.epsilon = float(meta["epsilon"])
        self.table.fill(arrays["indptr"], arrays["classes"], arrays["weights"])
        self.ascent.keep(*(arrays[name].copy() for name in ("starts", "rivals", "variables")))
