"""Forms of X and y that StructuredSVM takes: weights, storage, names of classes and columns."""

import sys
from functools import partial

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused, reloaded, same
from data import chains, classes, fitted
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from structsolve import (
    ConditionalRiskMinimizer,
    ExtremeSVM,
    HiddenMarkovModel,
    HierarchicalSVM,
    LatentSVM,
    Sequences,
    StructuredSVM,
    from_padded,
    get_structure,
)
from structsolve.plugins.dag import PathCost


def test_sample_weight_counts_like_repetition():
    X, Y = chains(12, noise=5)
    weights = np.array([1, 2, 3] * 4)
    repeated = np.repeat(np.arange(12), weights)
    one = fitted(X, Y)
    weighted = StructuredSVM("chain", alpha=0.05, tol=1e-6, max_iter=2000).fit(
        X, Y, sample_weight=weights
    )
    again = fitted([X[i] for i in repeated], [Y[i] for i in repeated], max_iter=2000)
    assert weighted.history_[-1]["primal"] == pytest.approx(again.history_[-1]["primal"], rel=2e-6)
    np.testing.assert_allclose(weighted.coef_["node"], again.coef_["node"], atol=1e-3)
    assert abs(one.coef_["node"] - again.coef_["node"]).max() > 1e-2


def test_dense_csr_float32_and_stacked_give_the_same_weights():
    X, Y = chains(20)
    X = [np.round(x) * (np.abs(x) > 1) for x in X]
    dense = fitted(X, Y)
    stacked = Sequences(sp.csr_matrix(np.concatenate(X)), [len(x) for x in X])
    for other in (
        [sp.csr_matrix(x) for x in X],
        [sp.csc_array(x) for x in X],
        [x.astype(np.float32) for x in X],
        [x.astype(int) for x in X],
        stacked,
    ):
        model = fitted(other, Y)
        np.testing.assert_allclose(model.coef_["node"], dense.coef_["node"], atol=1e-9)
        assert [a.tolist() for a in model.predict(other)] == [a.tolist() for a in dense.predict(X)]


def test_padded_input():
    X, Y = chains(10)
    lengths = [len(x) for x in X]
    padded = np.full((10, max(lengths), 6), np.nan)
    for row, x in zip(padded, X):
        row[: len(x)] = x
    a, b = fitted(X, Y), fitted(from_padded(padded, lengths), Y)
    np.testing.assert_array_equal(a.coef_["node"], b.coef_["node"])


def test_edge_features_matter():
    rng = np.random.default_rng(0)
    X, Y = [], []
    for _ in range(40):
        change = rng.integers(0, 2, 5)
        y = np.concatenate([[0], np.cumsum(change) % 2])
        nodes = np.zeros((6, 1))
        nodes[0] = 1
        X.append((nodes, np.c_[change, 1 - change].astype(float)))
        Y.append(y)
    assert fitted(X, Y, alpha=1e-3).score(X, Y) == 1
    assert fitted([x[0] for x in X], Y, alpha=1e-3).score([x[0] for x in X], Y) < 0.9


def test_string_labels_and_classes():
    X, Y = chains(10)
    names = np.array(["O", "B-x", "I-x"])
    model = fitted(X, [names[y] for y in Y])
    assert model.classes_.tolist() == sorted(names)
    assert set(np.concatenate(model.predict(X))) <= set(names)


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="needs NumPy 2")
def test_labels_may_be_strings_of_any_length():
    X, y = classes()
    names = np.array(["a", "b", "long"])[y]
    strings = names.astype(np.dtypes.StringDType())
    plain = StructuredSVM("multiclass").fit(X, names).predict(X).tolist()
    assert StructuredSVM("multiclass").fit(X, strings).predict(X).tolist() == plain
    chain = StructuredSVM("chain").fit([X], [strings])
    assert chain.score([X], [names]) == chain.score([X], [strings])


@pytest.mark.pandas
def test_feature_names_and_named_weights():
    pd = pytest.importorskip("pandas")
    X, y = classes(40)
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(5)])
    model = StructuredSVM("multiclass").fit(frame, y)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    refused("feature names", model.predict, frame[frame.columns[::-1]])


