"""Rankings with position-free and low-rank weights, against their definitions."""

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused, reloaded
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import structsolve
from structsolve import ConditionalRiskMinimizer, StructuredSVM
from structsolve.plugins.permutation import PermutationStructure
from structsolve.plugins.permutation.choice import PENALTIES, _left_out, _principal, better_weights
from structsolve.plugins.permutation.degrees import rank_polynomials, smooth_ranks
from structsolve.potentials.calls import score
from structsolve.potentials.make import linear_potentials
from structsolve.potentials.shared import SharedPotentials
from structsolve.testing import check_structure


def rankings(n=40, K=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (-X @ rng.normal(size=(3, K))).argsort(axis=1).argsort(axis=1)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 12), st.data())
def test_polynomials_are_orthogonal_and_of_their_degree(K, data):
    n = data.draw(st.integers(1, K - 1))
    basis = rank_polynomials(K, n)
    assert np.allclose(basis.T @ basis, K * np.eye(n))
    assert np.allclose(basis.sum(axis=0), 0)
    assert (np.diff(basis[:, 0]) < 0).all()
    for j in range(n):
        fitted = np.polynomial.Polynomial.fit(np.arange(K), basis[:, j], j + 1)
        assert np.allclose(fitted(np.arange(K)), basis[:, j])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_features_of_pairs_give_the_scores(seed, intercept, sparse):
    rng = np.random.default_rng(seed)
    K, d = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    n = int(rng.integers(1, K))
    X = rng.integers(-1, 2, (int(rng.integers(1, 5)), d)).astype(float)
    structure, Y = PermutationStructure("ranking", f"rank:{n}"), np.tile(np.arange(K), (len(X), 1))
    given_ = sp.csr_matrix(X) if sparse else X
    space, examples = structure.make_space(given_, Y, fit_intercept=intercept)
    w = rng.normal(size=(d + intercept, K, n))
    Z = np.hstack([X, np.ones((len(X), int(intercept)))])
    expected = np.einsum("if,fkj,rj->ikr", Z, w, rank_polynomials(K, n))
    scores = examples.nodes.tocsr() @ w.ravel()
    assert np.allclose(scores.reshape(len(X), K, K), expected)
    potentials = linear_potentials(space.layout, examples, "ranking", True)
    assert isinstance(potentials, SharedPotentials)
    padded = np.append(w.ravel(), np.zeros(potentials.dim - w.size))
    for i in range(len(X)):
        assert np.allclose(score(potentials, i, padded, 2.0), 2 * expected[i].ravel())


@pytest.mark.parametrize("weights", ["scores", "rank:2"])
def test_predictions_are_those_of_the_definition(weights, tmp_path):
    X, Y = rankings()
    structure = PermutationStructure(weights=weights)
    model = StructuredSVM(structure, loss="spearman", alpha=1e-3, tol=0.01).fit(X, Y)
    assert model.n_features_in_ == 3
    n = 1 if weights == "scores" else 2
    w = model.coef_["pair"].reshape(4, 4, n)
    table = np.einsum("if,fkj,rj->ikr", np.c_[X, np.ones(len(X))], w, rank_polynomials(4, n))
    best = model.decision_function(X)
    predicted = model.predict(X)
    assert np.allclose(
        best.max(axis=(1, 2)), np.take_along_axis(table, predicted[:, :, None], 2).sum(axis=(1, 2))
    )
    if weights == "scores":
        order = np.argsort(-table[:, :, 0], axis=1)
        assert np.array_equal(predicted, np.argsort(order, axis=1))
    assert np.abs(predicted - Y).sum(axis=1).mean() < 0.5
    assert np.array_equal(reloaded(model, tmp_path).predict(sp.csr_matrix(X)), predicted)
    assert np.allclose(model.predict_marginals(X).sum(axis=2), 1)


def test_kit():
    check_structure(PermutationStructure(weights="scores"), n_cases=1)


def test_shell_spelling_and_refusals():
    assert structsolve.get_structure("permutation", weights="rank:3").weights == "rank:3"
    X, Y = rankings()
    for weights in ("score", "rank:0", "rank:x", "rank:-1", 2, None):
        structure = PermutationStructure(weights=weights)
        refused("weights is", StructuredSVM(structure).fit, X, Y)
    refused("expected less than 4", StructuredSVM(PermutationStructure(weights="rank:4")).fit, X, Y)
    pairs = PermutationStructure(weights="scores")
    refused("expected 'matrix'", StructuredSVM(pairs).fit, [np.zeros((2, 2, 1))], [[0, 1]])
    model = StructuredSVM(PermutationStructure(weights="scores"), max_iter=2, tol=0.9).fit(X, Y)
    refused("features", model.predict, X[:, :2])


