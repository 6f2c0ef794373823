"""Chains without nodes, where allowed by name: all operators, estimators, files, data."""

import numpy as np
import pytest
from checks import refused, reloaded
from scipy import sparse
from sklearn.feature_extraction import FeatureHasher
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from structsolve import NodeTransformer, Sequences, SequenceVectorizer, StructuredSVM, from_padded
from structsolve.plugins.chain import ChainStructure
from structsolve.testing import check_structure

EMPTY = ChainStructure(empty=True)


@pytest.mark.parametrize(
    "structure",
    [
        EMPTY,
        ChainStructure(start_end=False, empty=True),
        ChainStructure(forbidden="BIO", empty=True),
    ],
    ids=repr,
)
def test_every_operator_against_enumeration(structure):
    check_structure(structure, n_cases=3, solvers=())


def words(seed=0, lengths=(0, 3, 2, 0, 1, 4, 0)):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(length, 3)) for length in lengths]
    return X, [np.where(x[:, 0] > 0, "a", "b") for x in X]


@pytest.mark.parametrize(
    ("surrogate", "solver"),
    [
        ("margin", "bcfw"),
        ("crf", "gbcfw"),
        ("margin", "cutting-plane"),
        ("slack", "bcfw"),
        ("crf", "lbfgs"),
    ],
)
def test_training_is_that_without_them(surrogate, solver):
    # An empty chain adds 0 to the sum; the mean is over all.
    X, Y = words()
    options = {"surrogate": surrogate, "solver": solver, "tol": 1e-7, "max_iter": 3000}
    with_them = StructuredSVM(EMPTY, alpha=0.04, **options).fit(X, Y)
    full = [i for i, x in enumerate(X) if len(x)]
    without = StructuredSVM("chain", alpha=0.04 * len(X) / len(full), **options)
    without.fit([X[i] for i in full], [Y[i] for i in full])
    for name, weights in with_them.coef_.items():
        np.testing.assert_allclose(weights, without.coef_[name], atol=2e-3)
    primal = with_them.history_[-1]["primal"] * len(X) / len(full)
    assert primal == pytest.approx(without.history_[-1]["primal"], rel=1e-5)


@pytest.mark.parametrize("loss", ["hamming", "normalized-hamming", "zero-one"])
def test_all_that_is_predicted(loss, tmp_path):
    X, Y = words()
    model = StructuredSVM(EMPTY, surrogate="crf", alpha=0.01, loss=loss).fit(X, Y)
    for fitted in (model, reloaded(model, tmp_path)):
        for rows in (X, [X[0]], X[:1] * 3):
            predicted = fitted.predict(rows)
            assert [len(y) for y in predicted] == [len(x) for x in rows]
            assert all(y.dtype == fitted.classes_.dtype for y in predicted)
            assert [s.shape for s in fitted.decision_function(rows)] == [(len(x), 2) for x in rows]
            assert [p.shape for p in fitted.predict_marginals(rows)] == [(len(x), 2) for x in rows]
        best, scores = zip(*[zip(*answers) for answers in fitted.predict_kbest(X, 3)])
        assert [len(b) for b in best] == [min(3, 2 ** len(x)) for x in X]
        assert best[0][0].size == 0 and scores[0] == (0.0,)
        draws = fitted.sample(X, 4, random_state=0)
        assert [[len(y) for y in drawn] for drawn in draws] == [[len(x) for x in X]] * 4
        assert fitted.score(X, Y) == fitted.score(
            [x for x in X if len(x)], [y for y in Y if len(y)]
        )
    forbidden = model.predict(X, forbidden=[("a", "b"), (None, "a")])
    assert [len(y) for y in forbidden] == [len(x) for x in X]
    assert all("a" not in y.tolist()[:1] for y in forbidden)


def test_all_forms_of_data():
    X, Y = words()
    plain = StructuredSVM(EMPTY, alpha=0.01).fit(X, Y)
    lengths = [len(x) for x in X]
    padded = np.full((len(X), 5, 3), np.nan)
    for rows, x in zip(padded, X):
        rows[: len(x)] = x
    lists = [x.tolist() for x in X]
    forms = [
        lists,
        [sparse.csr_matrix(x) for x in X],
        [x.tolist() if not len(x) else sparse.csr_matrix(x) for x in X],
        Sequences(np.concatenate(X), lengths, empty=True),
        from_padded(padded, lengths, empty=True),
        Sequences(np.concatenate(X), lengths, empty=True)[np.arange(7)],
    ]
    for form in forms:
        model = StructuredSVM(EMPTY, alpha=0.01).fit(form, [y.tolist() for y in Y])
        np.testing.assert_allclose(model.coef_["node"], plain.coef_["node"], atol=1e-9)
        for y, expected in zip(model.predict(form), plain.predict(X)):
            np.testing.assert_array_equal(y, expected)
    edges = [(x, np.ones((max(len(x) - 1, 0), 2))) for x in X]
    model = StructuredSVM(EMPTY, alpha=0.01).fit(edges, Y)
    assert [len(y) for y in model.predict(edges)] == lengths
    scaled = make_pipeline(NodeTransformer(StandardScaler()), StructuredSVM(EMPTY)).fit(X, Y)
    assert [len(y) for y in scaled.predict(X)] == lengths


@pytest.mark.parametrize(
    "inner", [None, FeatureHasher(16), make_pipeline(FunctionTransformer(), FeatureHasher(16))]
)
def test_the_vectorizer(inner):
    tokens = [[], [{"word": "x"}, {"word": "y"}], [], [{"word": "x"}]]
    refused(r"X\[0\]: found an empty sequence.*empty=True", SequenceVectorizer(inner).fit, tokens)
    vectorizer = SequenceVectorizer(inner, empty=True)
    rows = vectorizer.fit_transform(tokens)
    assert [x.shape[0] for x in rows] == [0, 2, 0, 1]
    assert len({x.shape[1] for x in rows}) == 1
    model = StructuredSVM(EMPTY).fit(rows, [[], ["a", "b"], [], ["a"]])
    assert [len(y) for y in model.predict(vectorizer.transform(tokens))] == [0, 2, 0, 1]


def test_elsewhere_they_are_refused_and_what_has_no_label_at_all():
    X, Y = words()
    message = r"example 0: found 0 rows, expected at least 1; .* ChainStructure\(empty=True\)"
    refused(message, StructuredSVM("chain").fit, X, Y)
    refused(message, StructuredSVM("chain").fit(X[1:3], Y[1:3]).predict, X)
    rows = Sequences(np.concatenate(X), [len(x) for x in X], empty=True)
    refused(message, StructuredSVM("chain").fit, rows, Y)
    refused("at least 0", Sequences, np.zeros((1, 2)), [2, -1], True)
    refused("y has no labels", StructuredSVM(EMPTY).fit, [X[0]], [Y[0]])
    refused("X has 0 rows and y has 1 labels", StructuredSVM(EMPTY).fit, X, [["a"], *Y[1:]])
