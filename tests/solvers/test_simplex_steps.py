"""Exact block steps: the projection onto the simplex, and BCFW if labels share no parts."""

import functools
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import random_cases
from solver_cases import begin, check_rising, check_sums, follow, through_file

import structsolve
from structsolve.algorithms.simplex_projection import project_simplex
from structsolve.solvers import BCFW
from structsolve.solvers.problem import Problem


@functools.cache
def supports(n):
    """Return every subset of n entries, as rows of 0 and 1."""
    return np.array([row for row in itertools.product((0.0, 1.0), repeat=n) if any(row)])


def by_enumeration(q):
    """Try every support; the nearest feasible point is the projection."""
    every = supports(len(q))
    points = every * (q - (every @ q - 1)[:, None] / every.sum(axis=1)[:, None])
    points = points[points.min(axis=1) >= 0]
    return points[((points - q) ** 2).sum(axis=1).argmin()]


@random_cases(1500, n=range(1, 7))
def test_projection_with_ties(seed, n):
    q = np.random.default_rng(seed).integers(-6, 7, n) / 4
    np.testing.assert_allclose(project_simplex(q), by_enumeration(q), atol=1e-12)


@settings(max_examples=500)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.sampled_from([1e-12, 1.0, 1e5]))
def test_projection_is_optimal(q, scale):
    """Feasible, and no vertex is in an ascent direction: <q - p, e_y - p> <= 0."""
    q = np.array(q) * scale
    p = project_simplex(q)
    assert p.min() >= 0 and p.sum() == pytest.approx(1, abs=1e-12)
    slope = (q - p) - (q - p) @ p
    assert slope.max() <= 1e-9 * max(1, np.abs(q).max())


@settings(max_examples=1000)
@given(st.floats(-1e8, 1e8), st.one_of(st.floats(-3, 3), st.sampled_from([-1.0, 0.0, 1.0])))
def test_projection_of_two(first, step):
    q = np.array([first, first + step])
    np.testing.assert_array_equal(project_simplex(q), project_simplex(np.append(q, first - 5))[:2])
    np.testing.assert_array_equal(project_simplex(q), project_simplex(q[::-1])[::-1])


def test_projection_of_many_near_ties():
    """Entries that equal the threshold up to rounding must not cause an endless loop."""
    rng = np.random.default_rng(0)
    for n in range(2, 7):
        p = rng.dirichlet(np.ones(n), 4000) * (rng.random((4000, n)) < 0.7)
        q = p + (rng.choice([0.1, 1 / 3, 1e-3], 4000) * rng.random(4000))[:, None]
        for row in q + rng.integers(-2, 3, q.shape) * 1e-16:
            project_simplex(row)


def test_projection_of_extremes():
    np.testing.assert_array_equal(project_simplex([1e300, -1e300]), [1, 0])
    np.testing.assert_array_equal(project_simplex([1e17, 1e17]), [0.5, 0.5])
    for bad in ([], [[1.0]], [np.nan, 1], [np.inf]):
        refused("expected at least one finite number", project_simplex, bad)


def problem(k, n=30, d=6, seed=0, storage="dense", loss="hamming", weights=None, intercept=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    X[:3] = X[3:6]  # repeated, with other labels
    y = rng.integers(0, k, n)
    if storage == "csr":
        X = sp.csr_matrix(X)
    elif storage == "ones":
        X = sp.csr_matrix((X != 0).astype(float))
    elif storage == "f32":
        X = X.astype(np.float32)
    if loss == "costs":
        cost = rng.integers(0, 4, (k, k)).astype(float)
        loss = structsolve.CostMatrix(cost * (1 - np.eye(k)))
    space, _ = structsolve.get_structure("multiclass").make_space(
        X, y, classes=np.arange(k), fit_intercept=intercept
    )
    examples = space.pack(X, y)
    examples.sample_weight = weights
    return Problem(space, examples, loss=loss)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["hamming", "normalized-hamming", "costs"])
