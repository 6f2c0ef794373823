"""Dual ascent over cached rivals: the certificate against optima found by other means."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from structsolve import StructuredSVM
from structsolve.plugins.extreme.solvers import dual_run
from structsolve.plugins.extreme.solvers.base import RECORD, ExtremeProblem
from structsolve.plugins.extreme.solvers.dual import ExtremeDual
from structsolve.plugins.extreme.solvers.dual_run import DualRun
from structsolve.plugins.extreme.solvers.rivals import (
    CertifiedRivals,
    ExactRivals,
    RandomRivals,
    RivalIndex,
)
from structsolve.solvers.checkpoint import Checkpoint
from structsolve.surrogates import CRF, Margin, Slack

SURROGATES = ("margin", "squared-hinge", "sparsemap", "crf", "max-min")
# Weights are float32; scores and bounds are computed from them.
ROUNDING = 2e-6


def rows(X):
    """Return CSR in the form of the extreme layer."""
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
    """Bounds of the optimum by the package's own solver, on dense scores."""
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
    for _ in range(40):
        problem = random_problem(rng, surrogate)
        low, high = optimum(problem)
        # All classes fit into the caches, so even the softmax closes its gap.
        result = ExtremeDual(epsilon=0.0, inner=10).fit(problem)
        check_records(result.history, low, high)
        assert result.stop_reason == "tol"


@pytest.mark.parametrize("surrogate", [s for s in SURROGATES if s != "squared-hinge"])
def test_bounds_hold_with_few_rivals_and_inexact_scans(surrogate, monkeypatch):
    monkeypatch.setattr(dual_run, "PER_SCAN", 1)
    rng = np.random.default_rng(8)
    for _ in range(30):
        problem = random_problem(rng, surrogate, max_iter=5)
        low, high = optimum(problem)
        epsilon = float(rng.choice([0.05, 0.5, 2.0]))
        solver = ExtremeDual(max_rivals=2, epsilon=epsilon, inner=3)
        check_records(solver.fit(problem).history, low, high)


def test_squared_hinge_against_a_cone_solver():
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(9)
    for _ in range(8):
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


