"""scale_features: the same as if X had been scaled, and prediction without a scaler."""

import warnings
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import structsolve
from structsolve import HierarchicalSVM, StructuredSVM, StructuredSVMCV
from structsolve.examples.scaling import scale_columns
from structsolve.solvers import BCFW, WeightBounds

LEVELS = np.array([1e3, 1e-2, 1.0, 7.0])
TIGHT = {"alpha": 0.1, "tol": 1e-5, "max_iter": 300}


def rows(rng, n, sparse=False):
    """Return features of unequal scale; the last but one column is constant, the last zero."""
    X = rng.normal(size=(n, 4)) * LEVELS + [5e3, 0, 0, 0]
    X = np.column_stack([X, np.full(n, 3.0), np.zeros(n)])
    if sparse:
        X[rng.random(X.shape) < 0.6] = 0
        return sp.csr_matrix(X)
    return X


def cases(rng, sparse):
    """Return estimator, all feature rows, X of scaled rows, y."""
    n = 24
    X = rows(rng, n, sparse)
    y = rng.integers(3, size=n)
    cuts = [0, 5, 6, 13, n]
    spans = [slice(a, b) for a, b in zip(cuts, cuts[1:])]
    tree = nx.DiGraph([(8, 0), (8, 9), (9, 1), (9, 2)])

    def chains(R):
        return [R[s] for s in spans]

    def graphs(R):
        return [(R[s], [(k, k + 1) for k in range(s.stop - s.start - 1)]) for s in spans]

    labels = [y[s] for s in spans]
    return {
        "multiclass": (StructuredSVM("multiclass"), X, lambda R: R, y),
        "ordinal": (StructuredSVM("ordinal"), X, lambda R: R, y),
        "multilabel": (StructuredSVM("multilabel"), X, lambda R: R, rng.integers(2, size=(n, 3))),
        "chain": (StructuredSVM("chain"), X, chains, labels),
        "mrf": (StructuredSVM("mrf"), X, graphs, labels),
        "hierarchy": (HierarchicalSVM(tree), X, lambda R: R, y),
        "learned": (HierarchicalSVM(tree, normalization="learned"), X, lambda R: R, y),
    }


STRUCTURES = ["multiclass", "ordinal", "multilabel", "chain", "mrf", "hierarchy", "learned"]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("name", "kind"),
    [*((name, True) for name in STRUCTURES), ("chain", "std"), ("multiclass", "max-abs")],
)
def test_as_if_x_were_scaled(name, kind, sparse):
    rng = np.random.default_rng(3)
    model, X, form, y = cases(rng, sparse)[name]
    model.set_params(**TIGHT)
    if name == "learned":
        model.set_params(tol=1e-3)
    if kind == "std" or (kind is True and not sparse):
        scaler = StandardScaler(with_mean=not sparse)
    else:
        scaler = MaxAbsScaler()
    scaled = scaler.fit_transform(X)
    plain = clone(model).fit(form(scaled), y)
    inside = clone(model).set_params(scale_features=kind).fit(form(X), y)
    assert np.isclose(
        inside.history_[-1]["primal"], plain.history_[-1]["primal"], rtol=2 * model.tol
    )
    new = rows(rng, 24, sparse)
    for raw, given in ((X, scaled), (new, scaler.transform(new))):
        scores = inside.decision_function(form(raw)), plain.decision_function(form(given))
        for a, b in zip(*scores):
            np.testing.assert_allclose(a, b, atol=0.05 if name == "learned" else 5e-3)
    same = [
        np.array_equal(a, b) for a, b in zip(inside.predict(form(X)), plain.predict(form(scaled)))
    ]
    assert np.mean(same) > 0.95


def test_without_an_intercept_nothing_is_centred():
    rng = np.random.default_rng(0)
    X, y = rows(rng, 20), rng.integers(2, size=20)
    scaled = StandardScaler(with_mean=False).fit_transform(X)
    model = StructuredSVM("multiclass", fit_intercept=False, scale_features="std", **TIGHT)
    plain = clone(model).set_params(scale_features=False).fit(scaled, y)
    np.testing.assert_allclose(
        model.fit(X, y).decision_function(X), plain.decision_function(scaled), atol=1e-3
    )


