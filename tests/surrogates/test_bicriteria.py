"""Bi-criteria surrogates: their cuts, and one optimum for all solvers."""

import functools
from dataclasses import replace

import numpy as np
import pytest
from python_structures import PyChainStructure
from reference import psi as reference
from reference.rescaled import enumerated_optimum, rescaled_primal
from reference.searches import encodings, integral_maximum, relaxed_maximum
from search_cases import NAMES, SURROGATES, make_surrogate, random_chains, random_classes
from solver_cases import begin, follow

import structsolve
from structsolve import CostMatrix, StructuredSVM
from structsolve.potentials.calls import score
from structsolve.solvers import BCFW, SGD, CuttingPlane
from structsolve.structure import calls
from structsolve.structure.ask import ask_loss
from structsolve.structure.losses import LabelCount
from structsolve.surrogates import Beta, Generalized, Log, Margin, MicroF1, Slack, UnitMargin
from structsolve.surrogates import calls as surrogate_calls
from structsolve.surrogates.task import Task

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

CONVEX = [name for name, (_, _, psi) in SURROGATES.items() if psi.convex]
TRAINED = [name for name in NAMES if SURROGATES[name.values[0]][2].convex]
SOLVERS = {"bcfw": BCFW(), "one-slack": CuttingPlane("one"), "n-slack": CuttingPlane("n")}


def multiclass(rng):
    X = rng.normal(size=(6, 2))
    return structsolve.get_structure("multiclass"), X, np.arange(6) % 3


def chain(rng):
    return random_chains(rng, n=4)


def python_chain(rng):
    return PyChainStructure(), *_short(rng)


def _short(rng):
    X, Y = random_chains(rng, n=3)[1:]
    return [x[:2] for x in X], [y[:2] for y in Y]


def graph(rng):
    edges = np.array([[0, 1], [1, 2], [2, 0]])
    X = [(rng.normal(size=(3, 2)), edges) for _ in range(3)]
    return structsolve.get_structure("mrf"), X, [[0, 1, 0], [1, 1, 0], [1, 0, 0]]


def sets(rng):
    structure = structsolve.get_structure("multilabel")
    return structure, rng.normal(size=(4, 2)), rng.integers(0, 2, (4, 3))


STRUCTURES = {f.__name__: f for f in (multiclass, chain, python_chain, graph, sets)}


class Case:
    """A problem, its surrogate's psi, and all labels of its examples."""

    def __init__(self, make, name, seed=0, loss="hamming", **settings):
        structure, X, Y = make(np.random.default_rng(seed))
        self.space, examples = structure.make_space(X, Y)
        self.examples = examples
        self.count = None
        if name == "micro-f1":
            self.count = LabelCount(None if make is sets else int(self.space.classes_[0]))
            surrogate, self.psi = MicroF1(self.count.background, **settings), reference.micro_f1()
        else:
            surrogate, self.psi = make_surrogate(name, **settings)
        self.loss = loss
        self.problem = structsolve.Problem(self.space, self.examples, loss, surrogate)
        self.encodings = [self._encode(i) for i in range(self.problem.n)]

    def _encode(self, i):
        """Return (labels, rows, offsets, g) of example i: h = rows @ theta + offsets."""
        size = len(score(self.problem.potentials, i, np.zeros(self.problem.dim)))
        loss = self.loss if self.count is None else self.count
        labels, rows, g = encodings(self.space, self.examples, i, size, loss)
        if self.count is None:
            return labels, rows, np.zeros(len(labels)), g
        hamming = ask_loss(self.space, "hamming")(self.problem.task.layout)
        truth = self.examples.label(i)
        h0 = np.array([calls.loss_value(hamming, i, truth, label) for label in labels])
        return labels, rows, h0, -g

    def points(self, i, theta):
        labels, rows, offsets, g = self.encodings[i]
        return labels, rows @ theta + offsets, g

    def maximum(self, i, theta):
        find = relaxed_maximum if self.problem.surrogate.relaxed else integral_maximum
        return find(*self.points(i, theta)[1:], self.psi)[1]

    def written(self):
        """Return the enumerated problem; h is affine in w, so unit vectors determine it."""
        units = np.eye(self.problem.dim)
        rows = []
        for i in range(self.problem.n):
            thetas = [score(self.problem.potentials, i, w) for w in (0 * units[0], *units)]
            _, h0, g = self.points(i, thetas[0])
            slopes = np.array([self.points(i, theta)[1] - h0 for theta in thetas[1:]]).T
            rows.append((-slopes, h0, g))
        return rows


# ---- cuts ----------------------------------------------------------------------------------------


