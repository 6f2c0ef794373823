"""Flows: the native oracle against linear programs and enumeration, continuous losses, refusals."""

import warnings

import networkx as nx
import numpy as np
import pytest
from checks import refused, reloaded
from flow_cases import paths_network, wide_network
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.programs import best_vertex
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from structsolve import ConditionalRiskMinimizer, StructuredSVM
from structsolve.lp.ask import ask_oracle, ask_polytopes
from structsolve.plugins.flow import FlowStructure
from structsolve.plugins.flow.continuous import FlowTargets
from structsolve.plugins.flow.network import Network
from structsolve.structure import calls
from structsolve.structure.ask import ask_loss, ask_power, make_layout
from structsolve.testing import check_structure


def random_network(rng, n=5, whole=True, widest=3):
    """Return a random network with a feasible random flow; with cycles."""
    while True:
        graph = nx.gnp_random_graph(n, 0.5, seed=int(rng.integers(2**31)), directed=True)
        if graph.number_of_edges() >= 3:
            break
    flow = {}
    for u, v in graph.edges:
        c = int(rng.integers(0, widest + 1)) if whole else float(rng.exponential())
        graph[u][v]["capacity"] = c
        flow[u, v] = int(rng.integers(0, c + 1)) if whole else c * float(rng.random())
    for v in graph:
        inside = sum(flow[a] for a in graph.in_edges(v))
        graph.nodes[v]["demand"] = inside - sum(flow[a] for a in graph.out_edges(v))
    if not whole:  # what rounding leaves
        graph.nodes[0]["demand"] -= sum(d for _, d in graph.nodes(data="demand"))
    return graph


@pytest.mark.parametrize("network", [paths_network(), wide_network()], ids=["paths", "wide"])
def test_keeps_its_promises(network):
    check_structure(FlowStructure(network))


def oracle_of(graph):
    structure = FlowStructure(graph)
    X, Y = np.zeros((1, 1)), None
    space, _ = structure.make_space(X, Y)
    examples = space.pack(X)
    return space, examples, ask_oracle(space)(make_layout(space, examples))


