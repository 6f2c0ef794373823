"""Everything that projections give besides marginals, on thousands of cases; loss matrices."""

from functools import cache

import numpy as np
import pytest
from chain_cases import KINDS, SIZES, VARIANTS
from chain_cases import Case as ChainCase
from checks import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import class_scores
from scipy.optimize import minimize
from scipy.special import entr
from scipy.stats import chisquare

from structsolve import CostMatrix
from structsolve.plugins.multiclass import MulticlassStructure
from structsolve.plugins.multilabel import MultilabelStructure
from structsolve.structure import calls, projection_calls
from structsolve.structure.ask import ask_loss, make_layout

EXTREME = ["normal", "ties", "equal", "huge", "forbidden", "one left"]


def on_classes(k, name, n=3):
    space, _ = MulticlassStructure().make_space(np.zeros((1, 2)), [0], classes=range(k))
    layout = make_layout(space, space.pack(np.zeros((n, 2))))
    return space.layout.node_size, space.make_projection(name)(layout)


@cache
def entropy_on(k):
    return on_classes(k, "entropy", 1)


def entropy_of(p):
    width, projection = entropy_on(len(p))
    return projection_calls.term(projection, 0, np.pad(p, (0, width - len(p))))


def entropy_slope_of(a, b, gamma):
    width, projection = entropy_on(len(a))
    states = (np.pad(x, (0, width - len(x))) for x in (a, b))
    return projection_calls.slope(projection, 0, *states, gamma)


class TestEntropies:
    def test_against_scipy(self):
        rng = np.random.default_rng(0)
        for n in [*range(1, 35), 100, 1001]:
            p = rng.random(n) ** rng.choice([1, 20, 100])
            p[rng.random(n) < 0.2] = 0
            q = rng.random(n)
            assert entropy_of(p) == pytest.approx(entr(p).sum(), rel=1e-13, abs=1e-300)
            for gamma in (0.3, 1 - 1e-12):
                x = (1 - gamma) * p + gamma * q
                slope = -((q - p) * np.log(x)).sum()
                assert entropy_slope_of(p, q, gamma) == pytest.approx(slope, rel=1e-12, abs=1e-13)

    def test_logarithms_of_all_sizes(self):
        rng = np.random.default_rng(1)
        for x in [*10.0 ** rng.uniform(-307, 0, 3000), 1.0, np.nextafter(1, 0), 0.5, 2.3e-308]:
            for n in (1, 8):  # the plain and the vectorised one
                assert entropy_of(np.full(n, x)) == pytest.approx(-n * x * np.log(x), rel=4e-16)
        assert entropy_of(np.full(8, 5e-324)) == pytest.approx(0, abs=1e-300)

    def test_infinite_slopes(self):
        for n in (2, 8, 9, 16):
            a, b = np.zeros((2, n))
            a[0] = b[-1] = 1
            assert entropy_slope_of(a, b, 0.0) == np.inf and entropy_slope_of(a, b, 1.0) == -np.inf
            assert entropy_slope_of(a, b, 0.5) == pytest.approx(0)
            assert entropy_slope_of(a, a, 0.0) == 0


# -- classes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", EXTREME)
def test_sparsemax_meets_its_optimality_conditions(kind):
    rng = np.random.default_rng(0)
    for k in [*range(1, 20), 64, 1000]:
        width, projection = on_classes(k, "euclidean")
        assert not projection.gibbs and not projection.has_samples
        for _ in range(8):
            theta = np.zeros(width)
            theta[:k] = class_scores(k, kind, rng)
            mu, value, bound = calls.project(projection, 1, theta)
            p, s = mu[:k], theta[:k]
            assert not mu[k:].any() and p.min() >= 0 and p.sum() == pytest.approx(1, abs=1e-14)
            assert not p[np.isneginf(s)].any()
            # p = max(s - tau, 0): parts with weight have s - p = tau, others have s <= tau.
            tau = (s - p)[p > 0].max()
            scale = 1e-12 * (1 + np.abs(s[p > 0]).max())
            np.testing.assert_allclose((s - p)[p > 0], tau, rtol=0, atol=scale)
            assert (s[p == 0] <= tau + scale).all()
            expected = (p * np.where(p > 0, s, 0)).sum() - p @ p / 2
            assert value == bound == pytest.approx(expected, rel=1e-13, abs=1e-13)
            assert projection_calls.term(projection, 1, mu) == pytest.approx(-p @ p / 2)


