"""Kernel models: a linear kernel is the linear model, others against independent solutions."""

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused, reloaded
from data import chains, classes
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.model_selection import GridSearchCV

import structsolve
from structsolve import Sequences, StructuredSVM
from structsolve.plugins.multilabel import MultilabelStructure
from structsolve.potentials import mercer as kernel
from structsolve.solvers import BCFW
from structsolve.utils import container

TIGHT = {"alpha": 0.05, "tol": 1e-9, "max_iter": 3000}


def label_sets(n=40, seed=0):
    X, _ = classes(n, seed=seed)
    Y = (X[:, :3] + np.random.default_rng(seed).normal(size=(n, 3)) > 0).astype(int)
    return X, Y


def with_edges(seed=0):
    X, Y = chains(20, seed=seed)
    rng = np.random.default_rng(seed)
    return [(x, rng.normal(size=(len(x) - 1, 2))) for x in X], Y


KINDS = {
    "multiclass": ("multiclass", lambda: classes(40)),
    "multiclass csr": ("multiclass", lambda: (sp.csr_matrix(classes(40)[0]), classes(40)[1])),
    "chain": ("chain", lambda: chains(20)),
    "chain csr": ("chain", lambda: ([sp.csr_matrix(x) for x in chains(20)[0]], chains(20)[1])),
    "chain edges": ("chain", with_edges),
    "multilabel": (MultilabelStructure(edges="none"), label_sets),
    "multilabel tree": (MultilabelStructure(edges="tree"), label_sets),
}


def scores(model, X):
    decisions = model.decision_function(X)
    return np.concatenate(decisions) if isinstance(decisions, list) else decisions


def equal(a, b):
    """Two fitted kernel models are the same, bit for bit."""
    return (
        np.array_equal(a.dual_coef_, b.dual_coef_)
        and np.array_equal(a.support_, b.support_)
        and all(np.array_equal(a.coef_[k], b.coef_[k]) for k in a.coef_)
        and [(h["primal"], h["dual"]) for h in a.history_]
        == [(h["primal"], h["dual"]) for h in b.history_]
    )


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_linear_kernel_is_the_linear_model(kind, intercept):
    structure, make = KINDS[kind]
    X, y = make()
    plain = StructuredSVM(structure, fit_intercept=intercept, **TIGHT).fit(X, y)
    model = StructuredSVM(structure, fit_intercept=intercept, kernel="linear", **TIGHT).fit(X, y)
    for name in ("primal", "dual"):
        assert model.history_[-1][name] == pytest.approx(plain.history_[-1][name], rel=5e-9)
    assert 0 <= model.history_[-1]["gap"] + 1e-12 <= 2e-9 * model.history_[-1]["primal"] + 1e-12
    np.testing.assert_allclose(scores(model, X), scores(plain, X), atol=2e-4)
    assert model.score(X, y) == plain.score(X, y)
    for name in model.coef_:
        np.testing.assert_allclose(model.coef_[name], plain.coef_[name], atol=2e-4)


@pytest.mark.parametrize("steps", ["pairwise", "frank-wolfe", "exact"])
def test_every_kind_of_step(steps):
    X, y = classes(30)
    solver = BCFW(steps=steps)
    options = {"alpha": 0.1, "tol": 1e-5, "max_iter": 3000, "solver": solver}
    plain = StructuredSVM("multiclass", **options).fit(X, y)
    model = StructuredSVM("multiclass", kernel="linear", **options).fit(X, y)
    assert model.history_[-1]["dual"] == pytest.approx(plain.history_[-1]["dual"], rel=2e-5)
    assert model.stop_reason_ == "converged"


