"""Labelings of graphs: forms of input, tables, states per node, training, files."""

import networkx as nx
import numpy as np
import pytest
from checks import LOSS, check_oracle, refused, reloaded, same
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.objectives import optimum
from scipy import sparse
from sklearn.base import clone

from structsolve import CostMatrix, StructuredSVM
from structsolve.lp import ask_oracle
from structsolve.plugins.mrf import MRFStructure, decode, grid_edges
from structsolve.structure import calls
from structsolve.structure.ask import make_layout
from structsolve.testing import check_structure

TRIANGLE = [[0, 1], [1, 2], [2, 0]]
STAR = [[0, 1], [2, 0], [0, 3]]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"directed": True},
        {"tables": "features"},
        {"tables": "features", "directed": True},
        {"n_states": 2, "tables": "features"},
        {"edges": TRIANGLE},
        {"edges": TRIANGLE, "n_states": [2, 3, 1]},
        {"edges": TRIANGLE, "tables": "features", "n_states": 2},
        {"edges": STAR, "tables": "per-edge"},
        {"edges": TRIANGLE, "tables": "per-edge", "n_states": 2},
        {"edges": STAR, "tables": "per-edge", "n_states": [1, 2, 2, 2]},
    ],
    ids=str,
)
def test_conformance(params):
    check_structure(MRFStructure(**params, oracle="exact"), n_cases=2)


@pytest.mark.parametrize(
    "oracle", ["auto", "roof-duality", "trws", "expansion", "lp", "cvxpy:CLARABEL"]
)
def test_conformance_of_inexact_oracles(oracle):
    n_cases = {"lp": 2, "cvxpy:CLARABEL": 1}.get(oracle, 3)  # programs take their time
    variants = [{"n_states": 2}, {"edges": TRIANGLE, "tables": "per-edge", "n_states": 2}]
    if oracle != "roof-duality":
        variants.append({"directed": True})
    check_structure(MRFStructure(**variants[-1], oracle=oracle), solvers=(), n_cases=1)
    for params in variants:
        # The first case of the last one has passed the whole kit.
        first = int(params is variants[-1])
        check_oracle(MRFStructure(**params, oracle=oracle), range(first, n_cases))


@pytest.mark.parametrize("loss", ["zero-one", "normalized-hamming", CostMatrix(1 - np.eye(3))])
def test_conformance_of_losses(loss):
    class Three(MRFStructure):
        def sample(self, random_state, n=4, size=3):
            X, Y = super().sample(random_state, n, size)
            # All classes occur with any seed.
            X.append((np.zeros((3, 2)), [[0, 1]]))
            return X, [*Y, np.arange(3)]

    solvers = () if loss == "zero-one" else ("bcfw",)
    check_structure(Three(oracle="exact"), loss=loss, n_cases=1, solvers=solvers, only=LOSS)


# -- what a model is ----------------------------------------------------------------------------


def noisy_grids(n=12, height=3, width=3, seed=0, n_classes=2):
    """Return noisy grids whose neighbours tend to agree."""
    rng = np.random.default_rng(seed)
    edges = grid_edges(height, width)
    X, Y = [], []
    for _ in range(n):
        y = rng.integers(0, n_classes, (height, width))
        y[:, 1:] = np.where(rng.random((height, width - 1)) < 0.8, y[:, :1], y[:, 1:])
        y = y.ravel()
        X.append(np.eye(n_classes)[y] + 0.7 * rng.normal(size=(len(y), n_classes)))
        Y.append(y)
    return X, Y, edges


def score(model, x, edges, y, edge_features=None):
    """Return the score of a labeling from the named weights only."""
    w, b, pair = model.coef_["node"], model.coef_["intercept"], model.coef_["pair"]
    nodes = x @ w + b
    total = sum(nodes[v, s] for v, s in enumerate(y))
    for e, (u, v) in enumerate(edges):
        s, t = y[u], y[v]
        tables = model.space_.structure.tables
        if not model.space_.structure.directed and tables != "per-edge":
            s, t = min(s, t), max(s, t)
        if tables == "features":
            total += edge_features[e] @ pair[:, s, t]
        else:
            total += (pair[e] if tables == "per-edge" else pair)[s, t]
    return total


