"""Labels as tables of levels: hierarchies learned from paths, forms of tables, probabilities."""

import copy
import pickle

import numpy as np
import pytest
from checks import refused
from sklearn.base import clone
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import structsolve
from structsolve import HierarchicalSVM, HierarchicalSVMCV, StructuredSVM, get_scorer
from structsolve.plugins.dag import DagStructure, PathCost, hierarchical_scores
from structsolve.plugins.dag.levels import Levels, read_paths

PATHS = np.array(
    [
        ["animal", "dog", ""],
        ["animal", "cat", "persian"],
        ["animal", "", ""],
        ["plant", "other", ""],
        ["animal", "other", ""],
        ["plant", "tree", "oak"],
    ]
)
CLASSES = ["animal (itself)", "animal/other", "dog", "oak", "persian", "plant/other"]


def data(n=60, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    kinds = rng.integers(len(PATHS), size=n)
    kinds[: len(PATHS)] = np.arange(len(PATHS))
    return np.eye(len(PATHS))[kinds] + noise * rng.normal(size=(n, len(PATHS))), PATHS[kinds]


MODELS = {
    "svm": lambda: HierarchicalSVM(alpha=0.01),
    "learned": lambda: HierarchicalSVM(alpha=0.01, normalization="learned"),
    "sparse": lambda: HierarchicalSVM(alpha=0.01, sparse=True, max_iter=20),
    "crf": lambda: HierarchicalSVM(alpha=0.01, surrogate="crf"),
    "structured": lambda: StructuredSVM("dag", alpha=0.01),
    "path": lambda: HierarchicalSVMCV(alphas=[0.1, 0.01], cv=2),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", MODELS)
def test_hierarchies_are_learned_and_paths_come_back(kind, tmp_path):
    X, Y = data()
    model = MODELS[kind]().fit(X, Y)
    assert model.classes_.tolist() == CLASSES
    guess = model.predict(X)
    assert guess.dtype == Y.dtype and (guess == Y).all()
    assert model.score(X, Y) == model.score(X, Y, metric="hierarchical-f1") == 1
    kbest = model.predict_kbest(X[:6], 2) if kind != "sparse" else []
    for row, answers in zip(guess[:6], kbest):
        assert (answers[0][0] == row).all() and len(answers) == 2
        answers[0][0][:] = ""  # of the caller
    assert (model.predict(X) == guess).all()
    edges = model.space_.hierarchy.nodes[model.space_.hierarchy.edges].tolist()
    assert {("animal", "animal (itself)"), ("plant", "plant/other"), ("tree", "oak")} < {
        tuple(edge) for edge in edges
    }
    model.save(tmp_path / "model")
    for other in (
        structsolve.load(tmp_path / "model"),
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
    ):
        again = other.predict(X)
        assert again.dtype == Y.dtype and (again == guess).all()
        assert other.score(X, Y) == 1
        some = Y[:, 0] != "animal"  # trains again, on other paths
        assert (clone(other).fit(X[some], Y[some]).predict(X[some]) == Y[some]).all()


def rows_of(Y):
    return [[name for name in row if name] for row in Y.tolist()]


def test_forms_of_tables():
    X, Y = data()
    none = np.where(Y == "", None, Y.astype(object))
    nan = np.where(Y == "", np.nan, Y.astype(object))
    model = HierarchicalSVM(alpha=0.01)
    assert (model.fit(X, none).predict(X) == none).all()
    assert model.predict(X)[0, 2] is None
    guess = model.fit(X, nan).predict(X)
    assert all(isinstance(name, float) for name in guess[Y == ""])
    assert (guess[Y != ""] == Y[Y != ""]).all()
    assert (model.fit(X, rows_of(Y)).predict(X) == Y).all()
    ragged = np.empty(len(Y), dtype=object)
    ragged[:] = rows_of(Y)
    assert (model.fit(X, ragged).predict(X) == Y).all()
    numbers = np.column_stack([np.where(Y[:, 0] == "plant", 7, 3), np.arange(60) % 2 * 10 + 5])
    guess = model.fit(np.column_stack([X, numbers]), numbers).predict(np.column_stack([X, numbers]))
    assert guess.dtype == numbers.dtype and (guess == numbers).all()
    short = numbers.astype(float)
    short[::2, 1] = np.nan
    guess = model.fit(np.column_stack([X, numbers]), short).predict(np.column_stack([X, numbers]))
    assert np.array_equal(guess, short, equal_nan=True)
    # One level is plain classification.
    flat = HierarchicalSVM(alpha=0.01, normalization="none").fit(X, Y[:, :1])
    assert (flat.predict(X) == Y[:, :1]).all()


@pytest.mark.pandas
def test_data_frames():
    pandas = pytest.importorskip("pandas")
    X, Y = data()
    frame = pandas.DataFrame(np.where(Y == "", None, Y.astype(object)), columns=["a", "b", "c"])
    for made in (frame, frame.astype("category"), frame.astype("string")):
        guess = HierarchicalSVM(alpha=0.01).fit(X, made).predict(X)
        assert list(guess.columns) == ["a", "b", "c"]
        assert (guess.isna() == made.isna()).all(axis=None)
        assert (guess.fillna("").to_numpy() == Y).all()
    chosen = HierarchicalSVMCV(alphas=[0.1, 0.01], cv=2).fit(X, frame)
    assert chosen.score(X, frame) > 0.9
    refused("y: found the columns", chosen.score, X, frame[["b", "a", "c"]])
    indicators = pandas.DataFrame(np.eye(3, dtype=int)[:, [0, 1]], columns=["x", "y"])
    model = StructuredSVM(DagStructure({"x": [], "y": []}), alpha=0.1).fit(np.eye(3), indicators)
    assert model.predict(np.eye(3)).shape == (3, 2)


@pytest.mark.pandas
@pytest.mark.parametrize("form", ["frame", "none", "ragged", "strings"])
def test_scores_by_name_take_a_path_as_one_class(form):
    X, Y = data(noise=0.5)
    table = np.where(Y == "", None, Y.astype(object)) if form in ("frame", "none") else Y
    if form == "frame":
        table = pytest.importorskip("pandas").DataFrame(table)
    elif form == "ragged":
        table = [[name for name in row if name] for row in Y]
    model = HierarchicalSVM(alpha=1.0, max_iter=2).fit(X, table)
    both = (read_paths(each, None) for each in (table, model.predict(X)))
    paths, guess = ([*map(str, each)] for each in both)
    assert 0 < accuracy_score(paths, guess) < 1
    for name in ("accuracy", "sequence-accuracy"):
        assert model.score(X, table, metric=name) == accuracy_score(paths, guess)
    macro = f1_score(paths, guess, average="macro", zero_division=0)
    assert model.score(X, table, metric="macro-f1") == pytest.approx(macro)


def test_given_hierarchies():
    tree = {"animal": ["dog", "cat"], "cat": ["persian"], "plant": ["tree"], "tree": ["oak"]}
    X, Y = data()
    inside = (Y[:, 1] != "other") & (Y[:, 1] != "")
    X, Y = X[inside], Y[inside]
    model = HierarchicalSVM(tree, alpha=0.01).fit(X, Y)
    assert (model.predict(X) == Y).all() and model.classes_.tolist() == ["dog", "oak", "persian"]
    leaves = HierarchicalSVM(tree, alpha=0.01).fit(X, [[p for p in row if p][-1] for row in Y])
    assert np.allclose(leaves.coef_["node"], model.coef_["node"])
    with pytest.raises(ValueError, match=r"example 0: the path \['animal'\] of y ends at a node"):
        model.fit(X, np.vstack([["animal", "", ""], Y[1:]]))
    graph = {**tree, "pet": ["dog"]}
    told = "'dog' has the parents 'animal' and 'pet' in the hierarchy.*leave hierarchy out"
    with pytest.raises(ValueError, match=told):
        HierarchicalSVM(graph).fit(X, Y)


def test_names_are_distinct_whatever_they_hold():
    table = [["a", "b"], ["c", "b"], ["a/b", "x"], ["a", "a"], ["b"], ["x (itself)"], ["x"]]
    table += [["x", "y"]]
    levels = Levels.learn(table, len(table))
    assert len({*levels.hierarchy.nodes.tolist()}) == len(levels.paths) == len(levels.hierarchy)
    columns = levels.encode(table, len(table))
    assert [[n for n in row if n] for row in levels.decode(columns).tolist()] == table
    assert len({*columns.tolist()}) == len(table)
    assert levels.hierarchy.forest


@pytest.mark.parametrize(
    "table, told",
    [
        ([["a", "", "b"], ["a", "", ""]], "example 0: level 1 of y is missing, but level 2 is 'b'"),
        ([["a"], ["", None]], "example 1: y has no names, expected at least that of level 0"),
        ([["a"], [3]], "y mixes strings and numbers: example 0 holds 'a', example 1 3"),
        ([["a"], [True]], "example 1: y holds the name True of type bool"),
        ([["a"], [1.5]], "example 1: y holds the name 1.5 of type float"),
        ([["a"], "b"], "example 1: y holds 'b', expected the names of its levels"),
        ([["a"]], "2 rows of X, 1 labels in y"),
    ],
)
def test_bad_tables(table, told):
    with pytest.raises(ValueError, match=told):
        HierarchicalSVM().fit([[0.0], [1.0]], table)


def test_tables_need_a_kind_of_labels():
    with pytest.raises(ValueError, match="labels is 'leaf-union', but without a hierarchy"):
        StructuredSVM(DagStructure(labels="leaf-union")).fit([[0.0]], [["a"]])
    with pytest.raises(ValueError, match="hierarchy is None, expected .*y as a table of levels"):
        HierarchicalSVM().fit([[0.0], [1.0]], ["a", "b"])


def test_unknown_paths():
    X, Y = data()
    model = HierarchicalSVM(alpha=0.01).fit(X, Y)
    other = Y.copy()
    other[:6] = [["mineral", "", ""], ["animal", "cow", ""], ["plant", "tree", ""], *Y[3:6]]
    # They count as errors in scores, by all metrics.
    assert model.score(X, other) == pytest.approx(57 / 60)
    expected = hierarchical_scores(other, model.predict(X))["f1"]
    assert model.score(X, other, metric="hierarchical-f1") == expected < 1
    for row, told in [
        (
            0,
            "example 0: level 0 of y is 'mineral', which is no node; known are .'animal', 'plant'.",
        ),
        (1, "example 0: level 1 of y is 'cow', which is no node below 'animal'; known are"),
        (2, r"example 0: the path \['plant', 'tree'\] of y ends at a node with children"),
    ]:
        with pytest.raises(ValueError, match=told):
            model.space_.pack(X[:1], other[row : row + 1])
    rare = cross_val_score(HierarchicalSVM(alpha=0.01), X, other, cv=4, error_score="raise")
    assert 0.8 < rare.mean() < 1
    search = GridSearchCV(
        HierarchicalSVM(), {"alpha": [0.1, 0.01]}, cv=2, scoring=get_scorer("hierarchical-f1")
    )
    assert search.fit(X, Y).best_score_ > 0.9


def plain_scores(truth, guess):
    """Return micro and macro figures by sets of prefixes."""
    counts = []
    for rows in zip(truth, guess):
        true, pred = ({row[: k + 1] for k in range(len(row))} for row in rows)
        counts.append([len(true & pred), len(pred), len(true)])

    def figures(both, guessed, there):
        return [both / guessed, both / there, 2 * both / (guessed + there)]

    return figures(*np.sum(counts, axis=0)), np.mean([figures(*row) for row in counts], axis=0)


def test_scores_of_tables_by_sets():
    rng = np.random.default_rng(0)
    for _ in range(100):
        truth, guess = (
            [tuple(rng.choice(list("ab"), rng.integers(1, 4)).tolist()) for _ in range(6)]
            for _ in range(2)
        )
        report = hierarchical_scores(truth, guess)
        micro, macro = plain_scores(truth, guess)
        for name, one, other in zip(("precision", "recall", "f1"), micro, macro):
            assert report[name] == report["micro"][name] == pytest.approx(one)
            assert report["macro"][name] == pytest.approx(other)
    # As HiClass 5.0.8 computes them.
    report = hierarchical_scores([["a", "ab"], ["c", ""]], [["a", "ac"], ["c", "cd"]])
    assert report["precision"] == 0.5 and report["recall"] == pytest.approx(2 / 3)
    assert report["macro"]["f1"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    tree = {"a": ["b"]}
    for truth in ([["a", "b"]], ["b"], np.array([["a", None]], dtype=object)):
        with pytest.raises(ValueError, match="y_true: found names.*leave hierarchy out for tables"):
            hierarchical_scores(truth, truth, tree)
    refused("example 1: y_pred has no names", hierarchical_scores, [["a"], ["b"]], [["a"], [""]])
    refused("2 rows of X, 1 labels in y_pred", hierarchical_scores, [["a"], ["b"]], [["a"]])


def test_folds_of_tables():
    X, Y = data()
    none = np.where(Y == "", None, Y.astype(object))
    model = HierarchicalSVM(alpha=0.01)
    for table, cv in ((Y, 3), (none, KFold(3))):
        assert min(cross_val_score(model, X, table, cv=cv, error_score="raise")) > 0.5


def test_read_paths_takes_every_missing_value():
    rows = np.array([["a", None], ["a", np.nan], ["a", ""]], dtype=object)
    assert read_paths(rows, 3) == [("a",)] * 3


# -- probabilities --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["svm", "learned", "structured", "crf"])
def test_calibrated_probabilities(kind, tmp_path):
    X, Y = data(120, 0.6)
    held, truth = data(150, 0.6, 1)
    model = MODELS[kind]().fit(X, Y)
    if kind != "crf":
        assert not hasattr(model, "predict_proba")
        with pytest.raises(AttributeError, match="calibrate"):
            model.predict_proba(X)
    before = model.predict(held)
    model.calibrate(held, truth)
    proba = model.predict_proba(held)
    assert np.allclose(proba.sum(axis=1), 1) and (model.predict(held) == before).all()
    # The factor is the best of a grid of factors, by probabilities computed here.
    scores = model.decision_function(held)
    columns = model.space_.encode(truth, len(truth)).tolist()
    places = [model.space_.leaf_columns.tolist().index(column) for column in columns]

    def loss(factor):
        z = factor * scores
        return (np.logaddexp.reduce(z, axis=1) - z[np.arange(len(z)), places]).mean()

    own = -np.log(proba[np.arange(len(proba)), places]).mean()
    assert own == pytest.approx(loss(model.factor_))
    grid = [loss(model.factor_ * r) for r in np.geomspace(0.2, 5, 41)]
    assert own <= min(grid) + 1e-6
    model.save(tmp_path / "model")
    other = structsolve.load(tmp_path / "model")
    assert np.array_equal(other.predict_proba(held), proba)
    if kind != "structured":
        nodes, h = model.predict_node_proba(held), model.space_.hierarchy
        assert nodes.shape == (150, len(h)) and np.allclose(nodes[:, h.roots].sum(axis=1), 1)
        assert np.allclose(nodes[:, model.space_.leaf_columns], proba)
        for v in range(len(h)):
            if h.children(v).size:
                assert np.allclose(nodes[:, v], nodes[:, h.children(v)].sum(axis=1))
    model.fit(X, Y)
    assert not hasattr(model, "factor_")


def test_calibration_weights_and_refusals():
    X, Y = data(60, 0.6)
    model = HierarchicalSVM(alpha=0.01).fit(X, Y)
    twice = np.repeat(np.arange(60), np.arange(60) % 3)
    weighted = model.calibrate(X, Y, np.arange(60) % 3).factor_
    assert weighted == pytest.approx(model.calibrate(X[twice], Y[twice]).factor_, rel=1e-3)
    unknown = np.vstack([[["mineral", "", ""]], Y[1:]])
    rest = model.calibrate(X[1:], Y[1:]).factor_
    assert model.calibrate(X, unknown).factor_ == pytest.approx(rest)
    with pytest.raises(ValueError, match="none of 1 examples is of a class known from training"):
        model.calibrate(X[:1], unknown[:1])
    chain = StructuredSVM("chain", alpha=0.1).fit([[[0.0], [1.0]]], [["a", "b"]])
    with pytest.raises(ValueError, match="labels of structure 'chain' are not one class per"):
        chain.calibrate([[[0.0], [1.0]]], [["a", "b"]])
    two = StructuredSVM("multiclass", alpha=0.1).fit([[0.0], [1.0]], ["a", "b"])
    two.calibrate([[0.2], [0.1], [1.0]], ["a", "b", "b"])
    assert np.allclose(two.predict_proba([[0.3]]).sum(), 1)


@pytest.mark.parametrize("deep", [False, True])
def test_paths_unseen_in_training_have_none_of_the_nodes(deep):
    X, Y = np.eye(3), np.array([["p", "a"], ["p", "b"], ["q", "c"]])
    Y = Y if deep else Y[:, 1:]
    strange = Y.copy()
    strange[0] = ["q", "z"][-Y.shape[1] :]
    crf = StructuredSVM("dag", surrogate="crf", alpha=0.01).fit(X, Y)
    assert crf.log_proba(X, strange)[0] == -np.inf
    assert np.allclose(crf.log_proba(X, strange)[1:], crf.log_proba(X, Y)[1:])
    nodes, every = (2, crf.space_.hierarchy.nodes.tolist()) if deep else (1, list("abc"))
    share = nodes / len(every)
    shares = {"zero-one": 1, "hamming": nodes, "leaf": 1, "normalized-hamming": share}
    for loss, wrong in shares.items():
        assert crf.set_params(loss=loss).score(X, strange) == pytest.approx(1 - wrong / 3)
    weights = {name: 4.0 ** (name in "abc") for name in every}
    for model in (HierarchicalSVM(alpha=0.01), HierarchicalSVM(alpha=0.01, normalization="none")):
        assert model.fit(X, Y).score(X, strange) == pytest.approx(2 / 3)
        costs = PathCost([weights[name] for name in model.nodes_.tolist()])
        wrong = np.sqrt(4 + (nodes - 1))
        assert model.set_params(loss=costs).score(X, strange) == pytest.approx(1 - wrong / 3)