@pytest.mark.parametrize("kind", ["multiclass", "chain", "multilabel tree"])
def test_explicit_features_of_a_kernel_give_its_model(kind):
    structure, make = KINDS[kind]
    X, y = make()
    rows = np.concatenate(X) if isinstance(X, list) else X
    K = rbf_kernel(rows, gamma=0.1)
    values, vectors = np.linalg.eigh(K)
    F = vectors * np.sqrt(np.maximum(values, 0))
    cut = np.cumsum([len(x) for x in X])[:-1] if isinstance(X, list) else None
    explicit = F if cut is None else np.split(F, cut)
    given_rows = K if cut is None else np.split(K, cut)
    plain = StructuredSVM(structure, **TIGHT).fit(explicit, y)
    model = StructuredSVM(structure, kernel="rbf", kernel_params={"gamma": 0.1}, **TIGHT)
    model.fit(X, y)
    ready = StructuredSVM(structure, kernel="precomputed", **TIGHT).fit(given_rows, y)
    best = plain.history_[-1]
    for one, data in ((model, X), (ready, given_rows)):
        assert one.history_[-1]["primal"] == pytest.approx(best["primal"], rel=1e-6)
        assert one.history_[-1]["dual"] == pytest.approx(best["dual"], rel=1e-6)
        np.testing.assert_allclose(scores(one, data), scores(plain, explicit), atol=1e-3)


def crammer_singer(K, y, alpha):
    """Return the optimum of the dual, and the scores there, by cvxpy."""
    import cvxpy as cp

    n, k = len(y), y.max() + 1
    truth = np.eye(k)[y]
    mu = cp.Variable((n, k))
    duals = (truth - mu) / (alpha * n)
    L = np.linalg.cholesky(K + 1e-10 * np.eye(n))
    value = cp.sum(cp.multiply(1 - truth, mu)) / n - alpha / 2 * cp.sum_squares(L.T @ duals)
    problem = cp.Problem(cp.Maximize(value), [mu >= 0, cp.sum(mu, axis=1) == 1])
    problem.solve(solver="CLARABEL")
    return problem.value, K @ duals.value


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "metric, params", [("rbf", {"gamma": 0.5}), ("poly", {"degree": 2, "gamma": None})]
)
def test_against_a_conic_solver(metric, params, seed):
    X, y = classes(14, seed=seed)
    y = np.unique(y, return_inverse=True)[1]
    K = pairwise_kernels(X, metric=metric, **params)
    optimum, expected = crammer_singer(K, y, 0.02)
    model = StructuredSVM(
        "multiclass", kernel=metric, kernel_params=params, fit_intercept=False, alpha=0.02,
        tol=1e-9, max_iter=5000,
    ).fit(X, y)  # fmt: skip
    assert model.history_[-1]["dual"] == pytest.approx(optimum, rel=1e-6, abs=1e-8)
    reached = K[:, model.support_] @ model.dual_coef_
    np.testing.assert_allclose(reached, expected, atol=1e-3 * np.abs(expected).max())


def test_two_classes_are_sklearns_svc():
    from sklearn.svm import SVC

    X, y = classes(60, n_classes=2, seed=3)
    K = rbf_kernel(X, gamma=0.3)
    alpha = 0.02
    ours = StructuredSVM("multiclass", kernel="precomputed", fit_intercept=False,
                         alpha=alpha, tol=1e-9, max_iter=5000).fit(K, y)  # fmt: skip
    # SVC's bias is free: with a large constant in the kernel ours is practically free, too.
    big = StructuredSVM("multiclass", kernel="precomputed", fit_intercept=False,
                        alpha=alpha, tol=1e-9, max_iter=20000).fit(K + 1e3, y)  # fmt: skip
    # f = f1 - f0 with w0 = -w1: alpha/2 ||w||^2 is alpha/4 ||f||^2.
    svc = SVC(kernel="precomputed", C=2 / (alpha * len(y)), tol=1e-8).fit(K, y)
    assert ours.history_[-1]["primal"] >= big.history_[-1]["primal"] - 1e-6
    np.testing.assert_allclose(big.decision_function(K + 1e3), svc.decision_function(K), atol=0.02)