@pytest.mark.parametrize("tables", ["shared", "per-edge", "features"])
@pytest.mark.parametrize("directed", [False, True])
def test_predictions_maximise_the_score_of_the_named_weights(tables, directed):
    X, Y, edges = noisy_grids(n=6, height=2, width=3)
    rng = np.random.default_rng(0)
    features = [rng.normal(size=(len(edges), 2)) for _ in X]
    given = list(zip(X, features)) if tables == "features" else X
    structure = MRFStructure(edges, tables, directed)
    model = StructuredSVM(structure, alpha=0.01, tol=0.05).fit(given, Y)
    labels = np.indices((2,) * 6).reshape(6, -1).T
    for x, f, predicted in zip(X, features, model.predict(given)):
        scores = [score(model, x, edges, y, f) for y in labels]
        assert predicted.tolist() == labels[int(np.argmax(scores))].tolist()


def test_undirected_tables_do_not_see_the_direction_of_edges():
    X, Y, edges = noisy_grids()
    turned = [e[::-1] if k % 2 else e for k, e in enumerate(edges.tolist())]
    one, two = (
        StructuredSVM(MRFStructure(e), alpha=0.01, tol=0.01).fit(X, Y) for e in (edges, turned)
    )
    assert np.allclose(one.coef_["pair"], two.coef_["pair"])
    assert one.coef_["pair"][1, 0] == 0
    directed = MRFStructure(edges, directed=True)
    assert StructuredSVM(directed, tol=0.05).fit(X, Y).coef_["pair"][1, 0] != 0


def test_one_graph_and_a_graph_per_example_are_the_same_model():
    X, Y, edges = noisy_grids()
    shared = StructuredSVM(MRFStructure(edges), alpha=0.01, tol=1e-2).fit(X, Y)
    own = StructuredSVM("mrf", alpha=0.01, tol=1e-2).fit([(x, edges) for x in X], Y)
    cube = StructuredSVM(MRFStructure(edges), alpha=0.01, tol=1e-2).fit(np.array(X), np.array(Y))
    for other in (own, cube):
        same(dict(shared.coef_), dict(other.coef_))


def test_networkx_graphs():
    X, Y, edges = noisy_grids(n=4)
    graphs, labels = [], []
    for x, y in zip(X, Y):
        graph = nx.Graph()
        for v in range(9):
            graph.add_node(("cell", v), features=x[v])
        graph.add_edges_from((("cell", u), ("cell", v), {"features": [1.0]}) for u, v in edges)
        graphs.append(graph)
        labels.append(y)
    expected = (
        StructuredSVM("mrf", alpha=0.01, tol=1e-4)
        .fit([(x, edges) for x in X], Y)
        .predict([(x, edges) for x in X])
    )
    model = StructuredSVM("mrf", alpha=0.01, tol=1e-4).fit(graphs, labels)
    assert [list(p.values()) for p in model.predict(graphs)] == [p.tolist() for p in expected]
    with_features = StructuredSVM(MRFStructure(tables="features"), tol=0.1).fit(graphs, labels)
    assert with_features.coef_["pair"].shape == (1, 2, 2)


def test_sparse_features_strings_and_weights():
    X, Y, edges = noisy_grids()
    names = [np.array(["off", "on"])[y] for y in Y]
    model = StructuredSVM(MRFStructure(edges), tol=0.05).fit(X, names, sample_weight=np.ones(12))
    assert model.classes_.tolist() == ["off", "on"]
    csr = StructuredSVM(MRFStructure(edges), tol=0.05).fit([sparse.csr_matrix(x) for x in X], names)
    assert [p.tolist() for p in model.predict(X)] == [p.tolist() for p in csr.predict(X)]
    assert model.score(X, names) > 0.8


