"""One classifier per class on its own few rows: optima, lists of pairs, threads, errors."""

import numpy as np
import pytest
from extreme_cases import rows
from scipy import optimize, sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from structsolve.plugins.extreme.solvers._grouping import pair_lists
from structsolve.plugins.extreme.solvers._one_vs_some import Machines, Space
from structsolve.plugins.extreme.solvers.base import RECORD, ExtremeProblem
from structsolve.plugins.extreme.solvers.class_means import class_means
from structsolve.plugins.extreme.solvers.one_vs_some import OneVsSome
from structsolve.plugins.extreme.solvers.rivals import make_rivals
from structsolve.solvers.checkpoint import Checkpoint


def problem(rng, n=60, d=12, n_classes=6, **more):
    y = rng.integers(0, n_classes, n).astype(np.int32)
    given = {"alpha": 1 / n, "surrogate": "squared-hinge", "max_iter": 20} | more
    return ExtremeProblem(rows(rng, n, d), y, n_classes, **given)


def solved(X, pairs, cost, loss, bias=0.0, dual=None, centres=None, passes=20_000):
    """Weights (C, d), intercepts, figures and dual variables of all machines, to high accuracy."""
    begin, listed, own = pairs
    dual = np.zeros(len(listed), np.float32) if dual is None else dual
    machines = Machines(X, own, begin, listed, cost, dual, centres, loss, bias, passes, 1e-9, 0)
    entries, n_classes = machines.entries(), len(begin) - 1
    space = Space(X.shape[1], int(entries.max()), int(np.diff(begin).max()))
    sizes, features, weights, intercepts, figures = machines.train(
        0, n_classes, space, int(entries.sum()), 0.0
    )
    W = np.zeros((n_classes, X.shape[1]))
    W[np.repeat(np.arange(n_classes), sizes), features] = weights
    return W, intercepts, figures, dual


def lists(rng, y, n_classes, k=3):
    rivals = rng.integers(-1, n_classes, (len(y), k)).astype(np.int32)
    return rivals, *pair_lists(
        np.arange(len(y) + 1), y, rivals, n_classes, np.ones(len(y), np.uint8)
    )


def objective(X, sign, cost, loss, bias, centre=0.0):
    """Return value and gradient of one classifier in (w - centre, b)."""
    offset = X @ (np.zeros(X.shape[1]) + centre)
    dense = np.column_stack([X.toarray().astype(float), np.full(X.shape[0], bias)])

    def value(w):
        m = sign * (dense @ w + offset)
        if loss == "logistic":
            part, slope = np.logaddexp(0, -m), -1 / (1 + np.exp(m))
        else:
            part, slope = np.maximum(0, 1 - m) ** 2, -2 * np.maximum(0, 1 - m)
        return w @ w / 2 + cost @ part, w + dense.T @ (cost * slope * sign)

    return value


def test_lists_hold_each_pair_once_and_in_order():
    rng = np.random.default_rng(0)
    for _ in range(300):
        n, n_classes, k = rng.integers(1, 12), rng.integers(1, 6), rng.integers(0, 5)
        start = np.concatenate([[0], np.cumsum(rng.integers(0, 3, n))])
        labels = rng.integers(0, n_classes, start[-1]).astype(np.int32)
        rivals = rng.integers(-2, n_classes, (n, k)).astype(np.int32)
        wanted = rng.integers(0, 2, n).astype(np.uint8)
        begin, listed, mine = pair_lists(start, labels, rivals, n_classes, wanted)
        for c in range(n_classes):
            of = [c in labels[start[i] : start[i + 1]] for i in range(n)]
            own = [i for i in range(n) if wanted[i] and (of[i] or c in rivals[i])]
            assert listed[begin[c] : begin[c + 1]].tolist() == own
            assert mine[begin[c] : begin[c + 1]].tolist() == [of[i] for i in own]


