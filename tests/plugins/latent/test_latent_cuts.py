"""LatentSVM by BCFW with cuts as long as the weights: what is carried from round to round."""

import itertools

import numpy as np
import pytest
from checks import same, same_run
from random_cases import random_cases

from structsolve import LatentSVM
from structsolve.plugins.grid import GridStructure
from structsolve.plugins.latent.carry import shifted_duals
from structsolve.plugins.latent.losses import SetLoss
from structsolve.plugins.latent.sets import Sets
from structsolve.plugins.mrf import MRFStructure, grid_edges
from structsolve.plugins.tree import TreeStructure
from structsolve.potentials import calls
from structsolve.solvers import BCFW, SuperModular
from structsolve.solvers.problem import Problem
from structsolve.solvers.run import Start
from structsolve.structure.calls import difference, loss_value
from structsolve.structure.pack import learn_space

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

PAIR = [SuperModular("pair")]
# Structure, surrogate and constraints.  Examples of structures whose edges have features are small
# enough for their labels to be enumerated.
KINDS = {
    "tree": (TreeStructure(), "margin", None),
    "mrf": (MRFStructure(), "margin", None),
    "mrf with features": (MRFStructure(tables="features"), "margin", None),
    "relaxed mrf": (MRFStructure(), "lp", None),
    "exact mrf": (MRFStructure(oracle="exact"), "margin", None),
    "grid": (GridStructure(), "margin", None),
    "grid with contrast": (GridStructure(contrast="gaussian"), "margin", None),
    "relaxed grid": (GridStructure(oracle="trws"), "lp", None),
    "relaxed contrast": (GridStructure(contrast="gaussian"), "lp", None),
    "grid by cuts": (GridStructure(oracle="mincut"), "margin", PAIR),
    "contrast by cuts": (GridStructure(contrast="gaussian", oracle="mincut"), "margin", PAIR),
}
SMALL = ("mrf with features", "grid with contrast", "relaxed contrast", "contrast by cuts")
TWO = np.array([[True, False], [False, True], [True, True]])


def noisy(kind, rng, n=4):
    """Return grids (or a tree's nodes) with two classes and a feature; the first has both."""
    structure, (height, width) = KINDS[kind][0], (2, 3) if kind in SMALL else (5, 4)
    size = height * width
    flat = [rng.integers(0, 2, size) for _ in range(n)]
    flat[0][:2] = 0, 1
    X = [y[:, None] + rng.normal(size=(size, 1)) for y in flat]
    if structure.name == "grid":
        shape = (height, width)
        return [x.reshape(*shape, 1) for x in X], [y.reshape(shape) for y in flat]
    if structure.name == "tree":
        return [(x, [-1, *(rng.integers(v) for v in range(1, size))]) for x in X], flat
    edges = grid_edges(height, width)
    more = [rng.normal(size=(len(edges), 2))] if kind in SMALL else []
    return [(x, edges, *more) for x in X], flat


def enumerated(problem, truths):
    """Return the constant and the direction of the cut of every label of each example."""
    offsets, cuts = problem.examples.label_offsets, []
    for i in range(problem.n):
        truth, rows = truths[offsets[i] : offsets[i + 1]], []
        for label in itertools.product(range(2), repeat=len(truth)):
            label, z = np.array(label, dtype=np.int32), np.zeros(problem.dim)
            if (label != truth).any():
                parts = difference(problem.parts, i, truth, label)
                calls.add(problem.potentials, i, *parts, 1.0, z)
            rows.append([loss_value(problem.loss, i, truth, label), *z])
        cuts.append(np.array(rows))
    return cuts


