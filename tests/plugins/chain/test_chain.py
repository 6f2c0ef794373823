"""Chain operators against enumeration, on thousands of small cases; then special cases."""

import functools

import numpy as np
import pytest
from chain_cases import KINDS, SIZES, VARIANTS, Case, long_chain
from checks import refused
from enumeration import NONE
from hypothesis import given, settings
from hypothesis import strategies as st

from structsolve import Examples, Problem
from structsolve.part_layout import PartLayout
from structsolve.plugins.chain import ChainStructure
from structsolve.plugins.chain._oracle import ChainKBest, ChainOracle
from structsolve.structure import calls

enumerated = functools.cache(Case)


@pytest.mark.parametrize("variant", VARIANTS)
def test_against_enumeration(variant):
    rng = np.random.default_rng(VARIANTS.index(variant))
    for length, k in SIZES:
        case = enumerated(length, k, *variant)
        for kind in KINDS:
            for _ in range(2):
                case.check(case.theta(kind, rng))


@pytest.mark.parametrize("variant", VARIANTS)
def test_parts_against_enumeration(variant):
    rng = np.random.default_rng(0)
    for length, k in SIZES:
        enumerated(length, k, *variant).check_parts(rng)


@pytest.mark.parametrize("variant", VARIANTS)
def test_ties_go_to_the_smallest_state_last_position_first(variant):
    rng = np.random.default_rng(1)
    for length, k in SIZES:
        case = enumerated(length, k, *variant)
        for kind in ("ties", "equal"):
            theta = case.theta(kind, rng)
            scores = case.scores(theta)
            best = case.labels[scores == scores.max()]
            first = best[np.lexsort(best.T)[0]]
            np.testing.assert_array_equal(calls.argmax(case.oracle, 0, theta)[0], first)


def test_bans():
    case = Case(2, 2)
    theta = np.zeros(case.size)
    with pytest.raises(ValueError, match="banned: found .* expected a label of 2 integers"):
        calls.kbest(case.kbest, 0, theta, 1, banned=[[0]])
    refused("k is 0", calls.kbest, case.kbest, 0, theta, 0)
    labels, values = calls.kbest(case.kbest, 0, theta, 9, banned=case.labels)
    assert labels.shape == (0, 2) and values.shape == (0,)
    labels, _ = calls.kbest(case.kbest, 0, theta, 9, banned=[*case.labels[:3], [5, 5]])
    np.testing.assert_array_equal(labels, case.labels[3:])


def forward_backward(theta):
    """Return node marginals and log-partition of a long chain with K states, by logarithms."""
    unary, transition = theta["node"], theta["transition"]
    alpha, beta = unary.copy(), np.zeros_like(unary)
    alpha[0] += theta["start"]
    for v in range(1, len(unary)):
        alpha[v] += np.logaddexp.reduce(alpha[v - 1][:, None] + transition, axis=0)
    beta[-1] = theta["end"]
    for v in range(len(unary) - 2, -1, -1):
        beta[v] = np.logaddexp.reduce(transition + unary[v + 1] + beta[v + 1], axis=1)
    total = np.logaddexp.reduce(alpha[-1] + beta[-1])
    return np.exp(alpha + beta - total), total


@pytest.mark.parametrize("scale", [0.1, 3, 30, 200])
@pytest.mark.parametrize("k, length", [(26, 40), (5, 1000), (40, 12), (1, 500), (2, 700)])
def test_long_chains_in_both_forms(k, length, scale):
    from structsolve.plugins.chain._projections import ChainSumProduct

    layout, bound_to, theta, views = long_chain(k, length, scale, np.random.default_rng(k))
    expected, total = forward_backward(views)
    marginals, value, _ = calls.project(ChainSumProduct(bound_to), 0, theta)
    blocks = layout.theta_views(marginals, length, length - 1)
    assert value == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(blocks["node"], expected, atol=1e-9)
    assert blocks["transition"].sum() == pytest.approx(length - 1)
    np.testing.assert_allclose(blocks["node"].sum(axis=1), 1, rtol=1e-12)


