"""Feature maps that stand for kernels, and models with them in files."""

import copy
import logging
import pickle
from functools import partial

import numpy as np
import pytest
from checks import refused, reloaded
from risk_cases import CASES, sample
from scipy import sparse
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem, RBFSampler, SkewedChi2Sampler
from sklearn.model_selection import GridSearchCV

import structsolve
from structsolve import ConditionalRiskMinimizer
from structsolve.plugins.risk import estimator
from structsolve.utils import container


def test_features_stand_for_kernels():
    rng = np.random.default_rng(4)
    X, y = sample("multilabel", rng, 30)
    x = rng.normal(size=(20, 2))
    kernel = ConditionalRiskMinimizer("multilabel", kernel="linear", alpha=0.01).fit(X, y)
    plain = ConditionalRiskMinimizer("multilabel", kernel=None, alpha=0.01).fit(X, y)
    assert (kernel.predict(x) == plain.predict(x)).all()
    assert np.allclose(kernel.predict_with_risk(x)[1], plain.predict_with_risk(x)[1])
    # All examples as landmarks: the kernel itself.
    full = Nystroem(gamma=0.5, n_components=30, random_state=0)
    mapped = ConditionalRiskMinimizer("multilabel", kernel=None, feature_map=full).fit(X, y)
    exact = ConditionalRiskMinimizer("multilabel", kernel_params={"gamma": 0.5}).fit(X, y)
    assert np.allclose(mapped.predict_with_risk(x)[1], exact.predict_with_risk(x)[1], atol=1e-6)
    many = RBFSampler(gamma=0.5, n_components=1500, random_state=0)
    near = ConditionalRiskMinimizer("multilabel", kernel=None, feature_map=many).fit(X, y)
    assert np.abs(near.predict_with_risk(x)[1] - exact.predict_with_risk(x)[1]).max() < 0.2
    precomputed = ConditionalRiskMinimizer("multilabel", kernel="precomputed", alpha=0.01)
    precomputed.fit(X @ X.T, y)
    assert (precomputed.predict(x @ X.T) == kernel.predict(x)).all()


def test_scikit_learn_and_files(tmp_path):
    rng = np.random.default_rng(9)
    X, Y = sample("permutation", rng, 15)
    search = GridSearchCV(
        ConditionalRiskMinimizer("permutation", loss="spearman"), {"alpha": [1e-3, 1.0]}, cv=3
    ).fit(X, Y)
    assert search.best_estimator_.n_features_in_ == 2
    assert clone(search.best_estimator_).get_params()["loss"] == "spearman"
    for kernel in ("rbf", None, "linear"):
        model = ConditionalRiskMinimizer("permutation", kernel=kernel, alphas=[0.1, 1]).fit(X, Y)
        again = reloaded(model, tmp_path)
        assert (again.predict(X) == model.predict(X)).all() and again.alpha_ == model.alpha_
        assert again.score(X, Y) == model.score(X, Y)
    X, y = sample("chain", rng, 8)
    model = ConditionalRiskMinimizer("chain", n_jobs=2).fit(X, y)
    again = reloaded(model, tmp_path)
    assert [v.tolist() for v in again.predict(X)] == [v.tolist() for v in model.predict(X)]


class OwnMap(RBFSampler):
    """A feature map that files cannot store."""


def half(a, b):
    return 0.5 * float(a @ b)


@pytest.mark.parametrize(
    "feature_map",
    [
        Nystroem(gamma=0.5, n_components=12, random_state=3),
        Nystroem(kernel="polynomial", degree=3, coef0=1.0, n_components=5),
        Nystroem(kernel="poly", kernel_params={"degree": 2}, n_components=40, random_state=1),
        RBFSampler(gamma=0.25, n_components=20, random_state=np.random.RandomState(0)),
        RBFSampler(gamma="scale", n_components=7, random_state=0),
    ],
)
@pytest.mark.parametrize("sparse_rows", [False, True])
def test_files_of_feature_maps(tmp_path, feature_map, sparse_rows):
    """The same predictions and risks to the last bit."""
    rng = np.random.default_rng(0)
    X, x = rng.normal(size=(30, 4)), rng.normal(size=(9, 4))
    if sparse_rows:
        X, x = sparse.csr_matrix(X * (X > 0)), sparse.csr_matrix(x * (x > 0))
    y = rng.integers(0, 2, (30, 3))
    for columns in (False, True):
        model = ConditionalRiskMinimizer("multilabel", kernel=None, feature_map=feature_map)
        model.fit(X, y)
        if columns:  # arrays in another order round otherwise
            for name in ("normalization_", "random_weights_"):
                if hasattr(model.feature_map_, name):
                    array = np.asfortranarray(getattr(model.feature_map_, name))
                    setattr(model.feature_map_, name, array)
        again = reloaded(model, tmp_path)
        for one, other in zip(again.predict_with_risk(x), model.predict_with_risk(x)):
            assert np.array_equal(one, other)
        assert np.array_equal(again.weights(x), model.weights(x))
        assert type(again.feature_map) is type(feature_map)
        again.save(tmp_path / "n")
        if feature_map.random_state is None or isinstance(feature_map.random_state, int):
            assert repr(again.feature_map) == repr(feature_map)
            assert (tmp_path / "n").read_bytes() == (tmp_path / "m.structsolve").read_bytes()
        again.fit(X, y)


