"""Rankings and matchings: forms of data, losses, training, saving, errors."""

from functools import partial

import numpy as np
import pytest
from checks import LOSS, refused, reloaded
from permutation_cases import matchings, rankings
from scipy import sparse
from shell import fails, works
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import structsolve
from structsolve import ClassWeights, CostMatrix, StructuredSVM, get_scorer
from structsolve.lp.ask import ask_oracle
from structsolve.plugins.permutation import PermutationStructure, assign
from structsolve.structure import calls
from structsolve.structure.ask import ask_loss, ask_parts, make_layout
from structsolve.surrogates import Margin, Slack, SparseMAP
from structsolve.surrogates.calls import cut
from structsolve.surrogates.task import Task
from structsolve.testing import check_structure


@pytest.mark.parametrize("kind", ["auto", "ranking", "matching"])
def test_conformance(kind):
    # "auto" recognises rankings from the data.
    check_structure(PermutationStructure(kind), n_cases=1 if kind == "auto" else 3)


@pytest.mark.parametrize("loss", ["spearman", "normalized-hamming"])
def test_conformance_of_losses(loss):
    for kind in ("ranking", "matching"):
        check_structure(PermutationStructure(kind), loss=loss, n_cases=1, only=LOSS)
    cost = CostMatrix([[0, 1, 4], [2, 0, 1], [5, 3, 0]], normalized=loss != "spearman")
    check_structure("permutation", loss=cost, n_cases=1, solvers=(), only=LOSS)


def test_conformance_of_class_weights():
    check_structure("permutation", ClassWeights({0: 3.0}), n_cases=1, solvers=(), only=LOSS)


@pytest.mark.parametrize("solver", ["bcfw", "cutting-plane", "sgd"])
def test_rankings(solver):
    X, ranks = rankings()
    model = StructuredSVM("permutation", alpha=0.003, solver=solver, tol=0.02, loss="spearman")
    model.fit(X[:40], ranks[:40])
    predicted = model.predict(X[40:])
    assert (np.sort(predicted, axis=1) == np.arange(4)).all() and predicted.dtype == np.int64
    distance = np.abs(predicted - ranks[40:]).sum(axis=1)
    assert model.score(X[40:], ranks[40:]) == pytest.approx(1 - distance.mean() / 4)
    assert distance.mean() < 2.5  # 5 by chance
    assert model.coef_["node"].shape == (4, 4, 4) and model.coef_["intercept"].shape == (4, 4)
    names = model.named_weights()[0][1]
    assert len(names) == 3


def test_matchings():
    X, Y = matchings()
    model = StructuredSVM("permutation", alpha=0.01).fit(X[:30], Y[:30])
    assert model.score(X[30:], Y[30:]) > 0.85
    assert list(model.coef_) == ["pair"] and model.coef_["pair"].shape == (3, 1)
    for x, predicted in zip(X, model.predict(X)):
        best = assign((x @ model.coef_["pair"])[..., 0])
        assert predicted.tolist() == best.columns.tolist()
    wrong = [(a != b).sum() for a, b in zip(model.predict(X), Y)]
    assert model.score(X, Y) == pytest.approx(1 - sum(wrong) / sum(map(len, Y)))


def test_forbidden_pairs_are_not_matched():
    X, Y = matchings(n=12, n_features=2)
    rng = np.random.default_rng(1)
    for x, y in zip(X, Y):
        barred = rng.random(x.shape[:2]) < 0.3
        barred[np.arange(len(y)), y] = False
        x[barred] = np.nan
    model = StructuredSVM("permutation", alpha=0.01).fit(X, Y)
    for x, predicted in zip(X, model.predict(X)):
        assert np.isfinite(x[np.arange(len(predicted)), predicted]).all()
    assert np.isfinite(model.coef_["pair"]).all()


def test_forms_of_rankings():
    X, ranks = rankings(n=20)
    expected = StructuredSVM("permutation", tol=0.1).fit(X, ranks).predict(X).tolist()
    forms = [
        (sparse.csr_matrix(X), ranks.astype(np.int8)),
        (X.tolist(), [list(row) for row in ranks]),
        (X, ranks.astype(float)),
        (X, [row for row in ranks]),
    ]
    for features, y in forms:
        model = StructuredSVM("permutation", tol=0.1).fit(features, y)
        assert model.predict(features).tolist() == expected


