"""Consensus over shards with words as features: weights that one shard alone has."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from solver_cases import (
    begin,
    check_bounds,
    check_continued,
    check_threads,
    follow,
    through_file,
    word_data,
)

import structsolve
from structsolve import Problem
from structsolve.solvers import BCFW, ConsensusADMM
from structsolve.solvers.held import Common, features_of
from structsolve.solvers.places import places
from structsolve.solvers.run import relative_gap


def words(structure="chain", n=24, n_features=90, states=3, seed=0, values="ones", **more):
    """Return a problem of :func:`word_data`."""
    X, Y = word_data(structure, n, n_features, states, seed, values)
    space, examples = structsolve.get_structure(structure).make_space(X, Y, **more)
    return Problem(space, examples)


def optimum(problem, alpha):
    best = follow(begin(BCFW(), problem, alpha, tol=1e-6), 1e-6, 3000)[-1]
    assert relative_gap(best) <= 1e-6
    return best


@settings(max_examples=40)
@given(
    structure=st.sampled_from(["chain", "multiclass"]),
    n=st.integers(3, 24),
    n_shards=st.integers(2, 6),
    states=st.integers(2, 9),
    values=st.sampled_from(["ones", "normal"]),
    fit_intercept=st.booleans(),
    alpha=st.sampled_from([1.0, 0.1, 0.01]),
    seed=st.integers(0, 1000),
)
def test_bounds_hold_and_meet(structure, n, n_shards, states, values, fit_intercept, alpha, seed):
    problem = words(structure, n, 90, states, seed, values, fit_intercept=fit_intercept)
    best = optimum(problem, alpha)
    run = begin(ConsensusADMM(n_shards, certify_every=1), problem, alpha, seed, tol=1e-3)
    assert run.common is not None
    records = follow(run, 1e-3, 400)
    check_bounds(records, best)
    assert relative_gap(records[-1]) <= 1e-3
    value, _ = problem.primal(run.weights(), alpha)
    assert value == pytest.approx(records[-1]["primal"], rel=1e-12)
    assert run.contradiction() is None


def test_a_dual_is_that_of_all_dual_variables():
    """Independently: the dual variables of all shards as those of one loop over all weights."""
    problem, alpha = words(values="normal"), 0.05
    run = begin(ConsensusADMM(3, certify_every=1), problem, alpha)
    for _ in range(4):
        run.step()
        w, total = np.zeros(problem.dim), 0.0
        for shard in run.engine.shards:
            loop = shard.loop
            other = type(loop)(
                problem.potentials, problem.surrogate, problem.labels, problem.weights, alpha
            )
            zeros = np.zeros(problem.dim)
            counters = {**loop.counters(), "alpha": alpha}
            other.restore(counters, loop.to_arrays(), zeros, zeros, loop.gaps)
            other.resynchronise()
            w += other.w
            total += other.b_total
            # The shard's part of the weights is in the right places.
            held = run.common.whole.node_block(other.w)[shard.place.features]
            np.testing.assert_allclose(held.ravel(), shard.alone(), atol=1e-12)
        dual = total - 0.5 * alpha * float(w @ w)
        assert run.best_dual >= dual - 1e-12
        spread = run.common.of_whole(w)
        np.testing.assert_allclose(spread, run.dual_w, atol=1e-12)
        square = float(run.dual_w @ run.dual_w) + sum(s.square for s in run.engine.shards)
        assert float(w @ w) == pytest.approx(square, rel=1e-9)


def test_shards_move_only_the_weights_of_their_features():
    problem = words(n=40, n_features=400)
    run = begin(ConsensusADMM(4), problem, 0.05)
    run.step()
    counts = np.zeros(400)
    for shard in run.engine.shards:
        mask = features_of(problem, shard.picks)
        counts += mask
        assert len(shard.place.features) + len(shard.place.rows) <= mask.sum() + 1
        assert shard.loop.w.size < problem.dim / 2 and shard.y.size < problem.dim / 3
    assert np.array_equal(np.flatnonzero(counts > 1), run.common.features)
    assert run.z.size < problem.dim / 2
    # Features that no example has keep weight 0.
    unseen = problem.space.layout.node_block(run.weights())[:400][counts == 0]
    assert (counts == 0).any() and not unseen.any()


def test_threads_change_no_bit():
    check_threads(lambda n_jobs: begin(ConsensusADMM(5), words(), 0.05, n_jobs=n_jobs), 9)


@pytest.mark.parametrize("cut", [1, 2, 6])
def test_a_checkpoint_continues_to_the_last_bit(cut, tmp_path):
    solver, alpha = ConsensusADMM(n_shards=3), 0.05
    # Another seed draws other shards, but those of the file are used.
    whole, _, _, rest = check_continued(
        lambda seed: begin(solver, words(), alpha, seed), 13, cut, tmp_path / "run"
    )
    for run in (rest, whole):
        run.continue_at(2 * alpha)
    assert rest.step() == whole.step()


def test_checkpoints_in_which_shards_hold_all_weights_go_on(tmp_path, monkeypatch):
    """Files of earlier versions are such."""
    problem, alpha = words(), 0.05
    with monkeypatch.context() as patch:
        patch.setattr(Common, "of_counts", lambda *_: None)
        whole = begin(ConsensusADMM(3), problem, alpha)
        for _ in range(3):
            whole.step()
    fresh = begin(ConsensusADMM(3), problem, alpha)
    assert fresh.common is not None
    rest = through_file(whole, fresh, tmp_path / "run")
    assert rest.common is None
    assert [rest.step() for _ in range(4)] == [whole.step() for _ in range(4)]
    assert np.array_equal(rest.weights(), whole.weights())


@pytest.mark.parametrize("alphas", [(0.5, 0.05), (0.05, 0.5)])
def test_another_alpha_goes_on_from_the_same_duals(alphas):
    problem = words()
    run = begin(ConsensusADMM(certify_every=1), problem, alphas[0], tol=1e-3)
    follow(run, 1e-3, 200)
    run.continue_at(alphas[1])
    warm = follow(run, 1e-3, 400)
    assert relative_gap(warm[-1]) <= 1e-3
    check_bounds(warm, optimum(problem, alphas[1]))


def test_the_penalty_may_change():
    problem, alpha = words(n=30), 1e-3
    run = begin(ConsensusADMM(certify_every=1), problem, alpha, tol=1e-3)
    for _ in range(3):
        run.step()
    run.stronger *= 3
    run._change_penalty()
    records = follow(run, 1e-3, 400)
    assert relative_gap(records[-1]) <= 1e-3
    check_bounds(records, optimum(problem, alpha))


def test_bcfw_finishes_from_what_shards_hold():
    problem, alpha = words(), 0.05
    run = begin(ConsensusADMM(2, finish=0.05), problem, alpha, tol=1e-4)
    records = follow(run, 1e-4, 400)
    assert run.finishing and relative_gap(records[-1]) <= 1e-4
    check_bounds(records, optimum(problem, alpha))


def test_places_are_inverse_to_each_other():
    problem = words(fit_intercept=True)
    parts = np.array_split(np.arange(problem.n), 3)
    counts = np.sum([features_of(problem, part) for part in parts], axis=0)
    common = Common.of_counts(problem.space.layout, counts, 3)
    z = np.random.default_rng(0).normal(size=common.dim)
    assert np.array_equal(common.of_whole(common.spread(z, np.zeros(problem.dim))), z)
    weights = np.random.default_rng(1).normal(size=problem.dim)
    layout = problem.space.layout
    weights[layout.shared_size :][layout.node_rows * layout.node_size :] = 0.0
    for place in places(problem, common, parts):
        own = place.local(weights, 0.5)
        mine = np.zeros(problem.dim)
        place.insert(own, 0.5, mine)
        rows = layout.node_block(mine)
        assert np.array_equal(rows[place.features], layout.node_block(weights)[place.features])
        assert np.count_nonzero(rows.any(axis=1)) == len(place.features)
        if not place.all:
            back = place.gathered(place.chosen(z))
            kept = common.layout.node_block(back)[place.rows]
            assert np.array_equal(kept, common.layout.node_block(z)[place.rows])


def test_dense_features_are_held_by_all():
    X, Y = structsolve.get_structure("chain").sample(0, n=12)
    space, examples = structsolve.get_structure("chain").make_space(X, Y)
    assert begin(ConsensusADMM(3), Problem(space, examples), 0.1).common is None
    assert Common.of_counts(space.layout, np.ones(space.layout.n_features), 1) is None
