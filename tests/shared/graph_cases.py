"""Graphs with every layout of tables in theta, and the scores of all labelings."""

import functools

import highspy
import numpy as np
from enumeration import NONE, Enumerated

from structsolve.lp import ask_oracle
from structsolve.plugins.mrf import MRFStructure
from structsolve.plugins.mrf.tables._model import GraphModel
from structsolve.structure import calls
from structsolve.structure.ask import ask_parts, ask_power, make_layout

KINDS = ["normal", "ties", "equal", "huge", "negative", "forbidden parts"]

# States of nodes: two; some nodes with fewer; more.
STATES = [(2,), (1, 2), (2, 3), (1, 2, 3, 4)]

# Where tables lie: one for all edges, one per edge of the one graph, a row of theta per edge; and
# whether examples have one graph, one each, or what is left of one without void nodes.
LAYOUTS = [
    (tables, directed, graphs)
    for tables in ("shared", "per-edge", "features")
    for directed in (False, True)
    for graphs in ("one", "own", "void")
    if tables != "per-edge" or graphs == "one"
]


def all_scores(states, edges, unary, pair):
    """Return the score of every labeling, with an axis per node.

    ``pair[e]`` has a row per state of the first end of edge e.
    """
    total = np.zeros(())
    between: dict = {}
    for (u, v), table in zip(edges, pair):
        key, table = ((u, v), table) if u < v else ((v, u), np.transpose(table))
        key = (int(key[0]), int(key[1]))
        between[key] = between.get(key, 0) + table  # parallel edges add up
    for v, K in enumerate(states):
        column = np.asarray(unary[v][:K])  # with an axis for each earlier node, before its own
        for u in range(v):
            more = between[u, v][: states[u], :K] if (u, v) in between else np.zeros((states[u], 1))
            column = column[..., None, :] + more
        total = total[..., None] + column
    return total


def eliminated(states, edges, unary, pair):
    """Return the best score of a narrow graph by eliminating nodes with few neighbours."""
    factors = [((v,), np.asarray(unary[v][:K])) for v, K in enumerate(states)]
    factors_of = [{v} for v in range(len(states))]  # factors of each node, by number
    for (u, v), table in zip(edges, pair):
        for w in (u, v):
            factors_of[w].add(len(factors))
        table = table[: states[u], : states[v]]
        factors.append(((int(u), int(v)), table) if u < v else ((int(v), int(u)), table.T))
    left, total = set(range(len(states))), 0.0
    near = {v: {v} for v in left}
    for u, v in edges:
        near[int(u)].add(int(v))
        near[int(v)].add(int(u))
    while left:
        v = next((v for v in left if len(near[v]) < 4), None)
        v = min(left, key=lambda v: len(near[v])) if v is None else v
        scope = sorted(near[v])
        table = np.zeros([states[u] for u in scope])
        for number in sorted(factors_of[v]):
            nodes, scores = factors[number]  # in the order of their numbers, as the scope's
            table = table + scores.reshape([states[u] if u in nodes else 1 for u in scope])
            for u in nodes:
                if u != v:
                    factors_of[u].remove(number)
        table, scope = table.max(axis=scope.index(v)), [u for u in scope if u != v]
        if scope:
            for u in scope:
                factors_of[u].add(len(factors))
            factors.append((tuple(scope), table))
        else:
            total += float(table)
        left.remove(v)
        for u in scope:
            near[u] = (near[u] | set(scope)) - {v}
    return total