@pytest.mark.parametrize("d, sparse", [(3, False), (30, False), (3, True), (30, True)])
def test_left_out_rows_are_those_of_refits(d, sparse):
    rng = np.random.default_rng(d)
    n, targets = 20, rng.normal(size=(20, 4))
    X = rng.integers(-2, 3, (n, d)).astype(float)
    X *= 10.0 ** rng.integers(-3, 4, d)
    X[:, 1] = 0.3
    Z = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 1e-9, X.std(axis=0), 1)
    vectors, values = _principal(sp.csr_matrix(X) if sparse else X)
    assert np.allclose(np.linalg.svd(Z - Z.mean(axis=0))[1][: len(values)] ** 2, values[::-1])
    refits = []
    for penalty in PENALTIES:
        predicted = []
        for i in range(n):
            A, y = np.delete(Z, i, axis=0), np.delete(targets, i, axis=0)
            inner = A - A.mean(axis=0)
            ridge = inner.T @ inner + penalty * values.mean() * np.eye(d)
            w = np.linalg.solve(ridge, inner.T @ (y - y.mean(axis=0)))
            predicted.append((Z[i] - A.mean(axis=0)) @ w + y.mean(axis=0))
        refits.append(np.array(predicted))
    expected = min(refits, key=lambda guess: np.square(guess - targets).sum())
    assert np.allclose(_left_out(vectors, values, targets), expected)


def noisy(n=200, d=30, K=5):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d))
    scores = X @ rng.normal(size=(d, K)) + 2 * rng.normal(size=(n, K))
    return X, (-scores).argsort(axis=1).argsort(axis=1)


@pytest.mark.parametrize("value, told", [(np.nan, "contains NaN"), (1e200, "expected numbers")])
def test_features_that_training_refuses_are_named(value, told):
    """The choice of the default weights came first, and its eigenvalues did not converge."""
    X, Y = noisy(40)
    X[3, 2] = value
    for features in (X, sp.csr_matrix(X)):
        refused(rf"X: .*{told}", StructuredSVM("permutation").fit, features, Y)


def test_rankings_as_a_sparse_matrix():
    X, Y = noisy(40)
    models = [StructuredSVM("permutation", tol=0.1).fit(X, y) for y in (Y, sp.csr_matrix(Y))]
    assert np.array_equal(models[0].predict(X), models[1].predict(X))
    assert models[1].score(X, sp.csr_matrix(Y)) == models[0].score(X, Y)


def test_the_default_does_not_depend_on_how_features_are_stored_or_scaled():
    chosen = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 20)) * (rng.random((60, 20)) < 0.5)
        Y = (X @ rng.normal(size=(20, 5)) + rng.normal(size=(60, 5))).argsort(axis=1).argsort()
        scaled = X * 10.0 ** rng.integers(-3, 4, 20)
        answers = {better_weights(x, Y) for x in (X, scaled, sp.csr_matrix(scaled))}
        assert len(answers) == 1
        chosen += answers
    assert {*chosen} == {"scores", "smooth"}


def test_the_default_takes_what_left_out_rows_prefer(tmp_path):
    X, Y = noisy()
    ends = np.where(X[:, :1] > 0, [0, 1, 2, 3, 4], [4, 1, 2, 3, 0])  # first, last or in the middle
    middle = np.where(np.abs(X[:, :1]) > 0.7, [0, 4, 1, 2, 3], [1, 2, 0, 3, 4])
    assert better_weights(X, Y) == better_weights(sp.csr_matrix(X), Y) == "scores"
    weight = np.repeat([1, 0], [100, 200])
    assert better_weights(np.tile(X[:100], (3, 1)), np.tile(Y[:100], (3, 1)), weight) == "scores"
    assert better_weights(np.r_[X, X], np.r_[Y, ends], np.repeat([0, 1], 200)) == "matrix"
    assert better_weights(X[:9], Y[:9]) == better_weights(0 * X, Y) == "smooth"
    assert better_weights(np.abs(X), middle) == "smooth"  # both predict it
    other = np.where(np.abs(X[:, :1]) > 0.7, [0, 4, 1, 2, 3], [4, 0, 1, 2, 3])
    assert better_weights(np.abs(X), other) == better_weights(X[:, :1], ends) == "matrix"
    model = StructuredSVM("permutation").fit(X[:150], Y[:150])
    assert model.space_.structure.weights == "scores" and "pair" in model.coef_
    matrix = StructuredSVM(PermutationStructure(weights="matrix")).fit(X[:150], Y[:150])
    fewer = [m.score(X[150:], Y[150:], metric="kendall-tau") for m in (model, matrix)]
    assert fewer[0] > fewer[1] + 0.05
    assert np.array_equal(reloaded(model, tmp_path).predict(X), model.predict(X))
    kept = np.arange(150) % 3 > 0  # rows of weight 0 count for nothing
    weighted = StructuredSVM("permutation", alpha=0.01, tol=1e-6, max_iter=500)
    weighted.fit(X[:150], Y[:150], sample_weight=kept.astype(float))
    alone = clone(weighted).fit(X[:150][kept], Y[:150][kept])
    assert np.allclose(weighted.coef_["pair"], alone.coef_["pair"], atol=0.02)
    for settings_ in ({"kernel": "rbf"}, {"structure": PermutationStructure(weights="matrix")}):
        other = StructuredSVM(**{"structure": "permutation", **settings_}).fit(X, Y)
        assert other.space_.structure.weights in ("auto", "matrix"), settings_
        assert (other.space_.node_mix is None) == ("structure" in settings_)
    model = StructuredSVM("permutation").fit(X[:, :1], ends)
    assert model.space_.structure.weights == "matrix" and model.space_.node_mix is None
    refused("200 rows of X, 9 rankings", StructuredSVM("permutation").fit, X, Y[:9])


