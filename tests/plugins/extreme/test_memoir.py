"""MEMOIR's algorithms against plain Python, its bounds, and how a run stops and resumes."""

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused
from reference.memoir import memoir, objective
from scipy.special import logsumexp

from structsolve.plugins.extreme.solvers.base import RECORD, ExtremeProblem
from structsolve.plugins.extreme.solvers.k_rivals import KRivals
from structsolve.plugins.extreme.solvers.memoir import Memoir
from structsolve.plugins.extreme.solvers.memoir_run import rows_of
from structsolve.plugins.extreme.solvers.rivals import (
    CertifiedRivals,
    ExactRivals,
    RandomRivals,
    RivalIndex,
)
from structsolve.solvers.checkpoint import Checkpoint


def problem(seed=0, n=30, d=12, classes=5, alpha=0.05, **more):
    """Return rows of unit length; every class has at least one, some rows are empty."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.4)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    y = np.concatenate([np.arange(classes), rng.integers(0, classes, n - classes)])
    rows = sp.csr_matrix(X.astype(np.float32))
    given = {"max_iter": 4, "seed": seed, **more}
    return ExtremeProblem(rows, y.astype(np.int32), classes, alpha, **given)


def batches(given, size, count):
    """Return the solver's random draws for its seed."""
    draws = (np.random.default_rng([given.seed, t, 0]) for t in range(1, count + 1))
    return [rng.integers(0, len(given.y), size) for rng in draws]


class Told(RivalIndex):
    """Passes answers on, and records them."""

    name = "told"

    def __init__(self, index):
        self.index, self.answers, self.training = index, {}, True

    def start(self, weights, seed=0, n_jobs=1):
        self.index.start(weights, seed, n_jobs)

    def batch(self, number):
        self.number = number
        self.index.batch(number)

    def rivals(self, X, exclude, k, epsilon=None):
        answer = self.index.rivals(X, exclude, k, epsilon)
        self.answers[self.number] = answer[0]
        return answer


class Second(RivalIndex):
    """Returns the second best rival if it is close to the best one, and reports how close."""

    name = "second"

    def rivals(self, X, exclude, k, epsilon=None):
        ids, scores, _, _ = self._weights.top(X, k + 1, exclude=exclude)
        behind = scores[:, 0] - scores[:, 1]
        first = (behind <= 0.3).astype(int)[:, None]
        ids, scores = (np.take_along_axis(p, first + range(k), 1) for p in (ids, scores))
        return ids, scores, np.where(behind <= 0.3, behind, 0.0).astype(float)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize("steps", ["printed", "mean"])
@pytest.mark.parametrize("rivals", ["exact", "second", "random"])
def test_both_algorithms_as_in_plain_python(seed, penalty, steps, rivals):
    rng = np.random.default_rng(seed)
    alpha = [1.0, 0.1, 0.01][seed % 3] * (0.01 if penalty == "l1" else 1)
    given = problem(seed, classes=3 + seed, alpha=alpha, penalty=penalty)
    index = {"exact": ExactRivals(), "second": Second(), "random": RandomRivals()}
    told = Told(index[rivals])
    given.rivals = told
    size, eta0, eta_step = int(rng.integers(1, 20)), rng.uniform(0.1, 0.9), rng.uniform(0, 0.2)
    if steps == "mean":
        eta0 *= 0.9 / alpha if penalty == "l2" else 10
    solver = Memoir(steps=steps, batch=size, n_iter=17, eta0=eta0, eta_step=eta_step)
    result = solver.fit(given)
    choose = None if rivals == "exact" else lambda t, j, i, scores: told.answers[t][j, 0]
    _, ends = memoir(
        given.X.toarray().astype(float),
        given.y,
        given.n_classes,
        alpha,
        batches(given, size, 17),
        eta0,
        eta_step,
        l1=penalty == "l1",
        mean=steps == "mean",
        rival=choose,
    )
    W = result.weights.to_matrix().toarray()
    scale = max(1, np.abs(ends[-1]).max())
    np.testing.assert_allclose(W / scale, ends[-1] / scale, atol=1e-5)
    assert result.stop_reason == "max_iter"
    assert result.history[-1]["iterations"] == 17
    if penalty == "l2":
        assert result.history[-1]["norm"] <= (1 + 1e-6) / np.sqrt(alpha)