@pytest.mark.parametrize("name", ["entropy", "euclidean"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_no_class_left(name, bad):
    _, projection = on_classes(3, name)
    with pytest.raises(ValueError, match="example 2: every class is forbidden"):
        projection_calls.project_state(projection, 2, np.array([bad, bad, bad, 0.0]))


def test_samples_of_classes():
    rng = np.random.default_rng(0)
    width, projection = on_classes(6, "entropy")
    theta = np.zeros(width)
    theta[:6] = [0.3, -np.inf, 1.0, -40.0, 0.0, -0.5]
    labels = projection_calls.sample(projection, 0, theta, rng.random((20000, 1))).ravel()
    p, _, _ = calls.project(projection, 0, theta)
    seen = np.bincount(labels, minlength=6)
    assert seen[1] == seen[3] == 0
    some = p[:6] > 1e-3
    assert chisquare(seen[some], 20000 * p[:6][some] / p[:6][some].sum()).pvalue > 1e-4
    ends = np.array([[0.0], [np.nextafter(1, 0)]])
    assert projection_calls.sample(projection, 0, theta, ends).ravel().tolist() == [0, 5]


# -- chains ------------------------------------------------------------------------------------


def possible(case, kind, rng):
    """Return scores that allow at least one label."""
    theta = case.theta(kind, rng)
    while not case.scores(theta).max() > -np.inf:
        theta = case.theta(kind if rng.random() < 0.8 else "normal", rng)
    return theta


def states_of(case):
    return np.array([projection_calls.state_of(case.projection, 0, y) for y in case.labels])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_states_of_chains(variant, kind):
    rng = np.random.default_rng(VARIANTS.index(variant))
    for length, k in [size for size in SIZES if size[1] ** size[0] <= 300]:
        case = ChainCase(length, k, *variant)
        theta, P = possible(case, kind, rng), case.projection
        scores = case.scores(theta)
        state, value, bound = projection_calls.project_state(P, 0, theta)
        mu, same, also = calls.project(P, 0, theta)
        assert same == also
        assert bound == value == pytest.approx(same, rel=1e-14, abs=1e-14)
        np.testing.assert_allclose(projection_calls.pool(P, 0, state), mu, atol=1e-12)
        states = states_of(case)
        np.testing.assert_array_equal([projection_calls.pool(P, 0, s) for s in states], case.matrix)
        weights = np.exp(scores - scores.max())
        np.testing.assert_allclose(state, weights / weights.sum() @ states, atol=1e-9)
        assert np.isfinite(state).all()
        # Exactness: the entropy of the state plus its score is the log-partition.
        finite = np.where(np.isinf(theta), 0, theta)
        total = projection_calls.term(P, 0, state) + mu @ finite
        assert total == pytest.approx(value, rel=1e-10, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 7), st.integers(1, 5), st.integers(1, 4), st.sampled_from(KINDS),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_slope_of_chains(variant, length, k, kind, seed):
    rng = np.random.default_rng(seed)
    case = ChainCase(length, k, *VARIANTS[variant])
    P, theta = case.projection, possible(case, kind, rng)
    b, _, _ = projection_calls.project_state(P, 0, theta)
    a = projection_calls.state_of(P, 0, case.labels[rng.integers(len(case.labels))])
    if rng.random() < 0.5:
        a = 0.5 * a + 0.5 * projection_calls.project_state(P, 0, case.theta("normal", rng))[0]
    same = np.abs(a - b).max() == 0
    for gamma in (0.1, 0.5, 0.9):
        up, down = (
            projection_calls.term(P, 0, (1 - g) * a + g * b) for g in (gamma + 1e-6, gamma - 1e-6)
        )
        slope = projection_calls.slope(P, 0, a, b, gamma)
        assert slope == pytest.approx((up - down) / 2e-6, abs=1e-6, rel=1e-6)
    slopes = [projection_calls.slope(P, 0, a, b, g) for g in (0, 1e-9, 0.3, 0.7, 1 - 1e-9, 1)]
    assert same or all(x >= y - 1e-9 * (1 + abs(y)) for x, y in zip(slopes, slopes[1:]))
    if ((a == 0) & (b > 0)).any():
        assert slopes[0] == np.inf
    if ((b == 0) & (a > 0)).any():
        assert slopes[-1] == -np.inf


def test_slope_at_labels_is_infinite_and_signed():
    case = ChainCase(4, 3)
    P, states = case.projection, states_of(case)
    for i, j in np.random.default_rng(0).integers(0, len(states), (200, 2)):
        slopes = [projection_calls.slope(P, 0, states[i], states[j], g) for g in (0.0, 1.0)]
        assert slopes == ([0, 0] if i == j else [np.inf, -np.inf])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_samples_of_chains(variant, kind):
    rng = np.random.default_rng(5)
    for length, k in [(1, 1), (1, 4), (3, 2), (2, 4), (6, 1), (4, 3)]:
        case = ChainCase(length, k, *variant)
        theta = possible(case, kind, rng)
        scores = case.scores(theta)
        n = 4000
        uniforms = rng.random((n, length))
        labels = projection_calls.sample(case.projection, 0, theta, uniforms)
        rows = labels @ k ** np.arange(length)[::-1]
        order = case.labels @ k ** np.arange(length)[::-1]
        weights = np.exp(scores - scores.max())
        p = np.zeros(k**length)
        p[order] = weights / weights.sum()
        seen = np.bincount(rows, minlength=len(p))
        assert not seen[p < 1e-12].any()
        common = n * p > 8
        expected = np.append(n * p[common], n - n * p[common].sum())
        counts = np.append(seen[common], n - seen[common].sum())
        if expected[-1] < 5:
            expected, counts = expected[:-1], counts[:-1]
        if len(expected) > 1 and expected.min() >= 5:
            statistic = ((counts - expected) ** 2 / expected).sum()
            assert statistic < len(expected) + 8 * np.sqrt(2 * len(expected))


def test_samples_of_a_long_chain_have_its_marginals():
    from chain_cases import long_chain

    from structsolve.plugins.chain._projections import ChainSumProduct

    for scale in (0.5, 100.0):  # the scaled form, and the one with logarithms
        rng = np.random.default_rng(0)
        layout, bound_to, theta, _ = long_chain(5, 60, scale, rng)
        P = ChainSumProduct(bound_to)
        mu, _, _ = calls.project(P, 0, theta)
        nodes = layout.theta_views(mu, 60, 59)["node"]
        labels = projection_calls.sample(P, 0, theta, rng.random((4000, 60)))
        seen = (labels[:, :, None] == np.arange(5)).mean(axis=0)
        assert np.abs(seen - nodes).max() < 5 * 0.5 / np.sqrt(4000)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["node", "transition", "start", "end", "edge"])
def test_bad_scores_of_chains(name, bad):
    case = ChainCase(3, 3, edges=True)
    theta = np.zeros(case.size)
    case.views(theta)[name].flat[0] = bad
    for call in (
        projection_calls.project_state,
        lambda P, i, x: projection_calls.sample(P, i, x, np.full((5, 3), 0.5)),
    ):
        refused(r"example 0: every labeling is forbidden .*NaN", call, case.projection, 0, theta)


# -- label sets ---------------------------------------------------------------------------------


def on_label_sets(L, name):
    X, Y = np.zeros((3, 2)), np.zeros((3, L), int)
    space, examples = MultilabelStructure(edges="none").make_space(X, Y)
    layout = make_layout(space, examples)
    return space.layout.node_size, space.make_projection(name)(layout)


@pytest.mark.parametrize("kind", EXTREME)
def test_label_sets_without_pairs(kind):
    rng = np.random.default_rng(0)
    for L in [*range(1, 12), 33, 200]:
        width, soft = on_label_sets(L, "entropy")
        _, hard = on_label_sets(L, "euclidean")
        assert soft.gibbs and not hard.gibbs
        for _ in range(8):
            theta = np.zeros(width)
            theta[:L] = class_scores(L, kind, rng)
            s = theta[:L]
            mu, value, bound = calls.project(soft, 1, theta)
            with np.errstate(over="ignore"):
                np.testing.assert_allclose(mu[:L], 1 / (1 + np.exp(-s)), rtol=1e-14, atol=1e-300)
            total = np.logaddexp(0, s).sum()
            assert value == bound == pytest.approx(total, rel=1e-13, abs=1e-13)
            on = np.where(mu[:L] > 0, s, 0)
            term = projection_calls.term(soft, 1, mu)
            assert term == pytest.approx(entr(mu).sum() + entr(1 - mu).sum(), rel=1e-12, abs=1e-12)
            assert term + mu[:L] @ on == pytest.approx(value, rel=1e-12, abs=1e-9)
            labels = projection_calls.sample(soft, 1, theta, rng.random((50, L)))
            assert not labels[:, mu[:L] == 0].any() and labels[:, mu[:L] == 1].all()
            mu, value, _ = calls.project(hard, 1, theta)
            np.testing.assert_array_equal(mu[:L], np.clip(s, 0, 1))
            on = np.where(mu[:L] > 0, s, 0)
            assert value == pytest.approx((mu[:L] * (on - mu[:L] / 2)).sum())
            assert not mu[L:].any()


def test_label_sets_with_pairs_and_scores_that_are_no_numbers():
    X, Y = np.zeros((3, 2)), np.zeros((3, 4), int)
    space, _ = MultilabelStructure(edges="full").make_space(X, Y)
    layout = make_layout(space, space.pack(X))
    theta = np.zeros(layout.sizes(0)[0])
    mu, value, _ = calls.project(space.make_projection("entropy")(layout), 0, theta)
    assert value == pytest.approx(4 * np.log(2))
    assert space.layout.theta_views(mu, 1, 0)["node"].ravel()[:4] == pytest.approx([0.5] * 4)
    _, soft = on_label_sets(3, "entropy")
    for bad in (np.nan, np.inf):
        theta = np.array([0.0, bad, 0.0, 0.0])
        for call in (
            lambda theta: calls.project(soft, 2, theta),
            lambda theta: projection_calls.sample(soft, 2, theta, np.zeros((1, 3))),
        ):
            refused("example 2, label 1: its score is", call, theta)


@pytest.mark.parametrize("make", [on_classes, on_label_sets])
@pytest.mark.parametrize("name", ["entropy", "euclidean"])
def test_maximum_by_a_general_solver(make, name):
    rng = np.random.default_rng(3)
    for k in (1, 2, 4):
        width, P = make(k, name)
        for _ in range(5):
            theta = np.zeros(width)
            theta[:k] = rng.normal(size=k) * 1.5

            def cost(x, P=P, theta=theta, k=k):
                mu = np.zeros_like(theta)
                mu[:k] = np.clip(x, 0, 1)
                return -projection_calls.term(P, 0, mu) - theta @ mu

            simplex = {"type": "eq", "fun": lambda x: x.sum() - 1}
            answer = minimize(
                cost,
                np.full(k, 1 / k if make is on_classes else 0.4),
                bounds=[(0, 1)] * k,
                constraints=[simplex] if make is on_classes else [],
                method="SLSQP",
                options={"ftol": 1e-12},
            )
            assert calls.project(P, 0, theta)[1] == pytest.approx(-answer.fun, abs=1e-6)


# -- matrices of losses ---------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 5), st.integers(1, 4), st.booleans(), st.booleans(), st.integers(0, 2**32 - 1)
)
def test_costs_are_means_of_losses(length, k, normalized, hamming, seed):
    rng = np.random.default_rng(seed)
    case = ChainCase(length, k)
    matrix = (1.0 if hamming else rng.integers(0, 5, (k, k))) * (1 - np.eye(k))
    loss = CostMatrix(matrix, normalized=normalized)
    truths = rng.permutation(case.labels)[:4]
    p, nu, expected = rng.dirichlet(np.ones(len(truths))), np.zeros(case.size), 0
    turned = np.zeros(len(truths))
    q = rng.dirichlet(np.ones(len(case.labels)))
    bound = ask_loss(case.space, loss)(make_layout(case.space, case.examples))
    for j, (weight, truth) in enumerate(zip(p, truths)):
        values = np.array([calls.loss_value(bound, 0, truth, y) for y in case.labels])
        expected += weight * values
        turned[j] = q @ values
        nu += weight * case.indicator(truth)
    costs, const = projection_calls.costs(bound, 0, nu)
    np.testing.assert_allclose(case.matrix @ costs + const, expected, atol=1e-12)
    costs, const = projection_calls.costs(bound, 0, q @ case.matrix, transposed=True)
    mus = np.array([case.indicator(truth) for truth in truths])
    np.testing.assert_allclose(mus @ costs + const, turned, atol=1e-12)
    twice, more = projection_calls.costs(bound, 0, nu, scale=2.0)
    once, less = projection_calls.costs(bound, 0, nu)
    np.testing.assert_allclose(twice, 2 * once)
    assert more == pytest.approx(2 * less)