def words(n=120, n_classes=12, seed=3, surrogate="margin", **settings):
    """Return rows of unit length with a few of 40 features, some of them of the row's class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n).astype(np.int32)
    X = rng.random((n, 40)) * (rng.random((n, 40)) < 0.2)
    X[np.arange(n), 3 * y] += 1
    X = rows(X / np.linalg.norm(X, axis=1, keepdims=True))
    return ExtremeProblem(X, y, n_classes, 1 / (3 * n), surrogate, **{"tol": 1e-3, **settings})


def same(one, other):
    """Return whether two results are bit-identical, except for their times."""

    def told(result):
        return [{k: v for k, v in r.items() if k != "seconds"} for r in result.history]

    a, b = one.weights, other.weights
    return (
        told(one) == told(other)
        and np.array_equal(a.indptr, b.indptr)
        and np.array_equal(a.classes, b.classes)
        and np.array_equal(a.weights, b.weights)
    )


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_the_answer_is_the_same_for_any_number_of_threads_and_again(surrogate, monkeypatch):
    monkeypatch.setattr(dual_run, "PER_SCAN", 3)
    problem = words(surrogate=surrogate, max_iter=4)
    first = ExtremeDual().fit(problem)
    assert same(first, ExtremeDual().fit(problem))
    assert same(first, ExtremeDual().fit(replace(problem, n_jobs=3)))


def test_inexact_scans_read_less_and_their_gap_ends_near_the_mean_epsilon(monkeypatch):
    monkeypatch.setattr(dual_run, "PER_SCAN", 1)
    exact = ExtremeDual(epsilon=0.0, max_rivals=11).fit(words(max_iter=30))
    coarse = ExtremeDual(epsilon=0.4, max_rivals=11).fit(words(max_iter=30))
    assert exact.stop_reason == "tol"
    assert all(r["mean_epsilon"] < 1e-6 for r in exact.history)  # scores are float32
    assert coarse.stop_reason == "max_iter"
    last, entries = coarse.history[-1], [r["entries"] for r in coarse.history]
    assert max(entries) < exact.history[-1]["entries"]
    assert last["mean_epsilon"] > 0 and last["gap"] <= 1.5 * last["mean_epsilon"]
    best = exact.history[-1]
    for record in coarse.history:
        assert record["dual"] <= best["primal"] and best["dual"] <= record["primal"]


def test_epsilon_follows_the_gap():
    result = ExtremeDual().fit(words(max_iter=50))
    assert result.stop_reason == "tol"
    assert 0 < result.settings["epsilon"] < 0.01


def test_the_primal_bound_is_above_the_objective_of_the_weights(monkeypatch):
    monkeypatch.setattr(dual_run, "PER_SCAN", 2)
    for surrogate in SURROGATES:
        problem = words(surrogate=surrogate, max_iter=3)
        result = ExtremeDual(max_rivals=3, epsilon=0.3).fit(problem)
        W = result.weights.to_matrix().toarray().astype(float)
        scores = problem.X.toarray().astype(float) @ W
        own = scores[np.arange(len(scores)), problem.y]
        z = scores - own[:, None]
        wrong = np.arange(problem.n_classes) != problem.y[:, None]
        hinge = np.maximum((z + wrong).max(1), 0)
        down = -np.sort(-z, axis=1)
        counts = np.arange(1, problem.n_classes + 1)
        values = {
            "margin": hinge,
            "squared-hinge": hinge**2,
            "crf": np.log(np.exp(z).sum(1)),
            "max-min": ((down.cumsum(1) + counts - 1) / counts).max(1),
            "sparsemap": np.zeros(len(z)),
        }
        for i, row in enumerate(z):  # the support is a run of the best
            tau = ((down[i].cumsum() - 1) / counts)[down[i] * counts > down[i].cumsum() - 1][-1]
            p = np.maximum(row - tau, 0)
            values["sparsemap"][i] = p @ row + 0.5 - p @ p / 2
        objective = problem.alpha / 2 * (W**2).sum() + problem.shares @ values[surrogate]
        last = result.history[-1]
        assert last["primal"] >= objective - 1e-5
        assert last["primal"] - last["mean_epsilon"] <= objective + 1e-5


@pytest.mark.parametrize("surrogate", ["margin", "crf"])
def test_a_checkpoint_is_gone_on_from_bit_for_bit(tmp_path, surrogate):
    whole = ExtremeDual().fit(words(surrogate=surrogate, max_iter=6, tol=0.0))
    path = tmp_path / "run"
    ExtremeDual().fit(words(surrogate=surrogate, max_iter=3, tol=0.0), None, Checkpoint(path, "a"))
    given = words(surrogate=surrogate, max_iter=6, tol=0.0)
    assert same(whole, ExtremeDual().fit(given, None, Checkpoint(path, "a")))


def test_a_checkpoint_of_other_examples_is_refused(tmp_path):
    path = tmp_path / "run"
    ExtremeDual().fit(words(max_iter=1), None, Checkpoint(path, "a"))
    with pytest.raises(ValueError, match="checkpoint .*not those of these examples"):
        ExtremeDual().fit(words(n=60, max_iter=1), None, Checkpoint(path, "a"))


def test_a_callback_ends_training_and_an_interrupt_keeps_the_model():
    result = ExtremeDual().fit(words(), after=lambda record: record["pass"] == 2)
    assert result.stop_reason == "callback" and len(result.history) == 2

    def interrupt(record):
        raise KeyboardInterrupt

    result = ExtremeDual().fit(words(), after=interrupt)
    assert result.stop_reason == "interrupted" and len(result.history) == 1
    assert result.weights.nnz > 0


def test_indexes_of_rivals():
    best = ExtremeDual(epsilon=0.0).fit(words(max_iter=30)).history[-1]
    given = words(rivals=ExactRivals(), max_iter=30)
    assert ExtremeDual().fit(given).history[-1]["mean_epsilon"] < 1e-6
    given = words(rivals=CertifiedRivals(0.3), max_iter=5)
    assert ExtremeDual().fit(given).settings["epsilon"] == 0.3
    # Nothing is known about rivals that random ones miss: a dual, but no primal bound.
    result = ExtremeDual().fit(words(rivals=RandomRivals(2), max_iter=5))
    for record in result.history:
        assert record["primal"] is record["gap"] is record["mean_epsilon"] is None
        assert record["dual"] <= best["primal"]


class Scan(RivalIndex):
    """The best rivals by their scores, with a given bound."""

    name = "scan"

    def __init__(self, bound=0.0, shift=0):
        self.bound, self.shift = bound, shift

    def rivals(self, X, exclude, k, epsilon=None):
        ids, scores, _, _ = self._weights.top(X, k + self.shift, exclude=exclude)
        ids, scores = ids[:, self.shift :].copy(), scores[:, self.shift :].copy()
        return ids, scores, np.full(len(ids), self.bound)


def test_an_index_of_ones_own_is_bounded_and_checked():
    best = ExtremeDual(epsilon=0.0).fit(words(max_iter=30)).history[-1]
    result = ExtremeDual().fit(words(rivals=Scan(), max_iter=30))
    assert result.stop_reason == "tol"
    result = ExtremeDual().fit(words(rivals=Scan(bound=0.2), max_iter=5))
    for record in result.history:
        assert record["dual"] <= best["primal"] and best["dual"] <= record["primal"]
        assert 0 < record["mean_epsilon"] <= 0.2 + 1e-6
    with pytest.raises(ValueError, match=r"Scan.*lies about its bound: example"):
        ExtremeDual().fit(words(rivals=Scan(shift=2)))


def test_memory_is_bounded_before_it_is_taken(monkeypatch):
    monkeypatch.setattr(dual_run, "PER_SCAN", 1)
    with pytest.raises(ValueError, match=r"dual ascent .* would take .* max_memory of 1e-06 GB"):
        ExtremeDual().fit(words(max_memory=1e3))
    some = DualRun(ExtremeDual(), words(max_memory=35_000)).most
    assert 1 <= some < DualRun(ExtremeDual(), words()).most


def test_a_table_made_anew_holds_the_same_weights():
    run = DualRun(ExtremeDual(), words())
    run.step()
    before = run.weights().to_matrix()
    run.rebuild()
    assert abs(before - run.weights().to_matrix()).max() < 1e-5


def test_surrogates_by_object_and_unseen_classes():
    one = ExtremeDual().fit(words(max_iter=3, surrogate=Margin()))
    assert same(one, ExtremeDual().fit(words(max_iter=3)))
    assert ExtremeDual().fit(words(max_iter=1, surrogate=CRF())).history[0]["primal"] > 0
    given = words(max_iter=20)
    more = ExtremeDual().fit(replace(given, n_classes=given.n_classes + 3))
    assert more.stop_reason == "tol" and more.weights.n_classes == given.n_classes + 3


@pytest.mark.parametrize(
    ("solver", "settings", "message"),
    [
        ({"max_rivals": 257}, {}, "max_rivals is 257, expected an integer from 1 to 256"),
        ({"inner": 0}, {}, "inner is 0, expected an integer of at least 1"),
        ({"inner": 1.5}, {}, "inner is 1.5, expected an integer"),
        ({"epsilon": -1.0}, {}, "epsilon is -1.0, expected a finite number of at least 0"),
        ({}, {"surrogate": Slack()}, "expected one of 'squared-hinge', 'margin'"),
        ({}, {"surrogate": "slack"}, "surrogate is 'slack'"),
        ({}, {"penalty": "l1"}, "penalty is 'l1', expected 'l2'"),
        ({}, {"alpha": 0.0}, "alpha is 0.0, expected a positive number"),
        ({}, {"start": "weights"}, "cannot go on from weights"),
    ],
)
def test_bad_arguments_are_refused_by_name(solver, settings, message):
    with pytest.raises(ValueError, match=message):
        ExtremeDual(**solver).fit(replace(words(), **settings))


def test_an_example_may_have_more_rivals_than_a_scan_finds():
    """Each class is a rival like any other: all have a dual variable at the optimum."""
    n = 50
    X = rows(np.hstack([np.eye(n), np.ones((n, 1))]))
    problem = ExtremeProblem(X, np.arange(n, dtype=np.int32), n, 1 / n, max_iter=30, tol=1e-3)
    result = ExtremeDual().fit(problem)
    assert result.stop_reason == "tol" and result.history[-1]["rivals"] > 40
    few = ExtremeDual(max_rivals=16).fit(problem).history[-1]
    assert few["moved"] == 0 and few["gap"] > 0.1 * few["primal"]
