"""Prediction of short examples by one call answers as the general way does."""

import numpy as np
import pytest
import scipy.sparse as sp
from checks import in_threads
from direct_cases import alike, both, fitted_general

from structsolve import StructuredSVM
from structsolve.estimators.direct import DirectBest, DirectLabels, DirectMarginals
from structsolve.plugins.chain import ChainStructure

CASES = {
    "chain": {},
    "free-chain": {"transitions": False, "start_end": False},
    "bio": {"forbidden": [("b", "a")]},
    "empty": {"empty": True},
    "multiclass": {},
    "ordinal": {},
}
SINGLE = ("multiclass", "ordinal")


def fitted(name, intercept=True, model=StructuredSVM):
    rng = np.random.default_rng(3)
    X = [rng.normal(size=(n, 6)) for n in (3, 5, 2, 7, 4, 6)]
    Y = [np.sort(rng.choice(["a", "b", "c", "ddd"], len(x))) for x in X]
    if name in SINGLE:
        X, Y = np.vstack(X), np.concatenate(Y)
        Y = Y if name == "multiclass" else np.unique(Y, return_inverse=True)[1]
        structure = name
    else:
        structure = ChainStructure(**CASES[name])
    return model(structure, max_iter=50, tol=0.5, fit_intercept=intercept).fit(X, Y)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_answers_of_dense_examples(name, intercept):
    model, rng = fitted(name, intercept), np.random.default_rng(0)
    for dtype in (np.float64, np.float32):
        for trial in range(60):
            sizes = rng.integers(1, 12, rng.integers(1, 5))
            # Few values: ties and zeros, also on both sides of half of the values.
            values = [rng.integers(-1, 2 + trial % 3, (n, 6)).astype(dtype) for n in sizes]
            filled = np.count_nonzero(np.concatenate(values)) > 3 * sizes.sum()
            X = values[0] if name in SINGLE else values
            if name in SINGLE:
                filled = np.count_nonzero(X) > 3 * len(X)
            both(model, X, direct=bool(filled))


@pytest.mark.parametrize("name", ["chain", "empty", "multiclass"])
def test_other_input_takes_the_general_way(name):
    model, rng = fitted(name), np.random.default_rng(1)
    x = rng.normal(size=(4, 6))
    holed, endless = x.copy(), x.copy()
    holed[2, 3], endless[0, 0] = np.nan, -np.inf
    unusual = [
        x.tolist(), holed, endless, holed.astype(np.float32), x[:, :5], x[:0], x[:, :0], x[0], None,
        np.asfortranarray(x), x[::2], x[:, ::-1], x.astype(">f8"), x.astype(np.float16),
        x.astype(int), x.astype(complex), x.astype(str), sp.csc_matrix(x), np.zeros((3, 6)),
        np.ma.masked_less(x, 0), x.view(np.recarray), x[None], "text", 7,
    ]  # fmt: skip
    for one in unusual:
        both(model, one if name in SINGLE else [one], direct=False)
        both(model, one)
        both(model, [x, one])
    both(model, [], direct=False)
    if name not in SINGLE:
        both(model, (x, x))
        both(model, np.stack([x, x]), direct=False)
        both(model, [x, x.astype(np.float32)], direct=False)


@pytest.mark.parametrize("name", CASES)
def test_answers_of_sparse_examples(name):
    model, rng = fitted(name), np.random.default_rng(9)
    for trial in range(120):
        kind, dtype = (
            (sp.csr_matrix, sp.csr_array)[trial % 2],
            (np.float64, np.float32)[trial % 3 % 2],
        )
        sizes = [1] if name in SINGLE else rng.integers(1, 12, rng.integers(1, 5))
        # All ones, which are not stored in training, one other value among them, and any.
        most = 2 if trial % 4 else 4
        X = [kind(rng.integers(0, most, (n, 6)).astype(dtype)) for n in sizes]
        if trial % 8 == 1 and X[-1].nnz:
            X[-1].data[-1] = (0.0, 1.0 + 1e-6, -3.0)[trial % 3]
        both(model, X[0] if name in SINGLE else X, direct=True)