@pytest.mark.parametrize("n", [40, 41])
@pytest.mark.parametrize("kernel", ["rbf", "polynomial"])
def test_many_examples_are_compared_by_features(tmp_path, monkeypatch, caplog, n, kernel):
    monkeypatch.setattr(estimator, "MOST_EXACT", 40)
    monkeypatch.setattr(estimator, "LANDMARKS", 30)
    rng = np.random.default_rng(0)
    X, x = rng.normal(size=(n, 3)), rng.normal(size=(9, 3))
    y = (X[:, 0] > 0).astype(int)
    params = {"gamma": 0.3}
    make = partial(ConditionalRiskMinimizer, kernel=kernel, kernel_params=params)
    with caplog.at_level(logging.INFO, "structsolve"):
        model = make().fit(X, y)
    told = [text for text in caplog.messages if "Nystroem" in text]
    exact, given = make(feature_map=None).fit(X, y), model.get_params()["feature_map"]
    assert given == "auto" and not hasattr(exact, "feature_map_")
    assert hasattr(model, "feature_map_") == bool(told) == (n == 41)
    if n == 40:
        assert np.array_equal(model.weights(x), exact.weights(x)) and model.alpha_ == exact.alpha_
    else:
        # 30 of 41 rows represent the others.
        landmarks = Nystroem(kernel=kernel, n_components=30, random_state=0, **params)
        by_hand = ConditionalRiskMinimizer(kernel=None, feature_map=landmarks).fit(X, y)
        assert np.array_equal(model.weights(x), by_hand.weights(x))
        assert model.risk_bound is not None and model.score(X, y) > 0.8
    again = reloaded(model, tmp_path)
    assert again.feature_map == "auto" and np.array_equal(again.weights(x), model.weights(x))
    assert again.get_params() == model.get_params()
    small = clone(again).fit(X[:20], y[:20])
    assert not hasattr(small, "feature_map_")
    assert not hasattr(model.fit(X[:20], y[:20]), "feature_map_")  # the same object, fitted again
    paths = make().path(X, y, [0.1, 1.0])
    for one in paths:
        assert np.array_equal(one.predict(x), make(alpha=one.alpha).fit(X, y).predict(x))


def test_kernels_that_no_features_stand_for(monkeypatch):
    monkeypatch.setattr(estimator, "MOST_EXACT", 3)
    X, y = np.random.default_rng(0).normal(size=(8, 2)), np.arange(8) % 2
    for model, rows in (
        (ConditionalRiskMinimizer(kernel=lambda A, B: A @ B.T), X),
        (ConditionalRiskMinimizer(kernel="precomputed"), X @ X.T),
        (ConditionalRiskMinimizer(kernel=None), X),
        (ConditionalRiskMinimizer(joint_kernel=np.eye(2)), X),
    ):
        assert not hasattr(model.fit(rows, y), "feature_map_")
    message = "feature_map is 'nystroem', expected a transformer, 'auto', 'nystroem:N' or 'rff:N'"
    refused(message, ConditionalRiskMinimizer(feature_map="nystroem").fit, X, y)


def test_feature_maps_that_files_do_not_hold(tmp_path):
    X, y = [[0.0], [1.0], [2.0]], [0, 1, 1]
    for feature_map, message in (
        (OwnMap(), "cannot be saved without pickle, only Nystroem and RBFSampler"),
        (SkewedChi2Sampler(), "cannot be saved without pickle"),
        (Nystroem(kernel=half, n_components=2), "whose kernel is a function"),
    ):
        model = ConditionalRiskMinimizer(kernel=None, feature_map=feature_map).fit(X, y)
        refused(message, model.save, tmp_path / "no")
        assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"format": 2}, "is a 'RBFSampler' in form 2, this version knows .* in form 1"),
        ({"name": "Fourier"}, "is a 'Fourier' in form 1"),
        ({"columns": 5}, "was fitted by scikit-learn .* maps differently"),
        ({"params": {"__items__": [["n_components", 9]]}}, "maps differently"),
        ({"params": {"__items__": [["colour", 9]]}}, "cannot be loaded"),
    ],
)
def test_feature_maps_of_other_versions(tmp_path, change, message):
    from structsolve.utils import container

    X, y = [[0.0], [1.0], [2.0]], [0, 1, 1]
    feature_map = RBFSampler(n_components=3, random_state=0)
    ConditionalRiskMinimizer(kernel=None, feature_map=feature_map).fit(X, y).save(tmp_path / "m")
    meta, arrays = container.read(tmp_path / "m", "model")
    meta["feature_map"] |= change
    container.write(tmp_path / "m", "model", meta, arrays)
    refused(message, structsolve.load, tmp_path / "m")


