"""Labelings by one minimum cut: against enumeration, in training, and errors."""

import itertools
import warnings

import numpy as np
import pytest
from random_cases import random_cases

from structsolve import Problem, StructuredSVM
from structsolve.batch import Scores, score_space, value_and_gradient
from structsolve.plugins.mrf import MRFStructure, decode, grid_edges
from structsolve.plugins.mrf.cuts._minimum_cut import CutNetworks
from structsolve.plugins.mrf.cuts.binary import may_cut
from structsolve.plugins.mrf.tables.scores import graph_scores
from structsolve.solvers import BCFW, SGD, CuttingPlane, SuperModular
from structsolve.solvers.run import Start
from structsolve.structure.ask import make_layout
from structsolve.structure.calls import argmax, relax

TABLES = ("shared", "directed", "per-edge", "features", "directed features")


def super_modular(rng, shape, kind, symmetric):
    """Return a table of scores whose second differences are at least 0."""
    draw = rng.integers(0, 3, shape) if kind != "floats" else rng.exponential(size=shape)
    draw = draw * (rng.random(shape) < 0.6)
    draw[0], draw[:, 0] = rng.integers(-2, 3, shape[1]), rng.integers(-2, 3, shape[0])
    if kind == "zeros":
        draw[...] = 0
    table = draw.astype(float).cumsum(0).cumsum(1)
    return table + table.T if symmetric else table


def random_space(rng, tables, states, kind):
    """Return a space of one random graph, its layout, and random super-modular scores of it."""
    n = int(rng.integers(1, 6))
    every = np.array(list(itertools.combinations(range(n), 2))).reshape(-1, 2)
    edges = every[rng.random(len(every)) < rng.choice([0.3, 0.7])]
    edges = np.where(rng.random(len(edges))[:, None] < 0.5, edges, edges[:, ::-1])
    own = rng.integers(1, states + 1, n) if kind == "mixed" else np.full(n, states)
    own[rng.integers(n)] = states
    directed = tables.startswith("directed")
    structure = MRFStructure(
        edges,
        tables={"directed": "shared", "directed features": "features"}.get(tables, tables),
        directed=directed,
        n_states=own.tolist(),
        oracle="mincut",
    )
    nodes = np.zeros((n, 1))
    X = [(nodes, np.zeros((len(edges), 1)))] if "features" in tables else [nodes]
    space, examples = structure.make_space(X, [np.zeros(n, int)])
    layout = make_layout(space, space.pack(X))
    theta = np.zeros(space.layout.theta_size(n, len(edges)))
    views = space.layout.theta_views(theta, n, len(edges))
    unary = rng.integers(-3, 4, views["node"].shape).astype(float)
    if kind == "floats":
        unary += rng.normal(size=unary.shape)
    if kind == "forbidden":
        unary[rng.random(unary.shape) < 0.4] = -np.inf
    views["node"][...] = unary
    if "pair" in views:
        pair = views["pair"]
        for table in pair[None] if pair.ndim == 2 else pair:
            full = super_modular(rng, (states, states), kind, not directed and tables != "per-edge")
            table[...] = full
    return space, layout, theta


def by_enumeration(space, layout, theta):
    """Return the scores of all labelings."""
    states, ends, unary, pair = space.graphs(layout).model(0, theta)
    first = np.concatenate([[0], np.cumsum(states)])
    scores = {}
    for label in itertools.product(*map(range, states)):
        total, place = sum(unary[first[v] + s] for v, s in enumerate(label)), 0
        for u, v in ends:
            total += pair[place + label[u] * states[v] + label[v]]
            place += states[u] * states[v]
        scores[label] = total
    return scores


@random_cases(
    600, tables=TABLES, states=(2, 3, 4), kind=("integers", "floats", "zeros", "forbidden", "mixed")
)
def test_the_cut_is_the_best_labeling(tables, states, kind, seed):
    rng = np.random.default_rng(seed)
    space, layout, theta = random_space(rng, tables, states, kind)
    scores = by_enumeration(space, layout, theta)
    best = max(scores.values())
    label, value, bound = argmax(space.make_oracle()(layout), 0, theta)
    assert scores[tuple(label.tolist())] == pytest.approx(value, abs=1e-9)
    assert value == pytest.approx(best, abs=1e-9)
    assert value <= bound <= value + 1e-12 * (1 + abs(value)) or value == bound == -np.inf
    mu, same, also, above = relax(space.make_power("relaxation")(layout), 0, theta)
    assert same.tolist() == label.tolist() and (also, above) == (value, bound)
    if best > -np.inf:
        taken = mu > 0
        assert mu[taken] @ theta[taken] == pytest.approx(best, abs=1e-9)


