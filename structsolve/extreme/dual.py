"""Training with a certificate: coordinate ascent in the dual, over rivals that scans find."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..surrogates.fenchel_young import CRF, MaxMin, SparseMAP
from ..surrogates.margin import Margin
from ..utils.memory import refuse_too_large
from ..utils.parallel import over_examples
from ..utils.params import check_types
from ._dual import MOST_RIVALS, DualAscent, Table
from .base import ExtremeProblem, ExtremeResult, ExtremeSolver
from .feature_lists import checked_rows
from .one_vs_some import class_means
from .postings import Postings
from .rival_checks import ask_rivals, check_rivals
from .rivals import CertifiedRivals, ExactRivals

if TYPE_CHECKING:
    from ..solvers.checkpoint import Checkpoint

SURROGATES = {made.name: made for made in (Margin, CRF, SparseMAP, MaxMin)}
# Examples per native call: few enough for Ctrl-C to be heard.
EXAMPLES_PER_CALL = 2000
# Entries of class means, which have length one, that are left out of the first scan.
PRUNE = 0.02
FIRST_EPSILON = 0.1
# Of the last gap: what a scan may miss; and what a visit must change in a score to be one.
EPSILON_OF_GAP, STILL_OF_GAP = 0.5, 0.05
# Bytes of a weight in a table that grows by a third where it is four fifths full; of its copy in a
# scan; and, for each example, of what is kept beside its rivals.
TABLE_BYTES, SCAN_BYTES, EXAMPLE_BYTES = 14, 8, 100
# Of alpha, the share of the example of most weight: all of its dual variables together.
LEAST_SHARE, MOST_SHARE = 1e-30, 1e14
# Answers of an index of rivals that are compared with a full scan, in each pass.
CHECKED = 5


class ExtremeDual(ExtremeSolver):
    """Coordinate ascent in the dual over cached rivals, with a certificate.

    Each example keeps a few rivals, with a dual variable each.  A pass visits the examples a few
    times, each visit solves the problem of one example's dual variables exactly, and then scans all
    classes for better rivals, exactly or within a bound epsilon.  The scan gives the certificate:

    * primal: ``alpha/2 ||W||^2 + sum_i s_i (H_i + epsilon_i)``, where H_i is the surrogate on the
      rivals that the scan found and epsilon_i bounds what the others can add;
    * dual: the value of the dual variables, a lower bound of the optimum whatever the scans missed.

    Scans leave out the weights of at most a size, which cost most entries and change scores least:
    epsilon_i adds up, over the features of the example, the most that these can add.  Another index
    of rivals tells its own bound; where it tells none, primal and gap are None.

    The objective of the weights returned is at most the gap above the optimum, up to the rounding
    of float32 weights (some 1e-6 of the objective).

    Parameters
    ----------
    rivals_per_scan : int, default=16
        Rivals of an example that a scan looks for.
    max_rivals : int, default=32
        Rivals that an example keeps.
    inner : int, default=3
        Visits of each example between two scans.
    epsilon : float, optional
        What a scan may miss in a score, in the mean over the examples; 0 scans exactly.  By default
        it follows the gap: scans become as accurate as they have to be.  The problem's
        ``rivals="exact"`` and ``"certified:EPSILON"`` go before it.

    Notes
    -----
    Surrogates: "margin" (Crammer and Singer's), its square "squared-hinge"
    ``max(0, max_r 1 + w_r x - w_y x)^2``, "sparsemap", "max-min" (0-1 loss) and "crf".  All but
    the last have few rivals with a dual variable, so that their gap closes.  That of "crf" does not
    where there are many more classes than an example keeps: every class has a share of the softmax,
    and those that are not kept count in full in the primal bound (their number times the
    exponential of the best of them) and not at all in the dual.

    There is no intercept; a constant column of X is one, with a penalty.  ``penalty="l1"`` and
    ``start`` are refused: weights alone tell no dual variables to go on from.  The scans run in
    threads, the visits do not.

    Block steps: Crammer and Singer (2001), Keerthi et al. (2008); epsilon-subgradients: MEMOIR.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from structsolve.extreme.base import ExtremeProblem
    >>> from structsolve.extreme.dual import ExtremeDual
    >>> X = sparse.csr_matrix(np.eye(3, dtype=np.float32))
    >>> y = np.arange(3, dtype=np.int32)
    >>> result = ExtremeDual().fit(ExtremeProblem(X, y, n_classes=3, alpha=0.1))
    >>> result.stop_reason, bool(result.history[-1]["gap"] < 0.01)
    ('tol', True)
    """

    name = "dual"

    def __init__(
        self,
        rivals_per_scan: int = 16,
        max_rivals: int = 32,
        inner: int = 3,
        epsilon: float | None = None,
    ):
        self.rivals_per_scan = rivals_per_scan
        self.max_rivals = max_rivals
        self.inner = inner
        self.epsilon = epsilon

    def fit(
        self,
        problem: ExtremeProblem,
        after: Callable[[dict[str, Any]], bool] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> ExtremeResult:
        """Train; see :meth:`ExtremeSolver.fit`."""
        self._check(problem)
        run = Run(self, problem)
        held = None if checkpoint is None else checkpoint.read()
        reason = "max_iter"
        try:
            if checkpoint is not None and held is not None:
                with checkpoint.blame():
                    run.resume(*held)
                reason = run.reason()
            else:
                run.begin()
            while len(run.history) < problem.max_iter and reason == "max_iter":
                record = run.step()
                reason = run.reason()
                if after is not None and after(record):
                    reason = "callback"
                elif checkpoint is not None and checkpoint.due():
                    checkpoint.write(run.state)
        except KeyboardInterrupt:
            reason = "interrupted"
        if checkpoint is not None:
            if reason != "interrupted":
                checkpoint.write(run.state)
            checkpoint.close()
        settings = {"rivals_per_scan": run.k, "max_rivals": run.most, "epsilon": run.epsilon}
        return ExtremeResult(run.weights(), run.history, reason, settings)

    def _check(self, problem: ExtremeProblem) -> None:
        """Raise ValueError where an argument, or the problem, is none of this solver's."""
        check_types(self, "ExtremeDual: ")
        for name, most in (("rivals_per_scan", None), ("max_rivals", MOST_RIVALS), ("inner", None)):
            value = getattr(self, name)
            if value < 1 or (most is not None and value > most):
                bounds = "at least 1" if most is None else f"1 to {most}"
                raise ValueError(f"ExtremeDual: {name} is {value!r}, expected {bounds}")
        if self.epsilon is not None and not 0 <= self.epsilon < np.inf:
            raise ValueError(
                f"ExtremeDual: epsilon is {self.epsilon!r}, expected a finite number of at least 0"
            )
        surrogate_name(problem.surrogate)
        if problem.penalty != "l2":
            raise ValueError(
                f"penalty is {problem.penalty!r}, expected 'l2': solver 'dual' knows the dual of "
                "no other; use solver='memoir'"
            )
        if problem.start is not None:
            raise ValueError(
                "start: solver 'dual' cannot go on from weights, which tell no dual variables; use "
                "a checkpoint, or solver='memoir'"
            )
        if not 0 < problem.alpha < np.inf:
            raise ValueError(f"alpha is {problem.alpha!r}, expected a positive number")
        largest = float(problem.shares.max()) / problem.alpha
        if not LEAST_SHARE <= largest <= MOST_SHARE:
            raise ValueError(
                f"alpha is {problem.alpha!r}: an example has a share of {largest:g} times it, "
                f"expected {LEAST_SHARE:g} to {MOST_SHARE:g}, beyond which dual variables have no "
                "digits left; take another alpha, or scale sample_weight"
            )


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
        For any other.
    """
    name = surrogate if isinstance(surrogate, str) else getattr(surrogate, "name", "")
    ours = isinstance(surrogate, str) or type(surrogate) is SURROGATES.get(name)
    if ours and (name == "squared-hinge" or name in SURROGATES):
        return str(name)
    known = ", ".join(repr(one) for one in ["squared-hinge", *SURROGATES])
    raise ValueError(f"surrogate is {surrogate!r}, expected one of {known} for solver 'dual'")


class Run:
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
        self.k = min(solver.rivals_per_scan, problem.n_classes - 1)
        self.most = self._affordable()
        self.index, epsilon = problem.rivals, solver.epsilon
        if type(self.index) is CertifiedRivals:  # others may answer as they like
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
        self.table = Table(self.n_features, problem.n_classes)
        self.ascent = DualAscent(
            self.table,
            *self.rows,
            problem.y,
            self.shares / problem.alpha,
            surrogate_name(problem.surrogate),
            self.most,
        )

    def _weights_kept(self, rivals: int) -> int:
        """Weights at most, of examples with so many rivals."""
        return int(self.rows[0][-1]) * (1 + rivals)

    def _affordable(self) -> int:
        """Rivals that an example may keep; refuse what would take too much memory for one."""
        most = min(self.solver.max_rivals, self.problem.n_classes - 1)

        def size(rivals: int) -> float:
            whole = self.n_features * self.problem.n_classes
            kept = min(self._weights_kept(rivals + self.k), whole)
            example = EXAMPLE_BYTES + 16 * rivals + 9 * self.k
            return float(kept * (TABLE_BYTES + SCAN_BYTES) + self.n * example)

        least = size(1)
        advice = "use fewer features or a higher cut of rare ones, or solver='one-vs-some'"
        refuse_too_large(least, "dual ascent with one rival for each example", advice)
        limit = self.problem.max_memory
        if limit is None:
            return most
        if least > limit:
            raise ValueError(
                f"max_memory is {limit:.3g} bytes, but dual ascent would take up to {least:.3g} "
                f"with one rival for each example: {advice}"
            )
        return max(rivals for rivals in range(1, most + 1) if size(rivals) <= limit)

    def begin(self) -> None:
        """Find the first rivals, under class means."""
        X, y, C = self.problem.X, self.problem.y, self.problem.n_classes
        means = Postings.from_matrix(class_means(X, y, C, self.shares, PRUNE).T)
        ids, scores, _, _ = means.top(X, self.k, exclude=y, n_jobs=self.problem.n_jobs)
        # Classes that share nothing with the example are no rivals of it.
        self.ascent.renew(ids, (scores != 0).astype(np.int8))

    def step(self) -> dict[str, Any]:
        """Visit the examples, scan and certify.

        Returns
        -------
        dict
            The record.
        """
        problem, number, moved = self.problem, len(self.history), 0
        last = self.history[-1]["gap"] if self.history else None
        still = max(STILL_OF_GAP * (FIRST_EPSILON if last is None else last), 1e-7)
        for inner in range(self.solver.inner):
            rng = np.random.default_rng([problem.seed, number, inner])
            # Examples of a class share weights: one after the other, they find them in the cache.
            order = np.argsort(rng.permutation(problem.n_classes)[problem.y], kind="stable")
            for first in range(0, self.n, EXAMPLES_PER_CALL):
                end = min(first + EXAMPLES_PER_CALL, self.n)
                moved += self.ascent.run(order, first, end, still)
        scan = self.scan(number)
        ids, known, upper, wanted = self.certify(*scan[:3])
        entries, squares, kept = scan[3:]
        if not np.isfinite(squares):
            raise ValueError(
                f"training led to weights that are not finite in pass {number + 1}; scale the "
                "features to values around 1, or use a larger alpha"
            )
        alpha = problem.alpha
        dual = alpha * (self.ascent.terms() - squares / 2)
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
        # What forgotten rivals leave behind is dropped before it takes more than was estimated.
        if kept > self._weights_kept(self.most):
            self.rebuild()
        if self.given is None and gap is not None:
            self.epsilon = min(FIRST_EPSILON, EPSILON_OF_GAP * max(gap, 0.0))
        return record

    def scan(self, number: int) -> tuple[Any, ...]:
        """Look for rivals at the present weights.

        Parameters
        ----------
        number : int
            Of the pass.

        Returns
        -------
        ids, scores, slack : ndarray
            As :meth:`DualAscent.certify` takes them.
        entries : int
            Weights read.
        squares : float
            Their sum over all weights.
        kept : int
            Weights that are not zero.
        """
        problem = self.problem
        cut = 0.0 if self.index is not None else self.epsilon / self.length
        *frozen, low, high, squares, kept = self.table.freeze(cut)
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
        """Bound H of all examples by what a scan gave.

        Parameters
        ----------
        ids, scores, slack : ndarray

        Returns
        -------
        ids : ndarray
            As given.
        known, upper : ndarray of shape (n,)
            H on these rivals, and the most that it can be.
        wanted : ndarray of int8
            Which of the rivals would gain a dual variable.
        """
        known, upper = np.empty(self.n), np.empty(self.n)
        wanted, of_best = np.empty(ids.shape, np.int8), self.index is not None

        def work(first: int, last: int, space: Any) -> None:
            self.ascent.certify(first, last, ids, scores, slack, of_best, known, upper, wanted)

        over_examples(work, self.rows[0], self.problem.n_jobs, lambda: None)
        return ids, known, upper, wanted

    def rebuild(self) -> None:
        """Make the table anew from the dual variables."""
        caches = self.ascent.starts, self.ascent.rivals, self.ascent.variables
        self._restart()
        self.ascent.keep(*caches)
        self.ascent.fill_table()

    def reason(self) -> str:
        """Tell whether the gap is small enough.

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
        """Return what a checkpoint keeps.

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
        """Go on from what a checkpoint kept.

        Parameters
        ----------
        meta, arrays : dict
        """
        self.history, self.spent = list(meta["history"]), float(meta["seconds"])
        self.epsilon = float(meta["epsilon"])
        self.table.fill(arrays["indptr"], arrays["classes"], arrays["weights"])
        self.ascent.keep(*(arrays[name].copy() for name in ("starts", "rivals", "variables")))
