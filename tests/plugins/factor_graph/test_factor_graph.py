"""Factor graphs against enumeration, and against graphs of pairs and UAI models."""

import itertools

import numpy as np
import pytest
from checks import refused, reloaded

from structsolve import StructuredSVM, batch
from structsolve.lp import ask_oracle
from structsolve.plugins.factor_graph import FactorGraphStructure, graphs
from structsolve.plugins.factor_graph.graphs import find_homes
from structsolve.plugins.mrf import MRFStructure, decode
from structsolve.plugins.mrf.uai import read_uai
from structsolve.solvers import BCFW
from structsolve.structure import calls, projection_calls
from structsolve.structure.ask import make_layout
from structsolve.testing import check_structure

KINDS = ["normal", "ties", "equal", "wide", "forbidden"]


class Case:
    """One factor graph, all its labels, and the parts of each as a row of ``matrix``."""

    def __init__(self, rng, tables, oracle="auto", own=False):
        n = int(rng.integers(1, 6))
        self.states = rng.integers(1, 4, n) if not own else np.full(n, int(rng.integers(1, 4)))
        if tables == "shared":
            self.states[:] = self.states.max()
        count = int(rng.integers(0, 5))
        sizes = np.minimum(rng.integers(1, 5, count), n)
        scopes = [tuple(rng.permutation(n)[:k].tolist()) for k in sizes]
        params = {"factors": None if own else scopes, "tables": tables, "oracle": oracle}
        states = int(self.states[0]) if own else self.states
        structure = FactorGraphStructure(**params, n_states=states)
        x = (np.zeros((n, 1)), scopes) if own else np.zeros((n, 1))
        self.space, self.examples = structure.make_space([x], [np.zeros(n, int)])
        self.layout = make_layout(self.space, self.examples)
        self.labels = np.array([*itertools.product(*map(range, self.states))], np.int32)
        self.scopes, self.n = scopes, n
        self.matrix = np.array([self.indicator(label) for label in self.labels])

    def indicator(self, label):
        """The parts of a label, written out by name."""
        row = np.zeros(self.layout.sizes(0)[0])
        views = self.space.layout.theta_views(row, self.n, 0)
        views["node"][np.arange(self.n), label] = 1
        for f, scope in enumerate(self.scopes):
            shared = self.space.structure.tables == "shared"
            name = f"factors of {len(scope)}" if shared else f"factor {f}"
            views[name][tuple(label[list(scope)])] += 1
        return row

    def theta(self, kind, rng):
        used = self.matrix.any(axis=0)
        theta = {
            "normal": lambda: rng.normal(size=used.size),
            "ties": lambda: rng.integers(-1, 2, used.size).astype(float),
            "equal": lambda: np.ones(used.size),
            "wide": lambda: 100 * rng.normal(size=used.size),
            "forbidden": lambda: rng.normal(size=used.size),
        }[kind]()
        if kind == "forbidden":
            nodes = self.space.layout.theta_views(theta, self.n, 0)["node"]
            for v, k in enumerate(self.states):
                nodes[v, rng.integers(k)] = -np.inf if k > 1 else 0
        return np.where(used, theta, 0)

    def scores(self, theta):
        with np.errstate(invalid="ignore"):
            return np.where(self.matrix > 0, self.matrix * theta, 0).sum(axis=1)


def cases(seed, number=150, **params):
    rng = np.random.default_rng(seed)
    for i in range(number):
        tables = ["shared", "per-factor"][i % 2]
        case = Case(rng, tables, own=i % 4 == 0, **params)
        yield case, case.theta(KINDS[int(rng.integers(len(KINDS)))], rng), rng


@pytest.mark.parametrize("oracle", ["auto", "exact", "trws", "expansion", "lp"])
def test_oracles_and_relaxations_bound_the_best_label(oracle):
    for case, theta, _ in cases(0, oracle=oracle):
        scores = case.scores(theta)
        made = case.space.make_oracle()(case.layout)
        label, value, bound = calls.argmax(made, 0, theta)
        near = 1e-8 * max(1, abs(scores.max()))
        assert bound >= scores.max() - near
        if value > -np.inf:
            k = int(np.flatnonzero((case.labels == label).all(axis=1))[0])
            assert abs(scores[k] - value) <= near
        if made.exact:
            assert abs(value - scores.max()) <= near
        relaxed = case.space.make_power("relaxation")(case.layout)
        mu, whole, value, bound = calls.relax(relaxed, 0, theta)
        assert bound >= scores.max() - near
        program = ask_oracle(case.space, "lp")(case.layout)
        assert calls.argmax(program, 0, theta)[2] >= scores.max() - max(near, 1e-6)
        if whole is not None:
            k = int(np.flatnonzero((case.labels == whole).all(axis=1))[0])
            np.testing.assert_allclose(mu, case.matrix[k], atol=1e-9)


