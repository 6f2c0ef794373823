"""Consensus ADMM over shards of one problem: certificates, threads, checkpoints, alpha paths."""

import threading

import numpy as np
import pytest
from checks import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.objectives import primal
from solver_cases import (
    begin,
    check_bounds,
    check_continued,
    check_threads,
    follow,
    make_case,
    narrow,
    through_file,
)

import structsolve
from structsolve import Problem, StructuredSVM, make_strips
from structsolve.solvers import BCFW, ConsensusADMM
from structsolve.solvers.run import relative_gap

METRICS = ("identity", "spectral")
STRUCTURES = ("multiclass", "chain", "multilabel", "tree", "ordinal", "permutation", "mrf", "grid")


def problem_of(name, n=18, seed=0, **settings):
    structure = structsolve.get_structure(name)
    X, Y = structure.sample(seed, n=n)
    return Problem(*structure.make_space(X, Y), **settings)


@settings(max_examples=60)
@given(
    kind=st.sampled_from(["chain", "ties", "edges", "classes"]),
    loss=st.sampled_from(["hamming", "zero-one", "costs"]),
    n=st.integers(1, 9),
    n_shards=st.integers(1, 10),
    alpha=st.sampled_from([1.0, 0.1, 0.01]),
    seed=st.integers(0, 1000),
    metric=st.sampled_from(METRICS),
)
def test_every_record_holds_against_the_optimum(kind, loss, n, n_shards, alpha, seed, metric):
    weights = np.random.default_rng(seed).integers(0, 3, n).astype(float)
    weights[0] = 1.0
    case = make_case(kind, seed, n, loss, weights)
    best = case.optimum(alpha)
    solver = ConsensusADMM(n_shards, certify_every=1, metric=metric)
    run = begin(solver, case.problem, alpha, seed)
    assert run.shards == min(n, n_shards)
    for record in follow(run, 1e-4, 60):
        assert record["dual"] <= best.value * (1 + 1e-7) + 1e-12
        assert record["primal"] >= best.value * (1 - 1e-7)
        assert record["gap"] == pytest.approx(record["primal"] - record["dual"], abs=1e-15)
    value = primal(case.flat(run.weights()), case.written, alpha, case.problem.weights, None)
    assert value == pytest.approx(record["primal"], rel=1e-9)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", STRUCTURES)
def test_it_comes_to_the_optimum_of_bcfw(name, metric):
    problem = problem_of(name)
    best = follow(begin(BCFW(), problem, 0.05), 1e-6)[-1]
    run = begin(ConsensusADMM(metric=metric), problem, 0.05, tol=1e-3)
    last = follow(run, 1e-3, 400)[-1]
    assert relative_gap(last) <= 1e-3 and relative_gap(best) <= 1e-6
    assert best["dual"] * (1 - 1e-9) <= last["primal"] <= best["primal"] * (1 + 1.1e-3)
    assert run.contradiction() is None
    assert last["metric"] == metric and (run.metric is not None) == (metric == "spectral")


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", ["chain", "multilabel", "mrf"])
def test_threads_change_no_bit(name, metric):
    solver = ConsensusADMM(n_shards=5, metric=metric)
    check_threads(lambda n_jobs: begin(solver, problem_of(name), 0.05, n_jobs=n_jobs), 7)


