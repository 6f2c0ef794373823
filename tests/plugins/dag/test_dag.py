"""Oracles, polytopes and distributions of hierarchies against enumeration and linear programs."""

import networkx as nx
import numpy as np
import pytest
from checks import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.hierarchies import (
    GRAPH,
    TREE,
    all_labels,
    ancestors,
    as_dict,
    dag_setting,
    oracle_of,
    power_of,
    random_edges,
)
from reference.programs import best_vertex

from structsolve.lp import ask_polytopes
from structsolve.plugins.dag import DagSpace, DagStructure, Hierarchy
from structsolve.structure import calls, projection_calls
from structsolve.structure.ask import ask_parts, ask_projection, make_layout
from structsolve.testing import check_structure
from structsolve.testing._case import Room

OPTIONS = [
    ("closed", "free", True),
    ("closed", "free", False),
    ("closed", "on", True),
    ("closed", "on", False),
    ("leaf-union", "free", True),
    ("single-leaf", "free", True),
    ("single-leaf", "free", False),
]


def scores(rng, size, M):
    """Return scores of several kinds, with padding 0."""
    kind = rng.integers(5)
    if kind == 0:
        theta = rng.normal(size=size)
    elif kind == 1:
        theta = rng.integers(-2, 3, size).astype(float)
    elif kind == 2:
        theta = rng.normal(scale=1e5, size=size)
    elif kind == 3:
        theta = -rng.exponential(size=size) * rng.integers(0, 2, size)
    else:
        theta = rng.integers(-3, 4, size) * 0.5
        theta[rng.random(size) < 0.2] = -np.inf
    theta[M:] = 0
    return theta


def values_of(labels, theta):
    """Return scores of labels, with -inf times 0 as 0."""
    M = labels.shape[1]
    finite = np.where(np.isinf(theta[:M]), 0, theta[:M])
    total = labels @ finite
    total[labels[:, np.isinf(theta[:M])].any(axis=1)] = -np.inf
    return total


# -- the oracles against enumeration --------------------------------------------------------------