@pytest.mark.pandas
def test_data_frames():
    pd = pytest.importorskip("pandas")
    X, ranks = rankings(n=20)
    expected = StructuredSVM("permutation", tol=0.1).fit(X, ranks).predict(X).tolist()
    for names in ([3, 5, 4, 7], list("dcba")):
        frames = pd.DataFrame(X, columns=list("wxyz")), pd.DataFrame(ranks, columns=names)
        model = StructuredSVM("permutation", tol=0.1).fit(*frames)
        assert model.predict(frames[0]).tolist() == expected
        assert model.classes_.tolist() == names
        for score in (model.score, partial(get_scorer("kendall-tau"), model)):
            refused("y: found the columns", score, frames[0], frames[1][names[::-1]])
            assert score(*frames) > 0.5
        told = "y: found the columns .*, expected .* as classes"
        refused(told, model.space_.structure.make_space, *frames, classes=names[::-1])


def test_forms_of_matchings():
    rng = np.random.default_rng(3)
    block = rng.normal(size=(6, 3, 4, 2))
    Y = [rng.permutation(4)[:3] for _ in block]
    fit = StructuredSVM("permutation", tol=0.1).fit
    expected = [y.tolist() for y in fit(list(block), Y).predict(block)]
    for X, y in ((block, np.array(Y)), (block.tolist(), Y), (tuple(block), [list(v) for v in Y])):
        predicted = fit(X, y).predict(list(block))
        assert [v.tolist() for v in predicted] == expected


@pytest.mark.parametrize("kind", ["ranking", "matching"])
def test_saving(kind, tmp_path):
    X, Y = rankings() if kind == "ranking" else matchings()
    model = StructuredSVM(PermutationStructure(kind), alpha=0.01, loss="spearman").fit(X, Y)
    again = reloaded(model, tmp_path)
    assert all((a == b).all() for a, b in zip(again.predict(X), model.predict(X)))
    assert again.score(X, Y) == model.score(X, Y)
    assert again.structure.kind == kind


def test_scikit_learn():
    X, ranks = rankings(n=40)
    search = GridSearchCV(StructuredSVM("permutation", tol=0.1), {"alpha": [1e-2, 100.0]}, cv=3)
    assert search.fit(X, ranks).best_score_ > 0.4  # 0.25 by chance
    assert clone(PermutationStructure("matching")).kind == "matching"
    model = StructuredSVM("permutation", early_stopping=True, random_state=0).fit(X, ranks)
    assert "val" in " ".join(model.history_[-1])


def test_costs_of_ranks():
    X, ranks = rankings(n=8, K=3)
    space, examples = PermutationStructure().make_space(X, ranks)
    layout = make_layout(space, examples)
    table = np.array([[0, 1, 4], [2, 0, 1], [5, 3, 0.5]])
    table[2, 2] = 0
    losses = {
        "hamming": lambda y, t: (y != t).sum(),
        "normalized-hamming": lambda y, t: (y != t).mean(),
        "spearman": lambda y, t: np.abs(y - t).sum(),
        "zero-one": lambda y, t: float((y != t).any()),
        "table": lambda y, t: table[t, y].sum(),
    }
    for name, expected in losses.items():
        loss = ask_loss(space, CostMatrix(table) if name == "table" else name)(layout)
        for i in range(8):
            for label in space.enumerate_labels(examples, i):
                value = calls.loss_value(loss, i, examples.label(i), label)
                assert value == pytest.approx(expected(label, ranks[i]))


def test_oracle_of_masked_scores():
    X, ranks = rankings(n=4, K=4)
    space, _ = PermutationStructure().make_space(X, ranks)
    oracle = ask_oracle(space)(make_layout(space, space.pack(X)))
    theta = np.random.default_rng(0).normal(size=16)
    theta.reshape(4, 4)[0, 1:] = -np.inf
    label, value, bound = calls.argmax(oracle, 0, theta)
    assert label[0] == 0 and np.isfinite(value) and bound == value
    theta.reshape(4, 4)[1, 1:] = -np.inf
    refused("example 0: no assignment is possible", calls.argmax, oracle, 0, theta)
    refused("example 0: no assignment is possible", calls.argmax, oracle, 0, np.full(16, np.nan))