@pytest.mark.parametrize("kind", ["std", "max-abs"])
def test_weights_of_examples_are_copies(kind):
    rng = np.random.default_rng(1)
    X, y = rows(rng, 20), rng.integers(2, size=20)
    weight = rng.integers(3, size=20)
    model = StructuredSVM("multiclass", scale_features=kind, **TIGHT)
    copies = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    weighted = model.fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(
        weighted.decision_function(X), copies.decision_function(X), atol=1e-3
    )


@pytest.mark.parametrize("solver", ["bcfw", "sgd", "cutting-plane"])
def test_warm_starts_go_on_as_on_scaled_features(solver):
    rng = np.random.default_rng(2)
    X, y = rows(rng, 40), rng.integers(3, size=40)
    scaled = StandardScaler().fit_transform(X)
    model = StructuredSVM("multiclass", alpha=0.1, tol=1e-4, max_iter=20, solver=solver)
    model.set_params(warm_start=True)
    plain, inside = clone(model), clone(model).set_params(scale_features=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for _ in range(2):
            plain.fit(scaled, y)._run = None  # weights, not dual variables
            inside.fit(X, y)._run = None
            primal = [r["primal"] for r in plain.history_]
            np.testing.assert_allclose([r["primal"] for r in inside.history_], primal, rtol=1e-4)
    np.testing.assert_allclose(
        inside.decision_function(X), plain.decision_function(scaled), atol=1e-3
    )


def test_path():
    rng = np.random.default_rng(2)
    X, y = rows(rng, 40), rng.integers(3, size=40)
    base = StructuredSVM("multiclass", scale_features=True, **TIGHT)
    for model in base.path(X, y, [1.0, 0.1]):
        alone = clone(base).set_params(alpha=model.alpha).fit(X, y)
        np.testing.assert_allclose(
            model.decision_function(X), alone.decision_function(X), atol=2e-3
        )


def test_files_checkpoints_and_validation(tmp_path):
    rng = np.random.default_rng(4)
    X, y = rows(rng, 40), rng.integers(3, size=40)
    settings = {"scale_features": True, "alpha": 0.01, "early_stopping": True, "tol": 1e-5}

    def die(record):
        if record["pass"] == 2:
            raise RuntimeError("power cut")

    path = tmp_path / "run.ckpt"
    with pytest.raises(RuntimeError):
        StructuredSVM("multiclass", callbacks=[die], checkpoint=path, **settings).fit(X, y)
    model = StructuredSVM("multiclass", checkpoint=path, **settings).fit(X, y)
    whole = StructuredSVM("multiclass", **settings).fit(X, y)
    np.testing.assert_array_equal(model.coef_["node"], whole.coef_["node"])
    assert max(r.get("validation_score", 0) for r in whole.history_) > 0
    whole.save(tmp_path / "model")
    loaded = structsolve.load(tmp_path / "model")
    assert loaded.scale_features is True
    np.testing.assert_array_equal(loaded.predict(X), whole.predict(X))


def test_refusals():
    X, y = np.array([[1.0, 1e3], [2.0, -1e3], [0.0, 0.0]]), [0, 1, 0]
    with pytest.raises(ValueError, match="scale_features is 'min', expected one of"):
        StructuredSVM("multiclass", scale_features="min").fit(X, y)
    with pytest.raises(ValueError, match="kernel model has no weights"):
        StructuredSVM("multiclass", scale_features=True, kernel="rbf").fit(X, y)
    with pytest.raises(ValueError, match="all examples at once"):
        StructuredSVM("multiclass", scale_features=True, solver="sgd").partial_fit(X, y)
    StructuredSVM("multiclass", solver="sgd").partial_fit(X * [1, 9], y)  # "auto" is False there
    with pytest.raises(ValueError, match="sparse=True does not take"):
        tree = nx.DiGraph([(8, 0), (8, 1)])
        HierarchicalSVM(tree, sparse=True, scale_features=True).fit(X, y)
    assert not HierarchicalSVM(tree, sparse=True).fit(X * [1, 9], y).scale_features_
    for number, kind in ((np.nan, "NaN"), (np.inf, "infinity")):
        bad = X.copy()
        bad[1, 0] = number
        for form in (np.asarray, sp.csr_matrix):
            with pytest.raises(ValueError, match=f"{kind}.*1"):
                StructuredSVM("multiclass", scale_features=True).fit(form(bad), y)
    with pytest.raises(ValueError, match="found 1e.180 .example 0"):
        StructuredSVM("multiclass", scale_features="std").fit(X * 1e180, y)
    space, examples = structsolve.get_structure("multiclass").make_space(X, y)
    with pytest.raises(ValueError, match="nodes of structure 'mine' have no features"):
        scale_columns(replace(examples, nodes=None), space.layout, "mine", True)


def test_the_warning_names_the_option():
    rng = np.random.default_rng(5)
    X, y = rows(rng, 60), rng.integers(3, size=60)
    model = StructuredSVM("multiclass", alpha=1e-6, max_iter=2, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="or tol; columns .* or set scale_features=True"):
        model.fit(X, y)
    with pytest.warns(ConvergenceWarning) as caught:
        model.set_params(scale_features=True).fit(X, y)
    assert "scale_features" not in str(caught[0].message)


def unlike_classes(factors=(0.1, 1, 1, 1, 10)):
    """Three columns that tell the classes, and two of noise, which are the largest."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 30)
    return np.column_stack([np.eye(3)[y], 50 * rng.normal(size=(90, 2))]) * factors, y


def test_alpha_of_the_largest_columns_is_told():
    unlike, y = unlike_classes()
    told = "columns of X differ in scale .*StandardScaler.*, or set scale_features=True"
    off = StructuredSVM("multiclass", scale_features=False)
    with pytest.warns(UserWarning, match=told):
        raw = off.fit(unlike, y)
    assert raw.stop_reason_ == "converged" and raw.score(unlike, y) < 0.9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for X, settings in (
            (unlike_classes((1, 1, 1, 0.02, 0.02))[0], {"scale_features": False}),
            (unlike, {}),
            (unlike, {"alpha": 100.0}),
            (unlike, {"kernel": "rbf"}),
            (sp.csr_matrix(unlike), {"tol": 0.1}),
        ):
            model = StructuredSVM("multiclass", **settings).fit(X, y)
            assert model.stop_reason_ == "converged"


def bits(model):
    return model.flat_weights().tobytes(), model.alpha_, [r["primal"] for r in model.history_]


def apart(factor, n_columns=20, small=3):
    """Standardised columns, some of them smaller by a factor."""
    rng = np.random.default_rng(7)
    X = rng.choice([-1.0, 1.0], size=(40, n_columns))
    X[:, 2 : 2 + small] /= factor
    return X, rng.integers(3, size=40)


def tiny(factor):
    """Columns of one scale, far below the ones of the intercept."""
    X, y = apart(1)
    X[np.arange(40), y] = 3
    return X / 3 / factor, y


@pytest.mark.parametrize(
    ("data", "settings", "scaled"),
    [
        (unlike_classes(), {}, True),
        (unlike_classes(), {"fit_intercept": False, "surrogate": "crf"}, True),
        (unlike_classes(), {"alpha": 0.1}, False),
        (unlike_classes(), {"solver": BCFW(constraints=[WeightBounds("node", -1, 1)])}, False),
        (unlike_classes((1, 1, 1, 0.02, 0.02)), {}, False),
        (apart(99), {}, False),
        (apart(101), {}, True),
        (apart(101, small=1), {}, False),  # a tenth of the columns may be smaller
        (apart(101, n_columns=10, small=1), {}, True),
        (apart(1e15, small=18), {}, False),  # zeros of a projection, up to rounding
        (tiny(9), {}, False),
        (tiny(101), {"fit_intercept": False}, False),
        (tiny(101), {"alpha": 1e-6, "tol": 0.9}, False),
    ],
)
def test_auto_is_true_or_false(data, settings, scaled):
    X, y = data
    model = StructuredSVM("multiclass", **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same = clone(model).set_params(scale_features=scaled).fit(X, y)
        assert model.fit(X, y).scale_features_ is same.scale_features_ is scaled
        assert bits(model) == bits(same) == bits(model.fit(X, y))
        other = clone(model).set_params(scale_features=not scaled).fit(X, y)
    assert bits(other) != bits(same)


def test_auto_leaves_words_and_indicators():
    rng = np.random.default_rng(0)
    words = (rng.random((50, 30)) < 0.2) * rng.integers(1, 500, 30)
    mixed = np.column_stack([rng.normal(size=(50, 3)), rng.random((50, 5)) < 0.1, np.ones(50)])
    y = rng.integers(2, size=50)
    for X in (words, sp.csr_matrix(words), mixed):
        assert not StructuredSVM("multiclass", tol=0.1).fit(X, y).scale_features_


def test_auto_sees_no_examples_of_weight_zero():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.integers(2, size=30)
    X[4, 1], weight = 1e4, np.ones(30)
    assert StructuredSVM("multiclass").fit(X, y, weight).scale_features_
    weight[4] = 0
    assert not StructuredSVM("multiclass").fit(X, y, weight).scale_features_


def test_auto_is_told_and_shared(caplog):
    X, y = unlike_classes()
    cuts = [0, 40, 45, 90]
    chains = [[a[i:j] for i, j in zip(cuts, cuts[1:])] for a in (X, y)]
    with caplog.at_level("INFO", "structsolve"):
        chain = StructuredSVM("chain").fit(*chains)
    assert (
        "scale_features='auto' is True, as columns of X differ in scale (column 0 " in caplog.text
    )
    assert bits(chain) == bits(clone(chain).set_params(scale_features=True).fit(*chains))
    tree = nx.DiGraph([(8, 0), (8, 9), (9, 1), (9, 2)])
    assert HierarchicalSVM(tree).fit(X, y).scale_features_
    (model,) = chain.path(*chains, [0.1])
    assert bits(model) == bits(clone(chain).set_params(alpha=0.1, warm_start=True).fit(*chains))


def test_auto_of_a_path_of_its_own():
    X, y = unlike_classes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for alphas, scaled in ((4, True), ([1.0, 0.1], False)):
            model = StructuredSVMCV("multiclass", alphas=alphas, cv=2).fit(X, y)
            same = clone(model).set_params(scale_features=scaled).fit(X, y)
            assert model.scale_features_ is scaled
            np.testing.assert_array_equal(model.scores_, same.scores_)
            assert bits(model) == bits(same)


def test_small_columns_train_as_others_do():
    """Beside an intercept they did not converge; where products underflow, to one class for all."""
    X, y = tiny(1)
    assert StructuredSVM("multiclass", surrogate="crf").fit(*tiny(11)).scale_features_
    for form in (np.asarray, sp.csr_matrix):
        plain = StructuredSVM("multiclass").fit(form(X), y)
        for factor in (2.0**20, 2.0**300):
            model = StructuredSVM("multiclass").fit(form(X / factor), y)
            np.testing.assert_array_equal(model.coef_["node"], plain.coef_["node"] * factor)
            assert model.stop_reason_ == "converged" and model.score(X / factor, y) == 1
    chosen = StructuredSVMCV("multiclass", cv=2, max_iter=5)
    scores = [chosen.fit(X / factor, y).scores_ for factor in (1, 2.0**30)]
    np.testing.assert_array_equal(*scores)
    with pytest.warns(
        ConvergenceWarning, match="none exceeds 0.0001.* beside the intercept .*True"
    ):
        StructuredSVM("multiclass", solver="bcfw", scale_features=False).fit(*tiny(1e4))


def test_large_columns_train_as_others_do():
    """The alpha that suits them left the intercept, and transitions, without weights, silently."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 5))
    y = (X[:, 0] + 0.5 * rng.normal(size=60) > 0).astype(int) + (X[:, 1] > 0.5)
    plain = StructuredSVM("multiclass").fit(X, y)
    assert not plain.scale_features_
    for factor in (30.0, 2.0**30, 2.0**300):
        model = StructuredSVM("multiclass").fit(factor * X, y)
        assert model.scale_features_ is True
        assert model.score(factor * X, y) >= plain.score(X, y) - 0.02
        assert model.coef_["intercept"].any()
        words = StructuredSVM("multiclass").fit(sp.csr_matrix(factor * X), y)
        np.testing.assert_allclose(
            words.coef_["node"] * factor,
            StructuredSVM("multiclass", scale_features=False)
            .fit(X / np.abs(X).max(), y)
            .coef_["node"]
            / np.abs(X).max(),
            rtol=1e-6,
        )
    assert not StructuredSVM("multiclass", fit_intercept=False).fit(30 * X, y).scale_features_
    assert not StructuredSVM("multiclass", alpha=1.0).fit(30 * X, y).scale_features_