def test_graphs_without_edges():
    X, Y = [(np.eye(2), np.zeros((0, 2), int)), (np.eye(1, 2), [])], [[0, 1], [0]]
    model = StructuredSVM("mrf", alpha=0.01).fit(X, Y)
    assert [p.tolist() for p in model.predict(X)] == Y
    X = [(*x, np.zeros((0, 3))) for x in X]
    assert StructuredSVM(MRFStructure(tables="features")).fit(X, Y).score(X, Y) == 1
    one = StructuredSVM(MRFStructure(edges=[], tables="per-edge")).fit([np.eye(2)], [[0, 1]])
    assert one.score([np.eye(2)], [[0, 1]]) == 1


def test_states_beyond_a_nodes_count_are_never_predicted():
    rng = np.random.default_rng(0)
    structure = MRFStructure(TRIANGLE, n_states=[2, 4, 1])
    X = [rng.normal(size=(3, 2)) for _ in range(20)]
    Y = [[int(rng.integers(2)), 3, 0] for _ in X]
    model = StructuredSVM(structure, tol=0.1).fit(X, Y)
    assert model.classes_.tolist() == [0, 1, 2, 3]
    predicted = np.array(model.predict(X))
    assert predicted.max(axis=0).tolist() <= [1, 3, 0]
    assert np.isneginf(model.decision_function(X)[0][2, 1:]).all()
    model = StructuredSVM(MRFStructure(TRIANGLE, n_states=3), tol=0.1).fit(X, [[0, 1, 0]] * 20)
    assert model.classes_.tolist() == [0, 1, 2]


def test_constraints_at_prediction():
    X, Y, edges = noisy_grids()
    model = StructuredSVM(MRFStructure(edges), tol=0.05).fit(X, Y)
    allowed = [[[1]] + [None] * 8] * len(X)
    assert all(p[0] == 1 for p in model.predict(X, allowed=allowed))
    agree = model.predict(X, forbidden=[(0, 1)])
    assert all(len(set(p.tolist())) == 1 for p in agree)
    refused("forbidden: found", model.predict, X, forbidden=[(0, 7)])
    per_edge = StructuredSVM(MRFStructure(edges, "per-edge"), tol=0.5).fit(X, Y)
    refused("forbidden pairs need tables='shared'", per_edge.predict, X, forbidden=[(0, 1)])


# -- training -----------------------------------------------------------------------------------


def written(structure, X, Y, model):
    """Solve the full margin problem: differences of features and losses of every labeling."""
    space = model.space_
    examples = space.pack(X, Y)
    problem = []
    for i, (x, y) in enumerate(zip(X, Y)):
        nodes = np.column_stack([x, np.ones(len(x))])
        labels = space.enumerate_labels(examples, i)

        def phi(label, nodes=nodes):
            pair = np.zeros((2, 2))
            for u, v in space.edges_:
                pair[min(label[u], label[v]), max(label[u], label[v])] += 1
            return np.concatenate([pair.ravel(), (nodes.T @ np.eye(2)[label]).ravel()])

        differences = np.array([phi(y) - phi(label) for label in labels])
        problem.append((differences, (labels != y).sum(axis=1).astype(float)))
    return problem


@pytest.mark.parametrize("solver", ["bcfw", "cutting-plane"])
@pytest.mark.parametrize("edges", [STAR, [*TRIANGLE, [2, 3]]], ids=["tree", "loop"])
def test_training_reaches_the_optimum(edges, solver):
    rng = np.random.default_rng(5)
    X = [rng.normal(size=(4, 2)) for _ in range(10)]
    Y = [(x @ [1.0, -0.5] + 0.5 * rng.normal(size=4) > 0).astype(int) for x in X]
    structure = MRFStructure(edges)
    model = StructuredSVM(structure, alpha=0.1, tol=1e-6, max_iter=500, solver=solver).fit(X, Y)
    assert model.stop_reason_ == "converged"
    best = optimum(written(structure, X, Y, model), 0.1)
    assert model.history_[-1]["primal"] == pytest.approx(best.value, rel=1e-5)


