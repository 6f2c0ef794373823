"""Roof duality of dense models, in words of bits, against the method for others and HiGHS."""

import numpy as np
import pytest
from random_cases import random_cases
from reference.graphs import (
    KINDS,
    NONE,
    enumerate_labels,
    fewest_halves,
    half_integral_score,
    random_model,
    relaxation,
    scores,
    size,
)

from structsolve.plugins.mrf.cuts._roof_duality import roof_duality
from structsolve.plugins.mrf.tables._model import GraphModel

LIMIT = 32  # nodes that fit into a word, each with its negation
LARGE = 256  # nodes of a dense model
SPARSE = 16  # a dense model of n nodes has n^2 / SPARSE edges


def check(model, kind):
    """Both methods agree, and their result is a point with the value that they claim."""
    close = 1e-11 * size(model) * (1 + len(model.states) + len(model.ends))
    value, state, pairing = roof_duality(model)
    other, other_state, other_pairing = roof_duality(model, small=False)
    if value == NONE or other == NONE:
        assert value == other
        return value, state
    assert value == pytest.approx(other, abs=close)
    for s, p in ((state, pairing), (other_state, other_pairing)):
        assert half_integral_score(model, s, p) == pytest.approx(value, abs=close)
        assert (s < np.where(model.states == 2, 3, 1)).all() and s.min() >= 0
        assert not p[(s[model.ends] != 2).any(axis=1)].any()
    # If entries differ much in size, rounding of the large ones blurs the small ones.
    if kind != "mixed":
        assert (state == 2).sum() == (other_state == 2).sum()
    again = roof_duality(model, repeat=2)
    assert again[0] == value and (again[1] == state).all() and (again[2] == pairing).all()
    return value, state


def weakened(model, factor):
    """Weak nodes leave more to their edges, so more nodes stay open."""
    finite = np.isfinite(model.unary)
    unary = np.where(finite, np.where(finite, model.unary, 0) * factor, model.unary)
    return GraphModel(model.states, model.ends, unary, model.pair)


def dense_model(rng, least, most, kind):
    """Two states, a share of all pairs in any order and direction, some of them twice."""
    n = int(rng.integers(least, most + 1))
    ends = np.transpose(np.triu_indices(n, 1))
    ends = rng.permutation(ends[rng.random(len(ends)) < rng.choice([0.1, 0.3, 1])])
    ends = np.concatenate([ends, ends[: rng.integers(5)]])
    ends = np.where(rng.random((len(ends), 1)) < 0.5, ends, ends[:, ::-1])
    return GraphModel([2] * n, ends, scores(rng, kind, 2 * n), scores(rng, kind, 4 * len(ends)))


@random_cases(1500, kind=KINDS, most=[3, 6, 10, 20, LIMIT, LIMIT + 1], factor=[0, 0.1, 1])
def test_both_ways_agree(seed, kind, most, factor):
    check(weakened(random_model(np.random.default_rng(seed), most, 2, kind), factor), kind)


@random_cases(200, kind=KINDS, most=[64, 130], factor=[0, 0.1, 1, 3])
def test_both_ways_agree_on_large_models(seed, kind, most, factor):
    check(weakened(dense_model(np.random.default_rng(seed), LIMIT, most, kind), factor), kind)


@random_cases(400, kind=KINDS, factor=[0, 0.1, 1])
def test_some_pairs_twice(seed, kind, factor):
    """Two edges of one pair may have different marginals in the relaxation."""
    model = weakened(dense_model(np.random.default_rng(seed), 2, 7, kind), factor)
    value, _ = check(model, kind)
    if kind not in ("mixed", "forbidden"):
        assert value == pytest.approx(relaxation(model), abs=1e-7 * size(model))


@random_cases(500, kind=KINDS, small=[False, True])
def test_no_optimum_has_fewer_halves(seed, kind, small):
    model = random_model(np.random.default_rng(seed), 6, 2, kind)
    value, state, _ = roof_duality(model, small=small)
    if kind != "mixed" and value > NONE:
        assert (state == 2).sum() == fewest_halves(model, value, 1e-9 * size(model))


@pytest.mark.parametrize("kind", ["normal", "ties", "tenths", "huge"])
@pytest.mark.parametrize("n", [1, 2, LIMIT - 1, LIMIT, LIMIT + 1])
def test_sizes_around_the_limit(n, kind):
    rng = np.random.default_rng(n)
    for strength in (0, 1, n / 4):
        ends = np.transpose(np.triu_indices(n, 1))
        unary = strength * scores(rng, kind, 2 * n)
        model = GraphModel([2] * n, ends, unary, scores(rng, kind, 4 * len(ends)))
        value, state = check(model, kind)
        assert value == pytest.approx(relaxation(model), abs=1e-7 * size(model) * n)
        if strength == 0 and n >= LIMIT - 1 and kind == "normal":
            assert (state == 2).all()


