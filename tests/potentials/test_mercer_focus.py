"""Steps of kernel models restricted to some nodes: scores and norms against the definition."""

import numpy as np
import pytest
from data import classes
from hypothesis import given, settings
from hypothesis import strategies as st

import structsolve
from structsolve import StructuredSVM
from structsolve.potentials import mercer
from structsolve.potentials.calls import row_add, row_dot, row_score
from structsolve.potentials.mercer_features import MercerRows, split_block
from structsolve.solvers import BCFW
from structsolve.solvers._simplex import SimplexLoop


def rows_of(n, width, bias, rng):
    X = rng.normal(size=(n, 2)).round(1)
    kernel = mercer.Kernel("rbf", {"gamma": 0.5}, cache_size=rng.choice([0, 1]))
    rows = MercerRows(X, kernel, np.arange(n + 1), width, bias)
    return rows, kernel.matrix(X, X) + bias


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 30), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_scores_and_norm_are_those_of_the_duals(n, width, seed):
    rng = np.random.default_rng(seed)
    rows, K = rows_of(n, width, float(seed % 2), rng)
    W, A = np.zeros(rows.weights_size), np.zeros((n, width))

    def move(row):
        m = int(rng.integers(1, width + 1))
        cols, coefs = rng.permutation(width)[:m].astype(np.int32), rng.normal(size=m)
        row_add(rows, row, cols, coefs, W)
        A[row, cols] += coefs

    for row in rng.integers(0, n, 5):
        move(row)
    chosen = rng.permutation(n)[: rng.integers(1, n + 1)]
    pays = len(chosen) <= mercer.FOCUS_SHARE * n
    assert rows.focus(chosen, W) == pays
    for row in rng.choice(chosen, 6):
        move(row)
        assert np.allclose(row_score(rows, row, W), (K @ A)[row])
        assert np.allclose(row_dot(rows, row, np.array([width - 1], np.int32), W), (K @ A)[row, -1])
        assert np.isclose(rows.squared_norm(W), np.trace(A.T @ K @ A))
    if pays:
        assert not rows.focus(chosen, W)
        rows.unfocus(W)
    duals, scores = split_block(W, n, width)
    assert np.array_equal(duals, A)
    assert np.allclose(scores.T, K @ A)
    assert np.isclose(rows.squared_norm(W), np.trace(A.T @ K @ A))


@settings(max_examples=40, deadline=None)
@given(st.integers(3, 40), st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_greedy_steps_maximise_the_dual_of_the_chosen(n, K, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 2)).round(1), np.append(np.arange(K), rng.integers(0, K, n))[:n]
    space, examples = structsolve.get_structure("multiclass").make_space(X, y)
    problem = structsolve.Problem(space, examples, kernel=mercer.Kernel("rbf", {"gamma": 0.5}))
    K, u, alpha = len(space.classes_), problem.weights, 10.0 ** rng.integers(-1, 1)
    loop = SimplexLoop(problem.potentials, problem.surrogate, problem.labels, u, alpha)
    loop.run(rng.permutation(n)[: n // 2], True)
    kernel = mercer.Kernel("rbf", {"gamma": 0.5}).matrix(X, X) + 1
    chosen = np.sort(rng.permutation(n)[: max(1, n // 2)])
    b = 1 - np.eye(K)[examples.labels]

    def state():
        arrays, weights = loop.to_arrays(), np.zeros((n, K))
        weights[np.repeat(np.arange(n), arrays["counts"]), arrays["y"]] = arrays["weight"]
        weights[np.arange(n), examples.labels] = 1 - weights.sum(axis=1)
        assert weights.min() > -1e-12
        A = (np.eye(K)[examples.labels] - weights) * u[:, None] / alpha
        assert loop.b_total == pytest.approx(u @ (weights * b).sum(axis=1), abs=1e-9)
        dual = loop.b_total - 0.5 * alpha * np.trace(A.T @ kernel @ A)
        assert dual == pytest.approx(
            loop.b_total - 0.5 * alpha * problem.potentials.squared_norm(loop.w), abs=1e-9
        )
        return weights, kernel @ A, dual

    before, _, dual = state()
    assert problem.potentials.focus(chosen, loop.w)
    steps, gap = loop.greedy(chosen, 1e-10, 20000)
    problem.potentials.unfocus(loop.w)
    weights, scores, after = state()
    others = np.setdiff1d(np.arange(n), chosen)
    assert np.allclose(weights[others], before[others])
    assert after >= dual - 1e-12
    assert steps < 20000
    # No label with weight of a chosen example scores less than another: the optimum.
    top = scores + b
    worst = np.where(weights > 1e-5, top, np.inf).min(axis=1)
    assert (top.max(axis=1) - worst)[chosen].max() < 5e-3
    with pytest.raises(ValueError, match="look at alone"):
        loop.greedy(chosen, 1e-10, 5)


@pytest.mark.parametrize("steps", ["exact", "pairwise"])
def test_training_has_the_same_optimum(steps, monkeypatch):
    X, y = classes(60, seed=3)
    y = np.random.default_rng(0).permutation(y)
    model = StructuredSVM(
        "multiclass", kernel="rbf", alpha=1e-2, tol=1e-4, max_iter=400, solver=BCFW(steps)
    )
    history = model.fit(X, y).history_
    monkeypatch.setattr(mercer, "FOCUS_BYTES", 0)
    without = model.fit(X, y).history_
    assert max(record["cached_passes"] for record in history) > 1
    assert history[-1]["certified"]
    assert history[-1]["dual"] == pytest.approx(without[-1]["dual"], rel=2e-4)
