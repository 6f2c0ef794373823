"""Exact steps over the hull of label sets: feasible, monotone, the optimum of pairwise steps."""

import networkx as nx
import numpy as np
import pytest
from reference.hierarchies import GRAPH, TREE
from solver_cases import begin, follow

from structsolve import Problem
from structsolve.plugins.dag import DagStructure
from structsolve.plugins.multilabel import MultilabelStructure
from structsolve.solvers import BCFW
from structsolve.structure import calls

CASES = [
    (DagStructure(TREE), "hamming"),
    (DagStructure(TREE), "hierarchical"),
    (DagStructure(TREE, roots="on"), "leaf"),
    (DagStructure(nx.DiGraph(GRAPH)), "hamming"),
    (DagStructure(nx.DiGraph(GRAPH), roots="on"), "normalized-hamming"),
]
NAMES = [f"{s.name}-{loss}-{j}" for j, (s, loss) in enumerate(CASES)]


def problem_of(structure, loss, n=12, weights=None, seed=0):
    rng = np.random.default_rng(seed)
    _, Y = structure.sample(seed, n=n)
    X = rng.normal(size=(n, 3)) * rng.choice([1.0, 3.0], size=(n, 1))
    X[0] = 0  # with no intercept an example without features
    space, examples = structure.make_space(X, Y, fit_intercept=False)
    examples.sample_weight = weights
    return Problem(space, examples, loss=loss)


def duals(run):
    """The points of the hull, dense, from what a checkpoint keeps."""
    problem, kept = run.given.problem, run.loop.to_arrays()
    points = np.zeros((problem.n, problem.potentials.max_theta))
    for i in range(problem.n):
        index, value = calls.encode(problem.parts, i, problem.examples.label(i))
        np.add.at(points[i], index, value)
    np.add.at(
        points, (np.repeat(np.arange(problem.n), kept["counts"]), kept["part"]), kept["value"]
    )
    return points


@pytest.mark.parametrize("structure, loss", CASES, ids=NAMES)
def test_every_step_is_feasible_and_raises_the_dual(structure, loss):
    problem = problem_of(structure, loss)
    run = begin(BCFW(), problem, 0.05)
    assert run.exact and type(run.loop).__name__ == "HullLoop"
    rng, last = np.random.default_rng(1), run.dual
    assert last == 0
    for t in range(100):
        order = np.array([rng.integers(problem.n)])
        run.loop.run(order, bool(t % 2))
        assert run.dual >= last - 1e-12 * (1 + abs(last))
        last = run.dual
        points = duals(run)
        assert points.min() >= -1e-12 and points.max() <= 1 + 1e-12
        if structure.name == "dag":
            shape = problem.space.hierarchy
            for v in range(len(shape)):
                for p in shape.up[shape.up_first[v] : shape.up_first[v + 1]]:
                    assert (points[:, v] <= points[:, p] + 1e-12).all()
    w = run.loop.w.copy()
    run.loop.resynchronise()
    np.testing.assert_allclose(run.loop.w, w, atol=1e-10)
    assert run.dual == pytest.approx(last, rel=1e-10)


@pytest.mark.parametrize("structure, loss", CASES, ids=NAMES)
def test_the_optimum_of_pairwise_steps(structure, loss):
    for weights in (None, np.arange(12.0)):
        problem = problem_of(structure, loss, weights=weights, seed=3)
        best = []
        for steps in ("exact", "pairwise"):
            best.append(follow(begin(BCFW(steps=steps), problem, 0.1), tol=1e-4)[-1])
            assert best[-1]["certified"] and -1e-9 <= best[-1]["gap"] <= best[-1]["primal"] / 1e3
        assert best[0]["primal"] >= best[1]["dual"] - 1e-9
        assert best[1]["primal"] >= best[0]["dual"] - 1e-9


@pytest.mark.parametrize("structure, loss", CASES[::3], ids=NAMES[::3])
def test_the_gap_of_a_visit_is_that_of_its_example(structure, loss):
    problem = problem_of(structure, loss)
    run = begin(BCFW(), problem, 0.05)
    for _ in range(2):
        run.step()
    w = run.loop.w.copy()
    bounds, _ = problem.bounds(w)
    total, _ = run.loop.run(np.arange(problem.n), True, np.inf)  # no gap is worth a step
    assert (run.loop.w == w).all()
    dual = run.dual
    primal = problem.regulariser(w, 0.05) + problem.weights @ bounds
    assert total == pytest.approx(primal - dual, abs=1e-9)


