"""ExtremeSVM refuses invalid input: argument, example and advice."""

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused
from extreme_cases import Plain, documents

from structsolve import ExtremeSVM
from structsolve.plugins.extreme.checks import encode, read_classes, read_rows, some_rows
from structsolve.plugins.extreme.solvers.base import ExtremeResult, ExtremeSolver
from structsolve.plugins.extreme.solvers.rivals import RivalIndex
from structsolve.plugins.extreme.weights.postings import Postings
from structsolve.utils.memory import refuse_too_large


@pytest.fixture(scope="module")
def data():
    return documents(60)


@pytest.fixture(scope="module")
def model(data):
    return ExtremeSVM(solver=Plain(), max_iter=2).fit(*data)


def with_value(X, value, i=7, f=3):
    X = X.toarray().astype(np.float64)
    X[i, f] = value
    return X


# -- rows -------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csc_matrix, sp.coo_array])
@pytest.mark.parametrize(
    "value, message",
    [
        (np.nan, r"X: Input contains NaN \(example 7"),
        (np.inf, r"X: Input contains infinity \(example 7"),
        (-np.inf, r"X: Input contains infinity \(example 7"),
        (1e39, r"X, example 7: found 1e\+39 for feature 3, expected values within 3.4e\+38"),
        (-1e300, r"X, example 7: found -1e\+300 for feature 3, .*scale the features"),
    ],
)
def test_values_that_are_no_numbers(model, data, form, value, message):
    X = form(with_value(data[0], value))
    refused(message, ExtremeSVM(solver=Plain()).fit, X, data[1])
    for call in (model.predict, model.predict_topk, model.decision_function):
        refused(message, call, X)
    refused(message, model.score, X, data[1])
    refused(message, model.calibrate, X, data[1])
    refused(message, model.partial_fit, X, data[1])


def test_features_that_float32_lacks(data):
    tiny = data[0].astype(float) * 1e-60
    for X in (tiny, tiny.toarray()):
        refused("X: found features so small", ExtremeSVM(solver=Plain()).fit, X, data[1])


def test_features_beyond_32_bits(model):
    X = sp.csr_matrix((1.0 * np.ones(2), ([0, 1], [5, 2**32])), shape=(2, 2**33))
    message = "X has 8589934592 features, expected at most 2147483647.*FeatureHasher"
    refused(message, ExtremeSVM(solver=Plain()).fit, X, [0, 1])
    refused(message, model.predict, X)


def test_classes_beyond_32_bits(model):
    refused(
        "classes: found 4294967296, expected at most 2147483647",
        ExtremeSVM(solver=Plain()).partial_fit,
        [[1.0]],
        [0],
        classes=range(2**32),
    )


def test_dense_rows_that_would_not_fit(model):
    wide = np.broadcast_to(np.float32(1), (10**9, 60))
    message = r"X: 1000000000 dense rows of 60 features, made sparse, would take 480 GB.*csr_matrix"
    refused(message, ExtremeSVM(solver=Plain()).fit, wide, [0])
    refused(message, model.predict, wide)
    small = ExtremeSVM(solver=Plain(), max_memory=1000)
    refused("would take .* GB, more than max_memory of 1e-06 GB", small.fit, np.ones((9, 60)), [0])


