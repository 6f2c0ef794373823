"""Pair steps of kernel models: each against brute force, the optimum against a conic solver.

Run as a script, this file trains with the instructions that STRUCTSOLVE_SIMD asks for and writes
what it has learnt to the file that it is told.
"""

import sys

import numpy as np
import pytest
from data import classes
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import by_instructions
from sklearn.metrics.pairwise import rbf_kernel

import structsolve
from structsolve import CostMatrix, StructuredSVM
from structsolve.plugins.multiclass import SMO
from structsolve.potentials import mercer
from structsolve.solvers import BCFW, choose_solver
from structsolve.solvers._simplex import SimplexLoop
from structsolve.solvers.run import Start


def problem_of(K, y, weights=None, **settings):
    space, examples = structsolve.get_structure("multiclass").make_space(K, y, fit_intercept=False)
    examples.sample_weight = weights
    kernel = mercer.Kernel("precomputed")
    return structsolve.Problem(space, examples, kernel=kernel, **settings)


def random_case(rng, n, k):
    """A kernel matrix with duplicates and zero rows, classes, weights with zeros."""
    X = rng.integers(-1, 2, (n, 2)).astype(float) if rng.random() < 0.5 else rng.normal(size=(n, 2))
    X[rng.random(n) < 0.2] = 0
    K = X @ X.T if rng.random() < 0.5 else rbf_kernel(X, gamma=0.7) + rng.integers(0, 2)
    y = np.append(np.arange(k), rng.integers(0, k, n))[:n]
    weights = rng.integers(0, 4, n).astype(float)
    weights[0] = 1
    return K, y, weights


def dual_of(K, b, u, alpha, truth, q):
    duals = (truth - q) * (u / alpha)[:, None]
    return u @ (q * b).sum(axis=1) - alpha / 2 * np.sum(duals * (K @ duals))


def weights_of(loop, truths, K):
    arrays, q = loop.to_arrays(), np.zeros((len(truths), K))
    q[np.repeat(np.arange(len(truths)), arrays["counts"]), arrays["y"]] = arrays["weight"]
    q[np.arange(len(truths)), truths] = 1 - q.sum(axis=1)
    return q


def single_rises(K, b, u, alpha, truth, q):
    """The rises by moving weight from the lowest label that has some to the highest, best first.

    And whether nothing else is as good as the first.
    """
    scores = K @ ((truth - q) * (u / alpha)[:, None]) + b
    rises, ties = [(0.0, 0, 0, 0)], [False]
    for i in range(len(K)):
        low_scores = np.where(q[i] > 0, scores[i], np.inf)
        high, low = int(scores[i].argmax()), int(low_scores.argmin())
        slope, curvature = scores[i, high] - scores[i, low], 2 * K[i, i]
        most = u[i] / alpha * q[i, low]
        y = min(slope / curvature, most) if curvature > 0 else most
        rises.append((alpha * y * (slope - curvature * y / 2), i, high, low))
        ties.append(
            np.sum(scores[i] > scores[i, high] - 1e-9) > 1
            or np.sum(low_scores < scores[i, low] + 1e-9) > 1
        )
    order = sorted(range(len(rises)), key=lambda j: -rises[j][0])
    first, second = rises[order[0]][0], rises[order[1]][0]
    return [rises[j] for j in order], not ties[order[0]] and second < first * (1 - 1e-6)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 40), st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_a_step_gains_at_least_what_the_best_row_would(n, k, seed):
    rng = np.random.default_rng(seed)
    k = min(n, k)
    K, y, weights = random_case(rng, n, k)
    problem, alpha = problem_of(K, y, weights), 10.0 ** rng.integers(-2, 1)
    u, truth = problem.weights, np.eye(k)[y]
    loop = SimplexLoop(problem.potentials, problem.surrogate, problem.labels, u, alpha)
    everyone = np.arange(n)
    for _ in range(12):
        before = weights_of(loop, y, k)
        assert before.min() > -1e-12
        before[before < 1e-13] = 0
        dual = dual_of(K, 1 - truth, u, alpha, truth, before)
        rises, distinct = single_rises(K, 1 - truth, u, alpha, truth, before)
        single, row, high, low = rises[0]
        taken, gap = loop.greedy(everyone, 0.0, 1)
        after = weights_of(loop, y, k)
        rise = dual_of(K, 1 - truth, u, alpha, truth, after) - dual
        scale = max(abs(dual), single, 1e-12)
        assert rise >= single - 1e-9 * scale
        moved = np.flatnonzero(np.abs(after - before).max(axis=1) > 1e-12)
        assert len(moved) <= 2
        if single > 1e-9:
            assert taken == 1
        if single > 1e-9 and distinct:
            best = best_with(K, u, alpha, truth, before, row, high, low)
            assert rise >= best - 1e-6 * scale
        scores = K @ ((truth - after) * (u / alpha)[:, None]) + 1 - truth
        assert gap == pytest.approx(
            u @ (scores.max(axis=1) - (after * scores).sum(axis=1)), abs=1e-9
        )
        assert loop.b_total == pytest.approx(u @ (after * (1 - truth)).sum(axis=1), abs=1e-9)


