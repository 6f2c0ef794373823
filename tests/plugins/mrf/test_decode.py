"""decode() of one graph: weights, equivalent transformations and their certificate, memory."""

import itertools

import numpy as np
import pytest
from checks import refused
from scipy.optimize import linprog

from structsolve.lp import local_rows
from structsolve.plugins.mrf import arc_consistent, decode, grid_edges, reparametrization_bound
from structsolve.plugins.mrf._direct import WeightedModel
from structsolve.plugins.mrf.tables.scores import graph_scores
from structsolve.utils import memory

ORACLES = ("auto", "exact", "trws", "lp")


def random_graph(rng, kind="normal"):
    """Scores of a small graph with a table per edge, and all labelings' scores."""
    n, K = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    edges = [e for e in itertools.combinations(range(n), 2) if rng.random() < 0.7]
    shapes = (n, K), (len(edges), K, K)
    if kind == "normal":
        unary, pair = (rng.normal(size=shape) for shape in shapes)
    else:
        unary, pair = (rng.integers(-2, 3, shape) * 1.0 for shape in shapes)
    if kind == "forbidden":
        unary[rng.random(shapes[0]) < 0.15] = -np.inf
        pair[rng.random(shapes[1]) < 0.15] = -np.inf
    labels = np.indices((K,) * n).reshape(n, -1).T
    return unary, edges, pair, labels, scores_of(unary, edges, pair, labels)


def scores_of(unary, edges, pair, labels):
    total = unary[np.arange(len(unary)), labels].sum(axis=1)
    for (u, v), table in zip(edges, pair):
        total = total + table[labels[:, u], labels[:, v]]
    return total


def transformed(unary, edges, pair, phi):
    unary, pair = unary.copy(), pair.copy()
    for e, (u, v) in enumerate(edges):
        unary[u] += phi[e, 0]
        unary[v] += phi[e, 1]
        pair[e] -= phi[e, 0][:, None] + phi[e, 1]
    return unary, pair


@pytest.mark.parametrize("kind", ["normal", "ties", "forbidden"])
def test_transformations_keep_scores_and_certify(kind):
    rng = np.random.default_rng(0)
    certified = 0
    for _ in range(150):
        unary, edges, pair, labels, scores = random_graph(rng, kind)
        if not np.isfinite(scores).any():
            continue
        best = decode(unary, edges, pair, oracle="trws", return_reparametrization=True)
        moved = transformed(unary, edges, pair, best.phi)
        np.testing.assert_allclose(scores_of(moved[0], edges, moved[1], labels), scores, atol=1e-9)
        bound = reparametrization_bound(unary, edges, pair, best.phi)
        maxima = moved[0].max(axis=1).sum() + sum(table.max() for table in moved[1])
        assert bound == pytest.approx(maxima, abs=1e-9)
        assert bound >= best.bound - 1e-9 and best.bound >= scores.max() - 1e-9
        any_phi = rng.normal(size=best.phi.shape)
        assert reparametrization_bound(unary, edges, pair, any_phi) >= scores.max() - 1e-9
        answer = arc_consistent(unary, edges, pair, best.phi, tol=1e-6)
        row = moved[0] >= moved[0].max(axis=1, keepdims=True) - 1e-6 * 5
        assert not (answer.kept & ~row).any()
        if answer.label is not None:
            certified += 1
            value = scores_of(unary, edges, pair, answer.label[None])[0]
            assert value == pytest.approx(scores.max(), abs=1e-3)
            assert answer.consistent
        # If a labeling meets the bound, its states and pairs are all maximal.
        if bound <= scores.max() + 1e-9:
            assert answer.consistent
            assert answer.kept[np.arange(len(unary)), labels[scores.argmax()]].all()
    assert certified > 50