@pytest.mark.parametrize(
    "X, message",
    [
        ([1.0, 2.0], "found 1 dimension.*Reshape your data"),
        (np.zeros((0, 60)), r"found array with 0 sample\(s\)"),
        (np.zeros((3, 0)), r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required"),
        (np.ones((3, 60), complex), "Complex data not supported"),
        (sp.csr_matrix(np.ones((3, 60), complex)), "Complex data not supported"),
        ([["a"] * 60] * 3, "not numeric"),
        (np.ma.masked_equal(np.ones((3, 60)), 1), "masked"),
        (np.ones((3, 59)), "X has 59 features, but ExtremeSVM is expecting 60 features"),
        (sp.csr_matrix((3, 61)), "X has 61 features, but ExtremeSVM is expecting 60 features"),
    ],
)
def test_what_is_no_matrix(model, X, message):
    refused(message if np.shape(X) != (3, 0) else "X has 0 features, but", model.predict, X)
    if "expecting" not in message:
        refused(message, ExtremeSVM(solver=Plain()).fit, X, [0, 1, 1])


def test_broken_sparse_matrices(model, data):
    for name, place, value in (("indices", 3, 60), ("indices", 0, -1), ("indptr", 5, 10**6)):
        X = data[0].copy()
        getattr(X, name)[place] = value
        refused("X: the sparse matrix is broken", model.predict, X)
        refused("X: the sparse matrix is broken", ExtremeSVM(solver=Plain()).fit, X, data[1])


def test_rows_are_read_as_the_layer_below_takes_them():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n, d = rng.integers(1, 7, 2)
        dense = rng.integers(-2, 3, (n, d)) * (rng.random((n, d)) < 0.5)
        form = [np.asarray, sp.csr_matrix, sp.csc_array, sp.coo_matrix, sp.lil_matrix][
            rng.integers(5)
        ]
        rows = read_rows(form(dense), None)
        assert rows.data.dtype == np.float32 and rows.indices.dtype == np.int32
        assert rows.indptr.dtype == np.int64 and rows.has_sorted_indices
        np.testing.assert_array_equal(rows.toarray(), dense)
        a, b = np.sort(rng.integers(0, n + 1, 2))
        part = some_rows(rows, a, b)
        assert part.indptr.dtype == np.int64 and part.indices.dtype == np.int32
        np.testing.assert_array_equal(part.toarray(), dense[a:b])


# -- labels -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "y, message",
    [
        (["a"] * 60, "y: found one class, 'a', expected at least 2"),
        (np.zeros(60, int), "y: found one class, 0, expected at least 2"),
        (np.zeros(59), "inconsistent numbers of samples: 60 rows of X, 59 labels in y"),
        (np.linspace(0, 1, 60), "Unknown label type: continuous"),
        (["a", 1] * 30, "expected all strings or all integers"),
        ([None] * 60, "Unknown label type"),
        (np.r_[np.zeros(59), np.nan], "NaN|nan"),
        (None, "requires y to be passed"),
        (np.ones((60, 2), int), "y: found rows of several labels, but solver .plain. .* one class"),
        (np.ma.masked_equal(np.arange(60), 3), "y: found a masked array with 1 masked entry"),
    ],
)
def test_labels_that_are_none(data, y, message):
    refused(message, ExtremeSVM(solver=Plain()).fit, data[0], y)


def test_classes_that_are_unknown(model, data):
    X, y = data
    odd = y.copy()
    odd[[4, 9]] = 99
    message = r"y, entry 4: found class 99, expected one of classes_ \(2 of 60 are unknown\)"
    refused(message, model.partial_fit, X, odd)
    refused("classes, entry 1: found class -5", model.decision_function, X, classes=[0, -5])
    names = "y holds <U1, but the model was trained on classes of type int64: give labels"
    refused(names, model.score, X, np.array(["a"] * 60))
    refused("classes holds <U1", model.decision_function, X, classes=["a"])
    first = ExtremeSVM(solver=Plain())
    refused("y, entry 0: found class 0.*classes=", first.partial_fit, X, y, classes=[50, 51])
    assert not hasattr(first, "classes_")


def test_all_classes_of_partial_fit(model, data):
    X, y = data
    message = "classes is not the same as in the first call, which had 12"
    refused(message, model.partial_fit, X, y, classes=np.arange(13))
    fresh = ExtremeSVM(solver=Plain())
    refused("one class, 3, expected at least 2.*classes=", fresh.partial_fit, X[:1], [3])
    refused("classes is 'ab', expected a list", fresh.partial_fit, X, y, classes="ab")
    refused("classes is 7, expected a list", fresh.partial_fit, X, y, classes=7)


def test_numbers_of_classes_against_brute_force():
    rng = np.random.default_rng(0)
    for _ in range(200):
        classes = np.unique(rng.integers(-5, 6, rng.integers(2, 8)))
        labels = rng.integers(-7, 8, rng.integers(0, 9))
        if rng.random() < 0.5:
            classes, labels = np.unique(classes.astype(str)), labels.astype(str)
        known = classes.tolist()
        expected = [known.index(c) if c in known else -1 for c in labels.tolist()]
        assert encode(labels, classes).tolist() == expected
    assert read_classes([3, 1, 3]).tolist() == [1, 3]