def test_a_checkpoint_goes_on_bit_for_bit_and_old_ones_with_their_steps():
    problem = problem_of(*CASES[0])
    for solver in (BCFW(), BCFW(steps="pairwise")):
        run = begin(solver, problem, 0.05)
        for _ in range(3):
            run.step()
        meta, arrays = run.state()
        arrays = {name: np.array(value) for name, value in arrays.items()}
        other = begin(BCFW(), problem, 0.05)
        other.restore(meta, arrays)
        assert other.exact == run.exact
        for _ in range(3):
            run.step()
            other.step()
        assert (run.loop.w == other.loop.w).all() and run.dual == other.dual


@pytest.mark.parametrize(
    "name, change, message",
    [
        ("cuts_part", lambda a: a + 10**6, "parts of dual variables"),
        ("cuts_value", lambda a: a * np.nan, "dual variables"),
        ("cuts_value", lambda a: a[1:], "another problem"),
        ("cuts_part", lambda a: np.zeros_like(a), "twice"),
    ],
)
def test_broken_checkpoints_are_refused(name, change, message):
    problem = problem_of(*CASES[0])
    run = begin(BCFW(), problem, 0.05)
    run.step()
    meta, arrays = run.state()
    with pytest.raises(ValueError, match=message):
        begin(BCFW(), problem, 0.05).restore(meta, {**arrays, name: change(arrays[name])})


def test_where_steps_are_pairwise():
    union = problem_of(DagStructure(TREE, labels="leaf-union"), "hamming")
    assert not begin(BCFW(), union, 0.05).exact
    with pytest.raises(ValueError, match="exact Euclidean projection"):
        begin(BCFW(steps="exact"), union, 0.05)
    assert not begin(BCFW(batch=4), problem_of(*CASES[0]), 0.05).exact
    pairs = problem_of(MultilabelStructure(edges="full"), "hamming")
    assert not begin(BCFW(), pairs, 0.05).exact


def test_a_path_over_alpha_keeps_the_dual_variables():
    run = begin(BCFW(), problem_of(*CASES[0]), 0.1)
    run.step()
    points = duals(run)
    run.continue_at(0.05)
    assert (duals(run) == points).all()
    record = follow(run, tol=1e-3)[-1]
    assert record["certified"] and record["gap"] <= record["primal"] / 1e3


def test_the_average_of_a_pass_takes_the_ends_of_its_pieces_and_restarts_by_all_passes():
    problem = problem_of(*CASES[0], n=40)
    run, other = (begin(BCFW(), problem, 0.05) for _ in range(2))
    reach = problem.n * problem.potentials.node_size
    points = min(reach // problem.dim, 16)
    assert 2 < points < problem.n
    order, total, done = np.random.default_rng(5).permutation(problem.n), 0.0, 0
    run._pass(order, True)
    for some in np.array_split(order, points):
        other.loop.run(some, True)
        weight = sum(range(done + 1, done + len(some) + 1))
        total, done = total + weight * other.loop.w, done + len(some)
    mass = done * (done + 1) / 2
    assert (run.loop.steps_done, run.loop.average_mass) == (done, mass)
    np.testing.assert_allclose(run.loop.w - run.loop.average / mass, total / mass, atol=1e-12)
    ages = [run.step()["cached_passes"] + 1 for _ in range(4)]
    assert run.age == sum(ages) > 4 and run.passes == 4


def test_a_window_of_the_average_ends_after_eight_passes_of_any_kind():
    run = begin(BCFW(), problem_of(*CASES[0], n=40), 0.05)
    while run.age < 8:
        assert run.window_start == 0
        run.step()
    first = run.age
    run.step()
    assert run.window_start == first
    meta, arrays = run.state()
    again = begin(BCFW(), run.given.problem, 0.05)
    again.restore(meta, arrays)
    assert (again.age, again.window_start) == (run.age, first)
