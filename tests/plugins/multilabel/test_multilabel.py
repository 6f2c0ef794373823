"""Label sets: indicator matrices in and out, pairs with weights, losses, training."""

import itertools

import networkx as nx
import numpy as np
import pytest
from checks import LOSS, check_oracle, refused, reloaded
from data import data_file, needs_data
from reference.objectives import optimum
from scipy import sparse
from scipy.stats import chi2_contingency
from sklearn.base import clone
from sklearn.metrics import f1_score, hamming_loss, label_ranking_average_precision_score
from sklearn.model_selection import GridSearchCV

import structsolve
from structsolve import AnyOf, LatentSVM, StructuredSVM
from structsolve.lp import ask_oracle
from structsolve.plugins.multilabel import MultilabelStructure
from structsolve.plugins.multilabel.labels import chow_liu, counts_of, mutual_information
from structsolve.structure import calls
from structsolve.structure.ask import ask_loss, ask_power, make_layout
from structsolve.testing import check_structure


def label_sets(n=40, n_features=4, n_labels=4, seed=0):
    """Dependent labels: the last is on exactly if the first two are."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(n_features, n_labels))
    X = rng.normal(size=(n, n_features))
    Y = (X @ W + 0.3 * rng.normal(size=(n, n_labels)) > 0).astype(int)
    Y[:, -1] = Y[:, 0] & Y[:, 1]
    return X, Y


@pytest.mark.parametrize("edges", ["full", "tree", "none", [[0, 1]], [[2, 0], [1, 2]]], ids=str)
def test_conformance(edges):
    check_structure(MultilabelStructure(edges), n_cases=2)


@pytest.mark.parametrize("oracle", ["roof-duality", "trws", "lp"])
def test_conformance_of_inexact_oracles(oracle):
    n_cases = 2 if oracle == "lp" else 4
    check_structure(MultilabelStructure(oracle=oracle), solvers=(), size=4, n_cases=1)
    check_oracle(MultilabelStructure(oracle=oracle), range(1, n_cases), size=4)
    check_oracle(MultilabelStructure("tree", oracle=oracle), range(2))


# Missed labels cost 3, extra ones .5; the mean of missed labels twice and extra ones.
WEIGHED = [
    structsolve.CostMatrix([[0, 0.5], [3, 0]]),
    structsolve.ClassWeights({1: 2.0}, normalized=True),
]


@pytest.mark.parametrize("loss", ["zero-one", "normalized-hamming", *WEIGHED], ids=str)
def test_conformance_of_losses(loss):
    check_structure("multilabel", loss=loss, n_cases=2, solvers=(), only=LOSS)


def test_score_of_a_set_is_that_of_its_labels_and_pairs():
    X, Y = label_sets()
    model = StructuredSVM("multilabel", alpha=0.01, tol=0.01).fit(X, Y)
    w, b, pair = model.coef_["node"], model.coef_["intercept"], model.coef_["pair"]
    assert w.shape == (4, 4) and pair.shape == (6, 2, 2)
    sets = np.indices((2,) * 4).reshape(4, -1).T
    scores = (X @ w + b) @ sets.T
    for table, (u, v) in zip(pair, model.space_.edges_):
        scores += table[sets[:, u], sets[:, v]]
    assert model.predict(X).tolist() == sets[scores.argmax(axis=1)].tolist()
    assert model.classes_.tolist() == [0, 1, 2, 3]
    # The gain of a label with the best other labels.
    decisions = model.decision_function(X)
    on = np.stack([scores[:, sets[:, v] == 1].max(axis=1) for v in range(4)], axis=1)
    off = np.stack([scores[:, sets[:, v] == 0].max(axis=1) for v in range(4)], axis=1)
    assert np.allclose(decisions, on - off)
    assert ((decisions > 0) == (model.predict(X) == 1)).all()
    # All sets, best first.
    for row, answers in zip(scores, model.predict_kbest(X, 20), strict=True):
        np.testing.assert_allclose([value for _, value in answers], np.sort(row)[::-1])
        for y, value in answers:
            assert np.isclose(row[(sets == y).all(axis=1)], value).all()


def features(x, y, edges):
    """Phi' mu(y): the joint state of every pair, the features at every label that is on."""
    pairs = np.zeros((len(edges), 2, 2))
    for e, (u, v) in enumerate(edges):
        pairs[e, y[u], y[v]] = 1
    return np.concatenate([pairs.ravel(), np.outer(np.append(x, 1), y).ravel()])