@pytest.mark.parametrize(
    "weights, message",
    [
        (np.ones(59), "sample_weight"),
        (-np.ones(60), "sample_weight"),
        (np.zeros(60), "sample_weight"),
        (np.full(60, np.nan), "sample_weight"),
    ],
)
def test_weights_that_are_none(model, data, weights, message):
    refused(message, ExtremeSVM(solver=Plain()).fit, *data, sample_weight=weights)
    refused(message, model.score, *data, sample_weight=weights)


# -- settings ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"alpha": 0}, "alpha is 0, expected a finite number > 0 or 'auto'"),
        ({"alpha": -1.0}, "alpha is -1.0"),
        ({"alpha": "large"}, "alpha is 'large'"),
        ({"alpha": np.nan}, "alpha is nan"),
        ({"tol": -1}, "tol is -1"),
        ({"max_memory": 0}, "max_memory is 0, expected a finite number > 0 of bytes, or None"),
        ({"max_memory": "3 GB"}, "max_memory is '3 GB'"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"max_iter": 2.5}, "max_iter is 2.5"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"verbose": "yes"}, "verbose is 'yes'"),
        ({"random_state": "seed"}, "random_state is 'seed'"),
        ({"penalty": "l3"}, "penalty is 'l3', expected 'l2' or 'l1'"),
        ({"penalty": None}, "penalty is None, expected 'l2' or 'l1'"),
        ({"surrogate": None}, "surrogate is None, expected 'auto', a name or an object"),
        ({"solver": "liblinear"}, "solver is 'liblinear', expected 'auto', 'choice'"),
        ({"solver": Plain}, "solver is <class .*, expected 'auto', a name or an object"),
        ({"solver": None}, "solver is None"),
        ({"solver": Plain(steps="many")}, "Plain: steps is 'many', expected an integer"),
        ({"rivals": "best"}, "unknown rival index 'best'|rivals 'best'|known:"),
        ({"rivals": "certified:-1"}, "epsilon is -1, expected a finite number of at least 0"),
        ({"rivals": None}, "rivals is None"),
        ({"rivals": 3}, "rivals is 3"),
    ],
)
def test_settings_that_make_no_sense(data, settings, message):
    refused(message, ExtremeSVM(**{"solver": Plain(), **settings}).fit, *data)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"callbacks": print}, "callbacks is .*, expected a list of functions"),
        ({"callbacks": [3]}, "callbacks is .*, expected a list of functions"),
        ({"checkpoint": 3}, "checkpoint is 3, expected None or a path"),
        ({"solver": object()}, "solver is .*expected 'auto'"),
        ({"rivals": object()}, "rivals is .*, expected a name"),
    ],
)
def test_settings_of_the_wrong_kind(data, settings, message):
    refused(message, ExtremeSVM(**{"solver": Plain(), **settings}).fit, *data, error=TypeError)


@pytest.mark.parametrize("k", [0, -1, 13, 2.0, "all", True, None])
def test_wrong_numbers_of_classes(model, data, k):
    message = r"k is .*, expected an integer from 1 to 12, the number of classes"
    refused(message, model.predict_topk, data[0], k)


def test_answers_that_would_not_fit(model, data):
    X = sp.csr_matrix((10**6, 60))
    small = ExtremeSVM(solver=Plain(), max_memory=1e7).fit(*data).calibrate(*data, kept=3)
    message = (
        "scores of 1000000 examples and 12 classes would take 0.048 GB, more than max_memory of "
        r"0.01 GB: call predict_topk\(X, k\)"
    )
    refused(message, small.decision_function, X)
    assert small.decision_function(X[:1000], classes=[3]).shape == (1000, 1)
    message = "probabilities of 1000000 examples .* would take 0.096 GB.*k up to 3 for the best"
    refused(message, lambda: small.predict_proba(X))
    assert small.predict_proba(X[:1000], 2).nnz == 2000
    half = refuse_too_large, 1e18, "it", "less"
    refused("more than half of the .* GB of memory: less", *half, half=True)
    refused("more than max_memory of 1 GB: less", *half, 1e9, half=True)