def test_parts_are_those_of_the_definition():
    for case, _, rng in cases(1):
        parts = case.space.make_parts()(case.layout)
        for k in rng.integers(len(case.labels), size=3):
            index, value = calls.encode(parts, 0, case.labels[k])
            dense = np.bincount(index, value, case.matrix.shape[1])
            np.testing.assert_array_equal(dense, case.matrix[k])
            other = int(rng.integers(len(case.labels)))
            index, value = calls.difference(parts, 0, case.labels[k], case.labels[other])
            dense = np.bincount(index, value, case.matrix.shape[1])
            np.testing.assert_array_equal(dense, case.matrix[k] - case.matrix[other])


def test_the_k_best_and_max_marginals():
    for case, theta, rng in cases(2, oracle="exact"):
        scores = case.scores(theta)
        k = int(rng.integers(1, 8))
        best = case.space.make_power("kbest")(case.layout)
        labels, values = calls.kbest(best, 0, theta, k)
        allowed = np.sort(scores[scores > -np.inf])[::-1]
        np.testing.assert_allclose(values, allowed[:k], rtol=1e-9, atol=1e-9)
        assert len({tuple(label) for label in labels}) == len(labels)
        power = case.space.make_power("max-marginals")(case.layout)
        rows = calls.max_marginals(power, 0, theta, len(case.space.classes_))
        for v, s in np.ndindex(case.n, len(case.space.classes_)):
            held = scores[case.labels[:, v] == s]
            top = held.max() if len(held) else -np.inf
            np.testing.assert_allclose(rows[v, s], top, rtol=1e-9, atol=1e-9)