@pytest.mark.parametrize("cases", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_oracle_against_linear_programs(cases):
    rng = np.random.default_rng(cases)
    for number in range(cases):
        graph = random_network(rng, int(rng.integers(3, 7)))
        space, examples, oracle = oracle_of(graph)
        m = space.network.m
        polytopes = ask_polytopes(space, examples)
        polytope = polytopes.build(0)
        theta = np.zeros(space.layout.node_size)
        kinds = (rng.normal(size=m), rng.integers(-1, 2, m), 1e6 * rng.normal(size=m), np.zeros(m))
        theta[:m] = kinds[number % 4]
        label, value, bound = calls.argmax(oracle, 0, theta)
        assert bound == value
        assert value == pytest.approx(theta[:m] @ label)
        space.network.check_flows(label[None].astype(float), 1)
        _, best = best_vertex(polytope, theta)
        assert value == pytest.approx(best, abs=1e-7 * (1 + np.abs(theta).max()))
        assert (polytope.decode(label.astype(float)) == label).all()
    assert polytopes.exact and "unimodular" in polytopes.note


def test_relaxation_has_the_oracles_flow():
    rng = np.random.default_rng(8)
    for _ in range(20):
        space, examples, oracle = oracle_of(random_network(rng, int(rng.integers(3, 7))))
        relaxation = ask_power(space, "relaxation")(oracle.layout)
        theta = np.zeros(space.layout.node_size)
        theta[: space.network.m] = rng.normal(size=space.network.m)
        mu, label, value, bound = calls.relax(relaxation, 0, theta)
        assert label.tolist() == calls.argmax(oracle, 0, theta)[0].tolist()
        assert mu[: space.network.m].tolist() == label.tolist()
        assert not mu[space.network.m :].any()
        assert value == bound == pytest.approx(theta @ mu)


def test_true_flows_of_losses_are_checked():
    space, examples, _ = oracle_of(paths_network())
    loss, m = ask_loss(space, "hamming")(make_layout(space, examples)), space.network.m
    loss.check_truths(np.zeros(m, np.int32))
    with pytest.raises(ValueError, match="example 0: arc 1 carries 2, expected 0 or 1"):
        loss.check_truths(np.array([0, 2] + [0] * (m - 2), np.int32))
    refused(f"found flows on 1 arcs, expected 1 x {m}", loss.check_truths, np.zeros(1, np.int32))


def test_longest_paths_against_networkx():
    rng = np.random.default_rng(1)
    for _ in range(60):
        graph = nx.DiGraph()
        graph.add_nodes_from(range(6))
        graph.add_edges_from(
            (u, v) for u in range(6) for v in range(u + 1, 6) if rng.random() < 0.6
        )
        graph.add_edge(0, 5)
        amount = int(rng.integers(1, 4))
        graph.nodes[0]["demand"], graph.nodes[5]["demand"] = -amount, amount
        space, _, oracle = oracle_of(graph)
        theta = np.zeros(space.layout.node_size)
        theta[: space.network.m] = rng.integers(-3, 4, space.network.m)
        for (u, v), t in zip(graph.edges, theta.tolist()):
            graph[u][v]["weight"] = -t
        label, value, _ = calls.argmax(oracle, 0, theta)
        assert value == -amount * nx.bellman_ford_path_length(graph, 0, 5)
        assert set(label.tolist()) <= {0, amount}


def test_trains_and_saves(tmp_path):
    rng = np.random.default_rng(2)
    graph = paths_network()
    X = rng.normal(size=(80, 2))
    space, _ = FlowStructure(graph).make_space(X, None)
    W = rng.normal(size=(2, 6))
    labels = space.enumerate_labels(space.pack(X), 0)
    Y = labels[(X @ W @ labels.T).argmax(axis=1)]
    model = StructuredSVM(FlowStructure(graph), alpha=1e-4).fit(X, Y)
    assert model.score(X, Y) > 0.95
    risk = ConditionalRiskMinimizer(FlowStructure(graph), alphas=[1e-4, 1e-2]).fit(X, Y)
    assert risk.score(X, Y) > 0.9
    continuous = ConditionalRiskMinimizer(FlowStructure(graph), loss="absolute").fit(X, Y)
    weight = rng.integers(0, 3, 80)
    often = np.repeat(np.arange(80), weight)
    for one in (model, risk, continuous):
        assert np.isclose(one.score(X, Y, weight), one.score(X[often], Y[often]))
        assert one.score(X, Y.astype(object)) == one.score(X, Y)  # as frames of several types
        again = reloaded(one, tmp_path)
        assert np.allclose(again.predict(X), one.predict(X))


def random_flows(rng, network, n, tied=False):
    """Return random mixtures of random vertices; tied: means of two, many of them equal."""
    return mixtures(rng, network, random_vertices(rng, network), n, tied)


def random_vertices(rng, network):
    """Return four solutions of random linear programs."""
    bounds = np.column_stack([np.zeros(network.m), network.upper])
    N = network.incidence()
    return np.array(
        [
            linprog(c, A_eq=N, b_eq=network.demand, bounds=bounds).x
            for c in rng.normal(size=(4, network.m))
        ]
    )


def mixtures(rng, network, vertices, n, tied=False):
    """Return n random flows between these vertices."""
    if tied:
        pairs = rng.integers(0, 4, (n, 2))
        return network.check_flows(np.round(vertices[pairs].sum(axis=1)) / 2, n)
    return network.check_flows(rng.dirichlet(np.full(4, 0.5), n) @ vertices, n)


def least_by_program(network, flows, weights):
    """Return ``min sum_i w_i |y - y_i|`` over flows for weights >= 0, by HiGHS."""
    n, m = flows.shape
    N = network.incidence().toarray()
    cost = np.concatenate([np.zeros(m), np.repeat(weights, m)])
    eye, minus = np.tile(np.eye(m), (n, 1)), -np.eye(n * m)
    A = np.vstack([np.hstack([eye, minus]), np.hstack([-eye, minus])])
    b = np.concatenate([flows.ravel(), -flows.ravel()])
    equal = np.hstack([N, np.zeros((len(N), n * m))])
    bounds = [(0, u) for u in network.upper] + [(0, None)] * (n * m)
    return linprog(cost, A, b, equal, network.demand, bounds).fun


def test_absolute_loss_against_linear_programs():
    rng = np.random.default_rng(3)
    for number in range(16):
        network = Network.of_graph(random_network(rng, whole=bool(number % 2)))
        n = int(rng.integers(1, 7))
        flows = random_flows(rng, network, n)
        targets = FlowTargets(network, flows, "absolute")
        weights = rng.exponential(size=(3, n)) * (rng.random((3, n)) < 0.8)
        weights[1] = 1.0
        decoded, values = targets.decode(weights, 1)
        network.check_flows(decoded, 3)
        for t in range(3):
            best = least_by_program(network, flows, weights[t])
            assert values[t] == pytest.approx(best, abs=1e-6)
        assert targets.excess_.max() <= 1e-9


def test_absolute_loss_with_negative_weights():
    """Check the bound, local optimality, and grid flows of a one-parameter network."""
    rng = np.random.default_rng(4)
    missed = 0
    for number in range(100):
        # Two ways from 0 to 1: the flow is one number.
        graph = nx.DiGraph([(0, 2), (2, 1), (0, 1)])
        graph.nodes[0]["demand"], graph.nodes[1]["demand"] = -1.0, 1.0
        network = Network.of_graph(graph)
        n = int(rng.integers(1, 9))
        share = rng.random(n)
        flows = np.column_stack([share, 1 - share, share])  # arcs 0-2, 0-1, 2-1
        weights = rng.normal(size=(1, n)) if number % 5 else -rng.random((1, n))
        targets = FlowTargets(network, flows, "absolute")
        _, values = targets.decode(weights, 1)
        grid = np.concatenate([share, [0, 1]])
        every = 3 * np.abs(grid[:, None] - share) @ weights[0]
        assert values[0] >= every.min() - 1e-9
        assert values[0] - targets.excess_[0] <= every.min() + 1e-9
        missed += values[0] > every.min() + 1e-9
    assert missed <= 20  # local minima; the bound says which


def one_sided(y, flows, weights, unit):
    """Return derivatives of the weighted absolute loss for more and for less of each arc's flow."""
    side = np.where(np.abs(y - flows) <= 1e-14 * unit, 0, np.sign(y - flows))
    ties = weights @ (side == 0)
    return weights @ side + ties, ties - weights @ side


def least_cycle(network, y, up, down):
    """Return the least derivative along a simple cycle of the residual network."""
    ways = {v: [] for v in range(network.n)}
    for a, (u, v) in enumerate(network.ends.tolist()):
        if y[a] < network.upper[a]:
            ways[u].append((v, a, up[a]))
        if y[a] > 0:
            ways[v].append((u, a, down[a]))

    def go(start, v, passed, arcs, total):
        least = 0.0
        for z, a, slope in ways[v]:
            if z == start and a not in arcs:
                least = min(least, total + slope)
            elif z > start and z not in passed:
                least = min(least, go(start, z, passed | {z}, arcs | {a}, total + slope))
        return least

    return min(go(v, v, {v}, set(), 0.0) for v in range(network.n))


def test_absolute_loss_is_locally_optimal():
    rng = np.random.default_rng(5)
    for number in range(100):
        tied = bool(number % 2)
        network = Network.of_graph(random_network(rng, whole=tied or number % 4 == 0))
        vertices = random_vertices(rng, network)
        flows = mixtures(rng, network, vertices, int(rng.integers(1, 7)), tied)
        weights = rng.normal(size=(1, len(flows)))
        if tied:
            weights = np.round(2 * weights)
        targets = FlowTargets(network, flows, "absolute")
        decoded, values = targets.decode(weights, 1)
        up, down = one_sided(decoded[0], flows, weights[0], network.unit)
        assert least_cycle(network, decoded[0], up, down) >= -1e-9
        given = targets.weighted(np.repeat(weights, len(flows), axis=0), flows)
        assert values[0] <= given.min() + 1e-9 * np.abs(weights).sum()
        for other in np.vstack([mixtures(rng, network, vertices, 5), vertices, flows]):
            reached = targets.weighted(weights, other[None])[0]
            assert reached >= values[0] - targets.excess_[0] - 1e-8


def test_kinks_close_together():
    """Flows of nearly 0 on many arcs: cycles alone would step from kink to kink forever."""
    graph = nx.DiGraph(["sa", "sb", "sc", "ab", "ad", "bd", "be", "cb", "ce", "dt", "ed", "et"])
    graph.nodes["s"]["demand"], graph.nodes["t"]["demand"] = -1.0, 1.0
    ways = [
        [arc in zip(path, path[1:]) for arc in graph.edges]
        for path in nx.all_simple_paths(graph, "s", "t")
    ]
    rng = np.random.default_rng(12)
    scores = rng.normal(scale=8, size=(300, len(ways)))
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    flows = shares / shares.sum(axis=1, keepdims=True) @ np.array(ways, dtype=float)
    network = Network.of_graph(graph)
    targets = FlowTargets(network, flows, "absolute")
    weights = rng.normal(size=(60, 300)) + 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        decoded, _ = targets.decode(weights, 1)
    assert np.abs(network.incidence() @ decoded.T - network.demand[:, None]).max() < 1e-12
    for y, weight in zip(decoded, weights):
        assert least_cycle(network, y, *one_sided(y, flows, weight, 0.0)) >= -1e-6


def test_squared_loss_against_cvxpy():
    import cvxpy as cp

    rng = np.random.default_rng(6)
    for number in range(6):
        network = Network.of_graph(random_network(rng, whole=bool(number % 2)))
        flows = random_flows(rng, network, 5)
        weights = rng.normal(size=(2, 5)) + 0.5
        weights[:, 0] += np.maximum(0.1 - weights.sum(axis=1), 0)
        decoded, values = FlowTargets(network, flows, "squared").decode(weights, 1)
        network.check_flows(decoded, 2)
        for t in range(2):
            y = cp.Variable(network.m)
            mean, total = weights[t] @ flows, weights[t].sum()
            held = [network.incidence() @ y == network.demand, y >= 0, y <= network.upper]
            least = cp.Problem(cp.Minimize(total * cp.sum_squares(y) - 2 * mean @ y), held)
            best = least.solve(solver="CLARABEL") + weights[t] @ (flows**2).sum(axis=1)
            assert values[t] == pytest.approx(best, abs=1e-5 * (1 + abs(best)))
    with pytest.raises(ValueError, match="example 1: the weights sum to -1.*fit_intercept"):
        FlowTargets(network, flows[:2], "squared").decode(np.array([[1.0, 0], [-2, 1]]), 1)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["absolute", "squared"]))
