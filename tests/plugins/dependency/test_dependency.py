"""Dependency trees: oracles, k best, marginals and samples against enumeration and witnesses."""

import networkx as nx
import numpy as np
import pytest
from checks import LOSS, refused, reloaded
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.programs import best_vertex
from tree_cases import check_frequencies, check_memory

from structsolve import StructuredSVM
from structsolve.lp.ask import ask_oracle
from structsolve.plugins.dependency import Arcs, DependencyStructure, projectivize
from structsolve.plugins.dependency._shape import first_fault
from structsolve.plugins.dependency.polytope import TreePolytopes
from structsolve.plugins.dependency.space import all_trees
from structsolve.structure import calls, projection_calls
from structsolve.structure.ask import ask_loss, ask_parts, ask_power, ask_projection, make_layout
from structsolve.testing import check_structure

KINDS = [(False, False), (False, True), (True, False), (True, True)]
each_kind = pytest.mark.parametrize("projective, single", KINDS)
TREES = {(n, *kind): all_trees(n, *kind) for n in range(1, 5) for kind in KINDS}


def operators(n, projective, single):
    """Return oracle, projection and k best for a sentence of n words with all arcs."""
    structure = DependencyStructure(projective, single)
    space, examples = structure.make_space(Arcs(np.zeros((n * n, 1)), n), None)
    layout = make_layout(space, examples)
    binds = ask_oracle(space), ask_projection(space, "entropy"), ask_power(space, "kbest")
    return tuple(bind(layout) for bind in binds)


def in_order(table):
    """Return scores in theta's order, from a table [word, head]."""
    n = len(table)
    return np.ascontiguousarray(table[~np.eye(n + 1, dtype=bool)[1:]])


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


