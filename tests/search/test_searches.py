"""Searches on thousands of small label planes, against enumeration: values, bounds, calls."""

import copy
import pickle

import numpy as np
import pytest
from checks import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from search_cases import (
    KINDS,
    NAMES,
    SURROGATES,
    check_found,
    classes_problem,
    make_surrogate,
    padded,
    random_chains,
    random_classes,
)

import structsolve
from structsolve import registry
from structsolve.search import make_search, trace
from structsolve.surrogates import BiCriteria, Log, Slack
from structsolve.surrogates import calls as surrogate_calls

EXACT = ("bisecting", "binary", "sarawagi", "angular")
names = pytest.mark.parametrize("name", NAMES)
kinds = pytest.mark.parametrize("kind", KINDS)


def told_of(problem, i, scores):
    """Return the search's result for example i at these scores of its classes."""
    return problem.surrogate.trace(i, padded(problem, i, scores), problem.examples.label(i))


def check_classes(kind, seed, name, exact, hull=False, **settings):
    """Check all planes of one cost matrix; return the number of calls."""
    costs, scores = random_classes(kind, np.random.default_rng(seed))
    surrogate, psi = make_surrogate(name, **settings)
    problem, calls = classes_problem(costs, surrogate), []
    cones = settings.get("search") == "angular"
    for i in range(len(costs)):
        told = told_of(problem, i, scores)
        calls.append(told["calls"])
        labels = np.arange(len(costs))[:, None]
        check_found(told, scores - scores[i], costs[i], labels, psi, exact, hull, cones,
                    tol=1e-6 if cones else 0)  # fmt: skip
    return calls


# ---- classes: any set of points ------------------------------------------------------------------


@names
@kinds
def test_the_hull_search_finds_the_relaxed_maximum(kind, name):
    # Where ProbLoss saturates, at margins of 1e4 and losses of 1e-4, rounding leaves 1e-5 open.
    tight = name != "probloss-original" or kind not in ("huge", "mixed scales")
    for seed in range(6):
        calls = check_classes(kind, seed, name, ("hull",) if tight else (), hull=True, relaxed=True)
        assert max(calls) <= 8


@names
@kinds
def test_with_kbest_the_hull_search_finds_the_best_label(kind, name):
    for seed in range(4):
        check_classes(kind, seed, name, ("label",), search="convex-hull", relaxed=False)
        check_classes(kind, seed, name, (), search="convex-hull", relaxed=False, max_kbest=0)


@names
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("normal", "mixed scales")])
def test_counting_finds_the_best_label(kind, name):
    for seed in range(8):
        calls = check_classes(kind, seed, name, ("label",), search="exact")
        assert set(calls) == {1}


@pytest.mark.parametrize("search", EXACT)
@kinds
def test_searches_for_slack_rescaling(kind, search):
    for seed in range(12):
        exact = ("label",) if search == "angular" else ()
        calls = check_classes(kind, seed, "slack", exact, search=search)
        check_classes(kind, seed, "slack", exact, search=search, max_kbest=0)
        assert max(calls) <= 50  # the k best included


def test_golden_sections_close_in():
    """They end by their width, not their calls, mostly at a bound that the best label attains."""
    planes = calls = tight = 0
    for kind in KINDS:
        for seed in range(12):
            costs, scores = random_classes(kind, np.random.default_rng(seed))
            surrogate, _ = make_surrogate("slack", search="sarawagi", max_kbest=0)
            problem = classes_problem(costs, surrogate)
            for i in range(len(costs)):
                told = told_of(problem, i, scores)
                best = max(0, np.max((1 + scores - scores[i]) * costs[i]))
                calls += told["calls"]
                tight += told["outcome"]["label_bound"] <= 1.02 * best + 1e-12
                planes += 1
    # 24 calls and .80 of the planes; with another function to minimise, 50 calls and .70.
    assert calls <= 28 * planes and tight >= 0.77 * planes


@pytest.mark.parametrize("max_calls", [1, 2, 3])
@pytest.mark.parametrize("search", ["convex-hull", *EXACT])
def test_few_calls_leave_an_honest_bound(search, max_calls):
    for name in SURROGATES if search == "convex-hull" else ("slack",):
        for kind in KINDS[::2]:
            relaxed = search == "convex-hull"
            given = {"search": search, "max_calls": max_calls}
            calls = check_classes(kind, 3, name, (), hull=relaxed, relaxed=relaxed, **given)
            assert max(calls) <= max_calls
            for kbest in ({"max_kbest": 0}, {}):
                calls = check_classes(kind, 4, name, (), relaxed=False, **given, **kbest)
                assert max(calls) <= max_calls