def test_sums_are_those_over_all_labels():
    for case, theta, rng in cases(3):
        scores = case.scores(theta)
        top = scores.max()
        chance = np.exp(scores - top)
        log_partition = top + np.log(chance.sum())
        chance /= chance.sum()
        sums = case.space.make_projection("entropy")(case.layout)
        mu, value, bound = calls.project(sums, 0, theta)
        assert sums.exact and value == bound
        np.testing.assert_allclose(value, log_partition, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(mu, chance @ case.matrix, atol=1e-9)
        state, again = projection_calls.project_state(sums, 0, theta)[:2]
        assert again == value
        np.testing.assert_allclose(projection_calls.pool(sums, 0, state), mu, atol=1e-12)
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = -np.sum(np.where(chance > 0, chance * np.log(chance), 0))
        np.testing.assert_allclose(projection_calls.term(sums, 0, state), entropy, atol=1e-7)
        label = case.labels[int(rng.integers(len(case.labels)))]
        own = projection_calls.state_of(sums, 0, label)
        np.testing.assert_array_equal(projection_calls.pool(sums, 0, own), case.indicator(label))
        assert abs(projection_calls.term(sums, 0, own)) < 1e-12
        if np.isfinite(theta).all():
            direction = np.where(case.matrix.any(axis=0), rng.normal(size=theta.size), 0)
            moved = projection_calls.derivative(sums, 0, theta, direction)
            centred = case.matrix - chance @ case.matrix
            expected = (chance[:, None] * centred).T @ (centred @ direction)
            np.testing.assert_allclose(moved, expected, atol=1e-8 * max(1, abs(expected).max()))


def test_samples_have_the_frequencies_of_the_labels():
    rng = np.random.default_rng(4)
    structure = FactorGraphStructure([(0, 1, 2), (1, 2, 3), (3, 0)], "per-factor", n_states=2)
    X = rng.normal(size=(40, 4, 2))
    Y = rng.integers(2, size=(40, 4))
    model = StructuredSVM(structure, surrogate="crf", alpha=0.01, random_state=0).fit(X, Y)
    drawn = np.array([y[0] for y in model.sample(X[:1], 20000, random_state=1)])
    marginals = model.predict_marginals(X[:1])[0]
    share = np.array([np.bincount(column, minlength=2) for column in drawn.T]) / 20000
    np.testing.assert_allclose(share, marginals, atol=0.015)
    counts = np.unique(drawn, axis=0, return_counts=True)
    logs = model.log_proba([X[0]] * len(counts[0]), counts[0])
    np.testing.assert_allclose(counts[1] / 20000, np.exp(logs), atol=0.015)


def test_factors_over_two_nodes_are_the_edges_of_graphs():
    rng = np.random.default_rng(5)
    edges = [[0, 1], [1, 2], [2, 3], [3, 0]]
    X, Y = rng.normal(size=(30, 4, 3)), rng.integers(3, size=(30, 4))
    for surrogate in ("margin", "crf"):
        settings = {
            "surrogate": surrogate,
            "alpha": 0.1,
            "tol": 1e-6,
            "max_iter": 500,
            "random_state": 0,
        }
        pairs = StructuredSVM(MRFStructure(edges, directed=True), **settings).fit(X, Y)
        factors = StructuredSVM(FactorGraphStructure(edges), **settings).fit(X, Y)
        left, right = (model.history_[-1]["primal"] for model in (factors, pairs))
        assert abs(left - right) <= 2e-5 * right
        if surrogate == "crf":
            np.testing.assert_allclose(factors.log_proba(X, Y), pairs.log_proba(X, Y), atol=0.02)


def test_tables_are_the_factors_of_a_uai_model(tmp_path):
    rng = np.random.default_rng(6)
    for _ in range(60):
        n = int(rng.integers(2, 6))
        states = rng.integers(1, 4, n)
        count = int(rng.integers(1, 5))
        scopes = [tuple(rng.permutation(n)[: rng.integers(1, 5)].tolist()) for _ in range(count)]
        tables = [rng.uniform(0.1, 2, [states[v] for v in scope]) for scope in scopes]
        lines = ["MARKOV", str(n), " ".join(map(str, states)), str(count)]
        lines += [" ".join(map(str, (len(scope), *scope))) for scope in scopes]
        lines += [f"{t.size} " + " ".join(map(repr, t.ravel().tolist())) for t in tables]
        (tmp_path / "model.uai").write_text("\n".join(lines))
        model = read_uai(tmp_path / "model.uai")
        best = decode(model.unary, model.ends, model.pair, oracle="exact", return_marginals=True)
        structure = FactorGraphStructure(scopes, "per-factor", n_states=states, oracle="exact")
        space = batch.score_space(structure)
        theta = np.zeros(space.layout.theta_size(n, 0))
        views = space.layout.theta_views(theta, n, 0)
        for f, table in enumerate(tables):
            views[f"factor {f}"][...] = np.log(table)
        layout = make_layout(space, space.pack_sizes([n]))
        label, value, _ = calls.argmax(space.make_oracle()(layout), 0, theta)
        assert abs(value - best.value - model.constant) < 1e-9
        mu, log_partition, _ = calls.project(space.make_projection("entropy")(layout), 0, theta)
        assert abs(log_partition - best.marginals.log_partition - model.constant) < 1e-8
        nodes = space.layout.theta_views(mu, n, 0)["node"]
        for v, k in enumerate(states):
            np.testing.assert_allclose(nodes[v, :k], best.marginals.unary[v], atol=1e-9)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"factors": [(0, 1, 2), (2, 3), (3,), (2, 1)], "tables": "per-factor"},
        {"factors": [(0, 2, 1), (1, 2, 3)], "tables": "per-factor", "n_states": [2, 3, 1, 2]},
        {"oracle": "trws"},
    ],
    ids=["own", "fixed", "states", "trws"],
)
def test_conformance(params):
    check_structure(FactorGraphStructure(**params), n_cases=2)


def parities(rng, n, wide=4):
    """Rows of bits whose triples have an even number of ones, seen through noise."""
    Y = rng.integers(2, size=(n, 2 * wide + 1))
    for v in range(2, Y.shape[1], 2):
        Y[:, v] = (Y[:, v - 2] + Y[:, v - 1]) % 2
    return (Y + rng.normal(scale=0.7, size=Y.shape))[:, :, None], Y


