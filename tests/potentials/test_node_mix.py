"""A metric along the last axis of node parts: scores, adjoint, Gram matrix; every solver."""

import numpy as np
import pytest
from checks import refused
from potential_cases import adjoint_agrees, trained
from reference.objectives import optimum
from scipy import sparse

import structsolve
from structsolve.potentials.calls import score
from structsolve.potentials.linear import LinearPotentials
from structsolve.potentials.mercer import Kernel
from structsolve.potentials.mixed import MixedPotentials
from structsolve.solvers.problem import Problem


def metric(K, seed=0):
    A = np.random.default_rng(seed).normal(size=(K, K))
    M = A @ A.T + 0.1 * np.eye(K)
    return (M + M.T) / 2


def reflection(K):
    """Symmetric and orthogonal: the problem without it, in other coordinates."""
    v = np.random.default_rng(3).normal(size=K)
    M = np.eye(K) - 2 * np.outer(v, v) / (v @ v)
    return (M + M.T) / 2


def chains(K, as_sparse=False, n=3):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(m, 3)) * (rng.random((m, 3)) < 0.7) for m in 1 + np.arange(n) % 4]
    Y = [rng.integers(0, K, len(x)) for x in X]
    Y[-1] = np.arange(len(Y[-1])) % K
    given = [sparse.csr_matrix(x) for x in X] if as_sparse else X
    space, _ = structsolve.get_structure("chain").make_space(given, Y, classes=np.arange(K))
    return space, space.pack(given, Y)


@pytest.mark.parametrize("K", [2, 3, 11])
@pytest.mark.parametrize("budget", [0, 10**6])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_operations_agree_with_mixed_weights(K, budget, as_sparse):
    space, examples = chains(K, as_sparse)
    layout, rng, M = space.layout, np.random.default_rng(1), metric(K)
    plain = LinearPotentials(examples, layout)
    mixed = MixedPotentials(examples, layout, M, budget)
    assert plain.plain_nodes and plain.node_mix is None
    assert not mixed.plain_nodes and mixed.node_mix is not None
    w = np.zeros(layout.dim)
    for block in layout.blocks:
        layout.view(w, block.name)[...] = rng.normal(size=layout.view(w, block.name).shape)
    folded = w.copy()
    layout.view(folded, "node")[...] = layout.view(w, "node") @ M
    rows = layout.node_block(w)
    np.testing.assert_allclose(mixed.model_rows(rows), layout.node_block(folded), atol=1e-12)
    np.testing.assert_allclose(mixed.model_rows(mixed.model_rows(rows), inverse=True), rows)
    for i in range(examples.n):
        theta = score(mixed, i, w, 2.0)
        np.testing.assert_allclose(theta, score(plain, i, folded, 2.0), atol=1e-13)
        real = np.flatnonzero(theta)  # parts that are no padding
        for index in (rng.choice(real, 20), np.sort(rng.choice(real, 7)), real):
            index, value = index.astype(np.int32), rng.normal(size=len(index))
            adjoint_agrees(mixed, i, w, theta / 2, index, value, 1e-10, 1e-11)


def posed(space, examples, M, **settings):
    space.node_mix = M
    return Problem(space, examples, **settings)


def single_nodes(M, kernel=None):
    """Return a problem with one node per example, and its explicit form for the reference."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 2)), np.r_[np.arange(4), rng.integers(0, 4, 8)]
    space, examples = structsolve.get_structure("multiclass").make_space(X, y)
    written = []
    for x, truth in zip(np.c_[X, np.ones(12)], y):
        differences = np.array([np.kron(M[truth] - M[c], x) for c in range(4)])
        written.append((differences, (np.arange(4) != truth).astype(float)))
    return posed(space, examples, M, kernel=kernel), written


@pytest.mark.parametrize("solver", ["bcfw", "auto", "admm", "cutting-plane", "smoothing"])
def test_training_reaches_the_optimum(solver):
    M = metric(4)
    problem, written = single_nodes(M)
    w, record = trained(problem, 0.05, solver)
    best = optimum(written, 0.05)
    assert record["primal"] == pytest.approx(best.value, rel=1e-4)
    assert record["dual"] <= best.value * (1 + 1e-9) <= record["primal"] * (1 + 1e-8)
    assert problem.primal(w, 0.05)[0] == pytest.approx(record["primal"], rel=1e-9)
    # The objective of the model's weights, by another road.
    plain, folded = problem.without_metric(), problem.model_weights(w)
    rows = plain.space.layout.view(folded, "node") @ np.linalg.inv(M)
    assert plain.space.node_mix is None and problem.space.node_mix is M
    value = float(plain.weights @ plain.bounds(folded)[0]) + 0.025 * float((rows**2).sum())
    assert value == pytest.approx(record["primal"], rel=1e-9)
    np.testing.assert_allclose(problem.solver_weights(folded), w, atol=1e-8)


def test_a_linear_kernel_has_it_too():
    M = metric(4)
    w, _ = trained(single_nodes(M)[0], 0.05, "bcfw")
    problem, written = single_nodes(M, Kernel("linear"))
    duals, record = trained(problem, 0.05, "bcfw")
    assert record["primal"] == pytest.approx(optimum(written, 0.05).value, rel=1e-4)
    linear, kernel = single_nodes(M)[0], problem.model(duals)
    X = problem.examples.nodes
    expected = np.c_[X, np.ones(12)] @ linear.space.layout.view(linear.model_weights(w), "node")
    scores = X @ X.T[:, kernel.support] @ kernel.duals[:, :4] + kernel.rest["intercept"]
    np.testing.assert_allclose(scores, expected, atol=2e-2)


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("solver", ["perceptron", "passive-aggressive", "sgd", "lbfgs"])
def test_a_reflection_changes_coordinates_alone(solver, as_sparse):
    surrogate = "crf" if solver == "lbfgs" else "margin"
    models, values = [], []
    for M in (None, reflection(3)):
        problem = posed(*chains(3, as_sparse, 40), M, surrogate=surrogate)
        w, record = trained(problem, 0.02, solver, passes=10)
        models.append(problem.model_weights(w))
        values.append(record["primal"])
    np.testing.assert_allclose(models[0], models[1], atol=1e-9)
    assert values[0] == pytest.approx(values[1]) or values == [None, None]


def test_wrong_matrices_are_named():
    space, examples = chains(3)
    for M, told in (
        ("x", "node_mix: found no array of numbers"),
        (np.eye(3) + 0j, "node_mix: found no array of numbers"),
        *((M, "node_mix has no inverse") for M in (np.zeros((3, 3)), np.full((3, 3), np.nan))),
    ):
        refused(told, posed, space, examples, M)
    for M in (np.ones((2, 2)), np.arange(9.0).reshape(3, 3), np.ones(3)):
        refused(
            "node_mix has shape .*expected a symmetric matrix of shape", posed, space, examples, M
        )
