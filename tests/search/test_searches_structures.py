"""Searches on chains, label sets, graphs and Python structures, against enumeration."""

import numpy as np
import pytest
from python_structures import py_chain
from reference import cones
from reference import psi as reference
from reference.searches import points
from scipy.optimize import linprog
from search_cases import NAMES, check_problem, random_chains

import structsolve
from structsolve import CostMatrix
from structsolve.batch import Scores, score_space, value_and_gradient
from structsolve.potentials.calls import score
from structsolve.structure.losses import LabelCount
from structsolve.surrogates import Beta, Log, Margin, MicroF1, ProbLoss, Slack
from structsolve.surrogates import calls as surrogate_calls

names = pytest.mark.parametrize("name", NAMES)


@names
def test_chains(name):
    for seed in range(2):
        for loss in (
            "hamming",
            "normalized-hamming",
            "zero-one",
            CostMatrix([[0, 1, 3], [2, 0, 0.5], [0, 1, 0]]),
        ):
            if name.startswith("probloss") and loss in ("normalized-hamming", "zero-one"):
                continue
            check_problem(random_chains, seed, name, loss, ("hull",), hull=True, relaxed=True)
            check_problem(random_chains, seed, name, loss, ("label",))
            if loss == "zero-one":
                check_problem(random_chains, seed, name, loss, ("label",), search="exact")
            if loss == "hamming":
                given = {"search": "convex-hull", "relaxed": False, "max_kbest": 81}
                check_problem(random_chains, seed, name, loss, ("label",), **given)


@pytest.mark.parametrize("score", [-50.0, -70.0, -74.0, -1e4])
def test_first_lam_where_probloss_is_flat(score):
    """Its tangent has a slope of 1e300 there: scores with losses would overflow."""
    space = score_space("path")
    scores = Scores(np.full((4, 1), score), examples=space.pack_sizes([(2, 2)]))
    truth = np.array([1, 5, 9, 0])  # around both corners
    values, _ = value_and_gradient(space, scores, truth, ProbLoss(convex=False))
    assert values == pytest.approx([4.0])  # twice the loss of the diagonal, whose margin is large


@pytest.mark.parametrize("search", ["bisecting", "binary", "sarawagi"])
@pytest.mark.parametrize("loss", ["hamming", "zero-one"])
def test_other_searches_on_chains(search, loss):
    for seed in range(4):
        check_problem(random_chains, seed, "slack", loss, (), search=search)
        check_problem(random_chains, seed, "slack", loss, (), search=search, max_kbest=0)


def test_zero_one_loss_with_one_call():
    """The truth is the first answer; the best other label is unknown then."""
    structure = structsolve.get_structure("chain")
    X, Y = [np.zeros((2, 1))], [np.array([0, 1])]
    space, examples = structure.make_space(X, Y)
    for calls in (1, 2, 3):
        surrogate = Log(relaxed=False, max_calls=calls)
        problem = structsolve.Problem(space, examples, "zero-one", surrogate)
        theta = np.zeros(problem.task.layout.sizes(0)[0])
        node = space.layout.theta_views(theta, 2, 0)["node"]
        node[0, 0] = node[1, 1] = 3.0
        answer = problem.surrogate.trace(0, theta, problem.labels)["outcome"]
        assert answer["label_bound"] >= np.log1p(np.exp(-3)) - 1e-12


def test_counting_measures_by_what_all_costs_share():
    """Costs of 1 and 3 at one node and of .5 and 2 at another are all counts of .5."""
    costs = CostMatrix([[0, 1, 3], [2, 0, 0.5], [0, 1, 0]])
    for seed in range(10):
        check_problem(random_chains, seed, "slack", costs, ("label",), search="exact")


@pytest.mark.parametrize("background", [0, 2])
@pytest.mark.parametrize("settings", [{"relaxed": True}, {}, {"search": "exact"}, {"max_calls": 1}])
def test_micro_f1_on_chains(background, settings):
    hull = settings.get("relaxed", False)
    exact = ("hull",) if hull else ("label",)
    for seed in range(4):
        check_problem(
            random_chains, seed, MicroF1(background, **settings), "hamming", exact,
            hull=hull, psi=reference.micro_f1(), count=LabelCount(background),
        )  # fmt: skip


