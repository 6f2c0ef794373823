"""Chains in float32 side by side: numbers of distributions, marginals and gradients."""

import itertools

import numpy as np
import pytest

from structsolve.batch import Scores, entropy, log_partition, log_proba, marginals, score_space
from structsolve.batch.numbers import number, number_gradient

KINDS = ("log_partition", "log_proba", "entropy", "cross_entropy", "kl_divergence")


class Case:
    """Two batches of scores of the same chains, in float32 and in float64, and labels."""

    def __init__(self, lengths, K, scale=1.0, *, forbid=0.0, ends=False, seed=0):
        rng = np.random.default_rng(seed)
        self.space = score_space("chain", K)
        sizes, rows = self.space.pack_sizes([*map(int, lengths)]), int(np.sum(lengths))
        self.labels = rng.integers(K, size=rows).astype(np.int32)
        self.singles, self.doubles = [], []
        for _ in range(2):
            node, pairs = scale * rng.normal(size=(rows, K)), scale * rng.normal(size=(K, K))
            node[:, 1:][rng.random((rows, K - 1)) < forbid] = -np.inf
            pairs[1:, 1:][rng.random((K - 1, K - 1)) < forbid] = -np.inf
            shared = {"transition": pairs}
            if ends:
                shared |= {"start": rng.normal(size=K), "end": rng.normal(size=K)}
            shared = {name: array.astype(np.float32) for name, array in shared.items()}
            self.singles.append(Scores(node.astype(np.float32), shared, examples=sizes))
            wide = {name: array.astype(np.float64) for name, array in shared.items()}
            wide_node = self.singles[-1].node.astype(np.float64)
            self.doubles.append(Scores(wide_node, wide, examples=sizes))

    def given(self, kind, scores):
        """Arguments of a number."""
        if kind == "log_proba":
            return {"labels": self.labels}
        return {"other": scores[1]} if kind in ("cross_entropy", "kl_divergence") else {}


def cases():
    """Full and partial blocks, lengths apart, ends, forbidden parts, a wide range of scores."""
    lengths = np.random.default_rng(1).integers(1, 12, 37)
    return [
        Case([50] * 32, 26),
        Case(lengths, 5, ends=True),
        Case(lengths, 9, forbid=0.2),
        Case(lengths, 3, 9.0),
        Case([4] * 9, 17, 0.01, ends=True, forbid=0.1),
        Case([1] * 8, 2),
    ]


@pytest.mark.parametrize("case", cases())
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_in_float32_are_those_in_float64(case, kind):
    own, wide = (number(kind, case.space, s[0], **case.given(kind, s))
                 for s in (case.singles, case.doubles))  # fmt: skip
    np.testing.assert_allclose(own, wide, 2e-6, 1e-12)


