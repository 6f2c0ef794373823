"""Indexes of rivals against all scores; their claims are checked, and false ones named."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from checks import plugged, refused
from hypothesis import given
from hypothesis import strategies as st
from reference.dense_rows import DenseRows

from structsolve import Named, hookimpl, registry
from structsolve.plugins.extreme.solvers._lsh import nearest, packed
from structsolve.plugins.extreme.solvers.graph import GraphRivals
from structsolve.plugins.extreme.solvers.lsh import LSHRivals, class_rows
from structsolve.plugins.extreme.solvers.rival_checks import ask_rivals, check_rivals
from structsolve.plugins.extreme.solvers.rivals import (
    CertifiedRivals,
    ExactRivals,
    RandomRivals,
    RivalIndex,
    make_rivals,
)
from structsolve.plugins.extreme.weights.postings import Postings


def problem(seed, n=6, d=9, classes=7):
    """Return rows, weights and true classes, with ties and rows of zeros."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, d)) * (rng.random((n, d)) < 0.5)
    W = rng.integers(-2, 3, (d, classes)) * (rng.random((d, classes)) < 0.4)
    if seed % 3 == 0:
        W = W * rng.random(W.shape)
    rows = sp.csr_matrix(X.astype(np.float32))
    return rows, DenseRows(W), rng.integers(-(seed % 2), classes, n).astype(np.int32)


def best(rows, weights, y):
    """Return scores of all rivals: -inf for the true class."""
    scores = rows @ weights.W
    scores[np.arange(len(y))[y >= 0], y[y >= 0]] = -np.inf
    return scores


@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from([0.0, 0.3, 2.0, 50.0]))
def test_bounds_hold_and_scores_are_exact(seed, k, epsilon):
    rows, weights, y = problem(seed)
    indexes = [ExactRivals(), CertifiedRivals(epsilon), RandomRivals(seed % 9 + 1)]
    indexes.append(LSHRivals(bits=seed % 100 + 1, candidates=seed % 5 + 1))
    for index in indexes:
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
    # With as many draws as there are other classes, none is missing.
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
        ("lsh:0", "bits is 0, expected an integer from 1 to 1024"),
        ("lsh:64,0", "candidates is 0"),
        ("graph:0", "neighbors is 0"),
        ("random:0", "k is 0, expected an integer of at least 1"),
        ("random:1.5", "k is 1.5"),
        ("certifed", r"'certifed' .did you mean 'certified'\?.; known: \['certified', "),
        ("exact:3", "expected some of|takes no arguments|takes 1 positional"),
    ],
)
def test_wrong_specs(spec, told):
    refused(told, make_rivals, spec)


def test_wrong_objects():
    with pytest.raises(ValueError, match="epsilon is -0.5"):
        make_rivals(CertifiedRivals(-0.5))
    for wrong in (None, 3, ExactRivals):
        refused(r"known: \['certified', .*or a RivalIndex", make_rivals, wrong, error=TypeError)


class First(RivalIndex):
    """Returns the lowest other class, and the claims it is given."""

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
    with plugged(plugin, "outsider"):
        yield


def test_an_index_from_outside(outsider):
    index = make_rivals("first:0.5")
    assert index.claim == 0.5 and "first" in registry.default().names("rival_indexes")
    assert make_rivals("outsider:first:claim=2").claim == 2
    refused("dict .*structsolve_rival_indexes.*RivalIndex", make_rivals, "none", error=TypeError)


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
    """Returns an answer that another function has damaged."""

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