def check_cut(case, i, theta, others):
    """The cut touches the surrogate at theta, and lies below it elsewhere."""
    cut = surrogate_calls.cut(case.problem.surrogate, i, theta, case.examples.label(i))
    here = cut.b - theta[cut.index] @ cut.value
    top = case.maximum(i, theta)
    size = 1e-8 * (1 + abs(top) + np.abs(theta).max() * np.abs(cut.value).sum())
    assert here == pytest.approx(top, abs=size)
    assert cut.bound == pytest.approx(top, abs=size) and cut.bound >= here - size
    if case.psi.convex:
        for v in others:
            assert case.maximum(i, v) >= cut.b - v[cut.index] @ cut.value - size
    return cut


@pytest.mark.parametrize("relaxed", [True, False])
@pytest.mark.parametrize("name", [*NAMES, "micro-f1"])
@pytest.mark.parametrize("structure", ["multiclass", "chain", "sets"])
def test_cuts(structure, name, relaxed):
    settings = {"relaxed": True} if relaxed else {"relaxed": False, "max_kbest": 81}
    for seed in range(2):
        case = Case(STRUCTURES[structure], name, seed, **settings)
        rng = np.random.default_rng(seed)
        for i in range(case.problem.n):
            weights = [
                rng.normal(size=case.problem.dim) * 10.0 ** rng.integers(-1, 2) for _ in range(4)
            ]
            thetas = [score(case.problem.potentials, i, w) for w in weights]
            for theta in thetas[:2]:
                check_cut(case, i, theta, thetas)


def test_equal_vertices_have_equal_keys():
    for relaxed in (True, False):
        case = Case(chain, "slack", relaxed=relaxed)
        rng, seen = np.random.default_rng(0), {}
        for _ in range(300):
            theta = score(case.problem.potentials, 0, rng.normal(size=case.problem.dim))
            cut = surrogate_calls.cut(case.problem.surrogate, 0, theta, case.examples.label(0))
            vertex = np.zeros(len(theta) + 1)
            np.add.at(vertex, cut.index, cut.value)
            vertex[-1] = cut.b
            if cut.key in seen:
                np.testing.assert_allclose(seen[cut.key], vertex, atol=1e-12)
            seen[cut.key] = vertex
        assert len(seen) > 5
        if not relaxed:
            assert len({tuple(np.round(v, 9)) for v in seen.values()}) == len(seen)


def test_a_bisecting_search_begins_at_the_last_lambda():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(6, 3)) for _ in range(8)]
    space, examples = structsolve.get_structure("chain").make_space(X, rng.integers(0, 3, (8, 6)))
    surrogate = Slack(search="bisecting", relaxed=False).bind(Task(space, examples))
    size = space.layout.theta_size(6, 5)
    first = again = 0
    for _ in range(10):
        for i in range(8):
            theta, truth = 2 * rng.normal(size=size), examples.label(i)
            first += surrogate_calls.cut(surrogate, i, theta, truth).calls
            again += surrogate_calls.cut(surrogate, i, 1.001 * theta, truth).calls
    assert again < 0.9 * first


# ---- truths --------------------------------------------------------------------------------------

DESCRIPTIONS = {
    "margin": Margin(),
    "unit-margin": UnitMargin(),
    "slack": Slack(relaxed=True),
    "slack of labels": Slack(relaxed=False, search="convex-hull", max_kbest=81),
    "angular": Slack(search="angular"),
    "log": Log(relaxed=False, search="convex-hull", max_kbest=81),
    "micro-f1": MicroF1(background=0, relaxed=True),
}


@pytest.mark.parametrize("name", DESCRIPTIONS)
@pytest.mark.parametrize("make", [multiclass, chain])
def test_truths_are_given_with_the_scores(make, name):
    """Neither labels nor features are needed, and memory of other truths is not used."""
    rng = np.random.default_rng(3)
    structure, X, Y = make(rng)
    space, examples = structure.make_space(X, Y)
    bare = Task(space, replace(examples, labels=None, nodes=None))
    surrogate = DESCRIPTIONS[name].bind(bare)
    potentials = structsolve.Problem(space, examples).potentials
    for i in range(2):
        start, end = examples.label_offsets[i : i + 2]
        labels = space.enumerate_labels(examples, i)
        for row in rng.integers(0, len(labels), 12):
            truth = np.ascontiguousarray(labels[row], dtype=np.int32)
            given = examples.labels.copy()
            given[start:end] = truth
            bound = DESCRIPTIONS[name].bind(Task(space, replace(examples, labels=given)))
            theta = score(potentials, i, rng.integers(-3, 4, potentials.dim) * 1.0)
            one, other = (surrogate_calls.cut(s, i, theta, truth) for s in (surrogate, bound))
            assert one.bound == pytest.approx(other.bound, rel=1e-6, abs=1e-9)
            here = one.b - theta[one.index] @ one.value
            assert here == pytest.approx(one.bound, rel=1e-5, abs=1e-8)