def test_sparse_examples_that_take_the_general_way():
    model, x = fitted("chain"), sp.csr_matrix(np.triu(np.ones((4, 6))))

    class Own(sp.csr_matrix):
        pass

    def changed(**arrays):
        given = x.copy()
        vars(given).update(arrays)
        return given

    data, indices, indptr = x.data, x.indices, x.indptr
    turned, twice = indices.copy(), indices.copy()
    turned[:2], twice[1] = indices[1::-1], indices[0]
    unusual = [
        Own(x), x.astype(int), x.astype(complex), x.tocoo(), x[:, :5], x[:0], sp.csr_array(x)[0],
        changed(indices=turned), changed(indices=twice), changed(indices=indices + 1),
        changed(indices=indices - 1), changed(indices=indices[:-1]), changed(data=data[:-1]),
        changed(indptr=indptr[::-1].copy()), changed(indptr=indptr + 1), changed(indptr=indptr[1:]),
        changed(data=np.append(data, 7.0), indices=np.append(indices, 0)),
        changed(indices=indices.astype(np.int64), indptr=indptr.astype(np.int64)),
        changed(data=data * np.nan), changed(data=data * np.inf), changed(data=data.astype(">f8")),
        changed(data=np.repeat(data, 2)[::2]), changed(data=np.ma.masked_less(data, 0)),
    ]  # fmt: skip
    for one in unusual:
        both(model, [one], direct=False)
        both(model, [x, one], direct=False)
    both(model, [x, x.toarray()], direct=False)
    both(model, [x, x.astype(np.float32)], direct=False)
    both(model, x, direct=False)
    both(model, [x], direct=True)


def test_sizes_on_both_sides_of_the_limits():
    model, rng = fitted("chain"), np.random.default_rng(2)
    for length in (1, 127, 128, 129):
        both(model, [rng.normal(size=(length, 6))], direct=length <= 128)
    for count in (10, 11):  # 128 * 6 values each, below 8192 in all
        both(model, [rng.normal(size=(128, 6))] * count, direct=count == 10)
    for length, count in ((128, 10), (129, 1), (128, 11)):
        x = sp.csr_matrix(rng.normal(size=(length, 6)))
        both(model, [x] * count, direct=(length, count) == (128, 10))
    one = fitted("multiclass")
    for rows in (1365, 1366):
        both(one, rng.normal(size=(rows, 6)), direct=rows == 1365)


def test_settings_that_take_the_general_way():
    x = np.random.default_rng(0).normal(size=(5, 6))
    model = fitted("chain")
    both(model, [x], direct=True)
    for params in ({"n_jobs": 2}, {"n_jobs": None}, {"n_jobs": 0}, {"n_jobs": True}):
        both(model.set_params(**params), [x], direct=False)
    both(model.set_params(n_jobs=1, oracle="lp"), [x], direct=False)
    both(model.set_params(oracle=None), [x], direct=True)
    model.feature_names_in_ = np.array(list("abcdef"))
    both(model, [x], direct=False)


def test_methods_of_subclasses_are_called():
    class Doubled(ChainStructure):
        def stack(self, X, *sizes):
            return super().stack([2 * np.asarray(x) for x in X], *sizes)

    class Reversed(StructuredSVM):
        def _best_labels(self, *args):
            return super()._best_labels(*args)[::-1]

    rng = np.random.default_rng(4)
    X, Y = [rng.normal(size=(5, 6)) for _ in range(4)], [[0, 1, 1, 2, 0]] * 4
    for model in (StructuredSVM(Doubled(), max_iter=5), Reversed("chain", max_iter=5)):
        model.fit(X, Y)
        answers = [[y.tolist() for y in model.predict(X[:1])] for _ in range(3)]
        assert model._direct("oracle", X[:1]) is None
        assert answers[0] == answers[1] == answers[2]
    model = fitted("chain")
    model.predict(X[:1])
    model.space_.unpack = lambda flat, examples: [flat.tolist()]
    model._forget_operators()
    assert {type(y) for _ in range(3) for y in model.predict(X[:1])} == {list}


def test_edge_features_and_other_models():
    rng = np.random.default_rng(5)
    nodes, Y = rng.normal(size=(4, 6)), [[0, 1, 1, 0]] * 3
    X = [(nodes + k, rng.normal(size=(3, 2))) for k in range(3)]
    both(StructuredSVM("chain", max_iter=5).fit(X, Y), X[:1], direct=False)
    kernel = StructuredSVM("chain", kernel="rbf", max_iter=5).fit([nodes] * 3, Y)
    both(kernel, [nodes], direct=False)
    objects = fitted("chain")
    objects.space_.classes_ = objects.space_.classes_.astype(object)
    both(objects, [nodes], direct=False)


def test_a_new_fit_is_used():
    model, x = fitted("chain"), np.random.default_rng(6).normal(size=(5, 6))
    both(model, [x], direct=True)
    model.fit([x] * 2, [[7, 8, 9, 8, 7]] * 2)
    both(model, [x], direct=True)
    assert set(model.predict([x])[0]) <= {7, 8, 9}
    # New weights in the same space, as partial_fit() has them.
    model._model = type(model._model)(model.space_, np.zeros(model.space_.layout.dim))
    both(model, [x], direct=True)
    assert model.predict([x])[0].tolist() == [7] * 5
    model._model = type(model._model)(model.space_, np.full(model.space_.layout.dim, np.nan))
    both(model, [x], direct=False)


