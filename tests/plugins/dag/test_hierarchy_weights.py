"""Node weights of hierarchies against convex programs, and the shared Frobenius norm."""

import inspect

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from checks import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.hierarchies import brute_paths, numbered, random_dag, random_tree

from structsolve.plugins.dag import (
    Hierarchy,
    NodeWeights,
    node_weights,
    shared_norm,
    shared_weights,
)
from structsolve.plugins.dag.svm import shared
from structsolve.plugins.dag.svm.shared import penalty


def program(hierarchy, goal, low=1.0, top=1.0, directional=False):
    """The weights by the definition."""
    alpha = cp.Variable(len(hierarchy), nonneg=True)
    sums = brute_paths(hierarchy) @ alpha
    constraints = [sums >= low, sums <= top]
    if directional:
        constraints += [alpha[p] <= alpha[c] for p, c in hierarchy.edges]
    problem = cp.Problem(cp.Minimize(goal(alpha)), constraints)
    problem.solve(solver=cp.CLARABEL)
    return problem.value, alpha.value


@pytest.mark.parametrize("seed", range(6))
def test_arrays_of_a_hierarchy(seed):
    rng = np.random.default_rng(seed)
    for make in (random_tree, random_dag):
        hierarchy = make(rng, int(rng.integers(1, 15)))
        assert np.array_equal(hierarchy.paths.toarray(), brute_paths(hierarchy))
        depth = np.empty(len(hierarchy), int)
        for d, level in enumerate(hierarchy.levels):
            depth[level] = d
        assert sum(map(len, hierarchy.levels)) == len(hierarchy)
        assert all(depth[p] < depth[c] for p, c in hierarchy.edges)


@pytest.mark.parametrize("rho", [1.3, 2.0, 5.0])
@pytest.mark.parametrize("seed", range(4))
def test_rho_on_trees_is_the_convex_program(rho, seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, int(rng.integers(1, 14)), forest=seed == 3)
    alpha = node_weights(tree, f"rho:{rho}").values
    np.testing.assert_allclose(brute_paths(tree) @ alpha, 1, rtol=1e-12)
    exact = {"approx": False} if "approx" in inspect.signature(cp.power).parameters else {}
    best, _ = program(tree, lambda a: cp.sum(cp.power(a, rho, **exact)))
    assert (alpha**rho).sum() == pytest.approx(best, rel=1e-4)
    assert (alpha**rho).sum() <= best * (1 + 1e-6)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 40), st.floats(1e-6, 20))
def test_rho_on_trees_is_stationary_in_log_space(seed, n, e):
    """alpha^(rho-1) of a node is the sum over its children, even with underflow."""
    tree = random_tree(np.random.default_rng(seed), n)
    weights = node_weights(tree, f"rho:{1 + e!r}")
    assert np.isfinite(weights.log).all() and weights.log.max() <= 1e-12
    np.testing.assert_allclose(brute_paths(tree) @ weights.values, 1, rtol=1e-9)
    power = ((1 + e) - 1) * weights.log
    for node in set(range(n)) - set(tree.leaves.tolist()):
        children = tree.edges[tree.edges[:, 0] == node, 1]
        scale = 1e-7 * max(1, e) * max(1, np.abs(weights.log).max() * e)
        assert np.logaddexp.reduce(power[children]) == pytest.approx(power[node], abs=scale)


def test_weights_near_one_underflow_but_not_their_logarithms():
    tree = Hierarchy(nx.balanced_tree(2, 3, create_using=nx.DiGraph))
    weights = node_weights(tree, "rho:1.01")
    assert weights.values.min() == pytest.approx(5e-91, rel=0.1)
    closer = node_weights(tree, "rho:1.0001")
    assert closer.values.min() == 0 and np.isfinite(closer.log).all()
    assert closer.log.min() == pytest.approx(-3 * np.log(2) / 1e-4, rel=1e-3)


@pytest.mark.parametrize("seed", range(6))
def test_maxmin_on_trees_is_the_linear_program_and_fair(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, int(rng.integers(1, 14)))
    alpha = node_weights(tree, "maxmin").values
    assert np.array_equal(alpha, node_weights(tree, "maxmin", directional=True).values)
    np.testing.assert_allclose(brute_paths(tree) @ alpha, 1, rtol=1e-12)
    assert (alpha[tree.edges[:, 1]] >= alpha[tree.edges[:, 0]] * (1 - 1e-12)).all()
    for directional in (False, True):
        best, _ = program(tree, lambda a: -cp.min(a), directional=directional)
        assert alpha.min() == pytest.approx(-best, rel=1e-6)


