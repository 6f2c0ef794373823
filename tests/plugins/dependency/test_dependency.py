"""Dependency trees: oracles, k best, marginals and samples against enumeration and witnesses."""

import networkx as nx
import numpy as np
import pytest
from checks import LOSS, refused
from dependency_cases import KINDS, each_kind, in_order, operators
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.programs import best_vertex
from tree_cases import check_frequencies, check_memory

from structsolve.lp.ask import ask_oracle
from structsolve.plugins.dependency import Arcs, DependencyStructure, projectivize
from structsolve.plugins.dependency._shape import first_fault
from structsolve.plugins.dependency.polytope import TreePolytopes
from structsolve.plugins.dependency.space import all_trees
from structsolve.structure import calls, projection_calls
from structsolve.structure.ask import make_layout
from structsolve.testing import check_structure

TREES = {(n, *kind): all_trees(n, *kind) for n in range(1, 5) for kind in KINDS}


def tables(marginals, n):
    table = np.zeros((n, n + 1))
    table[~np.eye(n + 1, dtype=bool)[1:]] = marginals
    return table


def totals(trees, table):
    return table[np.arange(len(table)), trees].sum(axis=1)


def random_table(rng, n, kind):
    table = {
        "random": lambda: rng.normal(size=(n, n + 1)),
        "tied": lambda: rng.integers(-1, 2, (n, n + 1)).astype(float),
        "zero": lambda: np.zeros((n, n + 1)),
        "huge": lambda: rng.normal(size=(n, n + 1)) * 1e299,
        "wide": lambda: rng.normal(size=(n, n + 1)) * 10 ** rng.uniform(0, 4),
        "negative": lambda: -rng.exponential(size=(n, n + 1)) * 100,
        "barred": lambda: np.where(
            rng.random((n, n + 1)) < 0.3, -np.inf, rng.integers(-2, 3, (n, n + 1))
        ),
        "barred wide": lambda: np.where(
            rng.random((n, n + 1)) < 0.3, -np.inf, rng.normal(size=(n, n + 1)) * 3e3
        ),
    }[kind]()
    return table


SCORES = ["random", "tied", "zero", "huge", "wide", "negative", "barred", "barred wide"]


@each_kind
def test_conformance(projective, single):
    check_structure(DependencyStructure(projective, single), n_cases=1)


@pytest.mark.parametrize("loss", ["normalized-hamming", "zero-one"])
def test_conformance_of_losses(loss):
    check_structure("dependency", loss=loss, n_cases=1, only=LOSS)


def test_numbers_of_trees():
    # Cayley's formula, and the counts of projective trees by their roots.
    assert [len(TREES[n, False, False]) for n in range(1, 5)] == [1, 3, 16, 125]
    assert [len(TREES[n, False, True]) for n in range(1, 5)] == [1, 2, 9, 64]
    assert [len(TREES[n, True, False]) for n in range(1, 5)] == [1, 3, 12, 55]
    assert [len(TREES[n, True, True]) for n in range(1, 5)] == [1, 2, 7, 30]


@each_kind
@pytest.mark.parametrize("kind", SCORES)
def test_best_trees_are_those_of_the_enumeration(projective, single, kind):
    rng = np.random.default_rng(SCORES.index(kind))
    given = {n: operators(n, projective, single)[0] for n in range(1, 5)}
    for case in range(250):
        n = 1 + case % 4
        oracle, trees = given[n], TREES[n, projective, single]
        table = random_table(rng, n, kind)
        scores = totals(trees, table)
        if scores.max() == -np.inf:
            refused("example 0: no tree is possible", calls.argmax, oracle, 0, in_order(table))
            continue
        label, value, bound = calls.argmax(oracle, 0, in_order(table))
        assert (trees == label).all(axis=1).any() and bound == value
        assert value == pytest.approx(scores.max(), rel=1e-12, abs=1e-12)
        assert totals(label[None], table)[0] == pytest.approx(value, rel=1e-12, abs=1e-12)