@pytest.mark.parametrize("search, name", [("convex-hull", n) for n in SURROGATES] +
                         [(s, "slack") for s in EXACT])  # fmt: skip
def test_stale_memory_changes_no_value(search, name):
    """Every search starts at labels and a lam of scores of very different size."""
    relaxed = search == "convex-hull"
    for kind in KINDS:
        rng = np.random.default_rng(5)
        costs, scores = random_classes(kind, rng, 7)
        surrogate, psi = make_surrogate(name, search=search, relaxed=relaxed)
        problem, labels = classes_problem(costs, surrogate), np.arange(7)[:, None]
        exact = ("hull",) if relaxed else ("label",) if search == "angular" else ()
        if name == "probloss-original":
            exact = ()
        for _ in range(2):
            for i in range(7):
                old = rng.normal(size=7) * 10.0 ** rng.integers(-4, 5)
                theta, truth = padded(problem, i, old), problem.examples.label(i)
                surrogate_calls.cut(problem.surrogate, i, theta, truth)
                told = told_of(problem, i, scores)
                again = told_of(problem, i, scores)
                assert told["outcome"] == again["outcome"]  # tracing leaves the memory alone
                check_found(told, scores - scores[i], costs[i], labels, psi, exact, relaxed,
                            search == "angular", tol=1e-6)  # fmt: skip


@settings(max_examples=60)
@given(
    name=st.sampled_from(list(SURROGATES)),
    scores=st.lists(
        st.one_of(st.integers(-5, 5).map(float), st.floats(-100, 100)), min_size=1, max_size=8
    ),
    data=st.data(),
)
def test_any_plane(name, scores, data):
    K = len(scores)
    loss = st.one_of(st.integers(0, 4).map(float), st.floats(0.01, 100))
    costs = np.array(
        data.draw(st.lists(st.lists(loss, min_size=K, max_size=K), min_size=K, max_size=K))
    )
    np.fill_diagonal(costs, 0)
    scores, labels = np.array(scores), np.arange(K)[:, None]
    for relaxed in (True, False):
        surrogate, psi = make_surrogate(name, search="convex-hull", relaxed=relaxed)
        problem = classes_problem(costs, surrogate)
        for i in range(K):
            told = told_of(problem, i, scores)
            check_found(told, scores - scores[i], costs[i], labels, psi,
                        ("hull",) if relaxed else ("label",), relaxed)  # fmt: skip


# ---- the rest of the interface -------------------------------------------------------------------


def test_jobs_change_nothing():
    rng = np.random.default_rng(0)
    structure, X, Y = random_chains(rng, n=40)
    space, examples = structure.make_space(X, Y)
    answers = []
    for jobs in (1, 2, 3):
        problem = structsolve.Problem(space, examples, surrogate="slack")
        draw = np.random.default_rng(1)
        answers.append([problem.bounds(draw.normal(size=problem.dim), jobs) for _ in range(4)])
        answers[-1].append((problem.surrogate.memory_of_examples()["labels"], 0))
    for other in answers[1:]:
        for (bounds, calls), (bounds0, calls0) in zip(other, answers[0]):
            np.testing.assert_array_equal(bounds, bounds0)
            assert calls == calls0


def test_one_search_object_for_two_problems():
    """A search does not remember the problem that it was last bound to."""
    for name in ("exact", "convex-hull", "angular"):
        search = make_search(name)
        surrogate = Slack(search=search, relaxed=False)
        rng = np.random.default_rng(0)
        costs = rng.integers(0, 4, (5, 5)) * (1 - np.eye(5))
        first, scores = classes_problem(costs, surrogate), rng.normal(size=5)
        before = told_of(first, 0, scores)["outcome"]
        for other in (np.ones((17, 17)) - np.eye(17), np.zeros((1, 1))):
            classes_problem(other, surrogate)
            assert told_of(first, 0, scores)["outcome"] == before


