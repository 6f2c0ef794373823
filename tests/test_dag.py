"""Label sets of hierarchies against enumeration and linear programs; input; training; size."""

import pickle
from time import perf_counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.hierarchies import (
    all_labels,
    ancestors,
    as_dict,
    hierarchical_loss,
    random_edges,
)
from reference.objectives import optimum
from scipy import sparse
from scipy.optimize import linprog
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV

import structsolve
from structsolve import ClassWeights, StructuredSVM, faces, projection_faces
from structsolve.plugins.dag import (
    DagSpace,
    DagStructure,
    Hierarchy,
    structsolve_loss,
    structsolve_oracle,
    structsolve_parts,
    structsolve_polytope,
    structsolve_projection,
)
from structsolve.testing import _calls, check_structure

TREE = {"a": ["b", "c"], "b": ["d", "e"], "f": ["g"]}
GRAPH = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("c", "e"), ("f", "e"), ("f", "g")]

OPTIONS = [
    ("closed", "free", True),
    ("closed", "free", False),
    ("closed", "on", True),
    ("closed", "on", False),
    ("leaf-union", "free", True),
    ("single-leaf", "free", True),
    ("single-leaf", "free", False),
]


def setting(hierarchy, n=1, with_labels=True, **options):
    """Space and examples of a structure, X being of no concern."""
    structure = DagStructure(hierarchy, **options)
    X, Y = structure.sample(0, n=n)
    space = structure.make_space(X, Y)
    return space, space.pack(X, Y if with_labels else None)


def scores(rng, size, M):
    """Scores of several kinds, padding 0."""
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
    """Scores of labels, where -inf times 0 is 0."""
    M = labels.shape[1]
    finite = np.where(np.isinf(theta[:M]), 0, theta[:M])
    total = labels @ finite
    total[labels[:, np.isinf(theta[:M])].any(axis=1)] = -np.inf
    return total


# -- the oracles against enumeration --------------------------------------------------------------