def written(X, Y, edges, missed):
    """Write down the full margin problem, with this cost of a missed label."""
    sets = np.indices((2,) * Y.shape[1]).reshape(Y.shape[1], -1).T
    return [
        (
            np.array([features(x, y, edges) - features(x, z, edges) for z in sets]),
            (sets > y).sum(axis=1) + missed * (sets < y).sum(axis=1),
        )
        for x, y in zip(X, Y)
    ]


@pytest.mark.parametrize("edges", ["full", "tree", "none", [[0, 2]]], ids=str)
@pytest.mark.parametrize("solver", ["bcfw", "cutting-plane"])
@pytest.mark.parametrize(("loss", "missed"), [("hamming", 1.0), ("auto", 2.0)])
def test_training_reaches_the_optimum(edges, solver, loss, missed):
    X, Y = label_sets(n=12, n_labels=3)
    settings = {"alpha": 0.1, "tol": 1e-6, "max_iter": 500, "solver": solver, "loss": loss}
    model = StructuredSVM(MultilabelStructure(edges), **settings).fit(X, Y)
    assert model.stop_reason_ == "converged"
    best = optimum(written(X, Y, model.space_.edges_, missed), 0.1)
    assert model.history_[-1]["primal"] == pytest.approx(best.value, rel=1e-5)


def test_pairs_help():
    X, Y = label_sets(n=300, seed=3)
    scores = {
        edges: StructuredSVM(MultilabelStructure(edges), alpha=1e-3, tol=0.01)
        .fit(X[:150], Y[:150])
        .score(X[150:], Y[150:])
        for edges in ("none", "full")
    }
    assert scores["full"] > scores["none"]


def test_metrics_and_score():
    X, Y = label_sets()
    model = StructuredSVM("multilabel", alpha=0.01, tol=0.05).fit(X, Y)
    predicted = model.predict(X)
    assert predicted.dtype == np.int64 and predicted.shape == Y.shape
    assert model.score(X, Y) == pytest.approx(1 - hamming_loss(Y, predicted))
    assert f1_score(Y, predicted, average="micro") > 0.8
    assert label_ranking_average_precision_score(Y, model.decision_function(X)) > 0.8
    zero_one = StructuredSVM("multilabel", alpha=0.01, loss="normalized-hamming").fit(X, Y)
    assert zero_one.score(X, Y) == pytest.approx(1 - hamming_loss(Y, zero_one.predict(X)))


def test_missed_labels_cost_twice_as_much_by_default_in_training_with_the_margin_alone():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 10))
    Y = (X @ rng.normal(size=(10, 12)) + 4 * rng.normal(size=(1200, 12)) > 4).astype(int)
    train, test = slice(600), slice(600, None)
    made, scores = {}, {}
    for loss in ("hamming", "auto", structsolve.ClassWeights({1: 2.0})):
        model = StructuredSVM(MultilabelStructure("none"), loss=loss).fit(X[train], Y[train])
        predicted = model.predict(X[test])
        made[str(loss)] = model.alpha_, predicted.sum()
        scores[str(loss)] = f1_score(Y[test], predicted, average="micro")
        if isinstance(loss, str):  # scores count both kinds of errors alike
            assert model.score(X[test], Y[test]) == pytest.approx((predicted == Y[test]).mean())
    plain, default, weighed = made.values()
    assert default == weighed and plain[1] < default[1] < 1.2 * Y[test].sum()
    # twice the constant of the rule, which divides by the mean loss of the worst sets
    assert default[0] == pytest.approx(2 * plain[0] / (1 + Y[train].mean()))
    assert scores["auto"] > scores["hamming"] + 0.05
    for surrogate in ("slack", "max-min", "crf"):
        alphas = [
            StructuredSVM(MultilabelStructure("none"), surrogate=surrogate, loss=loss, tol=0.5)
            .fit(X[train], Y[train])
            .alpha_
            for loss in ("auto", "hamming")
        ]
        assert alphas[0] == alphas[1]