def test_any_network_and_weights(seed, loss):
    """Degenerate values: equal flows, zero weights, no slack; threads change nothing."""
    rng = np.random.default_rng(seed)
    network = Network.of_graph(random_network(rng, int(rng.integers(3, 6)), widest=1))
    flows = random_flows(rng, network, 6)[rng.integers(0, 6 if seed % 2 else 2, 6)]
    weights = rng.integers(-1, 3, (5, 6)) * 10.0 ** rng.integers(-6, 6)
    if loss == "squared":
        weights[:, 0] += np.maximum(1 - weights.sum(axis=1), 0)
    targets = FlowTargets(network, flows, loss)
    decoded, values = targets.decode(weights, 1)
    network.check_flows(decoded, 5)
    again, _ = targets.decode(weights, 3)
    assert (decoded == again).all()
    scale = 1e-6 * np.abs(weights).max()
    for y in flows:
        excess = targets.excess_ if loss == "absolute" else 0
        every = targets.weighted(weights, np.tile(y, (5, 1)))
        assert (values - excess <= every + scale).all()


def test_flows_of_estimated_risk():
    """Shares that depend on x: predictions near the conditional median and mean."""
    rng = np.random.default_rng(7)
    graph = nx.DiGraph([("s", "a"), ("a", "t"), ("s", "t")])
    graph.add_node("s", demand=-2.0)
    graph.add_node("t", demand=2.0)
    X = rng.uniform(size=(200, 1))
    share = np.clip(X[:, 0] + 0.1 * rng.normal(size=200), 0, 1)
    Y = np.column_stack([share, 2 - share, share])  # arcs s-a, s-t, a-t
    for loss in ("absolute", "squared"):
        model = ConditionalRiskMinimizer(
            FlowStructure(graph), loss=loss, alphas=[1e-5, 1e-3, 1e-1], kernel_params={"gamma": 5.0}
        ).fit(X, Y)
        x = np.linspace(0.2, 0.8, 7)[:, None]
        predicted, risks = model.predict_with_risk(x)
        assert np.abs(predicted[:, 0] - x[:, 0]).max() < 0.1
        assert model.conditional_risk(x, predicted) == pytest.approx(risks)
        assert (model.conditional_risk(x, Y[:7]) >= risks - 1e-9).all() or loss == "absolute"
        assert model.score(X, Y) < 0
        refused("continuous", model.surrogate_loss, X, Y, 1.0)