@each_kind
@pytest.mark.parametrize("kind", ["random", "tied", "wide", "barred"])
def test_k_best_trees_are_those_of_the_enumeration(projective, single, kind):
    rng = np.random.default_rng(1 + SCORES.index(kind))
    given = {n: operators(n, projective, single)[2] for n in range(1, 5)}
    for case in range(60):
        n, k = 1 + case % 4, int(rng.choice([1, 2, 5, 12, 200]))
        trees = TREES[n, projective, single]
        table = random_table(rng, n, kind)
        scores = np.sort(totals(trees, table))[::-1]
        scores = scores[scores > -np.inf][:k]
        if not scores.size:
            continue
        labels, values = calls.kbest(given[n], 0, in_order(table), k)
        assert len(labels) == len(scores) == len(np.unique(labels, axis=0))
        assert values == pytest.approx(scores, rel=1e-12, abs=1e-12)
        assert totals(labels, table) == pytest.approx(values, rel=1e-12, abs=1e-12)
        assert all((trees == label).all(axis=1).any() for label in labels)


@pytest.mark.parametrize("size", [1.0, 2.0**58, 2.0**60, 3e17, 1e100, 1e300])
def test_no_tree_whatever_the_size_of_scores(size):
    none = -np.inf
    for table in (
        [[0, none, none], [size, none, none]],
        [[0, none, none, none], [none, none, none, size], [0, none, 0, none]],
    ):
        n = len(table)
        theta = in_order(np.array(table, dtype=float))
        oracle, projection, _ = operators(n, False, True)
        refused("no tree", calls.argmax, oracle, 0, theta)
        refused("no tree", calls.project, projection, 0, theta)
        refused("no tree", projection_calls.sample, projection, 0, theta, np.full((1, n), 0.5))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_best_trees_of_any_scores(data):
    n = data.draw(st.integers(1, 4))
    kind = data.draw(st.sampled_from(KINDS))
    number = st.one_of(
        st.integers(-3, 3).map(float), st.floats(-1e300, 1e300), st.just(-np.inf), st.just(0.0)
    )
    table = np.array(data.draw(st.lists(number, min_size=n * (n + 1), max_size=n * (n + 1))))
    table = table.reshape(n, n + 1)
    oracle, projection, best = operators(n, *kind)
    scores = totals(TREES[(n, *kind)], table)
    if scores.max() == -np.inf:
        refused("no tree", calls.argmax, oracle, 0, in_order(table))
        refused("no tree", calls.kbest, best, 0, in_order(table), 3)
        refused("no tree", calls.project, projection, 0, in_order(table))
        return
    size = np.abs(table[np.isfinite(table)]).max()
    label, value, _ = calls.argmax(oracle, 0, in_order(table))
    assert value == pytest.approx(scores.max(), rel=1e-12, abs=1e-14 * size)
    marginals, value, _ = calls.project(projection, 0, in_order(table))
    assert np.isfinite(marginals).all() and np.isfinite(value)
    assert tables(marginals, n).sum(axis=1) == pytest.approx(np.ones(n))


@each_kind
def test_other_scores_are_refused(projective, single):
    oracle, projection, _ = operators(2, projective, single)
    for number in (np.nan, np.inf, 1e301):
        theta = np.array([0.0, number, 0.0, 0.0])
        refused("example 0: an arc has the score", calls.argmax, oracle, 0, theta)
        refused("example 0: an arc has the score", calls.project, projection, 0, theta)


def best_by_networkx(table, single):
    """Return the value of the maximum spanning arborescence from the root."""
    n = len(table)
    best = -np.inf
    for roots in [[m] for m in range(n)] if single else [range(n)]:
        graph = nx.DiGraph()
        graph.add_nodes_from(range(n + 1))
        for m in range(n):
            for h in range(n + 1):
                if h != m + 1 and (h or m in roots) and table[m, h] > -np.inf:
                    graph.add_edge(h, m + 1, weight=table[m, h])
        try:
            tree = nx.maximum_spanning_arborescence(graph)
        except nx.NetworkXException:
            continue
        best = max(best, sum(d["weight"] for *_, d in tree.edges(data=True)))
    return best


@pytest.mark.parametrize("single", [False, True])
def test_networkx_finds_trees_of_the_same_value(single):
    rng = np.random.default_rng(3)
    for case in range(25):
        n = int(rng.integers(2, 12 if not single else 8))
        table = rng.integers(-9, 10, (n, n + 1)).astype(float)
        if case % 3 == 0:
            table[rng.random(table.shape) < 0.3] = -np.inf
            table[np.arange(n), np.arange(n)] = 0  # a path is left
        oracle, *_ = operators(n, False, single)
        label, value, _ = calls.argmax(oracle, 0, in_order(table))
        assert value == best_by_networkx(table, single)


