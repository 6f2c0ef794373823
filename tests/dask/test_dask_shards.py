"""Shards and their rounds in one process: the same answers as from all examples at once."""

import pickle

import numpy as np
import pytest
from checks import refused
from solver_cases import check_bounds, word_data

import structsolve
from structsolve import Problem
from structsolve.dask import ConsensusADMM, data
from structsolve.dask.consensus import ShardedConsensusRun
from structsolve.dask.cuts import ShardedCuttingPlaneRun
from structsolve.dask.engine import LocalEngine
from structsolve.dask.problem import RemoteProblem
from structsolve.dask.shard import RemoteShard
from structsolve.solvers import BCFW, CuttingPlane, LinearConstraint
from structsolve.solvers.driver import drive
from structsolve.solvers.metric import Moments, SpectralMetric
from structsolve.solvers.passes import subgradient
from structsolve.solvers.run import Start
from structsolve.solvers.shard import Order, Shard

STRUCTURES = ("multiclass", "chain", "multilabel", "tree", "ordinal", "permutation", "mrf")
ALPHA = 0.05


def data_of(name, n=18, seed=0):
    if name == "words":
        return structsolve.get_structure("chain"), *word_data("chain", n, seed=seed)
    structure = structsolve.get_structure(name)
    return structure, *structure.sample(seed, n=n)


def rows(values, picks):
    return [values[i] for i in picks] if isinstance(values, (list, tuple)) else values[picks]


def sharded(name, n_shards, n=18, seed=0, weights=None, **settings):
    """Return the problem over all examples, and the same one over shards."""
    structure, X, Y = data_of(name, n, seed)
    penalize = settings.get("penalize_intercept", True)
    space, examples = structure.make_space(X, Y)
    weights = np.ones(n) if weights is None else weights
    examples.sample_weight = weights
    whole = Problem(space, examples, **settings)
    shards = []
    for k, picks in enumerate(np.array_split(np.arange(n), n_shards)):
        own = space.pack(rows(X, picks), rows(Y, picks))
        own.sample_weight = weights[picks]
        problem = Problem(space, own, **settings)
        shards.append(RemoteShard(problem, k, weights.sum(), weights[picks].sum(), seed=3))
    engine = LocalEngine(shards)
    return whole, RemoteProblem(engine, space, engine.ask("facts").each, penalize)


def _segments(rng, n):
    long = np.sort(rng.integers(1, 4, n))
    return [rng.normal(size=(k, 2)) for k in long], [[(0, int(k), "AB"[k % 2])] for k in long]


def _pictures(rng, n):
    X = [rng.normal(size=rng.integers(1, 4, 2)) * (1 + i) for i in range(n)]
    return X, [(x > 0).astype(int) for x in X]


