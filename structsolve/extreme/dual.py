"""Training with a certificate: coordinate ascent in the dual, over rivals that scans find."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..surrogates.fenchel_young import CRF, MaxMin, SparseMAP
from ..surrogates.margin import Margin
from ..utils.parallel import over_examples
from ._dual import DualAscent, Table
from .base import ExtremeProblem, ExtremeResult, ExtremeSolver
from .feature_lists import checked_rows
from .postings import Postings

if TYPE_CHECKING:
    from ..solvers.checkpoint import Checkpoint

SURROGATES = {made.name: made for made in (Margin, CRF, SparseMAP, MaxMin)}
# Examples per native call: few enough for Ctrl-C to be heard.
EXAMPLES_PER_CALL = 2000
# Class means lose weights below this share of their length: rivals are the same without.
SMALL_IN_MEANS = 0.02
# The first scan is of class means, whose scores are cosines.
FIRST_EPSILON = 0.1


class ExtremeDual(ExtremeSolver):
    """Coordinate ascent in the dual over cached rivals, with a certificate.

    Each example keeps a few rivals, with a dual variable each.  A pass visits the examples a few
    times, each visit solves the problem of one example's dual variables exactly, and then scans all
    classes for better rivals, exactly or within a bound epsilon.  The scan gives the certificate:

    * primal: ``alpha/2 ||W||^2 + sum_i s_i (H_i + epsilon_i)``, where H_i is the surrogate on the
      rivals that the scan found and epsilon_i bounds what the others can add;
    * dual: the value of the dual variables, a lower bound of the optimum whatever the scans missed.

    The objective of the weights returned is at most the gap above the optimum, up to the rounding
    of float32 weights (some 1e-6 of the objective).

    Parameters
    ----------
    rivals_per_scan : int, default=8
        Rivals of an example that a scan looks for.
    max_rivals : int, default=24
        Rivals that an example keeps.
    inner : int, default=5
        Visits of each example between two scans.
    epsilon : float, optional
        Bound of a scan's error, in units of scores; 0 scans exactly.  By default it follows the
        gap: scans become as accurate as they have to be.

    Notes
    -----
    Surrogates: "margin" (Crammer and Singer's), its square "squared-hinge"
    ``max(0, max_r 1 + w_r x - w_y x)^2``, "sparsemap", "max-min" (0-1 loss) and "crf".  All but
    the last have few rivals with a dual variable, so that their gap closes.  That of "crf" does not
    where there are many more classes than an example keeps: every class has a share of the softmax,
    and those that are not kept count in full in the primal bound (their number times the
    exponential of the best of them) and not at all in the dual.

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
        rivals_per_scan: int = 8,
        max_rivals: int = 24,
        inner: int = 5,
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
        """Train; see the base."""
        run = _Run(self, problem)
        reason = "max_iter"
        try:
            run.begin()
            while len(run.history) < problem.max_iter and reason == "max_iter":
                record = run.step()
                if record["gap"] is not None and record["gap"] <= problem.tol * record["primal"]:
                    reason = "tol"
                if after is not None and after(record):
                    reason = "callback"
        except KeyboardInterrupt:
            reason = "interrupted"
        return ExtremeResult(run.weights(), run.history, reason, {})


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
    if isinstance(surrogate, str):
        name = surrogate
    else:
        name = getattr(surrogate, "name", "")
        if name in SURROGATES and type(surrogate) is not SURROGATES[name]:
            name = ""
    if name == "squared-hinge" or name in SURROGATES:
        return name
    known = ", ".join(repr(one) for one in ["squared-hinge", *SURROGATES])
    raise ValueError(f"surrogate is {surrogate!r}; solver 'dual' knows {known}")


class _Run:
    def __init__(self, settings: ExtremeDual, problem: ExtremeProblem):
        self.settings, self.problem = settings, problem
        self.name = surrogate_name(problem.surrogate)
        self.history: list[dict[str, Any]] = []
        self.begun = time.perf_counter()
        self.X, self.n_classes = problem.X, int(problem.n_classes)
        self.n, self.n_features = problem.X.shape
        self.shares = problem.shares
        self.k = min(settings.rivals_per_scan, self.n_classes - 1)
        self.most = min(settings.max_rivals, self.n_classes - 1)

    def begin(self) -> None:
        problem, self.rows = self.problem, checked_rows(self.X, self.n_features)
        self.table = Table(self.n_features, self.n_classes)
        self.ascent = DualAscent(
            self.table,
            *self.rows,
            problem.y,
            self.shares / problem.alpha,
            self.name,
            self.most,
        )
        self.epsilon = FIRST_EPSILON if self.settings.epsilon is None else self.settings.epsilon
        ids, _, _, _ = self.scan(self.means(), FIRST_EPSILON)
        self.ascent.renew(ids, (ids >= 0).astype(np.int8))

    def means(self) -> Table:
        """Class means of length one, without small weights."""
        X, y = self.X, self.problem.y
        rows = np.arange(self.n + 1)
        one = sparse.csr_matrix((np.ones(self.n, np.float32), y, rows), (self.n, self.n_classes))
        means = (X.T @ one).tocsc()
        length = np.sqrt(np.asarray(means.multiply(means).sum(0)).ravel())
        scale = np.repeat(np.where(length > 0, length, 1), np.diff(means.indptr))
        means.data = (means.data / scale).astype(np.float32)
        means.data[np.abs(means.data) < SMALL_IN_MEANS] = 0
        means.eliminate_zeros()
        means = means.tocsr()
        table = Table(self.n_features, self.n_classes)
        table.fill(means.indptr.astype(np.int64), means.indices.astype(np.int32), means.data)
        table.measure()
        return table

    def scan(self, table: Table, epsilon: float) -> tuple[Any, Any, Any, int]:
        y = self.problem.y
        ids, scores = np.empty((self.n, self.k), np.int32), np.empty((self.n, self.k), np.float32)
        bounds = np.empty(self.n)

        def work(first: int, last: int, space: Any) -> int:
            return table.top(*self.rows, y, first, last, epsilon, ids, scores, bounds)

        read = over_examples(work, self.rows[0], self.problem.n_jobs, lambda: None)
        return ids, scores, bounds, sum(read)

    def step(self) -> dict[str, Any]:
        number, moved = len(self.history), 0
        for inner in range(self.settings.inner):
            order = np.random.default_rng([self.problem.seed, number, inner]).permutation(self.n)
            for first in range(0, self.n, EXAMPLES_PER_CALL):
                last = min(first + EXAMPLES_PER_CALL, self.n)
                moved += self.ascent.run(order, first, last)
        squares = self.table.measure()
        ids, scores, bounds, entries = self.scan(self.table, self.epsilon)
        known, upper = np.empty(self.n), np.empty(self.n)
        wanted = np.empty(ids.shape, np.int8)

        def work(first: int, last: int, space: Any) -> None:
            self.ascent.certify(first, last, ids, scores, bounds, known, upper, wanted)

        over_examples(work, self.rows[0], self.problem.n_jobs, lambda: None)
        alpha, mean_epsilon = self.problem.alpha, float(self.shares @ (upper - known))
        primal = alpha / 2 * squares + float(self.shares @ upper)
        dual = alpha * (self.ascent.terms() - squares / 2)
        record = {
            "pass": number + 1,
            "primal": primal,
            "dual": dual,
            "gap": primal - dual,
            "mean_epsilon": mean_epsilon,
            "entries": entries,
            "seconds": time.perf_counter() - self.begun,
            "moved": moved,
            "rivals": len(self.ascent.rivals) / self.n,
        }
        self.history.append(record)
        self.ascent.renew(ids, wanted)
        if self.settings.epsilon is None:
            self.epsilon = min(FIRST_EPSILON, 0.5 * record["gap"])
        return record

    def weights(self) -> Postings:
        """Return the weights, frozen."""
        indptr, indices, data = self.table.matrix()
        shape = self.n_features, self.n_classes
        return Postings.from_matrix(sparse.csr_matrix((data, indices, indptr), shape))