def naive(space, examples, K, w_duals, rest, alpha):
    """Return the objective from the duals, by enumeration of all labels."""
    total = 0.0
    scores_ = K @ w_duals
    for i in range(examples.n):
        a, z = examples.offsets[i : i + 2]
        best = -np.inf
        truth = examples.label(i)

        def score(label, a=a, z=z):
            value = scores_[np.arange(a, z), label].sum()
            value += rest["transition"][label[:-1], label[1:]].sum()
            return value + rest["start"][label[0]] + rest["end"][label[-1]]

        for label in space.enumerate_labels(examples, i):
            hamming = (label != truth).sum()
            best = max(best, hamming + score(label) - score(truth))
        total += best / examples.n
    norm = np.sum(w_duals * (K @ w_duals)) + sum(np.sum(v**2) for v in rest.values())
    return total + alpha / 2 * norm


def test_the_primal_is_the_objective_of_the_stored_model():
    X, y = chains(12, longest=3)
    model = StructuredSVM("chain", kernel="rbf", kernel_params={"gamma": 0.2}, alpha=0.05, tol=1e-4)
    model.fit(X, y)
    rows = np.concatenate(X)
    K = rbf_kernel(rows, gamma=0.2) + 1
    duals = np.zeros((len(rows), len(model.classes_)))
    duals[model.support_] = model.dual_coef_
    rest = {k: v for k, v in model.coef_.items() if k != "intercept"}
    np.testing.assert_allclose(model.coef_["intercept"], duals.sum(axis=0), atol=1e-12)
    packed = model.space_.pack(X, y)
    objective = naive(model.space_, packed, K, duals, rest, 0.05)
    assert objective == pytest.approx(model.history_[-1]["primal"], rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 4), st.booleans())
def test_small_and_degenerate_cases(seed, n, k, ties):
    rng = np.random.default_rng(seed)
    X = rng.integers(-1, 2, (n, 2)).astype(float) if ties else rng.normal(size=(n, 2)) * 10
    y = rng.integers(0, k, n)
    options = {"alpha": float(10 ** rng.uniform(-3, 1)), "tol": 1e-6, "max_iter": 4000}
    plain = StructuredSVM("multiclass", **options).fit(X, y)
    model = StructuredSVM("multiclass", kernel="linear", **options).fit(X, y)
    ours, theirs = model.history_[-1], plain.history_[-1]
    scale = max(theirs["primal"], 1e-9)
    # The same problem: the dual of each is below the primal of the other.
    assert ours["dual"] <= theirs["primal"] + 1e-9 * scale
    assert theirs["dual"] <= ours["primal"] + 1e-9 * scale
    if model.stop_reason_ == plain.stop_reason_ == "converged":
        assert ours["primal"] == pytest.approx(theirs["primal"], abs=3e-6 * scale)
        assert ours["dual"] == pytest.approx(theirs["dual"], abs=3e-6 * scale)


@pytest.mark.parametrize("kind", ["multiclass", "chain", "multilabel tree"])
def test_the_cache_never_changes_an_answer(kind, monkeypatch):
    structure, make = KINDS[kind]
    X, y = make()
    X, y = X[:12], y[:12]
    model = StructuredSVM(structure, kernel="rbf", alpha=0.5, max_iter=10, tol=1e-3)
    large = clone(model).fit(X, y)
    monkeypatch.setattr(kernel, "BLOCK_BYTES", 800)  # some rows at a time
    several = clone(model).fit(X, y)
    small = clone(model).set_params(cache_size=0).fit(X, y)
    some = clone(model).set_params(cache_size=0.003).fit(X, y)
    assert equal(several, small)
    assert equal(several, some)
    assert several.memory_["examples"] > small.memory_["examples"]
    assert large.history_[-1]["dual"] == pytest.approx(small.history_[-1]["dual"], rel=2e-3)


def test_threads_and_repetition_never_change_an_answer():
    X, y = chains(40)
    model = StructuredSVM("chain", kernel="rbf", alpha=0.02, max_iter=20, tol=1e-5)
    first = clone(model).fit(X, y)
    again = clone(model).fit(X, y)
    threads = clone(model).set_params(n_jobs=3).fit(X, y)
    assert equal(first, again)
    assert equal(first, threads)
    for a, b in zip(first.decision_function(X), threads.decision_function(X)):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("kind", ["multiclass", "chain"])
