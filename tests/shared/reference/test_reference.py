"""The references themselves, against second methods: SciPy, inequalities, trial."""

import numpy as np
import pytest
from checks import refused
from scipy.optimize import linprog, minimize

from .chains import enumerate_examples
from .objectives import optimum, primal, subgradient


@pytest.fixture
def problem():
    rng = np.random.default_rng(5)
    lengths = (1, 2, 3, 3)
    X = [rng.normal(size=(length, 2)) for length in lengths]
    Y = [rng.integers(3, size=length) for length in lengths]
    return enumerate_examples(X, Y, 3)


U = np.array([0.1, 0.4, 0.2, 0.3])
BIAS = np.arange(21) >= 6  # everything but six coordinates of the transitions


def test_enumerated_examples(problem):
    for differences, losses in problem:
        truth = np.flatnonzero(losses == 0)
        assert len(truth) == 1 and not differences[truth].any()
        assert differences.shape == (len(losses), 21)
    assert [losses.max() for _, losses in problem] == [1, 2, 3, 3]
    zero_one = enumerate_examples(
        [np.ones((2, 1))],
        [[0, 1]],
        2,
        blocks=("node",),
        loss=lambda truth, labels: float(list(truth) != list(labels)),
    )
    assert zero_one[0][1].tolist() == [1, 0, 1, 1] and zero_one[0][0].shape == (4, 2)


@pytest.mark.parametrize("alpha", [0.02, 0.5])
@pytest.mark.parametrize("u", [None, U])
@pytest.mark.parametrize("penalized", [None, BIAS])
def test_optimum(problem, alpha, u, penalized):
    """The value by its dual bound, w by the duals, both by trial and by cuts elsewhere."""
    best = optimum(problem, alpha, u, penalized)
    weights = np.full(4, 0.25) if u is None else u
    inside = np.ones(21, bool) if penalized is None else penalized
    assert best.value == pytest.approx(best.dual_value, rel=1e-7)
    np.testing.assert_allclose([dual.sum() for dual in best.duals], weights, atol=1e-8)
    slope = sum(dual @ D for dual, (D, _) in zip(best.duals, problem, strict=True))
    np.testing.assert_allclose(slope, np.where(inside, alpha * best.w, 0), atol=1e-6)
    rng = np.random.default_rng(0)
    for _ in range(50):
        w = best.w + rng.normal(size=21) * rng.choice([1e-3, 0.1, 1])
        value = primal(w, problem, alpha, u, penalized)
        assert value >= best.value - 1e-8
        # g at w is a subgradient: the cut lies below the objective, at the optimum for one.
        g = subgradient(w, problem, alpha, u, penalized)
        assert value + g @ (best.w - w) <= best.value + 1e-9


def test_optimum_by_scipy(problem):
    """SLSQP on (w, xi), every constraint written out."""
    alpha, n = 0.1, len(problem)
    best = optimum(problem, alpha)
    cuts = np.vstack(
        [np.hstack([D, np.tile(np.eye(n)[i], (len(D), 1))]) for i, (D, _) in enumerate(problem)]
    )
    losses = np.concatenate([losses for _, losses in problem])
    answer = minimize(
        lambda z: alpha / 2 * z[:21] @ z[:21] + z[21:].mean(),
        np.r_[np.zeros(21), 3 * np.ones(n)],
        jac=lambda z: np.r_[alpha * z[:21], np.full(n, 1 / n)],
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda z: cuts @ z - losses, "jac": lambda z: cuts},
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert answer.success and answer.fun == pytest.approx(best.value, rel=1e-6)
    np.testing.assert_allclose(answer.x[:21], best.w, atol=1e-3)


def test_optimum_under_constraints(problem):
    A = np.zeros((3, 21))
    A[0, 0], A[1, 1], A[2, 15:] = 1, -1, 1
    b = np.array([-0.2, -0.1, 5.0])  # two that bind, one that does not
    free, bound = optimum(problem, 0.1), optimum(problem, 0.1, A=A, b=b)
    assert (A @ bound.w <= b + 1e-8).all() and bound.value > free.value + 1e-4
    assert bound.value == pytest.approx(bound.dual_value, rel=1e-7)
    nu = bound.constraint_duals
    assert nu[2] == pytest.approx(0, abs=1e-7) and (nu[:2] > 1e-4).all()
    slope = sum(dual @ D for dual, (D, _) in zip(bound.duals, problem, strict=True))
    np.testing.assert_allclose(slope - A.T @ nu, 0.1 * bound.w, atol=1e-6)
    np.testing.assert_allclose(optimum(problem, 0.1, A=A, b=b + 99).w, free.w, atol=1e-5)
    refused("no optimum", optimum, problem, 0.1, A=np.array([A[0], -A[0]]), b=[-1, 0])


def test_optimum_without_any_norm(problem):
    """With nothing penalised it is a linear program."""
    inside = np.zeros(21, bool)
    box, one = np.vstack([np.eye(21), -np.eye(21)]), np.ones(42)
    best = optimum(problem, 1.0, penalized=inside, A=box, b=one)
    n = len(problem)
    cuts = np.vstack(
        [np.hstack([-D, np.tile(-np.eye(n)[i], (len(D), 1))]) for i, (D, _) in enumerate(problem)]
    )
    answer = linprog(
        np.r_[np.zeros(21), np.full(n, 1 / n)],
        cuts,
        np.concatenate([-losses for _, losses in problem]),
        bounds=[(-1, 1)] * 21 + [(None, None)] * n,
    )
    assert best.value == pytest.approx(answer.fun, abs=1e-8)
    assert best.dual_value == pytest.approx(answer.fun, abs=1e-7)