@random_cases(60, tables=("shared", "per-edge"), kind=("integers", "floats", "forbidden"))
def test_flows_of_before_change_no_answer(tables, kind, seed):
    """Twenty scores of one example, in turn from the same oracle."""
    rng = np.random.default_rng(seed)
    space, layout, theta = random_space(rng, tables, 2, kind)
    training = make_layout(space, layout.examples, training=True)
    oracle = space.make_oracle()(training)
    n = space.n_nodes
    for _ in range(20):
        views = space.layout.theta_views(theta, n, len(space.edges_))
        views["node"][...] += rng.normal(size=views["node"].shape)
        if "pair" in views:
            scale = rng.choice([0.0, 0.5, 2.0])
            for table in views["pair"][None] if views["pair"].ndim == 2 else views["pair"]:
                table[...] = scale * super_modular(rng, (2, 2), "floats", tables == "shared")
        _, value, bound = argmax(oracle, 0, theta)
        cold = argmax(space.make_oracle()(layout), 0, theta)[1]
        assert value == pytest.approx(cold, abs=1e-9) and bound >= value


@pytest.mark.parametrize("limit", [-np.inf, -1e17])
def test_a_flow_of_much_larger_scores_is_no_start(limit):
    """It rounded the scores of nodes away: the value was that of the first state."""
    space = score_space(MRFStructure(oracle="mincut"), 2)
    examples, labels = space.pack_sizes([2], edges=[[[0, 1]]]), np.zeros(2, np.int32)

    def value(nodes, limit):
        tables = {"pair": np.array([[0, limit], [limit, 0]])}
        scores = Scores(np.array(nodes, float), tables, None, examples)
        return value_and_gradient(space, scores, labels, "margin")[0]

    value([[0, 1e17], [1e17, 0]], -1e17)
    assert value([[0, 3], [1, 0]], limit) == 4  # both in the second state: 3 - 1, and a loss of 2


@pytest.mark.parametrize("states", [2, 3, 4])
@pytest.mark.parametrize("directed", [False, True])
def test_auto_cuts_where_it_may_and_is_right_anyway(states, directed):
    rng = np.random.default_rng(0)
    edges = grid_edges(5, 5)
    for sign in (1, -1, 1):
        table = sign * super_modular(rng, (states, states), "floats", not directed)
        unary = rng.normal(size=(25, states))
        auto = decode(unary, edges, table, directed, oracle="auto", max_iter=2000)
        exact = decode(unary, edges, table, directed, oracle="exact")
        assert auto.value <= exact.value + 1e-9 <= auto.bound + 2e-9
        if sign > 0:
            cut = decode(unary, edges, table, directed, oracle="mincut")
            assert cut.value == pytest.approx(exact.value, abs=1e-9)
            assert cut.bound - cut.value <= 1e-9


def test_second_differences_that_rounding_leaves_count_as_zero_and_stay_in_the_bound():
    unary, edges = np.array([[0.0, 0.1], [0.0, 0.1]]), [[0, 1]]
    for little in (1e-16, 4e-9):
        table = np.array([[1.0, 1.0 + little], [1.0 + little, 1.0]])
        label, value, bound = decode(unary, edges, table, oracle="mincut")[:3]
        assert label.tolist() == [1, 1] and value == pytest.approx(1.2, abs=1e-15)
        assert value <= bound <= value + 2 * little
    with pytest.raises(ValueError, match="is -4e-08, expected at least 0"):
        decode(unary, edges, [[1.0, 1.0 + 2e-8], [1.0 + 2e-8, 1.0]], oracle="mincut")


@pytest.mark.parametrize("states", [2, 3])
def test_what_is_left_of_larger_weights_counts_as_zero(states):
    """A projection leaves 0 up to the rounding of the weights before."""
    table = np.zeros((states, states))
    table[0, 1] = table[1, 0] = 3e-17
    unary = np.zeros((2, states))
    with pytest.raises(ValueError, match="is -6e-17, expected at least 0"):
        decode(unary, [[0, 1]], table, oracle="mincut")
    unary[0, 1] = 1.0
    label, value, bound = decode(unary, [[0, 1]], table, oracle="mincut")[:3]
    assert label[0] == 1 and 1 <= value <= bound <= value + 1e-15