@pytest.mark.parametrize("seed", range(8))
def test_the_mean_of_iterates(seed):
    given = problem(seed, alpha=0.03)
    result = Memoir(batch=4, averaging=True, n_iter=40).fit(given)
    shrunk, _ = memoir(
        given.X.toarray().astype(float), given.y, 5, 0.03, batches(given, 4, 40), 1 / 0.03, 1.0,
        mean=True,
    )  # fmt: skip
    W = result.weights.to_matrix().toarray()
    np.testing.assert_allclose(W, np.mean(shrunk, axis=0), atol=2e-5)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_the_primal_is_a_bound(penalty):
    """Over all rows it is the objective itself, or above it by at most what rivals may miss."""
    for seed in range(8):
        for index in (ExactRivals(), Second(), RandomRivals(2)):
            given = problem(seed, penalty=penalty, rivals=index)
            result = Memoir(batch=7).fit(given)
            record = result.history[-1]
            W = result.weights.to_matrix().toarray().astype(float)
            true = objective(given.X.toarray(), given.y, W, given.alpha, penalty == "l1")
            assert true - 1e-6 <= record["primal"] <= true + 0.3 + 1e-6
            if not isinstance(index, Second):  # random: rows are scanned for the primal
                assert record["primal"] == pytest.approx(true, abs=1e-5)
            known = {ExactRivals: 0.0, RandomRivals: None}
            if type(index) in known:
                assert record["mean_epsilon"] == known[type(index)]
            else:
                assert 0 < record["mean_epsilon"] <= 0.3
            assert set(RECORD) <= set(record) and record["gap"] is None
            assert [r["pass"] for r in result.history] == [1, 2, 3, 4]


def test_the_mean_of_iterates_keeps_its_bound():
    """The bound is of an expectation: the mean of many runs is below it, for inexact rivals too."""
    given = problem(1, n=10, alpha=0.1)
    best = Memoir(batch=50, averaging=True, n_iter=150).fit(given)
    best = best.history[-1]["primal"]
    for index in (ExactRivals(), Second()):
        given.rivals, gaps = index, []
        for given.seed in range(12):
            record = Memoir(batch=1, averaging=True).fit(given).history[-1]
            gaps.append(record["primal"] - best)
            assert record["iterations"] == 40
        assert 0 < np.mean(gaps) <= record["expected_gap"] < 1.2


def test_no_bound_where_theory_has_none():
    for solver in (
        Memoir(batch=5),
        Memoir(batch=5, averaging=True, steps="printed", eta0=0.1, eta_step=0.1),
        Memoir(batch=5, averaging=True, eta0=3.0, eta_step=0.1),
    ):
        assert solver.fit(problem()).history[-1]["expected_gap"] is None
    given = problem(rivals=RandomRivals())
    assert Memoir(batch=5, averaging=True).fit(given).history[-1]["expected_gap"] is None


def test_training_ends_at_the_tolerance():
    given = problem(alpha=1.0, max_iter=4000, tol=0.3)
    result = Memoir(batch=5, averaging=True).fit(given)
    last = result.history[-1]
    assert result.stop_reason == "tol" and last["pass"] < 4000
    assert last["expected_gap"] <= 0.3 * last["primal"]
    assert result.history[-2]["expected_gap"] > 0.3 * result.history[-2]["primal"]


SURROGATES = ["margin", "squared-hinge", "crf", "sparsemap", "max-min", "slack", "unit-margin"]
SURROGATES += ["generalized:1,.5", "beta:.5", "log"]


def by_hand(name, scores):
    """Return surrogates of one row of finite scores; the first score is the true class's."""
    margins = 1 + scores[1:] - scores[0]
    if name in ("margin", "lp"):
        return max(0, margins.max())
    if name == "squared-hinge":
        return max(0, margins.max()) ** 2
    if name == "crf":
        return logsumexp(scores) - scores[0]
    if name == "slack":
        return max(0, margins.max())  # the 0-1 loss: (1 + h) g is the same
    if name == "max-min":
        ordered = np.sort(scores)[::-1]
        sums = np.cumsum(ordered) / np.arange(1, len(scores) + 1)
        return (sums + 1 - 1 / np.arange(1, len(scores) + 1)).max() - scores[0]
    return None