def test_counting_is_made_for_its_labels():
    space, _ = structsolve.get_structure("multiclass").make_space(np.zeros((3, 1)), np.arange(3))
    examples, loss = (
        space.pack(np.zeros((1, 1)), [0]),
        CostMatrix([[0, 1, 1], [1, 0, 5], [1, 1, 0]]),
    )
    with pytest.raises(ValueError, match="needs the true labels when it is made"):
        Slack(search="exact").bind(Task(space, replace(examples, labels=None), loss))
    surrogate, theta = Slack(search="exact").bind(Task(space, examples, loss)), np.zeros(4)
    assert surrogate_calls.cut(surrogate, 0, theta, np.array([2], np.int32)).bound == 1
    with pytest.raises(ValueError, match="example 0: the loss counts up to 5 against this truth"):
        surrogate_calls.cut(surrogate, 0, theta, np.array([1], np.int32))


# ---- one optimum ---------------------------------------------------------------------------------


def enumerated(case, alpha=0.3):
    """Return the problem over all labels, and its optimum."""
    written = case.written()
    relaxed = case.problem.surrogate.relaxed
    return written, enumerated_optimum(written, case.psi, alpha, relaxed, tol=1e-8)


@functools.cache
def enumerated_once(structure, name, relaxed):
    """The optimum is the same for all solvers."""
    return enumerated(Case(STRUCTURES[structure], name, relaxed=relaxed))


