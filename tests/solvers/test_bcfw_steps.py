"""Single steps of the dual solvers: the average of the iterates, and line searches."""

import numpy as np
import pytest
from solver_cases import begin, make_case

from structsolve import Problem, get_structure
from structsolve.solvers import BCFW, GBCFW

ALPHA = 0.05


def crf_problem():
    rng = np.random.default_rng(2)
    X = [rng.normal(size=(length, 2)) for length in (1, 3, 2, 2)]
    Y = [rng.integers(0, 3, len(x)) for x in X]
    return Problem(*get_structure("chain").make_space(X, Y), surrogate="crf")


def check_average(run, visit):
    """Compare the average with sum_t t w_t / sum_t t, computed from single visits."""
    loop, total, weight = run.loop, np.zeros_like(run.loop.w), 0
    rng = np.random.default_rng(0)
    for t in range(1, 60):
        before = loop.w.copy()
        visit(loop, np.array([rng.integers(run.given.problem.n)]), t - 1, before)
        total += t * loop.w
        weight += t
        assert loop.steps_done == t and loop.average_mass == weight
        np.testing.assert_allclose(loop.w - loop.average / weight, total / weight, atol=1e-12)
    assert np.abs(total / weight - loop.w).max() > 1e-3


def block_visit(loop, order, done, before):
    loop.run(order, 1, averaging=True)


def segment_visit(loop, order, done, before):
    loop.run(order, "search", done, True)


def exact_visit(loop, order, done, before):
    loop.run(order, True)
    loop.average_pass(before, 1)


@pytest.mark.parametrize("kind", ["chain", "edges"])
def test_iterate_t_has_weight_t_in_the_average_of_bcfw(kind):
    problem = make_case(kind, n=4).problem
    check_average(begin(BCFW(), problem, ALPHA), block_visit)


def test_iterate_t_has_weight_t_in_the_average_of_gbcfw():
    check_average(begin(GBCFW(), crf_problem(), ALPHA), segment_visit)


def test_iterate_t_has_weight_t_in_the_average_of_exact_steps():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(8, 3)), rng.integers(0, 4, 8)
    run = begin(BCFW(), Problem(*get_structure("multiclass").make_space(X, y)), ALPHA)
    assert run.exact
    check_average(run, exact_visit)


def test_a_pass_taken_whole_counts_as_its_visits():
    run = begin(BCFW(), make_case().problem, ALPHA)
    loop, total, t = run.loop, np.zeros(run.given.problem.dim), 0
    for visits in (8, 3, 5):
        before = loop.w.copy()
        loop.run(np.arange(8), 1)
        loop.average_pass(before, visits)
        for _ in range(visits):
            t += 1
            total += t * loop.w
        assert loop.steps_done == t and loop.average_mass == t * (t + 1) // 2
        mean = loop.w - loop.average / loop.average_mass
        np.testing.assert_allclose(mean, total / loop.average_mass, atol=1e-12)


def support(loop, i):
    """Return the keys of example i's cuts that have weight, None for the truth's rest."""
    kept = loop.to_arrays()
    first = kept["counts"][:i].sum()
    mine = slice(first, first + kept["counts"][i])
    keys = set(kept["key"][mine][kept["weight"][mine] > 0].tolist())
    return keys | ({None} if kept["weight"][mine].sum() < 1 - 1e-14 else set())


@pytest.mark.parametrize("pairwise", [True, False], ids=["pairwise", "frank-wolfe"])
@pytest.mark.parametrize("kind", ["chain", "ties", "edges"])
def test_a_line_search_ends_at_the_maximum_of_the_dual_on_its_way(kind, pairwise):
    """Or a weight has reached 0, and the dual would rise further."""
    run = begin(BCFW(), make_case(kind, n=5).problem, ALPHA)
    loop, rng = run.loop, np.random.default_rng(1)
    inside = 0
    for t in range(200):
        i = int(rng.integers(5))
        w, b, before = loop.w.copy(), loop.b_total, support(loop, i)
        settings = {"max_steps": 1, "pairwise": pairwise, "max_age": 10**6, "inner_tol": 0.0}
        loop.run(np.array([i]), 1 if t < 40 else 0, **settings)
        way = loop.w - w
        if not np.abs(way).max() > 1e-6:
            continue
        rise = (loop.b_total - b) - ALPHA * w @ way
        slope = (loop.b_total - b) - ALPHA * loop.w @ way
        assert rise > 0 and slope >= -1e-9 * rise - 1e-14
        if slope > 1e-9 * rise + 1e-14:
            assert before - support(loop, i)
        else:
            inside += 1
    assert inside >= 20