@pytest.mark.parametrize("name", SURROGATES)
def test_surrogates_on_rivals(name):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(40, 5)) * rng.choice([0.3, 1, 3], (40, 1))
    scores[:, 1:] = -np.sort(-scores[:, 1:], axis=1)
    surrogate = KRivals(name)
    values, steps = surrogate.evaluate(scores)
    assert values.shape == (40,) and (values >= -1e-9).all()
    np.testing.assert_allclose(steps.sum(1), 0, atol=1e-6)
    for row in range(40):
        expected = by_hand(name, scores[row])
        if expected is not None:
            assert values[row] == pytest.approx(expected, abs=1e-5)
    # Minus a subgradient: no line from it lies above the surrogate.
    for _ in range(5):
        other = scores + rng.normal(size=scores.shape) * 0.3
        there, _ = surrogate.evaluate(other)
        assert (there >= values - (steps * (other - scores)).sum(1) - 1e-5).all()
    # Fewer rivals are fewer classes.
    scores[::2, 3:] = -np.inf
    fewer, fewer_steps = surrogate.evaluate(scores)
    alone, alone_steps = surrogate.evaluate(scores[::2, :3])
    np.testing.assert_array_equal(fewer[::2], alone)
    np.testing.assert_array_equal(fewer_steps[::2, :3], alone_steps)
    assert not fewer_steps[::2, 3:].any()
    # The possible error of rivals is added to their scores; the value grows by no more than that.
    raised = scores[1::2] + [0, 0.25, 0.25, 0.25, 0.25]
    more = surrogate.evaluate(raised)[0]
    assert (more >= fewer[1::2] - 1e-9).all()


def test_surrogates_by_object_and_wrong_ones():
    from structsolve.surrogates import Slack

    scores = np.array([[0.1, 0.4, 0.2]])
    assert KRivals(Slack()).evaluate(scores)[0] == pytest.approx(1.3)
    refused("unknown surrogate 'hinge'", KRivals, "hinge")
    refused("surrogate is 3, expected a name", KRivals, 3, error=TypeError)


@pytest.mark.parametrize("name", ["squared-hinge", "crf", "max-min", "slack"])
def test_training_with_several_rivals(name):
    given = problem(2, surrogate=name, alpha=0.01, max_iter=60, rivals=CertifiedRivals(0.01))
    result = Memoir(k=3).fit(given)
    first, last = result.history[0]["primal"], result.history[-1]["primal"]
    assert last < 0.9 * first
    right = result.weights.top(given.X, 1)[0][:, 0] == given.y
    assert right.mean() > 0.6  # by chance .2


def same(a, b):
    for name in ("indptr", "classes", "weights"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("penalty, averaging", [("l2", False), ("l2", True), ("l1", False)])
@pytest.mark.parametrize("rivals", ["exact", "certified:.1", "random:2"])
def test_going_on_from_a_file_is_bit_for_bit(tmp_path, penalty, averaging, rivals):
    def given():
        return problem(3, penalty=penalty, rivals=rivals, max_iter=5)

    solver = Memoir(batch=7, averaging=averaging)
    whole = solver.fit(given())
    path = tmp_path / "run"
    solver.fit(given(), lambda record: record["pass"] == 2, Checkpoint(path, "a"))
    rest = solver.fit(given(), checkpoint=Checkpoint(path, "a"))
    same(whole.weights, rest.weights)
    assert len(rest.history) == 5
    for one, other in zip(whole.history, rest.history):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}
    again = solver.fit(given(), checkpoint=Checkpoint(path, "a"))  # nothing is left to do
    same(whole.weights, again.weights)


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "run"
    stored = Checkpoint(path, "a")
    stored.write(lambda: ({"t": "soon"}, {}))
    with pytest.raises(ValueError, match="checkpoint .*run"):
        Memoir(batch=7).fit(problem(), checkpoint=Checkpoint(path, "a"))


@pytest.mark.parametrize("rivals", ["exact", "certified:.1", "random:2"])
def test_threads_change_nothing(rivals):
    one = Memoir(batch=7, k=2).fit(problem(4, n=200, d=40, rivals=rivals))
    two = Memoir(batch=7, k=2).fit(problem(4, n=200, d=40, rivals=rivals, n_jobs=3))
    same(one.weights, two.weights)


def test_interrupts_and_callbacks_keep_what_is_there():
    def interrupt(record):
        if record["pass"] == 2:
            raise KeyboardInterrupt

    stopped = Memoir(batch=7).fit(problem(), interrupt)
    called = Memoir(batch=7).fit(problem(), lambda record: record["pass"] == 2)
    assert (stopped.stop_reason, called.stop_reason) == ("interrupted", "callback")
    same(stopped.weights, called.weights)
    assert len(stopped.history) == 2

    class Interrupted(ExactRivals):
        def batch(self, number):
            if number == 3:
                raise KeyboardInterrupt

    early = Memoir(batch=7).fit(problem(rivals=Interrupted()))
    assert early.stop_reason == "interrupted" and early.history == []
    two = Memoir(batch=7, n_iter=2).fit(problem()).weights  # the third step has only shrunk them
    np.testing.assert_array_equal(early.weights.indptr, two.indptr)
    ratio = early.weights.weights / two.weights
    np.testing.assert_allclose(ratio, 1 - 1 / (1 + 3), rtol=1e-5)