@pytest.mark.parametrize("bits", [1, 5, 64, 65, 130])
def test_nearest_codes(bits):
    """Compare with bits counted by NumPy, with many ties."""
    rng = np.random.default_rng(bits)
    values = rng.integers(-1, 2, (40, bits)).astype(np.float32)
    codes = packed(values)
    assert codes.shape == (40, -(-bits // 64))
    queries = packed(values[::3].copy())
    for m in (1, 7, 39, 45):
        exclude = rng.integers(-1, 40, len(queries)).astype(np.int32)
        ids = np.zeros((len(queries), m), np.int32)
        nearest(queries, codes, exclude, ids)
        for i in range(len(queries)):
            distance = ((values > 0) != (values[3 * i] > 0)).sum(1)
            order = [c for c in np.argsort(distance, kind="stable") if c != exclude[i]][:m]
            assert [c for c in ids[i] if c >= 0] == sorted(order)


def text_like(seed, n, d, classes):
    """Return rows of unit length and class means, so that the nearest are few among many."""
    rng = np.random.default_rng(seed)
    means = sp.random(classes, d, 0.1, "csr", np.float32, random_state=seed)
    y = rng.integers(0, classes, n).astype(np.int32)
    X = (means[y] + sp.random(n, d, 0.02, "csr", np.float32, random_state=seed + 1)).tocsr()
    norms = np.sqrt(np.asarray(X.multiply(X).sum(1)).ravel())
    X.data /= np.repeat(np.maximum(norms, 1e-9), np.diff(X.indptr)).astype(np.float32)
    X.sort_indices()
    return X, Postings.from_matrix(means.T.tocsr()), y


def recall(index, X, weights, y, k=5):
    index.start(weights)
    best, _, _, _ = weights.top(X, k, exclude=y)
    ids = ask_rivals(index, weights, X, y, k)[0]
    return np.mean([len(set(a) & set(b)) / k for a, b in zip(best.tolist(), ids.tolist())])


def test_hashes_find_more_by_more_bits_and_candidates():
    X, weights, y = text_like(0, 60, 300, 400)
    by_chance = recall(RandomRivals(40), X, weights, y)
    some = recall(LSHRivals(64, 40), X, weights, y)
    assert by_chance < 0.15 < 1.5 * by_chance < some
    assert some < recall(LSHRivals(1024, 40), X, weights, y)
    assert recall(LSHRivals(64, 399), X, weights, y) == 1


def test_a_bit_agrees_as_often_as_the_angle_says():
    """With probability 1 - arccos(S) / pi, S = w.x / (M |x|): equation (9) has cos there."""
    rng = np.random.default_rng(0)
    W = rng.normal(size=(6, 4)).astype(np.float32)
    X = sp.csr_matrix(rng.normal(size=(5, 6)).astype(np.float32))
    index = LSHRivals(1024)
    agree = np.zeros((5, 4))
    for seed in range(10):
        index.start(DenseRows(W), seed)
        index.rivals(X, np.full(5, -1, np.int32), 1)
        queries = packed(np.ascontiguousarray(X @ index._directions[:-1], np.float32))
        differ = queries[:, None] ^ index._codes[None]
        agree += 1 - np.unpackbits(differ.view(np.uint8), axis=2).mean(2)
    cosine = X @ W / np.linalg.norm(X.toarray(), axis=1)[:, None]
    cosine /= np.linalg.norm(W, axis=0).max()
    np.testing.assert_allclose(agree / 10, 1 - np.arccos(cosine) / np.pi, atol=0.02)


@pytest.mark.parametrize("seed", range(10))
def test_hashes_of_changed_classes_are_those_of_a_new_index(seed):
    rows, weights, y = problem(seed, n=20, classes=30)
    rng = np.random.default_rng(seed)
    index = LSHRivals(64, 3)
    index.start(weights)
    before = index.rivals(rows, y, 2)[0]
    some = rng.choice(30, 10, replace=False)
    weights.W[:, some] = rng.normal(size=(9, 10)) * 3
    index.changed(some)
    fresh = LSHRivals(64, 3)
    fresh.start(weights)
    after = index.rivals(rows, y, 2)[0]
    np.testing.assert_array_equal(after, fresh.rivals(rows, y, 2)[0])
    np.testing.assert_array_equal(index._codes, fresh._codes)
    assert (after != before).any()


def test_weights_of_classes():
    X, weights, _ = text_like(1, 5, 40, 30)
    classes = np.array([7, 3, 29])
    expected = weights.to_matrix().toarray()[:, classes].T
    np.testing.assert_array_equal(class_rows(weights, classes).toarray(), expected)


def test_graphs_find_most():
    pytest.importorskip("nmslib")
    X, weights, y = text_like(0, 60, 300, 400)
    assert recall(GraphRivals(), X, weights, y) > 0.8
    index = GraphRivals(walk=3)
    index.start(weights)
    ids, scores, bounds = ask_rivals(index, weights, X[:0], y[:0], 5)
    assert ids.shape == (0, 5)
    empty = sp.csr_matrix((2, 300), dtype=np.float32)
    ids, scores, bounds = ask_rivals(index, weights, empty, np.array([1, -1], np.int32), 3)
    assert ids.tolist() == [[0, 2, 3], [0, 1, 2]] and not scores.any() and np.isinf(bounds).all()
    nothing = Postings.from_matrix(sp.csr_matrix((300, 400), dtype=np.float32))
    index.start(nothing)
    assert ask_rivals(index, nothing, X, np.maximum(y, 1), 1)[0].max() == 0


def test_graphs_score_by_the_weights_as_they_are():
    pytest.importorskip("nmslib")
    X, weights, y = text_like(2, 30, 60, 50)
    rows = DenseRows(weights.to_matrix().toarray())
    index = GraphRivals(walk=20)
    index.start(rows)
    rows.W[:, :10] *= 2
    index.changed(np.arange(10))
    answer = ask_rivals(index, rows, X, y, 3)
    check_rivals(index, rows, X, y, answer, np.arange(30))
    graph = index._graph
    index.changed(np.arange(25))
    ask_rivals(index, rows, X, y, 3)
    assert index._graph is not graph


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "nmslib", None)
    index = make_rivals("graph")
    with pytest.raises(
        ImportError, match=r"needs nmslib.*pip install 'structsolve-learn\[extreme\]'"
    ):
        index.start(problem(0)[1])