def test_two_labels_have_two_columns_of_scores():
    X, Y = label_sets()
    assert StructuredSVM("multilabel").fit(X, Y[:, :2]).decision_function(X).shape == (40, 2)


@pytest.mark.pandas
def test_forms_of_input():
    pandas = pytest.importorskip("pandas")
    X, Y = label_sets()
    expected = StructuredSVM("multilabel", tol=0.1).fit(X, Y).predict(X).tolist()
    names = ["rain", "snow", "sun", "wind"]
    frame = pandas.DataFrame(Y, columns=names)
    plain = Y.tolist(), Y.astype(bool), Y.astype(float), Y.astype(object), sparse.csr_matrix(Y)
    mixed = frame.astype({"snow": bool, "sun": "Int8", "wind": "boolean"})
    for form in (*plain, mixed, frame):
        model = StructuredSVM("multilabel", tol=0.1).fit(X, form)
        assert model.predict(sparse.csr_matrix(X)).tolist() == expected
    assert model.classes_.tolist() == names
    assert model.named_weights()[0][1][-1] in [*names, 0, 1]
    with pytest.raises(ValueError, match="y: found the columns .*'wind', 'sun'.* as in training"):
        model.score(X, frame[["rain", "snow", "wind", "sun"]])
    chosen = MultilabelStructure([["sun", "rain"]])
    assert StructuredSVM(chosen, tol=0.1).fit(X, frame).space_.edges_.tolist() == [[2, 0]]


def test_clone_grid_search_save_and_load(tmp_path):
    X, Y = label_sets()
    model = StructuredSVM(MultilabelStructure("tree"), tol=0.1)
    search = GridSearchCV(model, {"structure__edges": ["tree", "none"], "alpha": [0.1, 0.01]}, cv=2)
    best = search.fit(X, Y).best_estimator_
    assert clone(best).structure.edges == best.structure.edges
    for edges in ("tree", "full", "none", np.array([[0, 3]])):
        fitted = StructuredSVM(MultilabelStructure(edges), tol=0.1).fit(X, Y)
        loaded = reloaded(fitted, tmp_path)
        assert loaded.space_.edges_.tolist() == fitted.space_.edges_.tolist()
        assert loaded.predict(X).tolist() == fitted.predict(X).tolist()
        assert loaded.decision_function(X).tolist() == fitted.decision_function(X).tolist()


def test_partial_fit_and_threads():
    X, Y = label_sets()
    model = StructuredSVM("multilabel", solver="sgd", alpha=0.01)
    for _ in range(5):
        model.partial_fit(X, Y)
    assert model.score(X, Y) > 0.8
    one = model.predict(X)
    model.n_jobs = 3
    assert model.predict(X).tolist() == one.tolist()


def test_a_run_resumes_only_with_the_same_pairs(tmp_path):
    X, Y = label_sets()
    path = tmp_path / "run"
    given = {"checkpoint": path, "max_iter": 2, "tol": 0.0}
    with pytest.warns(UserWarning):
        StructuredSVM(MultilabelStructure("none"), **given).fit(X, Y)
    refused("checkpoint", StructuredSVM(MultilabelStructure([[0, 1]]), **given).fit, X, Y)


def test_another_oracle_predicts():
    X, Y = label_sets()
    structure = MultilabelStructure(oracle="roof-duality", predict_oracle="exact")
    space, examples = structure.make_space(X, Y)
    bind = ask_oracle(space)
    for packed in (examples, space.pack(X)):  # whether they carry labels or not
        assert not bind(make_layout(space, packed, training=True)).exact
        assert bind(make_layout(space, packed)).exact
    model = StructuredSVM(structure, tol=0.1, max_iter=5).fit(X, Y)
    assert model.score(X, Y) == pytest.approx((model.predict(X) == Y).mean())


