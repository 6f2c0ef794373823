"""Every decoder of graphs against enumeration, for every layout; two-state graphs in public."""

import os
import runpy

import numpy as np
import pytest
from doc_code import ROOT
from graph_cases import KINDS, LAYOUTS, STATES, Graph, all_scores, random_graph

from structsolve import StructuredSVM
from structsolve.plugins.grid import GridStructure
from structsolve.plugins.mrf import MRFStructure, decode, grid_edges
from structsolve.structure import calls
from structsolve.surrogates import Slack


def case(rng, layout, states, most=5, forest=False, oracle="exact", parallel=0):
    """A random graph; where examples have one each, all its nodes have as many states."""
    if layout[2] == "own":
        states = (int(rng.choice(states)),)
    while True:
        states_of, edges = random_graph(rng, most, states, forest)
        if not forest and len(edges) < len(states_of):
            continue  # it has no cycle
        more = edges[rng.integers(len(edges), size=parallel)] if parallel else edges[:0]
        more = np.where(rng.random((len(more), 1)) < 0.5, more, more[:, ::-1])
        return Graph(states_of, np.concatenate([edges, more]), oracle, *layout)


@pytest.mark.skipif(not (ROOT / ".ci").exists(), reason="installed without the checkout")
@pytest.mark.skipif("STRUCTSOLVE_SANITIZE" in os.environ, reason="it looks now")
def test_layouts_were_seen_by_address_sanitizer():
    digest = runpy.run_path(str(ROOT / ".ci" / "layouts.py"))["digest"]()
    assert (ROOT / ".ci" / "layouts_checked").read_text().strip() == digest, (
        "where scores lie has changed: run .ci/checked address "
        "tests/plugins/mrf/test_mrf_layouts.py tests/plugins/mrf/test_mrf_thresholds.py, "
        "and commit .ci/layouts_checked, which it renews"
    )