def test_paths_that_only_pay_in_the_end():
    """Two groups of states without transitions between them: one falls behind, then catches up."""
    from structsolve.plugins.chain._projections import ChainSumProduct

    k, length = 4, 400
    layout, bound_to, theta, views = long_chain(k, length, 0.05, np.random.default_rng(0))
    views["transition"][:2, 2:] = views["transition"][2:, :2] = NONE
    views["node"][: length // 2, :2] -= 20
    views["node"][length // 2 :, :2] += 20
    expected, total = forward_backward(views)
    marginals, value, _ = calls.project(ChainSumProduct(bound_to), 0, theta)
    blocks = layout.theta_views(marginals, length, length - 1)
    assert value == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(blocks["node"], expected, atol=1e-9)
    assert 1e-6 < expected[0, :2].sum() < 1 - 1e-6
    assert not blocks["transition"][:2, 2:].any()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 9, 26, 33])
def test_wrong_numbers_still_give_labels(k, bad):
    rng = np.random.default_rng(k)
    for length in (1, 2, 8, 90):
        _, bound_to, theta, views = long_chain(k, length, 1.0, rng)
        for view in views.values():
            view[rng.random(view.shape) < 0.2] = bad
        label, *_ = calls.argmax(ChainOracle(bound_to), 0, theta)
        assert label.shape == (length,) and label.min() >= 0 and label.max() < k
        labels, _ = calls.kbest(ChainKBest(bound_to), 0, theta, 3)
        assert labels.min() >= 0 and labels.max() < k


def test_states_that_no_one_can_reach_change_nothing():
    rng = np.random.default_rng(0)
    small, large = Case(4, 3), Case(4, 5)
    theta, wide = np.zeros(small.size), np.zeros(large.size)
    for name, view in small.views(theta).items():
        view[...] = rng.normal(size=view.shape)
        target = large.views(wide)[name]
        target[...] = rng.normal(size=target.shape)
        target[tuple(slice(n) for n in view.shape)] = view
    marginals, value, _ = calls.project(small.projection, 0, theta)
    for never in (NONE, -1e4, -300.0):
        large.views(wide)["node"][:, 3:] = never
        wider, same, _ = calls.project(large.projection, 0, wide)
        assert same == pytest.approx(value)
        for name, view in small.views(marginals).items():
            inner = large.views(wider)[name][tuple(slice(n) for n in view.shape)]
            np.testing.assert_allclose(inner, view, atol=1e-12)


def test_kept_exponentials_are_never_trusted():
    """The work memory is reused for other examples, and other code may have overwritten it."""
    rng = np.random.default_rng(0)
    case = Case(4, 5)
    work = calls.work_for(case.projection)
    theta = case.theta("normal", rng)
    for round_ in range(200):
        if rng.random() < 0.4:
            theta = case.theta(rng.choice(["normal", "wide", "forbidden pairs"]), rng)
            case.views(theta)["transition"][0, 0] = 0
        case.views(theta)["node"][...] = rng.normal(size=(4, 5))
        if round_ % 3 == 0:
            first = rng.integers(work.size)
            work[first : first + rng.integers(1, 30)] = rng.choice([0.0, 1.0, np.nan, 1e300, -7.5])
        if case.scores(theta).max() == NONE:
            continue
        expected, value, _ = calls.project(case.projection, 0, theta)
        reused, same, _ = calls.project(case.projection, 0, theta, work)
        assert same == value
        np.testing.assert_array_equal(reused, expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["node", "transition", "start", "end", "edge"])