def test_deeply_nested_cycles():
    # Each word prefers its neighbour, pairs of words the next pair, and so on.
    n = 256
    table = np.array(
        [
            [-float((m ^ (h - 1)).bit_length()) if h else -99.0 for h in range(n + 1)]
            for m in range(n)
        ]
    )
    table[5, 0] = -90
    oracle, *_ = operators(n, False, True)
    label, value, _ = calls.argmax(oracle, 0, in_order(table))
    assert value == -90 - sum(n // 2**level * level for level in range(1, 9))
    check = np.zeros(n, dtype=bool)
    for m in range(n):
        path = [m]
        while label[path[-1]]:
            path.append(label[path[-1]] - 1)
            assert len(path) <= n
        check[m] = path[-1] == 5
    assert check.all()


@each_kind
@pytest.mark.parametrize("kind", [k for k in SCORES if k != "huge"])
def test_marginals_are_those_of_the_enumeration(projective, single, kind):
    rng = np.random.default_rng(7 + SCORES.index(kind))
    given = {n: operators(n, projective, single)[1] for n in range(1, 5)}
    for case in range(100):
        n = 1 + case % 4
        trees = TREES[n, projective, single]
        table = random_table(rng, n, kind)
        scores = totals(trees, table)
        if scores.max() == -np.inf:
            refused("example 0: no tree is possible", calls.project, given[n], 0, in_order(table))
            continue
        p = np.exp(scores - scores.max())
        expected, possible = np.zeros((n, n + 1)), np.zeros((n, n + 1), bool)
        for tree, weight, score in zip(trees, p / p.sum(), scores):
            expected[np.arange(n), tree] += weight
            possible[np.arange(n), tree] |= score > -np.inf
        marginals, value, bound = calls.project(given[n], 0, in_order(table))
        assert bound == value
        assert tables(marginals, n) == pytest.approx(expected, abs=1e-9)
        assert not tables(marginals, n)[~possible].any()  # exactly 0, also of trees of two roots
        assert value == pytest.approx(scores.max() + np.log(p.sum()), rel=1e-12, abs=1e-12)


def log_sum_of_trees(weights, single):
    """Return the log-determinant of the Laplacian of the matrix-tree theorem."""
    laplacian = np.diag(weights[:, 1:].sum(axis=1)) - weights[:, 1:]
    if single:
        laplacian[:, 0] = weights[:, 0]
    else:
        laplacian += np.diag(weights[:, 0])
    return np.linalg.slogdet(laplacian)[1]


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("n", [7, 40, 130])
def test_matrix_tree_theorem(single, n):
    rng = np.random.default_rng(n)
    table = rng.normal(size=(n, n + 1)) * 2
    table[np.arange(n), np.arange(1, n + 1)] = -np.inf
    marginals, value, _ = calls.project(operators(n, False, single)[1], 0, in_order(table))
    weights = np.exp(table)
    assert value == pytest.approx(log_sum_of_trees(weights, single), rel=1e-12)
    table_of_marginals = tables(marginals, n)
    assert table_of_marginals.sum(axis=1) == pytest.approx(np.ones(n))
    assert not single or table_of_marginals[:, 0].sum() == pytest.approx(1)
    # Scores of a word may be shifted; the largest range of scores determines the method.
    table[0] += 5
    table[1, 5] = -2000
    again, shifted, _ = calls.project(operators(n, False, single)[1], 0, in_order(table))
    weights[1, 5] = 0
    assert shifted == pytest.approx(log_sum_of_trees(weights, single) + 5, rel=1e-12)


@each_kind
@pytest.mark.parametrize("spread", [1, 700])
def test_marginals_are_the_gradient_of_the_value(projective, single, spread):
    rng = np.random.default_rng(11)
    n = 9
    projection = operators(n, projective, single)[1]
    table = rng.normal(size=(n, n + 1))
    table[2, 7] -= spread
    theta = in_order(table)
    marginals, *_ = calls.project(projection, 0, theta)
    for _ in range(5):
        towards = rng.normal(size=theta.size)
        up, down = (
            calls.project(projection, 0, theta + 1e-5 * sign * towards)[1] for sign in (1, -1)
        )
        assert marginals @ towards == pytest.approx((up - down) / 2e-5, abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("single", [False, True])
def test_long_sentences_use_logs(single):
    # Beyond 220 words charts hold logs; one more word must not matter.
    rng = np.random.default_rng(5)
    n = 219
    table = rng.normal(size=(n, n + 1))
    marginals, value, _ = calls.project(operators(n, True, single)[1], 0, in_order(table))
    wider = np.full((n + 2, n + 3), -800.0)
    wider[:n, : n + 1] = table
    wider[n:, n] = 0
    longer, same, _ = calls.project(operators(n + 2, True, single)[1], 0, in_order(wider))
    assert same == pytest.approx(value, rel=1e-9)
    assert tables(longer, n + 2)[:n, : n + 1] == pytest.approx(tables(marginals, n), abs=1e-9)


@each_kind
def test_samples_follow_the_distribution(projective, single):
    rng = np.random.default_rng(2)
    n = 4
    trees = TREES[n, projective, single]
    for scale in (1, 400):
        table = rng.normal(size=(n, n + 1))
        table[:, 0] -= scale
        scores = totals(trees, table)
        p = np.exp(scores - scores.max())
        p /= p.sum()
        drawn = projection_calls.sample(
            operators(n, projective, single)[1], 0, in_order(table), rng.random((8000, n))
        )
        seen = np.array([(drawn == tree).all(axis=1).sum() for tree in trees])
        assert seen.sum() == 8000
        check_frequencies(seen, p)


@each_kind
@pytest.mark.parametrize("spread", [0, 500])
def test_samples_have_the_marginals(projective, single, spread):
    rng = np.random.default_rng(9)
    n = 13
    table = rng.normal(size=(n, n + 1))
    table[3, 9] -= spread
    projection = operators(n, projective, single)[1]
    marginals, *_ = calls.project(projection, 0, in_order(table))
    drawn = projection_calls.sample(projection, 0, in_order(table), rng.random((1500, n)))
    offsets = np.arange(len(drawn) + 1) * n
    assert first_fault(drawn.ravel(), offsets, single, projective) is None
    seen = (drawn[:, :, None] == np.arange(n + 1)).mean(axis=0)
    error = np.sqrt(np.maximum(tables(marginals, n), 1e-3) / 1500)
    assert (np.abs(seen - tables(marginals, n)) < 5.5 * error).all()


def test_projectivize():
    for n in range(1, 5):
        for single in (False, True):
            every = TREES[n, False, single]
            projective = TREES[n, True, single]
            for tree in every:
                nearest = projectivize(tree, single)
                assert (projective == nearest).all(axis=1).any()
                assert (nearest == tree).sum() == (projective == tree).sum(axis=1).max()
    assert projectivize(np.zeros(5, int)).tolist() == [0] * 5


@each_kind
def test_polytopes_have_trees_as_corners(projective, single):
    rng = np.random.default_rng(4)
    structure = DependencyStructure(projective, single)
    for case in range(12):
        n = 1 + case % 6
        y = all_trees(n, True, True)[0] if n < 5 else np.arange(n)
        every = Arcs(np.zeros((n * n, 1)), n)
        heads, modifiers = every.heads, every.modifiers
        kept = (rng.random(n * n) < (0.7 if case % 2 else 1)) | (y[modifiers - 1] == heads)
        arcs = Arcs(np.zeros((int(kept.sum()), 1)), n, heads[kept], modifiers[kept])
        space, _ = structure.make_space(arcs, None)
        examples = space.pack(arcs)
        polytopes = TreePolytopes(space, examples)
        polytope = polytopes.build(0)
        assert polytopes.exact and polytopes.key(0) == 0
        theta = rng.normal(size=len(arcs.heads)) * (case % 3) + rng.integers(-2, 3, int(kept.sum()))
        label, value, _ = calls.argmax(ask_oracle(space)(make_layout(space, examples)), 0, theta)
        x, best = best_vertex(polytope, theta)
        assert best == pytest.approx(value, abs=1e-7)
        marginals = polytope.marginals(x, len(theta))
        assert marginals.sum() == pytest.approx(n) and marginals @ theta == pytest.approx(value)
        if case % 3:
            assert polytope.decode(x).tolist() == label.tolist()
            assert marginals == pytest.approx(marginals.round())


@each_kind
def test_operators_keep_to_their_memory(projective, single):
    from structsolve.testing._case import Guarded

    rng = np.random.default_rng(0)
    for n, spread in ((1, 3), (2, 3), (3, 3), (5, 3), (5, 0), (13, 3), (16, 0), (30, 3), (30, 0)):
        oracle, projection, best = operators(n, projective, single)
        theta = Guarded(n * n, np.float64, rng.normal(size=n * n) * 10 ** rng.uniform(0, spread))
        uniforms = rng.random((4, n))
        given = [(calls.argmax, oracle), *((calls.kbest, best, k) for k in (1, 3, 20))]
        given += [(projection_calls.sample, projection, uniforms), (calls.project, projection)]
        check_memory(theta, given, n)
