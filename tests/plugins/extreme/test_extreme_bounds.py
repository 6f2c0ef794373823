"""Certificates of many classes, against values that enumerate all subsets of classes in NumPy.

Hundreds of tiny problems with what real ones have somewhere: ties, repeated rows with other
classes, empty rows, classes of one row or none, examples of no weight, features of any scale, and
indexes of rivals that are exact, inexact within their bound, or know nothing.
"""

import itertools

import numpy as np
import pytest
from scipy import sparse

from structsolve.plugins.extreme.solvers import dual_run
from structsolve.plugins.extreme.solvers.base import ExtremeProblem
from structsolve.plugins.extreme.solvers.dual import ExtremeDual
from structsolve.plugins.extreme.solvers.dual_run import DualRun
from structsolve.plugins.extreme.solvers.memoir import Memoir
from structsolve.plugins.extreme.solvers.rivals import (
    CertifiedRivals,
    ExactRivals,
    RandomRivals,
    RivalIndex,
)

SURROGATES = ("margin", "squared-hinge", "crf", "max-min", "sparsemap")
# Weights and dual variables are float32; both are added up in another order here.
ROUNDING = 2e-6


def values(name, scores, y):
    """Return H of rows with true columns y, by all sets of columns."""
    rows = np.arange(len(y))
    z = scores - scores[rows, y][:, None]
    if name in ("margin", "squared-hinge"):
        others = np.where(np.arange(z.shape[1]) == y[:, None], -np.inf, z)
        return np.maximum(0, 1 + others.max(1)) ** (1 if name == "margin" else 2)
    if name == "crf":
        return np.logaddexp.reduce(z, axis=1)
    sets = np.array(list(itertools.product([0.0, 1.0], repeat=z.shape[1]))[1:])
    size, sums = sets.sum(1), z @ sets.T
    if name == "max-min":  # the adversary is uniform on a set
        return ((sums + size - 1) / size).max(1)
    # SparseMAP: (1 - |p|^2) / 2 + <z, p> with p = z - tau on a set, where that is no less than 0.
    tau = (sums - 1) / size
    least = np.where(sets[None] > 0, z[:, None], np.inf).min(2)
    whole = 0.5 + 0.5 * (z**2) @ sets.T - 0.5 * size * tau**2
    return np.where(least >= tau - 1e-12, whole, -np.inf).max(1)


def dual_term(name, m):
    """Return G of shares of the true class and rivals, which sum to one."""
    held = m[1:].sum()
    return {
        "margin": held,
        "squared-hinge": held - held**2 / 4,
        "crf": -sum(p * np.log(p) for p in m if p > 0),
        "max-min": 1 - m.max(),
        "sparsemap": (1 - m @ m) / 2,
    }[name]


def dual_value(problem, starts, rivals, variables):
    """Return the dual at given variables, entirely in double precision."""
    X, total = problem.X.toarray().astype(float), 0.0
    W = np.zeros((X.shape[1], problem.n_classes))
    for i, c in enumerate(problem.shares / problem.alpha):
        own = slice(starts[i], starts[i + 1])
        b = variables[own].astype(float)
        W[:, problem.y[i]] += b.sum() * X[i]
        np.subtract.at(W.T, rivals[own], b[:, None] * X[i])
        if c > 0:
            shares = np.concatenate([[1 - b.sum() / c], b / c])
            if problem.surrogate != "squared-hinge":
                assert shares[0] > -1e-5
                shares[0] = max(shares[0], 0)
            total += c * dual_term(problem.surrogate, shares)
    return problem.alpha * (total - (W**2).sum() / 2)


class Vague(RivalIndex):
    """Starts with the second best class, and reports how far it is behind."""

    name = "vague"

    def rivals(self, X, exclude, k, epsilon=None):
        C = self._weights.n_classes
        every = np.array([np.delete(np.arange(C), c) for c in exclude], np.int32)
        scores = self._weights.scores(X, every)
        order = np.argsort(-scores, axis=1, kind="stable")
        order = order[:, min(1, C - 1 - k) :][:, :k]
        ids, own = (np.take_along_axis(a, order, 1) for a in (every, scores))
        return ids, own, scores.max(1).astype(float) - own[:, 0]


def some_index(rng):
    made = ExactRivals(), CertifiedRivals(float(rng.choice([0.01, 0.3, 3]))), Vague()
    return (*made, RandomRivals(2))[rng.integers(4)]


def some_problem(rng, name, largest=50.0, **settings):
    C = int(rng.integers(2, 7))
    n, d = int(rng.integers(C, 14)), int(rng.integers(1, 6))
    X = rng.integers(-2, 3, (n, d)) * rng.integers(0, 2, (n, d))
    X = X * min(float(rng.choice([1, 0.5, 3, 0.01, 50])), largest)
    if rng.integers(3) == 0:
        X = X + rng.normal(size=X.shape) * (X != 0)
    y = rng.integers(0, C, n)
    if rng.integers(2):
        y[:C] = np.arange(C)
    if rng.integers(2):
        X[1] = X[0]
    weight = None
    if rng.integers(2):
        weight = rng.integers(0, 3, n) * float(rng.choice([1, 1e3]))
        weight[0] += weight.sum() == 0
    X = sparse.csr_matrix(X.astype(np.float32))
    X.indptr, X.indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    return ExtremeProblem(
        X, y.astype(np.int32), C, surrogate=name, sample_weight=weight, **settings
    )


def penalty(problem, W):
    size = (W**2).sum() if problem.penalty == "l2" else np.abs(W).sum()
    return problem.alpha / 2 * size


