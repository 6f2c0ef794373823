"""BCFW(batch=): visits of a batch at one w, in threads; the result equals that of one thread."""

import threading
import time
from collections import Counter

import numpy as np
import pytest
from checks import refused, same_run, stopped_after
from constraint_cases import NAMED, rows_of
from data import chains
from solver_cases import begin, check, check_rising, check_sums, follow, make_case

from structsolve import Problem, StructuredSVM, get_structure
from structsolve.potentials.calls import add, score
from structsolve.solvers import BCFW, GBCFW, SDCA, SGD
from structsolve.solvers._team import Team
from structsolve.structure import calls
from structsolve.surrogates import CutSurrogate, Slack
from structsolve.surrogates import calls as calls_of_surrogates

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

ALPHA = 0.02
SETTINGS = {
    "batch": {},
    "few cuts": {"max_cuts": 2, "max_age": 0},
    "frank-wolfe": {"steps": "frank-wolfe"},
    "uniform": {"sampling": "uniform"},
    "gap": {"sampling": "gap", "averaging": False},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=list(SETTINGS))
@pytest.mark.parametrize("kind", ["chain", "ties", "edges"])
def test_the_dual_rises_to_the_optimum(kind, settings):
    case = make_case(kind, n=9)
    best = case.optimum(ALPHA)
    run = begin(BCFW(batch=4, **settings), case.problem, ALPHA, n_jobs=2)
    slow = "max_cuts" in settings or "frank-wolfe" in settings.values()
    history = follow(run, 1e-2 if slow else 1e-8, passes=20_000)
    check_rising(history)
    check_sums(run, 1e-11)
    if slow:
        assert history[-1]["gap"] <= 1e-2 * history[-1]["primal"]
        assert history[-1]["dual"] <= best.value * (1 + 1e-9)
    else:
        check(case, run, history, best, ALPHA)


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=list(SETTINGS))
def test_threads_change_no_bit(settings):
    case = make_case("ties", n=24)
    ends = []
    for jobs in (1, 2, 3, 4):
        run = begin(BCFW(batch=5, **settings), case.problem, ALPHA, n_jobs=jobs)
        history = [run.step() for _ in range(8)]
        ends.append((history, run.loop.w.tobytes(), run.loop.average.tobytes()))
        assert run.team.size == jobs
    assert all(end == ends[0] for end in ends[1:])


SURROGATES = ["margin", "unit-margin", "slack", Slack(relaxed=True), "generalized:1.5,0.5", "lp"]
SURROGATES += ["max-min", "crf", "sparsemap"]


def dual_now(loop):
    return loop.b_total - 0.5 * loop.alpha * loop.w @ loop.w


@pytest.mark.parametrize("kind", ["chain", "ties", "edges"])
def test_the_dual_falls_in_no_batch(kind):
    """Also if steps of one batch have the same direction: each alone would be too long."""
    rng = np.random.default_rng(0)
    damped = 0
    for seed in range(10):
        loop = begin(BCFW(), make_case(kind, seed, n=12).problem, ALPHA).loop
        alone = begin(BCFW(), make_case(kind, seed, n=12).problem, ALPHA).loop
        before = 0.0
        for t in range(12):
            order = rng.permutation(12)
            calls = 1 if t % 3 == 0 else 0
            loop.run(order, calls, batch=12)
            alone.run(order, calls)
            assert dual_now(loop) >= before - 1e-13
            before = dual_now(loop)
            damped += not np.array_equal(loop.w, alone.w)
    assert damped > 50


def test_a_batch_of_copies_takes_the_step_of_one():
    """Copies of an example propose the same step; after the first, the second adds little."""
    x, y = np.ones((2, 1)), np.array([0, 1])
    problem = Problem(*get_structure("chain").make_space([x] * 4, [y] * 4))
    loop = begin(BCFW(), problem, 1e-3).loop
    loop.run(np.arange(4), 1, inner_tol=0.0, batch=4)
    first = dual_now(loop)
    whole = begin(BCFW(steps="pairwise"), problem, 1e-3)
    follow(whole, 1e-9)
    assert 0.5 * whole.dual < first <= whole.dual * (1 + 1e-9)


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("structure", ["chain", "multilabel"])
def test_every_surrogate_comes_to_the_optimum_of_single_visits(structure, surrogate):
    rng = np.random.default_rng(4)
    X = [rng.normal(size=(3, 2)) for _ in range(7)]
    Y = [rng.integers(0, 2, 3) for _ in range(7)]
    given = get_structure(structure)
    if structure == "multilabel":
        X, Y = rng.normal(size=(7, 2)), np.array(Y)
    if structure == "multilabel" and surrogate == "crf":
        pytest.skip("no exact marginals")

    def problem():
        """A new one for every run, because memories of last answers are kept with it."""
        return Problem(*given.make_space(X, Y), surrogate=surrogate)

    runs = [
        begin(BCFW(steps="pairwise", batch=batch), problem(), 0.05, n_jobs=jobs)
        for batch, jobs in ((1, 1), (16, 1), (16, 3))
    ]
    for run in runs:
        history = follow(run, 1e-4)
        assert history[-1]["gap"] <= 1e-4 * history[-1]["primal"]
        check_rising(history)
    assert runs[1].best_primal == pytest.approx(runs[0].best_primal, rel=2e-4)
    np.testing.assert_array_equal(runs[1].loop.w, runs[2].loop.w)