def test_a_checkpoint_continues_bit_for_bit(kind, tmp_path):
    structure, make = KINDS[kind]
    X, y = make()
    model = StructuredSVM(structure, kernel="rbf", alpha=0.01, max_iter=12, tol=0)
    whole = clone(model).fit(X, y)
    path = tmp_path / "state"
    stop = [lambda record: record["pass"] == 5]
    clone(model).set_params(checkpoint=path, callbacks=stop).fit(X, y)
    resumed = clone(model).set_params(checkpoint=path).fit(X, y)
    assert equal(whole, resumed)
    with pytest.raises(ValueError, match="checkpoint"):
        clone(model).set_params(kernel_params={"gamma": 3.0}, checkpoint=path).fit(X, y)


def test_warm_start_path_and_early_stopping():
    X, y = chains(30)
    model = StructuredSVM("chain", kernel="rbf", alpha=0.5, tol=1e-6, max_iter=500, warm_start=True)
    model.fit(X, y)
    cold = clone(model).set_params(alpha=0.1).fit(X, y)
    warm = model.set_params(alpha=0.1).fit(X, y)
    assert warm.history_[-1]["primal"] == pytest.approx(cold.history_[-1]["primal"], rel=3e-6)
    models = clone(model).set_params(warm_start=False).path(X, y, [0.1, 0.5])
    assert [m.alpha for m in models] == [0.1, 0.5]
    assert models[0].history_[-1]["primal"] == pytest.approx(cold.history_[-1]["primal"], rel=3e-6)
    np.testing.assert_allclose(scores(models[0], X), scores(cold, X), atol=1e-2)
    early = StructuredSVM("chain", kernel="rbf", early_stopping=True, max_iter=20, tol=0.01)
    assert "validation_score" in early.fit(X, y).history_[-1]
    given = StructuredSVM("chain", kernel="rbf", max_iter=20, tol=0.01)
    last = given.fit(X, y, validation=(X, y)).history_[-1]
    assert last["validation_score"] == given.score(X, y)


def test_attributes_and_pickle_free_files(tmp_path):
    X, y = chains(25)
    for data in (X, [sp.csr_matrix(x) for x in X]):
        model = StructuredSVM("chain", kernel="rbf", kernel_params={"gamma": 0.1}, alpha=0.5)
        model.fit(data, y)
        assert 0 < len(model.support_) <= sum(map(len, y))
        assert model.support_vectors_.shape == (len(model.support_), 6)
        assert model.dual_coef_.shape == (len(model.support_), 3)
        with pytest.raises(
            KeyError, match="no weights for the features of its nodes; use dual_coef_"
        ):
            model.coef_["node"]
        assert {name for name, *_ in model.named_weights()} == {
            "transition", "start", "end", "intercept"}  # fmt: skip
        again = reloaded(model, tmp_path)
        assert again.get_params()["kernel_params"] == {"gamma": 0.1}
        assert np.array_equal(scores(again, data), scores(model, data))
        assert np.array_equal(again.dual_coef_, model.dual_coef_)
    X, y = classes()
    model = StructuredSVM("multiclass", kernel="rbf", fit_intercept=False).fit(X, y)
    refused("no weights to name", model.named_weights)
    model.set_params(kernel=None).fit(X, y)
    assert "node" in model.coef_ and not hasattr(model, "dual_coef_")


def test_a_precomputed_model_in_a_file(tmp_path):
    X, y = classes()
    K = rbf_kernel(X)
    model = StructuredSVM("multiclass", kernel="precomputed").fit(K, y)
    assert model.support_vectors_ is None
    again = reloaded(model, tmp_path)
    assert np.array_equal(again.decision_function(K[:7]), model.decision_function(K[:7]))