@random_cases(44, kind=list(KINDS))
def test_short_cuts_are_those_of_other_completions(seed, kind):
    rng = np.random.default_rng(seed)
    structure, surrogate, constraints = KINDS[kind]
    X, Y = noisy(kind, rng)
    space, examples = learn_space(structure, X, Y)
    before = examples.labels.copy()
    # A node's true class may be one, the other, or any of both.
    rows = np.where(rng.random(len(before)) < 0.6, 2, before).astype(np.int32)
    loss = SetLoss(space, examples, "hamming", Sets(rows, TWO), np.arange(2))
    problem = Problem(space, examples, loss, surrogate, gram=False)

    def run_of(passes):
        solver = BCFW(constraints=constraints)
        run = solver.start(Start(problem, 0.05, np.random.default_rng(0)))
        for _ in range(passes):
            run.step()
        return run

    run = run_of(3)
    assert run.loop.short
    after = np.where(rows == 2, rng.integers(0, 2, len(before)), before).astype(np.int32)
    problem.labels[:] = after
    duals = shifted_duals(run, problem, before, after)
    zero = np.zeros(problem.dim)
    other = run_of(0)
    other.take_over(run, zero, problem.primal(zero, 0.05)[0], duals)
    owner = np.repeat(np.arange(problem.n), duals["counts"])
    values = duals["value"].reshape(-1, problem.dim)
    cuts = enumerated(problem, after) if kind in SMALL else None
    if cuts and surrogate == "margin":  # each is the cut of a label, but for mixtures: without key
        for i, key, b, z in zip(owner, duals["key"], duals["b"], values):
            assert not key or np.abs(cuts[i] - [b, *z]).sum(axis=1).min() < 1e-9
    for w in rng.normal(size=(5, problem.dim)):
        if constraints:  # no minimum cuts elsewhere
            w = other.loop.w * rng.random()
        known, bounds = other.loop.known_values(w), problem.bounds(w)[0]
        assert (known <= bounds + 1e-9).all()
        if cuts and surrogate == "margin":
            largest = [(rows[:, 0] - rows[:, 1:] @ w).max() for rows in cuts]
            assert (known <= np.array(largest) + 1e-9).all()
    best = run_of(60).certify()
    assert other.dual <= best["primal"] + 1e-9
    w, weight = other.loop.w, duals["weight"]
    if not constraints:  # else it is moved to them
        share = (problem.weights[owner] * weight) @ values
        np.testing.assert_allclose(w, share / 0.05, atol=1e-9)
        value = (problem.weights[owner] * weight) @ duals["b"] - 0.025 * w @ w
        assert other.dual == pytest.approx(value, abs=1e-9)
    for _ in range(30):
        other.step()
    assert other.certify()["gap"] >= -1e-9 and other.best_dual <= best["primal"] + 1e-9
    assert other.best_primal >= best["dual"] - 1e-9


@pytest.mark.parametrize("n_hidden", [1, 2])
@pytest.mark.parametrize("kind", ["tree", "mrf", "relaxed mrf", "grid", "grid by cuts"])
def test_rounds_go_on_and_resume_bit_for_bit(tmp_path, kind, n_hidden, monkeypatch):
    monkeypatch.setattr("structsolve.solvers.checkpoint.PAUSE", 0)  # write after every pass
    structure, surrogate, constraints = KINDS[kind]
    rng = np.random.default_rng(0)
    X, Y = noisy(kind, rng, n=3)
    if n_hidden == 1:
        Y = [np.where(rng.random(y.shape) < 0.6, None, y) for y in Y]
    settings = {"surrogate": surrogate, "n_hidden": n_hidden, "alpha": 0.1, "tol": 0.1}
    settings |= {"solver": BCFW(constraints=constraints), "init": "random", "max_rounds": 3}
    settings |= {"max_iter": 30}
    whole = LatentSVM(structure, **settings).fit(X, Y)
    objectives = [record["objective"] for record in whole.rounds_]
    assert len(objectives) > 1
    assert all(later <= earlier for earlier, later in itertools.pairwise(objectives))
    assert all(record["dual"] <= record["primal"] + 1e-9 for record in whole.rounds_)
    path, passes = tmp_path / "run.checkpoint", itertools.count()

    def stop(record):
        if next(passes) == whole.rounds_[0]["pass"]:  # the first pass of the second round
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        LatentSVM(structure, checkpoint=path, callbacks=[stop], **settings).fit(X, Y)
    resumed = LatentSVM(structure, checkpoint=path, **settings).fit(X, Y)
    same_run(resumed, whole)
    assert resumed.objectives_ == whole.objectives_
    same(*([np.asarray(h) for h in model.hidden_] for model in (resumed, whole)))