@pytest.mark.parametrize("name", NAMED)
def test_constraints_hold_and_the_optimum_inside_is_reached(name):
    case = make_case(seed=4, n=10)
    A, b = rows_of(case, NAMED[name])
    best = case.optimum(ALPHA, A=A, b=b)
    run = begin(BCFW(constraints=NAMED[name], batch=4), case.problem, ALPHA, n_jobs=2)
    history = follow(run, 1e-7, passes=400)
    check_rising(history, close=1e-11)
    assert (A @ case.flat(run.weights()) <= b + 1e-12).all()
    assert history[-1]["primal"] == pytest.approx(best.value, rel=1e-6)


def concave(surrogate):
    rng = np.random.default_rng(2)
    X = [rng.normal(size=(length, 3)) for length in rng.integers(1, 5, 20)]
    Y = [rng.integers(0, 3, len(x)) for x in X]
    X[1], Y[1] = X[0], Y[0]
    return Problem(*get_structure("chain").make_space(X, Y), surrogate=surrogate)


@pytest.mark.parametrize("surrogate", ["crf", "sparsemap", "max-min"])
@pytest.mark.parametrize("solver", [GBCFW, SDCA])
def test_steps_towards_projections_come_to_the_same_optimum(surrogate, solver):
    if (surrogate, solver) == ("max-min", SDCA):
        refused("strongly concave", begin, SDCA(batch=2), concave(surrogate), ALPHA)
        return
    tol = 1e-2
    single = begin(solver(), concave(surrogate), ALPHA)
    follow(single, tol)
    ends = []
    for jobs in (1, 2, 4):
        run = begin(solver(batch=7), concave(surrogate), ALPHA, n_jobs=jobs)
        history = follow(run, tol, passes=600)
        check_rising(history)
        check_sums(run, 1e-10)
        assert history[-1]["gap"] <= tol * history[-1]["primal"]
        ends.append((run.loop.w.tobytes(), run.loop.b_total))
    assert ends[0] == ends[1] == ends[2]
    assert run.best_primal == pytest.approx(single.best_primal, rel=2 * tol)


@pytest.mark.parametrize("rule", ["search", "curvature"])
def test_the_dual_of_projections_falls_in_no_batch(rule):
    rng = np.random.default_rng(0)
    for surrogate in ("crf", "sparsemap"):
        run = begin(GBCFW(), concave(surrogate), 1e-3)
        before, moved = 0.0, 0
        for t in range(12):
            run.loop.run(rng.permutation(20), rule, 20 * t, False, 20)
            assert dual_now(run.loop) >= before - 1e-12
            before, moved = dual_now(run.loop), moved + run.loop.moved.sum()
        assert moved > 50


@pytest.mark.parametrize("settings", [{}, {"projection": True}, {"order": "uniform"}], ids=repr)
def test_subgradients_at_one_w(settings):
    case = make_case("ties", n=30)
    best = case.optimum(1.0).value
    single = begin(SGD(**settings), case.problem, 1.0, tol=0)
    follow(single, passes=400)
    ends = []
    for jobs in (1, 2, 4):
        run = begin(SGD(batch=4, **settings), case.problem, 1.0, n_jobs=jobs, tol=0)
        history = follow(run, passes=400)
        ends.append((history, run.loop.last().tobytes()))
        assert all(r["dual"] is None or r["dual"] <= best * (1 + 1e-9) for r in history)
    assert ends[0] == ends[1] == ends[2]
    assert best * (1 - 1e-9) <= run.best_primal <= best * 1.005
    assert not np.array_equal(run.loop.last(), single.loop.last())


def test_a_step_of_a_batch_has_the_subgradient_of_its_first_w():
    """Explicit reference: w shrinks at each step, and cuts are taken at the w before the batch."""
    problem, alpha = make_case("chain", n=6).problem, 0.5
    run = begin(SGD(batch=3, t0=4), problem, alpha)
    w, truths = run.loop.last(), problem.examples.label
    for t, batch in enumerate(np.split(np.arange(6), 2)):
        first = w.copy()
        for k, i in enumerate(batch):
            cut = calls_of_surrogates.cut(
                problem.surrogate, i, score(problem.potentials, i, first), truths(i)
            )
            tau = 4 + 3 * t + k + 1
            g = np.zeros_like(w)
            add(problem.potentials, i, cut.index, cut.value, 1.0, g)
            w = w * (1 - 1 / tau) + g / (alpha * tau)
    run.loop.run(np.arange(6), 1.0, True, 0.0, 3)
    np.testing.assert_allclose(run.loop.last(), w, atol=1e-12)