def check_optimum(case, solver, alpha=0.3, tol=1e-7, known=None):
    written, best = known or enumerated(case, alpha)
    relaxed = case.problem.surrogate.relaxed
    run = begin(solver, case.problem, alpha, tol=tol)
    history = follow(run, tol=tol, passes=3000)
    value = rescaled_primal(run.weights(), written, case.psi, alpha, relaxed)
    assert best.lower * (1 - 1e-7) - 1e-9 <= value <= best.value * (1 + 1.1 * tol) + 1e-9
    for record in history:
        if record["certified"] and record["dual"] is not None:
            assert record["dual"] <= best.value * (1 + 1e-8) + 1e-10
            assert record["primal"] >= best.lower * (1 - 1e-8) - 1e-10
    last = history[-1]
    assert last["certified"] and last["gap"] <= 1.1 * tol * max(last["primal"], 1)
    assert last["primal"] == pytest.approx(value, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("relaxed", [True, False])
@pytest.mark.parametrize(
    "solver", ["bcfw", "n-slack", pytest.param("one-slack", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", [*TRAINED, "micro-f1"])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_one_optimum(structure, name, solver, relaxed):
    settings = {"relaxed": True} if relaxed else {"relaxed": False, "max_kbest": 81}
    case = Case(STRUCTURES[structure], name, **settings)
    if not case.psi.affine and solver == "bcfw":
        with pytest.raises(
            ValueError, match="affine in the margin, which '.*' is not; use solver="
        ):
            begin(SOLVERS[solver], case.problem, 0.3)
        return
    # Mixtures of labels have infinitely many vertices, so block steps converge slowly.
    tol = 1e-4 if relaxed and solver == "bcfw" else 1e-7
    known = enumerated_once(structure, name, relaxed)
    check_optimum(case, SOLVERS[solver], tol=tol, known=known)


@pytest.mark.parametrize("search", ["angular", "exact"])
def test_other_exact_searches_reach_it(search):
    case = Case(
        multiclass, "slack", search=search, loss=CostMatrix([[0, 1, 3], [2, 0, 5], [4, 1, 0]])
    )
    check_optimum(case, CuttingPlane("n"))


@pytest.mark.parametrize("name", [*NAMES, "micro-f1"])
def test_sgd_comes_near(name):
    for relaxed in (True, False):
        case = Case(chain, name, relaxed=relaxed)
        run = begin(SGD(certify_every=10**6), case.problem, 1.0)
        start = rescaled_primal(np.zeros(case.problem.dim), case.written(), case.psi, 1.0, relaxed)
        for _ in range(1000):
            run.step()
        value = rescaled_primal(run.weights(), case.written(), case.psi, 1.0, relaxed)
        if case.psi.convex:
            best = enumerated_optimum(case.written(), case.psi, 1.0, relaxed)
            assert best.lower * (1 - 1e-8) - 1e-9 <= value <= best.value * (1 + 6e-3) + 1e-6
        else:
            assert value < start


def test_relaxed_margin_rescaling_of_exact_oracles_is_the_plain_one():
    for make in (multiclass, chain):
        structure, X, Y = make(np.random.default_rng(0))
        fits = [
            StructuredSVM(structure, surrogate=s, alpha=0.1, tol=1e-8, max_iter=500).fit(X, Y)
            for s in ("margin", Margin(), Margin(False), Generalized(1, 0), Beta(0))
        ]
        for other in fits[1:]:
            gap = abs(other.history_[-1]["primal"] - fits[0].history_[-1]["primal"])
            assert gap <= 1e-7 * fits[0].history_[-1]["primal"]


def test_a_class_without_loss_leaves_no_gap():
    """All labels of an example of class 2 have g = 0, whatever the margin."""
    loss = CostMatrix([[0, 1, 2], [1, 0, 1], [0, 0, 0]])
    for name in ("slack", "beta", "roots"):
        case = Case(multiclass, name, loss=loss)
        check_optimum(case, CuttingPlane("n"))


@pytest.mark.slow
def test_random_problems():
    rng = np.random.default_rng(0)
    for seed in range(24):  # every surrogate with every kind of costs
        name = CONVEX[seed % len(CONVEX)]
        costs, _ = random_classes(("integers", "normal", "no loss")[seed % 3], rng, 3)
        case = Case(chain, name, seed, loss=CostMatrix(costs))
        check_optimum(case, CuttingPlane("n"))


@pytest.mark.parametrize("structure", ["multiclass", "chain", "sets"])
@pytest.mark.parametrize("name", ["slack", "generalized:1,0.5", "beta:0.5"])
def test_with_the_zero_one_loss_slack_is_margin(structure, name):
    """(1 + h) g, h g^b + g, and h + g equal 1 + h for every wrong label, and 0 for the truth."""
    rng = np.random.default_rng(5)
    kind, X, Y = STRUCTURES[structure](rng)
    space, examples = kind.make_space(X, Y)
    ours, margin = (
        structsolve.Problem(space, examples, "zero-one", surrogate)
        for surrogate in (name, "margin")
    )
    for _ in range(5):
        w = rng.normal(size=ours.dim)
        np.testing.assert_allclose(ours.bounds(w)[0], margin.bounds(w)[0], atol=1e-9)
    ends = [
        StructuredSVM(kind, surrogate=surrogate, loss="zero-one", alpha=0.2, tol=1e-6, max_iter=500)
        .fit(X, Y).history_[-1] for surrogate in (name, "margin")
    ]  # fmt: skip
    assert all(end["certified"] for end in ends)
    assert ends[0]["primal"] == pytest.approx(ends[1]["primal"], rel=2e-6)


def test_names_mean_the_maximum_over_labels():
    rng = np.random.default_rng(6)
    for name in ("slack", "beta:0.5", "generalized:1,0.5", "log", "probloss", "micro-f1:0"):
        structure, X, Y = chain(rng)
        problem = structsolve.Problem(*structure.make_space(X, Y), surrogate=name)
        assert not problem.surrogate.relaxed
        assert problem.missed(rng.normal(size=problem.dim)) <= 1e-9
    # The oracle of a relaxation returns its own mixtures, as in margin rescaling.
    loose = structsolve.get_structure("mrf", oracle="lp")
    edges = np.array([[0, 1], [1, 2], [2, 0]])
    X = [(rng.normal(size=(3, 2)), edges) for _ in range(3)]
    space, examples = loose.make_space(X, [[0, 1, 0], [1, 1, 0], [1, 0, 0]])
    assert structsolve.Problem(space, examples, surrogate="slack").surrogate.relaxed
    rounded = structsolve.Problem(space, examples, surrogate=Slack(relaxed=False))
    w = 3 * rng.normal(size=rounded.dim)
    assert not rounded.surrogate.relaxed and rounded.missed(w) >= 0


def test_what_searches_may_have_missed_is_told():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(12, 2)), rng.integers(0, 4, 12)
    costs = CostMatrix(3 * rng.random((4, 4)) * (1 - np.eye(4)))
    surrogate = Slack(max_kbest=0, search="convex-hull")
    model = StructuredSVM("multiclass", loss=costs, surrogate=surrogate, alpha=0.01, max_iter=60)
    with pytest.warns(UserWarning, match="of it is what searches or oracles may have missed"):
        model.fit(X, y)
    last = model.history_[-1]
    assert 0 < last["missed"] <= last["gap"] * (1 + 1e-6) and last["certified"]
    best = StructuredSVM("multiclass", loss=costs, surrogate=Slack(search="angular"), alpha=0.01,
                         tol=1e-6, max_iter=500).fit(X, y).history_[-1]  # fmt: skip
    assert last["dual"] <= best["primal"] and best["dual"] <= last["primal"]
