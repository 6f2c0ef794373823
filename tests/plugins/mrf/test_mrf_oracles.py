"""Decoders of labelings of graphs against enumeration, linear programs against each other."""

import numpy as np
import pytest
from checks import refused
from enumeration import NONE
from graph_cases import KINDS, Graph, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.graphs import eliminate
from scipy import sparse
from scipy.optimize import linprog

from structsolve import StructuredSVM
from structsolve.lp import Answer, Backend, Highs, Program, ask_oracle
from structsolve.lp.polytope import bound_of
from structsolve.plugins.mrf import MRFStructure, decode, decoders, grid_edges
from structsolve.plugins.mrf.relaxation.programs import LocalPolytope
from structsolve.plugins.mrf.tables._model import GraphModel
from structsolve.structure import calls
from structsolve.structure.ask import ask_power, make_layout
from structsolve.surrogates import Margin
from structsolve.surrogates.calls import cut
from structsolve.surrogates.task import Task


@pytest.mark.parametrize("states", [(2,), (1, 2), (2, 3), (1, 2, 3, 4)], ids=str)
@pytest.mark.parametrize("forest", [True, False])
def test_exact_decoders_and_max_marginals(states, forest):
    rng = np.random.default_rng(len(states) + 10 * forest)
    for _ in range(80):
        graph = Graph(*random_graph(rng, 5, states, forest), "exact")
        assert graph.oracle.exact
        for kind in KINDS:
            graph.check_best(graph.theta(kind, rng))


@pytest.mark.parametrize("n", [9, 10, 11, 13])
def test_tables_of_many_two_state_nodes(n):
    rng = np.random.default_rng(n)
    edges = np.column_stack(np.triu_indices(n, 1))
    graph = Graph([2] * n, edges[rng.random(len(edges)) < 0.8], "exact")
    for kind in KINDS:
        graph.check_best(graph.theta(kind, rng))
        for k in (1, 7, 100, 600):
            graph.check_kbest(graph.theta(kind, rng), k)


