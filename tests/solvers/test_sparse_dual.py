"""SparseDual: entropies against sums over labels, bounds against optima, checkpoints."""

import numpy as np
import pytest
from scipy.optimize import minimize

from structsolve import Problem, StructuredSVM
from structsolve.solvers import LBFGS
from structsolve.solvers.run import Start
from structsolve.solvers.sparse_dual import SHARES, SparseDual, mixed_entropies


def entropy(p):
    p = p[p > 0]
    return -float(p @ np.log(p))


def test_mixed_entropies_are_those_of_the_mixtures():
    rng = np.random.default_rng(0)
    for case in range(300):
        k = int(rng.integers(1, 6))
        p = rng.dirichlet(np.full(k, 10.0 ** rng.uniform(-2, 1)))
        p[rng.random(k) < 0.2] = 0
        p[0] = max(p[0], 1e-12)
        p /= p.sum()
        truth = np.eye(k)[0]
        expected = [entropy((1 - t) * truth + t * p) for t in SHARES]
        values = mixed_entropies(np.array([entropy(p)]), np.array([-np.log(p[0])]))[:, 0]
        np.testing.assert_allclose(values, expected, atol=1e-9, err_msg=str(case))
    never = mixed_entropies(np.zeros(1), np.array([np.inf]))[:, 0]  # the truth has no chance
    halves = [entropy(np.array([t, 1 - t])) for t in SHARES]
    np.testing.assert_allclose(never, halves, atol=1e-12)


def softmax(scores):
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def gradient(w, X, y, u):
    """Return minus the slope, entropies and losses of a logistic regression, in explicit form."""
    p = softmax(X @ w.reshape(X.shape[1], -1))
    g = X.T @ (u[:, None] * (np.eye(p.shape[1])[y] - p))
    with np.errstate(divide="ignore", invalid="ignore"):
        entropies = -np.where(p > 0, p * np.log(p), 0).sum(axis=1)
    return g.ravel(), entropies, -np.log(p[np.arange(len(y)), y])


def least(X, y, u, l1, k):
    """Return the optimum, with weights split into two non-negative parts."""
    d = X.shape[1] * k

    def value(v):
        w = v[:d] - v[d:]
        g, _, losses = gradient(w, X, y, u)
        return u @ losses + l1 * v.sum(), np.concatenate([l1 - g, l1 + g])

    answer = minimize(value, np.zeros(2 * d), jac=True, bounds=[(0, None)] * (2 * d),
                     options={"ftol": 1e-14, "gtol": 1e-9, "maxiter": 2000})  # fmt: skip
    return float(answer.fun)


@pytest.mark.parametrize("seed", range(12))
def test_bounds_lie_below_the_optimum_and_never_fall(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(3, 12)), int(rng.integers(2, 4))
    X, y = rng.normal(size=(n, 3)), rng.integers(k, size=n)
    if seed % 3 == 0:
        X[:, 1] = X[:, 0]  # ties
    u = rng.dirichlet(np.ones(n))
    if seed % 4 == 0:
        u[0] = 0
        u /= u.sum()
    l1 = float(10 ** rng.uniform(-2, -0.5))
    best, last = least(X, y, u, l1, k), 0.0
    dual = SparseDual(int(rng.integers(1, 5)), u)
    assert dual.bound(l1) == 0
    w = np.zeros(3 * k)
    for _ in range(15):
        g, entropies, losses = gradient(w, X, y, u)
        dual.add(g, entropies, losses)
        single = min(1.0, l1 / max(np.abs(g).max(), 1e-300)) * float(u @ entropies)
        bound = dual.bound(l1)
        assert bound <= best + 1e-7
        assert bound >= max(last, single) - 1e-6 * best
        last = bound
        # Proximal steps, with noise.
        w = w + 0.5 * g
        w = np.sign(w) * np.maximum(np.abs(w) - 0.5 * l1, 0) + 1e-3 * rng.normal(size=w.size)
    # With a smaller penalty, the same gradients bound less but stay useful.
    assert dual.bound(l1 / 2) <= least(X, y, u, l1 / 2, k) + 1e-7


def problem_of(seed=3):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(int(n), 6)) for n in rng.integers(2, 6, size=25)]
    Y = [(x[:, 0] + rng.normal(size=len(x)) > 0).astype(int) for x in X]
    return X, Y


def test_training_is_certified_and_goes_on_from_a_checkpoint():
    X, Y = problem_of()
    space = StructuredSVM("chain", max_iter=1, tol=1).fit(X, Y).space_
    problem = Problem(space, space.pack(X, Y), surrogate="crf")

    def begun():
        return LBFGS(l1_ratio=1.0).start(
            Start(problem, 0.02, np.random.default_rng(0), 1, None, 1e-6)
        )

    run, other = begun(), begun()
    records = [run.step() for _ in range(40)]
    assert 0 <= records[-1]["gap"] <= 2e-3 * records[-1]["primal"]
    assert all(a["dual"] <= b["dual"] for a, b in zip(records, records[1:]))
    assert max(r["dual"] for r in records) <= min(r["primal"] for r in records) * (1 + 1e-9)
    for _ in range(17):
        other.step()
    again = begun()
    again.restore(*other.state())
    for record in records[17:]:
        assert again.step() == record
    assert again.memory()["gradients"] == 11 * 8 * problem.dim
