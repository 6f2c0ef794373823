"""Rankings with position-free and low-rank weights, against their definitions."""

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused, reloaded
from hypothesis import given, settings
from hypothesis import strategies as st

import structsolve
from structsolve import StructuredSVM
from structsolve.plugins.permutation import PermutationStructure
from structsolve.plugins.permutation.degrees import expand, rank_polynomials
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
    basis = rank_polynomials(K, n)
    w = rng.normal(size=(d + intercept, K, n))
    features = expand(sp.csr_matrix(X) if sparse else X, K, basis, intercept)
    Z = np.hstack([X, np.ones((len(X), int(intercept)))])
    expected = np.einsum("if,fkj,rj->ikr", Z, w, basis)
    assert np.allclose((features @ w.ravel()).reshape(len(X), K, K), expected)
    features.sort_indices()
    assert features.has_canonical_format


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