@pytest.mark.parametrize("surrogate", ["margin", "crf"])
def test_what_pairs_cannot_tell_is_learned(surrogate):
    rng = np.random.default_rng(7)
    X, Y = parities(rng, 120)
    test, truth = parities(rng, 200)
    triples = [(v, v + 1, v + 2) for v in range(0, 8, 2)]
    edges = [(v, w) for t in triples for v, w in itertools.combinations(t, 2)]
    right = {}
    for name, structure in (
        ("triples", FactorGraphStructure(triples)),
        ("pairs", MRFStructure(edges, directed=True)),
    ):
        model = StructuredSVM(structure, surrogate=surrogate, alpha=1e-3, random_state=0).fit(X, Y)
        right[name] = np.mean(np.asarray(model.predict(test)) == truth)
    assert right["triples"] > right["pairs"] + 0.03


def test_a_model_is_saved_and_examples_may_have_their_own_factors(tmp_path):
    rng = np.random.default_rng(8)
    X, Y = parities(rng, 60)
    triples = [(v, v + 1, v + 2) for v in range(0, 8, 2)]
    own = [(x[:n], [t for t in triples if max(t) < n]) for x, n in zip(X, rng.choice([5, 9], 60))]
    labels = [y[: len(x)] for (x, _), y in zip(own, Y)]
    for data, y, structure in (
        (own, labels, FactorGraphStructure()),
        (X, Y, FactorGraphStructure(triples, "per-factor")),
    ):
        model = StructuredSVM(structure, alpha=0.01, solver=BCFW(), random_state=0).fit(data, y)
        again = reloaded(model, tmp_path)
        for left, right in zip(model.predict(data), again.predict(data)):
            np.testing.assert_array_equal(left, right)
        assert model.predict(data[:1])[0].tolist() == model.predict(data)[0].tolist()


def test_wide_graphs_are_decoded_with_a_bound_and_sums_are_named_relaxed():
    rng = np.random.default_rng(9)
    n = 40
    scopes = [tuple(rng.permutation(n)[:3].tolist()) for _ in range(80)]
    space = batch.score_space(FactorGraphStructure(scopes, "per-factor"), 3)
    layout = make_layout(space, space.pack_sizes([n]))
    theta = np.zeros(layout.sizes(0)[0])
    for view in space.layout.theta_views(theta, n, 0).values():
        view[...] = rng.normal(size=view.shape)
    oracle, sums = space.make_oracle()(layout), space.make_projection("entropy")(layout)
    label, value, bound = calls.argmax(oracle, 0, theta)
    assert not oracle.exact and value <= bound
    parts = space.make_parts()(layout)
    for v in range(n):
        for s in range(3):
            other = label.copy()
            other[v] = s
            index, one = calls.encode(parts, 0, other)
            assert theta[index] @ one <= value + 1e-9
    assert not sums.exact
    _, _, log_partition = calls.project(sums, 0, theta)
    assert log_partition >= value


def test_many_graphs_are_made_once_each(monkeypatch):
    made, own = [], graphs.pair_graph
    monkeypatch.setattr(graphs, "pair_graph", lambda *given: made.append(given[1]) or own(*given))
    X = [(np.ones((30, 1)), [(i, j)]) for i in range(30) for j in range(i)] * 2
    StructuredSVM("factor-graph", max_iter=1).fit(X[:2], [np.arange(30) % 2] * 2).predict(X)
    assert len(set(made[-435:])) == 435 and len(made) < 500


def test_homes_cover_their_factors():
    rng = np.random.default_rng(10)
    for _ in range(2000):
        n = int(rng.integers(1, 6))
        count = rng.integers(0, 6)
        scopes = [tuple(rng.permutation(n)[: rng.integers(1, 5)].tolist()) for _ in range(count)]
        homes = find_homes(scopes)
        for scope, home in zip(scopes, homes):
            assert set(scope) <= set(home) and list(home) == sorted(home)
            assert len(home) == len(scope) or len(home) > 2
        large = {home for home in homes if len(home) > 1}
        assert not any(set(a) < set(b) for a in large for b in large)