def test_shards_go_side_by_side():
    """Two oracles of two shards run at once: each waits until it has seen the other."""
    together = threading.Barrier(2, timeout=60)

    def oracle(w, x, y=None):
        if threads:
            together.wait()
        scores = w.reshape(2, -1) @ x
        return int(np.argmax(scores + (0 if y is None else np.arange(2) != y)))

    structure = structsolve.get_structure(
        "functions",
        features=lambda x, y: np.outer(np.arange(2) == y, x).ravel(),
        oracle=oracle,
        loss=lambda y, z: float(y != z),
        dim=4,
    )
    threads = False
    problem = Problem(*structure.make_space(np.eye(2), [0, 1]))
    run = begin(ConsensusADMM(2, penalty=8.0, certify_every=99), problem, 0.1, n_jobs=2)
    run.next_certificate, threads = 99, True
    run.step()
    assert together.n_waiting == 0 and not together.broken


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("cut", [1, 2, 5])
def test_a_checkpoint_continues_to_the_last_bit(cut, metric, tmp_path):
    solver, alpha = ConsensusADMM(n_shards=3, metric=metric), 0.05
    # Another seed draws other shards, but those of the file are used.
    whole, _, first, rest = check_continued(
        lambda seed: begin(solver, problem_of("chain"), alpha, seed), 9, cut, tmp_path / "run"
    )
    # Transformed features exist once, whoever asks for their bytes.
    assert rest.memory()["examples"] == whole.memory()["examples"]
    assert metric == "identity" or rest.metric._made == (None, None)
    for other in (rest, whole):
        other.continue_at(2 * alpha)
    assert rest.step() == whole.step()
    with pytest.raises(ValueError, match="3 shards, expected 2"):
        through_file(first, begin(ConsensusADMM(2), problem_of("chain"), alpha), tmp_path / "run")


@pytest.mark.parametrize("name", ["chain", "multiclass", "tree"])
@pytest.mark.parametrize("most", [2, 10])
def test_certificates_come_as_the_gap_falls(name, most):
    """Few rounds are added, because the end is noticed soon after the tolerance is reached."""
    problem, tol = problem_of(name), 1e-3
    each = follow(begin(ConsensusADMM(certify_every=1), problem, 0.02, tol=tol), tol, 400)
    some = follow(begin(ConsensusADMM(certify_every=most), problem, 0.02, tol=tol), tol, 400)
    assert relative_gap(some[-1]) <= tol and some[-1]["certified"]
    rounds = [k for k, record in enumerate(some) if record["certified"]]
    assert rounds[0] == 0 and max(np.diff(rounds)) <= most
    assert len(rounds) <= 0.6 * len(some)
    assert len(some) <= 1.15 * len(each) + 2


@pytest.mark.parametrize("metric", METRICS)
def test_the_penalty_grows_where_shards_stay_apart(metric):
    problem, alpha = narrow(), 1e-3
    best = follow(begin(BCFW(), problem, alpha), 1e-5)[-1]
    assert relative_gap(best) <= 1e-5
    run = begin(ConsensusADMM(certify_every=1, metric=metric), problem, alpha, tol=1e-2)
    first = run.rho
    history = follow(run, 1e-2, 300)
    # Initially they were 75 in the spectral metric, and above 300 otherwise.
    assert len(history) <= 120 and run.rho > 2 * first
    check_bounds(history, best)
    fixed = begin(ConsensusADMM(penalty=12.0, metric=metric), problem, alpha)
    first = fixed.rho
    for _ in range(30):
        fixed.step()
    assert fixed.rho == first
    # The learned penalty holds for another alpha, too.
    run.continue_at(2 * alpha)
    cold = begin(ConsensusADMM(metric=metric), problem, 2 * alpha)
    assert run.rho == pytest.approx(run.stronger * cold.rho) and run.stronger > 2


def test_the_penalty_falls_where_the_consensus_is_slow():
    problem = narrow()
    run = begin(ConsensusADMM(certify_every=1), problem, 1e-2, tol=1e-3)
    run.stronger = 256.0
    run._set_penalty()
    first = run.rho
    history = follow(run, 1e-2, 300)
    stiff = ConsensusADMM(certify_every=1, penalty=run.shards * first / 1e-2)
    fixed = begin(stiff, problem, 1e-2)
    assert fixed.rho == pytest.approx(first)
    assert run.rho <= first / 4 and len(history) <= 0.7 * len(follow(fixed, 1e-2, 600))


@pytest.mark.parametrize("cut", [12, 28])
def test_a_checkpoint_knows_how_the_penalty_has_changed(cut, tmp_path):
    problem, alpha = narrow(), 1e-3
    whole, _, first, _ = check_continued(
        lambda seed: begin(ConsensusADMM(), problem, alpha, seed), 32, cut, tmp_path / "run"
    )
    assert (first.stronger, whole.stronger) == (1.0 if cut == 12 else 3.0, 3.0)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("alphas", [(0.5, 0.05), (0.05, 0.5)])