def test_many_labels_are_decoded_with_a_bound():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(6, 3)), rng.integers(0, 2, (6, 30))
    structure = MultilabelStructure(edges="full")
    space, examples = structure.make_space(X, Y)
    layout = make_layout(space, examples)
    oracle = ask_oracle(space)(layout)
    assert not oracle.exact
    theta = rng.normal(size=space.layout.theta_size(1, 0))
    _, value, bound = calls.argmax(oracle, 0, theta)
    assert value <= bound
    mu, _, relaxed, _ = calls.relax(ask_power(space, "relaxation")(layout), 0, theta)
    assert relaxed == pytest.approx(mu @ theta) and relaxed >= value - 1e-9
    assert ask_power(space, "cones")(layout) is not None
    model = StructuredSVM(structure, max_iter=3, tol=0.1).fit(X, Y)
    scores = model.decision_function(X)
    assert ((scores > 0) == (model.predict(X) == 1)).all()


# -- trees --------------------------------------------------------------------------------------


def test_mutual_information_by_its_definition():
    rng = np.random.default_rng(1)
    Y = rng.integers(0, 2, (50, 4))
    Y[:, 3] = 1
    information = mutual_information(counts_of(Y))
    for u, v in np.ndindex(4, 4):
        expected = 0.0
        for a, b in np.ndindex(2, 2):
            joint = ((Y[:, u] == a) & (Y[:, v] == b)).mean()
            if joint:
                expected += joint * np.log(joint / ((Y[:, u] == a).mean() * (Y[:, v] == b).mean()))
        assert information[u, v] == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("seed", range(20))
def test_chow_liu_is_a_maximum_spanning_tree(seed):
    rng = np.random.default_rng(seed)
    L = int(rng.integers(1, 9))
    Y = rng.integers(0, 2, (30, L))
    Y[:, rng.integers(L)] = Y[:, rng.integers(L)]
    edges = chow_liu(counts_of(Y))
    information = mutual_information(counts_of(Y))
    graph = nx.Graph()
    graph.add_weighted_edges_from(
        (u, v, information[u, v]) for u in range(L) for v in range(u + 1, L)
    )
    graph.add_nodes_from(range(L))
    best = nx.maximum_spanning_tree(graph).size(weight="weight")
    assert len(edges) == L - 1
    assert sum(information[u, v] for u, v in edges) == pytest.approx(best)
    assert L == 1 or nx.is_tree(nx.Graph(edges.tolist()))


# -- bad input ----------------------------------------------------------------------------------

X2 = np.zeros((2, 1))


@pytest.mark.parametrize(
    "Y, message",
    [
        ([[0, 1], [2, 0]], "example 1, label 0: y holds 2, expected 0 .off. or 1"),
        ([[0, -1], [1, 0]], "example 0, label 1: y holds -1"),
        ([[0, 0.5], [1, 0]], "example 0, label 1: y holds 0.5"),
        ([[0, np.nan], [1, 0]], "example 0, label 1: y holds nan"),
        ([0, 1], "expected a matrix of 0 and 1 with one column per label"),
        ([["a"], ["b", "c"]], "MultiLabelBinarizer"),
        ([["a", "b"], ["b", "c"]], "found dtype <U1, expected a matrix of 0 and 1"),
        ([[0, 1]], "2 rows of X, 1 rows of y"),
        (np.zeros((2, 0)), "found no columns"),
        (None, "requires y"),
        (sparse.csr_matrix([[3, 0], [0, 1]]), "example 0, label 0: y holds 3"),
    ],
    ids=str,
)
def test_bad_labels(Y, message):
    refused(message, StructuredSVM("multilabel").fit, X2, Y)


