"""Dual ascent over cached rivals: the certificate, against optima found by other means."""

import numpy as np
import pytest
from scipy import sparse

from structsolve import StructuredSVM
from structsolve.extreme.base import RECORD, ExtremeProblem
from structsolve.extreme.dual import ExtremeDual

SURROGATES = ("margin", "squared-hinge", "sparsemap", "crf", "max-min")
# Weights are float32; scores and bounds are computed from them.
ROUNDING = 2e-6


def rows(X):
    """CSR as the extreme layer has it."""
    X = sparse.csr_matrix(np.asarray(X, dtype=np.float32))
    X.indptr, X.indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    return X


def random_problem(rng, surrogate, **settings):
    """Small counts: ties, duplicates, empty rows, classes of one example, weights of zero."""
    n_classes = int(rng.integers(2, 8))
    n, d = int(rng.integers(n_classes, 16)), int(rng.integers(1, 7))
    X = rng.integers(-2, 3, (n, d)) * rng.integers(0, 2, (n, d))
    X = X * rng.choice([1.0, 0.5, 3.0])
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    if n > 2 and rng.integers(2):
        X[1] = X[0]
    weight = None if rng.integers(2) else rng.integers(0, 3, n).astype(float)
    if weight is not None and not weight.any():
        weight[0] = 1.0
    alpha = 10.0 ** rng.uniform(-1.5, 0.3)
    y = y.astype(np.int32)
    given = {"max_iter": 100, "tol": 1e-4, "seed": int(rng.integers(100)), **settings}
    return ExtremeProblem(rows(X), y, n_classes, alpha, surrogate, sample_weight=weight, **given)


def optimum(problem):
    """Bounds of the optimum by the package's own solver on dense scores."""
    model = StructuredSVM(
        "multiclass",
        surrogate=problem.surrogate,
        alpha=problem.alpha,
        fit_intercept=False,
        tol=1e-7,
        max_iter=2000,
    )
    model.fit(problem.X.toarray().astype(float), problem.y, sample_weight=problem.sample_weight)
    last = model.history_[-1]
    return last["dual"], last["primal"]


def check_records(history, low, high):
    for record in history:
        slack = ROUNDING * (1 + abs(record["primal"]))
        assert record["dual"] <= high + slack
        assert low <= record["primal"] + slack
        assert record["gap"] == record["primal"] - record["dual"]
        assert set(RECORD) <= set(record)


@pytest.mark.parametrize("surrogate", [s for s in SURROGATES if s != "squared-hinge"])
def test_bounds_hold_and_close(surrogate):
    rng = np.random.default_rng(7)
    for _ in range(60):
        problem = random_problem(rng, surrogate)
        low, high = optimum(problem)
        # All classes fit into the caches: even the softmax closes its gap.
        result = ExtremeDual(epsilon=0.0, inner=10).fit(problem)
        check_records(result.history, low, high)
        assert result.stop_reason == "tol"


@pytest.mark.parametrize("surrogate", [s for s in SURROGATES if s != "squared-hinge"])
def test_bounds_hold_with_few_rivals_and_inexact_scans(surrogate):
    rng = np.random.default_rng(8)
    for _ in range(40):
        problem = random_problem(rng, surrogate, max_iter=5)
        low, high = optimum(problem)
        epsilon = float(rng.choice([0.05, 0.5, 2.0]))
        solver = ExtremeDual(rivals_per_scan=1, max_rivals=2, epsilon=epsilon, inner=3)
        check_records(solver.fit(problem).history, low, high)


def test_squared_hinge_against_a_cone_solver():
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(9)
    for _ in range(12):
        problem = random_problem(rng, "squared-hinge", max_iter=400)
        X, n = problem.X.toarray().astype(float), len(problem.y)
        W = cp.Variable((X.shape[1], problem.n_classes))
        missing = 1 - np.eye(problem.n_classes)[problem.y]
        own = cp.reshape(cp.sum(cp.multiply(X @ W, 1 - missing), axis=1), (n, 1), order="C")
        worst = cp.max(missing + X @ W - own @ np.ones((1, problem.n_classes)), axis=1)
        loss = problem.shares @ cp.square(cp.pos(worst))
        best = cp.Problem(cp.Minimize(problem.alpha / 2 * cp.sum_squares(W) + loss))
        best.solve(solver="CLARABEL")
        result = ExtremeDual(epsilon=0.0, inner=10).fit(problem)
        check_records(result.history, best.value, best.value)
        assert result.stop_reason == "tol"
