"""gamma of kernels: by default that of scikit-learn's SVC, which follows the unit of X."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

import structsolve
from structsolve import ConditionalRiskMinimizer, StructuredSVM
from structsolve.potentials.mercer import SCALED, Kernel
from structsolve.utils import container

KINDS = [
    lambda **k: StructuredSVM("multiclass", alpha=0.01, **k),
    lambda **k: ConditionalRiskMinimizer(alpha=0.01, **k),
]


def rows(seed: int = 0, n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(np.hypot(X[:, 0], X[:, 1]) < 1, "inside", "outside")


@pytest.mark.parametrize("word", ["scale", "auto"])
@pytest.mark.parametrize("seed", range(60))
def test_gamma_is_that_of_svc(seed, word):
    rng = np.random.default_rng(seed)
    X = 10.0 ** rng.integers(-9, 9) * (rng.normal(size=(7, 4)) + rng.integers(0, 3))
    X[1:] *= rng.random((6, 4)) < rng.choice([0.0, 0.1, 0.6, 1.0])
    if seed % 3 == 0:
        X = sp.csr_matrix(X)
    svc = SVC(gamma=word).fit(X, np.arange(7) % 2)
    params = {"gamma": word} if word == "auto" or seed % 2 else {}
    for name in ("rbf", "poly", "polynomial", "sigmoid"):
        assert Kernel(name, params).fitted(X).gamma == pytest.approx(svc._gamma, rel=1e-9)


@pytest.mark.parametrize("X", [np.full((5, 3), 0.1), np.zeros((2, 2)), np.full((3, 1), 1e300)])
def test_equal_entries_and_huge_ones_have_the_spread_of_one(X):
    assert Kernel("rbf").fitted(X).gamma == 1 / X.shape[1]


@pytest.mark.parametrize("name", SCALED)
def test_values_do_not_depend_on_the_unit(name):
    X, _ = rows()
    K = [Kernel(name).fitted(c * X).matrix(c * X, c * X) for c in (1.0, 1e3, 1e-6)]
    for other in K[1:]:
        np.testing.assert_allclose(other, K[0], rtol=1e-8, atol=1e-10)


def test_numbers_none_and_other_kernels_stay():
    X, _ = rows()
    for kernel in (
        Kernel("rbf", {"gamma": 2.0}),
        Kernel("rbf", {"gamma": None}),
        Kernel("linear"),
        Kernel("chi2"),
        Kernel("precomputed"),
        Kernel(pairwise_kernels, {"metric": "rbf"}),
    ):
        assert kernel.fitted(X) is kernel and kernel.gamma is None
    for name, words in (("rbf", "a number or 'scale' or 'auto'$"), ("chi2", "a number$")):
        with pytest.raises(ValueError, match=f"gamma is 'wide', expected {words}"):
            Kernel(name, {"gamma": "wide"})


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_predictions_do_not_depend_on_the_unit(make, kernel):
    X, y = rows()
    new, _ = rows(1)
    models = [make(kernel=kernel).fit(c * X, y) for c in (1.0, 1e4)]
    assert models[0].gamma_ > 1e3 * models[1].gamma_
    assert np.array_equal(models[0].predict(new), models[1].predict(1e4 * new))
    assert models[0].score(X, y) > 0.9


@pytest.mark.parametrize("load_data", [load_digits, load_breast_cancer])
@pytest.mark.parametrize("make", [ConditionalRiskMinimizer, lambda: StructuredSVM(
    "multiclass", kernel="rbf")])  # fmt: skip
def test_raw_columns_are_classified_as_svc_does(load_data, make):
    X, Xt, y, yt = train_test_split(*load_data(return_X_y=True), random_state=0)
    assert make().fit(X, y).score(Xt, yt) >= SVC().fit(X, y).score(Xt, yt) - 0.01


@pytest.mark.parametrize("make", KINDS)
def test_gamma_is_in_the_file_and_older_files_have_that_of_the_features(make, tmp_path):
    X, y = rows()
    X *= 5
    given = make(kernel="rbf").fit(X, y)
    given.save(tmp_path / "new")
    again = structsolve.load(tmp_path / "new")
    assert again.gamma_ == given.gamma_ and again.kernel_params is None
    assert np.array_equal(again.predict(X), given.predict(X))
    old = make(kernel="rbf", kernel_params={"gamma": None}).fit(X, y)
    assert not hasattr(old, "gamma_")
    # As earlier versions wrote it: no gamma among the parameters, nor among the contents.
    old.set_params(kernel_params=None).save(tmp_path / "old")
    meta, arrays = container.read(tmp_path / "old", "model")
    assert "kernel_gamma" not in arrays
    if "gamma" in meta:
        assert meta.pop("gamma") is None
        container.write(tmp_path / "old", "model", meta, arrays)
    again = structsolve.load(tmp_path / "old")
    alike = pairwise_kernels(X, X, metric="rbf")
    expected = make(kernel="precomputed").fit(alike, y)
    assert np.array_equal(again.predict(X), expected.predict(alike))
    given.set_params(kernel="linear").fit(X, y)
    assert not hasattr(given, "gamma_")


def test_features_that_stand_for_the_kernel_have_its_gamma(monkeypatch):
    from structsolve.plugins.risk import estimator

    monkeypatch.setattr(estimator, "MOST_EXACT", 30)
    X, y = rows()
    model = ConditionalRiskMinimizer().fit(9 * X, y)
    assert model.feature_map_.gamma == model.gamma_ == pytest.approx(1 / (3 * (9 * X).var()))
    assert model.score(9 * X, y) > 0.9
