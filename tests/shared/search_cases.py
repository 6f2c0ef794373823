"""Random label planes behind native oracles, and checks for every search on them."""

import math

import numpy as np
import pytest
from reference import psi as reference
from reference.searches import encodings, integral_maximum, relaxed_maximum

import structsolve
from structsolve import CostMatrix
from structsolve.potentials.calls import score
from structsolve.structure import calls
from structsolve.structure.ask import ask_loss
from structsolve.surrogates import Beta, Generalized, Log, ProbLoss, Slack
from structsolve.surrogates import calls as surrogate_calls

# Native surrogate and its psi in the reference.
SURROGATES = {
    "slack": (Slack, {}, reference.slack()),
    "margin": (Generalized, {"alpha": 1, "beta": 0}, reference.margin()),
    "generalized": (Generalized, {"alpha": 1, "beta": 0.5}, reference.generalized(1, 0.5)),
    "roots": (Generalized, {"alpha": 0.5, "beta": 0.5}, reference.generalized(0.5, 0.5)),
    "steep": (Generalized, {"alpha": 2, "beta": 1.5}, reference.generalized(2, 1.5)),
    "beta": (Beta, {"beta": 0.25}, reference.beta(0.25)),
    "log": (Log, {}, reference.log()),
    "probloss": (ProbLoss, {}, reference.convex_probloss()),
    "probloss-original": (ProbLoss, {"convex": False}, reference.probloss()),
}
# All of them; similar ones run only in the slow tests.
SLOW = ("generalized", "roots", "steep", "probloss-original")
NAMES = [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in SURROGATES]
KINDS = (
    "integers", "counts", "normal", "h <= 0", "equal points", "no loss", "huge", "tiny", "one loss",
    "line", "mixed scales",
)  # fmt: skip


def random_classes(kind, rng, K=None):
    """(costs (K, K), scores (K,)): each class as the truth is one plane of K points."""
    K = int(rng.integers(1, 10)) if K is None else K
    costs = rng.integers(0, 6, (K, K)).astype(float)
    scores = 2 * rng.normal(size=K)
    if kind == "integers":
        scores = rng.integers(-4, 8, K).astype(float)
    elif kind == "normal":
        costs = 3 * np.abs(rng.normal(size=(K, K)))
    elif kind == "h <= 0":
        scores = -rng.integers(0, 5, K).astype(float)
    elif kind == "equal points":
        scores, costs = np.full(K, 1.5), np.full((K, K), 2.0)
    elif kind == "no loss":
        costs *= rng.random((K, K)) < 0.4
    elif kind == "huge":
        scores *= 1e4
        costs *= rng.choice([1e-4, 1.0, 1e4])
    elif kind == "tiny":
        scores *= 1e-4
        costs *= rng.choice([1e-4, 1.0, 1e4])
    elif kind == "one loss":
        costs = np.ones((K, K))
    elif kind == "line":
        scores, costs = (
            -np.arange(K, dtype=float),
            np.abs(np.arange(K)[:, None] - np.arange(K)).astype(float),
        )
    elif kind == "mixed scales":
        scores *= 10.0 ** rng.integers(-4, 5, K)
        costs *= 10.0 ** rng.integers(-4, 5, (K, K))
    np.fill_diagonal(costs, 0)
    return costs, scores


def make_surrogate(name, **settings):
    """(native surrogate, reference psi)."""
    factory, parameters, psi = SURROGATES[name]
    return factory(**parameters, **settings), psi


def classes_problem(costs, surrogate):
    """Return examples 0 .. K-1, example k of class k, whose points are (scores, costs[k])."""
    K = len(costs)
    structure = structsolve.get_structure("multiclass")
    X, y = np.zeros((K, 1)), np.arange(K)
    return structsolve.Problem(*structure.make_space(X, y, classes=y), CostMatrix(costs), surrogate)


def padded(problem, i, scores):
    """Return scores of the classes as theta."""
    theta = np.zeros(problem.task.layout.sizes(i)[0])
    theta[: len(scores)] = scores
    return theta


def rounding(h, g, psi):
    """Return a bound of rounding errors of psi on these points, of very different size."""
    if (g < 0).any():
        return 1e-8 * np.abs(h).max() / np.abs(g[g != 0]).min()
    return 1e-8 * max(1e-12, abs(float(psi.value(np.abs(h).max(), g.max()))))


def near(told, expected, rel=0.0, abs=0.0):
    """Same result as ``told == pytest.approx(expected, rel, abs)`` for two numbers, but faster."""
    allowed = max(rel * math.fabs(expected), abs) if math.isfinite(expected) else -1.0
    return told == expected or math.fabs(told - expected) <= allowed