def test_neighbours_help():
    X, Y, edges = noisy_grids(n=60, height=4, width=4)
    scores = {
        name: StructuredSVM(MRFStructure(e), alpha=0.01, tol=0.02)
        .fit(X[:30], Y[:30])
        .score(X[30:], Y[30:])
        for name, e in (("none", []), ("grid", edges))
    }
    assert scores["grid"] > scores["none"]


def test_clone_save_load(tmp_path):
    X, Y, edges = noisy_grids()
    for structure, graphs in (
        (MRFStructure(edges), X),
        (MRFStructure(edges, "per-edge", n_states=[2] * 9, oracle="trws", max_iter=7), X),
        (MRFStructure(directed=True), [(x, edges) for x in X]),
    ):
        model = clone(StructuredSVM(structure, tol=0.3, max_iter=3)).fit(graphs, Y)
        loaded = reloaded(model, tmp_path)
        assert [p.tolist() for p in loaded.predict(graphs)] == [
            p.tolist() for p in model.predict(graphs)
        ]
        model.n_jobs = 3
        assert [p.tolist() for p in loaded.predict(graphs)] == [
            p.tolist() for p in model.predict(graphs)
        ]


def test_auto_is_exact_where_that_is_cheap():
    def oracle(V, edges, K):
        structure = MRFStructure(edges, n_states=K)
        X, Y = [np.zeros((V, 1))], [np.zeros(V, int)]
        space, examples = structure.make_space(X, Y)
        return ask_oracle(space)(make_layout(space, examples))

    ring = [(v, (v + 1) % 30) for v in range(30)]
    assert oracle(30, ring[:-1], 5).exact
    assert oracle(3, TRIANGLE, 5).exact
    # A narrow graph is eliminated, with any number of labelings; a complete one is not.
    assert oracle(30, ring, 2).exact and oracle(30, ring, 3).exact
    complete = np.transpose(np.triu_indices(30, 1))
    assert not oracle(30, complete, 2).exact and not oracle(30, complete, 3).exact
    with pytest.raises(ValueError, match="'roof-duality', which is for two states; a node has 3"):
        StructuredSVM(MRFStructure(oracle="roof-duality")).fit([(np.eye(3), [])], [[0, 1, 2]])


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_topologies_of_many_examples(data):
    """Each example is decoded on its own graph, regardless of those before and after it."""
    X, Y = [], []
    for _ in range(data.draw(st.integers(1, 4))):
        V = data.draw(st.integers(1, 4))
        pairs = [(u, v) for u in range(V) for v in range(V) if u < v]
        edges = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
        X.append((np.arange(V, dtype=float)[:, None], np.array(edges, int).reshape(-1, 2)))
        Y.append([v % 2 for v in range(V)])
    space, examples = MRFStructure(directed=True, n_states=2, oracle="exact").make_space(X, Y)
    bind = ask_oracle(space)
    oracle = bind(make_layout(space, examples))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    for i in range(len(X)):
        V = len(Y[i])
        theta = rng.normal(size=space.layout.theta_size(V, len(X[i][1])))
        alone = bind(make_layout(space, space.pack([X[i]], [Y[i]])))
        a, b = calls.argmax(oracle, i, theta), calls.argmax(alone, 0, theta)
        assert a[0].tolist() == b[0].tolist() and a[1] == a[2] == b[1]


# -- bad input ----------------------------------------------------------------------------------

N = np.zeros((3, 1))
OK = (N, [[0, 1]])