@pytest.mark.parametrize(
    "params, X, Y, message",
    [
        ({"tables": "each"}, [], [], "tables is 'each', expected one of"),
        ({"tables": "per-factor"}, [], [], "needs the same factors in all examples"),
        ({"n_states": [2, 2]}, [], [], "n_states is a list, which needs the same factors"),
        ({"factors": [(0, 5)]}, np.zeros((1, 2, 1)), [[0, 1]], r"factor 0: found \(0, 5\)"),
        ({"factors": [(0, 0)]}, np.zeros((1, 2, 1)), [[0, 1]], "factor 0: .*different nodes"),
        ({"factors": [()]}, np.zeros((1, 2, 1)), [[0, 1]], r"factor 0: found \(\)"),
        ({"factors": [(0.5, 1)]}, np.zeros((1, 2, 1)), [[0, 1]], r"factor 0: found \(0.5, 1\)"),
        ({"factors": [[(0, 1), 1]]}, np.zeros((1, 2, 1)), [[0, 1]], "factor 0: found"),
        ({"factors": 3}, np.zeros((1, 2, 1)), [[0, 1]], "factors: found 3, expected a list"),
        ({"factors": "ab"}, np.zeros((1, 2, 1)), [[0, 1]], "factors: found 'ab'"),
        ({}, [np.zeros((2, 1))], [[0, 1]], "example 0: found ndarray, expected"),
        ({}, [(np.zeros((2, 1)), [(0, 3)])], [[0, 1]], "example 0, factors, factor 0"),
        ({}, [(np.zeros((2, 1)), 4)], [[0, 1]], "example 0, factors: found 4"),
        ({}, [], [], "X is empty, expected a list"),
        ({}, 3, [], "X is an int, expected a list"),
        ({"factors": [(0, 1)], "n_states": 2}, np.zeros((1, 2, 1)), [[0, 2]], "2"),
        ({"factors": [tuple(range(17))]}, np.zeros((1, 17, 1)), [[0] * 16 + [1]], "131072"),
        ({"oracle": "best"}, [], [], "oracle is 'best'"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(params, X, Y, message):
    refused(message, StructuredSVM(FactorGraphStructure(**params)).fit, X, Y)


def test_predictions_of_other_graphs_are_refused():
    X, Y = np.zeros((2, 3, 1)), [[0, 1, 1], [1, 0, 0]]
    model = StructuredSVM(FactorGraphStructure([(0, 1, 2)])).fit(X, Y)
    refused("example 0: found 2 nodes, expected 3", model.predict, np.zeros((1, 2, 1)))
    own = [(x, [(0, 1, 2)]) for x in X]
    model = StructuredSVM(FactorGraphStructure()).fit(own, Y)
    refused("example 0: found a factor over 2 nodes", model.predict, [(X[0], [(0, 1)])])
    refused("give factors=", batch.score_space, "factor-graph", 2)
    for factors in ("ab", 3, [5], [(0, "a")], [(0, 1), (1, -1)], [tuple(range(64))]):
        refused("factors.*: found", batch.score_space, FactorGraphStructure(factors, n_states=1))
    space = batch.score_space(FactorGraphStructure([(0, 1, 2)]), 2)
    refused("expected 3 nodes", space.pack_sizes, [2])
    refused("has no such pairs", space.mask, space.pack_sizes([3]), forbidden=[(0, 1)])


@pytest.mark.parametrize("kind", [FactorGraphStructure, MRFStructure])
def test_classes_are_those_that_n_states_says(kind):
    X, Y = np.zeros((2, 2, 1)), [[0, 1], [1, 1]]
    structure = kind([(0, 1)], n_states=2)
    model = StructuredSVM(structure, solver="sgd")
    refused(r"classes: found \['a', 'b'\], expected 0 to 1", model.partial_fit, X, Y, ["a", "b"])
    refused(r"classes: found \[0, 1, 2\], expected 0 to 1", model.partial_fit, X, Y, [0, 1, 2])
    assert model.partial_fit(X, Y, [1, 0]).classes_.tolist() == [0, 1]
    refused(r"classes: found \[0, 1, 2\], expected 0 to 1", batch.score_space, structure, 3)
    refused("found .*NoneType.*, expected all strings", batch.score_space, structure, [None, 1])
    assert batch.score_space(structure, 2).classes_.tolist() == [0, 1]
