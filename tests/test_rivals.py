"""Indexes of rivals against all scores; what they claim is checked, and who lies is named."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from reference.dense_rows import DenseRows

from structsolve import Named, hookimpl, registry
from structsolve.extreme.rival_checks import ask_rivals, check_rivals
from structsolve.extreme.rivals import (
    CertifiedRivals,
    ExactRivals,
    RandomRivals,
    RivalIndex,
    make_rivals,
)


def problem(seed, n=6, d=9, classes=7):
    """Rows, weights and true classes, with ties and rows of zeros."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, d)) * (rng.random((n, d)) < 0.5)
    W = rng.integers(-2, 3, (d, classes)) * (rng.random((d, classes)) < 0.4)
    if seed % 3 == 0:
        W = W * rng.random(W.shape)
    rows = sp.csr_matrix(X.astype(np.float32))
    return rows, DenseRows(W), rng.integers(-(seed % 2), classes, n).astype(np.int32)


def best(rows, weights, y):
    """Scores of all rivals: -inf for the true class."""
    scores = rows @ weights.W
    scores[np.arange(len(y))[y >= 0], y[y >= 0]] = -np.inf
    return scores


@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from([0.0, 0.3, 2.0, 50.0]))
def test_bounds_hold_and_scores_are_exact(seed, k, epsilon):
    rows, weights, y = problem(seed)
    for index in (ExactRivals(), CertifiedRivals(epsilon), RandomRivals(seed % 9 + 1)):
        index.start(weights, seed)
        index.batch(seed)
        ids, scores, bounds = ask_rivals(index, weights, rows, y, k)
        all_scores = best(rows, weights, y)
        assert (ids >= 0).all() and (ids != y[:, None]).all()
        assert all(len(set(row)) == k for row in ids.tolist())
        np.testing.assert_allclose(scores, np.take_along_axis(all_scores, ids, 1), rtol=1e-6)
        assert (np.diff(scores, axis=1) <= 0).all()
        assert (all_scores.max(1) <= scores[:, 0] + bounds + 1e-6).all()
        if index.exact or (epsilon == 0 and isinstance(index, CertifiedRivals)):
            assert (bounds == 0).all()
            np.testing.assert_allclose(scores, -np.sort(-all_scores, axis=1)[:, :k], rtol=1e-6)
        elif isinstance(index, CertifiedRivals):
            assert (bounds <= epsilon).all()


def test_the_solver_may_choose_the_bound():
    rows, weights, y = problem(3, n=40)
    index = CertifiedRivals(0.1)
    index.start(weights)
    assert index.rivals(rows, y, 1, 1.5)[2].max() > 0.1
    entries = index.entries
    assert not index.rivals(rows, y, 1, 0.0)[2].any()
    assert index.entries - entries > entries  # the exact scan reads more


def test_random_rivals_are_uniform_and_depend_on_the_batch_alone():
    _, weights, _ = problem(0, classes=6)
    rows, y = sp.csr_matrix((6000, 9), dtype=np.float32), np.full(6000, 2, np.int32)
    y[::2] = -1
    index = RandomRivals()
    index.start(weights, seed=5)
    index.batch(7)
    first = index.rivals(rows, y, 1)[0]
    counts = np.bincount(first[1::2, 0], minlength=6)
    assert counts[2] == 0
    assert np.abs(counts[[0, 1, 3, 4, 5]] - 600).max() < 100  # four and a half deviations
    assert np.abs(np.bincount(first[::2, 0], minlength=6) - 500).max() < 95
    index.batch(8)
    assert (index.rivals(rows, y, 1)[0] != first).any()
    other = RandomRivals()
    other.start(weights, seed=5)
    other.batch(7)
    np.testing.assert_array_equal(other.rivals(rows, y, 1)[0], first)
    # Of as many draws as there are others, none is left out.
    index = RandomRivals(99)
    index.start(weights)
    assert {tuple(sorted(row)) for row in index.rivals(rows[1::2], y[1::2], 5)[0].tolist()} == {
        (0, 1, 3, 4, 5)
    }


@pytest.mark.parametrize(
    "spec, told",
    [
        ("certified:-1", "epsilon is -1, expected a finite number of at least 0"),
        ("certified:nan", "epsilon is nan"),
        ("certified:inf", "epsilon is inf"),
        ("certified:true", "epsilon is True"),
        ("random:0", "k is 0, expected an integer of at least 1"),
        ("random:1.5", "k is 1.5"),
        ("certifed", r"unknown rival index 'certifed'; known: \['certified', "),
        ("exact:3", "expected some of|takes no arguments|takes 1 positional"),
    ],
)
def test_wrong_specs(spec, told):
    with pytest.raises(ValueError, match=told):
        make_rivals(spec)