@pytest.mark.parametrize("name", SURROGATES)
def test_the_dual_is_below_and_the_primal_above_in_every_pass(name, monkeypatch):
    rng = np.random.default_rng(SURROGATES.index(name))
    inexact = 0
    for _ in range(40):
        index = None if rng.integers(3) == 0 else some_index(rng)
        alpha, passes = 10.0 ** rng.uniform(-6, 0.5), int(rng.choice([1, 3, 12]))
        problem = some_problem(rng, name, alpha=alpha, rivals=index, tol=1e-7)
        monkeypatch.setattr(dual_run, "PER_SCAN", int(rng.integers(1, 5)))
        solver = ExtremeDual(
            max_rivals=int(rng.integers(1, 6)),
            inner=int(rng.integers(1, 4)),
            epsilon=[None, 0.0, 0.5][rng.integers(3)],
        )
        X, told = problem.X.toarray().astype(float), []
        run = DualRun(solver, problem)
        certify = run.certify

        def certified(*scan, run=run, certify=certify, told=told):
            answer, caches = certify(*scan), run.ascent
            arrays = caches.starts, caches.rivals, caches.variables
            told[:] = answer[1].copy(), answer[2].copy(), [a.copy() for a in arrays]
            return answer

        run.certify = certified
        least, most = np.inf, -np.inf
        for _ in range(passes):
            record = run.step()
            known, upper, arrays = told
            W = run.weights().to_matrix().toarray().astype(float)
            H = values(name, X @ W, problem.y)
            objective = penalty(problem, W) + problem.shares @ H
            slack = ROUNDING * (1 + abs(objective))
            assert record["dual"] == pytest.approx(dual_value(problem, *arrays), abs=slack)
            # Check each example, not only the mean.
            some = problem.shares > 0
            assert (known <= H + ROUNDING * (1 + H))[some].all()
            assert (upper + ROUNDING * (1 + H) >= H)[some].all()
            if record["gap"] is None:
                assert isinstance(index, RandomRivals)
            else:
                assert objective <= record["primal"] + slack
                assert record["primal"] - record["mean_epsilon"] <= objective + slack
                assert record["gap"] >= -slack
                inexact += record["mean_epsilon"] > 1e-3
            least, most = min(least, objective), max(most, record["dual"])
            assert most <= least + slack  # of any two passes
            if run.reason() == "tol":
                break
    assert inexact > 3  # otherwise these cases show little


@pytest.mark.parametrize("name", ["crf", "max-min", "sparsemap"])
def test_the_gap_closes_where_an_example_keeps_all_classes(name, monkeypatch):
    """A scan searches for fewer, but for these surrogates all classes may contribute to H."""
    rng = np.random.default_rng(0)
    n, C = 60, 20
    X = sparse.csr_matrix((rng.normal(size=(n, 8)) * (rng.random((n, 8)) < 0.5)).astype(np.float32))
    X.indptr, X.indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    y = rng.integers(0, C, n).astype(np.int32)
    problem = ExtremeProblem(X, y, C, 0.05, name, max_iter=40, tol=1e-5)
    monkeypatch.setattr(dual_run, "PER_SCAN", 4)
    result = ExtremeDual(inner=5).fit(problem)
    assert result.stop_reason == "tol"


def test_an_example_without_weight_does_not_spoil_the_certificate(recwarn):
    class Unsure(Vague):
        name = "unsure"

        def rivals(self, X, exclude, k, epsilon=None):
            ids, scores, bounds = super().rivals(X, exclude, k)
            bounds[exclude == 2] = np.inf
            return ids, scores, bounds

    rng = np.random.default_rng(1)
    problem = some_problem(rng, "margin", alpha=0.1, max_iter=3, rivals=Unsure())
    problem.y = np.arange(len(problem.y), dtype=np.int32) % 3
    problem.n_classes, problem.sample_weight = 3, (problem.y != 2).astype(float)
    for record in ExtremeDual().fit(problem).history:
        assert record["gap"] == record["primal"] - record["dual"]
    assert not recwarn.list


@pytest.mark.parametrize("name", SURROGATES)
def test_memoirs_primal_is_a_bound_with_any_index(name):
    """H of the class and its k best rivals; for hinges, of all classes."""
    rng = np.random.default_rng(SURROGATES.index(name))
    for _ in range(20):
        settings = {"alpha": 10.0 ** rng.uniform(-2, 0.3), "max_iter": int(rng.choice([1, 4]))}
        settings["penalty"] = "l2" if rng.integers(2) else "l1"
        problem = some_problem(rng, name, largest=0.5, rivals=some_index(rng), **settings)
        k = int(rng.integers(1, 4))
        solver = Memoir(
            k=k,
            batch=int(rng.integers(1, 9)),
            averaging=problem.penalty == "l2" and bool(rng.integers(2)),
        )
        result = solver.fit(problem)
        W = result.weights.to_matrix().toarray().astype(float)
        scores = problem.X.toarray().astype(float) @ W
        rows, y = np.arange(len(scores)), problem.y
        others = np.where(np.arange(problem.n_classes) == y[:, None], -np.inf, scores)
        best = -np.sort(-others, axis=1)[:, : min(k, problem.n_classes - 1)]
        few = np.hstack([scores[rows, y][:, None], best])
        H = values(name, few, np.zeros(len(y), int))
        if name in ("margin", "squared-hinge"):
            np.testing.assert_allclose(H, values(name, scores, y), atol=1e-9)
        objective = penalty(problem, W) + problem.shares @ H
        primal = result.history[-1]["primal"]
        assert objective <= primal + 1e-5 * (1 + abs(objective))
        if isinstance(problem.rivals, (ExactRivals, RandomRivals)):
            assert primal == pytest.approx(objective, rel=1e-5, abs=1e-5)
