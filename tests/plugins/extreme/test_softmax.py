"""Sampled softmax regression: each step against dense ones, threads, checkpoints, bad input."""

import os
import threading

import numpy as np
import pytest
from reference import softmax_rows
from scipy import optimize, sparse

from structsolve import ExtremeSVM
from structsolve.plugins.extreme.solvers.base import ExtremeProblem
from structsolve.plugins.extreme.solvers.softmax import Run, SampledSoftmax
from structsolve.solvers.checkpoint import Checkpoint


def random_problem(rng, n=40, d=12, C=9, **more):
    X = sparse.random(n, d, 0.3, "csr", np.float32, rng)
    X.data[:] = rng.normal(size=X.nnz) * 0.5
    X[rng.integers(n)] *= 0  # a row without features
    X.eliminate_zeros()
    X.sort_indices()
    X.indptr = X.indptr.astype(np.int64)
    y = rng.integers(0, C, n).astype(np.int32)
    y[:3] = C - 1
    return ExtremeProblem(X, y, C, **{"alpha": 1e-3, "surrogate": "crf", **more})


@pytest.mark.parametrize("case", range(60))
def test_steps_are_those_of_dense_weights(case):
    rng = np.random.default_rng(case)
    # One row, or several, share a block, and up to 64 classes enter a feature's list together.
    C, n = int(rng.integers(2, 40)) if case % 5 else 200, 40 if case % 2 else 150
    weights = rng.random(n) + 0.1 if case % 3 == 0 else None
    problem = random_problem(rng, n, C=C, seed=case, sample_weight=weights, n_jobs=1 + case % 3)
    problem.alpha = [0.0, 1e-2][case % 2]
    solver = SampledSoftmax(
        head=int(rng.integers(1, 8) if case % 5 else rng.integers(60, 90)),
        block=int(rng.integers(1, 9) if case % 5 else rng.integers(40, 140)),
        whole=1 if case % 4 else 1000,
        dense_from=int(rng.choice([1, 9, 1000])),
        # With many classes the last digit of a sum of float32 decides which is rounded to what.
        rounding=float(rng.choice([0, 0.05, 0.2])) if case % 5 else 0.0,
        batch=int(rng.choice([1, 7, 16])),
        rate=1.0,
        last_rate=0.3,
        keep=0.0,
        passes=2,
    )
    result = solver.fit(problem)
    run = Run(solver, problem)
    dense = np.bincount(problem.X.indices, minlength=12) >= solver.dense_from
    orders = [np.random.default_rng([case, p]).permutation(n) for p in range(2)]
    W, losses = softmax_rows.train(
        problem.X,
        run.number_of[problem.y],
        (problem.shares * n).astype(np.float32),
        run.intercept.astype(np.float64),
        run.head,
        run.block,
        dense,
        solver.batch,
        np.float32(solver.rounding),
        case,
        orders,
        [1.0, 0.65, 0.3],
        problem.alpha,
    )
    wanted = W[:, run.number_of]
    assert np.allclose(result.weights.to_matrix().toarray(), wanted, atol=2e-5)
    assert np.allclose([r["sampled_loss"] for r in result.history], losses, atol=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_many_passes_reach_the_optimum(seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, alpha=0.05)
    solver = SampledSoftmax(passes=400, rate=0.5, last_rate=0.0, dense_from=1, keep=0, batch=4)
    X, C = np.asarray(problem.X.todense(), np.float64), problem.n_classes
    intercept = np.log((np.bincount(problem.y, minlength=C) + 0.5) / 40)

    def objective(w):
        scores = X @ w.reshape(-1, C) + intercept
        log_sum = np.logaddexp.reduce(scores, axis=1)
        part = np.exp(scores - log_sum[:, None])
        loss = (log_sum - scores[np.arange(40), problem.y]).mean()
        part[np.arange(40), problem.y] -= 1
        return loss + 0.025 * w @ w, (X.T @ part / 40).ravel() + 0.05 * w

    least = optimize.minimize(objective, np.zeros(12 * C), jac=True, tol=1e-9).fun
    W = solver.fit(problem).weights.to_matrix().toarray().astype(np.float64)
    assert least - 1e-7 <= objective(W.ravel())[0] <= least + 1e-3


@pytest.mark.parametrize("end", ["passes", "callback", "interrupt"])
@pytest.mark.parametrize("keep", [0, 0.1])
def test_the_last_primal_is_that_of_the_weights_returned(end, keep, monkeypatch):
    rng = np.random.default_rng(7)
    problem = random_problem(rng, n=1500, alpha=0.02, sample_weight=rng.random(1500))
    solver = SampledSoftmax(passes=3, whole=1, head=4, block=3, keep=keep, dense_from=10)

    def after(record):
        if end == "interrupt" and record["pass"] == 2:
            raise KeyboardInterrupt
        return end == "callback" and record["pass"] == 2

    monkeypatch.setattr("structsolve.plugins.extreme.solvers.softmax.SCORES", 1000)
    result = solver.fit(problem, after)
    last, W = result.history[-1], result.weights.to_matrix().toarray().astype(np.float64)
    rows = np.random.default_rng([problem.seed, 0, 2]).permutation(1500)[:1000]
    assert last["pass"] == (3 if end == "passes" else 2) and last["primal_rows"] == 1000
    scores = problem.X[rows] @ W + result.weights.intercept
    losses = np.logaddexp.reduce(scores, axis=1) - scores[np.arange(1000), problem.y[rows]]
    mean = np.average(losses, weights=problem.shares[rows])
    assert last["primal"] == pytest.approx(mean + 0.01 * np.sum(W**2), rel=1e-6)


def test_weights_by_class_are_those_by_number():
    for case in range(20):
        problem = random_problem(np.random.default_rng(case), n=200)
        run = Run(SampledSoftmax(whole=1, head=3, block=4, dense_from=[1, 90][case % 2]), problem)
        run.step()
        shape = problem.X.shape[1], len(run.class_of)
        for least in (0, 0.3):
            starts, numbers, values = run.weights.entries(least)
            by_number = sparse.csr_matrix((values, numbers, starts), shape).toarray()
            starts, classes, values = run.weights.entries(least, run.number_of)
            by_class = sparse.csr_matrix((values, classes, starts), shape).toarray()
            assert np.array_equal(by_class[:, : problem.n_classes], by_number[:, run.number_of])
    for order in (run.number_of[:-1], np.repeat(run.number_of[1:], 2), [-1], [shape[1]]):
        with pytest.raises(ValueError, match="order"):
            run.weights.entries(0.0, np.asarray(order, np.int32))
    with pytest.raises(ValueError, match="order"):
        run.weights.entries(-1.0, run.number_of)


def test_first_loss_is_that_of_the_intercept():
    problem = random_problem(np.random.default_rng(0))
    solver = SampledSoftmax(rate=0.0, last_rate=0.0, passes=1)
    prior = (np.bincount(problem.y, minlength=9) + 0.5) / 40
    wanted = -np.log(prior / prior.sum())[problem.y].mean()
    assert np.isclose(solver.fit(problem).history[0]["primal"], wanted, atol=1e-6)


@pytest.mark.parametrize("jobs", [2, 3, 8])
def test_threads_change_no_bit(jobs):
    def weights(n_jobs):
        problem = random_problem(np.random.default_rng(3), n=300, d=50, C=60, n_jobs=n_jobs)
        result = SampledSoftmax(whole=1, head=16, block=16, dense_from=80, keep=0).fit(problem)
        return result.weights.to_matrix().toarray().tobytes(), result.history[-1]["primal"]

    assert weights(jobs) == weights(1) == weights(1)


def test_a_thread_that_cannot_start_is_told(monkeypatch):
    started, start = [], threading.Thread.start

    def refuse(thread):
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    problem = random_problem(np.random.default_rng(4), n_jobs=4)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        SampledSoftmax().fit(problem)


def test_weights_that_shrink_much_are_settled():
    problem = random_problem(np.random.default_rng(5), alpha=0.3)
    solver = SampledSoftmax(passes=30, rate=1.0, last_rate=1.0, dense_from=10, keep=0)
    run = Run(solver, problem)
    scales = []
    for _ in range(30):
        run.step()
        scales.append(run.weights.scale)
    assert min(scales) < 1 and 1.0 in scales
    assert np.isfinite(run.postings().to_matrix().data).all()


@pytest.mark.parametrize("stop", [1, 2])
def test_checkpoints_resume_bit_for_bit(tmp_path, stop):
    solver = SampledSoftmax(passes=3, whole=1, head=4, block=3, dense_from=10, keep=0)

    def problem():
        return random_problem(np.random.default_rng(8), alpha=0.01)

    whole = solver.fit(problem())
    path = os.fspath(tmp_path / "run")

    def after(record):
        return record["pass"] == stop

    cut = solver.fit(problem(), after, Checkpoint(path, "a"))
    assert cut.stop_reason == "callback" and len(cut.history) == stop
    rest = solver.fit(problem(), None, Checkpoint(path, "a"))
    assert [r["pass"] for r in rest.history] == [1, 2, 3] and rest.stop_reason == "max_iter"
    both = [r.weights.to_matrix().toarray().tobytes() for r in (whole, rest)]
    assert both[0] == both[1]
    assert [r["primal"] for r in whole.history] == [r["primal"] for r in rest.history]


def test_an_interrupt_keeps_the_weights(monkeypatch):
    problem = random_problem(np.random.default_rng(1))
    step, passes = Run.step, []

    def interrupted(run):
        if passes:
            raise KeyboardInterrupt
        passes.append(1)
        return step(run)

    monkeypatch.setattr(Run, "step", interrupted)
    result = SampledSoftmax().fit(problem)
    assert result.stop_reason == "interrupted" and len(result.history) == 1
    assert result.weights.nnz > 0


def test_goes_on_from_weights():
    problem = random_problem(np.random.default_rng(2))
    solver = SampledSoftmax(keep=0, dense_from=10)
    first = solver.fit(problem)
    problem.start = first.weights
    again = solver.fit(problem)
    assert again.history[0]["primal"] < first.history[0]["primal"]


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"passes": 0}, "passes is 0"),
        ({"rate": -1.0}, "rate is -1.0"),
        ({"head": 0}, "head is 0"),
        ({"rounding": float("nan")}, "rounding is nan"),
        ({"batch": "many"}, "batch is 'many'"),
    ],
)
def test_bad_arguments(settings, words):
    with pytest.raises(ValueError, match=words):
        SampledSoftmax(**settings).fit(random_problem(np.random.default_rng(0)))


@pytest.mark.parametrize(
    "more, words",
    [
        ({"surrogate": "margin"}, "surrogate is 'margin', expected 'crf'"),
        ({"penalty": "l1"}, "penalty is 'l1'"),
        ({"alpha": -1.0}, "alpha is -1.0"),
        ({"max_memory": 100.0}, "weights of .* would take .* more than max_memory of 1e-07 GB"),
    ],
)
def test_bad_problems(more, words):
    with pytest.raises(ValueError, match=words):
        SampledSoftmax().fit(random_problem(np.random.default_rng(0), **more))


def test_stored_zeros_are_no_features():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (60, 8)).astype(float)
    stored = sparse.csr_array(np.ones_like(X))
    stored.data[:] = X.ravel()
    models = [ExtremeSVM(solver="softmax").fit(rows, X.argmax(axis=1)) for rows in (X, stored)]
    np.testing.assert_array_equal(*(model.decision_function(X) for model in models))
    assert stored.nnz == X.size  # the caller's