@pytest.mark.parametrize(
    "edges, message",
    [
        ("ring", "edges is 'ring', expected 'auto', 'full', 'tree', 'none' or an array"),
        ([[0, 0]], "edges: edge 0 joins label 0 with itself"),
        ([[0, 1], [1, 0]], r"edges: edge 1 joins labels \(1, 0\), which edge 0 joins already"),
        ([[0, 2]], r"edges: edge 0 is \(0, 2\), expected labels 0 to 1"),
        ([[0, -1]], r"edges: edge 0 is \(0, -1\)"),
        ([0, 1], "expected integers of shape"),
        ([[0.5, 1]], "expected integers of shape"),
        ([["a", "b"]], "edges: found names of labels, but the labels have none"),
    ],
    ids=str,
)
def test_bad_edges(edges, message):
    refused(message, StructuredSVM(MultilabelStructure(edges)).fit, X2, [[0, 1], [1, 0]])


def test_bad_parameters_and_sizes():
    Y = [[0, 1], [1, 0]]
    with pytest.raises(ValueError, match="oracle is 'best', expected one of"):
        StructuredSVM(MultilabelStructure(oracle="best")).fit(X2, Y)
    with pytest.raises(ValueError, match="predict_oracle is 'best', expected one of"):
        StructuredSVM(MultilabelStructure(predict_oracle="best")).fit(X2, Y)
    with pytest.raises(ValueError, match="'cvxpy:NONE', but cvxpy finds no such solver; installed"):
        StructuredSVM(MultilabelStructure(oracle="cvxpy:NONE")).fit(X2, Y)
    model = StructuredSVM("multilabel", tol=1).fit(X2, Y)
    with pytest.raises(ValueError, match="found 3 columns, expected 2 labels as in training"):
        model.score(X2, [[0, 1, 1], [1, 0, 0]])
    plain = model.predict(X2)
    assert np.array_equal(model.predict(X2, allowed=[None, None]), plain)
    refused("no .*forbidden|neither|forbidden", model.predict, X2, forbidden=[(0, 1)])
    with pytest.raises(
        ValueError, match=r"CostMatrix: matrix has shape \(3, 3\), expected \(2, 2\)"
    ):
        StructuredSVM("multilabel", loss=structsolve.CostMatrix(1 - np.eye(3))).fit(X2, Y)
    with pytest.raises(ValueError, match=r"unknown classes \['on'\]; known: \[0, 1\]"):
        StructuredSVM("multilabel", loss=structsolve.ClassWeights({"on": 2.0})).fit(X2, Y)
    with pytest.raises(ValueError, match="classes: found"):
        StructuredSVM("multilabel", solver="sgd").partial_fit(X2, Y, classes=[0, 1, 2])


def test_losses_count_wrong_labels():
    X, Y = label_sets(n=5)
    space, examples = MultilabelStructure().make_space(X, Y)
    costs = (("hamming", 1, 1), ("normalized-hamming", 0.25, 0.25))
    for name, missed, extra in (*costs, (WEIGHED[0], 3, 0.5), (WEIGHED[1], 0.5, 0.25)):
        loss = ask_loss(space, name)(make_layout(space, examples))
        for i in range(5):
            for label in space.enumerate_labels(examples, i):
                value = calls.loss_value(loss, i, Y[i].astype(np.int32), label)
                assert value == missed * (label < Y[i]).sum() + extra * (label > Y[i]).sum()


@needs_data
def test_yeast():
    with np.load(data_file("ml-yeast", "data.npz")) as data:
        X, Xt = data["X_train"], data["X_test"]
        Y, Yt = (
            sparse.csr_matrix(
                (
                    np.ones(len(data[f"Y_{s}_indices"])),
                    data[f"Y_{s}_indices"],
                    data[f"Y_{s}_indptr"],
                ),
                shape=(n, 14),
            )
            for s, n in (("train", 1500), ("test", 917))
        )
    for edges in ("none", "tree", "full"):
        model = StructuredSVM(MultilabelStructure(edges), alpha=1e-3, tol=0.02).fit(X, Y)
        assert model.stop_reason_ == "converged"
        assert model.score(Xt, Yt) > 0.795


