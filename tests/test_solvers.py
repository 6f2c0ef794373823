"""Every solver against cvxpy on the enumerated problem: the optimum, the certificate, the dual."""

import warnings

import numpy as np
import pytest
from data import chains, classes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference.chains import enumerate_examples
from reference.objectives import optimum, primal
from sklearn.exceptions import ConvergenceWarning

import structsolve
from structsolve import CostMatrix, StructuredSVM
from structsolve.solvers import BCFW, SGD, CuttingPlane

warnings.simplefilter("ignore", ConvergenceWarning)

COST = np.array([[0.0, 1.0, 3.0], [2.0, 0.0, 1.0], [0.5, 1.0, 0.0]])
LOSSES = {
    "hamming": ("hamming", None),
    "normalized-hamming": ("normalized-hamming", lambda t, y: float(np.mean(t != y))),
    "zero-one": ("zero-one", lambda t, y: float(np.any(t != y))),
    "cost": (CostMatrix(COST), lambda t, y: float(COST[t, y].sum())),
}
SOLVERS = {
    "pairwise": BCFW(),
    "original": BCFW(steps="frank-wolfe", max_steps=1, cached_passes=0),
    "frank-wolfe": BCFW(steps="frank-wolfe"),
    "gap sampling": BCFW(sampling="gap"),
    "uniform": BCFW(sampling="uniform", averaging=False),
    "few cuts": BCFW(max_cuts=3, max_age=0),
    "many calls": BCFW(oracle_calls=5),
    "one-slack": CuttingPlane(),
    "n-slack": CuttingPlane(slack="n"),
}
# Steps that always move weight from every cut, and merged cuts, converge sublinearly.
ACCURACY = {"original": 5e-2, "frank-wolfe": 1e-3, "few cuts": 1e-2}


def data(kind, seed):
    X, Y = chains(9, n_features=3, longest=4, seed=seed, noise=4)
    if kind == "ties":
        X = [np.round(x) for x in X]
        X[1], Y[1] = X[0].copy(), Y[0].copy()
        X[2] = np.zeros_like(X[2])
    return X, Y


def flat(model, blocks=("transition", "start", "end", "node")):
    return np.concatenate([model.coef_[name].ravel() for name in blocks])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["random", "ties"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_same_optimum_as_cvxpy(solver, kind, loss):
    X, Y = data(kind, seed=len(loss))
    ours, theirs = LOSSES[loss]
    problem = enumerate_examples(X, Y, 3, loss=theirs)
    weights = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    exact = optimum(problem, 0.1, weights / weights.sum())
    accuracy = ACCURACY.get(solver, 1e-6)
    model = StructuredSVM(
        "chain",
        loss=ours,
        solver=SOLVERS[solver],
        alpha=0.1,
        tol=accuracy / 2,
        max_iter=3000,
        fit_intercept=False,
    ).fit(X, Y, sample_weight=weights)
    last = model.history_[-1]
    assert model.stop_reason_ == "converged"
    assert last["primal"] == pytest.approx(exact.value, rel=accuracy)
    assert last["dual"] <= exact.value * (1 + 1e-9)
    found = primal(flat(model), problem, 0.1, weights / weights.sum())
    assert found == pytest.approx(last["primal"], rel=1e-9)
    certified = [h for h in model.history_ if h["certified"]]
    assert all(h["dual"] <= h["primal"] + 1e-12 for h in certified)


def test_sgd_reaches_the_optimum():
    X, Y = data("random", 3)
    problem = enumerate_examples(X, Y, 3)
    exact = optimum(problem, 0.5)
    model = StructuredSVM(
        "chain",
        solver=SGD(certify_every=1000),
        alpha=0.5,
        tol=0,
        max_iter=20000,
        fit_intercept=False,
    ).fit(X, Y)
    assert exact.value <= model.history_[-1]["primal"] * (1 + 1e-9)
    assert model.history_[-1]["primal"] == pytest.approx(exact.value, rel=3e-4)


@pytest.mark.parametrize("solver", ["pairwise", "frank-wolfe", "many calls", "few cuts"])
def test_the_dual_never_falls(solver):
    X, Y = data("ties", 5)
    model = StructuredSVM("chain", solver=SOLVERS[solver], alpha=0.01, tol=0, max_iter=60)
    duals = [h["dual"] for h in model.fit(X, Y).history_]
    assert all(b >= a - 1e-12 * abs(a) for a, b in zip(duals[:-1], duals[1:]))


def test_unpenalised_intercept_has_the_optimum_of_cvxpy():
    X, y = classes(40)
    exact_features = []
    for x, truth in zip(X, y):
        rows, losses = [], []
        for k in range(3):
            d = np.zeros((6, 3))
            d[:, truth] += np.r_[x, 1]
            d[:, k] -= np.r_[x, 1]
            rows.append(d.ravel())
            losses.append(float(k != truth))
        exact_features.append((np.array(rows), np.array(losses)))
    penalised = np.r_[np.ones(15), np.zeros(3)].astype(bool)
    exact = optimum(exact_features, 0.3, penalized=penalised)
    for slack in ("one", "n"):
        model = StructuredSVM(
            "multiclass",
            solver=CuttingPlane(slack=slack),
            alpha=0.3,
            tol=1e-7,
            max_iter=500,
            penalize_intercept=False,
        ).fit(X, y)
        assert model.history_[-1]["primal"] == pytest.approx(exact.value, rel=1e-6)


@pytest.mark.parametrize("n_edge", [0, 2])
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10**6), st.sampled_from([1e-3, 0.05, 2.0]), st.integers(2, 6))
def test_bcfw_on_random_problems(n_edge, seed, alpha, max_cuts):
    rng = np.random.default_rng(seed)
    X, Y = chains(5, n_features=2, longest=3, seed=seed, noise=3)
    # The classes that occur, numbered anew: the estimator knows no others.
    found, flat_labels = np.unique(np.concatenate(Y), return_inverse=True)
    Y = np.split(flat_labels, np.cumsum([len(y) for y in Y])[:-1])
    if seed % 2:
        X = [np.round(x) for x in X]
    edges = None
    given_x = X
    blocks = ["transition", "start", "end", "node"]
    if n_edge:
        edges = [rng.integers(-1, 2, (len(x) - 1, n_edge)).astype(float) for x in X]
        given_x = list(zip(X, edges))
        blocks.append("edge")
    problem = enumerate_examples(X, Y, len(found), blocks=blocks, edge_x=edges)
    exact = optimum(problem, alpha)
    model = StructuredSVM(
        structsolve.get_structure("chain"),
        solver=BCFW(max_cuts=max_cuts, max_age=seed % 3),
        alpha=alpha,
        tol=1e-3,
        max_iter=100,
        fit_intercept=False,
    ).fit(given_x, Y)
    last = model.history_[-1]
    w = np.concatenate([model.coef_[name].ravel() for name in blocks]) if n_edge else flat(model)
    # Few cuts converge slowly, but the certificate holds at any moment.
    assert primal(w, problem, alpha) == pytest.approx(last["primal"], rel=1e-9, abs=1e-12)
    assert last["dual"] <= exact.value + 1e-7
    assert last["primal"] >= exact.value - 1e-7
    assert last["gap"] == pytest.approx(last["primal"] - last["dual"], abs=1e-12)