def test_tables_that_are_not_super_modular_are_refused_by_edge_and_states():
    chain = [[0, 1], [1, 2]]
    good, bad = (
        -np.abs(np.subtract.outer(np.arange(3), np.arange(3))).astype(float),
        np.zeros((3, 3)),
    )
    bad[1, 2] = 0.75
    with pytest.raises(
        ValueError,
        match=r"edge 1 between nodes 1 and 2: the table t is not super-modular.*t\[0, 1\] \+ "
        r"t\[1, 2\] - t\[0, 2\] - t\[1, 1\] is 0.75|t\[1, 1\] \+ t\[2, 2\] - t\[1, 2\] - "
        r"t\[2, 1\] is -0.75, expected at least 0; train with constraints",
    ):
        decode(np.zeros((3, 3)), chain, np.array([good, bad]), oracle="mincut")
    structure, X, Y = pictures(2, False)
    with pytest.raises(ValueError, match=r"example \d, edge 0 between nodes 0 and 1.*SuperModular"):
        StructuredSVM(structure, alpha=0.01).fit(X, Y)
    forbidden = bad.copy()
    forbidden[0, 2] = -np.inf
    for table in (forbidden, np.diag([-np.inf, 0.0, 0.0])):
        with pytest.raises(ValueError, match="scores of -inf forbid pairs of states around"):
            decode(np.zeros((2, 3)), [[0, 1]], table, directed=True, oracle="mincut")
        decode(np.zeros((2, 3)), [[0, 1]], table, directed=True, oracle="auto")