@pytest.mark.pandas
@pytest.mark.parametrize("form", ["list", "tuple", "series", "array", "tree", "mrf"])
def test_columns_of_frames_are_those_of_training_in_every_form(form, tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    plain = [pd.DataFrame(rng.normal(size=(4, 2)), columns=["a", "b"]) for _ in range(5)]
    y = [(x["a"] > 0).astype(int).to_numpy() for x in plain]
    pairs = {"tree": np.array([-1, 0, 0, 1]), "mrf": np.array([[0, 1], [1, 2], [2, 3]])}

    def formed(frames):
        if form in pairs:
            return [(x, pairs[form]) for x in frames]
        one = pd.Series(frames)
        kinds = {"tuple": tuple(frames), "series": one, "array": one.to_numpy()}
        return kinds.get(form, frames)

    X, turned = formed(plain), formed([x[["b", "a"]] for x in plain])
    mixed = formed([plain[0].to_numpy(), *(x[["b", "a"]] for x in plain)])
    model = StructuredSVM(form if form in pairs else "chain", alpha=0.1).fit(X, y)
    text = "Feature names must be in the same order"
    for one in (model, reloaded(model, tmp_path)):
        assert one.feature_names_in_.tolist() == ["a", "b"]
        same(one.predict(X), model.predict(X))
        refused(text, one.predict, turned)
        refused(text, one.score, turned, y)
        refused(text, one.predict, mixed)
    refused(text, clone(model).fit, X, y, validation=(turned, y))
    model.fit(X, y, validation=(X, y))
    refused(text, model.fit, turned, y, validation=(X, y))
    assert model.feature_names_in_.tolist() == ["a", "b"]  # a refused fit leaves the model alone
    bare = formed([x.to_numpy() for x in plain])
    with pytest.warns(UserWarning, match="StructuredSVM was fitted with feature names"):
        model.fit(X, y, validation=(bare, y))


def test_named_weights_of_a_chain():
    X, Y = chains(10)
    model = fitted(X, Y)
    weights = model.named_weights([f"f{j}" for j in range(6)])
    table = {(block, names): value for block, names, value in weights}
    assert table["transition", (0, 1)] == model.coef_["transition"][0, 1]
    assert table["node", ("f2", 1)] == model.coef_["node"][2, 1]
    assert table["intercept", (2,)] == model.coef_["intercept"][2]
    sizes = [abs(v) for *_, v in weights]
    assert sizes == sorted(sizes, reverse=True)
    refused("feature_names has 2 entries, expected 6", model.named_weights, ["a", "b"])


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_unscaled_columns_are_named_where_training_does_not_converge(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * [1.0, 1.0, 1000.0]
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    scaler = "StandardScaler" if kind is np.asarray else "MaxAbsScaler"
    message = f"column 2 .*put {scaler}\\(\\) before the model"
    with pytest.warns(ConvergenceWarning, match=message):
        StructuredSVM("multiclass", alpha=1e-6, max_iter=2).fit(kind(X), y)
    sequences = [X[k : k + 3] for k in range(0, 60, 3)]
    labels = [y[k : k + 3] for k in range(0, 60, 3)]
    with pytest.warns(ConvergenceWarning, match=r"NodeTransformer\((Standard|MaxAbs)Scaler\(\)\)"):
        StructuredSVM("chain", alpha=1e-6, max_iter=2).fit(list(map(kind, sequences)), labels)
    with pytest.warns(ConvergenceWarning) as warned:
        StructuredSVM("multiclass", alpha=1e-6, max_iter=2).fit(kind(X / [1, 1, 1000]), y)
    assert not any("scale" in str(warning.message) for warning in warned)


@pytest.mark.parametrize("make", [StructuredSVM, ExtremeSVM])
def test_labels_beyond_the_digits_of_floats(make):
    """Integers of 64 bits with and without sign are compared as they are: NumPy makes floats."""
    X = np.eye(12)
    y = 2**62 + np.arange(12)
    model = make(alpha=1e-3) if make is ExtremeSVM else make("multiclass", alpha=1e-3)
    model.fit(X, y)
    assert model.score(X, y) == model.score(X, y.astype(np.uint64)) == 1
    model.fit(X, y.astype(np.uint64))
    assert model.score(X, y) == 1


def test_classes_that_numpy_would_round_to_one():
    X, large = [np.eye(3)[[0, 1]], np.eye(3)[[2]]], 2**63
    for Y, i in (([[5, large + 1], [large]], 0), ([[1, 2], [large]], 1)):
        refused(f"y, example {i}: found {large}, a label", StructuredSVM("chain").fit, X, Y)
    Y = [np.array(y, np.uint64) for y in ([5, large], [large + 1])]
    model = StructuredSVM("chain", alpha=1e-3).fit(X, Y)
    assert model.score(X, Y) == 1
    assert model.score(X, [[5, 6], [-1]]) == pytest.approx(1 / 3)


def test_classes_of_a_stream_that_numpy_would_round_to_one():
    model = ExtremeSVM().partial_fit(np.eye(2), [1, 2])
    y = np.array([2**63, 2**63 + 1], np.uint64)
    refused("y: found 9223372036854775808, a label that NumPy", model.partial_fit, np.eye(2), y)


@pytest.mark.parametrize("name", ["chain", "tree", "mrf", "factor-graph", "permutation", "path"])
def test_arrays_of_objects_are_lists_of_them(name):
    """As folds of indices cut them out."""
    X, Y = get_structure(name).sample(0, n=6)
    pairs = [(x, np.ones((len(x) - 1, 1))) for x in X] if name == "chain" else X
    for given in (X, pairs):
        model = StructuredSVM(name, alpha=0.1, tol=0.1)
        arrays = [np.fromiter(each, dtype=object, count=6) for each in (given, Y)]
        expected = model.fit(given, Y).score(given, Y)
        assert model.fit(*arrays).score(*arrays) == expected
        same(model.predict(arrays[0]), model.predict(given))


def test_rows_in_tuples_are_no_pairs():
    rows = ((1.0, 2.0), (2.0, 3.0), (0.0, 1.0))
    refused(
        "pass the rows of an example as a list", StructuredSVM("chain").fit, [rows], [[0, 1, 1]]
    )


@pytest.mark.pandas
@pytest.mark.parametrize("model", [StructuredSVM("multiclass"), LatentSVM("multiclass")])
def test_allowed_classes_in_a_data_frame(model):
    pd = pytest.importorskip("pandas")
    X, y = np.eye(3), np.array(["a", "b", "c"])
    model.set_params(alpha=0.01).fit(X, y)
    frame = pd.DataFrame([[True, False, False]] * 3, columns=["a", "b", "c"])
    assert model.predict(X, allowed=frame).tolist() == ["a", "a", "a"]
    assert model.predict(X, allowed=[row.tolist() for row in ~frame.to_numpy()])[0] != "a"
    refused("allowed: found the columns", model.predict, X, allowed=frame[["b", "a", "c"]])
    chain = StructuredSVM("chain", alpha=0.01).fit([X], [y])
    assert chain.predict([X], allowed=[frame])[0].tolist() == ["a", "a", "a"]


def test_a_string_is_no_list_of_allowed_classes():
    X, y = np.eye(3), np.array(["a", "b", "c"])
    model, chain = StructuredSVM("multiclass").fit(X, y), StructuredSVM("chain").fit([X], [y])
    refused("node 0: allowed is 'ab'", model.predict, X, allowed=["ab", "c", None])
    refused("node 1: allowed is 'b'", chain.predict, [X], allowed=[[["a"], "b", None]])
    refused("example 0: allowed has 'abc' for 3 nodes", chain.predict, [X], allowed=["abc"])


class Column(list):
    """A Series of polars, as far as it is used."""

    class dtype:
        is_nested = staticmethod(lambda: True)

    to_list = list.copy


class Frame:
    """A data frame with the interface of polars: no index, no ``ndim``, columns by name."""

    def __init__(self, rows, columns):
        self.rows, self.columns, self.shape = list(rows), list(columns), (len(rows), len(columns))

    def to_numpy(self):
        return np.array(self.rows)

    def __array__(self, dtype=None, copy=None):
        return self.to_numpy()

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, names):
        if isinstance(names, str):
            return [row[self.columns.index(names)] for row in self.rows]
        return Frame(np.stack([self[name] for name in names], axis=1).tolist(), names)


HIERARCHY = {"r": ["a", "b"], "a": [], "b": []}
NETWORK = nx.DiGraph([("s", "a"), ("s", "b"), ("a", "t"), ("b", "t")])
NETWORK.add_node("s", demand=-1)
NETWORK.add_node("t", demand=1)
ARCS = list(map(str, NETWORK.edges))


@pytest.mark.parametrize(
    "model, y, columns",
    [
        (StructuredSVM("permutation", tol=0.1), [[0, 1, 2], [1, 2, 0]], "uvw"),
        (ConditionalRiskMinimizer("permutation"), [[0, 1, 2], [1, 2, 0]], "uvw"),
        (StructuredSVM("multilabel", tol=0.1), [[0, 1], [1, 0]], "uv"),
        (ExtremeSVM(), [[0, 1], [1, 0]], "uv"),
        (StructuredSVM("dag", tol=0.1), [["p", "q"], ["p", "r"]], "uv"),
        (HierarchicalSVM(tol=0.1), [["p", "q"], ["p", None]], "uv"),
        (HierarchicalSVM(tol=0.1), [[1, 2], [3, 4]], "uv"),
        (StructuredSVM(get_structure("dag", hierarchy=HIERARCHY), tol=0.1), [[1, 1, 0]] * 2, "rab"),
        (HierarchicalSVM(HIERARCHY, tol=0.1), [[1, 1, 0], [1, 0, 1]], "rab"),
        (StructuredSVM(get_structure("flow", network=NETWORK), tol=0.1), [[1, 0, 1, 0]] * 2, ARCS),
    ],
)
def test_data_frames_of_other_packages(model, y, columns, monkeypatch):
    """Those without pandas' index were taken by place or as another form, or ended in errors."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), y * 10
    frame = Frame(X.tolist(), "abc"), Frame(y, columns)
    model = clone(model)
    plain = np.array(y, dtype=object) if isinstance(y[0][0], str) else np.array(y)
    expected = clone(model).fit(X, plain).predict(X)
    assert model.fit(*frame).predict(frame[0]).tolist() == expected.tolist()
    assert model.score(*frame) == model.score(X, plain)
    other = frame[1][frame[1].columns[::-1]]
    refused("y: (found the columns|expected the nodes)", model.score, X, other)


def test_lists_in_a_series():
    X, y = np.eye(4), [["p", "q"], ["p"], ["q"], ["q"]]
    assert ExtremeSVM().fit(X, Column(y)).classes_.tolist() == ["p", "q"]
    assert StructuredSVM("chain").fit([X[:2], X[:1]], Column(y[:2])).classes_.tolist() == ["p", "q"]


def named(names, form="frame"):
    """A symmetric matrix, or row, of positive numbers that sum to 1, with names."""
    pd = pytest.importorskip("pandas")
    if form == "series":
        return pd.Series([0.2, 0.3, 0.5], [*names])
    matrix = np.array([[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]])
    return pd.DataFrame(matrix, *([*each] if each else None for each in form(names)))


SYMBOLS, STATES = [["u", "v", "w"]] * 4, [["u", "v", None]] * 3 + [["w", "w", "w"]]


def hidden_markov(name, table):
    return HiddenMarkovModel(init={name: table}, max_iter=1).fit(SYMBOLS, STATES)


def conditional_risk(table):
    X, Y = np.eye(3), np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    columns = pytest.importorskip("pandas").DataFrame(Y, columns=[*"uvw"])
    return ConditionalRiskMinimizer("multilabel", joint_kernel=table).fit(X, columns)


def path_cost(table):
    tree = {"u": ["v", "w"], "v": [], "w": []}
    structure = get_structure("dag", hierarchy=tree, labels="single-leaf")
    return StructuredSVM(structure, loss=PathCost(table), tol=0.1).fit([[-1.0], [1.0]], ["v", "w"])


@pytest.mark.pandas
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "train, form",
    [
        (conditional_risk, lambda names: (None, names)),
        (conditional_risk, lambda names: (names, None)),
        (partial(hidden_markov, "transition"), lambda names: (names, names)),
        (partial(hidden_markov, "table"), lambda names: ("uvw", names)),
        (partial(hidden_markov, "table"), lambda names: (names, "uvw")),
        (partial(hidden_markov, "start"), "series"),
        (path_cost, "series"),
    ],
)
def test_names_of_tables_that_settings_hold(train, form):
    """They were read by place, silently."""
    train(named("uvw", form))
    train(named("xyz", form) if form == "series" else named("uvw", form).to_numpy())
    for other in ("vuw", "uvz"):
        told = f"found the columns .{other[0]!r}, {other[1]!r}, .*, expected .'u', 'v', 'w'. as "
        refused(told, train, named(other, form))


@pytest.mark.pandas
@pytest.mark.parametrize("name", ["chain", "mrf"])
def test_names_of_features_of_edges(name, tmp_path):
    """They were read by place, silently."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frames = [pd.DataFrame(rng.normal(size=(2, 2)), columns=["e", "f"]) for _ in range(6)]
    X = [(rng.normal(size=(3, 2)), [[0, 1], [1, 2]], frame) for frame in frames]
    X = [(x, frame) for x, _, frame in X] if name == "chain" else X
    Y = rng.choice(["a", "b"], (6, 3)).tolist()
    structure = "chain" if name == "chain" else get_structure("mrf", tables="features")
    model = reloaded(StructuredSVM(structure, tol=0.5).fit(X, Y), tmp_path)
    assert model.score([(*x[:-1], x[-1].to_numpy()) for x in X], Y) == model.score(X, Y)
    other = [(*x[:-1], x[-1][["f", "e"]]) for x in X]
    refused("features of edges: found the columns .'f', 'e'., expected", model.score, other, Y)


@pytest.mark.pandas
def test_labels_in_a_series_by_node():
    pd = pytest.importorskip("pandas")
    graph = nx.path_graph(["a", "b", "c"])
    nx.set_node_attributes(graph, {"a": [0.0], "b": [1.0], "c": [2.0]}, "features")
    labels = pd.Series(["p", "q", "q"], ["a", "b", "c"])
    model = StructuredSVM("mrf", tol=0.1).fit([graph] * 2, [labels] * 2)
    assert model.score([graph], [labels]) == model.score([graph], [labels.tolist()])
    told = "y, example 0: found the columns .'c', 'b', 'a'., expected .'a', 'b', 'c'. as nodes of X"
    refused(told, model.score, [graph], [labels[::-1]])