def test_another_alpha_goes_on_from_the_same_duals(alphas, metric):
    problem = problem_of("chain")
    run = begin(ConsensusADMM(certify_every=1, metric=metric), problem, alphas[0], tol=1e-3)
    old = follow(run, 1e-3, 200)[-1]
    run.continue_at(alphas[1])
    warm = follow(run, 1e-3, 400)
    cold = follow(begin(BCFW(), problem, alphas[1]), 1e-6)[-1]
    assert relative_gap(warm[-1]) <= 1e-3
    check_bounds(warm, cold)
    # With a larger alpha the old variables lower the dual less: it exceeds the old one at once.
    if alphas[1] > alphas[0]:
        assert warm[0]["dual"] > old["dual"] > 0


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("after", [1, 9, 23, 41, 65, 100])
def test_a_round_that_was_broken_off_harms_no_later_one(after, n_jobs):
    """Ctrl-C stops a run; warm starts continue it."""
    calls, alpha = [0, 10**9], 0.05

    def oracle(w, x, y=None):
        calls[0] += 1
        if calls[0] == calls[1]:
            raise KeyboardInterrupt
        scores = w.reshape(3, -1) @ x
        return int(np.argmax(scores + (0 if y is None else np.arange(3) != y)))

    structure = structsolve.get_structure(
        "functions",
        features=lambda x, y: np.outer(np.arange(3) == y, x).ravel(),
        oracle=oracle,
        loss=lambda y, z: float(y != z),
        dim=6,
    )
    rng = np.random.default_rng(0)
    problem = Problem(*structure.make_space(rng.normal(size=(12, 2)), rng.integers(0, 3, 12)))
    best = follow(begin(BCFW(), problem, alpha), 1e-6)[-1]
    run = begin(ConsensusADMM(3, certify_every=1), problem, alpha, n_jobs=n_jobs)
    calls[:] = 0, after
    with pytest.raises(KeyboardInterrupt):
        follow(run, 0.0, 50)
    calls[1] = 10**9
    records = follow(run, 1e-3, 400)
    assert relative_gap(records[-1]) <= 1e-3
    check_bounds(records, best)


def test_estimators_take_it_by_name_with_a_warm_start():
    train, test = make_strips(120, 60)
    model = StructuredSVM("chain", solver="admm", alpha=0.1, tol=0.01, n_jobs=2, warm_start=True)
    model.fit(train.pixels, train.labels)
    assert model.stop_reason_ == "converged" and model.solver_.name == "admm"
    assert {"examples", "shards", "weights"} == model.memory_.keys()
    assert min(model.memory_.values()) > 0
    plain = StructuredSVM("chain", alpha=0.1, tol=1e-4).fit(train.pixels, train.labels)
    last = plain.history_[-1]
    assert model.history_[-1]["primal"] <= last["primal"] * 1.011
    model.set_params(alpha=0.02).fit(train.pixels, train.labels)
    assert model.stop_reason_ == "converged"
    assert model.score(test.pixels, test.labels) > 0.7


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"n_shards": 0}, "n_shards is 0, expected an integer >= 1"),
        ({"penalty": -1.0}, "penalty is -1.0, expected > 0"),
        ({"certify_every": 0}, "certify_every is 0"),
        ({"metric": "euclid"}, r"metric is 'euclid', expected one of \['identity', 'spectral'"),
    ],
)
def test_wrong_settings_are_refused(settings, words):
    refused(words, begin, ConsensusADMM(**settings), problem_of("chain"), 0.1)


def test_what_it_cannot_train_is_refused():
    for more, words in (
        ({"surrogate": "probloss"}, "affine in the margin"),
        ({"penalize_intercept": False}, "cannot leave the intercept unpenalised"),
    ):
        refused(words, begin, ConsensusADMM(), problem_of("chain", **more), 0.1)
    model = StructuredSVM("multiclass", solver="admm", kernel="rbf")
    refused("moves weights of features", model.fit, [[0.0], [1.0]], [0, 1])