def check_found(told, h, g, labels, psi, exact=(), hull=True, cones=False, tol=0.0):
    """Check a search's result against the points (h, g) of all labels.

    `exact`: what it must find ("hull", "label"); `hull`: its bound is one of the hull; `cones`: it
    asks within cones.
    """
    answer, seen = told["outcome"], told["points"]
    close = rounding(h, g, psi)
    where = {tuple(label): row for row, label in enumerate(np.asarray(labels).tolist())}
    widest = np.abs(h).max()
    for point in seen:
        if point["label"] is not None:
            row = where[tuple(point["label"].tolist())]
            assert near(point["h"], h[row], rel=1e-9, abs=widest * 1e-9 + 1e-12), (point, h[row])
            assert near(point["g"], g[row], rel=1e-9, abs=1e-12), (point, g[row])
    # Lines of constrained answers hold only within their cones.
    if told["visits"] and not cones:
        slopes, bounds = np.array([(visit["lam"], visit["bound"]) for visit in told["visits"]]).T
        highest = (h + slopes[:, None] * g).max(axis=1)
        scale = widest + slopes * np.abs(g).max()
        assert (highest <= bounds + 1e-9 * scale).all(), (highest, told["visits"])
    best = integral_maximum(h, g, psi)[1]
    close += tol * abs(best)
    label = seen[answer["label"]]
    assert label["label"] is not None
    reached = float(psi.value(label["h"], label["g"]))
    assert near(answer["label_value"], reached, abs=close), (reached, answer)
    assert answer["label_value"] <= best + close
    assert best <= answer["label_bound"] + close, (best, answer)
    a, b, t = seen[answer["first"]], seen[answer["second"]], answer["share"]
    assert 0 <= t <= 1
    mixed = [(1 - t) * a[axis] + t * b[axis] for axis in "hg"]
    reached = float(psi.value(*mixed))
    assert near(answer["value"], reached, abs=close), (reached, answer)
    if hull:
        # A mixture of existing labels: if it is better, the reference's grid is coarse.
        top = max(relaxed_maximum(h, g, psi)[1], answer["value"])
        assert top <= answer["bound"] + close, (top, answer)
    assert answer["label_value"] <= answer["label_bound"] and answer["value"] <= answer["bound"]
    if "hull" in exact:
        assert answer["value"] >= top - close, (answer["value"], top)
        assert answer["bound"] <= top + close, (answer["bound"], top)
    if "label" in exact:
        assert answer["label_value"] >= best - close, (answer["label_value"], best)
        assert answer["label_bound"] <= best + close, (answer["label_bound"], best)


def random_chains(rng, n=4):
    """Return (structure, X, Y); every class appears."""
    lengths = [3, 2, 1, *rng.integers(1, 4, max(n - 3, 0))]
    X = [rng.integers(-2, 3, (length, 2)).astype(float) for length in lengths]
    Y = [rng.integers(0, 3, length) for length in lengths]
    Y[0] = np.arange(3)
    return structsolve.get_structure("chain"), X, Y


def plane(problem, i, loss, count=None):
    """Return all labels of example i as (labels, rows, offsets, g): h = rows @ theta + offsets."""
    space, examples, size = problem.space, problem.examples, problem.task.layout.sizes(i)[0]
    labels, rows, g = encodings(space, examples, i, size, loss)
    if count is None:
        return labels, rows, 0.0, g
    hamming, truth = ask_loss(space, "hamming")(problem.task.layout), examples.label(i)
    return labels, rows, [calls.loss_value(hamming, i, truth, label) for label in labels], -g


def check_problem(
    make, seed, surrogate, loss, exact, hull=False, psi=None, count=None, outer=False, **settings
):
    """Check every example of a random problem, at random weights of several sizes.

    `count`: the loss that g is minus of, for micro-F1; `outer`: the search maximises over more than
    the hull of the labels.
    """
    rng = np.random.default_rng(seed)
    structure, X, Y = make(rng)
    space, examples = structure.make_space(X, Y)
    if isinstance(surrogate, str):
        surrogate, psi = make_surrogate(surrogate, **settings)
    problem = structsolve.Problem(space, examples, loss, surrogate)
    cones = settings.get("search") == "angular"
    planes = [plane(problem, i, loss if count is None else count, count) for i in range(problem.n)]
    for step in range(5):
        w = rng.normal(size=problem.dim) if step % 2 else rng.integers(-2, 3, problem.dim) * 1.0
        w *= 10.0 ** rng.integers(-1, 2)
        for i in range(problem.n):
            theta, truth = score(problem.potentials, i, w), examples.label(i)
            told = problem.surrogate.trace(i, theta, truth)
            labels, rows, h0, g = planes[i]
            h = rows @ theta + h0
            if outer:
                assert integral_maximum(h, g, psi)[1] <= told["outcome"]["label_bound"] + 1e-9
                assert relaxed_maximum(h, g, psi)[1] <= told["outcome"]["bound"] * (1 + 1e-9) + 1e-9
                assert told["outcome"]["value"] <= told["outcome"]["bound"]
            else:
                tol = 1e-6 if cones else 0
                check_found(told, h, g, labels, psi, exact, hull, cones, tol)
            # The search's memory makes the next search a warm one.
            if step % 2:
                surrogate_calls.cut(problem.surrogate, i, theta, truth)