def sentences(n=30, seed=0, size=7, projective=False, single=True):
    """Return features of arcs; the first is the truth with noise."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        words = int(rng.integers(1, size + 1))
        table = rng.normal(size=(words, words + 1))
        oracle, *_ = operators(words, projective, single)
        y, *_ = calls.argmax(oracle, 0, in_order(table))
        x = rng.normal(size=(words + 1, words, 3))
        x[..., 0] = table.T + 0.1 * rng.normal(size=table.T.shape)
        X.append(x)
        Y.append(y)
    return X, Y


@each_kind
@pytest.mark.parametrize("surrogate", ["margin", "crf", "probloss"])
def test_training(projective, single, surrogate):
    X, Y = sentences(projective=projective, single=single)
    solver = {"margin": "bcfw", "crf": "sgd", "probloss": "cutting-plane"}[surrogate]
    model = StructuredSVM(
        DependencyStructure(projective, single),
        surrogate=surrogate,
        solver=solver,
        alpha=0.03,
        max_iter=200,
        tol=0.03,
        random_state=0,
    ).fit(X[:20], Y[:20])
    assert model.score(X[20:], Y[20:]) > 0.7
    assert model.coef_["arc"].shape == (3, 1)
    best = model.predict_kbest(X[20:], 2)
    assert [b[0][0].tolist() for b in best] == [y.tolist() for y in model.predict(X[20:])]


def test_forms_of_arcs():
    X, Y = sentences()
    rows = [x.transpose(1, 0, 2)[~np.eye(len(x), dtype=bool)[1:]] for x in X]
    sizes = [x.shape[1] for x in X]
    whole = Arcs(np.concatenate(rows), sizes)
    alone = [Arcs(row, n) for row, n in zip(rows, sizes)]
    shuffled = []
    rng = np.random.default_rng(0)
    for arcs in alone:
        order = rng.permutation(len(arcs.heads))
        shuffled.append(
            Arcs(
                arcs.features[order],
                arcs.n_words[0],
                heads=arcs.heads[order],
                modifiers=arcs.modifiers[order],
            )
        )
    models = [
        StructuredSVM("dependency", alpha=0.01, random_state=0).fit(x, Y)
        for x in (X, whole, alone, shuffled)
    ]
    for model in models:
        assert np.allclose(model.coef_["arc"], models[0].coef_["arc"])
        for x in (X, whole, alone, shuffled):
            assert model.score(x, Y) == models[0].score(X, Y)
    assert len(whole) == 30 and len(whole[3:7]) == 4
    assert np.array_equal(whole[4].features, rows[4]) and whole[4].n_words.tolist() == [sizes[4]]


def test_candidates_only():
    X, Y = sentences(12)
    rng = np.random.default_rng(1)
    for x, y in zip(X, Y):
        barred = rng.random(x.shape[:2]) < 0.4
        barred[y, np.arange(len(y))] = False
        x[barred] = np.nan
    model = StructuredSVM("dependency", alpha=0.01).fit(X, Y)
    for x, y, table in zip(X, model.predict(X), model.predict_marginals(X)):
        assert not np.isnan(x[y, np.arange(len(y)), 0]).any()
        assert not table[np.isnan(x[..., 0])].any()
        assert table.sum(axis=0) == pytest.approx(np.ones(len(y)))


def test_losses():
    X, Y = sentences(3, seed=4)
    space, examples = DependencyStructure().make_space(X, Y)
    guess = np.roll(Y[0], 1)
    wrong = (guess != Y[0]).sum()
    for name, expected in (("hamming", wrong), ("normalized-hamming", wrong / len(guess))):
        native = ask_loss(space, name)(make_layout(space, examples))
        native.check_truths(examples.labels)
        value = calls.loss_value(native, 0, examples.label(0), guess.astype(np.int32))
        assert value == pytest.approx(expected)
        strange = examples.labels.copy()
        strange[-1] = 99
        refused("example 2, word .: the true head is 99, expected 0", native.check_truths, strange)
        refused("found 1 heads, expected", native.check_truths, strange[:1])


def test_saved_models(tmp_path):

    X, Y = sentences(10, projective=True)
    model = StructuredSVM(DependencyStructure(True, False), alpha=0.01).fit(X, Y)
    again = reloaded(model, tmp_path)
    assert [y.tolist() for y in again.predict(X)] == [y.tolist() for y in model.predict(X)]
    assert again.structure.projective and not again.structure.single_root


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


@pytest.mark.parametrize(
    "heads, message",
    [
        ([0, 1, 4], "example 1, word 3: found head 4, expected 0 .the root. to 3"),
        ([0, -1, 1], "example 1, word 2: found head -1"),
        ([0, 2**32 + 1, 1], "example 1, word 2: found head 4294967297"),
        ([0, np.nan, 1], "y, example 1: Input y contains NaN"),
        ([2, 1, 0], "example 1, word 1: its heads lead back to it"),
        ([2, 2, 0], "example 1, word 2: its heads lead back to it .head 2."),
        ([0, 0, 1], "example 1, word 2: it is a second child of the root, expected one"),
        ([0, 1], "example 1: X has 3 rows and y has 2 labels"),
        ([0.5, 0, 1], "continuous"),
        (["a", "b", "c"], "y mixes strings and numbers"),
    ],
)
def test_heads_that_are_no_trees_are_refused(heads, message):
    X = [np.zeros((2, 1, 2)), np.zeros((4, 3, 2))]
    refused(message, StructuredSVM("dependency").fit, X, [[0], heads])


def test_crossing_arcs():
    X = [np.ones((5, 4, 1))]
    with pytest.raises(ValueError, match="example 0, word 2: the arc from its head 4 crosses"):
        StructuredSVM(DependencyStructure(projective=True)).fit(X, [[3, 4, 0, 3]])
    model = StructuredSVM(DependencyStructure(projective=True)).fit(X, [[3, 3, 0, 3]])
    assert 0 <= model.score(X, [[3, 4, 0, 3]]) <= 1


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: [np.zeros((3, 3, 2))], r"example 0: found shape \(3, 3, 2\)"),
        (lambda: [np.zeros((2, 1, 2)), np.zeros((2, 1, 3))], "example 1: found 3 features"),
        (lambda: [np.full((2, 1, 2), np.nan)], "NaN only"),
        (lambda: np.zeros((2, 1)), r"found shape \(1,\)"),
        (lambda: "abc", "X is a str"),
        (list, "X is empty"),
        (lambda: Arcs(np.zeros((3, 1)), 2), "features has 3 rows, expected 4"),
        (lambda: Arcs(np.zeros((1, 1)), 0), "n_words is 0"),
        (lambda: Arcs(np.zeros((2, 1)), 2, [0, 0], [1, 1]), "given twice"),
        (lambda: Arcs(np.zeros((2, 1)), 2, [0, 2], [1, 2]), "arc 1: found head 2 and modifier 2"),
        (lambda: Arcs(np.zeros((1, 1)), 2, [0], [1]), "word 2: found no arc to it"),
        (lambda: Arcs(np.zeros((2, 1)), 2, [0, 1.5], [1, 2]), "heads: found"),
        (lambda: Arcs(np.zeros((2, 1)), 2, [0, 1]), "expected both or neither"),
    ],
)
def test_arcs_that_do_not_fit_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        DependencyStructure().make_space(make(), None)


def test_arcs_and_words_must_fit():
    space, _ = DependencyStructure().make_space(Arcs(np.zeros((4, 1)), 2), None)
    examples = space.pack(Arcs(np.zeros((4, 1)), 2))
    examples.offsets = np.array([0, 3])
    examples.nodes = examples.nodes[:3]
    with pytest.raises(ValueError, match="example 0: 3 arcs, expected 2 for each of 2 words"):
        ask_parts(space)(make_layout(space, examples))
    for name, value in (
        ("_heads", np.array([0, 3], np.int32)),
        ("_heads", np.array([0, -1], np.int32)),
        ("_heads", np.array([0], np.int32)),
        ("starts", np.array([0, 1, 3])),
        ("starts", np.array([0, 3, 2])),
        ("starts", np.array([1, 1, 2])),
        ("starts", np.array([0, 2])),
    ):
        examples = space.pack(Arcs(np.ones((2, 1)), 2, heads=[0, 1], modifiers=[1, 2]))
        setattr(examples.topology["arcs"], name, value)
        with pytest.raises(ValueError, match="starts and heads do not fit words and arcs"):
            ask_parts(space)(make_layout(space, examples))


def test_true_heads_must_be_candidates():
    arcs = Arcs(np.ones((2, 1)), 2, heads=[0, 1], modifiers=[1, 2])
    with pytest.raises(ValueError, match="example 0, word 1: its true head 2 is no candidate"):
        StructuredSVM("dependency").fit(arcs, [[2, 0]])
    stuck = Arcs(np.ones((2, 1)), 2, heads=[2, 1], modifiers=[1, 2])
    model = StructuredSVM("dependency").fit(arcs, [[0, 1]])
    refused("example 0: no tree is possible", model.predict, stuck)


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


def test_features_in_any_sparse_format_and_features_that_are_none():
    from scipy import sparse

    table = sparse.coo_matrix(np.eye(2))
    arcs = Arcs(table, 2, heads=[1, 0], modifiers=[2, 1])
    assert StructuredSVM("dependency").fit(arcs, [[0, 1]]).predict(arcs)[0].tolist() == [0, 1]
    with pytest.raises(ValueError, match="found 0 features of an arc"):
        StructuredSVM("dependency").fit([np.zeros((3, 2, 0))], [[0, 1]])
    for X in (Arcs, lambda x, n: [x.reshape(3, 2, -1)]):
        with pytest.raises(ValueError, match="Complex data not supported"):
            X = X(np.ones((6, 1) if X is not Arcs else (4, 1)) * 1j, 2)
            StructuredSVM("dependency").fit(X, [[0, 1]])
    with pytest.raises(ValueError, match="no 64-bit integer"):
        StructuredSVM("dependency").fit([np.ones((3, 2, 1))], [[0, 2**70]])