def test_threads_share_one():
    model, rng = fitted("chain"), np.random.default_rng(7)
    X = [rng.normal(size=(n, 6)) for n in rng.integers(1, 20, 50)]
    expected = [y.tolist() for y in fitted_general(model).predict(X)]
    wrong = []

    def ask(_):
        for _ in range(20):
            answers = [model.predict([x])[0].tolist() for x in X]
            wrong.extend(k for k in range(50) if answers[k] != expected[k])

    in_threads(ask, range(4))
    assert wrong == []


@pytest.mark.parametrize("kind", [DirectLabels, DirectBest, DirectMarginals])
def test_operators_that_fail_are_asked_in_the_general_way(kind):
    model, x = fitted("chain"), np.random.default_rng(8).normal(size=(5, 6))
    with pytest.raises(ValueError, match="batched|packed|decode one"):
        kind(model._model, lambda layout: type("Batched", (), {"batched": True})())
    with pytest.raises(AttributeError):
        kind(model._model, lambda layout: None)
    if kind is not DirectLabels:  # another operator than it needs
        assert kind(model._model, model._asked("oracle")).answers([x]) is None
    bind = model._asked("oracle")
    answers = DirectLabels(model._model, bind).answers([x])
    assert answers[0].tolist() == model.predict([x])[0].tolist()


def test_every_number_of_best_labels():
    model, rng = fitted("bio"), np.random.default_rng(10)
    for n in (1, 2, 3):
        X = [rng.normal(size=(n, 6))] * 2
        both(model, X, direct=True, ks=range(1, 4**n + 3))  # more than there are
    x = rng.normal(size=(5, 6))
    for k in (0, -1, True, 2.0, "3", None, np.int64(3), 10**6, 10**6 + 1, 10**30):
        alike(model, "predict_kbest", [x], k)
    # 128 labels of 4 bytes and a score each; the rest is the power's own room.
    most = [k for k in range(1, 30_000, 500) if model._direct("kbest", [x], k) is not None]
    assert 1 < len(most) < 60
    for k in (most[-1], most[-1] + 500):
        alike(model, "predict_kbest", [x], k)


def test_settings_of_marginals_and_best_labels():
    model, x = fitted("chain"), np.random.default_rng(11).normal(size=(5, 6))
    for given in (
        {"scale": 2.0}, {"scale": 1}, {"scale": True}, {"scale": np.nan}, {"allowed": [None]},
        {"projection": "euclidean"}, {"projection": "other"}, {"forbidden": [("a", "b")]},
    ):  # fmt: skip
        alike(model, "predict_marginals", [x], **given)
    for given in ({"allowed": [[["a"]] * 5]}, {"forbidden": [("a", "b")]}, {"probabilities": True}):
        alike(model, "predict_kbest", [x], 3, **given)
    crf = StructuredSVM("chain", surrogate="crf", max_iter=5).fit([x] * 2, [[0, 1, 2, 1, 0]] * 2)
    both(crf, [x], direct=True)
    alike(crf, "predict_kbest", [x], 3, probabilities=True)
    alike(crf, "predict_proba", [x])


def test_own_methods_of_answers_are_called():
    class Space(type(fitted("chain").space_)):
        def unpack_one(self, label, examples, i):
            return label.tolist()

        def unpack_scores(self, flat, examples):
            return [flat.tolist()]

    class Own(ChainStructure):
        space_type = Space

    x, Y = np.random.default_rng(12).normal(size=(5, 6)), [[0, 1, 1, 2, 0]] * 2

    class Swapped(StructuredSVM):
        def _by_class(self, rows, combine):
            return rows[:, ::-1]

    for model in (StructuredSVM(Own(), max_iter=5), Swapped("chain", max_iter=5)):
        model.fit([x] * 2, Y)
        for _ in range(2):
            first = model.predict_marginals([x])
        assert model._direct("projection", [x]) is None
        plain = fitted_general(StructuredSVM("chain", max_iter=5).fit([x] * 2, Y))
        expected = plain.predict_marginals([x])[0]
        if isinstance(model, Swapped):
            expected = expected[:, ::-1]
        assert np.array_equal(first[0], expected)
    model = StructuredSVM(Own(), max_iter=5).fit([x] * 2, Y)
    for _ in range(2):
        assert type(model.predict_kbest([x], 2)[0][0][0]) is list
