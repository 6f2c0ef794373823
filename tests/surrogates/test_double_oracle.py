"""Max-min margins as games between labels: matrix games, answers, certificates, steps."""

import numpy as np
import pytest
from checks import refused
from python_structures import PyChainSpace
from scipy.optimize import linprog
from solver_cases import begin
from surrogate_cases import Case

from structsolve import CostMatrix, Sequences, StructuredSVM, get_structure
from structsolve.plugins.mrf import MRFStructure
from structsolve.potentials.calls import score
from structsolve.projections.choose import free_nodes
from structsolve.projections.double_oracle import DoubleOracle
from structsolve.projections.matrix_game import play
from structsolve.solvers import GBCFW
from structsolve.solvers.problem import Problem
from structsolve.structure import calls, projection_calls
from structsolve.surrogates import MaxMin


def game_value(payoff):
    """Return the value of a matrix game, by HiGHS."""
    q, m = payoff.shape
    answer = linprog(
        np.r_[np.zeros(m), -1],
        A_ub=np.c_[-payoff, np.ones(q)],
        b_ub=np.zeros(q),
        A_eq=[np.r_[np.ones(m), 0]],
        b_eq=[1],
        bounds=[(0, None)] * m + [(None, None)],
    )
    return -answer.fun


@pytest.mark.parametrize("levels", [0, 2, 3])
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (3, 4), (12, 9), (40, 40)])
def test_matrix_games(shape, levels):
    rng = np.random.default_rng(shape[0])
    for _ in range(20):
        # With few levels there are ties and degenerate bases.
        payoff = 1 + (rng.integers(0, levels, shape) if levels else rng.random(shape)).astype(float)
        columns, rows = play(payoff)
        for x in (columns, rows):
            assert x.min() >= 0 and x.sum() == pytest.approx(1)
        value = game_value(payoff)
        assert (payoff @ columns).min() == pytest.approx(value, abs=1e-9)
        assert (rows @ payoff).max() == pytest.approx(value, abs=1e-9)


def test_matrix_games_are_checked():
    for payoff in ([[0.0]], [[np.nan]], [1.0], np.zeros((0, 2))):
        refused("above 0", play, payoff)


NAMES = ("classes", "costly", "chain", "costly_chain", "loose_chain", "pairs", "ranks",
         "ranks_hamming", "matchings", "costly_thresholds")  # fmt: skip


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("most", [1, 2, 40])
@pytest.mark.parametrize("name", NAMES)
def test_certificates_hold_and_close(name, most, warm):
    rng = np.random.default_rng(2)
    surrogate = MaxMin(max_iter=most, tol=0, warm_start=warm, closed_form=False)
    case = Case("max-min", name, surrogate=surrogate)
    projection = case.problem.surrogate.projection
    assert isinstance(projection, DoubleOracle)
    for i in range(case.problem.n):
        for theta in case.thetas(i, rng):
            value = case.value(i, theta) + theta @ case.mu[i][case.truths[i]]
            mu, low, high = calls.project(projection, i, theta)
            slack = 1e-7 * (1 + abs(value))
            assert low - slack <= value <= high + slack
            # The value is that of mu, which lies in the polytope.
            if mu.min() >= 0:  # thresholds are no marginals
                term = projection_calls.term(projection, i, mu)
                assert term + theta @ mu == pytest.approx(low, abs=slack)
            if most == 40:
                assert high - low <= slack


COSTS = CostMatrix([[0, 2, 1], [3, 0, 1], [1, 1, 0]])