@pytest.mark.parametrize("n", [40, pytest.param(120, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind, roots, forest", OPTIONS)
def test_best_sets_by_enumeration(kind, roots, forest, n):
    rng = np.random.default_rng(n + len(kind) + 10 * forest)
    for _ in range(n):
        M = int(rng.integers(1, 8))
        edges = random_edges(rng, M, forest)
        space, examples = dag_setting(as_dict(M, edges), labels=kind, roots=roots)
        assert space.hierarchy.forest or not forest
        oracle = oracle_of(space, examples)
        best = power_of(space, examples, "kbest")
        marginals = power_of(space, examples, "max-marginals")
        labels = all_labels(M, edges, kind, roots == "on")
        rows = {tuple(row): j for j, row in enumerate(labels.tolist())}
        single = kind == "single-leaf"
        above = ancestors(M, edges)
        for _ in range(4):
            theta = scores(rng, space.layout.node_size, M)
            values = values_of(labels, theta)
            label, value, bound = calls.argmax(oracle, 0, theta)
            assert oracle.exact and bound == value
            as_set = label if not single else [int(v in above[label[0]]) for v in range(M)]
            assert values[rows[tuple(as_set)]] == pytest.approx(values.max(), rel=1e-12)
            assert value == pytest.approx(values.max(), rel=1e-12)
            check_worths(marginals, theta, labels, values, single)
            check_kbest(best, theta, rows, values, above if single else None)


def check_worths(operator, theta, labels, values, single):
    M = labels.shape[1]
    if values.max() == -np.inf:
        return
    worths = marginals_of(operator, theta, M)
    for v in range(M):
        on = values[labels[:, v] == 1].max(initial=-np.inf)
        if single:
            assert worths[v] == pytest.approx(on, rel=1e-12, abs=1e-9)
            continue
        off = values[labels[:, v] == 0].max(initial=-np.inf)
        expected = on - off
        if np.isfinite(expected):
            assert worths[v] == pytest.approx(expected, rel=1e-9, abs=1e-7)
        else:
            assert worths[v] == expected


def marginals_of(operator, theta, M):
    # Write into memory full of NaN: every entry must be written.
    return calls.max_marginals(operator, 0, theta, M, room=Room(0x55))[0]


def check_kbest(operator, theta, rows, values, above):
    M = len(next(iter(rows)))
    k = min(len(values), 12) + 2
    best, top = calls.kbest(operator, 0, theta, k)
    if above:
        best = [[int(v in above[leaf[0]]) for v in range(M)] for leaf in best]
    seen = [rows[tuple(row)] for row in np.asarray(best).tolist()]
    assert len(set(seen)) == len(seen)
    possible = max(1, int(np.isfinite(values).sum()))
    assert len(seen) == min(k, possible)
    expected = np.sort(values)[::-1][: len(seen)]
    assert np.allclose(top, expected, rtol=1e-9, atol=1e-9)
    assert np.allclose(values[seen], expected, rtol=1e-9, atol=1e-9)


def test_unions_of_paths_in_graphs():
    rng = np.random.default_rng(5)
    inexact = fractional = 0
    for _ in range(25):
        M = int(rng.integers(2, 9))
        edges = random_edges(rng, M, False, 1.0)
        labels = all_labels(M, edges, "leaf-union")
        asked = {"hierarchy": as_dict(M, edges), "labels": "leaf-union"}
        space, examples = dag_setting(**asked)
        training = oracle_of(space, examples)
        predicting = oracle_of(space, examples, training=False)
        relaxation = power_of(space, examples, "relaxation")
        for _ in range(3):
            theta = scores(rng, space.layout.node_size, M)
            values = values_of(labels, theta)
            if space.hierarchy.forest or values.max() == -np.inf:
                continue
            assert predicting.exact and not training.exact
            label, value, bound = calls.argmax(predicting, 0, theta)
            assert bound == value
            assert value == pytest.approx(values.max(), rel=1e-9, abs=1e-6)
            assert (labels == label).all(axis=1).any()
            label, value, bound = calls.argmax(training, 0, theta)
            assert (labels == label).all(axis=1).any()
            assert value == values_of(label[None], theta)[0]
            assert bound >= values.max() - 1e-6 * (1 + abs(values.max()))
            inexact += value < values.max() - 1e-6
            mu, label, value, bound = calls.relax(relaxation, 0, theta)
            assert bound >= value >= values.max() - 1e-6 * (1 + abs(values.max()))
            fractional += label is None
    assert inexact and fractional


def test_a_union_that_only_the_integer_program_finds():
    # Leaves x, y, z add pairs of goods below two parents each: three goods covered by two leaves.
    goods = {"xy": ["x", "y"], "yz": ["y", "z"], "xz": ["x", "z"]}
    top = {"root": ["xy", "yz", "xz"], **goods}
    space, examples = dag_setting(top, labels="leaf-union")
    theta = np.zeros(space.layout.node_size)
    for name, value in {"xy": 4.0, "yz": 4.0, "xz": 4.0, "x": -3.0, "y": -3.0, "z": -3.0}.items():
        theta[space.hierarchy.column[name]] = value
    mu, label, value, bound = calls.relax(power_of(space, examples, "relaxation"), 0, theta)
    assert label is None and value == pytest.approx(7.5) and bound == pytest.approx(7.5)
    assert calls.argmax(oracle_of(space, examples), 0, theta)[2] == pytest.approx(7.5)
    assert calls.argmax(oracle_of(space, examples, training=False), 0, theta)[1] == 6


# -- polytopes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind, roots, forest", OPTIONS)
def test_polytopes_by_linear_programs(kind, roots, forest):
    rng = np.random.default_rng(17)
    for M in (1, 2, 5, 9, 30, 60):
        edges = random_edges(rng, M, forest, 1.5)
        space, examples = dag_setting(as_dict(M, edges), labels=kind, roots=roots)
        polytopes = ask_polytopes(space, examples)
        assert polytopes.exact and polytopes.key(0) == polytopes.key(1)
        polytope = polytopes.build(0)
        oracle = oracle_of(space, examples)
        for _ in range(3):
            theta = rng.normal(size=space.layout.node_size) * rng.integers(0, 3)
            theta[M:] = 0
            _, value, _ = calls.argmax(oracle, 0, theta)
            x, best = best_vertex(polytope, theta)
            assert best == pytest.approx(value, rel=1e-7, abs=1e-7)
            label = polytope.decode(x)
            parts = space_parts(space, examples, label)
            assert parts[:M] @ theta[:M] == pytest.approx(value, rel=1e-7, abs=1e-7)


def space_parts(space, examples, label):
    index, value = calls.encode(ask_parts(space)(make_layout(space, examples)), 0, label)
    return np.bincount(index, weights=value, minlength=space.layout.node_size)


def test_every_label_is_in_the_relaxation_of_unions():
    rng = np.random.default_rng(2)
    for _ in range(40):
        M = int(rng.integers(1, 8))
        edges = random_edges(rng, M, False, 1.0)
        space, examples = dag_setting(as_dict(M, edges), labels="leaf-union")
        polytopes = ask_polytopes(space, examples)
        assert polytopes.exact == space.hierarchy.forest
        polytope = polytopes.build(0)
        labels = all_labels(M, edges, "leaf-union")
        known = {tuple(row) for row in labels.tolist()}
        for row in all_labels(M, np.zeros((0, 2), int)):
            inside = (polytope.A @ row >= polytope.low).all()
            assert inside == (tuple(row.tolist()) in known)


# -- conformance ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hierarchy, options",
    [
        (TREE, {}),
        (nx.DiGraph(GRAPH), {"roots": "on"}),
        (TREE, {"labels": "leaf-union"}),
        (nx.DiGraph(GRAPH), {"labels": "single-leaf"}),
    ],
    ids=["tree", "graph", "unions", "leaves"],
)
def test_conformance(hierarchy, options):
    check_structure(DagStructure(hierarchy, **options), n_cases=1, solvers=("bcfw",))


@pytest.mark.slow
@pytest.mark.parametrize("hierarchy", [TREE, GRAPH], ids=["tree", "graph"])
@pytest.mark.parametrize(
    "options", [{}, {"roots": "on"}, {"labels": "leaf-union"}, {"labels": "single-leaf"}], ids=str
)
def test_conformance_at_length(hierarchy, options):
    hierarchy = nx.DiGraph(hierarchy)
    loss = "leaf" if "labels" in options else "hamming"
    check_structure(DagStructure(hierarchy, **options), loss=loss, random_state=7, n_cases=2)


# -- nearest points -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind, roots, forest", OPTIONS[:4])
def test_nearest_points_by_enumeration(kind, roots, forest):
    """mu is in the hull, and no label is further along theta - mu: then it is the nearest point."""
    rng = np.random.default_rng(23 + 2 * forest)
    partial = 0
    for _ in range(60):
        M = int(rng.integers(1, 9))
        edges = random_edges(rng, M, forest, 1.5)
        space, examples = dag_setting(as_dict(M, edges), labels=kind, roots=roots)
        projection = ask_projection(space, "euclidean")(make_layout(space, examples))
        assert type(projection).__name__ == "NearestSets" and projection.exact
        labels = all_labels(M, edges, kind, roots == "on")
        for _ in range(4):
            theta = scores(rng, space.layout.node_size, M)
            theta[:M] = theta[:M] * rng.choice([0.3, 1.0]) + rng.choice([0.0, 0.5])
            possible = np.isfinite(values_of(labels, theta))
            if not possible.any():
                continue
            mu, value, bound = calls.project(projection, 0, theta, room=Room(0x55))
            assert not mu[M:].any() and mu.min() >= 0 and mu.max() <= 1
            assert all(mu[c] <= mu[p] for p, c in edges.tolist())
            assert not mu[:M][np.isinf(theta[:M])].any()
            finite = np.where(np.isinf(theta[:M]), 0, theta[:M])
            ahead = finite - mu[:M]
            scale = 1 + np.abs(finite).max()
            assert (labels[possible] @ ahead).max() - mu[:M] @ ahead <= 1e-9 * scale
            assert value == bound == pytest.approx(mu[:M] @ (finite - mu[:M] / 2), abs=1e-9 * scale)
            partial += bool(((mu > 0) & (mu < 1)).any())
    assert partial > 40


@pytest.mark.parametrize("M, forest", [(40, True), (400, True), (40, False), (400, False)])
def test_nearest_points_of_large_hierarchies(M, forest):
    """The oracle itself finds no better label along theta - mu; so for a gain of mu."""
    rng = np.random.default_rng(M)
    for _ in range(4):
        edges = random_edges(rng, M, forest, 3.0)
        space, examples = dag_setting(as_dict(M, edges))
        layout = make_layout(space, examples)
        projection = ask_projection(space, "euclidean")(layout)
        oracle = oracle_of(space, examples)
        theta = np.zeros(space.layout.node_size)
        theta[:M] = rng.normal(0.4, 0.5, M)
        mu = calls.project(projection, 0, theta)[0]
        assert calls.argmax(oracle, 0, theta - mu)[1] <= mu @ (theta - mu) + 1e-9
        direction = np.zeros_like(theta)
        direction[:M] = rng.normal(size=M)
        moved = projection_calls.derivative(projection, 0, theta, direction)
        ends = [calls.project(projection, 0, theta + t * direction)[0] for t in (-1e-7, 1e-7)]
        np.testing.assert_allclose(moved, (ends[1] - ends[0]) / 2e-7, atol=1e-5)


# -- distributions --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind, roots, forest", [*OPTIONS[::2], OPTIONS[5]])
def test_distributions_by_enumeration(kind, roots, forest):
    rng = np.random.default_rng(11)
    for _ in range(60):
        M = int(rng.integers(1, 8))
        edges = random_edges(rng, M, forest)
        space, examples = dag_setting(as_dict(M, edges), labels=kind, roots=roots)
        if not space.hierarchy.forest and kind != "single-leaf":
            refused("exponential time", ask_projection, space, "entropy")
            continue
        projection = ask_projection(space, "entropy")(make_layout(space, examples))
        labels = all_labels(M, edges, kind, roots == "on")
        theta = scores(rng, space.layout.node_size, M)
        values = values_of(labels, theta)
        if values.max() == -np.inf:
            refused("no marginals", calls.project, projection, 0, theta)
            continue
        weights = np.exp(values - values.max())
        mu, value, bound = calls.project(projection, 0, theta)
        assert bound == value
        expected = weights @ labels / weights.sum()
        assert np.allclose(mu[:M], expected, atol=1e-9)
        assert value == pytest.approx(values.max() + np.log(weights.sum()), rel=1e-12, abs=1e-9)


# -- properties and size --------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 40), st.booleans())
def test_the_order_of_nodes_does_not_matter(seed, M, forest):
    rng = np.random.default_rng(seed)
    edges = random_edges(rng, M, forest, 1.5)
    theta = rng.integers(-3, 4, M) + rng.normal(scale=1e-3, size=M)
    renamed = rng.permutation(M)
    values, sets = [], []
    for names in (np.arange(M), renamed):
        space, examples = dag_setting(as_dict(M, names[edges]))
        scores = np.zeros(space.layout.node_size)
        scores[names] = theta
        label, value, _ = calls.argmax(oracle_of(space, examples), 0, scores)
        sets.append(label[names])
        values.append(value)
        assert (label[names[edges[:, 1]]] <= label[names[edges[:, 0]]]).all()
    assert values[0] == pytest.approx(values[1])
    assert sets[0].tolist() == sets[1].tolist()


def big(kind, M, rng):
    """Return edges of a large hierarchy, with columns in random order."""
    child = np.arange(1, M)
    if kind == "chain":
        parent = child - 1
    elif kind == "star":
        parent = np.zeros(M - 1, int)
    else:
        parent = (rng.random(M - 1) * child).astype(int)
    edges = np.column_stack([parent, child])
    if kind == "graph":
        more = np.column_stack([(rng.random(M - 1) * child * 0.999).astype(int), child])
        edges = np.unique(np.concatenate([edges, more[: M // 2]]), axis=0)
    return rng.permutation(M)[edges]


@pytest.mark.parametrize("kind", ["chain", "star", "tree", "graph"])
@pytest.mark.parametrize("labels", ["closed", "leaf-union", "single-leaf"])
def test_large_hierarchies(kind, labels):
    if kind == "graph" and labels == "leaf-union":
        return
    rng = np.random.default_rng(0)
    M = 2000 if kind == "graph" and labels == "single-leaf" else 50_000
    h = Hierarchy(big(kind, M, rng))
    structure = DagStructure(h, labels=labels)
    space = DagSpace(structure, h, 1, True)
    examples = space.pack(np.zeros((1, 1)))
    oracle = oracle_of(space, examples)
    assert oracle.work_bytes < 400 * M
    theta = rng.normal(size=space.layout.node_size)
    theta[M:] = 0
    label, value, _ = calls.argmax(oracle, 0, theta)
    if labels != "single-leaf":
        assert (label[h.edges[:, 1]] <= label[h.edges[:, 0]]).all()
        assert value == pytest.approx(theta[:M] @ label)


@pytest.mark.parametrize("names", [list("rabc"), [5, 6, 7, 8], [0, 1, 2, 3], [1, 2, 3, 4]])
def test_rows_of_indicators_one_by_one(names):
    """A list of rows is the matrix; lists of nodes that are called 0 and 1 stay lists of nodes."""
    top, left, right, low = names
    structure = DagStructure({top: [left, right], left: [low]})
    Y = np.array([[1, 1, 0, 1], [1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]])
    X = np.eye(4)
    space, examples = structure.make_space(X, Y)
    for rows in (list(Y), [*Y[:3], [top, left, right, low]], list(Y.astype(bool))):
        assert np.array_equal(space.pack(X, rows).labels, examples.labels)
    rows, called = Y.tolist(), {0, 1} & set(names)
    if not called:
        assert np.array_equal(space.pack(X, rows).labels, examples.labels)
    elif 0 in called:
        assert space.pack(X, [[0, 1]] * 4).labels.tolist() == [1, 1, 0, 0] * 4
        assert space.pack(X, [[0, 1, 1, 0]] * 4).labels.tolist() == [1, 1, 0, 0] * 4
    wrong = [*Y[:3], np.array([1, 1, 9, 0])]
    refused("example 3: found the label .* which is no node", space.pack, X, wrong)