def test_sizes_that_do_not_fit_are_refused():
    structure = PermutationStructure("matching")
    X = [np.ones((2, 3, 1)), np.ones((1, 2, 1))]
    space, _ = structure.make_space(X, None)
    for name, value, message in (
        ("cols", np.array([3, 3]), "example 1: found 2 pairs, expected 1 x 3"),
        ("cols", np.array([1, 2]), "example 0: found 2 rows and 1 columns"),
        ("cols", np.array([3]), "cols: found 1, expected 2"),
        ("forbidden", np.zeros(7, np.uint8), "forbidden has 7 entries, expected 8"),
    ):
        examples = space.pack(X)
        examples.topology[name] = value
        refused(message, ask_parts(space), make_layout(space, examples))


def test_true_columns_are_checked_once():
    X = [np.ones((2, 3, 1)), np.ones((1, 2, 1))]
    space, _ = PermutationStructure("matching").make_space(X, None)
    for name in ("hamming", "spearman"):
        loss = ask_loss(space, name)(make_layout(space, space.pack(X)))
        loss.check_truths(np.array([2, 0, 1], np.int32))
        with pytest.raises(ValueError, match="example 1, row 0: the true column is 2, expected 0"):
            loss.check_truths(np.array([2, 0, 2], np.int32))
        refused("found 2 labels, expected 3", loss.check_truths, np.array([2, 0], np.int32))


@pytest.mark.parametrize("column", [3, 4])
@pytest.mark.parametrize("loss", ["hamming", "spearman"])
def test_columns_that_one_example_has_not_are_refused(loss, column):
    # The other has more columns: n_states, which is one number for all, does not tell.
    X = [np.ones((2, 5, 1)), np.ones((2, 3, 1))]
    space, _ = PermutationStructure("matching").make_space(X, None)
    examples = space.pack(X)
    layout = make_layout(space, examples)
    parts, theta = ask_parts(space)(layout), np.zeros(layout.sizes(1)[0])
    good, wrong = np.array([0, 2], np.int32), np.array([0, column], np.int32)
    assert parts.n_states == 5
    message = f"example 1, row 1: the label is column {column}, expected 0 to 2"
    refused(message, calls.encode, parts, 1, wrong)
    refused(message, calls.difference, parts, 1, wrong, good)
    refused(message, calls.difference, parts, 1, good, wrong)
    refused(message, calls.augment, ask_loss(space, loss)(layout), 1, wrong, 1.0, theta)
    task = Task(space, examples, loss)
    for surrogate in (Margin(), Slack(), SparseMAP()):
        native = surrogate.bind(task)
        refused(message, cut, native, 1, theta, wrong)
        assert cut(native, 1, theta, good).bound >= 0


def test_columns_that_one_example_has_not_are_refused_in_training_and_scoring():
    Y = np.array([0, 4])
    X = [np.random.default_rng(0).normal(size=(2, 5, 2)), np.ones((2, 3, 2))]
    model = StructuredSVM("permutation", alpha=0.1).fit(X, [Y, [0, 2]])
    message = "example 1, row 1: the matching holds column 4, expected 0 to 2"
    refused(message, model.score, X, [Y, Y])
    refused(message, model.fit, X, [Y, Y])