def test_wrong_objects():
    with pytest.raises(ValueError, match="epsilon is -0.5"):
        make_rivals(CertifiedRivals(-0.5))
    for wrong in (None, 3, ExactRivals):
        with pytest.raises(TypeError, match=r"known: \['certified', .*or a RivalIndex"):
            make_rivals(wrong)


class First(RivalIndex):
    """Gives the lowest other class, and tells what it is made to tell."""

    name = "first"

    def __init__(self, claim=np.inf, raised=0.0):
        self.claim, self.raised = claim, raised

    def rivals(self, X, exclude, k, epsilon=None):
        ids = (exclude[:, None] == 0) + np.arange(k)[None].astype(np.int32)
        ids += (ids >= exclude[:, None]) & (exclude[:, None] > 0)
        scores = self._weights.scores(X, ids) + np.float32(self.raised)
        return ids.astype(np.int32), scores, np.full(len(ids), float(self.claim))


class Brings:
    @hookimpl
    def structsolve_rival_indexes(self):
        return [Named("first", First, "the lowest other class"), Named("none", dict)]


@pytest.fixture
def outsider():
    plugin = Brings()
    registry.default().register(plugin, "outsider")
    yield
    registry.default().unregister(plugin)


def test_an_index_from_outside(outsider):
    index = make_rivals("first:0.5")
    assert index.claim == 0.5 and "first" in registry.default().names("rival_indexes")
    assert make_rivals("outsider:first:claim=2").claim == 2
    with pytest.raises(TypeError, match="dict .*structsolve_rival_indexes.*RivalIndex"):
        make_rivals("none")


def test_who_lies_about_the_bound_is_named(outsider):
    rows, weights, y = problem(4, n=30)
    index = make_rivals("first:0.5")
    index.start(weights)
    answer = ask_rivals(index, weights, rows, y, 1)
    missed = best(rows, weights, y).max(1) - answer[1][:, 0]
    liar = int(np.flatnonzero(missed > 0.5)[0])
    numbers = np.arange(1000, 1030)
    with pytest.raises(
        ValueError,
        match=rf"rival index 'first' \(.*test_rivals.First\) lies.*example {1000 + liar}: "
        rf".*bound 0.5.*missed by {missed[liar]:.6g}",
    ):
        check_rivals(index, weights, rows, y, answer, numbers)
    index = make_rivals("first")  # knows nothing, and says so
    index.start(weights)
    check_rivals(index, weights, rows, y, ask_rivals(index, weights, rows, y, 1), numbers)
    index = First(raised=0.25)
    index.start(weights)
    with pytest.raises(ValueError, match="'first'.*example 1000: .*score"):
        check_rivals(index, weights, rows, y, ask_rivals(index, weights, rows, y, 1), numbers)


@pytest.mark.parametrize("seed", range(30))
def test_who_tells_the_truth_is_not(seed):
    rows, weights, y = problem(seed, n=20)
    for index in (ExactRivals(), CertifiedRivals(0.7), RandomRivals(2)):
        index.start(weights)
        answer = ask_rivals(index, weights, rows, y, 2)
        check_rivals(index, weights, rows, y, answer, np.arange(20))


class Broken(First):
    """Returns an answer that another function has spoiled."""

    def __init__(self, spoil):
        super().__init__()
        self.spoil = spoil

    def rivals(self, X, exclude, k, epsilon=None):
        return self.spoil(*super().rivals(X, exclude, k, epsilon), exclude)


@pytest.mark.parametrize(
    "spoil, told",
    [
        (lambda ids, scores, bounds, y: (ids, scores), "expected ids, scores and bounds"),
        (lambda ids, scores, bounds, y: (ids[1:], scores, bounds), r"ids of shape \(29, 2\)"),
        (lambda ids, scores, bounds, y: (ids, scores[:, :1], bounds), "scores of shape"),
        (lambda ids, scores, bounds, y: (ids + 7, scores, bounds), "example 0: rival 7"),
        (lambda ids, scores, bounds, y: (ids * 0 + y[:, None], scores, bounds), "its own class"),
        (lambda ids, scores, bounds, y: (ids * 0 - 1, scores, bounds), "no rival"),
        (lambda ids, scores, bounds, y: (ids, scores, np.full(30, np.nan)), "bound nan"),
        (lambda ids, scores, bounds, y: (ids, scores, np.full(30, -1.0)), "bound -1"),
        (lambda ids, scores, bounds, y: (ids, scores * np.nan, bounds), "score nan"),
        (lambda ids, scores, bounds, y: (ids[:, [0, 0]], scores, bounds), "twice"),
        (lambda ids, scores, bounds, y: (ids * 1.5, scores, bounds), "ids of type float64"),
    ],
)
def test_broken_answers(spoil, told):
    rows, weights, y = problem(4, n=30)
    index = Broken(spoil)
    index.start(weights)
    with pytest.raises((ValueError, TypeError), match=f"rival index 'first'.*{told}"):
        ask_rivals(index, weights, rows, np.maximum(y, 0), 2)