@pytest.mark.parametrize("storage", ["dense", "f32", "csr", "ones"])
@pytest.mark.parametrize("k", [2, 3, 30, 70])
def test_exact_and_pairwise_steps_meet(k, storage, loss, weighted):
    """Two ways through the same dual; with 70 labels, cheap visits read single columns."""
    weights = np.arange(40) % 4 / 2 if weighted else None  # some examples weigh nothing
    given = problem(k, 40, storage=storage, loss=loss, weights=weights)
    ends = []
    for steps in ("exact", "pairwise"):
        run = begin(BCFW(steps=steps), given, 0.02)
        history = follow(run, tol=1e-7)
        assert history[-1]["certified"] and history[-1]["gap"] <= 1e-7 * history[-1]["primal"]
        check_rising(history)
        check_sums(run, atol=1e-10)
        ends.append(history[-1])
    assert ends[0]["primal"] == pytest.approx(ends[1]["primal"], rel=1e-6)
    assert ends[0]["dual"] == pytest.approx(ends[1]["dual"], rel=1e-6)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(2, 5),
    sampling=st.sampled_from(["permutation", "uniform", "gap"]),
    max_cuts=st.sampled_from([2, 50]),
    cached_passes=st.sampled_from([0, 3, 200]),
    averaging=st.booleans(),
    alpha=st.sampled_from([1.0, 0.05, 0.01]),
)
def test_exact_steps_whatever_they_keep(seed, k, alpha, **options):
    given = problem(k, 12, 3, seed)
    run = begin(BCFW(steps="exact", **options), given, alpha, seed)
    history = follow(run, tol=1e-4, passes=5000)
    last = history[-1]
    assert last["certified"] and -1e-12 <= last["gap"] <= 1e-4 * last["primal"]
    check_rising(history)


def test_examples_without_features():
    """Their block of the dual is linear: one label gets all the weight."""
    X, y = np.zeros((4, 2)), np.array([0, 1, 2, 1])
    run = begin(
        BCFW(steps="exact"),
        Problem(*structsolve.get_structure("multiclass").make_space(X, y, fit_intercept=False)),
        0.1,
    )
    last = follow(run)[-1]
    assert last["primal"] == last["dual"] == 1.0 and not run.weights().any()


def test_checkpoint_of_exact_steps(tmp_path):
    given = problem(30, 60, weights=np.arange(60.0))
    straight = begin(BCFW(), given, 1e-3)
    for _ in range(4):
        straight.step()
    broken = begin(BCFW(), given, 1e-3)
    broken.step()
    broken.step()
    again = through_file(broken, begin(BCFW(), given, 1e-3), tmp_path / "run")
    again.step()
    again.step()
    np.testing.assert_array_equal(again.loop.w, straight.loop.w)
    np.testing.assert_array_equal(again.weights(), straight.weights())
    assert again.memory().keys() == straight.memory().keys()
    for other, message in (
        (begin(BCFW(steps="pairwise"), given, 1e-3), "made with other steps"),
        (begin(BCFW(), problem(30, 59), 1e-3), "60 examples"),
        (begin(BCFW(), problem(20, 60), 1e-3), r"best_w has shape \(\d+,\)"),
    ):
        refused(message, through_file, straight, other, tmp_path / "run")
    with pytest.raises(ValueError, match="made with other steps"):
        through_file(begin(BCFW(steps="pairwise"), given, 1e-3), again, tmp_path / "run")


def test_exact_steps_are_refused_where_there_are_none():
    X, y = [np.zeros((2, 1))], [[0, 1]]
    space, examples = structsolve.get_structure("chain").make_space(X, y)
    with pytest.raises(ValueError, match="'chain' with NodeLoss has none; use steps='pairwise'"):
        begin(BCFW(steps="exact"), Problem(space, examples), 1.0)
    begin(BCFW(), Problem(space, space.pack(X, y)), 1.0).step()


def test_a_path_over_alpha_goes_on_from_the_dual():
    given = problem(4)
    run = begin(BCFW(), given, 1.0)
    follow(run)
    run.continue_at(0.05)
    fresh = follow(begin(BCFW(), given, 0.05))[-1]
    assert follow(run)[-1]["primal"] == pytest.approx(fresh["primal"], rel=1e-6)
