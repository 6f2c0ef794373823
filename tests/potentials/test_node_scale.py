"""Factors of the node parts: scores, adjoint and Gram matrix; training under scaled penalties."""

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
from structsolve.solvers.problem import Problem


def chain(K, seed=0, as_sparse=False):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(length, 3)) * (rng.random((length, 3)) < 0.7) for length in (1, 2, 4)]
    Y = [rng.integers(0, K, len(x)) for x in X]
    Y[-1] = np.arange(4) % K
    space, _ = structsolve.get_structure("chain").make_space(X, Y, classes=np.arange(K))
    return space, space.pack([sparse.csr_matrix(x) for x in X] if as_sparse else X, Y)


@pytest.mark.parametrize("K", [2, 3, 11])
@pytest.mark.parametrize("budget", [0, 10**6])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_operations_agree_with_scaled_weights(K, budget, as_sparse):
    space, examples = chain(K, as_sparse=as_sparse)
    layout, rng = space.layout, np.random.default_rng(1)
    scale = rng.random(K) * (rng.random(K) < 0.8)
    plain = LinearPotentials(examples, layout)
    scaled = LinearPotentials(examples, layout, budget, node_scale=scale)
    assert plain.node_scale is None
    assert scaled.node_scale[:K].tolist() == scale.tolist()
    assert not scaled.node_scale[K:].any()
    w = np.zeros(layout.dim)
    for block in layout.blocks:
        layout.view(w, block.name)[...] = rng.normal(size=layout.view(w, block.name).shape)
    folded = w.copy()
    layout.view(folded, "node")[...] *= scale
    for i in range(examples.n):
        theta = score(scaled, i, w, 2.0)
        np.testing.assert_allclose(theta, score(plain, i, folded, 2.0), atol=1e-14)
        real = np.flatnonzero(theta)  # parts that are no padding
        index = rng.choice(real, 20).astype(np.int32)
        adjoint_agrees(scaled, i, w, theta / 2, index, rng.normal(size=20), 1e-12)


def train(problem, alpha, solver="bcfw", tol=1e-7):
    w, record = trained(problem, alpha, solver, 2000, tol)
    return w, record["primal"]


def single_nodes(scale, kernel=None, seed=0):
    """Return a problem with one node per example, and its explicit form for the reference."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(12, 2)), np.r_[np.arange(4), rng.integers(0, 4, 8)]
    problem = Problem(
        *structsolve.get_structure("multiclass").make_space(X, y), kernel=kernel, node_scale=scale
    )
    rows = np.c_[X, np.ones(12)]
    written = []
    for x, truth in zip(rows, y):
        differences = np.array([np.kron(np.eye(4)[truth] - np.eye(4)[c], x) for c in range(4)])
        written.append((differences * np.repeat(scale, 3), (np.arange(4) != truth).astype(float)))
    return problem, written


SCALES = [[1.0, 0.5, 2.0, 0.1], [0.0, 1.0, 3.0, 1e-3]]


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("solver", ["bcfw", "cutting-plane"])
def test_training_reaches_the_optimum(scale, solver):
    problem, written = single_nodes(np.array(scale))
    w, primal = train(problem, 0.05, solver)
    best = optimum(written, 0.05)
    assert primal == pytest.approx(best.value, rel=1e-5)
    assert problem.primal(w, 0.05)[0] == pytest.approx(primal, rel=1e-9)
    folded = problem.space.layout.view(problem.model_weights(w), "node")
    expected = best.w.reshape(4, 3) * np.array(scale)[:, None]
    np.testing.assert_allclose(folded.T, expected, atol=2e-3)


def test_a_linear_kernel_is_scaled_alike():
    scale = np.array([1.0, 0.5, 2.0, 0.1])
    w, _ = train(single_nodes(scale)[0], 0.05)
    problem, written = single_nodes(scale, Kernel("linear"))
    duals, primal = train(problem, 0.05)
    assert primal == pytest.approx(optimum(written, 0.05).value, rel=1e-5)
    linear, kernel = single_nodes(scale)[0], problem.model(duals)
    X = problem.examples.nodes
    expected = np.c_[X, np.ones(12)] @ linear.space.layout.view(linear.model_weights(w), "node")
    scores = X @ X.T[:, kernel.support] @ kernel.duals[:, :4] + kernel.rest["intercept"]
    np.testing.assert_allclose(scores, expected, atol=5e-3)


def test_ones_change_nothing():
    space, examples = chain(3)
    plain, scaled = Problem(space, examples), Problem(space, examples, node_scale=np.ones(3))
    a, b = train(plain, 0.1, tol=1e-3)[0], train(scaled, 0.1, tol=1e-3)[0]
    assert a.tolist() == b.tolist()
    assert plain.model_weights(a) is a


@pytest.mark.parametrize(
    "scale, message",
    [
        ([1.0, 2.0], r"shape \(2,\), expected \(3,\)"),
        ([1.0, -1.0, 1.0], r"node_scale\[1\] is -1.0"),
        ([1.0, 1.0, np.nan], r"node_scale\[2\] is nan"),
        ([np.inf, 1.0, 1.0], r"node_scale\[0\] is inf"),
    ],
)
def test_bad_factors_are_refused(scale, message):
    space, examples = chain(3)
    refused(message, LinearPotentials, examples, space.layout, node_scale=scale)


def test_exact_steps_are_refused():
    from structsolve.solvers import BCFW

    problem, _ = single_nodes(np.ones(4))
    refused("scaled", train, problem, 0.1, BCFW(steps="exact"))
