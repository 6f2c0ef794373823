"""Potentials of nodes that share rows of features, against those of each node's own features."""

from dataclasses import replace

import numpy as np
import pytest
from checks import refused
from potential_cases import adjoint_agrees, trained
from scipy import sparse
from solver_cases import begin, follow

from structsolve.examples.packed import Examples
from structsolve.examples.scaling import scale_columns
from structsolve.examples.shared_rows import SharedRows, Table
from structsolve.plugins.permutation import PermutationStructure
from structsolve.potentials.calls import add_gram, move_gram, score
from structsolve.potentials.linear import LinearPotentials
from structsolve.potentials.make import linear_potentials
from structsolve.potentials.shared import MOST, SharedPotentials, SharedTable
from structsolve.potentials.weight_layout import Block, WeightLayout
from structsolve.solvers import ConsensusADMM
from structsolve.solvers.held import features_of
from structsolve.solvers.passes import example_subgradients
from structsolve.solvers.problem import Problem
from structsolve.structure.used_columns import with_all_columns, with_used_columns


def cases(kind, constant, P=6, C=4, n=5, d=3, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    rows = {"ones": (rows != 0).astype(float), "float32": rows.astype(np.float32)}.get(kind, rows)
    rows = sparse.csr_matrix(rows) if kind in ("sparse", "ones") else rows
    table = rng.normal(size=(P, C)) * (rng.random((P, C)) < 0.5)
    nodes = SharedRows(rows, Table(sparse.csr_matrix(table)), constant)
    layout = WeightLayout([Block("part", "node", (1,))], nodes.shape[1])
    return layout, Examples(P * np.arange(n + 1), nodes), rng


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("kind", ["dense", "float32", "sparse", "ones"])
def test_operations_agree_with_features_of_each_node(kind, constant):
    layout, examples, rng = cases(kind, constant)
    own = SharedPotentials(examples, layout)
    plain = LinearPotentials(examples, layout)  # takes the matrix
    assert own.max_theta == plain.max_theta == 6 and own.dim == plain.dim
    assert own.nbytes < plain.nbytes and own.work < plain.work and own.has_weights
    assert own.plain_nodes and own.has_gram and own.squared_norm(np.ones(own.dim)) == own.dim
    w = np.zeros(layout.dim)
    w[: examples.nodes.shape[1]] = rng.normal(size=examples.nodes.shape[1])
    for i in range(examples.n):
        theta = score(own, i, w, 2.0)
        np.testing.assert_allclose(theta, score(plain, i, w, 2.0), atol=1e-12)
        for index in (rng.choice(6, 9), np.array([4]), np.arange(6)):
            index, value = index.astype(np.int32), rng.normal(size=len(index))
            adjoint_agrees(own, i, w, theta / 2, index, value, 1e-10)
            u, moved = np.zeros(6), theta.copy()
            add_gram(own, i, index, value, 1.5, u)
            expected = theta + 0.4 * u
            move_gram(own, i, index, 0.4, u, moved)
            np.testing.assert_allclose(moved, expected)
            assert not u.any()


def test_wide_tables_are_the_matrix():
    layout, examples, rng = cases("dense", True, C=MOST + 1)
    w = rng.normal(size=layout.dim)
    made = linear_potentials(layout, examples, "any", False)
    assert type(made) is LinearPotentials
    refused("1025 columns, expected at most 1024", SharedPotentials, examples, layout)
    refused("1025 columns", SharedTable, examples.nodes.table.matrix)
    theta = examples.nodes.tocsr() @ w[: examples.nodes.shape[1]]
    np.testing.assert_allclose(score(made, 1, w), theta[6:12])


def test_examples_that_do_not_fit_are_refused():
    layout, examples, _ = cases("dense", True)
    told = "expected a row for each of .* examples"
    refused(
        told, SharedPotentials, replace(examples, offsets=np.array([0, 5, 12, 18, 24, 30])), layout
    )
    refused(told, SharedPotentials, replace(examples, offsets=6 * np.arange(3)), layout)
    for other in (WeightLayout([Block("part", "node", (2,))], 16), WeightLayout(layout.blocks, 24)):
        refused(told, SharedPotentials, examples, other)
    examples.nodes.rows[3, 1] = np.nan
    refused("NaN .example 3, row 0.", SharedPotentials, examples, layout)


def rankings(weights, kind, n=40, K=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6)) * (rng.random((n, 6)) < 0.8)
    Y = (X @ rng.normal(size=(6, K)) + rng.normal(size=(n, K))).argsort(axis=1).argsort(axis=1)
    X = sparse.csr_matrix(X) if kind == "sparse" else X
    space, examples = PermutationStructure("ranking", weights).make_space(X, Y)
    return space, examples, replace(examples, nodes=examples.nodes.tocsr())


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("weights", ["scores", "rank:2"])
@pytest.mark.parametrize("solver", ["bcfw", "gbcfw", "cutting-plane", "admm", "auto"])
def test_training_reaches_the_same_optimum(solver, weights, kind):
    space, *both = rankings(weights, kind)
    surrogate = "sparsemap" if solver == "gbcfw" else "margin"
    records = []
    for examples in both:
        problem = Problem(space, examples, "spearman", surrogate)
        w, record = trained(problem, 0.05, solver)
        assert problem.primal(w, 0.05)[0] == pytest.approx(record["primal"], rel=1e-9)
        records.append(record)
    one, other = records
    assert max(one["dual"], other["dual"]) <= min(one["primal"], other["primal"]) * (1 + 1e-9)
    assert one["primal"] == pytest.approx(other["primal"], rel=3e-6)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("weights", ["scores", "rank:2"])