@pytest.mark.parametrize("n", [40, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind, roots, forest", OPTIONS)
def test_best_sets_by_enumeration(kind, roots, forest, n):
    rng = np.random.default_rng(n + len(kind) + 10 * forest)
    for _ in range(n):
        M = int(rng.integers(1, 8))
        edges = random_edges(rng, M, forest)
        space, examples = setting(as_dict(M, edges), labels=kind, roots=roots)
        assert space.hierarchy.forest or not forest
        oracle = structsolve_oracle(space, examples)
        labels = all_labels(M, edges, kind, roots == "on")
        rows = {tuple(row): j for j, row in enumerate(labels.tolist())}
        single = kind == "single-leaf"
        above = ancestors(M, edges)
        for _ in range(4):
            theta = scores(rng, space.layout.node_size, M)
            values = values_of(labels, theta)
            label, value = faces.argmax(oracle, 0, theta, 1 if single else M)
            as_set = label if not single else [int(v in above[label[0]]) for v in range(M)]
            assert values[rows[tuple(as_set)]] == pytest.approx(values.max(), rel=1e-12)
            assert value == pytest.approx(values.max(), rel=1e-12)
            check_worths(oracle, theta, labels, values, single)
            check_kbest(oracle, theta, rows, values, above if single else None)


def check_worths(oracle, theta, labels, values, single):
    M = labels.shape[1]
    if values.max() == -np.inf:
        return
    found = marginals(oracle, theta)
    for v in range(M):
        on = values[labels[:, v] == 1].max(initial=-np.inf)
        if single:
            assert found[v] == pytest.approx(on, rel=1e-12, abs=1e-9)
            continue
        off = values[labels[:, v] == 0].max(initial=-np.inf)
        expected = on - off
        if np.isfinite(expected):
            assert found[v] == pytest.approx(expected, rel=1e-9, abs=1e-7)
        else:
            assert found[v] == expected


def marginals(oracle, theta):
    out = np.full(len(theta), np.nan)
    _calls.max_marginals(oracle, 0, theta, out, np.zeros(oracle.work_bytes + 64, np.int8))
    return out


def check_kbest(oracle, theta, rows, values, above):
    M = len(next(iter(rows)))
    k = min(len(values), 12) + 2
    found, top = faces.kbest(oracle, 0, theta, k, 1 if above else M)
    if above:
        found = [[int(v in above[leaf[0]]) for v in range(M)] for leaf in found]
    seen = [rows[tuple(row)] for row in np.asarray(found).tolist()]
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
        space, examples = setting(**asked)
        training = structsolve_oracle(space, examples)
        predicting = structsolve_oracle(*setting(**asked, with_labels=False))
        for _ in range(3):
            theta = scores(rng, space.layout.node_size, M)
            values = values_of(labels, theta)
            if space.hierarchy.forest or values.max() == -np.inf:
                continue
            assert predicting.exact and not training.exact
            label, value = faces.argmax(predicting, 0, theta, M)
            assert value == pytest.approx(values.max(), rel=1e-9, abs=1e-6)
            assert (labels == label).all(axis=1).any()
            label, value, bound = faces.argmax_bounded(training, 0, theta, M)
            assert (labels == label).all(axis=1).any()
            assert value == values_of(label[None], theta)[0]
            assert bound >= values.max() - 1e-6 * (1 + abs(values.max()))
            inexact += value < values.max() - 1e-6
            mu, label, value = faces.relax(training, 0, theta, M)
            fractional += label is None
    assert inexact and fractional


def test_a_union_that_only_the_integer_program_finds():
    # Leaves x, y, z bring pairs of the goods below two parents each: covering three by two of them.
    goods = {"xy": ["x", "y"], "yz": ["y", "z"], "xz": ["x", "z"]}
    top = {"root": ["xy", "yz", "xz"], **goods}
    space, examples = setting(top, labels="leaf-union")
    theta = np.zeros(space.layout.node_size)
    for name, value in {"xy": 4.0, "yz": 4.0, "xz": 4.0, "x": -3.0, "y": -3.0, "z": -3.0}.items():
        theta[space.hierarchy.column[name]] = value
    relaxed = structsolve_oracle(space, examples)
    mu, label, value = faces.relax(relaxed, 0, theta, 7)
    assert label is None and value == pytest.approx(7.5)
    assert faces.argmax_bounded(relaxed, 0, theta, 7)[2] == pytest.approx(7.5)
    examples.labels = None
    assert faces.argmax(structsolve_oracle(space, examples), 0, theta, 7)[1] == 6


# -- polytopes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind, roots, forest", OPTIONS)
def test_polytopes_by_linear_programs(kind, roots, forest):
    rng = np.random.default_rng(17)
    for M in (1, 2, 5, 9, 30, 60):
        edges = random_edges(rng, M, forest, 1.5)
        space, examples = setting(as_dict(M, edges), labels=kind, roots=roots)
        polytopes = structsolve_polytope(space, examples)
        assert polytopes.exact and polytopes.key(0) == polytopes.key(1)
        polytope = polytopes.build(0)
        oracle = structsolve_oracle(space, examples)
        size = 1 if kind == "single-leaf" else M
        for _ in range(3):
            theta = rng.normal(size=space.layout.node_size) * rng.integers(0, 3)
            theta[M:] = 0
            _, value = faces.argmax(oracle, 0, theta, size)
            x = solve(polytope, theta)
            assert polytope.scores(theta) @ x == pytest.approx(value, rel=1e-7, abs=1e-7)
            label = polytope.decode(x)
            parts = space_parts(space, examples, label)
            assert parts[:M] @ theta[:M] == pytest.approx(value, rel=1e-7, abs=1e-7)


def space_parts(space, examples, label):
    index, value = faces.encode(structsolve_parts(space, examples), 0, label)
    return np.bincount(index, weights=value, minlength=space.layout.node_size)


def solve(polytope, theta):
    finite = np.isfinite(polytope.high)
    A = sparse.vstack([-polytope.A, polytope.A[finite]])
    b = np.concatenate([-polytope.low, polytope.high[finite]])
    bounds = np.column_stack([polytope.lower, polytope.upper])
    empty = A.shape[0] == 0
    found = linprog(
        -polytope.scores(theta), None if empty else A, None if empty else b, bounds=bounds
    )
    assert found.status == 0
    return found.x


def test_every_label_is_in_the_relaxation_of_unions():
    rng = np.random.default_rng(2)
    for _ in range(40):
        M = int(rng.integers(1, 8))
        edges = random_edges(rng, M, False, 1.0)
        space, examples = setting(as_dict(M, edges), labels="leaf-union")
        polytopes = structsolve_polytope(space, examples)
        assert polytopes.exact == space.hierarchy.forest
        polytope = polytopes.build(0)
        labels = all_labels(M, edges, "leaf-union")
        known = {tuple(row) for row in labels.tolist()}
        for row in all_labels(M, np.zeros((0, 2), int)):
            inside = (polytope.A @ row >= polytope.low).all()
            assert inside == (tuple(row.tolist()) in known)


# -- losses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["closed", "leaf-union", "single-leaf"])
@pytest.mark.parametrize("forest", [True, False])
def test_losses_by_their_definitions(kind, forest):
    rng = np.random.default_rng(3)
    for _ in range(8):
        M = int(rng.integers(1, 7))
        edges = random_edges(rng, M, forest)
        space, examples = setting(as_dict(M, edges), n=3, labels=kind)
        labels, above = all_labels(M, edges, kind), ancestors(M, edges)
        leaves = space.hierarchy.leaves
        weights = rng.integers(0, 4, M)
        given = ClassWeights(dict(enumerate(weights.tolist())))
        single = kind == "single-leaf"
        for i in range(3):
            truth = examples.label(i)
            if single:
                truth = np.array([v in above[truth[0]] for v in range(M)], dtype=np.int32)
            for label in labels[rng.permutation(len(labels))[:10]]:
                wrong = truth != label
                coded = label
                if single:
                    coded = leaves[label[leaves] == 1].astype(np.int32)
                for loss, expected in (
                    ("hamming", wrong.sum()),
                    ("normalized-hamming", wrong.mean()),
                    ("leaf", wrong[leaves].sum()),
                    ("zero-one", float(wrong.any())),
                    (given, weights[wrong].sum()),
                    ("hierarchical", hierarchical_loss(M, edges, truth, label)),
                ):
                    native = structsolve_loss(space, examples, loss)
                    found = faces.loss_value(native, i, coded)
                    assert found == pytest.approx(expected, abs=1e-12), loss


def test_hierarchical_loss_on_trees_is_that_of_the_paper():
    # One root, which counts as any node: c_s = 1.
    edges = np.array([[0, 1], [0, 2], [1, 3], [1, 4]])
    labels = all_labels(5, edges)
    weight = [1, 0.5, 0.5, 0.25, 0.25]
    for t in labels:
        for y in labels:
            paper = y[0] + t[0] - 2 * t[0] * y[0]
            for j, k in edges:
                paper += weight[k] * (t[k] * y[j] + (t[j] - t[j] * t[k] - t[k]) * y[k])
            assert hierarchical_loss(5, edges, t, y) == pytest.approx(paper)


def test_hierarchical_loss_trains_on_trees_and_scores_on_graphs():
    X, Y = DagStructure(TREE).sample(1, n=20)
    model = StructuredSVM(DagStructure(TREE), loss="hierarchical", alpha=0.1, tol=0.01).fit(X, Y)
    assert model.stop_reason_ == "converged"
    structure = DagStructure(nx.DiGraph(GRAPH))
    X, Y = structure.sample(1, n=20)
    with pytest.raises(ValueError, match="HierarchicalLoss does not decompose"):
        StructuredSVM(structure, loss="hierarchical").fit(X, Y)
    model = StructuredSVM(structure, tol=0.1).fit(X, Y)
    model.loss = "hierarchical"
    assert -1 <= model.score(X, Y) <= 1


@pytest.mark.parametrize(
    "weights, message",
    [
        (ClassWeights({"x": 1}), "'x' is no node"),
        (ClassWeights({"a": -1}), "weights of at least 0"),
        (ClassWeights([1]), "expected a dict"),
    ],
)
def test_weights_are_checked(weights, message):
    with pytest.raises(ValueError, match=message):
        structsolve_loss(*setting(TREE), weights)


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
    "options",
    [{}, {"roots": "on"}, {"labels": "leaf-union"}, {"labels": "single-leaf"}],
    ids=str,
)
def test_conformance_at_length(hierarchy, options):
    hierarchy = nx.DiGraph(hierarchy)
    loss = "leaf" if "labels" in options else "hamming"
    check_structure(DagStructure(hierarchy, **options), loss=loss, random_state=7, n_cases=3)


# -- distributions --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind, roots, forest", [*OPTIONS[::2], OPTIONS[5]])
def test_distributions_by_enumeration(kind, roots, forest):
    rng = np.random.default_rng(11)
    for _ in range(150):
        M = int(rng.integers(1, 8))
        edges = random_edges(rng, M, forest)
        space, examples = setting(as_dict(M, edges), labels=kind, roots=roots)
        if not space.hierarchy.forest and kind != "single-leaf":
            assert structsolve_projection(space, examples, "entropy") is None
            continue
        projection = structsolve_projection(space, examples, "entropy")
        labels = all_labels(M, edges, kind, roots == "on")
        theta = scores(rng, space.layout.node_size, M)
        values = values_of(labels, theta)
        if values.max() == -np.inf:
            with pytest.raises(ValueError, match="no marginals"):
                projection_faces.project(projection, 0, theta)
            continue
        weights = np.exp(values - values.max())
        mu, value = projection_faces.project(projection, 0, theta)[:2]
        expected = weights @ labels / weights.sum()
        assert np.allclose(mu[:M], expected, atol=1e-9)
        assert value == pytest.approx(values.max() + np.log(weights.sum()), rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("kind", ["closed", "leaf-union", "single-leaf"])
def test_crf_and_max_min_train_to_a_certificate(kind):
    rng = np.random.default_rng(0)
    X, Y = DagStructure(TREE, labels=kind).sample(1, n=30)
    X = X + rng.normal(size=X.shape)
    structure = DagStructure(TREE, labels=kind)
    for surrogate in ("crf", "sparsemap"):
        model = StructuredSVM(structure, surrogate=surrogate, alpha=0.1, tol=1e-3).fit(X, Y)
        assert model.stop_reason_ == "converged", surrogate
    crf = StructuredSVM(structure, surrogate="crf", alpha=0.1, tol=1e-3).fit(X, Y)
    chances = crf.predict_proba(X)
    assert chances.shape == (30, 4 if kind == "single-leaf" else 7)
    drawn = np.array(crf.sample(X, 300, random_state=0))
    if kind == "single-leaf":
        assert np.allclose(chances.sum(axis=1), 1)
        drawn = (drawn[..., None] == crf.classes_).astype(int)
    assert np.abs(drawn.mean(axis=0) - chances).max() < 0.15


# -- input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        nx.DiGraph(TREE),
        {"a": ["b", "c"], "b": ["d", "e"], "c": [], "f": ["g"]},
        np.array([["a", "b"], ["a", "c"], ["b", "d"], ["b", "e"], ["f", "g"]]),
        [("a", "b"), ("a", "c"), ("b", "d"), ("b", "e"), ("f", "g")],
    ],
    ids=["graph", "mapping", "array", "list"],
)
def test_forms_of_hierarchies(given):
    h = Hierarchy(given)
    assert set(h.nodes.tolist()) == set("abcdefg") and h.forest
    named = {tuple(pair) for pair in h.nodes[h.edges].tolist()}
    assert named == {("a", "b"), ("a", "c"), ("b", "d"), ("b", "e"), ("f", "g")}
    rank = h.rank
    assert (rank[h.edges[:, 0]] < rank[h.edges[:, 1]]).all()
    assert h.nodes[h.roots].tolist() == ["a", "f"]
    assert sorted(h.nodes[h.leaves].tolist()) == ["c", "d", "e", "g"]
    if not isinstance(given, (nx.DiGraph, dict)):
        assert h.nodes.tolist() == list("abcdefg")
    else:
        assert h.nodes.tolist() == list(dict.fromkeys([*given, *"abcdefg"]))