def best_with(K, u, alpha, truth, q, i, high, low):
    """Return the largest joint gain of a row and another if neither reaches a bound."""
    c = u / alpha
    scores = K @ ((truth - q) * c[:, None]) + 1 - truth
    slopes, best = scores[:, high] - scores[:, low], 0.0
    for j in range(len(K)):
        H = 2 * K[np.ix_([i, j], [i, j])]
        if j == i or np.linalg.det(H) <= 1e-8 * H[0, 0] * H[1, 1]:
            continue
        step = np.linalg.solve(H, slopes[[i, j]])
        inside = (-c[[i, j]] * q[[i, j], high] <= step) & (step <= c[[i, j]] * q[[i, j], low])
        if inside.all():
            best = max(best, alpha * float(slopes[[i, j]] @ step - step @ H @ step / 2))
    return best


def optimum(K, b, u, alpha, truth):
    """Return the optimum of the dual, by cvxpy."""
    cp = pytest.importorskip("cvxpy")
    n, k = truth.shape
    q = cp.Variable((n, k))
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0))
    duals = cp.multiply(truth - q, np.repeat((u / alpha)[:, None], k, axis=1))
    value = cp.sum(cp.multiply(b * u[:, None], q)) - alpha / 2 * cp.sum_squares(root.T @ duals)
    program = cp.Problem(cp.Maximize(value), [q >= 0, cp.sum(q, axis=1) == 1])
    program.solve(solver="CLARABEL")
    return program.value


@pytest.mark.parametrize("cost", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_the_optimum_is_that_of_a_conic_solver(seed, cost):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(3, 18)), int(rng.integers(2, 5)) if seed else 2
    k = n if seed == 1 else min(k, n)  # one example a class
    K, y, weights = random_case(rng, n, k)
    C = rng.integers(1, 4, (k, k)) * (1.0 - np.eye(k))
    alpha = 10.0 ** rng.uniform(-3, 0)
    model = StructuredSVM(
        "multiclass", kernel="precomputed", fit_intercept=False, alpha=alpha, tol=1e-8,
        max_iter=50, loss=CostMatrix(C) if cost else "zero-one", solver=SMO(),
    ).fit(K, y, sample_weight=weights)  # fmt: skip
    truth, u = np.eye(k)[y], weights / weights.sum()
    expected = optimum(K, C[y] if cost else 1 - truth, u, alpha, truth)
    last = model.history_[-1]
    assert model.stop_reason_ == "converged"
    assert last["dual"] == pytest.approx(expected, rel=1e-5, abs=1e-7)
    assert last["primal"] == pytest.approx(expected, rel=1e-5, abs=1e-7)
    assert last["dual"] <= last["primal"] + 1e-12


@pytest.mark.parametrize("settings", [{}, {"class_weight": "balanced"}, {"fit_intercept": False}])
def test_it_agrees_with_steps_of_single_rows(settings):
    X, y = classes(150, seed=2)
    y = np.where(np.random.default_rng(0).random(150) < 0.2, np.roll(y, 1), y)
    models = [
        StructuredSVM(
            "multiclass", kernel="rbf", alpha=1e-3, tol=1e-6, max_iter=3000, solver=solver,
            **settings,
        ).fit(X, y)
        for solver in ("bcfw", BCFW("exact"))
    ]  # fmt: skip
    assert [m.solver_.name for m in models] == ["smo", "bcfw"]
    ours, theirs = (m.history_[-1] for m in models)
    assert ours["primal"] == pytest.approx(theirs["primal"], rel=3e-6)
    assert ours["dual"] == pytest.approx(theirs["dual"], rel=3e-6)
    scores = [m.decision_function(X) for m in models]
    np.testing.assert_allclose(*scores, atol=2e-2 * np.abs(scores[1]).max())


def test_every_pass_is_certified_and_the_dual_rises():
    X, y = classes(120, seed=4)
    y = np.random.default_rng(1).permutation(y)
    model = StructuredSVM("multiclass", kernel="rbf", alpha=1e-5, tol=1e-9, max_iter=200)
    history = model.fit(X, y).history_
    assert model.stop_reason_ == "converged"
    assert len(history) > 2
    assert all(r["certified"] and r["steps"] <= 10 * 120 for r in history)
    assert np.all(np.diff([r["dual"] for r in history]) >= 0)
    assert np.all(np.diff([r["primal"] for r in history]) <= 0)
    assert all(r["dual"] <= r["primal"] for r in history)
    assert model.n_iter_ == len(history)