@pytest.mark.parametrize(
    "X, message",
    [
        ([OK, (N, [[0, 0]])], "example 1, edges: edge 0 joins node 0 with itself"),
        ([OK, (N, [[0, 3]])], r"example 1, edges: edge 0 is \(0, 3\), expected nodes 0 to 2"),
        ([OK, (N, [[-1, 0]])], r"edge 0 is \(-1, 0\)"),
        ([OK, (N, [0, 1])], "expected integers of shape .edges, 2."),
        ([OK, (N, [["a", "b"]])], "expected integers of shape"),
        ([OK, (np.zeros((0, 1)), [])], "example 1: found 0 rows, expected at least 1"),
        ([OK, (N,)], r"example 1: found 1 of them, expected \(node_features, edges\)"),
        ([OK, N], "example 1: found ndarray, expected"),
        ([OK, (N, [[0, 1]], np.zeros((1, 1)))], "example 1: found 3 of them, expected"),
        ([OK, nx.Graph()], "example 1: found a graph without nodes"),
        ([OK, nx.path_graph(3)], "example 1: node 0 has no attribute 'features'"),
        ([OK, (np.full((3, 1), np.nan), [])], "Input contains NaN .example 1"),
        ([OK, (np.zeros((3, 2)), [])], "example 1: found 2 features, expected 1"),
        ([], "X is empty"),
        (N, "X is a ndarray, expected a list with"),
    ],
)
def test_bad_graphs(X, message):
    refused(message, StructuredSVM("mrf").fit, X, [[0, 1, 0]] * len(X))


@pytest.mark.parametrize(
    "params, X, Y, message",
    [
        ({"tables": "dense"}, [OK], [[0, 1, 0]], "tables is 'dense', expected one of"),
        ({"tables": "per-edge"}, [OK], [[0, 1, 0]], "'per-edge', which needs one graph"),
        ({"n_states": [2, 2, 2]}, [OK], [[0, 1, 0]], "n_states is a list, which needs one graph"),
        ({"n_states": 0}, [OK], [[0, 1, 0]], "n_states of node 0 is 0, expected at least 1"),
        ({"n_states": "2"}, [OK], [[0, 1, 0]], "expected an integer or one per node"),
        ({"n_states": 2}, [OK], [[0, 2, 0]], r"label 2 was not seen in training; known: \[0, 1\]"),
        ({"edges": TRIANGLE, "n_states": [2, 2]}, [N], [[0, 1, 0]], "2 entries, expected 3"),
        (
            {"edges": TRIANGLE, "n_states": [2, 3, 1]},
            [N, N],
            [[0, 2, 0], [0, 2, 1]],
            "example 1, node 2: y holds the state 1, expected 0 to 0: n_states gives the node 1",
        ),
        ({"edges": [[0, 5]]}, [N], [[0, 1, 0]], r"edges: edge 0 is \(0, 5\)"),
        ({"edges": TRIANGLE}, [N, N[:2]], [[0, 1, 0], [0, 1]], "example 1: found 2 nodes"),
        ({"edges": TRIANGLE}, [(N, TRIANGLE)], [[0, 1, 0]], "found a tuple, expected a matrix"),
        ({"tables": "features"}, [OK], [[0, 1, 0]], "found 2 of them, expected .*edge_features"),
        (
            {"tables": "features"},
            [(N, [[0, 1]], np.zeros((2, 1)))],
            [[0, 1, 0]],
            "example 0: 2 rows of edge features for 1 edges",
        ),
        ({"oracle": "magic"}, [OK], [[0, 1, 0]], "oracle is 'magic', expected one of"),
        ({"max_iter": 0}, [OK], [[0, 1, 0]], "max_iter is 0, expected an integer"),
        ({}, [OK], [[0, 1]], "X has 3 rows and y has 2 labels"),
        ({}, [OK], [[0, 1, 0], [0]], "X has 1 examples and y has 2"),
    ],
    ids=str,
)
def test_bad_parameters_and_labels(params, X, Y, message):
    refused(message, StructuredSVM(MRFStructure(**params)).fit, X, Y)