def random_sets(rng):
    return structsolve.get_structure("multilabel"), *structsolve.get_structure("multilabel").sample(
        rng, 3, 3
    )


def test_label_sets():
    for seed in range(4):
        check_problem(random_sets, seed, "slack", "hamming", ("hull",), hull=True, relaxed=True)
        check_problem(random_sets, seed, "beta", "hamming", ("hull",), hull=True, relaxed=True)
        check_problem(random_sets, seed, "log", "hamming", ("label",))
        check_problem(
            random_sets, seed, MicroF1(relaxed=True), "hamming", ("hull",), hull=True,
            psi=reference.micro_f1(), count=LabelCount(),
        )  # fmt: skip


def random_graphs(oracle):
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])

    def make(rng):
        X = [(rng.integers(-2, 3, (4, 2)).astype(float), edges) for _ in range(2)]
        return structsolve.get_structure("mrf", oracle=oracle), X, [[0, 1, 0, 1], [1, 1, 0, 0]]

    return make


@pytest.mark.parametrize("oracle", ["auto", "roof-duality", "trws", "lp"])
def test_graphs(oracle):
    """Inexact oracles: bounds include what they may miss; relaxed ones bound the labels."""
    make = random_graphs(oracle)
    for seed in range(3):
        for name in ("slack", "beta", "log"):
            exact = ("label",) if oracle == "auto" else ()  # the others have no k-best
            check_problem(make, seed, name, "hamming", exact, relaxed=False, search="convex-hull")
        check_problem(make, seed, "slack", "hamming", (), search="bisecting")
        # The relaxation is larger than the hull of the labels.
        check_problem(make, seed, "slack", "hamming", (), outer=oracle != "auto")
        exact = () if oracle == "lp" else ("label",)
        check_problem(make, seed, "slack", "hamming", exact, search="angular")


def test_cuts_of_fractional_points():
    """A cut of the relaxation is below its maximum at any other scores."""
    fractional = 0
    for oracle in ("lp", "roof-duality"):
        structure, X, Y = random_graphs(oracle)(np.random.default_rng(0))
        space, examples = structure.make_space(X, Y)
        for surrogate in (Slack(), Log(), Beta(0.5), Margin(relaxed=True)):
            problem = structsolve.Problem(space, examples, surrogate=surrogate)
            rng = np.random.default_rng(1)
            thetas = [score(problem.potentials, 0, rng.normal(size=problem.dim)) for _ in range(12)]
            truth = problem.examples.label(0)
            cuts = [surrogate_calls.cut(problem.surrogate, 0, theta, truth) for theta in thetas]
            for cut, here in zip(cuts, thetas):
                assert cut.b - here[cut.index] @ cut.value == pytest.approx(cut.bound, rel=1e-7)
                fractional += bool(np.any(np.abs(cut.value - np.round(cut.value)) > 1e-6))
                for other, theta in zip(cuts, thetas):
                    assert other.bound >= cut.b - theta[cut.index] @ cut.value - 1e-7
    assert fractional > 10


# ---- Python structures ---------------------------------------------------------------------------


def python_chains(**methods):
    """Random chains of a space with more methods."""

    def make(rng):
        X, Y = random_chains(rng, n=3)[1:]
        return py_chain(**methods), [x[-2:] for x in X], [y[-2:] for y in Y]

    return make


def everything(space, examples, i, theta, cost, cone):
    labels, h = space.scores(examples, i, theta)
    return labels, h + cone.h0, space.scores(examples, i, cost)[1] + cone.g0


def in_cone(space, examples, i, theta, cost, cone):
    labels, h, g = everything(space, examples, i, theta, cost, cone)
    rows = np.flatnonzero(cones.in_cone(cone, h, g))
    if not rows.size:
        return None
    label = labels[rows[np.argmax((h + cone.lam * g)[rows])]]
    return space.parts(examples, i, label), label