def test_nan_and_infinity_do_not_pass_for_marginals(name, bad):
    case = Case(3, 3, edges=True)
    theta = np.zeros(case.size)
    case.views(theta)[name].flat[0] = bad
    with pytest.raises(ValueError, match=r"example 0: every labeling is forbidden .*NaN"):
        calls.project(case.projection, 0, theta)
    label, *_ = calls.argmax(case.oracle, 0, theta)
    assert label.min() >= 0 and label.max() < 3
    labels, _ = calls.kbest(case.kbest, 0, theta, 5)
    assert labels.min() >= 0 and labels.max() < 3


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 6),
    st.integers(1, 5),
    st.integers(1, 40),
    st.integers(0, 2**32 - 1),
    st.sampled_from(KINDS),
)
def test_kbest_begins_with_a_shorter_kbest(length, k, n, seed, kind):
    case = Case(length, k)
    theta = case.theta(kind, np.random.default_rng(seed))
    labels, values = calls.kbest(case.kbest, 0, theta, n)
    fewer, first = calls.kbest(case.kbest, 0, theta, max(n // 2, 1))
    np.testing.assert_array_equal(labels[: len(fewer)], fewer)
    np.testing.assert_array_equal(values[: len(fewer)], first)


def test_bad_arguments_are_refused():
    case = Case(2, 3)
    good, label = np.zeros(case.size), np.zeros(2, np.int32)
    assert calls.argmax(case.oracle, 2, np.zeros(case.size + 4))[0].shape == (3,)
    thetas = [
        None,
        [0.0],
        good.astype(np.float32),
        np.zeros(2 * case.size)[::2],
        good[:-1],
        good.reshape(1, -1),
        good.astype(object),
        np.zeros(0),
    ]
    with_theta = [
        lambda theta: calls.argmax(case.oracle, 0, theta),
        lambda theta: calls.kbest(case.kbest, 0, theta, 3),
        lambda theta: calls.max_marginals(case.max_marginals, 0, theta, 3),
        lambda theta: calls.project(case.projection, 0, theta),
        lambda theta: calls.seconds_per_call(case.oracle, 0, theta, 1),
    ]
    for call in with_theta:
        call(good)
        for theta in thetas:
            refused("theta", call, theta)
    for bad in (None, [0, 0], label.astype(np.int64), np.zeros(3, np.int32), label - 1, label + 3):
        for call in (
            lambda x: calls.encode(case.parts, 0, x),
            lambda x: calls.difference(case.parts, 0, label, x),
            lambda x: calls.difference(case.parts, 0, x, label),
        ):
            refused("label|truth", call, bad)
    for i in (-1, 3, 10**9):
        refused(f"example {i}", calls.argmax, case.oracle, i, good)
        refused(f"example {i}", calls.encode, case.parts, i, label)
    refused("k is 0", calls.kbest, case.kbest, 0, good, 0)
    refused("n_states is 4, expected 3", calls.max_marginals, case.max_marginals, 0, good, 4)
    refused("work", calls.project, case.projection, 0, good, np.zeros(3))
    with pytest.raises(TypeError):
        calls.argmax(None, 0, good)
    with pytest.raises(TypeError):
        calls.argmax(case.parts, 0, good)
    refused("expected 36", case.projection.log_partition, 2, good)
    # Operators accept chains without nodes; spaces refuse them unless allowed by name.
    refused("example 1: lengths: found 0", case.space.pack_sizes, [2, 0, 1])
    with_edges = Case(2, 3, edges=True).space.layout
    for edge_offsets, rows in ((None, 0), (np.array([0, 2]), 2)):
        packed = Examples(np.array([0, 2]), edge_offsets=edge_offsets)
        with pytest.raises(ValueError, match=f"example 0: {rows} rows of edges, expected 1"):
            ChainOracle(PartLayout(with_edges, packed))


def test_labels_that_the_parts_lack_are_no_training_data():
    X, Y = [np.eye(2), np.eye(2)], [["a", "b"], ["b", "a"]]
    space, _ = ChainStructure().make_space(X, Y)
    examples = space.pack(X, [["a", "b"], ["b", "c"]], unseen="extra")
    message = "example 1: the true label holds 2, expected states 0 to 1; pack .* unseen='error'"
    for surrogate in ("margin", "crf"):
        refused(message, Problem, space, examples, surrogate=surrogate)