def _label_sets(rng, n):
    Y = rng.integers(0, 2, (n, 9))
    Y[: n // 2, 1], Y[n // 2 :, 2] = Y[: n // 2, 0], Y[n // 2 :, 0]
    return rng.normal(size=(n, 2)), Y


def _levels(rng, n):
    paths = [["a", "x"], ["b", "x"], ["a", ""], ["c", "y"], ["b", "z"]]
    return rng.normal(size=(n, 2)), np.array(paths)[np.arange(n) * 5 // n]


@pytest.mark.parametrize(
    "name, draw",
    [
        ("semi-markov", _segments),
        ("grid:contrast=gaussian", _pictures),
        ("multilabel:edges=tree", _label_sets),
        ("multilabel", _label_sets),
        ("dag", _levels),
    ],
)
def test_what_spaces_learn_is_that_of_all_shards(name, draw):
    X, Y = draw(np.random.default_rng(0), 100)
    settings = {"structure": name, "fit_intercept": True, "plugins": []}
    shards = [(rows(X, p), rows(Y, p), None) for p in np.array_split(np.arange(100), 4)]
    facts = [data.learn(shard, k, settings) for k, shard in enumerate(shards)]
    joined = facts[0]["space"].joined([fact["learned"] for fact in facts], data.union(facts))
    whole = structsolve.get_structure(name).make_space(X, Y)[0]
    assert str(joined.state()) == str(whole.state())
    assert str(joined.state()) != str(facts[0]["space"].state())
    assert joined.pack(X, Y).labels.size == whole.pack(X, Y).labels.size


def test_classes_of_shards_that_numpy_would_round_to_one():
    facts = [{"n_features": 2, "classes": np.array([1, 2])}]
    facts.append({"n_features": 2, "classes": np.array([2**63, 2**63 + 1], np.uint64)})
    refused("y: found 9223372036854775808, a label that NumPy rounds", data.union, facts)


def start(problem, alpha=ALPHA, tol=1e-3):
    return Start(problem, alpha, np.random.default_rng(0), 1, None, tol)


def optimum(problem, tol=1e-6):
    run = BCFW().start(start(problem, tol=tol))
    last = drive(run, 3000, tol).history[-1]
    assert last["gap"] <= tol * last["primal"]
    return last


@pytest.mark.parametrize("name", STRUCTURES)
def test_problems_pickle_and_answer_the_same_bits(name):
    whole, _ = sharded(name, 3, weights=np.random.default_rng(1).uniform(0.5, 2, 18))
    whole.weights = whole.weights * 0.25
    other = pickle.loads(pickle.dumps(whole))
    w = np.random.default_rng(2).normal(size=whole.dim)
    mine, theirs = subgradient(whole, w), subgradient(other, w)
    assert np.array_equal(mine[0], theirs[0]) and mine[1] == theirs[1]
    assert np.array_equal(whole.weights, other.weights)


@pytest.mark.parametrize("name", STRUCTURES)
def test_sums_over_shards_are_those_of_all_examples(name):
    whole, remote = sharded(name, 5, weights=np.random.default_rng(1).uniform(0.5, 2, 18))
    w = np.random.default_rng(2).normal(size=whole.dim)
    g, b, bounds, _ = subgradient(whole, w)
    answer = remote.engine.ask("cut", w)
    np.testing.assert_allclose(answer.sums[0], g, atol=1e-12)
    np.testing.assert_allclose(answer.sums[1], b, atol=1e-12)
    np.testing.assert_allclose(answer.sums[2], whole.weights @ bounds, atol=1e-12)
    both = remote.engine.ask("values", [w, 0 * w]).sums[0]
    np.testing.assert_allclose(both, [whole.weights @ whole.bounds(v)[0] for v in (w, 0 * w)])
    assert remote.n == whole.n and remote.regulariser(w, 2.0) == pytest.approx(w @ w)


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("n_shards", [1, 4])
@pytest.mark.parametrize("metric", ["identity", "spectral"])
def test_consensus_reaches_the_optimum_with_valid_bounds(name, n_shards, metric):
    whole, remote = sharded(name, n_shards)
    best = optimum(whole)
    solver = ConsensusADMM(certify_every=2, metric=metric)
    outcome = drive(ShardedConsensusRun(solver, start(remote)), 400, 1e-3)
    assert outcome.reason == "converged"
    check_bounds(outcome.history, best, estimates=True)
    primal = whole.primal(outcome.w, ALPHA)[0]
    assert primal == pytest.approx(outcome.history[-1]["primal"], rel=1e-9)
    assert primal <= best["primal"] * (1 + 1.1e-3)


@pytest.mark.parametrize("n_shards", [2, 5, 7])
def test_words_reach_the_optimum_with_short_messages(n_shards):
    whole, remote = sharded("words", n_shards, weights=np.random.default_rng(1).uniform(0.5, 2, 18))
    best = optimum(whole)
    run = ShardedConsensusRun(ConsensusADMM(certify_every=1), start(remote))
    outcome = drive(run, 400, 1e-3)
    assert outcome.reason == "converged" and run.common.dim < 0.75 * whole.dim
    vectors = 8 * run.common.dim
    check_bounds(outcome.history, best)
    for record in outcome.history:
        # z and its certificate to a worker, and the sum of its shards back.
        assert 3 * vectors < record["bytes"] < 3 * vectors + 20_000
    primal = whole.primal(outcome.w, ALPHA)[0]
    assert primal == pytest.approx(outcome.history[-1]["primal"], rel=1e-12)


def test_the_best_weights_are_those_of_the_best_round():
    """Shards keep what they alone have: the weights can be read at any later time."""
    runs = [
        ShardedConsensusRun(ConsensusADMM(certify_every=1), start(sharded("words", 3)[1]))
        for _ in range(2)
    ]
    for run in runs:
        for _ in range(4):
            run.step()
    at_once = runs[0].best_w
    runs[1].best_primal = 0.0  # no later round is better
    for _ in range(8):
        runs[1].step()
    assert runs[1].best_after == 4
    assert np.array_equal(runs[1].best_w, at_once) and runs[1].best_after is None


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_the_penalty_follows_the_scale_of_the_features(scale):
    structure, X, Y = data_of("multiclass", n=60, seed=4)
    lengths = []
    for factor in (1.0, scale):
        space, _ = structure.make_space(X * factor, Y, fit_intercept=False)
        shards = []
        for k in range(4):
            own = space.pack(X[k::4] * factor, Y[k::4])
            shards.append(RemoteShard(Problem(space, own), k, 60.0, 15.0, seed=0))
        engine = LocalEngine(shards)
        remote = RemoteProblem(engine, space, engine.ask("facts").each)
        solver = ConsensusADMM(certify_every=1, penalty=4.0)
        run = ShardedConsensusRun(solver, start(remote, ALPHA * factor**2))
        lengths.append(len(drive(run, 200, 1e-2).history))
    assert abs(lengths[0] - lengths[1]) <= 2


@pytest.mark.parametrize("metric", [False, True])
def test_a_shard_that_lags_behind_says_so_and_catches_up_to_the_last_bit(metric):
    _, remote = sharded("chain", 3)
    layout = remote.space.layout
    made = None
    if metric:
        made = SpectralMetric.of_moments(layout, Moments(*remote.engine.ask("moments").sums))
    shard = remote.engine.shards[1]
    fresh = pickle.loads(pickle.dumps(shard))
    rng = np.random.default_rng(0)
    orders = [Order(t, rng.normal(size=remote.dim), 0.5 + t, 1, t == 1) for t in range(12)]
    orders[0].metric = made
    answers = [shard.step(order) for order in orders]
    again = shard.step(orders[-1])
    assert np.array_equal(again.sums[0], answers[-1].sums[0])
    behind = fresh.step(orders[5])
    assert behind.sums == () and behind.each == [{"number": 1, "behind": 0}]
    assert fresh.replay(orders[:7]) == 7
    moved = pickle.loads(pickle.dumps(fresh))
    assert moved.round == 7 and moved.replay(orders) == 12
    answer = moved.step(orders[-1])
    for mine, theirs in zip(answer.sums, answers[-1].sums):
        assert np.array_equal(mine, theirs)
    assert moved.nbytes > 0
    # Transformed rows are counted if there are any.
    assert (shard.nbytes > shard.problem.potentials.nbytes + Shard.nbytes.fget(shard)) == metric


@pytest.mark.parametrize("metric", ["identity", "spectral"])
@pytest.mark.parametrize("name", ["chain", "words"])
def test_a_checkpoint_continues_to_the_last_bit(metric, name, tmp_path):
    def run():
        return ShardedConsensusRun(ConsensusADMM(metric=metric), start(sharded(name, 3)[1]))

    path = tmp_path / "run"
    whole = drive(run(), 9, 0.0)
    drive(run(), 4, 0.0, checkpoint=path, fingerprint="a")
    rest = drive(run(), 9, 0.0, checkpoint=path, fingerprint="a")
    assert np.array_equal(whole.w, rest.w)
    assert [r["dual"] for r in whole.history] == [r["dual"] for r in rest.history]
    other = ShardedConsensusRun(ConsensusADMM(), start(sharded("chain", 2)[1]))
    with pytest.raises(ValueError, match="3 shards, expected 2"):
        drive(other, 9, 0.0, checkpoint=path, fingerprint="a")


@pytest.mark.parametrize("settings", [{}, {"penalize_intercept": False}, {"surrogate": "crf"}])
def test_cutting_planes_over_shards_are_those_over_all_examples(settings):
    whole, remote = sharded("multiclass", 4, **settings)
    one = drive(CuttingPlane().start(start(whole)), 300, 1e-4)
    many = drive(ShardedCuttingPlaneRun(CuttingPlane(), start(remote)), 300, 1e-4)
    assert one.reason == many.reason == "converged"
    assert many.history[-1]["primal"] == pytest.approx(one.history[-1]["primal"], rel=3e-4)


def test_constraints_hold_over_shards():
    whole, remote = sharded("multiclass", 4)
    first = np.zeros(remote.space.layout.view(np.zeros(remote.dim), "node").shape)
    first[0, 0] = 1.0
    rows_ = [LinearConstraint({"node": first}, upper=0.01)]
    solver = CuttingPlane(constraints=rows_)
    one = drive(solver.start(start(whole)), 300, 1e-4)
    many = drive(ShardedCuttingPlaneRun(solver, start(remote)), 300, 1e-4)
    view = remote.space.layout.view(many.w, "node")
    assert view[0, 0] <= 0.01 + 1e-9
    assert many.history[-1]["primal"] == pytest.approx(one.history[-1]["primal"], rel=3e-4)


@pytest.mark.parametrize(
    "solver, settings, words",
    [
        (ConsensusADMM(penalty=0.0), {}, "penalty is 0.0"),
        (ConsensusADMM(passes=0), {}, "passes is 0"),
        (ConsensusADMM(), {"surrogate": "probloss"}, "affine in the margin"),
        (ConsensusADMM(), {"penalize_intercept": False}, "cannot leave the intercept"),
    ],
)
def test_wrong_settings_are_refused(solver, settings, words):
    _, remote = sharded("chain", 2, **settings)
    with pytest.raises(ValueError, match=words):
        ShardedConsensusRun(solver, start(remote))


def test_cuts_of_single_examples_are_refused():
    _, remote = sharded("multiclass", 2)
    with pytest.raises(ValueError, match="slack is 'n', expected 'one' for shards"):
        ShardedCuttingPlaneRun(CuttingPlane(slack="n"), start(remote))
