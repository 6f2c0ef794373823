"""The choice between solvers on held-out rows."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from structsolve.plugins.extreme.solvers import choice
from structsolve.plugins.extreme.solvers.base import ExtremeProblem
from structsolve.plugins.extreme.solvers.choice import SelfChoice, missed
from structsolve.plugins.extreme.solvers.one_vs_rest import OneVsRest
from structsolve.plugins.extreme.solvers.one_vs_some import OneVsSome
from structsolve.plugins.extreme.solvers.softmax import SampledSoftmax
from structsolve.plugins.extreme.weights.postings import Postings


def words(rng, n=900, n_classes=30, d=300, own=0.5):
    """Return rows of ten words, of which a share belongs to the row's class."""
    y = rng.integers(0, n_classes, n).astype(np.int32)
    topic = rng.integers(0, d, (n_classes, 8))
    columns = np.where(
        rng.random((n, 10)) < own,
        topic[y[:, None], rng.integers(0, 8, (n, 10))],
        rng.integers(0, d, (n, 10)),
    )
    X = sparse.csr_matrix(
        (np.full(n * 10, 0.3, np.float32), columns.ravel(), np.arange(0, n * 10 + 1, 10)), (n, d)
    )
    X.sum_duplicates()
    X.indptr = X.indptr.astype(np.int64)
    return ExtremeProblem(X, y, n_classes, 1 / n, "auto")


def test_the_better_solver_is_chosen_and_trains_on_all_rows(monkeypatch):
    monkeypatch.setattr(choice, "ALL_ROWS", 0)
    given = words(np.random.default_rng(0))
    # One candidate is bad: a single tiny step, or no rivals.
    spoilt = SelfChoice(softmax=SampledSoftmax(rate=1e-9, last_rate=1e-9))
    result = spoilt.fit(given)
    assert result.settings["solver"] == "one-vs-some"
    assert result.settings["surrogate"] == "squared-hinge"
    alone = OneVsSome().fit(replace(given, surrogate="squared-hinge"))
    np.testing.assert_array_equal(result.weights.weights, alone.weights.weights)
    result = SelfChoice(machines=OneVsSome(keep=100.0)).fit(given)
    assert result.settings["solver"] == "softmax"
    assert result.settings["surrogate"] == "crf"
    alone = SampledSoftmax().fit(replace(given, surrogate="crf", alpha=0.0))
    np.testing.assert_array_equal(result.weights.weights, alone.weights.weights)
    errors = result.settings["trial_errors"]
    assert errors["softmax"] < errors["one-vs-some"] <= 2


def test_one_vs_rest_takes_part_where_it_trains_soon(monkeypatch):
    # Classes that are hard to tell apart: the rows that one-vs-some leaves out matter.
    every = words(np.random.default_rng(0), n=6000, n_classes=100, own=0.3)
    given = replace(every, X=every.X[:3000], y=every.y[:3000], alpha=1 / 3000)
    result = SelfChoice().fit(given)
    assert list(result.settings["trial_errors"]) == ["one-vs-some", "softmax", "one-vs-rest"]
    assert result.settings["solver"] == "one-vs-rest"
    alone = OneVsRest().fit(replace(given, surrogate="squared-hinge"))
    np.testing.assert_array_equal(result.weights.weights, alone.weights.weights)
    some = OneVsSome().fit(replace(given, surrogate="squared-hinge"))
    errors = [missed(one.weights, every.X[3000:], every.y[3000:]) for one in (result, some)]
    assert errors[0] < errors[1]
    monkeypatch.setattr(choice, "ALL_ROWS", given.X.nnz * given.n_classes - 1)
    assert "one-vs-rest" not in SelfChoice().fit(given).settings["trial_errors"]


def test_the_choice_is_the_same_for_any_number_of_threads():
    given = words(np.random.default_rng(1))
    one, two = (SelfChoice().fit(replace(given, n_jobs=jobs)) for jobs in (1, 2))
    assert one.settings == two.settings
    np.testing.assert_array_equal(one.weights.weights, two.weights.weights)


@pytest.mark.parametrize(("n", "n_classes"), [(1, 2), (2, 2), (3, 3), (7, 5)])
def test_a_handful_of_rows_is_enough(n, n_classes):
    given = words(np.random.default_rng(2), n=n, n_classes=n_classes)
    given.y[:] = np.arange(n) % n_classes
    for weight in (None, np.arange(1.0, n + 1), (np.arange(n) == 0).astype(float)):
        result = SelfChoice().fit(replace(given, sample_weight=weight))
        assert result.weights.n_classes == n_classes


def test_errors_are_those_of_the_best_and_of_the_five_best():
    W = sparse.csr_matrix(np.diag(np.arange(1.0, 8)).astype(np.float32))
    X = sparse.csr_matrix(np.ones((4, 7), np.float32))
    # Best first: 6, 5, 4, 3, 2.
    assert missed(Postings.from_matrix(W), X, np.array([6, 3, 0, -1])) == 0.75 + 0.5


def test_seconds_of_the_trial_count_and_callbacks_are_heard():
    given, told = words(np.random.default_rng(3)), []
    result = SelfChoice().fit(given, after=lambda record: told.append(record) or True)
    assert result.stop_reason == "callback"
    assert told == result.history


def test_what_makes_no_sense_is_named():
    given = words(np.random.default_rng(4))
    with pytest.raises(ValueError, match="n_train is 0, expected an integer of at least 1"):
        SelfChoice(n_train=0).fit(given)
    with pytest.raises(ValueError, match="surrogate is 'margin', expected 'auto'"):
        SelfChoice().fit(replace(given, surrogate="margin"))


def test_what_takes_too_much_memory_is_left_out_before_a_trial(monkeypatch):
    monkeypatch.setattr(choice, "ALL_ROWS", 0)
    # Ten words per row: classifiers need memory for their rivals, softmax for all classes.
    given = words(np.random.default_rng(5), n=200, n_classes=30, d=300)
    softmax = SampledSoftmax(dense_from=1)
    needs = {}
    for name, solver, surrogate in (
        ("one-vs-some", OneVsSome(), "squared-hinge"),
        ("softmax", softmax, "crf"),
    ):
        with pytest.raises(ValueError, match="max_memory of 1e-09 GB") as refusal:
            solver.fit(replace(given, surrogate=surrogate, max_memory=1.0))
        needs[name] = 1e9 * float(str(refusal.value).partition("would take ")[2].split()[0])
    small = min(needs, key=needs.__getitem__)
    result = SelfChoice(softmax=softmax).fit(replace(given, max_memory=sum(needs.values()) / 2))
    assert list(result.settings["trial_errors"]) == [small] == [result.settings["solver"]]

    def never(*arguments):
        raise AssertionError("a trial was trained")

    monkeypatch.setattr(OneVsSome, "fit", never)
    monkeypatch.setattr(SampledSoftmax, "fit", never)
    with pytest.raises(ValueError, match="one-vs-some would take .* max_memory of 1e-09 GB"):
        SelfChoice().fit(replace(given, max_memory=1.0))