def test_faces_refuse_bad_arguments():
    case = ChainCase(2, 3)
    P, theta = case.projection, np.zeros(case.size)
    state = projection_calls.project_state(P, 0, theta)[0]
    size = len(state)
    for wrong in (state[:-1], np.append(state, 0.0), state - 1, state * np.nan, None):
        for call in (
            lambda x: projection_calls.term(P, 0, x),
            lambda x: projection_calls.pool(P, 0, x),
            lambda x: projection_calls.slope(P, 0, x, state, 0.5),
            lambda x: projection_calls.slope(P, 0, state, x, 0.5),
        ):
            refused("state|a:|b:", call, wrong)
    assert size == projection_calls.state_size(P, 0)
    for gamma in (-0.1, 1.1, np.nan):
        refused("gamma", projection_calls.slope, P, 0, state, state, gamma)
    for uniforms in (np.zeros((2, 3)), np.zeros(2), np.ones((1, 2)), -np.ones((1, 2)), None,
                     np.zeros((0, 2)), np.full((1, 2), np.nan)):  # fmt: skip
        refused("uniforms", projection_calls.sample, P, 0, theta, uniforms)
    for i in (-1, 3):
        for call in (
            lambda i: projection_calls.state_size(P, i),
            lambda i: projection_calls.project_state(P, i, theta),
            lambda i: projection_calls.term(P, i, state),
            lambda i: projection_calls.state_of(P, i, np.zeros(2, np.int32)),
            lambda i: projection_calls.sample(P, i, theta, np.zeros((1, 2))),
        ):
            refused(f"example {i}", call, i)
    refused("states from", projection_calls.state_of, P, 0, np.array([0, 3], np.int32))
    _, sparse = on_classes(3, "euclidean")
    with pytest.raises(ValueError, match="has_samples = False"):
        projection_calls.sample(sparse, 0, np.zeros(4), np.zeros((1, 1)))
    refused("has_state = False", projection_calls.state_of, sparse, 0, np.zeros(1, np.int32))