@pytest.mark.parametrize("states", [(2,), (1, 2), (2, 3), (1, 2, 3, 4)], ids=str)
@pytest.mark.parametrize("forest", [True, False])
def test_kbest(states, forest):
    rng = np.random.default_rng(len(states) + 10 * forest)
    for _ in range(60):
        graph = Graph(*random_graph(rng, 5, states, forest), "exact")
        for kind in KINDS:
            theta = graph.theta(kind, rng)
            n = len(graph.labels)
            labels, values = graph.check_kbest(theta, int(rng.integers(1, n + 3)))
            fewer, first = calls.kbest(graph.kbest, 0, theta, max(len(labels) // 2, 1))
            assert (fewer == labels[: len(fewer)]).all() and (first == values[: len(first)]).all()


def test_kbest_of_many_graphs_is_that_of_each():
    rng = np.random.default_rng(5)
    X, Y = [], []
    for _ in range(12):
        states, edges = random_graph(rng, 5, (3,), forest=True)
        X.append((rng.normal(size=(len(states), 2)), edges))
        Y.append(rng.integers(0, 3, len(states)))
    Y[0][:1], Y[1][:1], Y[2][:1] = 0, 1, 2
    model = StructuredSVM(MRFStructure(), alpha=0.1, max_iter=5, tol=0.1).fit(X, Y)
    together = model.predict_kbest(X, 4)
    for x, several in zip(X, together):
        (alone,) = model.predict_kbest([x], 4)
        assert [label.tolist() for label, _ in several] == [y.tolist() for y, _ in alone]
        assert [value for _, value in several] == [value for _, value in alone]


@pytest.mark.parametrize("oracle", ["trws", "lp"])
def test_margins_count_with_what_an_oracle_may_have_missed(oracle):
    rng, missed = np.random.default_rng(8), 0
    for _ in range(15):
        edges = np.column_stack(np.triu_indices(7, 1))
        graph = Graph([3] * 7, edges[rng.random(len(edges)) < 0.7], oracle)
        margin = Margin(relaxed=False).bind(Task(graph.space, graph.examples))
        theta = 3 * graph.theta("normal", rng)
        truth = graph.labels[rng.integers(len(graph.labels))].astype(np.int32)
        answer = cut(margin, 0, theta, truth)
        scores = graph.scores(theta)
        best = (scores + (graph.labels != truth).sum(axis=1)).max() - scores[graph.rows(truth)]
        assert answer.bound >= best - 1e-9
        missed += answer.b - theta[answer.index] @ answer.value < best - 1e-9
    assert missed


@pytest.mark.parametrize("shape", ["path", "star"])
def test_max_marginals_where_a_node_of_a_forest_is_forbidden(shape):
    n = 2000
    parents = np.arange(n - 1) if shape == "path" else np.zeros(n - 1, int)
    structure = MRFStructure(
        edges=np.column_stack([parents, np.arange(1, n)]), n_states=[2] * n, oracle="exact"
    )
    X, Y = [np.zeros((n, 1))], [np.zeros(n, int)]
    space, examples = structure.make_space(X, Y)
    best = ask_power(space, "max-marginals")(make_layout(space, examples))
    theta = np.zeros(space.layout.theta_size(n, n - 1))
    node = space.layout.theta_views(theta, n, n - 1)["node"]
    node[:, 1] = NONE
    marginals = calls.max_marginals(best, 0, theta, 2)
    assert (marginals[:, 0] == 0).all() and (marginals[:, 1] == NONE).all()
    node[-1] = NONE
    assert (calls.max_marginals(best, 0, theta, 2) == NONE).all()


def test_kbest_of_long_paths():
    rng = np.random.default_rng(0)
    n = 12
    path = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    graph = Graph([2] * n, path[rng.permutation(n - 1)], "exact")
    for kind in KINDS:
        graph.check_kbest(graph.theta(kind, rng), 200)


def test_kbest_is_for_narrow_graphs_and_few_labelings():
    """3^14 labelings of paths and cycles; a complete graph of 2^24 is refused with the reason."""
    x, y = np.zeros((14, 1)), np.arange(14) % 3
    path = np.column_stack([np.arange(13), np.arange(1, 14)])
    model = StructuredSVM(MRFStructure(edges=path), max_iter=1, tol=2).fit([x], [y])
    best = model.predict_kbest([x], 3)[0]
    assert best[0][0].tolist() == model.predict([x])[0].tolist() and len(best) == 3
    cycle = MRFStructure(edges=[*path, [13, 0]], oracle="exact")
    model = StructuredSVM(cycle, max_iter=1, tol=2).fit([x], [y])
    best = model.predict_kbest([x], 3)[0]
    assert best[0][0].tolist() == model.predict([x])[0].tolist() and len(best) == 3
    wide = MRFStructure(edges=np.transpose(np.triu_indices(24, 1)), oracle="exact", n_states=2)
    model = StructuredSVM(wide, max_iter=1, tol=2)
    model.fit([np.ones((24, 1))], [np.ones(24, int)])
    refused("no k-best power: .* narrow ones", model.predict_kbest, [np.ones((24, 1))], 3)
    refused("does not give: .* exact oracle", model.decision_function, [np.ones((24, 1))])


def test_narrow_graphs_are_eliminated():
    """Elimination, at once or after a short search, where the search would be slow."""
    rng = np.random.default_rng(5)
    edges = grid_edges(10, 10)
    unary, pair = np.zeros((100, 2)), rng.normal(size=(len(edges), 2, 2))
    best = decode(unary, edges, pair, oracle="exact")
    assert best.value == best.bound
    model = GraphModel([2] * 100, edges, unary.ravel(), pair.ravel())
    assert best.value == pytest.approx(eliminate(model)[1], rel=1e-13)
    # Narrow enough for the default to be exact, too: 3^60 labelings.
    edges = grid_edges(3, 20)
    unary, pair = rng.normal(size=(60, 3)), 3 * rng.normal(size=(len(edges), 3, 3))
    best = decode(unary, edges, pair)
    model = GraphModel([3] * 60, edges, unary.ravel(), pair.ravel())
    assert best.value == best.bound == pytest.approx(eliminate(model)[1], rel=1e-13)
    none = decode(unary, edges, np.full_like(pair, -np.inf))
    assert none.value == none.bound == -np.inf and not none.label.any()


@pytest.mark.parametrize("oracle", ["roof-duality", "trws", "expansion", "lp"])
def test_bounds(oracle):
    rng = np.random.default_rng(1)
    states = (1, 2) if oracle == "roof-duality" else (1, 2, 3)
    tight = total = 0
    for _ in range(60):
        graph = Graph(*random_graph(rng, 5, states), oracle)
        assert not graph.oracle.exact
        for kind in KINDS:
            theta = graph.theta(kind, rng)
            scores = graph.scores(theta)
            scale = 1 + np.abs(theta[np.isfinite(theta)]).sum()
            value, bound = graph.answer(theta)
            assert bound >= scores.max() - 1e-12 * scale
            assert bound >= value
            if np.isfinite(scores.max()):
                tight += bound - value <= 1e-7 * scale
                total += 1
    assert tight > 0.75 * total


@pytest.mark.parametrize("oracle", ["auto", "lp", "cvxpy:CLARABEL"])
def test_relaxation_is_the_local_polytope(oracle):
    rng = np.random.default_rng(2)
    slow = oracle.startswith("cvxpy")
    fractional = 0
    for k in range(10 if slow else 60):
        states = (1, 2) if k % 2 else (1, 2, 3)
        graph = Graph(*random_graph(rng, 4, states), oracle)
        relaxation = graph.power("relaxation")
        for kind in ["normal", "ties", "forbidden parts"]:
            theta = graph.theta(kind, rng)
            graph.views(theta)["node"][...] *= 0.1  # edges decide: the relaxation is loose
            expected = graph.local_polytope(theta)
            mu, label, value, bound = calls.relax(relaxation, 0, theta)
            assert bound >= value
            if expected == NONE:
                assert value == NONE
                continue
            tolerance = 1e-5 if slow else 1e-7
            assert abs(value - expected) < tolerance * (1 + abs(expected))
            assert bound > expected - tolerance * (1 + abs(expected))
            assert (mu[graph.unused] == 0).all()
            used = mu != 0
            assert value == pytest.approx(mu[used] @ theta[used], abs=1e-9)
            views = graph.views(mu)
            assert np.allclose(views["node"].sum(axis=1), 1, atol=1e-6)
            for e, (u, v) in enumerate(graph.edges):
                assert np.allclose(views["pair"][e].sum(axis=1), views["node"][u], atol=1e-6)
                assert np.allclose(views["pair"][e].sum(axis=0), views["node"][v], atol=1e-6)
            fractional += label is None
    assert fractional


@pytest.mark.parametrize("twice", [0, 4])
def test_two_states_three_ways(twice):
    """The maximum flow, HiGHS and cvxpy on frustrated graphs, where halves appear.

    Edges that are given twice have marginals of their own in the relaxation.
    """
    rng = np.random.default_rng(3)
    edges = np.column_stack(np.triu_indices(6, 1))
    edges = np.concatenate([edges, edges[:twice]])
    graphs = [Graph([2] * 6, edges, o) for o in ("roof-duality", "lp", "cvxpy:CLARABEL")]
    halves = 0
    for _ in range(20):
        theta = graphs[0].theta("normal", rng)
        graphs[0].views(theta)["node"][...] *= 0.3
        answers = [calls.relax(g.power("relaxation"), 0, theta) for g in graphs]
        values = [value for _, _, value, _ in answers]
        assert np.ptp(values) < 1e-5
        assert abs(values[0] - values[1]) < 1e-9 * (1 + abs(values[0]))
        halves += answers[0][1] is None
        assert set(np.unique(answers[0][0])) <= {0.0, 0.5, 1.0}
    assert halves > 4


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_theta(data):
    """Decoders agree with enumeration on scores drawn by hypothesis."""
    n = data.draw(st.integers(1, 4))
    states = data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    pairs = [(u, v) for u in range(n) for v in range(u)]
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    graph = Graph(states, edges, data.draw(st.sampled_from(["exact", "trws", "lp", "auto"])))
    numbers = st.floats(-1e6, 1e6) | st.sampled_from([0.0, -0.0, 1.0, -1.0, NONE, 1e-300])
    theta = np.zeros(graph.size)
    for view in graph.views(theta).values():
        size = view.size
        view[...] = np.reshape(
            data.draw(st.lists(numbers, min_size=size, max_size=size)), view.shape
        )
    scores = graph.scores(theta)
    scale = 1 + np.abs(theta[np.isfinite(theta)]).sum()
    value, bound = graph.answer(theta)
    assert bound >= scores.max() - 1e-9 * scale
    if graph.oracle.exact:
        np.testing.assert_allclose(value, scores.max(), **graph.close(theta))


def test_parts():
    rng = np.random.default_rng(6)
    for _ in range(50):
        Graph(*random_graph(rng, 5, (1, 2, 3)), "exact").check_parts(rng, shortest=True)


def test_integer_program_where_enumeration_gives_up():
    """22 two-state nodes: labelings beyond enumeration, but a chain of triangles is easy."""
    rng = np.random.default_rng(7)
    n = 22
    edges = [(v, v + 1) for v in range(n - 1)] + [(v, v + 2) for v in range(n - 2)]
    structure = MRFStructure(edges=edges, tables="per-edge", n_states=2, oracle="exact")
    X, Y = [np.zeros((n, 1))], [np.zeros(n, int)]
    space, examples = structure.make_space(X, Y)
    oracle = ask_oracle(space)(make_layout(space, examples))
    assert oracle.exact
    theta = rng.normal(size=space.layout.theta_size(n, len(edges)))
    label, value, _ = calls.argmax(oracle, 0, theta)
    views = space.layout.theta_views(theta, n, len(edges))
    # Dynamic programming over the states of two neighbours.
    best = {}
    pair = {tuple(e): table for e, table in zip(edges, views["pair"])}
    for s, t in np.ndindex(2, 2):
        best[s, t] = views["node"][0, s] + views["node"][1, t] + pair[0, 1][s, t]
    for v in range(2, n):
        best = {
            (t, r): max(
                best[s, t] + views["node"][v, r] + pair[v - 1, v][t, r] + pair[v - 2, v][s, r]
                for s in range(2)
            )
            for t, r in np.ndindex(2, 2)
        }
    assert value == pytest.approx(max(best.values()), abs=1e-9)


def test_local_polytope_bound_holds_for_any_dual():
    rng = np.random.default_rng(8)
    for states in ([2, 2, 2], [2, 3, 1]):
        polytope = LocalPolytope(np.array(states), np.array([[0, 1], [2, 1], [0, 2]]))
        assert sparse.issparse(polytope.A)
        c = rng.normal(size=polytope.size)
        answer = linprog(
            -c,
            **(
                {"A_ub": polytope.A, "b_ub": polytope.high}
                if polytope.binary
                else {"A_eq": polytope.A, "b_eq": polytope.high}
            ),
            bounds=(0, 1),
        )
        for _ in range(20):
            dual = rng.normal(size=polytope.A.shape[0])
            assert bound_of(polytope, c, dual) >= -answer.fun - 1e-9


class Rough(Backend):
    """Any point of the polytope, as far as it knows the best one; and no duals."""

    accurate = False

    def program(self, polytope):
        real = Highs().program(polytope)

        class Careless(Program):
            def solve(self, c, upper=None, start=None, sides=None):
                return Answer(real.solve(0 * c, upper, None, sides).x, None)

        return Careless()


def test_rough_points_without_duals_prove_no_bound(monkeypatch):
    monkeypatch.setattr(decoders, "make_backend", lambda name: Rough())
    for seed in range(10):
        rng = np.random.default_rng(seed)
        edges = [(v, w) for v in range(14) for w in range(v) if rng.random() < 0.4]
        given = rng.normal(size=(14, 3)), edges, rng.normal(size=(len(edges), 3, 3)), True
        known = decode(*given, oracle="trws").value
        assert decode(*given, oracle="cvxpy:ROUGH").bound >= known - 1e-9