@pytest.mark.parametrize(
    "given, message",
    [
        (None, "hierarchy is None, expected a networkx.DiGraph"),
        (nx.Graph([(0, 1)]), "hierarchy is a Graph, expected"),
        (nx.MultiDiGraph([(0, 1)]), "MultiDiGraph, expected"),
        ("abc", "hierarchy is a str"),
        (nx.DiGraph(), "found no nodes"),
        ({}, "found no nodes"),
        ([], "found no nodes"),
        (np.zeros((2, 3), int), r"shape \(2, 3\)"),
        (np.zeros((2, 2)), "dtype float64"),
        ([[0, 1], [2]], "not an array"),
        (nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a")]), "found the cycle '.' -> '.' -> '.'"),
        ({0: [1], 1: [2], 2: [1]}, "found the cycle (1 -> 2 -> 1|2 -> 1 -> 2);"),
        ({0: [0]}, "found the cycle 0 -> 0;"),
        ({0: [1, 1]}, "the edge from 0 to 1 twice"),
        ([[0, 1], [0, 1]], "the edge from 0 to 1 twice"),
        ({0: "ab"}, "children of 0 are 'ab'"),
        ({"a": [0]}, "the node 0 of type int, expected strings"),
        ({0: ["a"]}, "the node 'a' of type str, expected all nodes"),
        ({0: [(1, 2)]}, r"the node \(1, 2\) of type tuple"),
        ({0: [True]}, "True of type bool"),
        ({0: [2**70]}, "no 64-bit integer"),
    ],
)
def test_hierarchies_that_are_none(given, message):
    with pytest.raises(ValueError, match=message):
        Hierarchy(given)


def test_forms_of_labels():
    pandas = pytest.importorskip("pandas")
    h = Hierarchy(TREE)
    X, Y = DagStructure(TREE).sample(3, n=12)
    model = StructuredSVM(DagStructure(TREE), tol=0.1).fit(X, Y)
    assert h.nodes.tolist() == model.classes_.tolist() == ["a", "b", "f", "c", "d", "e", "g"]
    expected = model.predict(X).tolist()
    lists = [[name for name, on in zip(h.nodes.tolist(), row) if on] for row in Y]
    frame = pandas.DataFrame(Y, columns=h.nodes)
    for form in (Y.astype(bool), Y.astype(float), sparse.csr_matrix(Y), frame, lists):
        assert StructuredSVM(DagStructure(TREE), tol=0.1).fit(X, form).predict(X).tolist() == expected
    assert model.score(X, lists) == model.score(X, Y)
    deepest = [[n for n in row if not any(c in row for c in TREE.get(n, []))] for row in lists]
    closing = StructuredSVM(DagStructure(TREE, close=True), tol=0.1).fit(X, deepest)
    assert closing.predict(sparse.csr_matrix(X)).tolist() == expected
    named = np.empty(12, dtype=object)
    named[:] = lists
    assert StructuredSVM(DagStructure(TREE), tol=0.1).fit(X, named).predict(X).tolist() == expected


def test_forms_of_single_leaves():
    structure = DagStructure(nx.DiGraph(GRAPH), labels="single-leaf")
    X, y = structure.sample(3, n=20)
    model = StructuredSVM(structure, loss="zero-one", alpha=0.1, tol=0.01).fit(X, y)
    assert is_classifier(model)
    assert model.classes_.tolist() == ["d", "e", "g"]
    expected = model.predict(X).tolist()
    h = model.space_.hierarchy
    above = nx.DiGraph(GRAPH)
    lists = [[leaf, *nx.ancestors(above, leaf)] for leaf in y]
    matrix = np.array([[node in names for node in h.nodes.tolist()] for names in lists])
    closed = clone(structure).set_params(close=True)
    for given, form in ((structure, lists), (structure, matrix), (closed, [[leaf] for leaf in y])):
        again = StructuredSVM(given, loss="zero-one", alpha=0.1, tol=0.01).fit(X, form)
        assert again.predict(X).tolist() == expected
    assert model.score(X, y) == pytest.approx(np.mean(model.predict(X) == y))
    found = model.decision_function(X)
    assert model.classes_[found.argmax(axis=1)].tolist() == expected


@pytest.mark.parametrize(
    "options, Y, message",
    [
        ({}, [["b"], ["a"]], "example 0: found the label 'b' without its parent 'a'.*close=True"),
        ({}, [["a"], ["x"]], "example 1: found the label 'x', which is no node"),
        ({}, [["a"], [["b"]]], "no node"),
        ({}, [["a"], "a"], "example 1: y holds 'a', expected the list"),
        ({}, [["a"]], "inconsistent numbers of samples"),
        ({}, np.zeros((2, 3)), r"found shape \(2, 3\), expected \(2, 7\)"),
        ({}, np.zeros((3, 7)), "inconsistent numbers of samples"),
        ({}, np.full((2, 7), 2), "example 0, label 'a': y holds 2"),
        ({}, np.full((2, 7), np.nan), "example 0, label 'a': y holds nan"),
        ({}, sparse.csr_matrix(([5], ([1], [1])), (2, 7)), "example 1, label 'b': y holds 5"),
        ({}, np.full((2, 7), "a"), "found dtype <U1"),
        ({}, None, "y is None"),
        ({}, "ab", "y is 'ab'"),
        ({"roots": "on"}, [["a", "f"], ["a"]], "example 1: found labels without the root 'f'"),
        ({"labels": "leaf-union"}, [["a", "c"], ["a"]], "example 1: found the label 'a' without any"),
        ({"labels": "leaf-union"}, [["a", "c"], []], "example 1: found no labels"),
        ({"labels": "single-leaf"}, ["c", "b"], "example 1: found the label 'b', which has child"),
        ({"labels": "single-leaf"}, ["c", "x"], "example 1: found the label 'x', which is no"),
        ({"labels": "single-leaf"}, ["c"], "inconsistent numbers"),
        ({"labels": "single-leaf"}, None, "y is None"),
        (
            {"labels": "single-leaf", "close": True},
            [["c"], ["c", "g"]],
            "example 1: found the leaves .'c', 'g'., expected one",
        ),
        ({"labels": "open"}, [["a"], []], "labels is 'open'"),
        ({"roots": "off"}, [["a"], []], "roots is 'off'"),
        ({"roots": "on", "labels": "leaf-union"}, [["a"], []], "roots is 'on', but labels is"),
        ({"close": "yes"}, [["a"], []], "close is 'yes'"),
    ],
)
def test_labels_that_are_none(options, Y, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(DagStructure(TREE, **options)).fit(np.zeros((2, 1)), Y)


def test_data_frames_must_have_the_nodes_as_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.zeros((2, 7), int), columns=list("abcdefg"))
    with pytest.raises(ValueError, match="expected the nodes of the hierarchy in their order"):
        StructuredSVM(DagStructure(TREE)).fit(np.zeros((2, 1)), frame)


def test_native_calls_are_checked():
    space, examples = setting(nx.DiGraph(GRAPH), labels="single-leaf")
    oracle = structsolve_oracle(space, examples)
    with pytest.raises(ValueError, match="example 7 of 1"):
        faces.argmax(oracle, 7, np.zeros(8), 1)
    # An inner node is no label, but does no harm either.
    loss = structsolve_loss(space, examples, "hamming")
    inner = np.array([space.hierarchy.column["c"]], dtype=np.int32)
    assert faces.loss_value(loss, 0, inner) >= 0
    scores = np.full(8, np.nan)
    faces.argmax(structsolve_oracle(*setting(nx.DiGraph(GRAPH))), 0, scores, 7)


# -- models ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["closed", "leaf-union", "single-leaf"])
@pytest.mark.parametrize("hierarchy", [TREE, nx.DiGraph(GRAPH), np.array(GRAPH)], ids=type)
def test_save_load_clone(tmp_path, kind, hierarchy):
    structure = DagStructure(hierarchy, labels=kind)
    X, Y = structure.sample(2, n=12)
    model = StructuredSVM(structure, tol=0.1, max_iter=5).fit(X, Y)
    model.save(tmp_path / "m.structsolve")
    loaded = structsolve.load(tmp_path / "m.structsolve")
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    assert pickle.loads(pickle.dumps(model)).predict(X).tolist() == model.predict(X).tolist()
    assert clone(loaded).fit(X, Y).predict(X).tolist() == clone(model).fit(X, Y).predict(X).tolist()


def test_grid_search_and_threads():
    structure = DagStructure(nx.DiGraph(GRAPH))
    X, Y = structure.sample(2, n=24)
    search = GridSearchCV(
        StructuredSVM(structure, tol=0.1), {"structure__roots": ["free"], "alpha": [0.1, 1]}, cv=2
    ).fit(X, Y)
    one = search.predict(X).tolist()
    search.best_estimator_.n_jobs = 3
    assert search.predict(X).tolist() == one


def test_predictions_and_what_labels_add():
    structure = DagStructure(nx.DiGraph(GRAPH))
    X, Y = structure.sample(4, n=30)
    model = StructuredSVM(structure, alpha=0.01, tol=0.01).fit(X, Y)
    edges = model.space_.hierarchy.edges
    sets = all_labels(7, edges)
    values = (X @ model.coef_["node"] + model.coef_["intercept"]) @ sets.T
    assert model.predict(X).tolist() == sets[values.argmax(axis=1)].tolist()
    found = model.decision_function(X)
    on = np.stack([values[:, sets[:, v] == 1].max(axis=1) for v in range(7)], axis=1)
    off = np.stack([values[:, sets[:, v] == 0].max(axis=1) for v in range(7)], axis=1)
    assert np.allclose(found, on - off)
    best = model.predict_kbest(X, 3)
    assert np.allclose([[v for _, v in row] for row in best], -np.sort(-values, axis=1)[:, :3])
    some = model.predict(X, allowed=[["a", "b"]] * 30)
    assert not some[:, 2:].any() or model.classes_[:2].tolist() != ["a", "b"]
    with pytest.raises(ValueError, match="allowed has 1 entries"):
        model.predict(X, allowed=[["a"]])
    with pytest.raises(ValueError, match="a hierarchy has none"):
        model.predict(X, forbidden=[("a", "b")])


@pytest.mark.parametrize("kind", ["closed", "single-leaf"])
@pytest.mark.parametrize("loss", ["hamming", "leaf"])
def test_training_reaches_the_optimum(kind, loss):
    structure = DagStructure(GRAPH, labels=kind)
    X, Y = structure.sample(5, n=10)
    model = StructuredSVM(structure, loss=loss, alpha=0.1, tol=1e-6, max_iter=500).fit(X, Y)
    space = model.space_
    edges, leaves = space.hierarchy.edges, space.hierarchy.leaves
    sets = all_labels(7, edges, kind)
    problem = []
    for x, y in zip(X, Y):
        if kind == "single-leaf":
            y = sets[sets[:, space.hierarchy.column[y]] == 1][0]
        wrong = sets != y
        cost = wrong.sum(axis=1) if loss == "hamming" else wrong[:, leaves].sum(axis=1)
        rows = [np.outer(np.append(x, 1), y - z).ravel() for z in sets]
        problem.append((np.array(rows, dtype=float), cost.astype(float)))
    best = optimum(problem, 0.1)
    assert model.history_[-1]["primal"] == pytest.approx(best.value, rel=1e-5)


def test_unions_of_graphs_train_on_the_relaxation():
    structure = DagStructure(GRAPH, labels="leaf-union")
    X, Y = structure.sample(5, n=8)
    model = StructuredSVM(structure, alpha=0.1, tol=0.01, max_iter=60).fit(X, Y)
    assert model.stop_reason_ == "converged"
    labels = {tuple(row) for row in all_labels(7, model.space_.hierarchy.edges, "leaf-union")}
    assert {tuple(row) for row in model.predict(X)} <= labels


# -- properties and size --------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 40), st.booleans())
def test_the_order_of_nodes_does_not_matter(seed, M, forest):
    rng = np.random.default_rng(seed)
    edges = random_edges(rng, M, forest, 1.5)
    theta = rng.integers(-3, 4, M) + rng.normal(scale=1e-3, size=M)
    renamed = rng.permutation(M)
    values, sets = [], []
    for names in (np.arange(M), renamed):
        space, examples = setting(as_dict(M, names[edges]))
        scores = np.zeros(space.layout.node_size)
        scores[names] = theta
        label, value = faces.argmax(structsolve_oracle(space, examples), 0, scores, M)
        sets.append(label[names])
        values.append(value)
        assert (label[names[edges[:, 1]]] <= label[names[edges[:, 0]]]).all()
    assert values[0] == pytest.approx(values[1])
    assert sets[0].tolist() == sets[1].tolist()


def big(kind, M, rng):
    """Edges of a large hierarchy, its columns in a random order."""
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
    oracle = structsolve_oracle(space, examples)
    assert oracle.work_bytes < 400 * M
    theta = rng.normal(size=space.layout.node_size)
    theta[M:] = 0
    begun = perf_counter()
    label, value = faces.argmax(oracle, 0, theta, 1 if labels == "single-leaf" else M)
    assert perf_counter() - begun < 1
    if labels != "single-leaf":
        assert (label[h.edges[:, 1]] <= label[h.edges[:, 0]]).all()
        assert value == pytest.approx(theta[:M] @ label)