# -- solvers and indexes from outside ---------------------------------------------------------


class Wrong(ExtremeSolver):
    name = "wrong"

    def __init__(self, what: str = ""):
        self.what = what

    def fit(self, problem, after=None, checkpoint=None):
        d, n_classes = problem.X.shape[1], problem.n_classes
        if self.what == "matrix":
            return ExtremeResult(sp.csr_matrix((d, n_classes)), [], "tol")
        if self.what == "nothing":
            return None
        return ExtremeResult(Postings.from_matrix(sp.csr_matrix((d, n_classes + 1))), [], "tol")


@pytest.mark.parametrize(
    "what, error, message",
    [
        ("matrix", TypeError, "solver 'wrong' returned weights of type csr_matrix, expected"),
        ("nothing", TypeError, "solver 'wrong' returned .*NoneType, expected"),
        ("size", ValueError, "solver 'wrong' returned weights of 60 features and 13 classes"),
    ],
)
def test_solvers_that_return_something_else(data, what, error, message):
    refused(message, ExtremeSVM(solver=Wrong(what)).fit, *data, error=error)


def test_solvers_without_partial_fit_say_so(data):
    for solver in ("dual", "one-vs-some", Wrong()):
        model = ExtremeSVM(solver=solver)
        assert not hasattr(model, "partial_fit")
        with pytest.raises(AttributeError) as told:
            model.partial_fit(*data)
        assert "use solver='memoir'" in str(told.value)


class Liar(RivalIndex):
    """Returns the last class other than the example's own, and claims that it is the best."""

    name = "liar"

    def rivals(self, X, exclude, k, epsilon=None):
        last = self._weights.n_classes - 1
        ids = np.where(exclude == last, last - 1, last).astype(np.int32)[:, None]
        return ids, self._weights.scores(X, ids), np.zeros(len(ids))


class Honest(Liar):
    """The same answers, with bounds that claim nothing."""

    name = "honest"

    def rivals(self, X, exclude, k, epsilon=None):
        ids, scores, bounds = super().rivals(X, exclude, k, epsilon)
        return ids, scores, bounds + np.inf


def test_an_outsiders_index_that_lies_is_named(data):
    settings = {"solver": "memoir", "alpha": 0.01, "max_iter": 5}
    message = "rival index 'liar' .*lies about its bound: example"
    refused(message, ExtremeSVM(rivals=Liar(), **settings).fit, *data)
    given = Honest()
    model = ExtremeSVM(rivals=given, **settings).fit(*data)
    assert model.n_iter_ == 5 and not hasattr(given, "_weights")
    assert model.settings_["rivals"] == "Honest()"


def test_rivals_that_no_one_would_read(data):
    refused(
        "rivals is 'lsh:64', which solver 'softmax' does not take",
        ExtremeSVM(surrogate="crf", rivals="lsh:64").fit,
        *data,
    )


@pytest.mark.parametrize("name", ["max_iter", "tol", "alpha"])
def test_numbers_beyond_all_machine_numbers_are_refused_by_name(name, data):
    """Found by the fuzzer: an OverflowError, and a TypeError from NumPy."""
    refused(f"{name} is 1000", ExtremeSVM(**{name: 10**400}).fit, *data)


@pytest.mark.parametrize("solver", ["softmax", "memoir", "dual"])
@pytest.mark.filterwarnings("ignore:X. .* rows are far from length 1")
def test_weights_that_overflow_are_told(solver, data):
    """Softmax regression dropped those that were NaN, and returned the intercepts."""
    model = ExtremeSVM(solver=solver, surrogate="crf", alpha=1e-12, max_iter=5)
    refused("weights that are not finite in pass", model.fit, data[0] * 3e38, data[1])


@pytest.mark.parametrize("n", [1, 2])
def test_scores_that_would_overflow_are_refused(n, model):
    """They were NaN, and class 0 the answer; one row alone takes a way of its own."""
    X = sp.csr_matrix([[3e38, -3e38] * 30] * n)
    refused("X, example 0: found 3e.38 for feature 0, expected values within", model.predict, X)