class Graph(Enumerated):
    """Operators of one graph; by default theta holds every score: node rows, a table per edge.

    Parameters
    ----------
    states : sequence of int
    edges : array of shape (m, 2)
    oracle : str
    tables, directed, graphs
        One of LAYOUTS: the graph is one of three examples.
    """

    huge = 1e6

    def __init__(self, states, edges, oracle, tables="features", directed=True, graphs="one"):
        self.states, self.edges = tuple(int(K) for K in states), np.reshape(edges, (-1, 2))
        self.tables, self.swapped = tables, not directed and tables != "per-edge"
        self.n, self.m = len(self.states), len(self.edges)
        self.number = 0 if (tables, directed, graphs) == ("features", True, "one") else 1
        self.space, self.examples = self._pack(oracle, tables, directed, graphs)
        self.bound = make_layout(self.space, self.examples)
        self.oracle = ask_oracle(self.space)(self.bound)
        self.parts = ask_parts(self.space)(self.bound)
        self.layout = self.space.layout
        self.size = self.layout.theta_size(self.n, self.m)

    def _pack(self, oracle, tables, directed, graphs):
        """Pack three examples; those besides this one have other nodes where possible."""
        rng, K = np.random.default_rng(self.n), max(self.states)
        edges, states, several = self.edges, list(self.states), [self.edges] * 3
        sizes, truths = [self.n] * 3, [np.zeros(self.n, int) for _ in range(3)]
        if graphs == "own":
            # The largest graph determines the method for all: add a larger one only to small ones.
            more = self.n + 2 if K ** (self.n + 2) < 2**10 else max(self.n - 1, 1)
            inside = edges[(edges < more).all(axis=1)].tolist()
            sizes, several = [more, self.n, 1], [inside[::-1], edges, []]
            truths = [np.zeros(size, int) for size in sizes]
        elif graphs == "void":
            # An extra node at a random position, joined to some others, is void in this example.
            void = int(rng.integers(self.n + 1))
            place = np.delete(np.arange(self.n + 1), void)
            joined = [(void, int(v)) for v in place if rng.random() < 0.5]
            joined = joined[: None if self.m >= self.n else 1]  # a forest stays one
            kept = place[edges].tolist()
            cut = int(rng.integers(len(kept) + 1))
            edges, states = kept[:cut] + joined + kept[cut:], [*states[:void], K, *states[void:]]
            truths, several = [np.zeros(self.n + 1, int) for _ in range(3)], [edges] * 3
            truths[1][void] = -1
            sizes = [self.n + 1] * 3
        if self.number == 0:
            sizes, truths, several = sizes[:1], truths[:1], several[:1]
        X = [
            [np.zeros((size, 1))]
            + [e] * (graphs == "own")
            + [np.zeros((len(e), 1))] * (tables == "features")
            for size, e in zip(sizes, several)
        ]
        structure = MRFStructure(
            edges=None if graphs == "own" else edges,
            tables=tables,
            directed=directed,
            n_states=K if graphs == "own" else states,
            oracle=oracle,
            void=-1 if graphs == "void" else None,
        )
        return structure.make_space([x[0] if len(x) == 1 else tuple(x) for x in X], truths)

    def filled(self, unary, pair):
        """Return theta with these scores of nodes and tables of edges."""
        theta = np.zeros(self.size)
        views = self.views(theta)
        for view, tables in ((views["node"], unary), (views["pair"], pair)):
            for own, table in zip(view, tables):
                own[tuple(map(slice, table.shape))] = table
        return theta

    @functools.cached_property
    def labels(self):
        return np.indices(self.states, dtype=np.int32).reshape(self.n, -1).T

    @functools.cached_property
    def matrix(self):
        matrix = np.zeros((len(self.labels), self.size))
        node, pair = self.places()
        every = np.arange(len(self.labels))
        for v in range(self.n):
            matrix[every, node[v, self.labels[:, v]]] += 1
        for e, (u, v) in enumerate(self.edges):
            matrix[every, pair[e][self.labels[:, u], self.labels[:, v]]] += 1
        return matrix

    @functools.cached_property
    def unused(self):
        return ~self.matrix.any(axis=0)

    def places(self):
        """Return the part of theta of each node state, and of each pair of states of an edge."""
        return self.scattered(np.arange(self.size))

    def scattered(self, theta):
        """Return scores of nodes, and a table per edge, in theta's layout."""
        views = self.views(theta)
        if not self.m:
            return views["node"], []
        K = max(self.states)
        pair = views["pair"][..., :K, :K]
        if self.swapped:
            pair = np.where(np.tri(K, dtype=bool), np.swapaxes(pair, -1, -2), pair)
        return views["node"], [pair] * self.m if pair.ndim == 2 else pair

    def scores(self, theta):
        return all_scores(self.states, self.edges, *self.scattered(theta)).ravel()

    def best_of_states(self, scores, shape):
        best, table = np.full(shape, NONE), scores.reshape(self.states)
        for v, K in enumerate(self.states):
            best[v, :K] = table.max(axis=tuple(np.delete(np.arange(self.n), v)))
        return best

    def power(self, name):
        return ask_power(self.space, name)(self.bound)

    def views(self, theta):
        return self.layout.theta_views(theta, self.n, self.m)

    kbest = functools.cached_property(lambda self: self.power("kbest"))
    max_marginals = functools.cached_property(lambda self: self.power("max-marginals"))
    projection = functools.cached_property(
        lambda self: self.space.make_projection("entropy")(self.bound)
    )

    def close(self, theta):
        return {"rtol": 0, "atol": 1e-11 * (1 + np.abs(theta[np.isfinite(theta)]).sum())}

    def answer(self, theta):
        """Return value and bound of the oracle's label, whose score must equal the value."""
        label, value, bound = calls.argmax(self.oracle, self.number, theta)
        reached = self.scores(theta)[self.rows(label)]
        np.testing.assert_allclose(value, reached, **self.close(theta))
        return value, bound

    @functools.cached_property
    def polytope(self):
        """The local polytope as a model of HiGHS without costs."""
        node_at = np.concatenate([[0], np.cumsum(self.states)]).astype(int)
        rows = [range(first, last) for first, last in zip(node_at[:-1], node_at[1:])]
        less, start = [None] * len(rows), int(node_at[-1])
        for u, v in self.edges:
            cells = start + np.arange(self.states[u] * self.states[v])
            table = cells.reshape(self.states[u], self.states[v])
            rows += [*table, *table.T]
            less += [*range(node_at[u], node_at[u + 1]), *range(node_at[v], node_at[v + 1])]
            start += table.size
        model = highspy.Highs()
        model.setOptionValue("output_flag", False)
        nothing, n = np.array([], dtype=np.int32), start
        model.addCols(n, np.zeros(n), np.zeros(n), np.full(n, np.inf), 0, nothing, nothing, [])
        for row, node in zip(rows, less):
            index = np.array([*row, *([] if node is None else [node])], dtype=np.int32)
            value = np.where(index == node, -1.0, 1.0)
            side = 1.0 if node is None else 0.0
            model.addRow(side, side, len(index), index, value)
        return model

    def local_polytope(self, theta):
        """Return the maximum over the local polytope, by HiGHS."""
        unary, pair = self.scattered(theta)
        cost = [np.ravel(unary[v][:K]) for v, K in enumerate(self.states)]
        for e, (u, v) in enumerate(self.edges):
            cost.append(np.ravel(pair[e][: self.states[u], : self.states[v]]))
        cost = np.concatenate(cost)
        never, columns = np.isneginf(cost), np.arange(len(cost), dtype=np.int32)
        top = np.where(never, 0, np.inf)
        self.polytope.changeColsBounds(len(cost), columns, np.zeros(len(cost)), top)
        self.polytope.changeColsCost(len(cost), columns, np.where(never, 0, -cost))
        self.polytope.clearSolver()
        self.polytope.run()
        status = self.polytope.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return NONE
        assert status == highspy.HighsModelStatus.kOptimal
        return -self.polytope.getObjectiveValue()


def random_graph(rng, most=5, states=(2, 3), forest=False):
    n = int(rng.integers(1, most + 1))
    if forest:
        edges = [(v, int(rng.integers(v))) for v in range(1, n) if rng.random() < 0.8]
    else:
        edges = np.argwhere(np.triu(rng.random((n, n)) < rng.choice([0.3, 0.7, 1.0]), 1)).tolist()
        edges = [tuple(rng.permutation(e)) for e in edges]
    order = rng.permutation(len(edges))
    return rng.choice(states, n), np.array([edges[k] for k in order], dtype=int).reshape(-1, 2)


def complete(rng, n, strength=1.0, field=1.0):
    """Return a two-state model of all pairs, with random tables."""
    ends = np.transpose(np.triu_indices(n, 1))
    m = len(ends)
    return GraphModel(
        [2] * n, ends, rng.normal(size=2 * n) * field, rng.normal(size=4 * m) * strength
    )