@pytest.mark.parametrize("directional", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_weights_of_graphs_are_the_convex_programs(seed, directional):
    rng = np.random.default_rng(seed)
    dag = random_dag(rng, int(rng.integers(3, 12)))
    top = 1.5
    if directional and seed == 2:
        dag, top = random_tree(rng, 9), 1.0
    options = {"directional": directional, "slack": top}
    paths = brute_paths(dag)
    for rho in (2.0, 1.5):
        alpha = node_weights(dag, f"rho:{rho}", **options).values
        best, _ = program(dag, lambda a: cp.sum(cp.power(a, rho)), 1, top, directional)  # noqa: B023
        assert (alpha**rho).sum() == pytest.approx(best, rel=1e-4)
        assert 1 - 1e-5 <= (paths @ alpha).min() <= (paths @ alpha).max() <= top + 1e-5
    alpha = node_weights(dag, "maxmin", **options).values
    best, _ = program(dag, lambda a: -cp.min(a), 1, top, directional)
    assert alpha.min() == pytest.approx(-best, abs=1e-6)
    if directional:
        assert (alpha[dag.edges[:, 1]] >= alpha[dag.edges[:, 0]] - 1e-9).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 9), st.floats(0, 1))
def test_shared_weights_are_the_convex_program(seed, n, zeros):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n, forest=True)
    squares = rng.exponential(size=n) ** 3 * (rng.random(n) >= zeros)
    alpha = shared_weights(tree, squares)
    paths = brute_paths(tree)
    assert (alpha >= 0).all() and (paths @ alpha <= 1 + 1e-12).all()
    # The dual proves it: bounds of the kind sum of squares / alpha >= (sum sqrt(squares g))^2.
    lam = cp.Variable(len(paths), nonneg=True)
    gain = 2 * cp.sum(cp.multiply(np.sqrt(squares), cp.sqrt(paths.T @ lam))) - cp.sum(lam)
    dual = cp.Problem(cp.Maximize(gain)).solve(solver=cp.CLARABEL)
    assert penalty(squares, alpha) == pytest.approx(dual, rel=1e-5, abs=1e-6)


def test_shared_weights_of_graphs_and_of_vanishing_vectors():
    rng = np.random.default_rng(0)
    dag = random_dag(rng, 8)
    squares = rng.exponential(size=8)
    paths = brute_paths(dag)
    best, _ = program(dag, lambda a: squares @ cp.inv_pos(a), 0.0)
    alpha = shared_weights(dag, squares)
    assert (paths @ alpha).max() <= 1 + 1e-6
    assert penalty(squares, alpha) == pytest.approx(best, rel=1e-5)
    assert np.isfinite(shared_weights(dag, np.zeros(8))).all()
    tree = random_tree(rng, 12)
    assert np.isfinite(shared_weights(tree, np.zeros(12))).all()
    for size in (1e-320, 1e-200, 1e200, 1e307):
        alpha = shared_weights(tree, np.full(12, size))
        np.testing.assert_allclose(alpha, shared_weights(tree, np.ones(12)), rtol=1e-3)
    assert penalty(np.zeros(3), np.zeros(3)) == 0


def test_deep_and_wide_trees_take_linear_time():
    n = 50_000  # what is quadratic would take minutes
    star = numbered(n, np.c_[np.zeros(n - 1, int), np.arange(1, n)])
    rng = np.random.default_rng(0)
    bushy = numbered(n, np.c_[[int(rng.integers(k)) for k in range(1, n)], np.arange(1, n)])
    path = numbered(5000, np.c_[np.arange(4999), np.arange(1, 5000)])
    for tree in (star, bushy, path):
        for rule in ("rho:2", "rho:1.001", "maxmin"):
            assert np.isfinite(node_weights(tree, rule).log).all()
        assert np.isfinite(shared_weights(tree, np.ones(len(tree)))).all()
    np.testing.assert_allclose(node_weights(path, "rho:2").values, 1 / 5000)
    np.testing.assert_allclose(node_weights(path, "maxmin").values, 1 / 5000)


# -- the shared Frobenius norm ------------------------------------------------------------------

ROOTED = numbered(4, [[0, 1], [0, 2], [0, 3]])
APART = numbered(3, np.empty((0, 2), int))


def test_full_sharing():
    u = np.array([1.0, -2.0, 0.5, 3.0])
    U = np.tile(u, (3, 1))
    assert shared_norm(U) == pytest.approx(np.linalg.norm(u), rel=1e-4)
    assert shared_norm(U, ROOTED) == pytest.approx(np.linalg.norm(u), rel=1e-4)
    assert np.linalg.norm(U) == pytest.approx(np.sqrt(3) * np.linalg.norm(u))


def test_no_sharing():
    U = np.random.default_rng(0).normal(size=(3, 4))
    assert shared_norm(U, APART) == pytest.approx(np.linalg.norm(U), rel=1e-4)


@pytest.mark.parametrize("hierarchy", [None, ROOTED, APART])
def test_disjoint_features(hierarchy):
    U = np.zeros((3, 6))
    for row in range(3):
        U[row, 2 * row : 2 * row + 2] = [row + 1, -1]
    assert shared_norm(U, hierarchy) == pytest.approx(np.linalg.norm(U), rel=1e-3)
    assert np.linalg.norm(U, "nuc") == pytest.approx(np.linalg.norm(U, axis=1).sum())


