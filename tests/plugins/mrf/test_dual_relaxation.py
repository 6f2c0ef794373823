"""The native relaxation of graphs of three and more states, against linear programs."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from enumeration import NONE
from graph_cases import Graph, random_graph
from random_cases import random_cases

from structsolve import StructuredSVM
from structsolve.plugins.mrf import MRFStructure, grid_edges
from structsolve.plugins.mrf.decoders import make_power
from structsolve.plugins.mrf.relaxation import _linear
from structsolve.plugins.mrf.relaxation._dual import DualRelaxation
from structsolve.structure import calls
from structsolve.structure.ask import ask_power, make_layout
from structsolve.surrogates import Margin
from structsolve.testing import check_structure

KINDS = ["normal", "ties", "tenths", "zeros", "forbidden", "attractive", "repulsive"]
FAMILIES = ["triangle", "complete", "ring", "random", "tree", "apart"]


class Refuses:
    """A linear program that must not be called."""

    def relax(self, *given):
        raise AssertionError("the dual method left this open")


def alone(graph, tol=1e-3):
    """Return the native relaxation without a linear program to finish it."""
    layout = graph.oracle.layout
    shape = graph.space.graphs(layout)
    finish = _linear.LinearRelaxation(Refuses(), shape, layout)
    return DualRelaxation(finish, tol, shape, layout)


def family(rng, name):
    """Return states and edges; some nodes have fewer states than others."""
    k = int(rng.integers(2, 5))
    if name == "triangle":
        return [k] * 3, [(0, 1), (2, 1), (0, 2)]
    if name == "complete":
        return [k] * 5, list(itertools.combinations(range(5), 2))
    if name == "ring":
        n = int(rng.integers(3, 7))
        return [k] * n, [(v, (v + 1) % n) for v in range(n)]
    if name == "apart":  # two parts, a node alone, nodes of one state
        return [k, 3, 1, 2, k, 3, 1], [(0, 1), (1, 2), (3, 4), (5, 4), (5, 3)]
    return random_graph(rng, 6, (1, 2, 3, k), forest=name == "tree")


def fill(rng, graph, kind):
    theta = np.zeros(graph.size)
    views = graph.views(theta)
    for view in views.values():
        if kind == "ties":
            view[...] = rng.integers(-2, 3, view.shape)
        elif kind == "tenths":
            view[...] = rng.integers(-9, 10, view.shape) / 10
        elif kind == "zeros":
            view[...] = rng.integers(-1, 2, view.shape) * (rng.random(view.shape) < 0.3)
        elif kind == "forbidden":
            view[...] = rng.integers(-3, 4, view.shape)
            view[rng.random(view.shape) < 0.15] = NONE
        else:
            view[...] = rng.normal(size=view.shape)
    if kind in ("attractive", "repulsive"):
        views["node"][...] *= 0.3
        same = np.eye(views["pair"].shape[-1]) if len(graph.edges) else 0
        views["pair"][...] = (1 if kind == "attractive" else -1) * same
    theta[graph.unused] = 0
    return theta


def in_polytope(graph, mu, tol=1e-9):
    views = graph.views(mu)
    assert (mu >= 0).all() and (mu[graph.unused] == 0).all()
    np.testing.assert_allclose(views["node"].sum(axis=1), 1, atol=tol)
    for e, (u, v) in enumerate(graph.edges):
        np.testing.assert_allclose(views["pair"][e].sum(axis=1), views["node"][u], atol=tol)
        np.testing.assert_allclose(views["pair"][e].sum(axis=0), views["node"][v], atol=tol)


@random_cases(90, name=FAMILIES)
def test_the_point_and_the_bound_hold_the_linear_program(seed, name):
    rng = np.random.default_rng(seed)
    graph = Graph(*family(rng, name), "trws")
    relaxation = ask_power(graph.space, "relaxation")(graph.oracle.layout)
    for kind in rng.choice(KINDS, 3, replace=False):
        theta = fill(rng, graph, kind)
        expected, size = graph.local_polytope(theta), 1 + np.abs(theta[theta > NONE]).sum()
        mu, label, value, bound = calls.relax(relaxation, 0, theta)
        if expected == NONE:
            assert value == bound == NONE
            continue
        assert value <= expected + 1e-9 * size and bound >= expected - 1e-9 * size
        assert value <= bound <= value + 1e-7 * size
        in_polytope(graph, mu, 1e-6)
        used = mu != 0
        np.testing.assert_allclose(value, mu[used] @ theta[used], rtol=0, atol=1e-10 * size)
        assert label is None or (mu == graph.matrix[graph.rows(label)]).all()
        # The cut: for all scores, the value is at least that of this point.
        other = fill(rng, graph, "normal")
        assert graph.local_polytope(other) >= other @ mu - 1e-6 * size


@random_cases(60, kind=["normal", "repulsive"], name=["triangle", "ring"])
def test_frustrated_cycles_need_no_linear_program(seed, kind, name):
    """Two states, usually left to roof duality; plain dual ascent gets stuck here."""
    rng = np.random.default_rng(seed)
    graph = Graph(*family(rng, name), "trws")
    theta = fill(rng, graph, kind)
    graph.views(theta)["node"][...] *= 0.1
    expected = graph.local_polytope(theta)
    mu, label, value, bound = calls.relax(alone(graph), 0, theta)
    in_polytope(graph, mu)
    assert value <= expected + 1e-9 and bound >= expected - 1e-9
    assert bound - value <= 1e-8 * (1 + abs(expected))


def test_points_of_labelings_are_told():
    """Here the best point is that of a labeling, up to rounding."""
    structure = MRFStructure(tables="features")
    check_structure(structure, n_cases=1, size=4, random_state=674578074, solvers=())


def test_many_points_are_fractional():
    """Neither all nor none: the cases above include both kinds."""
    fractional = []
    for seed, name in itertools.product(range(10), FAMILIES):
        rng = np.random.default_rng(seed)
        graph = Graph(*family(rng, name), "trws")
        relaxation = ask_power(graph.space, "relaxation")(graph.oracle.layout)
        for kind in rng.choice(KINDS, 3, replace=False):
            _, label, value, _ = calls.relax(relaxation, 0, fill(rng, graph, kind))
            if value > NONE:
                fractional.append(label is None)
    assert len(fractional) > 150
    assert 0.05 < np.mean(fractional) < 0.7


def picture(shape, n_states, n=1, directed=True):
    """Return operators of grids with too many parts to be solved to the end, and views of theta."""
    edges, nodes = np.asarray(grid_edges(*shape)), shape[0] * shape[1]
    structure = MRFStructure(edges, n_states=n_states, directed=directed, oracle="trws")
    truths = [np.arange(nodes) % n_states] * n
    space, examples = structure.make_space([np.zeros((nodes, 1))] * n, truths)
    layout = make_layout(space, examples)
    graphs = space.graphs(layout)
    return graphs, layout, lambda theta: space.layout.theta_views(theta, nodes, len(edges))


def scores_of_picture(rng, layout, views, kind):
    theta = np.zeros(layout.sizes(0)[0])
    node, pair = views(theta)["node"], views(theta)["pair"]
    node[...] = rng.normal(size=node.shape)
    k = pair.shape[-1]
    pair[...] = np.eye(k) if kind == "attractive" else rng.normal(size=pair.shape)
    if kind == "forbidden":
        pair[..., [0, 1], [2, 3]] = NONE
    if kind == "nothing":
        pair[...] = NONE
    return theta


def on_average_in_polytope(marginals, shape):
    """Pairs are added up over all edges; nodes at either end, too."""
    first, second = np.asarray(grid_edges(*shape)).T
    node, pair = marginals["node"], marginals["pair"]
    assert min(node.min(), pair.min()) >= 0
    np.testing.assert_allclose(node.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_allclose(pair.sum(axis=1), node[first].sum(axis=0), atol=1e-8)
    np.testing.assert_allclose(pair.sum(axis=0), node[second].sum(axis=0), atol=1e-8)


@pytest.mark.parametrize("kind", ["attractive", "any", "forbidden", "nothing"])
def test_pictures_close_to_the_linear_program(kind):
    rng = np.random.default_rng(0)
    graphs, layout, views = picture((14, 14), 4)
    own = make_power(graphs, "trws", "relaxation", layout)
    program = make_power(graphs, "lp", "relaxation", layout)
    assert type(own) is DualRelaxation and type(program) is not DualRelaxation
    loose = 0
    for _ in range(3):
        theta = scores_of_picture(rng, layout, views, kind)
        mu, label, value, bound = calls.relax(own, 0, theta)
        if kind == "nothing":
            assert value == bound == NONE and label is not None
            continue
        expected = calls.relax(program, 0, theta)[2]
        assert value <= expected + 1e-9 * abs(expected) <= bound + 2e-9 * abs(expected)
        assert bound - value <= 1e-3 * bound
        used = mu != 0
        np.testing.assert_allclose(mu[used] @ theta[used], value, rtol=1e-12)
        loose += label is None
    assert loose or kind != "any"


def dense(states):
    """Return operators of a complete graph with a table for every edge, views of theta, edges."""
    edges = np.array(list(itertools.combinations(range(len(states)), 2)))
    structure = MRFStructure(
        edges, tables="features", directed=True, n_states=tuple(states), oracle="trws"
    )
    X = [(np.zeros((len(states), 1)), np.zeros((len(edges), 1)))]
    space, examples = structure.make_space(X, [np.zeros(len(states), int)])
    layout = make_layout(space, examples)

    def views(theta):
        return space.layout.theta_views(theta, len(states), len(edges))

    return space.graphs(layout), layout, views, edges


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e25, 1e150])
def test_passes_in_single_precision_leave_the_bound_a_bound(scale):
    """Frustrated graphs with nodes of 10 to 17 states; some scores do not fit float32."""
    rng = np.random.default_rng(5)
    states = rng.permutation(np.arange(10, 18))
    graphs, layout, views, edges = dense(states)
    theta, used = np.zeros((2, layout.sizes(0)[0]))
    for v, k in enumerate(states):
        views(used)["node"][v, :k] = 1
        views(theta)["node"][v, :k] = 0.1 * rng.normal(size=k)
    for e, (u, v) in enumerate(edges):
        views(used)["pair"][e, : states[u], : states[v]] = 1
        views(theta)["pair"][e, : states[u], : states[v]] = rng.normal(size=(states[u], states[v]))
    expected = calls.relax(make_power(graphs, "lp", "relaxation", layout), 0, theta)[2]
    own = make_power(graphs, "trws", "relaxation", layout)
    mu, label, value, bound = calls.relax(own, 0, scale * theta)
    in_polytope(SimpleNamespace(views=views, edges=edges, unused=used == 0), mu)
    np.testing.assert_allclose(mu @ theta, value / scale, rtol=1e-12)
    assert value / scale <= expected * (1 + 1e-9)
    assert bound / scale >= expected * (1 - 1e-9)
    assert label is None and bound - value <= 0.1 * bound


@pytest.mark.parametrize(("directed", "n_states"), [(False, 7), (False, 20), (True, 18)])
def test_shared_tables_in_single_precision(directed, n_states):
    """One table of either kind, in vectors of 8 and of 16 floats and not whole ones."""
    rng = np.random.default_rng(6)
    shape = (10, 10) if n_states < 9 else (4, 5)
    graphs, layout, views = picture(shape, n_states, directed=directed)
    own = make_power(graphs, "trws", "relaxation", layout)
    program = make_power(graphs, "lp", "relaxation", layout)
    theta = scores_of_picture(rng, layout, views, "any")
    if not directed:
        views(theta)["pair"][...] = np.triu(views(theta)["pair"])
    expected = calls.relax(program, 0, theta)[2]
    mu, _, value, bound = calls.relax(own, 0, theta)
    assert value <= expected * (1 + 1e-9) and bound >= expected * (1 - 1e-9)
    assert bound - value <= 2e-3 * bound
    np.testing.assert_allclose(mu @ theta, value, rtol=1e-12)


def test_answers_depend_on_the_scores_alone():
    """Answers do not depend on earlier calls, so a resumed fit continues exactly."""
    rng = np.random.default_rng(1)
    graphs, layout, views = picture((12, 12), 5, n=2)
    own = make_power(graphs, "trws", "relaxation", layout)
    thetas = [scores_of_picture(rng, layout, views, "any") for _ in range(3)]
    first = [calls.relax(own, 0, theta) for theta in thetas]
    for a, theta in reversed(list(zip(first, thetas))):
        b = calls.relax(own, 1, theta)
        assert a[2:] == b[2:] and (a[0] == b[0]).all()


def test_answers_end_at_the_gap_that_is_allowed():
    rng = np.random.default_rng(3)
    graphs, layout, views = picture((12, 12), 5)
    own = make_power(graphs, "auto", "relaxation", layout)  # a minimum cut first
    program = make_power(graphs, "lp", "relaxation", layout)
    wider = 0
    for _ in range(4):
        theta = scores_of_picture(rng, layout, views, "any")
        best = calls.relax(program, 0, theta)[2]
        tight = calls.relax(own, 0, theta)
        for gap in (0.05 * best, 0.3 * best):
            own.allow(gap)
            mu, _, value, bound = calls.relax(own, 0, theta)
            assert value <= best + 1e-9 * best and best <= bound + 1e-9 * best
            assert bound - value <= gap
            assert mu @ theta == pytest.approx(value, rel=1e-12)
            wider += bound - value > 2 * (tight[3] - tight[2])
        own.allow(0.0)
        again = calls.relax(own, 0, theta)
        assert again[2:] == tight[2:] and (again[0] == tight[0]).all()
    assert wider >= 4


def test_answers_that_end_early_lie_in_the_polytope():
    rng = np.random.default_rng(3)
    graphs, layout, views = picture((12, 12), 5)
    own = make_power(graphs, "auto", "relaxation", layout)
    fractional = 0
    for _ in range(4):
        theta = scores_of_picture(rng, layout, views, "any")
        views(theta)["node"][...] *= 0.1  # weak, so that answers are no labelings
        for gap in (0.0, 3.0):
            own.allow(gap)
            mu, label, value, bound = calls.relax(own, 0, theta)
            on_average_in_polytope(views(mu), (12, 12))
            assert mu @ theta == pytest.approx(value, rel=1e-12)
            assert value <= bound
            fractional += label is None
    assert fractional >= 2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_that_is_resumed_allows_what_it_would_have(tmp_path):
    """Allowed gaps follow from the records, which a checkpoint keeps."""
    rng = np.random.default_rng(4)
    edges = grid_edges(12, 12)
    Y = [rng.integers(0, 5, 144) for _ in range(3)]
    X = [np.eye(5)[y] + rng.normal(size=(144, 5)) for y in Y]

    def fit(file, callbacks=None):
        return StructuredSVM(
            MRFStructure(edges, oracle="trws"),
            surrogate=Margin(relaxed=True),
            alpha=0.01,
            tol=1e-6,
            max_iter=4,
            checkpoint=file,
            random_state=0,
            callbacks=callbacks,
        ).fit(X, Y)

    whole = fit(tmp_path / "whole")
    assert fit(tmp_path / "parts", [lambda record: record["pass"] == 2]).n_iter_ == 2
    parts = fit(tmp_path / "parts")
    np.testing.assert_array_equal(parts.flat_weights(), whole.flat_weights())


@pytest.mark.parametrize("tables", ["shared", "features"])
def test_training_reaches_the_optimum_of_linear_programs(tables):
    rng = np.random.default_rng(2)
    edges = np.asarray(grid_edges(3, 4))
    Y = [rng.integers(0, 3, 12) for _ in range(6)]
    X = [np.eye(3)[y] + rng.normal(size=(12, 3)) for y in Y]
    if tables == "features":
        X = [(x, edges, rng.normal(size=(len(edges), 2))) for x in X]
    ends = {}
    for oracle in ("trws", "lp"):
        structure = MRFStructure(
            None if tables == "features" else edges, tables=tables, oracle=oracle
        )
        model = StructuredSVM(
            structure, surrogate=Margin(relaxed=True), alpha=0.1, tol=1e-3, random_state=0
        ).fit(X, Y)
        assert model.stop_reason_ == "converged"
        ends[oracle] = model.history_[-1]
    for one, two in itertools.permutations(ends.values()):
        assert one["dual"] <= two["primal"] * (1 + 1e-9)
        assert one["primal"] - two["primal"] <= 1e-3 * one["primal"]
