"""BCFW with w much shorter than the scores: cuts over the weights instead of the parts."""

import numpy as np
import pytest
from solver_cases import begin, check_rising, check_sums, follow, through_file

from structsolve import Problem
from structsolve.plugins.mrf import MRFStructure, grid_edges
from structsolve.solvers import BCFW, CuttingPlane

ALPHA = 0.05


def problem(seed=0, n=6, size=6, features=1):
    """Return noisy pictures of two classes, which need few weights."""
    rng = np.random.default_rng(seed)
    Y = [
        rng.integers(0, 2, (size // 2, size // 2)).repeat(2, 0).repeat(2, 1).ravel()
        for _ in range(n)
    ]
    X = [y[:, None] + rng.normal(size=(size * size, features)) for y in Y]
    space, examples = MRFStructure(grid_edges(size, size), oracle="roof-duality").make_space(X, Y)
    return Problem(space, examples)


@pytest.mark.parametrize(
    ("settings", "tol"),
    [
        ({}, 1e-4),
        ({"cached_passes": 5, "max_age": 0}, 1e-4),
        ({"max_cuts": 2}, 5e-3),
        ({"steps": "frank-wolfe", "cached_passes": 0}, 0.05),
    ],
)
def test_the_optimum_is_that_of_cutting_planes(settings, tol):
    given = problem()
    run = begin(BCFW(**settings), given, ALPHA, tol=tol)
    assert run.loop.short
    history = follow(run, tol=tol, passes=600)
    check_rising(history)
    check_sums(run, 1e-11)
    best = begin(CuttingPlane(), given, ALPHA)
    follow(best, tol=1e-6, passes=500)
    assert run.best_primal == pytest.approx(best.best_primal, rel=2 * tol)
    assert history[-1]["dual"] <= best.best_primal * (1 + 1e-9)
    known = run.loop.known_values(run.best_w)
    assert (known <= given.bounds(run.best_w)[0] + 1e-9).all() and known.max() > 0


def test_runs_continue_bit_for_bit(tmp_path):
    given = problem()
    run = begin(BCFW(max_cuts=4), given, ALPHA)
    for _ in range(5):
        run.step()
    other = through_file(run, begin(BCFW(max_cuts=4), given, ALPHA), tmp_path / "run")
    for _ in range(5):
        run.step(), other.step()
    assert run.loop.w.tolist() == other.loop.w.tolist()


def test_cuts_of_another_kind_are_refused():
    long = begin(BCFW(), problem(features=60), ALPHA)
    assert not long.loop.short
    short = begin(BCFW(), problem(), ALPHA)
    long.step(), short.step()
    arrays = long.loop.to_arrays()
    with pytest.raises(ValueError, match="cuts of another kind, of example 0"):
        short.loop.restore(
            short.loop.counters(), arrays, short.loop.w, short.loop.average, short.loop.gaps
        )