def test_smooth_weights_cost_what_they_bend(tmp_path):
    X, Y = noisy(60, 6)
    smooth = StructuredSVM(PermutationStructure(weights="smooth"), tol=1e-6, max_iter=3000)
    smooth.fit(X, Y)
    plain = clone(smooth).set_params(structure__weights="matrix").fit(X, Y)
    assert smooth.alpha_ == plain.alpha_  # that of the same weights
    M, problem = (
        smooth_ranks(5),
        structsolve.Problem(plain.space_, plain.space_.pack(X, Y), "spearman"),
    )
    assert np.square(np.linalg.eigvalsh(M)).sum() == pytest.approx(5)

    def objective(model):
        w = plain.space_.layout.view(model.flat_weights(), "node") @ np.linalg.inv(M)
        value = problem.weights @ problem.bounds(model.flat_weights())[0]
        return float(value) + 0.5 * model.alpha_ * float(np.square(w).sum())

    assert objective(smooth) == pytest.approx(smooth.history_[-1]["primal"])
    assert objective(smooth) < objective(plain)
    assert np.array_equal(reloaded(smooth, tmp_path).predict(X), smooth.predict(X))
    again = clone(smooth).set_params(warm_start=True).fit(X, Y).fit(X, Y)
    assert again.n_iter_ <= 2 and np.allclose(again.predict(X), smooth.predict(X))
    refused("weights is 'smooth'", clone(smooth).fit, [np.zeros((2, 2, 1))], [[0, 1]])


def test_alpha_counts_examples_not_pairs():
    X, Y = noisy()
    alpha = {
        w: StructuredSVM(PermutationStructure(weights=w), max_iter=1, tol=0.99).fit(X, Y).alpha_
        for w in ("matrix", "scores", "rank:2")
    }
    assert alpha["matrix"] / 10 < min(alpha["scores"], alpha["rank:2"])
    assert PermutationStructure(weights="scores").alike_nodes
    assert not PermutationStructure().alike_nodes


@pytest.mark.parametrize("weights, R", [("auto", 1), ("rank:2", 2)])
def test_weights_by_name(weights, R):
    """Names were expected for each feature and label, so that ``info`` of named columns failed."""
    X, Y = noisy(d=6)
    names = list("abcdef")
    model = StructuredSVM(PermutationStructure(weights=weights), tol=0.1).fit(X, Y)
    values = model.coef_["pair"].reshape(7, 5, R)
    table = model.info(top=None, feature_names=names)["pair"]
    assert len(table) == np.count_nonzero(values)
    for row in table:
        f, j = [*names, "intercept"].index(row["feature"]), row.get("degree", 1) - 1
        assert row["weight"] == values[f, row["class"], j]
    assert {row["feature"] for row in model.info(top=None)["pair"]} == {*range(6), "intercept"}
    refused("feature_names has 5 entries, expected 6", model.info, feature_names=names[:5])
    assert len(model.named_weights(names)) == len(table)


@pytest.mark.parametrize("weights", ["scores", "rank:2"])
def test_kernels_compare_rows_of_x_alone(weights):
    structure = PermutationStructure(weights=weights)
    X, ranks = structure.sample(0, n=12, size=3)
    told = "'permutation' makes features of its own from X, for each class and degree, .* a kernel"
    for model in (
        StructuredSVM(structure, kernel="rbf"),
        StructuredSVM(structure, kernel="precomputed"),
        ConditionalRiskMinimizer(structure),
        ConditionalRiskMinimizer(structure, kernel=None),
    ):
        refused(told, model.fit, X @ X.T, ranks)
    linear = StructuredSVM(structure, kernel="linear", alpha=0.1, tol=1e-6).fit(X, ranks)
    plain = clone(linear).set_params(kernel=None).fit(X, ranks)
    assert linear.history_[-1]["primal"] == pytest.approx(plain.history_[-1]["primal"], rel=1e-5)