@pytest.mark.parametrize("solver", ["perceptron", "passive-aggressive", "arow", "sgd"])
def test_the_steps_are_the_same(solver, weights, kind):
    space, *both = rankings(weights, kind)
    weights_of = []
    for examples in both:
        problem = Problem(space, examples, "spearman")
        weights_of.append(trained(problem, 0.05, solver, passes=8)[0])
    np.testing.assert_allclose(*weights_of, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_subgradients_of_examples_are_cleared(kind):
    space, *both = rankings("rank:2", kind)
    w = np.random.default_rng(1).normal(size=space.layout.dim)
    one, other = (
        example_subgradients(Problem(space, e, "spearman"), w, np.arange(40), np.copy) for e in both
    )
    np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize("constant", [False, True])
def test_unused_columns_of_rows_are_left_out(constant):
    rng = np.random.default_rng(0)
    X = np.zeros((12, 40))
    X[:, [3, 8, 30]] = rng.normal(size=(12, 3))
    X[4] = 0
    X, Y = sparse.csr_matrix(X), np.array([rng.permutation(4) for _ in X])
    structure = PermutationStructure("ranking", "rank:2")
    space, examples = structure.make_space(X, Y, fit_intercept=constant)
    plain = replace(examples, nodes=examples.nodes.tocsr())
    narrow, few = with_used_columns(space, examples)
    other, _ = with_used_columns(space, plain)
    assert isinstance(few.nodes, SharedRows) and few.nodes.shape[1] == (3 + constant) * 8
    assert (narrow.column_entries != other.column_entries).nnz == 0
    np.testing.assert_array_equal(narrow.column_norms, other.column_norms)
    back = with_all_columns(narrow, few).nodes
    assert isinstance(back, SharedRows) and (back.tocsr() != plain.nodes).nnz == 0
    problem = Problem(narrow, few, "spearman")
    w = rng.normal(size=problem.dim) * (np.arange(problem.dim) < few.nodes.shape[1])
    model = problem.model(w)
    for i in range(12):
        theta = score(problem.potentials, i, w)
        np.testing.assert_allclose(score(*model.scores(examples)[:1], i, model.weights), theta)
    X.data[:] = 0
    empty = structure.make_space(sparse.csr_matrix(X.shape), Y, fit_intercept=constant)
    assert (with_used_columns(*empty)[0].whole is None) == (not constant)


def test_shards_hold_their_columns_alone():
    rng = np.random.default_rng(0)
    X = sparse.random(60, 90, 0.03, format="csr", random_state=0)
    Y = np.array([rng.permutation(3) for _ in range(60)])
    space, examples = PermutationStructure("ranking", "scores").make_space(X, Y)
    records = []
    for nodes in (examples.nodes, examples.nodes.tocsr()):
        problem = Problem(space, replace(examples, nodes=nodes), "spearman")
        picks = np.arange(0, 60, 2)
        records.append(features_of(problem, picks))
        run = begin(ConsensusADMM(3, certify_every=1), problem, 0.05, 0, tol=1e-5)
        assert run.common is not None
        records.append(follow(run, 1e-5, 800)[-1]["primal"])
    np.testing.assert_array_equal(records[0], records[2])
    assert records[1] == pytest.approx(records[3], rel=2e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("scaling", ["common", True, "std"])
def test_scaled_features_are_those_of_the_matrix(scaling, kind, weighted):
    space, *both = rankings("rank:2", kind)
    scaled = []
    for examples in both:
        if weighted:
            examples = replace(examples, sample_weight=np.arange(40) % 3.0)
        scaled.append(scale_columns(examples, space.layout, "ranking", scaling))
    one, other = scaled
    assert isinstance(one.nodes, SharedRows) == (scaling == "common")
    np.testing.assert_allclose(one.nodes.tocsr().toarray(), other.nodes.toarray(), atol=1e-15)
    np.testing.assert_allclose(one.scaling.factors, other.scaling.factors)