def in_hull_and_cone(space, examples, i, theta, cost, cone):
    """The linear program over mixtures of labels, with closed sides."""
    labels, h, g = everything(space, examples, i, theta, cost, cone)
    rows = [cone.beta * h - g, -h if np.isinf(cone.alpha) else g - cone.alpha * h]
    answer = linprog(-(h + cone.lam * g), rows, [0, 0], [np.ones_like(h)], [1])
    if not answer.success:
        return None
    share = answer.x
    if share.max() > 1 - 1e-9:
        label = labels[share.argmax()]
        return space.parts(examples, i, label), label
    parts = [space.parts(examples, i, label) for label in labels]
    return {b: sum(s * mu[b] for s, mu in zip(share, parts)) for b in parts[0]}, None


def second(space, examples, i, theta):
    """Not the best label, but a bound on how much better that may be."""
    labels, scores = space.ranked(examples, i, theta)
    return labels[min(1, len(labels) - 1)], float(np.max(scores))


@pytest.mark.parametrize(
    "methods, exact, settings",
    [
        ({}, ("hull",), {"relaxed": True}),
        ({}, ("label",), {}),
        ({}, (), {"max_kbest": 0}),
        ({}, (), {"search": "bisecting"}),
        ({"argmax_constrained": in_cone}, ("label",), {"search": "angular"}),
        ({"argmax_constrained": in_hull_and_cone}, (), {"search": "angular"}),
        ({"argmax_bounded": second}, (), {"relaxed": True}),
        ({"argmax_bounded": second}, (), {}),
        ({"argmax_bounded": second}, (), {"search": "sarawagi"}),
    ],
)
def test_python_structures(methods, exact, settings):
    make = python_chains(**methods)
    for seed in range(2):
        hull = settings.get("relaxed", False)
        check_problem(make, seed, "slack", "hamming", exact, hull=hull, **settings)


def of_truths():
    """Methods of a space that has a loss, and whose augmented oracle does not help."""

    def loss(space, examples, i, truth, label):
        return float((np.asarray(label) != truth).sum())

    def costs(space, examples, i, truth):
        return {"node": 1.0 - np.eye(len(space.classes_))[truth]}, 0.0

    return {
        "argmax_bounded": second,
        "argmax_augmented": lambda space, examples, i, theta, truth: truth,
        "loss": loss,
        "loss_costs": costs,
    }


def test_inexact_oracles_that_know_the_loss():
    """Augmented oracles return no bound: searches call an inexact oracle with costs instead."""
    make = python_chains(**of_truths())
    check_problem(make, 0, "slack", "hamming", (), hull=True, relaxed=True)
    check_problem(make, 0, "slack", "hamming", (), relaxed=False)


@pytest.mark.parametrize(
    "methods", [{"argmax_bounded": second}, of_truths()], ids=["", "augmented"]
)
def test_margin_rescaling_of_inexact_oracles(methods):
    """The bound includes what the oracle may have missed; the cut belongs to its label."""
    rng = np.random.default_rng(0)
    structure, X, Y = python_chains(**methods)(rng)
    space, examples = structure.make_space(X, Y)
    problem = structsolve.Problem(space, examples, "hamming", Margin(relaxed=False))
    assert not problem.oracle.exact and not problem.surrogate.exact
    for i in range(problem.n):
        for _ in range(4):
            theta = score(problem.potentials, i, rng.normal(size=problem.dim))
            _, h, g = points(space, examples, i, theta)
            cut = surrogate_calls.cut(problem.surrogate, i, theta, examples.label(i))
            # `second` knows the maximum, and returns the label after it.
            assert cut.bound == pytest.approx((h + g).max(), abs=1e-9)
            here = cut.b - theta[cut.index] @ cut.value
            assert here == pytest.approx(np.sort(h + g)[-2], abs=1e-9)


def test_the_next_search_begins_where_the_last_one_ended():
    """The slope of the line that decided, which a new search asks first."""
    rng = np.random.default_rng(2)
    structure, X, Y = random_chains(rng)
    problem = structsolve.Problem(*structure.make_space(X, Y), "hamming", "slack")
    w = rng.normal(size=problem.dim)
    for i in range(problem.n):
        theta, truth = score(problem.potentials, i, w), problem.examples.label(i)
        lam = problem.surrogate.trace(i, theta, truth)["outcome"]["lam"]
        surrogate_calls.cut(problem.surrogate, i, theta, truth)
        kept = problem.surrogate.memory_of_examples()["lams"][i]
        assert 0 < kept < np.inf and kept == pytest.approx(lam)
