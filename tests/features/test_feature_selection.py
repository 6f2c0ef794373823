"""Selection of features by weights, generators as data, balanced weights of classes."""

import numpy as np
import pytest
from checks import refused
from sklearn.base import clone
from sklearn.feature_selection import RFE, RFECV, SelectFromModel
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_class_weight

from structsolve import (
    ClassWeights,
    HierarchicalSVM,
    NodeTransformer,
    Sequences,
    SequenceVectorizer,
    StructuredSVM,
)
from structsolve.features.importances import feature_importances
from structsolve.plugins.mrf import decode

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 5))
SETS = (X[:, [1, 3]] > 0).astype(int)
QUICK = {"alpha": 0.01, "tol": 0.1}
TREE = {"r": ["a", "b"], "a": ["c", "d"]}
LEAVES = np.array([["b", "c"], ["b", "d"]])[SETS[:, 0], SETS[:, 1]]
MODELS = {
    "multiclass": (StructuredSVM("multiclass", **QUICK), SETS @ [1, 2]),
    "multilabel": (StructuredSVM("multilabel", **QUICK), SETS),
    "hierarchy": (HierarchicalSVM(TREE, **QUICK), LEAVES),
    "sparse hierarchy": (HierarchicalSVM(TREE, sparse=True, alpha=0.01, max_iter=5), LEAVES),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MODELS)
def test_selection_finds_the_columns_that_matter(name):
    model, y = MODELS[name]
    for selection in (
        RFE(model, n_features_to_select=2, importance_getter=feature_importances),
        SelectFromModel(
            model, max_features=2, threshold=-np.inf, importance_getter=feature_importances
        ),
    ):
        assert selection.fit(X, y).get_support().tolist() == [False, True, False, True, False]
        plain = clone(selection).set_params(importance_getter="auto")
        told = "importance_getter=structsolve.features.importances.feature_importances"
        with pytest.raises(AttributeError, match=told):
            plain.fit(X, y).get_support()
    weights = model.fit(X, y).coef_["node"]
    weights = weights.toarray() if hasattr(weights, "toarray") else weights
    expected = [np.linalg.norm(row) for row in weights]
    np.testing.assert_allclose(feature_importances(model), expected, rtol=1e-6)


def test_selection_with_folds_and_kernels():
    model, y = MODELS["multiclass"]
    selection = RFECV(model, cv=2, importance_getter=feature_importances).fit(X, y)
    assert selection.support_[[1, 3]].all()
    kernel = StructuredSVM("multiclass", kernel="rbf", max_iter=3, tol=1).fit(X, y)
    refused("no weights of features; a kernel's weights", feature_importances, kernel)


def test_generators_and_packed_sequences_are_data():
    lists = [rng.normal(size=(2 + i % 3, 2)) for i in range(10)]
    Y = [["a" if value > 0 else "b" for value in x[:, 0]] for x in lists]
    packed = Sequences(np.concatenate(lists), [len(x) for x in lists])
    model = StructuredSVM("chain", **QUICK).fit(lists, Y)
    score = model.score(lists, Y)
    for given in (lambda: iter(lists), lambda: (x for x in lists), lambda: packed):
        other = StructuredSVM("chain", **QUICK).fit(given(), iter(Y))
        assert np.array_equal(other.flat_weights(), model.flat_weights())
        assert all(map(np.array_equal, other.predict(given()), model.predict(lists)))
        assert other.score(given(), iter(Y)) == score
        assert len(other.predict_kbest(given(), k=2)) == 10
    stream = StructuredSVM("chain", solver="sgd", alpha=0.1)
    one, other = (stream.partial_fit(d, y).flat_weights() for d, y in ((lists, Y),) * 2)
    again = StructuredSVM("chain", solver="sgd", alpha=0.1)
    assert np.array_equal(again.partial_fit(iter(lists), iter(Y)).flat_weights(), one)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("as_sequences", [False, True])
def test_balanced_weights_are_those_of_scikit_learn(as_sequences):
    for _ in range(20):
        y = rng.integers(0, rng.integers(1, 5), size=int(rng.integers(1, 30)))
        Y = np.array_split(y, 3) if as_sequences else y
        classes = np.unique(y)
        expected = compute_class_weight("balanced", classes=classes, y=y)
        weights = ClassWeights.balanced(Y).weights
        assert list(weights) == classes.tolist()
        np.testing.assert_allclose(list(weights.values()), expected)
    refused("found no labels", ClassWeights.balanced, [])


def test_balanced_weights_find_rare_labels():
    values = rng.normal(size=(200, 1))
    y = np.where(values[:, 0] > 1.2, "rare", "common")
    noisy = values + rng.normal(size=values.shape)
    hits = [
        (
            StructuredSVM("multiclass", surrogate="slack", loss=loss).fit(noisy, y).predict(noisy)
            == "rare"
        )[y == "rare"]
        for loss in ("hamming", ClassWeights.balanced(y))
    ]
    assert hits[1].sum() > hits[0].sum() and hits[1].mean() > 0.5


def test_messages_name_what_would_do():
    for name, given in (("unary", 3), ("pair", 1.0), ("pair", np.array(2.0)), ("unary", None)):
        scores = {"unary": [[0, 1], [1, 0]], "pair": [[1, 0], [0, 1]], name: given}
        with pytest.raises(ValueError, match=f"^{name} is .*expected a"):
            decode(edges=[[0, 1]], **scores)


@pytest.mark.parametrize("kind", [NodeTransformer, SequenceVectorizer])
def test_tables_of_sequences_are_refused_in_words(kind):
    transformer = kind(StandardScaler()) if kind is NodeTransformer else kind()
    assert not hasattr(transformer, "set_output")
    with pytest.raises(AttributeError, match=f"{kind.__name__} has no set_output: .*one matrix"):
        transformer.set_output(transform="pandas")