def test_bad_input_at_prediction():
    model = StructuredSVM(MRFStructure(TRIANGLE), tol=1).fit([N], [[0, 1, 0]])
    refused("found 2 nodes, expected 3 as in training", model.predict, [N[:2]])
    model = StructuredSVM(MRFStructure(TRIANGLE, "features"), tol=1).fit(
        [(N, np.ones((3, 2)))], [[0, 1, 0]]
    )
    refused("example 0: 2 rows of edge features for 3 edges", model.predict, [(N, np.ones((2, 2)))])
    with pytest.raises(ValueError, match="edge features, example 0: found 1 features, expected 2"):
        model.predict([(N, np.ones((3, 1)))])


# -- scores that users give ---------------------------------------------------------------------


def test_decode_by_every_decoder():
    rng = np.random.default_rng(0)
    edges = grid_edges(2, 3)
    labels = np.indices((2,) * 6).reshape(6, -1).T
    for _ in range(10):
        unary, pair = rng.normal(size=(6, 2)), rng.normal(size=(len(edges), 2, 2))
        scores = unary[np.arange(6), labels].sum(axis=1)
        for (u, v), table in zip(edges, pair):
            scores += table[labels[:, u], labels[:, v]]
        for oracle in ("auto", "exact", "roof-duality", "trws", "lp", "cvxpy:CLARABEL"):
            best = decode(unary, edges, pair, oracle=oracle)
            row = int(np.flatnonzero((labels == best.label).all(axis=1))[0])
            assert best.value == pytest.approx(scores[row])
            assert best.bound >= scores.max() - 1e-9
            if oracle in ("auto", "exact"):
                assert best.value == pytest.approx(scores.max())


def test_decode_with_nodes_of_different_sizes():
    best = decode([[0, 1], [5.0], [0, 0, 2]], [[0, 2]], [[[0, 9, 0], [0, 0, 0]]])
    assert best.label.tolist() == [0, 0, 1] and best.value == best.bound == 14
    shared = decode([[0, 1], [0, 0, 2]], [[1, 0]], np.arange(9).reshape(3, 3), directed=True)
    assert shared.label.tolist() == [1, 2] and shared.value == 10
    none = decode([[-np.inf, -np.inf]], [], [])
    assert none.value == none.bound == -np.inf


@pytest.mark.parametrize(
    "unary, edges, pair, message",
    [
        ([], [], [], "found no nodes"),
        ([[0, 1], []], [], [], r"unary of node 1: found shape \(0,\), expected a score of at"),
        ([[0, np.nan]], [], [], "unary of node 0: found NaN or infinity"),
        ([[0, "a"]], [], [], "unary of node 0: found no array of numbers"),
        ([[0, 1]] * 2, [[0, 0]], np.eye(2), "edge 0 joins node 0 with itself"),
        ([[0, 1]] * 2, [[0, 1]], [[0, 1], [2, 0]], r"not symmetric: entry \(0, 1\) is 1.0, \(1, 0"),
        ([[0, 1]] * 2, [[0, 1]], np.ones((2, 3)), r"pair: found shape \(2, 3\), expected a square"),
        ([[0, 1]] * 2, [[0, 1]], [[1.0]], "but node 0 has 2 states"),
        ([[0, 1]] * 2, [[0, 1]], np.ones((2, 2, 2)), "found 2 tables for 1 edges"),
        ([[0, 1]] * 2, [[0, 1]], np.ones((1, 2, 3)), r"pair of edge 0: found shape \(2, 3\)"),
    ],
)
def test_decode_refuses(unary, edges, pair, message):
    refused(message, decode, unary, edges, pair)


def test_samples_of_nodes_with_own_numbers_of_states_need_their_graph():
    structure = MRFStructure(n_states=[2, 3])
    refused("n_states is a list, which needs one graph .*give edges=", structure.sample, 0)
    X, Y = structure.set_params(edges=[[0, 1]]).sample(0)
    assert X[0].shape == (2, 2) and max(int(y[0]) for y in Y) < 2