@pytest.mark.parametrize("seed", range(3))
def test_default_pairs_are_related_beyond_chance(seed, caplog):
    """The G-test of SciPy, one table at a time."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((200, 12)) < rng.random(12)).astype(int)
    Y[:, 3] = Y[:, 5] & (rng.random(200) < 0.8)  # together
    Y[:, 7] = (1 - Y[:, 9]) & (rng.random(200) < 0.7)  # apart
    Y[:, 1], Y[:, 2] = 0, 1  # the same in all rows
    expected = []
    for u, v in itertools.combinations(range(12), 2):
        counts = np.array(
            [[((Y[:, u] == a) & (Y[:, v] == b)).sum() for b in (0, 1)] for a in (0, 1)]
        )
        if counts.sum(axis=0).all() and counts.sum(axis=1).all():
            p = chi2_contingency(counts, correction=False, lambda_="log-likelihood").pvalue
            expected += [[u, v]] if p < 0.05 / 66 else []
    assert {(3, 5), (7, 9)} <= set(map(tuple, expected))
    with caplog.at_level("INFO", logger="structsolve.multilabel"):
        space, _ = MultilabelStructure().make_space(np.zeros((200, 1)), Y)
    assert space.edges_.tolist() == expected
    assert f"which is {len(expected)} of 66 pairs of labels" in caplog.text


def test_default_pairs_keep_to_a_budget():
    rng = np.random.default_rng(0)
    Y = (rng.random((60, 20)) < rng.random((60, 1)) ** 3).astype(int)  # rows of many labels, of few
    space, _ = MultilabelStructure().make_space(np.zeros((60, 1)), Y)
    assert len(space.edges_) == 40
    information = mutual_information(counts_of(Y))
    kept = information[tuple(space.edges_.T)]
    assert (np.sort(information[np.triu_indices(20, 1)])[-40:] == np.sort(kept)).all()
    many = MultilabelStructure().make_space(np.zeros((50_000, 1)), np.tile(Y, (834, 1))[:50_000])
    assert len(many[0].edges_) == 10  # each pair costs time for each row


@pytest.mark.parametrize("kind", ["weights", "kernel", "latent", "candidates"])
@pytest.mark.parametrize("edges", ["auto", "tree"])
def test_learned_pairs_count_rows_by_their_weights(edges, kind):
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(60, 2)), rng.integers(0, 2, (60, 9))
    Y[:20, 3], Y[20:40, 6] = Y[:20, 1], Y[20:40, 4]
    weights = np.repeat([3, 1, 0], 20)
    estimator = LatentSVM if kind in ("latent", "candidates") else StructuredSVM
    model = estimator(MultilabelStructure(edges), alpha=1.0, tol=0.1)
    model.set_params(**{"kernel": "rbf"} if kind == "kernel" else {})
    given = [AnyOf([y, y]) for y in Y] if kind == "candidates" else Y
    pairs = clone(model).fit(X, given, sample_weight=weights).space_.edges_.tolist()
    rows = np.repeat(np.arange(60), weights)
    assert pairs == clone(model).fit(X[rows], Y[rows]).space_.edges_.tolist()
    assert pairs != model.fit(X, Y).space_.edges_.tolist()


def test_default_pairs_of_few_and_of_very_many_labels():
    for labels, pairs in ((1, 0), (8, 28), (9, 0), (1001, 0)):
        Y = np.arange(30 * labels).reshape(30, labels) % 7 % 2
        Y = Y if labels != 9 else np.random.default_rng(0).integers(0, 2, Y.shape)
        assert len(MultilabelStructure().make_space(np.zeros((30, 1)), Y)[0].edges_) == pairs
    assert len(MultilabelStructure().score_space(9).edges_) == 36
    refused("edges is 'auto', for 51 labels pairs chosen by", MultilabelStructure().score_space, 51)