def test_words_in_place_of_numbers_in_a_file(tmp_path):
    X, y = classes()
    StructuredSVM("multiclass", kernel="rbf", max_iter=3).fit(X, y).save(tmp_path / "m")
    meta, arrays = container.read(tmp_path / "m", "model")
    duals = next(name for name in arrays if name.endswith("duals"))
    arrays[duals] = arrays[duals].astype("U8")
    container.write(tmp_path / "m", "model", meta, arrays)
    refused("duals holds <U8, expected floating-point numbers", structsolve.load, tmp_path / "m")


def test_functions_as_kernels(tmp_path):
    X, y = classes()
    seen = []

    def mine(A, B, power=2):
        seen.append((type(A), A.dtype, A.flags.c_contiguous))
        return (A @ B.T + 1) ** power

    model = StructuredSVM("multiclass", kernel=mine, kernel_params={"power": 3}, alpha=0.5)
    model.fit(np.where(np.abs(X) < 1.5, 0, X).astype(np.float32), y)
    assert set(seen) == {(np.ndarray, np.dtype(np.float64), True)}
    refused("only functions that can be imported", model.save, tmp_path / "m")
    model = StructuredSVM("multiclass", kernel=rbf_kernel, alpha=0.5).fit(X, y)
    model.save(tmp_path / "m")
    refused("import sklearn.metrics.pairwise and give load", structsolve.load, tmp_path / "m")
    with pytest.raises(ValueError, match="'sklearn.metrics.pairwise:rbf_kernel', but kernel is"):
        structsolve.load(tmp_path / "m", kernel=mine)
    again = structsolve.load(tmp_path / "m", kernel=rbf_kernel)
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    auto = {"gamma": "auto"}  # the function's
    named = StructuredSVM("multiclass", kernel="rbf", kernel_params=auto, alpha=0.5).fit(X, y)
    np.testing.assert_allclose(scores(model, X), scores(named, X), atol=0.05)
    named.save(tmp_path / "n")
    refused("leave kernel out", structsolve.load, tmp_path / "n", kernel=rbf_kernel)


def test_model_selection():
    X, y = classes(45)
    model = StructuredSVM("multiclass", kernel="rbf", alpha=0.1)
    grid = {"kernel_params": [{"gamma": 0.01}, {"gamma": 0.5}], "alpha": [0.1, 1.0]}
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.6
    ready = GridSearchCV(
        StructuredSVM("multiclass", kernel="precomputed"), {"alpha": [0.1, 1.0]}, cv=3
    ).fit(rbf_kernel(X), y)
    assert ready.best_score_ > 0.6
    assert clone(model).get_params()["kernel"] == "rbf"


def test_sequences_and_sparse_rows_of_a_precomputed_kernel():
    X, y = chains(15)
    rows = np.concatenate(X)
    K = np.maximum(1 - np.abs(rows[:, :1] - rows[:, 0]), 0)  # sparse: packing makes it CSR
    lengths = [len(x) for x in X]
    model = StructuredSVM("chain", kernel="precomputed", alpha=0.1).fit(Sequences(K, lengths), y)
    parts = np.split(K, np.cumsum(lengths)[:-1])
    other = StructuredSVM("chain", kernel="precomputed", alpha=0.1)
    other.fit([sp.csr_matrix(p) for p in parts], y)
    assert equal(model, other)
    whole = scores(other, Sequences(K, lengths))
    assert np.array_equal(scores(model, parts), whole)
    # BLAS rounds a row by how many others are multiplied with it.
    some = scores(model, parts[:3])
    np.testing.assert_allclose(some, whole[: len(some)], rtol=1e-13)


def test_large_examples_keep_no_gram_matrix():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(1100, 2)), rng.normal(size=(1200, 2))]
    y = [(x[:, 0] > 0).astype(int) for x in X]
    options = {"alpha": 300.0, "max_iter": 200, "tol": 1e-3}
    plain = StructuredSVM("chain", **options).fit(X, y)
    model = StructuredSVM("chain", kernel="linear", **options).fit(X, y)
    assert model.stop_reason_ == plain.stop_reason_ == "converged"
    assert model.history_[-1]["primal"] == pytest.approx(plain.history_[-1]["primal"], rel=2e-3)