@pytest.mark.parametrize("closed_form", [True, False])
@pytest.mark.parametrize("geometry", ["labels", "euclidean", "entropy"])
@pytest.mark.parametrize("loss", ["hamming", COSTS])
@pytest.mark.parametrize("edges", [[[0, 1]], np.zeros((0, 2), int)], ids=["pair", "no edge"])
def test_nodes_with_numbers_of_states_of_their_own(edges, loss, geometry, closed_form):
    """Neither side may play a state that a node does not have."""
    rng = np.random.default_rng(5)
    X, Y = list(rng.normal(size=(3, 2, 2))), [[0, 2], [1, 1], [1, 0]]
    structure = MRFStructure(edges=edges, n_states=[2, 3], tables="per-edge")
    space, examples = structure.make_space(X, Y)
    surrogate = MaxMin(geometry=geometry, max_iter=200, tol=0, closed_form=closed_form)
    problem = Problem(space, examples, loss, surrogate)
    for i in range(problem.n):
        labels = space.enumerate_labels(problem.examples, i)
        theta = score(problem.potentials, i, rng.normal(size=problem.dim))
        payoff = np.empty((len(labels), len(labels)))
        for a, truth in enumerate(labels):
            index, entries = calls.encode(problem.parts, i, truth)
            scored = theta[index] @ entries
            for b, label in enumerate(labels):
                payoff[b, a] = calls.loss_value(problem.loss, i, truth, label) + scored
        value = game_value(payoff)
        _, low, high = calls.project(problem.surrogate.projection, i, theta)
        assert low - 1e-7 <= value <= high + 1e-7
        assert high - low <= 0.05


def test_spaces_that_list_fewer_labels_have_no_free_nodes():
    space, _ = get_structure("chain").make_space([[[0.0]]], [["a"]])
    assert free_nodes(space)

    class Fewer(type(space)):
        def enumerate_labels(self, examples, i):
            return super().enumerate_labels(examples, i)[:-1]

    space, _ = get_structure("chain").make_space([[[0.0]]], [["a"]])
    space.__class__ = Fewer
    assert not free_nodes(space)
    space.free_nodes = True
    assert free_nodes(space)


class Rising(PyChainSpace):
    def contains(self, label, examples, i):
        return bool((np.diff(label) >= 0).all())


@pytest.mark.parametrize("transitions", [True, False])
@pytest.mark.parametrize("closed_form", [True, False])
@pytest.mark.parametrize("geometry", ["labels", "euclidean", "entropy"])
def test_neither_side_plays_what_the_space_does_not_contain(geometry, closed_form, transitions):
    rng = np.random.default_rng(3)
    structure = get_structure("chain", start_end=False, transitions=transitions)
    native, examples = structure.make_space(list(rng.normal(size=(4, 3, 2))), [[0, 1, 2]] * 4)
    space = Rising.of(native)
    assert not free_nodes(space)
    surrogate = MaxMin(geometry=geometry, max_iter=400, tol=0.005, closed_form=closed_form)
    problem = Problem(space, examples, "hamming", surrogate)
    labels = space.enumerate_labels(examples, 0)
    losses = (labels[:, None] != labels[None]).sum(2).astype(float)
    for i in range(problem.n):
        theta = score(problem.potentials, i, rng.normal(size=problem.dim))
        entries = [calls.encode(problem.parts, i, label) for label in labels]
        value = game_value(losses + [theta[index] @ shares for index, shares in entries])
        _, low, high = calls.project(problem.surrogate.projection, i, theta)
        assert low - 1e-7 <= value <= high + 1e-7
        assert high - low <= 0.05


@pytest.mark.parametrize("name", ["chain", "mrf"])
def test_subclasses_that_contain_fewer_labels_have_no_free_nodes(name):
    structure = get_structure(name)
    space, _ = structure.make_space(*structure.sample(0))
    assert free_nodes(space)
    space, _ = structure.make_space(*structure.sample(0))
    space.__class__ = type("Fewer", (type(space),), {"contains": Rising.contains})
    assert not free_nodes(space)


def test_mixtures_have_room():
    """Bounds close, although the best mixtures have more than 16 labels."""
    X, Y = get_structure("cky").sample(0, n=60, size=6)
    model = StructuredSVM("cky", surrogate="max-min", alpha=0.01).fit(X, Y)
    assert model.stop_reason_ == "converged"