def test_the_bound_after_one_oracle_call():
    """One label's distance to the best under scores from which its own marginals are taken."""
    from structsolve import Problem, get_structure
    from structsolve.lp.ask import ask_oracle
    from structsolve.surrogates import SparseMAP

    rng = np.random.default_rng(0)
    X, Y = [rng.normal(size=(4, 2)) for _ in range(3)], [rng.integers(0, 3, 4) for _ in range(3)]
    space, examples = get_structure("chain").make_space(X, Y)
    projection = Problem(space, examples, surrogate=SparseMAP(max_iter=1)).surrogate.projection
    exact = Problem(space, examples, surrogate=SparseMAP()).surrogate.projection
    oracle, shared = ask_oracle(space)(make_layout(space, examples)), space.layout.shared_size
    for i in range(3):
        theta = rng.normal(size=space.layout.theta_size(4, 3))
        mu, value, bound = calls.project(projection, i, theta)
        tilted = theta.copy()
        tilted[shared:] -= mu[shared:]
        best = calls.argmax(oracle, i, tilted)[1]
        assert value == pytest.approx(theta @ mu - (mu[shared:] @ mu[shared:]) / 2, rel=1e-12)
        assert bound == pytest.approx(value + best - tilted @ mu, rel=1e-12)
        assert bound >= calls.project(exact, i, theta)[1] - 1e-9