@random_cases(300, directed=(False, True))
def test_pairs_of_two_states_may_be_forbidden(directed, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    edges = np.array(list(itertools.combinations(range(n), 2))).reshape(-1, 2)
    edges = edges[rng.random(len(edges)) < 0.6]
    unary = rng.integers(-2, 3, (n, 2)).astype(float)
    unary[rng.random((n, 2)) < 0.2] = -np.inf
    table = np.array([[1.0, rng.choice([-np.inf, 0.5])], [rng.choice([-np.inf, -0.5]), 0.25]])
    if not directed:
        table[1, 0] = table[0, 1]
    cut = decode(unary, edges, table, directed, oracle="mincut")
    best = decode(unary, edges, table, directed, oracle="exact")
    assert cut.value == pytest.approx(best.value, abs=1e-12)
    assert cut.bound == cut.value


def test_networks_that_are_too_large_are_told_before_they_are_made():
    edges = np.column_stack([np.arange(300), np.arange(1, 301)])
    structure = MRFStructure(edges, "features", n_states=2000, oracle="mincut")
    X = [(np.zeros((301, 1)), np.zeros((300, 1)))]
    space, examples = structure.make_space(X, [np.zeros(301, int)])
    with pytest.raises(
        ValueError, match=r"minimum cut would have 601699 nodes and 1199\d+ pairs of"
    ):
        CutNetworks(space.graphs(make_layout(space, examples)))


# Training ----------------------------------------------------------------------------------------


def pictures(states, directed, tables="shared", n=6, size=4, seed=0, **more):
    """Return a problem with small noisy pictures, whose tables would not be super-modular."""
    rng = np.random.default_rng(seed)
    edges = grid_edges(size, size)
    board = np.indices((size, size)).sum(axis=0).ravel() % states
    Y = [np.where(rng.random(size**2) < 0.8, board, rng.integers(states)) for _ in range(n)]
    X = [np.eye(states)[y] + rng.normal(size=(size * size, states)) for y in Y]
    if tables == "features":
        X = [(x, rng.exponential(size=(len(edges), 2))) for x in X]
    structure = MRFStructure(edges, tables, directed, oracle="mincut", **more)
    return structure, X, Y


@pytest.mark.parametrize("solver", [BCFW, SGD, CuttingPlane])
@pytest.mark.parametrize("states", [2, 3])
@pytest.mark.parametrize(
    ("tables", "directed"),
    [("shared", False), ("shared", True), ("per-edge", True), ("features", False)],
)
def test_every_iterate_can_be_cut(solver, states, tables, directed):
    """The oracle refuses weights that are not super-modular, but is never asked for any."""
    structure, X, Y = pictures(states, directed, tables)
    constraint = SuperModular("pair")
    model = StructuredSVM(
        structure, solver=solver(constraints=[constraint]), alpha=0.02, tol=1e-9, max_iter=40
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it need not converge
        model.fit(X, Y)
    table = model.coef_["pair"]
    if not directed:
        table = np.triu(table) + np.swapaxes(np.triu(table, 1), -1, -2)
    second = np.diff(np.diff(table, axis=-1), axis=-2)
    assert second.min() >= -1e-12 * np.abs(table).max()
    assert solver is SGD or second.min() <= 1e-3  # the rows bind
    assert model.history_[-1]["dual"] <= model.history_[-1]["primal"] * (1 + 1e-9)


@pytest.mark.parametrize("states", [2, 3])
def test_solvers_agree_on_the_optimum(states):
    structure, X, Y = pictures(states, False, size=2)
    values = {}
    for solver in (BCFW, CuttingPlane):
        model = StructuredSVM(
            structure,
            solver=solver(constraints=[SuperModular("pair")]),
            alpha=0.05,
            tol=1e-6,
            max_iter=1000,
        ).fit(X, Y)
        assert model.stop_reason_ == "converged"
        values[solver.name] = model.history_[-1]["primal"]
    # All labelings, by a general convex solver.
    best = enumerated_optimum(structure, X, Y, 0.05)
    assert values["bcfw"] == pytest.approx(best, rel=1e-5)
    assert values["cutting-plane"] == pytest.approx(best, rel=1e-5)
    model = StructuredSVM(
        structure,
        solver=SGD(constraints=[SuperModular("pair")]),
        alpha=0.05,
        tol=0.03,
        max_iter=1000,
    ).fit(X, Y)
    assert best <= model.history_[-1]["primal"] * (1 + 1e-9) <= best * 1.031


def enumerated_optimum(structure, X, Y, alpha):
    """Minimise alpha/2 |w|^2 + mean hinge under the rows, with every labeling explicit."""
    import cvxpy as cp

    states, edges = len(set(np.concatenate(Y))), structure.edges
    upper = [(a, b) for a in range(states) for b in range(a, states)]
    W, t = cp.Variable((X[0].shape[1] + 1, states)), cp.Variable(len(upper))
    rows, hinges = [], []
    for x, y in zip(X, Y):
        ones = np.hstack([x, np.ones((len(x), 1))])

        def image(label, ones=ones):
            pairs = np.sort(label[edges], axis=1)
            counts = [np.sum((pairs == cell).all(axis=1)) for cell in upper]
            return ones.T @ np.eye(states)[label], np.array(counts, float)

        nodes, pairs = image(y)
        worst = cp.Variable()
        hinges.append(worst)
        node_rows, pair_rows, losses = [], [], []
        for label in itertools.product(range(states), repeat=len(y)):
            here = image(np.array(label))
            node_rows.append((here[0] - nodes).ravel())
            pair_rows.append(here[1] - pairs)
            losses.append(np.sum(np.array(label) != y))
        scores = np.array(node_rows) @ cp.vec(W, order="C") + np.array(pair_rows) @ t
        rows.append(worst >= np.array(losses) + scores)
    place = {cell: k for k, cell in enumerate(upper)}

    def entry(a, b):
        return t[place[min(a, b), max(a, b)]]

    for a, b in itertools.product(range(states - 1), repeat=2):
        rows.append(entry(a, b) + entry(a + 1, b + 1) >= entry(a, b + 1) + entry(a + 1, b))
    value = alpha / 2 * (cp.sum_squares(W) + cp.sum_squares(t)) + sum(hinges) / len(X)
    return cp.Problem(cp.Minimize(value), rows).solve(solver=cp.CLARABEL)


def test_threads_change_nothing():
    structure, X, Y = pictures(2, False, size=6)
    solver = CuttingPlane(constraints=[SuperModular("pair")])
    models = [
        StructuredSVM(structure, solver=solver, n_jobs=jobs, tol=0.01).fit(X, Y) for jobs in (1, 3)
    ]
    assert models[0].coef_["pair"].tolist() == models[1].coef_["pair"].tolist()


@random_cases(12, solver=(BCFW, CuttingPlane))
def test_runs_go_on_bit_for_bit_without_the_flows_of_before(solver, seed):
    """Many labelings are equally good: features are integers."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, 8))
    Y = [rng.integers(0, 2, size * size) for _ in range(5)]
    X = [rng.integers(-1, 2, (size * size, 1)).astype(float) + y[:, None] for y in Y]

    def run():
        space, examples = MRFStructure(grid_edges(size, size), oracle="mincut").make_space(X, Y)
        own = solver(constraints=[SuperModular("pair")])
        return own.start(Start(Problem(space, examples), 0.05, np.random.default_rng(0)))

    first, second = run(), run()
    for _ in range(5):
        first.step()
    second.restore(*first.state())
    for _ in range(6):
        first.step(), second.step()
    assert first.weights().tolist() == second.weights().tolist()


def test_one_pixel_no_edges_and_graphs_of_their_own():
    rng = np.random.default_rng(0)
    X = [(rng.normal(size=(n, 2)), np.argwhere(np.tri(n, k=-1))[: n - 2]) for n in (1, 4, 2, 6, 1)]
    Y = [rng.integers(0, 3, len(x)) for x, _ in X]
    for structure in (MRFStructure(oracle="mincut"), MRFStructure(oracle="mincut", n_states=3)):
        for solver in (BCFW, SGD, CuttingPlane):
            solver = solver(constraints=[SuperModular("pair")])
            model = StructuredSVM(structure, solver=solver, tol=0.5, alpha=0.1).fit(X, Y)
            assert [len(y) for y in model.predict(X)] == [1, 4, 2, 6, 1]
    lone = StructuredSVM(MRFStructure([], oracle="mincut"), solver=BCFW(constraints=[]), tol=0.9)
    assert len(lone.fit([np.ones((1, 1))] * 2, [[0], [1]]).predict([np.ones((1, 1))])) == 1


def test_label_sets_by_cuts():
    """Multilabel's pairs: state 0 has no part."""
    from structsolve.plugins.multilabel import MultilabelStructure

    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(12, 3)), rng.integers(0, 2, (12, 20))
    models = [
        StructuredSVM(
            MultilabelStructure(edges="full", oracle=oracle),
            solver=BCFW(constraints=[SuperModular("pair")]),
            alpha=0.05,
            tol=0.02,
        ).fit(X, Y)
        for oracle in ("mincut", "roof-duality")
    ]
    first, second = (model.history_[-1]["primal"] for model in models)
    assert first == pytest.approx(second, rel=0.03)
    np.testing.assert_array_equal(models[0].predict(X), models[0].set_params().predict(X))


def test_pairs_forbidden_to_nodes_of_one_state():
    # Such edges have no second differences, but their forbidden pairs must be kept.
    unary = [[0.0], [0.0, 0.0, 0.0, 5.0], [0.17, 0.34, 0.2]]
    pair = [[[0.0], [0.0], [-np.inf], [0.0]]]
    with pytest.raises(ValueError, match="edge 0 between nodes 1 and 0: scores of -inf forbid"):
        decode(unary, [[1, 0]], pair, oracle="mincut")
    rng = np.random.default_rng(0)
    edges, size = grid_edges(7, 7).tolist(), 49
    ladder = -np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    for _ in range(20):
        unary = [*rng.normal(size=(size, 3)), np.zeros(1)]
        node = int(rng.integers(size))
        pendant = np.where(rng.random((3, 1)) < 0.5, -np.inf, 0.0)
        pendant[rng.integers(3)] = 0
        tables = [ladder] * len(edges)
        best = decode(unary, [*edges, [node, size]], [*tables, pendant])
        banned = [*unary[:size]]
        banned[node] = unary[node] + pendant[:, 0]
        folded = decode(banned, edges, tables, oracle="mincut")
        assert best.value <= folded.value + 1e-9 <= best.bound + 2e-9
        assert pendant[best.label[node], 0] == 0


@random_cases(600, states=range(2, 5), kind=["integers", "floats", "zeros"], sign=[-1, 0, 1])
def test_a_table_that_is_not_tried_is_refused(seed, states, kind, sign):
    """ "auto" leaves the cut out only where "mincut" would refuse the scores."""
    rng = np.random.default_rng(seed)
    table = super_modular(rng, (states, states), kind, True)
    if sign < 0 or rng.random() < 0.3:
        table = -table
    if rng.random() < 0.2:
        table[0, -1] = table[-1, 0] = -np.inf
    edges = [[0, 1], [1, 2], [2, 0]]
    weights = rng.choice([0.0, 1e-12, 0.5, 2.0], 3) * (1 if sign else rng.choice([-1, 1], 3))
    weights = weights if (weights > 0).all() or np.isfinite(table).all() else np.ones(3)
    unary = rng.integers(-3, 4, (3, states)).astype(float)
    if not may_cut(graph_scores(unary, edges, table, weights=weights)):
        with pytest.raises(ValueError, match="super-modular|forbid"):
            decode(unary, edges, table, weights=weights, oracle="mincut")
    best = decode(unary, edges, table, weights=weights, oracle="exact").value
    assert decode(unary, edges, table, weights=weights).value == pytest.approx(best)