def test_damaged_files_are_refused(tmp_path):
    from structsolve.utils import container

    model = ConditionalRiskMinimizer("multiclass").fit(np.eye(4), [0, 1, 2, 1])
    model.save(tmp_path / "m")
    meta, arrays = container.read(tmp_path / "m", "model")
    for name, value in (
        ("targets_labels", np.array([0, 1, 7_000_000, 1], np.int32)),
        ("targets_labels", np.array([0, 1, -1, 1], np.int32)),
        ("targets_labels", np.array([0, 1, 2], np.int32)),
        ("targets_label_offsets", np.array([0, 1, 2, 3, 9])),
        ("targets_offsets", np.array([0, 2, 1, 3, 4])),
    ):
        assert name in arrays
        container.write(tmp_path / "n", "model", meta, {**arrays, name: value})
        refused("cannot be loaded|labels|offsets|label", structsolve.load, tmp_path / "n")


@pytest.mark.parametrize("structure, loss", CASES[1::4], ids=str)
def test_models_pickle(structure, loss):
    """Operators are created again: pickles, like files, omit them."""
    rng = np.random.default_rng(9)
    X, y = sample(structure, rng, 8)
    model = ConditionalRiskMinimizer(structure, loss=loss, alpha=0.1).fit(X, y)
    expected, risks = model.predict_with_risk(X)
    again = pickle.loads(pickle.dumps(model))
    predicted, same = again.predict_with_risk(X)
    assert [np.asarray(a).tolist() for a in predicted] == [np.asarray(a).tolist() for a in expected]
    np.testing.assert_array_equal(same, risks)
    assert again.score(X, y) == model.score(X, y)


@pytest.mark.parametrize("named", ["nystroem:20", "rff:25"])
@pytest.mark.parametrize("params", [None, {"gamma": 0.7}, {"gamma": None}, {"gamma": "auto"}])
@pytest.mark.parametrize("seed", [3, np.random.RandomState(5)])
def test_named_features_are_those_of_the_kernel(tmp_path, named, params, seed):
    rng = np.random.default_rng(1)
    X, x = 50 * rng.normal(size=(40, 3)), 50 * rng.normal(size=(9, 3))
    y = (X[:, 0] > 0).astype(int)
    given = {"feature_map": named, "kernel_params": params}
    model = ConditionalRiskMinimizer(random_state=copy.deepcopy(seed), **given).fit(X, y)
    scale = 1 / (3 * X.var())
    gamma = scale if params is None else {0.7: 0.7}.get(params["gamma"], 1 / 3)
    kind, own = (Nystroem, 20) if named[0] == "n" else (RBFSampler, 25)
    by_hand = kind(gamma=gamma, n_components=own, random_state=copy.deepcopy(seed))
    same = ConditionalRiskMinimizer(kernel=None, feature_map=by_hand).fit(X, y)
    np.testing.assert_allclose(model.weights(x), same.weights(x), atol=1e-9)
    again = reloaded(model, tmp_path)
    assert again.feature_map == named and np.array_equal(again.weights(x), model.weights(x))
    if isinstance(seed, int):
        other = ConditionalRiskMinimizer(random_state=4, **given).fit(X, y)
        assert not np.allclose(other.weights(x), model.weights(x))


@pytest.mark.parametrize(
    "given, message",
    [
        ({"feature_map": "rff"}, "expected a transformer, 'auto', 'nystroem:N' or 'rff:N'"),
        ({"feature_map": "rff:0"}, "expected a transformer, 'auto', 'nystroem:N' or 'rff:N'"),
        ({"feature_map": "pca:9"}, "feature_map is 'pca:9', expected a transformer"),
        ({"feature_map": "rff:9", "kernel": "poly"}, "for kernel 'rbf', with only gamma"),
        ({"feature_map": "nystroem:9", "kernel": None}, "by its name; found kernel=None"),
        ({"feature_map": "nystroem:9", "kernel": "precomputed"}, "found kernel='precomputed'"),
        ({"feature_map": "nystroem:9", "joint_kernel": np.eye(2)}, "'rbf' with joint_kernel"),
        ({"random_state": "now"}, "random_state"),
    ],
)
def test_wrong_names_of_features(given, message):
    refused(message, ConditionalRiskMinimizer(**given).fit, [[0.0], [1.0]], [0, 1])


def test_files_from_before_features_had_names(tmp_path, monkeypatch):
    monkeypatch.setattr(estimator, "MOST_EXACT", 30)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
    model = ConditionalRiskMinimizer().fit(X, y)
    model.save(tmp_path / "m")
    meta, arrays = container.read(tmp_path / "m", "model")
    assert meta.pop("feature_map_named") == "auto"
    meta["feature_map_auto"] = True
    container.write(tmp_path / "m", "model", meta, arrays)
    again = structsolve.load(tmp_path / "m")
    assert again.feature_map == "auto" and np.array_equal(again.weights(X), model.weights(X))