def test_lists_refuse_classes_that_are_not_there():
    start, y, wanted = np.arange(3), np.array([0, 2], np.int32), np.ones(2, np.uint8)
    with pytest.raises(ValueError, match="labels: found numbers from 0 to 2, expected 0 to 1"):
        pair_lists(start, y, np.zeros((2, 1), np.int32), 2, wanted)
    with pytest.raises(ValueError, match="rivals has entries of 3 or more"):
        pair_lists(start, y, np.full((2, 1), 3, np.int32), 3, wanted)
    with pytest.raises(ValueError, match="start of the examples' labels"):
        pair_lists(np.array([0, 1, 3]), y, np.zeros((2, 1), np.int32), 3, wanted)


@pytest.mark.parametrize("loss", ["squared-hinge", "logistic"])
def test_machines_reach_the_optimum_that_another_optimiser_has(loss):
    rng = np.random.default_rng(1)
    for trial in range(40):
        n, d, n_classes = int(rng.integers(2, 20)), int(rng.integers(1, 7)), 4
        X, y = rows(rng, n, d), rng.integers(0, n_classes, n).astype(np.int32)
        _, begin, listed, mine = lists(rng, y, n_classes)
        cost = rng.choice([0.01, 1, 7, 30], len(listed)).astype(np.float32)
        bias = float(trial % 3)
        # The centres that weights are drawn to; features that no row of the class has are dropped.
        centres = rng.normal(size=(n_classes, d)).astype(np.float32) * (trial % 4 > 1)
        for c in range(n_classes):
            own = listed[begin[c] : begin[c + 1]]
            centres[c, ~np.asarray((X[own] != 0).sum(axis=0), bool).ravel()] = 0
        drawn = sparse.csr_matrix(centres) if trial % 4 > 1 else None
        W, b, figures, _ = solved(X, (begin, listed, mine), cost, loss, bias, None, drawn)
        for c in range(n_classes):
            own = slice(begin[c], begin[c + 1])
            if begin[c] == begin[c + 1]:
                assert not W[c].any()
                assert figures[c].tolist() == [0, 0, 0, 0]
                continue
            sign = np.where(y[listed[own]] == c, 1.0, -1.0)
            value = objective(X[listed[own]], sign, cost[own].astype(float), loss, bias, centres[c])
            best = optimize.minimize(
                value, np.zeros(d + 1), jac=True, method="BFGS", options={"gtol": 1e-9}
            ).fun
            primal, dual, _, kept = figures[c]
            assert kept == pytest.approx(primal, rel=1e-4, abs=1e-6)  # nothing is added
            assert dual <= primal * (1 + 1e-9)
            assert primal == pytest.approx(best, rel=1e-6, abs=1e-9)
            assert dual == pytest.approx(best, rel=1e-6, abs=1e-9)
            here = np.append(W[c] - centres[c], b[c] / bias if bias else 0)
            assert value(here)[0] == pytest.approx(best, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_machines_have_the_weights_of_liblinear(bias):
    rng = np.random.default_rng(2)
    for _ in range(10):
        X, y = rows(rng, 40, 8), rng.integers(0, 3, 40).astype(np.int32)
        _, begin, listed, mine = lists(rng, y, 3, k=2)
        one = np.ones(len(listed), np.float32)
        for loss, C in (("squared-hinge", 1.0), ("logistic", 2.0)):
            W, b, *_ = solved(X, (begin, listed, mine), one * np.float32(C), loss, bias)
            for c in range(3):
                own = listed[begin[c] : begin[c + 1]]
                given = {"C": C, "tol": 1e-9, "max_iter": 100_000, "intercept_scaling": bias or 1}
                if loss == "logistic":
                    peer = LogisticRegression(solver="liblinear", fit_intercept=bias > 0, **given)
                else:
                    peer = LinearSVC(fit_intercept=bias > 0, random_state=0, **given)
                peer.fit(X[own].astype(float), y[own] == c)
                np.testing.assert_allclose(W[c], peer.coef_[0], atol=2e-4)
                np.testing.assert_allclose(b[c], peer.intercept_, atol=2e-4)


@pytest.mark.parametrize("loss", ["squared-hinge", "logistic"])
def test_the_gap_closes_and_a_start_from_the_end_is_the_end(loss):
    rng = np.random.default_rng(3)
    X, y = rows(rng, 200, 30), rng.integers(0, 5, 200).astype(np.int32)
    _, begin, listed, mine = lists(rng, y, 5, k=4)
    cost = np.full(len(listed), 5, np.float32)
    gaps = []
    for passes in (1, 4, 20, 5000):
        *_, figures, dual = solved(X, (begin, listed, mine), cost, loss, 1.0, passes=passes)
        gap = figures[:, 0] - figures[:, 1]
        assert (gap >= -1e-9 * figures[:, 0]).all()
        gaps.append(gap.sum())
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-3 * figures[:, 0].sum() < gaps[0]
    again = solved(X, (begin, listed, mine), cost, loss, 1.0, passes=1, dual=dual.copy())[2]
    np.testing.assert_allclose(again[:, :2], figures[:, :2], rtol=1e-5)


def test_the_answer_is_the_same_for_any_number_of_threads_and_another_for_another_seed():
    rng = np.random.default_rng(4)
    given = problem(rng, n=3000, d=300, n_classes=40, max_iter=2)
    solver = OneVsSome(n_rivals=5)
    one = solver.fit(given)
    for n_jobs in (1, 2, 3):
        given.n_jobs = n_jobs
        other = solver.fit(given)
        for name in ("indptr", "classes", "weights"):
            np.testing.assert_array_equal(getattr(one.weights, name), getattr(other.weights, name))
        assert one.history[0]["primal"] == other.history[0]["primal"]
    given.seed = 1
    assert (solver.fit(given).weights.weights[:50] != one.weights.weights[:50]).any()


@pytest.mark.parametrize(
    ("means", "keep", "intercept"), [(0, 0, 1), (4.0, 0, 1), (4.0, 0.05, 0.3), (0, 0.2, 0.7)]
)
def test_weights_of_the_model_are_those_of_all_pairs_and_the_record_is_their_objective(
    means, keep, intercept
):
    rng = np.random.default_rng(5)
    for loss in ("squared-hinge", "logistic"):
        share = rng.random(60)
        given = problem(rng, surrogate=loss, max_iter=3000, sample_weight=share, alpha=0.01)
        solver = OneVsSome(
            n_rivals=9,
            bias=0.5,
            intercept=float(intercept),
            keep=float(keep),
            means=float(means),
        )
        solved = solver.fit(given)
        record, W = solved.history[0], solved.weights.to_matrix().toarray()
        assert set(RECORD) <= set(record)
        b = solved.weights.intercept
        total = 0.0
        # Rivals that share no feature with the example are left out.
        centres = class_means(given.X, given.own, 6, given.shares, 0.03)
        seen = (given.X @ centres.T).toarray() != 0
        for c in range(6):
            own = np.flatnonzero((given.y == c) | seen[:, c])
            sign = np.where(given.y[own] == c, 1.0, -1.0)
            cost = given.shares[own] / 0.01 * 10
            centre = 2 * centres[c].toarray().ravel()
            value = objective(given.X[own], sign, cost, loss, 0.5, centre)
            total += 0.01 * value(np.append(W[:, c] - centre, b[c] / 0.5))[0]
        assert record["primal"] == pytest.approx(total, rel=1e-4)
        assert 0 <= record["machines_gap"] <= 0.02 * record["primal"]
        assert record["gap"] == pytest.approx(record["primal"] - record["dual"])
        if not means and not keep:
            assert record["gap"] <= 0.02 * record["primal"]


def test_whole_weights_are_repeated_rows():
    rng = np.random.default_rng(6)
    given = problem(rng, n=40, n_classes=4, max_iter=3000, tol=1e-4)
    times = rng.integers(0, 4, 40)
    given.sample_weight = times.astype(float)
    again = np.repeat(np.arange(40), times)
    X = given.X[again]
    X.indptr = X.indptr.astype(np.int64)
    repeated = ExtremeProblem(
        X, given.y[again], 4, given.alpha, "squared-hinge", max_iter=3000, tol=1e-4
    )
    solver = OneVsSome(keep=0.0)
    here, there = solver.fit(given), solver.fit(repeated)
    solved = [run.history[0]["dual"] + run.history[0]["machines_gap"] for run in (here, there)]
    assert solved[0] == pytest.approx(solved[1], rel=0.01)
    assert here.history[0]["dual"] == pytest.approx(there.history[0]["dual"], rel=0.01)


def test_class_means_have_length_one():
    rng = np.random.default_rng(7)
    X, y = rows(rng, 30, 8), rng.integers(0, 5, 30).astype(np.int32)
    y[y == 3] = 2
    share = rng.random(30)
    means = class_means(X, (np.arange(len(y) + 1), y), 5, share, 0.0).toarray().T
    for c in range(5):
        total = share[y == c] @ X[y == c].toarray() if (y == c).any() else np.zeros(8)
        length = np.sqrt(total @ total)
        np.testing.assert_allclose(means[:, c], total / length if length else total, atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_class_means_are_added_before_small_weights_are_left_out(weighted):
    rng = np.random.default_rng(14)
    for keep in (0.0, 0.3):
        # Class 6 has no example, and some examples may have no weight.
        weight = rng.integers(0, 4, 60).astype(float) if weighted else None
        given = problem(rng, sample_weight=weight, n_classes=6)
        given.n_classes = 7
        bare = OneVsSome(n_rivals=3, keep=0.0, means=0.0).fit(given)
        more = OneVsSome(n_rivals=3, keep=keep, means=1.5).fit(given)
        means = class_means(given.X, given.own, 7, given.shares, 0.03).toarray().T
        counts = np.zeros(7)
        np.add.at(counts, given.y, 60 * given.shares)
        expected = bare.weights.to_matrix().toarray() + 1.5 / np.sqrt(1 + 2 * counts) * means
        assert (abs(abs(expected) - keep) > 1e-6)[expected != 0].all()
        expected[abs(expected) <= keep] = 0
        np.testing.assert_allclose(more.weights.to_matrix().toarray(), expected, atol=1e-6)
        assert not expected[:, 6].any()
        for name in ("dual", "machines_gap", "pairs", "visits"):
            assert more.history[0][name] == bare.history[0][name]


def test_amounts_of_class_means_need_class_means_and_one_for_each_class():
    rng = np.random.default_rng(15)
    given = problem(rng)
    _, begin, listed, mine = lists(rng, given.y, 6)
    one = np.ones(len(listed), np.float32)
    rest = (begin, listed, one, one.copy())
    end = ("squared-hinge", 0.0, 5, 0.1, 0, 1.0)
    means = class_means(given.X, given.own, 6, given.shares, 0.0)
    for centres, later in ((None, np.ones(6, np.float32)), (means, np.ones(5, np.float32))):
        with pytest.raises(ValueError, match=f"later has {len(later)} entries, expected centres"):
            Machines(given.X, mine, *rest, centres, *end, later)


class Stop:
    """Ctrl-C at some time: a checkpoint is always due, and an interrupt follows some writes."""

    def __init__(self, path, writes):
        self.file, self.writes = Checkpoint(path, "same"), writes
        self.file.due = lambda: True

    def __getattr__(self, name):
        return getattr(self.file, name)

    def write(self, state):
        self.file.write(state)
        self.writes -= 1
        if self.writes == 0:
            raise KeyboardInterrupt


def same(one, other):
    for name in ("indptr", "classes", "weights", "intercept"):
        np.testing.assert_array_equal(getattr(one.weights, name), getattr(other.weights, name))
    for mine, theirs in zip(one.history, other.history, strict=True):
        assert mine.pop("seconds") >= 0 <= theirs.pop("seconds")
        assert mine == theirs


@pytest.mark.parametrize("writes", [1, 7, 15, 16])
def test_a_run_goes_on_from_its_checkpoint_bit_for_bit(tmp_path, writes):
    given = problem(np.random.default_rng(9), n=600, d=200, n_classes=60)
    solver = OneVsSome(n_rivals=5, intercept=1.0)
    path = tmp_path / "run.checkpoint"
    cut = solver.fit(given, checkpoint=Stop(path, writes))
    assert cut.stop_reason == "interrupted"
    assert len(cut.history) == (writes >= 16)
    again = solver.fit(given, checkpoint=Checkpoint(path, "same"))
    same(again, solver.fit(given))
    same(solver.fit(given, checkpoint=Checkpoint(path, "same")), solver.fit(given))


def test_a_checkpoint_of_other_rows_is_refused(tmp_path):
    rng, path = np.random.default_rng(10), tmp_path / "run.checkpoint"
    OneVsSome().fit(problem(rng), checkpoint=Checkpoint(path, "same"))
    with pytest.raises(ValueError, match="its arrays are not those of its round"):
        OneVsSome().fit(problem(rng, n=50), checkpoint=Checkpoint(path, "same"))


def test_an_interrupt_leaves_class_means(tmp_path):
    given = problem(np.random.default_rng(11), n=600, d=200, n_classes=60)
    cut = OneVsSome().fit(given, checkpoint=Stop(tmp_path / "run.checkpoint", 1))
    means = class_means(given.X, given.own, 60, given.shares, 0.03)
    np.testing.assert_array_equal(cut.weights.to_matrix().toarray(), means.T.toarray())


def test_a_callback_ends_the_run_and_a_small_gap_is_told():
    given = problem(np.random.default_rng(12), max_iter=3000)
    solver = OneVsSome()
    assert solver.fit(given, after=lambda record: record["pass"] == 1).stop_reason == "callback"
    assert solver.fit(given).stop_reason == "tol"
    given.tol = 0.0
    assert solver.fit(given).stop_reason == "max_iter"


def test_more_memory_than_allowed_is_refused_with_the_estimate():
    with pytest.raises(ValueError, match=r"one-vs-some would take .* max_memory of 1e-06 GB"):
        OneVsSome().fit(problem(np.random.default_rng(0), max_memory=1000.0))


@pytest.mark.parametrize("rivals", ["exact", "random:3"])
def test_rivals_of_an_index_take_the_place_of_the_scan(rivals):
    given = problem(np.random.default_rng(13), rivals=make_rivals(rivals))
    record = OneVsSome(n_rivals=3).fit(given).history[0]
    assert record["mean_epsilon"] == (0.0 if rivals == "exact" else None)  # unknown
    assert 60 < record["pairs"] <= 240


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_rivals": 0}, "n_rivals is 0, expected at least 1"),
        ({"epsilon": -0.1}, "epsilon is -0.1, expected at least 0"),
        ({"keep": np.nan}, "keep is nan, expected at least 0"),
        ({"n_rivals": "all"}, "n_rivals is 'all', expected an integer"),
    ],
)
def test_settings_that_make_no_sense_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        OneVsSome(**settings).fit(problem(np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"penalty": "l1"}, "penalty is 'l1', expected 'l2' for one-vs-some"),
        ({"surrogate": "margin"}, "surrogate is 'margin', expected one of"),
        ({"alpha": 0.0}, "alpha is 0.0, expected a positive number"),
    ],
)
def test_problems_of_other_solvers_are_named(more, message):
    with pytest.raises(ValueError, match=message):
        OneVsSome().fit(problem(np.random.default_rng(0), **more))