@pytest.mark.parametrize("alpha", [1e-8, 1e-3, 1.0, 1e8])
def test_rows_that_are_the_same_move_against_each_other_as_far_as_they_may(alpha):
    y = np.array([0, 1, 0, 1, 1, 1, 0])
    model = StructuredSVM("multiclass", kernel="rbf", alpha=alpha, tol=1e-6)
    last = model.fit(np.zeros((7, 2)), y).history_[-1]
    assert model.stop_reason_ == "converged"
    # One score difference d for all: 3 rows lose 1 + d, 4 rows 1 - d, and the kernel is 2.
    objective = min(
        alpha * d**2 / 8 + (3 * max(0, 1 + d) + 4 * max(0, 1 - d)) / 7
        for d in np.linspace(0, 1, 100_001)
    )
    assert last["primal"] == pytest.approx(objective, rel=1e-5)


def test_looking_at_rows_alone_does_not_change_the_optimum(monkeypatch):
    X, y = classes(200, seed=5)
    model = StructuredSVM("multiclass", kernel="rbf", alpha=1e-4, tol=1e-5)
    asked, focus = [], SimplexLoop.greedy

    class Watched(SimplexLoop):
        def greedy(self, chosen, *arguments):
            asked.append(len(chosen))
            return focus(self, chosen, *arguments)

    monkeypatch.setattr("structsolve.plugins.multiclass.smo.SimplexLoop", Watched)
    alone = model.fit(X, y).history_[-1]
    assert min(asked) < 200
    monkeypatch.setattr(mercer, "FOCUS_BYTES", 0)
    asked.clear()
    everyone = model.fit(X, y).history_[-1]
    assert min(asked) == 200
    assert alone["dual"] == pytest.approx(everyone["dual"], rel=2e-5)
    assert alone["primal"] == pytest.approx(everyone["primal"], rel=2e-5)


def test_which_problems_are_handed_over():
    X, y = classes(40)
    kernel = mercer.Kernel("rbf")
    space, examples = structsolve.get_structure("multiclass").make_space(X, y)
    problem = structsolve.Problem(space, examples, kernel=kernel)
    assert choose_solver(BCFW(), problem).name == "smo"
    for solver in (BCFW("exact"), BCFW(sampling="gap"), BCFW(cached_passes=0)):
        assert choose_solver(solver, problem) is solver
    linear = structsolve.Problem(space, examples)
    assert choose_solver(BCFW(), linear).name == "bcfw"
    many = structsolve.get_structure("multiclass").make_space(X, np.arange(40).astype(str))
    assert choose_solver(BCFW(), structsolve.Problem(*many, kernel=kernel)).name == "bcfw"
    with pytest.raises(ValueError, match="'smo' needs a Mercer kernel.* found kernel=None"):
        SMO().start(Start(linear, 1.0, np.random.default_rng(0)))
    words = [X[:20], X[20:]], [y[:20], y[20:]]
    with pytest.raises(ValueError, match="share no parts.*found a kernel, 'chain' and 'margin'"):
        StructuredSVM("chain", kernel="rbf", solver=SMO()).fit(*words)
    with pytest.raises(ValueError, match="'multiclass' and 'crf'; use solver='bcfw'"):
        StructuredSVM("multiclass", kernel="rbf", surrogate="crf", solver="smo").fit(X, y)


def test_steps_only_look_at_all_examples_or_those_in_focus():
    K, y, _ = random_case(np.random.default_rng(0), 12, 3)
    problem = problem_of(K, y)
    loop = SimplexLoop(problem.potentials, problem.surrogate, problem.labels, problem.weights, 1.0)
    with pytest.raises(ValueError, match="expected all examples, or those"):
        loop.greedy(np.arange(5), 0.0, 1)


def trained():
    """Return duals of several fits, with numbers of rows that fill vectors, and that do not."""
    answers = {}
    for n in (5, 31, 64, 150):
        X, y = classes(n, seed=n)
        K = rbf_kernel(X)
        model = StructuredSVM("multiclass", kernel="precomputed", alpha=1e-3, tol=1e-6)
        model.fit(K, y)
        answers[f"{n}"], answers[f"{n} support"] = model.dual_coef_, model.support_
        answers[f"{n} steps"] = [r["steps"] for r in model.history_]
    return answers


def test_no_instruction_set_changes_a_bit(tmp_path):
    versions = by_instructions(__file__, tmp_path, ("plain", "avx2", "avx512"))
    plain, *others = versions.values()
    for other in others:
        for name, values in plain.items():
            assert np.array_equal(values, other[name]), name


if __name__ == "__main__":
    np.savez(sys.argv[1], **trained())