def test_large_scores_stay_in_the_hull():
    """A constant of all scores of a tree's arcs changes neither marginals nor the bound's width."""
    from structsolve.batch import Scores, marginals, score_space, value_and_gradient

    trees, rng = score_space("dependency"), np.random.default_rng(0)
    arcs, examples = rng.normal(size=(10, 9)), trees.pack_sizes([3] * 10)
    heads = np.tile([0, 1, 1], 10)
    near = value_and_gradient(trees, Scores(arcs.ravel(), examples=examples), heads, "sparsemap")
    for constant in (1e4, 1e6):
        far = Scores((arcs + constant).ravel(), examples=examples)
        values = value_and_gradient(trees, far, heads, "sparsemap")[0]
        np.testing.assert_allclose(values, near[0], atol=1e-14 * constant)
        total = marginals(trees, far, "euclidean")[0].node.reshape(10, 9).sum(axis=1)
        np.testing.assert_allclose(total, 3, rtol=1e-14)


def test_a_label_that_does_not_ascend_ends_the_search(monkeypatch):
    """The oracle of unions of paths rounds a relaxation, whose bound no label need reach."""
    from structsolve import Problem, get_structure
    from structsolve.plugins.dag.union_program import UnionProgram

    asked, rounded = [], UnionProgram.rounded

    def counted(program, scores):
        asked.append(scores)
        return rounded(program, scores)

    monkeypatch.setattr(UnionProgram, "rounded", counted)
    edges = [(u, v) for v, parents in zip("pqrst", ("ab", "bc", "ac", "bd", "cd")) for u in parents]
    structure = get_structure("dag", hierarchy=edges, labels="leaf-union")
    space, examples = structure.make_space(*structure.sample(0, n=3))
    projection = Problem(space, examples, surrogate="sparsemap").surrogate.projection
    rng, open_bounds = np.random.default_rng(0), 0
    for _ in range(200):
        asked.clear()
        theta = rng.normal(size=space.layout.theta_size(1, 0))
        _, value, bound = calls.project(projection, 0, theta)
        assert len(asked) < 30
        open_bounds += bound > value + 0.01
    assert open_bounds