def no_flow(message, graph, Y=None, **settings_):
    with pytest.raises(ValueError, match=message):
        X = np.zeros((1 if Y is None else len(Y), 1))
        ConditionalRiskMinimizer(FlowStructure(graph), loss="absolute", **settings_).fit(X, Y)


def test_what_cannot_be_is_refused():
    for graph in (None, nx.Graph([(0, 1)]), nx.MultiDiGraph([(0, 1)]), 3):
        no_flow("expected a networkx.DiGraph", graph)
    no_flow("no arcs", nx.DiGraph())
    good = paths_network()
    Y = np.array([[1.0, 0, 0, 0, 1, 0]])  # arcs s-a, s-b, s-t, a-b, a-t, b-t

    def changed(node=None, arc=None, **attributes):
        graph = good.copy()
        if node is not None:
            graph.add_node(node, **attributes)
        else:
            graph.add_edge(*arc, **attributes)
        return graph

    no_flow("node 't': demand is 'x'", changed("t", demand="x"))
    no_flow("node 't': demand is nan", changed("t", demand=np.nan))
    no_flow("demands sum to 1, expected 0", changed("t", demand=2))
    no_flow("arc 's' -> 'a': capacity is -1", changed(arc=("s", "a"), capacity=-1))
    no_flow("arc '.' -> '.': it lies on a cycle", changed(arc=("b", "a")))
    tight = good.copy()
    for arc in [("s", "a"), ("s", "b"), ("s", "t")]:
        tight.add_edge(*arc, capacity=0.25)
    no_flow(r"no flow meets the demands; of 1 only 0.75 can leave the nodes \['s'\]", tight)
    no_flow(r"y: found shape \(1, 5\)", good, Y[:, :5])
    no_flow("y is None", good)
    no_flow("example 1, arc 's' -> 'a': y holds -1", good, np.vstack([Y, -Y]))
    no_flow("example 0, arc 's' -> 'a': y holds nan", good, Y * np.nan)
    no_flow("example 0, node 'a': inflow less outflow is 0.5", good, Y * [[1, 1, 1, 1, 0.5, 1]])
    half = np.array([[0.5, 0, 0.5, 0, 0.5, 0]])
    with pytest.raises(ValueError, match="example 0, arc 's' -> 'a': y holds 0.5.*whole"):
        StructuredSVM(FlowStructure(good)).fit([[0.0]], half)
    with pytest.raises(ValueError, match="arc 's' -> 'a' can carry 2.*at most 1"):
        two = good.copy()
        two.add_node("s", demand=-2)
        two.add_node("t", demand=2)
        StructuredSVM(FlowStructure(two)).fit([[0.0]], 2 * Y)
    with pytest.raises(ValueError, match="capacity is 0.25, expected a whole"):
        part = good.copy()
        part.add_edge("s", "a", capacity=0.25)
        StructuredSVM(FlowStructure(part)).fit([[0.0]], [[0, 0, 1, 0, 0, 0]])