def test_going_on_from_weights():
    first = Memoir(batch=7).fit(problem(5)).weights
    given = problem(5, start=first, max_iter=1)
    result = Memoir(batch=7, eta0=1e-9, eta_step=1.0, ball=False).fit(given)
    np.testing.assert_allclose(
        result.weights.to_matrix().toarray(), first.to_matrix().toarray(), atol=1e-6
    )


def test_weights_of_examples_are_how_often_they_are_drawn():
    weights = np.zeros(30)
    weights[[3, 8]] = 2, 1
    given = problem(6, sample_weight=weights)
    result = Memoir(batch=10).fit(given)
    few = rows_of(given.X, np.array([3, 3, 8]))
    W = result.weights.to_matrix().toarray().astype(float)
    expected = objective(few.toarray(), given.y[[3, 3, 8]], W, given.alpha)
    assert result.history[-1]["primal"] == pytest.approx(expected, rel=1e-5)
    # No other rows have left a trace.
    assert not W[np.setdiff1d(np.arange(12), few.indices)].any()


class Liar(RivalIndex):
    name = "liar"

    def rivals(self, X, exclude, k, epsilon=None):
        worst = np.argmin(self._weights.scores(X, self.others(exclude)), axis=1)
        ids = self.others(exclude)[np.arange(len(exclude)), worst][:, None].astype(np.int32)
        return ids, self._weights.scores(X, ids), np.zeros(len(ids))

    def others(self, exclude):
        classes = np.arange(self._weights.n_classes)
        return np.array([np.delete(classes, c) for c in exclude], np.int32)


def test_a_lying_index_ends_training():
    with pytest.raises(ValueError, match=r"rival index 'liar' .*lies about its bound: example \d+"):
        Memoir(batch=7).fit(problem(7, rivals=Liar()))


def test_memory_is_told_before_it_is_taken():
    with pytest.raises(ValueError, match=r"may take .* MB .*more than max_memory = 0.001 MB"):
        Memoir(batch=7).fit(problem(max_memory=1e3))
    assert Memoir(batch=7).fit(problem(max_memory=1e6)).history


@pytest.mark.parametrize(
    "settings, told",
    [
        ({"steps": "mended"}, r"steps is 'mended', expected one of \['mean', 'printed'\]"),
        ({"batch": 0}, "batch is 0, expected 'auto'"),
        ({"batch": -1.0}, "batch is -1.0"),
        ({"batch": True}, "batch is True"),
        ({"n_iter": 0}, "n_iter is 0, expected an integer of at least 1"),
        ({"eta0": 0}, "eta0 is 0, expected 'auto' or a finite number above 0"),
        ({"eta_step": -0.1}, "eta_step is -0.1, expected 'auto' or a finite number of at least 0"),
        ({"eta0": 50.0, "eta_step": 0.02}, "alpha [*] eta0 .* is 2.45098, expected less than 1"),
        ({"k": 0}, "k is 0, expected an integer of at least 1"),
        ({"averaging": True, "l1": True}, "averaging is True, expected False with penalty='l1'"),
    ],
)
def test_wrong_settings(settings, told):
    given = problem(penalty="l1" if settings.pop("l1", False) else "l2")
    with pytest.raises(ValueError, match=told):
        Memoir(**settings).fit(given)


def test_wrong_problems():
    with pytest.raises(ValueError, match="penalty is 'l3'"):
        Memoir().fit(problem(penalty="l3"))
    with pytest.raises(ValueError, match="alpha is 0, expected a finite number above 0"):
        Memoir().fit(problem(alpha=0))
    with pytest.raises(ValueError, match="epsilon is -1"):
        Memoir().fit(problem(rivals="certified:-1"))


def test_batches_by_the_number_of_classes():
    for batch, expected in [("auto", 30), (2.0, 4), (7, 7), (0.01, 1), (99, 99)]:
        result = Memoir(batch=batch, n_iter=1).fit(problem())
        assert result.settings["batch"] == expected
    given = problem(n=400)
    assert Memoir(n_iter=1).fit(given).settings["batch"] == int(100 * np.sqrt(5))
    printed = Memoir(steps="printed", n_iter=1).fit(given).settings
    assert (printed["eta0"], printed["eta_step"]) == (0.1, 0.02)


def test_rows_are_taken_without_a_copy_of_all():
    rng = np.random.default_rng(0)
    X = sp.random(20, 9, 0.3, "csr", np.float32, random_state=1)
    rows = rng.integers(0, 20, 50)
    taken = rows_of(X, rows)
    np.testing.assert_array_equal(taken.toarray(), X.toarray()[rows])
    assert taken.indices.dtype == np.int32 and rows_of(X, rows[:0]).shape == (0, 9)