@pytest.mark.parametrize("kind", ["normal", "ties"])
@pytest.mark.parametrize("n", [63, 64, 65, 127, 128, 129, LARGE - 1, LARGE, LARGE + 1])
def test_sizes_around_whole_words(n, kind):
    """Weak nodes leave all of them open, strong ones some: any number of words of a set."""
    rng = np.random.default_rng(n)
    ends = np.transpose(np.triu_indices(n, 1))
    for strength in (0, 1, n**0.5, n / 4):
        unary = strength * scores(rng, kind, 2 * n)
        check(GraphModel([2] * n, ends, unary, scores(rng, kind, 4 * len(ends))), kind)


@pytest.mark.parametrize("kind", ["normal", "ties", "forbidden"])
@pytest.mark.parametrize("n", [LIMIT + 1, 64, 100])
def test_numbers_of_edges_around_the_limit(n, kind):
    rng = np.random.default_rng(n)
    pairs = np.transpose(np.triu_indices(n, 1))
    finite = "ties" if kind == "forbidden" else kind
    for m in range(n * n // SPARSE - 1, n * n // SPARSE + 3):
        for strength in (0, 1, 3):
            ends = pairs[rng.permutation(len(pairs))[:m]]
            unary = strength * scores(rng, finite, 2 * n)
            check(GraphModel([2] * n, ends, unary, scores(rng, kind, 4 * m)), kind)


@random_cases(300, stick=range(13), ring=range(1, 7), kind=["normal", "ties", "tenths"])
def test_ways_there_and_back(seed, stick, ring, kind):
    """A path to a ring that cannot be satisfied: flow returns along its own arcs."""
    rng = np.random.default_rng(seed)
    n = stick + 2 * ring + 1
    ends = [(v, v + 1) for v in range(n - 1)] + ([(n - 1, stick)] if ring else [])
    c = 1 + np.abs(scores(rng, kind, len(ends)))
    apart = rng.random(len(ends)) < 0.5
    # An odd number of edges of the ring prefers different ends.
    apart[-1] ^= apart[stick:].sum() % 2 == 0
    pair = np.where(apart[:, None], [[0.0, 1, 1, 0]], [[1.0, 0, 0, 1]]) * c[:, None]
    unary = np.zeros((n, 2))
    unary[0] = scores(rng, kind, 2)
    unary[rng.integers(n)] += scores(rng, kind, 2) / 4
    order = rng.permutation(n)
    model = GraphModel(
        [2] * n, order[np.array(ends)], unary[np.argsort(order)].ravel(), pair.ravel()
    )
    value, _ = check(model, kind)
    assert value == pytest.approx(relaxation(model), abs=1e-7 * size(model) * n)


@random_cases(300, kind=["normal", "ties", "tenths"], forbid=[0, 0.2])
def test_models_that_swapped_states_make_super_modular(seed, kind, forbid):
    """Equal states are better on each edge after some are swapped: one cut is exact."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    ends = np.transpose(np.triu_indices(n, 1))
    ends = rng.permutation(ends)[: rng.integers(0, len(ends) + 1)]
    pair = scores(rng, kind, (len(ends), 2, 2))
    gain = pair[:, 0, 0] + pair[:, 1, 1] - pair[:, 0, 1] - pair[:, 1, 0]
    pair[:, 0, 0] -= np.minimum(gain, 0)
    pair[:, 0, 1][rng.random(len(ends)) < forbid] = -np.inf
    pair[:, 1, 0][rng.random(len(ends)) < forbid] = -np.inf
    unary = scores(rng, kind, (n, 2))
    unary[:, 0][rng.random(n) < forbid / 2] = -np.inf
    swapped = rng.random(n) < 0.5
    for (u, v), table in zip(ends, pair):
        table[:] = table[:: 1 - 2 * swapped[u], :: 1 - 2 * swapped[v]].copy()
    unary[swapped] = unary[swapped, ::-1]
    model = GraphModel([2] * n, ends, unary.ravel(), pair.ravel())
    value, state, pairing = roof_duality(model, small=False)
    labels, of_labels = enumerate_labels(model)
    best = of_labels.max()
    if best == NONE:
        assert value == NONE
        return
    assert value == pytest.approx(best, abs=1e-12 * size(model))
    assert (state < 2).all() and not pairing.any()
    assert of_labels[(labels == state).all(axis=1)] == pytest.approx(
        [best], abs=1e-12 * size(model)
    )


@pytest.mark.parametrize("scale", [5e-324, 1e-320, 1e-300, 1e290])
def test_scores_at_the_ends_of_the_range(scale):
    rng = np.random.default_rng(0)
    for n in (2, 5, 9, LIMIT, LIMIT + 1, 70):
        for _ in range(20 if n <= LIMIT else 5):
            ends = np.transpose(np.triu_indices(n, 1))
            numbers = [rng.integers(-3, 4, k) * scale for k in (2 * n, 4 * len(ends))]
            value, state, _ = roof_duality(GraphModel([2] * n, ends, *numbers))
            assert np.isfinite(value) and set(state) <= {0, 1, 2}