def diamond(demand):
    graph = nx.DiGraph()
    graph.add_nodes_from([("s", {"demand": -demand}), ("t", {"demand": demand})])
    graph.add_edges_from([("s", "a"), ("s", "b"), ("a", "t"), ("b", "t")])
    return graph


@pytest.mark.parametrize("demand", [1e-6, 1.0, 1e9])
def test_flows_in_any_unit(demand):
    X, Y = [[0.0], [1.0]], demand * np.array([[1.0, 0, 1, 0], [0, 1, 0, 1]])
    model = ConditionalRiskMinimizer(
        FlowStructure(diamond(demand)), loss="squared", kernel="linear", alpha=1e-3
    ).fit(X, Y)
    predicted = model.predict([[2.0], [-3.0]])
    assert predicted == pytest.approx(
        demand * np.array([[0, 1, 0, 1], [1, 0, 1, 0]]), abs=1e-6 * demand
    )
    refused("example 0", model.fit, X, Y + 0.5 * demand)


def test_capacities_that_do_not_fit_32_bits_together_are_refused():
    graph = nx.DiGraph([("s", "a"), ("a", "t")])
    graph.add_nodes_from([("s", {"demand": -1}), ("t", {"demand": 1})])
    for v in "bcd":
        graph.add_edge("a", v, capacity=10**9)
        graph.add_edge(v, "a", capacity=10**9)
    with pytest.raises(ValueError, match="node 'a': its arcs can carry"):
        StructuredSVM(FlowStructure(graph)).fit([[0.0]], [[1, 1, 0, 0, 0, 0, 0, 0]])