@pytest.mark.parametrize("forest", [False, True], ids=["cycles", "forest"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_exact_operators(layout, forest):
    rng = np.random.default_rng(len(str(layout)) + forest)
    for k in range(12):
        graph = case(rng, layout, STATES[k % 4], forest=forest, parallel=0 if forest else k % 3)
        assert graph.oracle.exact
        graph.check_parts(rng, shortest=layout[0] != "shared")
        for kind in KINDS:
            theta = graph.theta(kind, rng)
            graph.check_best(theta)
            graph.check_kbest(theta, int(rng.integers(1, len(graph.labels) + 3)))
            if kind in ("normal", "ties"):
                graph.check_marginals(theta)


@pytest.mark.parametrize("oracle", ["auto", "roof-duality", "trws", "expansion", "lp"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_bounds_and_relaxations(layout, oracle):
    rng = np.random.default_rng(len(str(layout)))
    for k in range(6):
        states = STATES[k % 2 if oracle == "roof-duality" else k % 4]
        graph = case(rng, layout, states, oracle=oracle)
        relaxation = graph.power("relaxation")
        for kind in KINDS:
            theta = graph.theta(kind, rng)
            best, close = graph.scores(theta).max(), graph.close(theta)["atol"]
            value, bound = graph.answer(theta)
            assert value <= bound and bound >= best - close
            if kind == "huge":
                continue
            mu, label, value, bound = calls.relax(relaxation, graph.number, theta)
            expected = graph.local_polytope(theta)
            if expected == -np.inf:
                assert value == expected
                continue
            tolerance = 1e-7 * (1 + np.abs(theta[np.isfinite(theta)]).sum())
            assert abs(value - expected) <= tolerance and bound >= best - close
            used = mu != 0
            assert value == pytest.approx(mu[used] @ theta[used], abs=tolerance)
            if label is not None:
                np.testing.assert_array_equal(mu, graph.matrix[graph.rows(label)])


# -- public calls: two states, one table ----------------------------------------------------------

TRIANGLE = [[0, 1], [1, 2], [2, 0]]
SQUARE = [[0, 1], [1, 2], [2, 3], [3, 0]]


def dense(n, share, seed=0):
    pairs = np.column_stack(np.triu_indices(n, 1))
    return pairs[np.random.default_rng([n, seed]).random(len(pairs)) < share]


GRAPHS = {
    "triangle": (3, TRIANGLE),
    "square": (4, SQUARE),
    **{f"clique of {n}": (n, dense(n, 2)) for n in (4, 5, 6)},
    **{f"dense {n}": (n, dense(n, 0.8)) for n in (14, 15, 20)},
}


pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def fitted(structure, X, Y):
    """Return a model with the weights after a few passes over noise."""
    return StructuredSVM(structure, alpha=1e-3, max_iter=3, tol=1e-9).fit(X, Y)


def table_scores(model, x, edges, features=None):
    """Return scores of all labelings, from the named weights only."""
    coef, structure = model.coef_, model.space_.structure
    pair = coef["pair"]
    if structure.tables != "per-edge" and not structure.directed:
        pair = np.triu(pair) + np.swapaxes(np.triu(pair, 1), -1, -2)
    if structure.tables == "features":
        pair = np.tensordot(features, pair, 1)
    tables = pair if pair.ndim == 3 else [pair] * len(edges)
    nodes = x @ coef["node"] + coef["intercept"]
    return all_scores([nodes.shape[1]] * len(x), edges, nodes, tables)


def check_public(model, X, graphs, features=None):
    """Check labels, the k best and the best for each state against the enumeration."""
    ranked, margins = model.predict_kbest(X, 5), model.decision_function(X)
    for i, y in enumerate(model.predict(X)):
        x = X[i][0] if isinstance(X[i], tuple) else X[i]
        x = np.reshape(x, (-1, x.shape[-1]))
        y = np.ravel(y)
        scores = table_scores(model, x, graphs[i], None if features is None else features[i])
        close = {"rtol": 0, "atol": 1e-9 * (1 + np.abs(scores).max())}
        np.testing.assert_allclose(scores[tuple(y)], scores.max(), **close)
        labels = [tuple(np.ravel(label)) for label, _ in ranked[i]]
        values = [value for _, value in ranked[i]]
        top = -np.sort(-scores.ravel())[: len(labels)]
        assert len(set(labels)) == len(labels) == min(5, scores.size)
        np.testing.assert_allclose([scores[label] for label in labels], values, **close)
        np.testing.assert_allclose(values, top, **close)
        for v, row in enumerate(np.reshape(margins[i], (len(x), -1))):
            axes = tuple(w for w in range(len(x)) if w != v)
            np.testing.assert_allclose(row, scores.max(axis=axes), **close)


@pytest.mark.parametrize("own", [False, True], ids=["one graph", "own graphs"])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("name", GRAPHS)
def test_predictions_of_shared_tables(name, directed, own):
    n, edges = GRAPHS[name]
    if n == 20 and (directed or own):
        pytest.skip("2^20 labelings, once")
    rng = np.random.default_rng(n)
    X, Y = [rng.normal(size=(n, 2)) for _ in range(3)], [rng.integers(0, 2, n) for _ in range(3)]
    oracle = "auto" if n <= 14 else "exact"
    structure = MRFStructure(None if own else edges, directed=directed, oracle=oracle)
    given = [(x, edges) for x in X] if own else X
    check_public(fitted(structure, given, Y), given, [edges] * 3)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("tables", ["per-edge", "features"])
def test_predictions_of_other_tables(tables, K):
    rng = np.random.default_rng(K)
    for n, edges in (GRAPHS["square"], GRAPHS["clique of 6"], (5, [[0, 1], [1, 2]])):
        X, Y = [rng.normal(size=(n, 2)) for _ in range(3)], [np.arange(n) % K for _ in range(3)]
        features = [rng.normal(size=(len(edges), 2)) for _ in X]
        given = list(zip(X, features)) if tables == "features" else X
        model = fitted(MRFStructure(edges, tables), given, [rng.permutation(y) for y in Y])
        check_public(model, given, [edges] * 3, features)


@pytest.mark.parametrize("neighbours", [4, 8])
@pytest.mark.parametrize("K", [2, 3])
def test_predictions_of_pictures(K, neighbours):
    rng = np.random.default_rng(K)
    shapes = [(2, 2), (2, 3), (3, 3), (1, 4)]
    X = [rng.normal(size=(*shape, 2)) for shape in shapes]
    Y = [np.resize(rng.permutation(K), shape) for shape in shapes]
    model = fitted(GridStructure(neighbours=neighbours, oracle="exact"), X, Y)
    check_public(model, X, [grid_edges(*shape, neighbours) for shape in shapes])


@pytest.mark.parametrize("name", GRAPHS)
def test_instances_of_shared_tables(name):
    n, edges = GRAPHS[name]
    rng = np.random.default_rng(n)
    for directed in (False, True):
        unary, table = rng.normal(size=(n, 2)), rng.normal(size=(2, 2))
        table = table if directed else table + table.T
        best = all_scores([2] * n, edges, unary, [table] * len(edges)).max()
        for oracle in ("auto", "exact"):
            answer = decode(unary, edges, table, directed=directed, oracle=oracle)
            scores = all_scores([2] * n, edges, unary, [table] * len(edges))
            assert answer.value == pytest.approx(scores[tuple(answer.label)], abs=1e-10)
            assert answer.bound >= best - 1e-9
            assert oracle == "auto" or answer.value == answer.bound
        if not directed:
            label, value, bound = MRFStructure.solve_instance(unary, edges, table, oracle="exact")
            assert value == bound == pytest.approx(best, abs=1e-10)
        weights = rng.choice([0.5, 1, 2], len(edges))
        answer = decode(unary, edges, table, directed=directed, oracle="exact", weights=weights)
        tables = [w * table for w in weights]
        best = all_scores([2] * n, edges, unary, tables).max()
        assert answer.value == answer.bound == pytest.approx(best, abs=1e-10)


@pytest.mark.parametrize("seed", range(10))
def test_slack_rescaling_reports_its_primal(seed):
    """It asks for the k best: the primal is that of enumerated labelings."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    edges, alpha = dense(n, 0.9, seed), 10.0 ** rng.integers(-3, 0)
    X, Y = [rng.normal(size=(n, 2)) for _ in range(5)], [rng.integers(0, 2, n) for _ in range(5)]
    Y[0][:2] = 0, 1
    surrogate = Slack(relaxed=False)
    model = StructuredSVM(MRFStructure(edges), surrogate=surrogate, alpha=alpha, tol=0.01)
    last = model.fit(X, Y).history_[-1]
    assert last["certified"]
    total = 0.0
    labels = np.indices((2,) * n)
    for x, y in zip(X, Y):
        scores = table_scores(model, x, edges)
        loss = (labels != y.reshape(n, *[1] * n)).sum(axis=0)
        total += (loss * (1 + scores - scores[tuple(y)])).max() / len(X)
    weights = sum(np.sum(w**2) for name, w in model.coef_.items())
    primal = alpha / 2 * weights + total
    assert last["primal"] == pytest.approx(primal, rel=1e-6)