X2 = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
PAIRS = [np.ones((2, 3, 2)), np.ones((2, 2, 2))]


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        ([[0, 1, 2], [0, 2, 1], [0, 0, 1]], r"example 2: .*labels 0 and 1 the same rank 0.*tie"),
        ([[0, 1, 2], [0, 1, 3], [2, 1, 0]], r"example 1, label 2: .*rank 3, expected 0 to 2"),
        ([[1, 2, 3], [3, 2, 1], [1, 3, 2]], r"example 0, label 2: .*ranks count from 0"),
        ([[0, 1, 2], [0, -1, 1], [2, 1, 0]], r"example 1, label 1: .*rank -1"),
        ([[0, 1, 2], [0, np.nan, 1], [2, 1, 0]], r"example 1: .*entry 1 is nan: partial"),
        ([[0, 1, 2], [0, 1.5, 1.5], [2, 1, 0]], r"example 1: .*entry 1 is 1.5.*tie"),
        ([[0, 1, 2], [0, 1], [2, 1, 0]], r"example 1: .*has 2 ranks, expected 3.*partial"),
        ([[0, 1, 2], [0, None, 1], [2, 1, 0]], r"example 1"),
        ([["a", "b"], ["b", "a"], ["a", "b"]], r"example 0: .*expected whole numbers"),
        ([[0, 1], [1, 0]], r"inconsistent numbers of samples: 3 rows of X, 2"),
        ([0, 1, 2], r"expected an array of shape \(n, labels\)"),
        (np.zeros((3, 0)), r"no columns"),
        (np.full((3, 2), 1e300), r"example 0, label 0"),
        (None, r"y is None"),
    ],
)
def test_refused_rankings(Y, message):
    refused(message, StructuredSVM("permutation").fit, X2, Y)


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        ([np.ones((3, 2, 2))], [[0, 1, 2]], r"example 0: found 3 rows and 2 columns.*no more rows"),
        (PAIRS, [[0, 0], [0, 1]], r"example 0: .*rows 0 and 1 the same column 0"),
        (PAIRS, [[0, 1], [0, 2]], r"example 1, row 1: .*column 2, expected 0 to 1"),
        (PAIRS, [[0, 1], [0]], r"example 1: X has 2 rows and y has 1 columns"),
        (PAIRS, [[0, 1]], r"X has 2 examples and y has 1"),
        (PAIRS, 3, r"y is an int"),
        ([np.ones((2, 2, 2)), np.ones((2, 2, 3))], [[0, 1]] * 2, r"example 1: found 3 features"),
        ([np.ones((2, 2, 2)), np.ones((2, 2))], [[0, 1]] * 2, r"example 1: found shape \(2, 2\)"),
        ([np.ones((2, 2, 2)) * 1j], [[0, 1]], "example 0: found no array of numbers .Complex"),
        ([np.full((2, 2, 2), np.inf)], [[0, 1]], r"infinity"),
        ([np.full((2, 2, 1), np.nan)], [[0, 1]], r"example 0, row 0: no matching"),
        ([np.ones((0, 2, 1))], [[]], r"example 0: found 0 rows"),
        ([np.ones((2, 2, 0))], [[0, 1]], r"example 0: found 0 features"),
    ],
)
def test_refused_matchings(X, Y, message):
    refused(message, StructuredSVM(PermutationStructure("matching")).fit, X, Y)


def test_refused_forbidden_pairs():
    x = np.ones((2, 2, 2))
    x[0, 0, 1] = np.nan
    with pytest.raises(ValueError, match="example 0, row 0, column 0: Input contains NaN in some"):
        StructuredSVM("permutation").fit([x], [[0, 1]])
    x[0, 0] = np.nan
    with pytest.raises(ValueError, match="example 1, row 0: y holds column 0, a forbidden pair"):
        StructuredSVM("permutation").fit([np.ones((2, 3, 2)), x], [[0, 1], [0, 1]])
    crowded = np.ones((3, 3, 1))
    crowded[:2, 1:] = np.nan
    with pytest.raises(ValueError, match="example 0, row .: no matching of all rows"):
        StructuredSVM("permutation").fit([crowded], [[0, 1, 2]])