def test_factor_scaling():
    u, a = np.array([1.0, 2.0, -1.0]), np.array([0.5, -3.0, 2.0])
    U = np.outer(a, u)
    assert shared_norm(U) == pytest.approx(3 * np.linalg.norm(u), rel=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_order_of_the_norms(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 7)
    U = rng.normal(size=(len(tree.leaves), 3)) * 10.0 ** rng.integers(-3, 4)
    free, along = shared_norm(U), shared_norm(U, tree)
    slack = 1 + 1e-3
    assert np.linalg.norm(U, axis=1).max() <= free * slack
    assert free <= along * slack and along <= np.linalg.norm(U) * slack
    assert np.linalg.norm(U, "nuc") <= np.sqrt(len(U)) * free * slack
    # Along a hierarchy it also equals min tr U' K^-1 U over K = sum alpha_n z_n z_n'.
    paths, alpha = brute_paths(tree), cp.Variable(len(tree), nonneg=True)
    K = sum(alpha[n] * np.outer(z, z) for n, z in enumerate(paths.T))
    unit = U / np.abs(U).max()
    task = cp.Problem(cp.Minimize(cp.matrix_frac(unit, K)), [cp.diag(K) <= 1])
    square = task.solve(solver=cp.CLARABEL)
    assert along / np.abs(U).max() == pytest.approx(np.sqrt(square), rel=1e-3)


def test_norm_of_the_zero_matrix():
    assert shared_norm(np.zeros((3, 2))) == shared_norm(np.zeros((3, 2)), ROOTED) == 0


# -- refusals -----------------------------------------------------------------------------------


def test_bad_arguments_are_refused():
    tree = nx.DiGraph([("r", "a"), ("r", "b")])
    for wrong in ("rho", "rho:1", "rho:0.5", "rho:x", "rho:nan", "maxmin:2", "two", None, 2, ""):
        refused("normalization is", node_weights, tree, wrong)
    refused("needs data", node_weights, tree, "learned")
    for slack in (0.5, np.nan, np.inf, "1"):
        refused("slack is", node_weights, tree, "rho:2", slack=slack)
    for name, value in (("directional", True), ("slack", 1.0)):
        refused(f"{name} is given, but", node_weights, tree, "none", **{name: value})
    refused("DiGraph", node_weights, nx.Graph([(0, 1)]), "rho:2")
    refused("no nodes", node_weights, nx.DiGraph(), "rho:2")
    refused("the cycle 'a' -> 'a'", node_weights, nx.DiGraph([("a", "a")]), "rho:2")
    refused(r"shape \(2,\), expected \(3,\)", shared_weights, tree, [1.0, 2.0])
    refused("node 'b' is -1.0", shared_weights, tree, [1.0, 2.0, -1.0])
    refused("expected 2, one per leaf", shared_norm, np.ones((3, 2)), tree)
    refused("finite", shared_norm, [[np.nan]])
    # Equal sums over all paths force the weight of node 1 to 0: allowed, and its logarithm is -inf.
    dag = numbered(3, [[0, 2], [1, 2], [0, 1]])
    assert node_weights(dag, "rho:2", slack=1).values.sum() == pytest.approx(1, abs=1e-6)
    assert NodeWeights.of([0.0, 1.0]).sqrt.tolist() == [0.0, 1.0]


def test_learned_weights_of_vectors_that_all_but_vanish():
    tree = numbered(3, [[0, 1], [0, 2]])
    for small in (1e-10, 1e-30, 1e-34, 1e-60):
        squares = np.array([1.0, small, small])
        alpha = shared_weights(tree, squares)
        assert alpha[1:] == pytest.approx(np.sqrt(2 * small) / (1 + np.sqrt(2 * small)))
        assert penalty(squares, alpha) == pytest.approx((1 + np.sqrt(2 * small)) ** 2)


def test_leaves_that_need_no_multiplier_hold_no_step_back(monkeypatch):
    # Most vectors vanish: multipliers of most leaves tend to 0.  Steps to the optimum itself once
    # stopped before each of them, 200 times without an end.
    rng = np.random.default_rng(0)
    n = 150
    edges = [(int(rng.integers(v)), v) for v in range(1, n)]
    edges += [tuple(sorted(rng.choice(n, 2, replace=False).tolist())) for _ in range(40)]
    dag = Hierarchy(nx.DiGraph(edges))
    squares = rng.exponential(size=n) * (rng.random(n) < 0.3) + 1e-8
    alpha = shared_weights(dag, squares)
    assert (dag.paths @ alpha).max() <= 1 + 1e-9
    monkeypatch.setattr(shared, "STEPS", 40)
    np.testing.assert_array_equal(shared_weights(dag, squares), alpha)
    least = (squares / alpha).sum()
    assert least <= (squares / shared_weights(dag, squares, 1e-3)).sum() <= least * (1 + 1e-3)
    # The dual of any multipliers bounds the sum from below.
    lam = cp.Variable(dag.paths.shape[0], nonneg=True)
    gain = 2 * cp.sum(cp.multiply(np.sqrt(squares), cp.sqrt(dag.paths.T @ lam))) - cp.sum(lam)
    dual = cp.Problem(cp.Maximize(gain)).solve(solver=cp.CLARABEL)
    assert penalty(squares, alpha) == pytest.approx(dual, rel=1e-6)