def test_room_for_mixtures_in_large_data():
    """Games of many examples take 256 MB, or as much as two vectors of scores."""
    structure, numbers = get_structure("chain"), []
    for n in (10, 3000):
        X, Y = (
            Sequences(np.zeros((40 * n, 1)), np.full(n, 40)),
            Sequences(np.arange(40 * n) % 9, np.full(n, 40)),
        )
        problem = Problem(*structure.make_space(X, Y), "hamming", MaxMin())
        arrays = problem.surrogate.memory_of_examples()
        numbers.append(arrays["losses"].size / n)
        theta = problem.task.layout.sizes(0)[0]
    assert 2 * theta < numbers[1] < (1 << 25) / 3000 + 8 < numbers[0]


def test_labels_are_kept_within_limits():
    """Long chains with randomly changing scores: places run out, and nothing else happens."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(60, 4)) for _ in range(2)]
    Y = [rng.integers(0, 5, 60) for _ in X]
    problem = Problem(
        *get_structure("chain").make_space(X, Y), "hamming", MaxMin(max_iter=150, tol=0)
    )
    surrogate, most = problem.surrogate, 0
    for scale in (0, 0.01, 0.1, 1, 10, 1e3, 1e-3, 1e6, 0):
        theta = score(problem.potentials, 0, scale * rng.normal(size=problem.dim))
        _, low, high = calls.project(surrogate.projection, 0, theta)
        assert np.isfinite([low, high]).all() and low <= high
        sizes = surrogate.memory_of_examples()["sizes"][0]
        assert (sizes >= 1).all() and (sizes <= 128 - 6).all()
        most = max(most, sizes.max())
    assert most == 128 - 6


@pytest.mark.parametrize("warm", [True, False])
def test_full_tables_do_not_end_an_answer(warm):
    """Labels of earlier scores fill all places, and must not take part in later answers."""
    rng = np.random.default_rng(1)
    X, Y = [rng.normal(size=(9, 4))], [rng.integers(0, 3, 9)]
    space, examples = get_structure("chain").make_space(X, Y)
    surrogate = MaxMin(max_iter=400, tol=0, warm_start=warm)
    problem = Problem(space, examples, "hamming", surrogate)
    for _ in range(30):
        theta = score(problem.potentials, 0, 0.5 * rng.normal(size=problem.dim))
        _, low, high = calls.project(problem.surrogate.projection, 0, theta)
        assert high - low <= 1e-9 * (1 + abs(low))


def test_scores_that_are_no_numbers():
    case = Case("max-min", "chain", surrogate=MaxMin(closed_form=False))
    projection = case.problem.surrogate.projection
    for bad in (np.nan, np.inf, -np.inf):
        theta = np.full(case.size(2), bad)
        try:
            calls.project(projection, 2, theta)
        except ValueError:
            continue
    # Afterwards everything works again.
    theta = np.zeros(case.size(2))
    _, low, high = calls.project(projection, 2, theta)
    assert low <= case.value(2, theta) + 1e-9 and high >= case.value(2, theta) - 1e-9


@pytest.mark.parametrize("geometry", ["labels", "euclidean"])
@pytest.mark.parametrize("name", ["chain", "costly", "pairs", "matchings", "costly_thresholds"])
def test_the_dual_never_falls_and_steps_are_the_best(name, geometry):
    surrogate = MaxMin(geometry=geometry, max_iter=20)
    case = Case("max-min", name, seed=3, surrogate=surrogate)
    run = begin(GBCFW(averaging=False), case.problem, 0.05)
    before = run.dual
    for _ in range(15):
        for i in range(case.problem.n):
            run.loop.run(np.array([i]), "search", 0, False)
            assert run.dual >= before - 1e-12
            before = run.dual
    best = case.optimum(0.05)
    assert run.dual <= best + 1e-9


def test_checkpoints_with_other_sizes_are_refused():
    case = Case("max-min", "chain", surrogate=MaxMin())
    surrogate = case.problem.surrogate
    arrays = {k: v.copy() for k, v in surrogate.memory_of_examples().items()}
    arrays["sizes"][0, 0] = 1000
    refused("more labels", surrogate.remember, arrays)