def test_arc_consistency_by_hand():
    # A frustrated triangle: all states and pairs are maximal, but no labeling is.
    unary, edges = np.zeros((3, 2)), [[0, 1], [1, 2], [0, 2]]
    differ = 1 - np.eye(2)
    answer = arc_consistent(unary, edges, differ, np.zeros((3, 2, 2)))
    assert answer.consistent and answer.kept.all() and answer.label is None
    # State 1 of node 0 has no maximal pair; the rest leaves nothing for node 2.
    pair = np.array([[[0, 0], [-1, -1]], [[-1, 0], [-1, -1]]])
    unary = np.array([[0, 0], [0, -5], [0, -5.0]])
    answer = arc_consistent(unary, edges[:2], pair, np.zeros((2, 2, 2)))
    assert not answer.consistent and answer.label is None
    answer = arc_consistent(unary[:2], edges[:1], pair[:1], np.zeros((1, 2, 2)))
    assert answer.kept.tolist() == [[True, False], [True, False]]
    assert answer.label.tolist() == [0, 0]


def test_bounds_are_the_relaxations_where_that_is_tight_or_a_tree():
    rng = np.random.default_rng(1)
    tight = 0
    for _ in range(40):
        unary, edges, pair, _, scores = random_graph(rng)
        K = unary.shape[1]
        rows, right = local_rows(np.full(len(unary), K), np.array(edges).reshape(-1, 2))
        cost = -np.concatenate([unary.ravel(), pair.ravel()])
        relaxed = -linprog(cost, A_eq=rows, b_eq=right, method="highs").fun
        best = decode(unary, edges, pair, oracle="trws", max_iter=300)
        assert best.bound >= relaxed - 1e-7
        if len(edges) < len(unary):
            assert best.bound == pytest.approx(scores.max())
        if relaxed <= scores.max() + 1e-9:
            tight += 1
            assert best.bound == pytest.approx(relaxed, abs=1e-5)
    assert tight > 20


@pytest.mark.parametrize("oracle", ORACLES)
def test_weights_are_factors_of_the_table(oracle):
    rng = np.random.default_rng(2)
    for _ in range(8 if oracle == "lp" else 25):
        unary, edges, _, labels, _ = random_graph(rng)
        K = unary.shape[1]
        table = rng.normal(size=(K, K))
        weights = rng.integers(-1, 3, len(edges)) / 2
        pair = weights[:, None, None] * table
        scores = scores_of(unary, edges, pair, labels)
        best = decode(
            unary, edges, table, True, oracle, weights=weights, return_reparametrization=True
        )
        assert best.value == pytest.approx(scores_of(unary, edges, pair, best.label[None])[0])
        assert best.bound >= scores.max() - 1e-7
        bound = reparametrization_bound(unary, edges, table, best.phi, True, weights)
        assert bound == pytest.approx(reparametrization_bound(unary, edges, pair, best.phi))
        if oracle == "exact":
            assert best.value == pytest.approx(scores.max())
    # Nodes of different sizes use parts of the table.
    shared = decode([[0, 1], [0, 0, 2]], [[1, 0]], np.arange(9).reshape(3, 3), True, weights=[2])
    assert shared.label.tolist() == [1, 2] and shared.value == 17


def test_integers_and_other_dtypes_and_large_graphs():
    rng = np.random.default_rng(3)
    unary = rng.integers(0, 9, (400, 5)).astype(np.int16)
    edges, table = grid_edges(20, 20), -3 * (1 - np.eye(5, dtype=np.float32))
    best = decode(unary, edges, table, oracle="trws")
    same = decode(unary.astype(float).tolist(), edges, table.tolist(), oracle="trws")
    assert best.value == same.value and (best.label == same.label).all()
    apart = decode(unary, edges, np.broadcast_to(table, (len(edges), 5, 5)), oracle="trws")
    assert apart.value == best.value and apart.bound == pytest.approx(best.bound, abs=1e-3)
    assert unary.flags.writeable and table.flags.writeable


@pytest.mark.parametrize(
    "weights, message",
    [
        ([1.0, 2], r"weights: found shape \(2,\), expected \(1,\), one per edge"),
        ([np.nan], "weights of edge 0: found nan, expected a finite number"),
        (["a"], "weights: found no array of numbers"),
        ([-1.0], "weights of edge 0: found -1.0, expected more than 0 where the table forbids"),
    ],
)
def test_weights_that_are_refused(weights, message):
    table = [[0, -np.inf], [-np.inf, 0]]
    refused(message, decode, np.zeros((2, 2)), [[0, 1]], table, weights=weights)
    if weights == [-1.0]:
        message = "weights: found a table per edge, expected one table for all edges"
        refused(message, decode, np.zeros((2, 2)), [[0, 1]], [table], weights=weights)