@pytest.mark.parametrize("seed", range(12))
def test_kbest_against_enumeration(seed):
    rng = np.random.default_rng(seed)
    networks = [paths_network(), wide_network(), random_network(rng, 4, widest=2)]
    graph = networks[seed % 3]
    space, examples = FlowStructure(graph).make_space(np.zeros((2, 1)), None)
    layout = make_layout(space, examples)
    best, labels = ask_power(space, "kbest")(layout), space.enumerate_labels(examples, 1)
    for kind in ("normal", "ties", "zeros", "forbidden"):
        scores = rng.normal(size=space.network.m)
        if kind != "normal":
            scores = rng.integers(-2, 3, space.network.m) * float(kind != "zeros")
        if kind == "forbidden":
            scores[rng.random(len(scores)) < 0.2] = -np.inf
        with np.errstate(invalid="ignore"):
            totals = np.where(labels > 0, labels * scores, 0.0).sum(axis=1)
        possible = np.sort(totals[totals > -np.inf])[::-1]
        theta = np.zeros(layout.sizes(1)[0])
        theta[: len(scores)] = scores
        for k in (1, 2, 5, 10_000):
            if not len(possible):
                break
            answers, values = calls.kbest(best, 1, theta, k)
            np.testing.assert_allclose(values, possible[:k], atol=1e-12)
            assert len({tuple(a) for a in answers.tolist()}) == len(answers)
            where = {tuple(label): total for label, total in zip(labels.tolist(), totals)}
            given = [where[tuple(answer)] for answer in answers.tolist()]
            np.testing.assert_allclose(given, values, atol=1e-12)


def test_zero_one_loss_and_kbest_of_a_model():
    X = np.random.default_rng(0).normal(size=(12, 2))
    structure = FlowStructure(paths_network())
    labels = structure.make_space(X, None)[0].enumerate_labels(None, 0)
    Y = labels[(X > 0).sum(axis=1)]
    model = StructuredSVM(structure, loss="zero-one", alpha=0.1, tol=1e-3, max_iter=500).fit(X, Y)
    assert model.history_[-1]["gap"] <= 1e-3 * model.history_[-1]["primal"]
    for best, answers in zip(model.predict(X), model.predict_kbest(X, 9)):
        assert len(answers) == len(labels) and answers[0][0].tolist() == best.tolist()


@pytest.mark.pandas
@pytest.mark.parametrize("network", [paths_network, wide_network])
def test_arcs_as_columns_have_the_order_of_the_network(network):
    pd = pytest.importorskip("pandas")
    graph = network()
    arcs = list(graph.edges)
    model = StructuredSVM(FlowStructure(graph), alpha=0.1)
    X, Y = FlowStructure(graph).sample(0, n=6)
    frame = pd.DataFrame(Y, columns=pd.MultiIndex.from_tuples(arcs))
    assert model.fit(X, frame).score(X, frame) == model.score(X, Y)
    swapped = frame[[arcs[1], arcs[0], *arcs[2:]]]
    refused("y: found the columns .* as arcs of the network", model.score, X, swapped)
    model.fit(X, pd.DataFrame(Y, columns=[f"arc {k}" for k in range(len(arcs))]))