def test_refused_costs():
    X, ranks = rankings(n=6, K=3)
    for matrix in ([[0, -1, 1], [1, 0, 1], [1, 1, 0]], [[1, 1, 1], [1, 0, 1], [1, 1, 0]]):
        with pytest.raises(ValueError, match="costs of at least 0, and 0 on the diagonal"):
            StructuredSVM("permutation", loss=CostMatrix(matrix)).fit(X, ranks)
    with pytest.raises(ValueError, match=r"shape \(2, 2\), expected \(3, 3\)"):
        StructuredSVM("permutation", loss=CostMatrix([[0, 1], [1, 0]])).fit(X, ranks)
    with pytest.raises(ValueError, match="example 1: found 2 columns, expected 3"):
        cost = CostMatrix(1 - np.eye(3))
        StructuredSVM("permutation", loss=cost).fit(PAIRS, [[0, 1], [1, 0]])
    refused("unknown loss 'kendall'", StructuredSVM("permutation", loss="kendall").fit, X, ranks)


def test_refused_at_prediction():
    X, ranks = rankings(n=6)
    model = StructuredSVM("permutation", tol=1).fit(X, ranks)
    refused("features", model.predict, X[:, :2])
    refused("expected a matrix with one row per ranking", model.predict, PAIRS)
    refused("neither allowed labels", model.predict, X, allowed=[None] * 6)
    matcher = StructuredSVM("permutation", tol=1).fit(PAIRS, [[0, 1], [0, 1]])
    with pytest.raises(ValueError, match="found 3 features of a pair, expected 2 as in training"):
        matcher.predict([np.ones((2, 2, 3))])
    refused(r"X has shape \(6, 4\), expected a list", matcher.predict, X)
    refused("kind is 'order'", StructuredSVM(PermutationStructure("order")).fit, X, ranks)


def test_marginals():
    X, ranks = rankings(n=10, K=3)
    model = StructuredSVM("permutation", alpha=0.1).fit(X, ranks)
    marginals = model.predict_marginals(X)
    assert marginals.shape == (10, 3, 3)
    np.testing.assert_allclose(marginals.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_allclose(marginals.sum(axis=2), 1, atol=1e-9)
    X, Y = matchings(n=5)
    tables = StructuredSVM("permutation", alpha=0.1).fit(X, Y).predict_marginals(X)
    assert [t.shape for t in tables] == [x.shape[:2] for x in X]


def test_shell(capsys, tmp_path):
    X, ranks = rankings(n=30)
    np.savez(tmp_path / "r.npz", X=X, y=ranks)
    data, path = tmp_path / "r.npz", tmp_path / "m.structsolve"
    given = ("--structure", "permutation", "--loss", "spearman", "--tol", "0.1")
    works(capsys, "fit", data, "--model", path, *given)
    rows = [line.split() for line in works(capsys, "predict", path, data).splitlines()]
    assert rows == structsolve.load(path).predict(X).astype(str).tolist()
    assert "sequences with an error" in works(capsys, "score", path, data)
    fails(capsys, "predict", path, data, "--marginals")


# -- the default loss -----------------------------------------------------------------------------


def test_rankings_train_by_default_with_distances_of_ranks_and_matchings_do_not():
    rng = np.random.default_rng(0)
    X, ranks = rng.normal(size=(30, 3)), np.array([rng.permutation(4) for _ in range(30)])
    pairs, columns = PermutationStructure("matching").sample(1, n=8)
    for x, y, default, other in (
        (X, ranks, "spearman", "hamming"),
        (pairs, columns, "hamming", "spearman"),
    ):
        made = {
            loss: StructuredSVM("permutation", loss=loss, alpha=0.1, tol=1e-4).fit(x, y)
            for loss in ("auto", default, other)
        }
        w = {loss: model.flat_weights() for loss, model in made.items()}
        assert (w["auto"] == w[default]).all() and not np.allclose(w["auto"], w[other])
        assert made["auto"].score(x, y) == made[default].score(x, y)
    assert StructuredSVM().loss == "auto"


def test_a_saved_default_is_the_default_and_an_explicit_loss_stays(tmp_path):
    rng = np.random.default_rng(0)
    X, ranks = rng.normal(size=(30, 3)), np.array([rng.permutation(4) for _ in range(30)])
    for loss in ("auto", "hamming"):
        model = StructuredSVM("permutation", loss=loss, alpha=0.1).fit(X, ranks)
        model.save(tmp_path / "m")
        loaded = structsolve.load(tmp_path / "m")
        assert loaded.loss == loss and loaded.score(X, ranks) == model.score(X, ranks)