def test_an_example_that_comes_again_ends_the_batch():
    problem = make_case("chain", n=6).problem
    loops = [begin(BCFW(), problem, ALPHA).loop for _ in range(2)]
    order = np.array([0, 1, 2, 1, 4, 5, 1, 1, 0, 3])
    loops[0].run(order, 1, averaging=True, batch=16)
    for some in np.split(order, [3, 6, 7]):
        loops[1].run(some, 1, averaging=True, batch=16)
    np.testing.assert_array_equal(loops[0].w, loops[1].w)
    np.testing.assert_array_equal(loops[0].average, loops[1].average)
    assert loops[0].steps_done == loops[1].steps_done == 10


@pytest.mark.parametrize("surrogate", ["margin", "crf"])
@pytest.mark.parametrize("stop", [1, 7])
def test_resuming_is_bit_for_bit_whatever_the_threads(tmp_path, stop, surrogate):
    X, Y = chains(40)
    settings = {"solver": BCFW(batch=8), "alpha": 0.01, "tol": 0, "max_iter": 11}
    settings["surrogate"] = surrogate
    whole = StructuredSVM("chain", n_jobs=3, **settings).fit(X, Y)
    model = StructuredSVM("chain", checkpoint=tmp_path / "run", n_jobs=2, **settings)
    with pytest.raises(RuntimeError):
        model.set_params(callbacks=[stopped_after(stop)]).fit(X, Y)
    model.set_params(callbacks=None, n_jobs=1)
    same_run(model.fit(X, Y), whole)


class Failing(CutSurrogate):
    """The margin in Python; it fails, or is interrupted, once armed."""

    name = "failing"
    armed = None

    def cut(self, task, i, theta, truth):
        if self.armed is not None and i % 3 == 1:
            raise self.armed
        scores = theta.copy()
        calls.augment(task.loss, i, truth, 1.0, scores)
        label = calls.argmax(task.oracle, i, scores)[0]
        return *calls.difference(task.parts, i, truth, label), calls.loss_value(
            task.loss, i, truth, label
        )


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize(
    "error, told",
    [(KeyboardInterrupt(), None), (RuntimeError("out of ideas"), "example .: .* out of ideas")],
    ids=repr,
)
def test_what_a_visit_raises_comes_out_and_the_state_is_whole(error, told, jobs):
    X, Y = chains(12)
    surrogate = Failing()
    problem = Problem(*get_structure("chain").make_space(X, Y), surrogate=surrogate)
    run = begin(BCFW(batch=6), problem, ALPHA, n_jobs=jobs)
    run.step()
    surrogate.armed = error
    refused(told, run.step, error=(KeyboardInterrupt, ValueError))
    check_sums(run, 1e-12)
    surrogate.armed = None
    history = follow(run, 1e-4)
    check_rising(history)
    assert history[-1]["gap"] <= 1e-4 * history[-1]["primal"]


class Slow(Failing):
    """The margin in Python, with a sleep of a millisecond; it records threads."""

    name = "slow"

    def cut(self, task, i, theta, truth):
        self.threads.append(threading.get_ident())
        time.sleep(1e-3)
        return super().cut(task, i, theta, truth)


def test_long_visits_are_shared_whatever_has_been_timed():
    X, Y = chains(48)
    surrogate = Slow()
    surrogate.threads = []
    problem = Problem(*get_structure("chain").make_space(X, Y), surrogate=surrogate)
    run = begin(BCFW(batch=8, cached_passes=0, certify_every=99), problem, ALPHA, n_jobs=4)
    # Six batches per pass; the sixteen timed batches end in the third pass.
    for _ in range(3):
        run.step()
    surrogate.threads.clear()
    for _ in range(6):
        run.step()
    counts = Counter(surrogate.threads)
    # Sleeping needs no core, so helpers take pieces even on a busy machine.
    assert sum(counts.values()) == 6 * 48 and counts.most_common(1)[0][1] <= 0.8 * 6 * 48


@pytest.mark.parametrize("batch", [2, 7])
def test_short_visits_have_the_same_outcome_whoever_makes_them(batch):
    """More batches than are timed, and than the clock's verdict lasts."""
    case = make_case("chain", n=400)
    ends = []
    for jobs in (1, 3):
        run = begin(BCFW(batch=batch), case.problem, ALPHA, n_jobs=jobs)
        for _ in range(12):
            run.step()
        ends.append((run.loop.w.tobytes(), run.dual))
    assert ends[0] == ends[1]


def test_a_team_is_of_one_loop():
    problem = make_case("chain", n=6).problem
    mine, other = (begin(BCFW(), problem, ALPHA).loop for _ in range(2))
    order = np.arange(6)
    wrong = {"batch": 4, "team": Team(other, 2)}
    refused("the team was made for another loop", mine.run, order, 1, **wrong)
    refused("batch is 0, expected 1", mine.run, order, 1, batch=0)
    refused("size is 0, expected 1 to 65535 threads", Team, mine, 0)
    refused("size is 4611686018427387904, expected 1 to 65535 threads", Team, mine, 2**62)
    refused("batch is 0, expected an integer >= 1", begin, BCFW(batch=0), problem, ALPHA)