def test_weights_of_another_number_are_refused():
    graph = [2, 2], [[0, 1]], np.zeros(4), np.eye(2)
    refused("weights: found 0 numbers, expected 1, one per edge", WeightedModel, *graph, [])
    refused("weights: found 2 numbers, expected 1", WeightedModel, *graph, np.ones(2))


def test_transformations_that_are_refused():
    graph = np.zeros((2, 2)), [[0, 1]], np.eye(2)
    refused(r"phi: found shape \(1, 2\), expected \(1, 2, 2\)", reparametrization_bound, *graph,
            np.zeros((1, 2)))  # fmt: skip
    refused("phi: found NaN or infinity", arc_consistent, *graph, np.full((1, 2, 2), np.inf))
    refused("tol is -1", arc_consistent, *graph, np.zeros((1, 2, 2)), tol=-1)


def test_complex_numbers_are_refused():
    """NumPy drops their imaginary parts, with a warning alone."""
    graph = dict(unary=np.zeros((2, 2)), edges=[[0, 1]], pair=np.eye(2), phi=np.zeros((1, 2, 2)))
    for name in ("unary", "pair", "phi"):
        wrong = graph | {name: graph[name] + 1j}
        refused(f"{name}.*: .*Complex data not supported", reparametrization_bound, **wrong)
        for kind in (list, np.asarray):
            wrong[name] = kind(wrong[name])
            refused(f"{name}.*: .*Complex data", reparametrization_bound, **wrong)


def test_arrays_that_do_not_fit_the_memory(monkeypatch):
    graph = np.zeros((9, 3)), grid_edges(3, 3), np.eye(3)
    monkeypatch.setattr(memory, "memory_limit", lambda: 1000)
    refused("arrays of 9 nodes and 12 edges would take .* GB, more than the 1e-06 GB", decode,
            *graph)  # fmt: skip
    monkeypatch.setattr(memory, "memory_limit", lambda: 50)
    refused("a table for each edge would take",
            graph_scores(*graph, weights=np.ones(12)).tables)  # fmt: skip
    fewer = [np.zeros(2), *np.zeros((8, 3))]
    refused("a table for each edge would take", decode, fewer, *graph[1:])
    monkeypatch.setattr(memory, "memory_limit", lambda: None)
    assert decode(*graph).value == 12


def test_scores_whose_sums_overflow_are_refused():
    edge, flat = [[0, 1]], np.zeros((2, 2))
    for unary, pair, weights in (
        ([[0, 1], [1, 0]], [[0, 0], [0, 1e308]], [1e10]),
        ([[1.7e308, 0], [1.7e308, 0]], flat, None),
        ([[-1.7e308, 0], [-1.7e308, 0]], flat, None),
    ):
        with pytest.raises(ValueError, match=r"scores of labelings may reach .* divide them all"):
            decode(unary, edge, pair, weights=weights)
    best = decode([[-np.inf, 1e-20], [0, 2e-20]], edge, flat, return_reparametrization=True)
    assert best.value == best.bound == pytest.approx(3e-20, rel=1e-12)
    proved = reparametrization_bound([[-np.inf, 1e-20], [0, 2e-20]], edge, flat, best.phi)
    assert proved == pytest.approx(3e-20, rel=1e-6)


def test_an_array_is_no_name_of_a_decoder():
    refused("oracle is array.*expected one of", decode, [[0, 1]], [], [], oracle=np.array([1, 2]))


def test_rows_of_data_frames_are_nodes():
    """Columns of a frame of polars were nodes, silently; names of those of pandas were scores."""

    class Frame(list):
        columns = ("a", "b")

        def to_numpy(self):
            return np.array(list(zip(*self)))

    unary, pair = Frame([[3.0, 0.0, 0.0], [1.0, 2.0, 5.0]]), Frame([[1.0, 0.0], [0.0, 1.0]])
    edges = [[0, 1], [1, 2]]
    best = decode(unary, edges, pair)
    assert best.label.tolist() == [0, 1, 1] and best.value == 11
    same = reparametrization_bound(unary, edges, pair, np.zeros((2, 2, 2)))
    assert same == reparametrization_bound(unary.to_numpy(), edges, np.eye(2), np.zeros((2, 2, 2)))
