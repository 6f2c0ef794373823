"""Label sets of a hierarchy by enumeration, and random hierarchies."""

from itertools import product

import networkx as nx
import numpy as np

from structsolve.plugins.dag import Hierarchy

TREE = {"a": ["b", "c"], "b": ["d", "e"], "f": ["g"]}
GRAPH = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("c", "e"), ("f", "e"), ("f", "g")]


def random_edges(rng, M, forest, chance=0.5):
    """Return edges (parent, child) of a random hierarchy, with shuffled names."""
    names = rng.permutation(M)
    edges = []
    for child in range(1, M):
        if forest:
            if rng.random() < 0.85:
                edges.append((names[rng.integers(child)], names[child]))
        else:
            parents = np.flatnonzero(rng.random(child) < chance / (1 + child / 4))
            edges += [(names[p], names[child]) for p in parents]
    return np.array(edges, dtype=np.int64).reshape(-1, 2)


def as_dict(M, edges):
    """The same as {node: children}, every node 0 .. M - 1 in this order."""
    children = {v: [] for v in range(M)}
    for p, c in edges.tolist():
        children[p].append(c)
    return children


def ancestors(M, edges):
    """Of every node the set of itself and what is above it."""
    above = [{v} for v in range(M)]
    for _ in range(M):
        for p, c in edges.tolist():
            above[c] |= above[p]
    return above


def all_labels(M, edges, kind="closed", roots_on=False):
    """Every label as a row of 0 and 1."""
    parents, inner = set(edges[:, 1].tolist()), set(edges[:, 0].tolist())
    leaves = [v for v in range(M) if v not in inner]
    if kind != "closed":
        above = ancestors(M, edges)
        picks = [(leaf,) for leaf in leaves]
        if kind == "leaf-union":
            picks = [np.flatnonzero(row) for row in product((0, 1), repeat=len(leaves))]
            picks = [[leaves[j] for j in pick] for pick in picks if len(pick)]
        sets = [set().union(*(above[leaf] for leaf in pick)) for pick in picks]
        return np.array([[v in one for v in range(M)] for one in sets], dtype=np.int32)
    rows = np.array(list(product((0, 1), repeat=M)), dtype=np.int32)
    keep = np.ones(len(rows), dtype=bool)
    for p, c in edges.tolist():
        keep &= rows[:, c] <= rows[:, p]
    if roots_on:
        for v in range(M):
            keep &= (v in parents) | (rows[:, v] == 1)
    return rows[keep]


def hierarchical_loss(M, edges, truth, label):
    """Weights of the wrong nodes of which all parents are right; 1 is shared among the roots."""
    parents = [[p for p, c in edges.tolist() if c == v] for v in range(M)]
    n_children = np.bincount(edges[:, 0], minlength=M)
    n_roots = sum(not above for above in parents)
    weight = {}

    def share(v):
        if v not in weight:
            weight[v] = (
                sum(share(p) / n_children[p] for p in parents[v]) if parents[v] else 1 / n_roots
            )
        return weight[v]

    return sum(
        share(v)
        for v in range(M)
        if truth[v] != label[v] and all(truth[p] == label[p] for p in parents[v])
    )


def dag_setting(hierarchy, n=1, **options):
    """Space and examples of a structure "dag", X being of no concern."""
    from structsolve.plugins.dag import DagStructure

    structure = DagStructure(hierarchy, **options)
    X, Y = structure.sample(0, n=n)
    space, _ = structure.make_space(X, Y)
    return space, space.pack(X, Y)


def oracle_of(space, examples, training=True):
    """The oracle of a space, bound to examples to train on, or to predict."""
    from structsolve.lp import ask_oracle
    from structsolve.structure.ask import make_layout

    return ask_oracle(space)(make_layout(space, examples, training))


def power_of(space, examples, name):
    """A power of a space, bound to examples; None where it has none."""
    from structsolve.structure.ask import ask_power, make_layout

    bind = ask_power(space, name)
    return None if bind is None else bind(make_layout(space, examples))


def numbered(n, edges):
    """The hierarchy of nodes 0 .. n - 1."""
    children = {v: [] for v in range(n)}
    for p, c in edges:
        children[int(p)].append(int(c))
    return Hierarchy(children)


def random_tree(rng, n, forest=False):
    """Nodes in random order, so that parents do not come before children."""
    order = rng.permutation(n)
    parents = [int(rng.integers(k)) for k in range(1, n)]
    edges = [
        (order[p], order[k + 1]) for k, p in enumerate(parents) if not forest or rng.random() < 0.8
    ]
    return numbered(n, edges)


def random_dag(rng, n):
    order = rng.permutation(n)
    edges = [
        (order[a], order[b]) for a in range(n) for b in range(a + 1, n) if rng.random() < 2.5 / n
    ]
    return numbered(n, edges)


def brute_paths(hierarchy):
    """Which nodes lie on the way to each leaf, one row a leaf."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(hierarchy)))
    graph.add_edges_from(hierarchy.edges.tolist())
    leaves = [n for n in range(len(hierarchy)) if graph.out_degree(n) == 0]
    rows = np.zeros((len(leaves), len(hierarchy)))
    for row, leaf in zip(rows, leaves):
        row[[leaf, *nx.ancestors(graph, leaf)]] = 1
    return rows