@pytest.mark.parametrize("case", cases())
def test_marginals_in_float32_are_those_in_float64(case):
    (own, values), (wide, expected) = (
        marginals(case.space, s[0]) for s in (case.singles, case.doubles)
    )
    np.testing.assert_allclose(values, expected, 1e-6, 1e-6)
    np.testing.assert_allclose(own.node, wide.node, 1e-5, 3e-6)
    assert not own.node[np.isneginf(case.doubles[0].node)].any()
    for name in wide.shared:
        np.testing.assert_allclose(own.shared[name], wide.shared[name], 1e-5, 3e-6)


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("case", cases())
@pytest.mark.parametrize("kind", [*KINDS, "cross_entropy by other", "kl_divergence by other"])
def test_gradients_in_float32_are_those_in_float64(case, kind, each):
    kind, _, by_other = kind.partition(" by ")
    if kind in KINDS[3:] and np.isneginf(case.doubles[1].node).any():
        pytest.skip("the divergence is infinite")
    weights = np.random.default_rng(0).normal(size=case.doubles[0].examples.n)
    run = {"weights": weights, "each": each, "by_other": bool(by_other)}
    own, wide = (number_gradient(kind, case.space, s[0], **run, **case.given(kind, s))
                 for s in (case.singles, case.doubles))  # fmt: skip
    np.testing.assert_allclose(own.node, wide.node, 1e-5, 1e-5)
    for name in wide.shared:
        np.testing.assert_allclose(own.shared[name], wide.shared[name], 1e-5, 1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_beside_gradients_are_the_numbers(kind):
    case = Case([3, 20] * 9, 6, ends=True)
    given, values = case.given(kind, case.singles), np.empty(18)
    number_gradient(kind, case.space, case.singles[0], values=values, **given)
    assert (values == number(kind, case.space, case.singles[0], **given)).all()


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_entropies_by_enumeration(shift):
    rng, space = np.random.default_rng(0), score_space("chain", 3)
    node = (16 * rng.normal(size=(10, 4, 3))).round() / 16
    pairs = (16 * rng.normal(size=(3, 3))).round() / 16
    labels = np.array([*itertools.product(range(3), repeat=4)])
    scores = node[:, range(4), labels].sum(2) + pairs[labels[:, :-1], labels[:, 1:]].sum(1)
    p = np.exp(scores - scores.max(1)[:, None])
    p /= p.sum(1)[:, None]
    expected = -(p * np.log(p)).sum(1)
    for dtype, error in ((np.float32, 1e-6), (np.float64, 1e-12)):
        shared = {"transition": (pairs + shift).astype(dtype)}
        given = Scores((node + shift).reshape(-1, 3).astype(dtype), shared,
                       examples=space.pack_sizes([4] * 10))  # fmt: skip
        np.testing.assert_allclose(entropy(space, given), expected, error)
        first = log_proba(space, given, np.tile(labels[7], 10).astype(np.int32))
        np.testing.assert_allclose(first, np.log(p[:, 7]), error)


def test_small_differences_keep_their_digits():
    space, sizes = score_space("chain", 3), score_space("chain", 3).pack_sizes([5] * 8)
    node = np.tile(np.float32([9, 0, 0]), (40, 1)) + np.arange(40, dtype=np.float32)[:, None]
    single = Scores(node, {"transition": np.zeros((3, 3), np.float32)}, examples=sizes)
    wide = Scores(node.astype(float), {"transition": np.zeros((3, 3))}, examples=sizes)
    labels = np.zeros(40, np.int32)
    for kind, given in (("log_proba", {"labels": labels}), ("entropy", {})):
        own, expected = (number(kind, space, s, **given) for s in (single, wide))
        np.testing.assert_allclose(own, expected, 1e-12)
    np.testing.assert_allclose(log_proba(space, wide, labels), -5 * np.log1p(2 * np.exp(-9)), 1e-9)


def test_results_do_not_depend_on_threads_or_neighbours():
    case = Case(np.random.default_rng(2).integers(1, 30, 70), 7, ends=True)
    scores, sizes = case.singles[0], case.singles[0].examples
    one, four = (number_gradient("log_proba", case.space, scores, labels=case.labels, n_jobs=n)
                 for n in (1, 4))  # fmt: skip
    assert (one.node == four.node).all()
    assert all((one.shared[name] == four.shared[name]).all() for name in one.shared)
    values = log_partition(case.space, scores)
    assert (values == log_partition(case.space, scores, n_jobs=4)).all()
    end = int(sizes.offsets[9])
    few = case.space.pack_sizes(np.diff(sizes.offsets)[:9].tolist())
    alone = log_partition(case.space, Scores(scores.node[:end], scores.shared, examples=few))
    assert (values[:9] == alone).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_scores_that_are_no_numbers_are_refused(wrong):
    case = Case([3] * 20, 4)
    case.singles[0].node[43, 2] = wrong
    with pytest.raises(ValueError, match="example 14: the block 'node' holds"):
        log_partition(case.space, case.singles[0])


def test_forbidden_labels_and_chains():
    case = Case([3] * 20, 4)
    case.singles[0].node[30, case.labels[30]] = -np.inf
    values = log_proba(case.space, case.singles[0], case.labels)
    assert values[10] == -np.inf and np.isfinite(np.delete(values, 10)).all()
    case.singles[0].node[30] = -np.inf
    with pytest.raises(ValueError, match="example 10"):
        entropy(case.space, case.singles[0])


@pytest.mark.parametrize("kind", ["cross_entropy", "kl_divergence"])
@pytest.mark.parametrize("first", ["float64", "spans much"])
def test_gradients_by_the_other_scores_if_the_first_need_doubles(kind, first):
    case = Case([4, 7] * 6, 4)
    own, wide = case.singles[0], case.doubles[0]
    if first == "float64":
        own = wide
    else:
        own.shared["transition"][0, 0] = wide.shared["transition"][0, 0] = -40.0
    values, expected = (
        number_gradient(kind, case.space, p, other=q, by_other=True)
        for p, q in ((own, case.singles[1]), (wide, case.doubles[1]))
    )
    np.testing.assert_allclose(values.node, expected.node, 1e-5, 1e-6)


@pytest.mark.parametrize("shifts", [(1e6, 0, 0), (0, 1e6, 0), (0, 0, -1e6), (1e6, -1e6, 5e5)])
def test_constants_cost_no_digits_where_ends_have_scores(shifts):
    rng, case = np.random.default_rng(3), Case([3, 1, 5] * 4, 4)
    exact = {name: (16 * rng.normal(size=4)).round() / 16 for name in ("start", "end")}
    node = (16 * case.doubles[0].node).round() / 16
    pairs, sizes = case.doubles[0].shared["transition"], case.doubles[0].examples
    plain = Scores(node, {"transition": pairs, **exact}, examples=sizes)
    shared = {"transition": pairs} | {
        name: array + shift for (name, array), shift in zip(exact.items(), shifts[1:])
    }
    shared = {name: array.astype(np.float32) for name, array in shared.items()}
    moved = Scores((node + shifts[0]).astype(np.float32), shared, examples=sizes)
    for kind, given in (("log_proba", {"labels": case.labels}), ("entropy", {})):
        own, expected = (number(kind, case.space, s, **given) for s in (moved, plain))
        np.testing.assert_allclose(own, expected, 2e-6)
    own, expected = (marginals(case.space, s)[0] for s in (moved, plain))
    np.testing.assert_allclose(own.node, expected.node, 1e-5, 1e-6)
    totals = log_partition(case.space, plain) + sum(shifts[1:])
    totals += shifts[0] * np.diff(sizes.offsets)
    np.testing.assert_allclose(log_partition(case.space, moved), totals, 1e-7)


def test_ranges_of_messages_do_not_depend_on_neighbours():
    case = Case(np.random.default_rng(0).integers(1, 60, 33), 3, 4.0, ends=True, forbid=0.1)
    scores, sizes = case.singles[0], case.singles[0].examples
    for kind in ("log_partition", "entropy"):
        values = number(kind, case.space, scores)
        for i in range(8, 33):
            rows = scores.node[int(sizes.offsets[i]) : int(sizes.offsets[i + 1])]
            eight = case.space.pack_sizes([len(rows)] * 8)
            alone = Scores(np.tile(rows, (8, 1)), scores.shared, examples=eight)
            assert (number(kind, case.space, alone) == values[i]).all()


def test_small_log_partitions_keep_their_digits():
    rng, space = np.random.default_rng(0), score_space("chain", 5)
    sizes, node = space.pack_sizes([40] * 8), rng.normal(size=(320, 5)).astype(np.float32)
    table = {"transition": rng.normal(size=(5, 5)).astype(np.float32)}
    totals = log_partition(space, Scores(node.astype(float), table, examples=sizes))
    node[::40] -= totals[:, None].astype(np.float32)
    single = Scores(node, table, examples=sizes)
    wide = Scores(node.astype(float), {"transition": table["transition"].astype(float)},
                  examples=sizes)  # fmt: skip
    expected, values = log_partition(space, wide), np.empty(8)
    np.testing.assert_allclose(log_partition(space, single), expected, 1e-9)
    number_gradient("log_partition", space, single, values=values)
    np.testing.assert_allclose(values, expected, 1e-9)


@pytest.mark.filterwarnings("error")
def test_forbidden_ends_do_not_warn():
    case = Case([3] * 12, 4, ends=True)
    for single, wide in zip(case.singles, case.doubles):
        single.shared["start"][1] = wide.shared["start"][1] = -np.inf
    own, wide = (number("kl_divergence", case.space, s[0], other=s[1])
                 for s in (case.singles, case.doubles))  # fmt: skip
    np.testing.assert_allclose(own, wide, 2e-6)