@pytest.mark.parametrize("name", registry.default().names("searches"))
def test_copies(name):
    """clone() of scikit-learn copies parameters deeply; processes pickle them."""
    ours = make_search(name, 7, 1e-3)
    for other in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert type(other) is type(ours) and other is not ours
        for key in ("name", "max_calls", "tol", "fractional", "product_only", "constrained"):
            assert getattr(other, key) == getattr(ours, key)


def test_trace():
    structure, X, Y = random_chains(np.random.default_rng(0))
    space, examples = structure.make_space(X, Y)
    problem = structsolve.Problem(space, examples, surrogate="slack")
    result = problem.trace(0, np.zeros(problem.dim))
    assert result.value <= result.bound and result.calls == len(result.path)
    assert sum(share for _, share in result.mixture) == pytest.approx(1)
    with pytest.raises(ValueError, match="makes one oracle call and no search"):
        structsolve.Problem(space, space.pack(X, Y)).trace(0, np.zeros(problem.dim))
    surrogate, truth = problem.surrogate, problem.examples.label(0)
    size, length = surrogate.layout.sizes(0)
    again = trace(surrogate, 0, np.zeros(size), truth)
    np.testing.assert_array_equal(again.label, result.label)
    assert (again.value, again.bound, again.calls) == (result.value, result.bound, result.calls)
    for bad in (
        np.zeros(size + 1),
        np.zeros((size, 1)),
        np.full(size, np.nan),
        np.full(size, np.inf),
    ):
        refused("theta: found", surrogate.trace, 0, bad, truth)
    for bad in (np.zeros(length + 1, np.int32), np.full(length, 3, np.int32), truth.tolist()):
        refused("truth: ", surrogate.trace, 0, np.zeros(size), bad)
    for i in (-1, problem.n):
        refused(f"example {i} of {problem.n}", surrogate.trace, i, np.zeros(size), truth)


def test_max_calls_is_any_integer():
    structure, X, Y = random_chains(np.random.default_rng(0))
    space, examples = structure.make_space(X, Y)
    structsolve.Problem(space, examples, surrogate=Slack(max_calls=np.int32(9)))


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"search": "simplex"}, "unknown search 'simplex'; known: "),
        ({"max_calls": 0}, "max_calls is 0, expected 1 to 255"),
        ({"max_calls": 256}, "max_calls is 256, expected 1 to 255"),
        ({"max_calls": 2.5}, "max_calls is 2.5, expected an integer"),
        ({"max_calls": True}, "max_calls is True, expected an integer"),
        ({"tol": -1.0}, "tol is -1.0, expected a number from 0 to 1"),
        ({"tol": np.nan}, "tol is nan, expected a number from 0 to 1"),
        ({"search": "bisecting", "relaxed": True}, "maximises over labels, not over their hull"),
    ],
)
def test_what_is_refused(settings, message):
    structure, X, Y = random_chains(np.random.default_rng(0))
    space, examples = structure.make_space(X, Y)
    refused(message, structsolve.Problem, space, examples, surrogate=Slack(**settings))


def test_searches_for_a_product_refuse_other_psis():
    structure, X, Y = random_chains(np.random.default_rng(0))
    space, examples = structure.make_space(X, Y)
    for search in ("bisecting", "binary", "sarawagi", "angular"):
        with pytest.raises(ValueError, match=f"search '{search}' is for slack rescaling alone"):
            structsolve.Problem(space, examples, surrogate=Log(search=search))


def test_counting_refuses_what_does_not_count():
    costs = np.array([[0, 1.0], [np.pi, 0]])
    problem = classes_problem(costs, Slack(search="exact"))  # of one cost everything counts
    assert problem.n == 2
    costs = np.array([[0, 1, np.pi], [1, 0, 1], [1, 1, 0]])
    refused("needs a loss that counts", classes_problem, costs, Slack(search="exact"))


def test_python_psis_search_as_native_ones_do():
    class Product:
        affine = True

        def value(self, h, g):
            return (h + 1) * g

        def partials(self, h, g):
            return g, h + 1

    for kind in KINDS:
        costs, scores = random_classes(kind, np.random.default_rng(2), 5)
        native, python = (classes_problem(costs, s) for s in (Slack(), BiCriteria(Product())))
        for i in range(5):
            theta = padded(native, i, scores)
            truth = native.examples.label(i)
            one, other = (p.surrogate.trace(i, theta, truth) for p in (native, python))
            assert one["outcome"] == pytest.approx(other["outcome"], rel=1e-12, abs=1e-300)
