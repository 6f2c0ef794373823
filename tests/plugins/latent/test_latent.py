"""LatentSVM against brute force: its objective, completions and rounds; what it learns."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from checks import refused
from latent_cases import BruteForce, sampled, xor_chains
from random_cases import random_cases

from structsolve import (
    ClassWeights,
    CostMatrix,
    LatentSVM,
    StructuredSVM,
    TaskLoss,
    WeightedLabels,
    get_structure,
)
from structsolve.plugins.chain import ChainStructure
from structsolve.plugins.latent.carry import shifted_duals
from structsolve.plugins.latent.initial import first_states
from structsolve.plugins.latent.losses import SetLoss
from structsolve.plugins.latent.rounds import Completer
from structsolve.plugins.latent.row_loss import RowLoss
from structsolve.plugins.latent.sets import Sets, sets_of, split
from structsolve.plugins.latent.states import with_classes
from structsolve.plugins.mrf import MRFStructure
from structsolve.solvers import BCFW, SGD, CuttingPlane, WeightBounds
from structsolve.solvers.problem import Problem
from structsolve.solvers.run import Start
from structsolve.structure.ask import make_layout
from structsolve.structure.calls import augment, encode, loss_value
from structsolve.structure.pack import learn_space

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

STRUCTURES = ["chain", "tree", "mrf", "multiclass", "ordinal"]


def axes_of(name):
    return 0 if get_structure(name).single_node else 1


LOSSES = {
    "hamming": ("hamming", 1 - np.eye(3)),
    "normalized": ("normalized-hamming", 1 - np.eye(3)),
    "costs": (CostMatrix([[0, 1, 2], [3, 0, 0.5], [0, 1, 0]]), [[0, 1, 2], [3, 0, 0.5], [0, 1, 0]]),
    "weights": (ClassWeights({1: 4.0}), [[0, 1, 1], [4, 0, 4], [1, 1, 0]]),
}


@random_cases(40, name=STRUCTURES, n_hidden=[1, 2, (1, 3, 2)], partial=[0.0, 0.6])
def test_objective_and_completions_are_those_of_brute_force(seed, name, n_hidden, partial):
    rng = np.random.default_rng(seed)
    X, Y = sampled(name, seed, partial=partial)
    which = sorted(LOSSES)[seed % 4]
    loss, cost = LOSSES[which]
    weights = rng.integers(0, 3, len(X)) + 0.5
    model = LatentSVM(name, n_hidden=n_hidden, loss=loss, alpha=0.05, init="random", tol=1e-3)
    model.set_params(random_state=seed % 1000, max_rounds=20)
    model.fit(X, Y, sample_weight=weights)
    counts = np.broadcast_to(n_hidden, 3)
    exact = BruteForce(model, X, Y, counts, np.array(cost, float), weights, which == "normalized")
    objectives = [record["objective"] for record in model.rounds_]
    assert all(after <= before for before, after in zip(objectives, objectives[1:]))
    w = model.flat_weights()
    if partial or max(counts) > 1:
        assert objectives[-1] == pytest.approx(exact.objective(w, 0.05), rel=1e-9, abs=1e-12)
    else:
        assert model.history_[-1]["primal"] == pytest.approx(exact.objective(w, 0.05), rel=1e-9)
    for record in model.rounds_:
        assert record["certified"] and record["dual"] <= record["primal"] * (1 + 1e-9)
    # The training labels are completed by the best allowed ones.
    hidden = [[h] for h in model.hidden_] if model.space_.structure.single_node else model.hidden_
    for i, states in enumerate(hidden):
        row = np.flatnonzero((exact.labels[i] == np.asarray(states)).all(axis=1))[0]
        assert exact.allowed[i][row]
        best = exact.completion(i, w)
        assert exact.scores(i, w)[row] == pytest.approx(best, rel=1e-9, abs=1e-9)


@random_cases(30, name=STRUCTURES, partial=[0.3, 1.0])
def test_completer_gives_the_best_allowed_label_at_any_weights(seed, name, partial):
    rng = np.random.default_rng(seed)
    X, Y = sampled(name, seed, partial=partial)
    plain, examples = learn_space(get_structure(name), X, split(Y, axes_of(name)).full)
    space = with_classes(plain, np.repeat(plain.classes_, 2))
    fitted = SimpleNamespace(space_=space)
    exact = BruteForce(fitted, X, Y, [2, 2, 2], 1 - np.eye(3), np.ones(len(X)))
    given = split(Y, axes_of(name))
    sets = sets_of(given, X, plain, examples).lifted(np.repeat(np.arange(3), 2))
    problem = exact.problem
    completer = Completer(problem, sets, 1)
    for _ in range(3):
        w = rng.integers(-1, 2, problem.dim).astype(float)  # ties
        states, missed = completer.complete(w, np.zeros(len(sets.rows), np.int32))
        assert missed == 0 and completer.allow(states)
        for i in range(problem.n):
            part = states[examples.offsets[i] : examples.offsets[i + 1]]
            row = np.flatnonzero((exact.labels[i] == part).all(axis=1))[0]
            assert exact.scores(i, w)[row] == pytest.approx(exact.completion(i, w), abs=1e-9)


def names_of(model):
    return [f"{c}{h}" for c, n in zip(model.classes_, model.n_hidden_) for h in range(n)]


@pytest.mark.parametrize("name", STRUCTURES[:4])
@pytest.mark.parametrize("solver", [BCFW(), CuttingPlane()], ids=repr)
def test_rounds_are_structured_svms_on_completed_labels(name, solver):
    X, Y = sampled(name, 3, n=7, size=2)
    settings = {"alpha": 0.05, "tol": 1e-5, "max_iter": 3000, "solver": solver}
    model = LatentSVM(name, n_hidden=2, max_rounds=200, **settings).fit(X, Y)
    assert model.stop_reason_ == "converged" and model.rounds_[-1]["moved"] == 0
    names = names_of(model)
    cost = [[float(a[0] != b[0]) for b in names] for a in names]
    single = get_structure(name).single_node
    full = [names[h] if single else [names[k] for k in h] for h in model.hidden_]
    plain = StructuredSVM(name, loss=CostMatrix(cost, classes=names), **settings).fit(X, full)
    last = plain.history_[-1]
    assert plain.classes_.tolist() == names and last["certified"]
    assert model.rounds_[-1]["objective"] == pytest.approx(last["primal"], rel=3e-5)
    assert model.rounds_[-1]["dual"] == pytest.approx(last["dual"], rel=3e-5)


@random_cases(40, name=STRUCTURES)
def test_shifted_duals_are_feasible_for_other_completions(seed, name):
    rng = np.random.default_rng(seed)
    X, Y = sampled(name, seed, n=4)
    structure = get_structure(name)
    plain, examples = learn_space(structure, X, Y)
    before = examples.labels.copy()
    problem = Problem(plain, examples, SetLoss(plain, examples, "hamming", everything(before), ANY))

    def run_of(passes):
        run = BCFW().start(Start(problem, 0.05, np.random.default_rng(0)))
        for _ in range(passes):
            run.step()
        return run

    run = run_of(3)
    after = np.where(rng.random(len(before)) < 0.5, rng.integers(0, 3, len(before)), before)
    after = after.astype(np.int32)
    problem.labels[:] = after
    duals = shifted_duals(run, problem, before, after)
    other = run_of(0)
    other.take_over(
        run, np.zeros(problem.dim), problem.primal(np.zeros(problem.dim), 0.05)[0], duals
    )
    best = run_of(60)
    assert other.dual <= best.certify()["primal"] + 1e-9
    # Every cut lies below the surrogate of the new labels, everywhere.
    for w in rng.normal(size=(3, problem.dim)) if name in STRUCTURES[:3] else ():
        known, bounds = other.loop.known_values(w), problem.bounds(w)[0]
        assert (known <= bounds + 1e-9).all()
    other.step()
    assert other.certify()["gap"] >= -1e-9


ANY = np.arange(3)


def everything(labels):
    """Sets that allow every class everywhere: the loss is 0, so any label may be true."""
    return Sets(np.zeros(len(labels), np.int32), np.ones((1, 3), dtype=bool))


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("solver", ["bcfw", "sgd", "cutting-plane"])
def test_labels_known_in_full_give_a_structured_svm(name, solver):
    X, Y = sampled(name, 5, n=10)
    wrapped = (
        [[y] if k % 2 else {y} for k, y in enumerate(Y)]
        if name in STRUCTURES[3:]
        else [[[label] if v % 2 else {label} for v, label in enumerate(y)] for y in Y]
    )
    settings = {"alpha": 0.05, "tol": 1e-3, "solver": solver, "random_state": 3}
    plain = StructuredSVM(name, **settings).fit(X, Y)
    for labels in (Y, wrapped):
        model = LatentSVM(name, **settings).fit(X, labels)
        np.testing.assert_array_equal(model.flat_weights(), plain.flat_weights())
        assert len(model.history_) == len(plain.history_)
        assert model.stop_reason_ == plain.stop_reason_
        assert len(model.rounds_) == 1 and model.rounds_[0]["moved"] == 0


# -- what it is good for --------------------------------------------------------------------------


def test_xor_chains_need_hidden_states():
    (X, Y), test = xor_chains(40, 0), xor_chains(100, 1)
    settings = {"alpha": 0.05, "tol": 0.01}
    assert StructuredSVM("chain", **settings).fit(X, Y).score(*test) < 0.6
    assert LatentSVM("chain", n_hidden=2, **settings).fit(X, Y).score(*test) >= 0.95
    # One start in eight ends in a poor optimum, and rounding decides which one.
    model = LatentSVM("chain", n_hidden=2, init="random", n_init=4, **settings).fit(X, Y)
    assert model.score(*test) >= 0.95
    assert len(model.objectives_) == 4
    assert model.rounds_[-1]["objective"] == min(model.objectives_)
    assert {record["start"] for record in model.rounds_} == {int(np.argmin(model.objectives_))}


def test_candidate_sets_teach_as_much_as_labels():
    rng = np.random.default_rng(0)
    X = np.concatenate(
        [rng.normal(size=(60, 2)) + 3 * np.array(c) for c in [[1, 0], [-1, 1], [0, -1]]]
    )
    y = np.repeat(["a", "b", "c"], 60)
    sets = [sorted({label, "abc"[rng.integers(3)]}) for label in y.tolist()]
    model = LatentSVM("multiclass", alpha=0.01).fit(X, sets)
    assert model.score(X, y) > 0.97
    assert np.mean(model.classes_[model.hidden_] == y) > 0.97


@pytest.mark.parametrize("name", ["chain", "tree", "mrf"])
def test_few_labels_of_a_sequence_teach_transitions_and_classes(name):
    X, Y = xor_chains(60, 2)
    X = [x[:, :1] * x[:, 1:] for x in X]  # one feature tells the classes apart
    rng = np.random.default_rng(0)
    partial = [[c if rng.random() < 0.3 else None for c in y.tolist()] for y in Y]
    if name == "mrf":
        path = np.stack([np.arange(11), np.arange(1, 12)], axis=1)
        data = [(x, path) for x in X]
    elif name == "tree":
        data = [(x, np.arange(-1, 11)) for x in X]
    else:
        data = X
    model = LatentSVM(name, alpha=0.01, tol=0.01).fit(data, partial)
    assert model.score(data, Y) > 0.95


def test_losses_of_latent_nodes_are_zero_within_their_sets():
    X, Y = [np.eye(3)], [[0, [1, 2], None]]
    plain, examples = learn_space(get_structure("chain"), X, split(Y).full, [0, 1, 2])
    sets = sets_of(split(Y), X, plain, examples)
    loss = SetLoss(plain, examples, "hamming", sets, ANY).bind(plain)(make_layout(plain, examples))
    for label in itertools.product(range(3), repeat=3):
        expected = (label[0] != 0) + (label[1] == 0)
        assert loss_value(loss, 0, examples.labels, np.array(label, np.int32)) == expected


def test_void_and_weighted_nodes_of_graphs_go_with_sets():
    rng = np.random.default_rng(0)
    path = np.stack([np.arange(4), np.arange(1, 5)], axis=1)
    X = [(rng.normal(size=(5, 2)), path) for _ in range(3)]
    Y = [[0, 9, [1, 2], 2, 1], [2, None, 9, {0, 1}, 9], [1, 0, 2, None, 9]]
    settings = {"n_hidden": 2, "alpha": 0.05, "init": "random"}
    model = LatentSVM(MRFStructure(void=9), **settings).fit(X, Y)
    kept = [[v for v, entry in enumerate(y) if entry != 9] for y in Y]
    apart = [
        (
            x[rows],
            np.array([[a, a + 1] for a in range(len(rows) - 1) if rows[a + 1] == rows[a] + 1]),
        )
        for (x, _), rows in zip(X, kept)
    ]
    without = LatentSVM("mrf", **settings)
    without.fit(apart, [[y[v] for v in rows] for y, rows in zip(Y, kept)])
    np.testing.assert_allclose(model.flat_weights(), without.flat_weights())
    same = [h.tolist() for h in model.hidden_], [h.tolist() for h in without.hidden_]
    assert same[0] == same[1] and [len(h) for h in model.hidden_] == [4, 3, 4]
    full = [y.tolist() for y in model.predict(X)]
    assert model.score(X, [[9, *y[1:]] for y in full]) == 1.0
    void = MRFStructure(void=[None])
    given = split([[0, None, [0, 1]]], 1, void.void)
    assert list(given.nodes) == [2] and given.full == [[0, None, 0]]
    assert LatentSVM(void, alpha=0.1).fit(X[:1], [[0, None, [0, 1], 1, 1]]).hidden_[0].size == 4
    # Labels in sets are classes, void ones are not, and replace no other.
    few = LatentSVM(MRFStructure(void=9), alpha=0.1).fit(X[:1], [[9, 1, None, [0, 2], 9]])
    assert few.classes_.tolist() == [0, 1, 2] and few.hidden_[0].size == 3
    few = LatentSVM(MRFStructure(void=[9]), alpha=0.1).fit(X[:1], [[9, None, 1, 0, 1]])
    assert few.classes_.tolist() == [0, 1] and few.hidden_[0].size == 4
    # An error counts with the weight of its node, within sets as well.
    weighted = [WeightedLabels([0, 1, 2, 1, 0], [1, 0, 2, 3, 1]), [0, 1, 2, [1, 2], None]]
    plain, examples = learn_space(get_structure("mrf"), X[:2], split(weighted).full)
    sets = sets_of(split(weighted), X[:2], plain, examples)
    layout = make_layout(plain, examples)
    loss = SetLoss(plain, examples, "hamming", sets, ANY).bind(plain)(layout)
    for label in itertools.product(range(3), repeat=5):
        expected = np.array([1, 0, 2, 3, 1]) @ (np.array(label) != [0, 1, 2, 1, 0])
        label = np.array(label, np.int32)
        assert loss_value(loss, 0, examples.label(0), label) == expected
        expected = (label[:3] != [0, 1, 2]).sum() + (label[3] == 0)
        assert loss_value(loss, 1, examples.label(1), label) == expected


class EndsOnly(TaskLoss):
    """Errors at the ends, plus a constant: the loss has no matrix of costs."""

    def loss(self, space, examples, i, truth, label):
        return float(sum(truth[[0, -1]] != label[[0, -1]]))

    def loss_costs(self, space, examples, i, truth):
        node = np.zeros((len(truth), len(space.classes_)))
        for end in (0, len(truth) - 1):
            node[end, truth[end]] -= 1
        return {"node": node}, 2.0


def test_any_loss_that_is_a_sum_over_nodes_is_lifted():
    X, Y = xor_chains(20, 0)
    model = LatentSVM("chain", n_hidden=2, loss=EndsOnly(), alpha=0.1, tol=0.01).fit(X, Y)
    plain, examples = learn_space(get_structure("chain"), X, Y)
    known = Sets(examples.labels, np.eye(2, dtype=bool))
    owner = np.array([0, 0, 1, 1])
    lifted = SetLoss(plain, examples, EndsOnly(), known, owner)
    native = lifted.bind(model.space_)(make_layout(model.space_, examples))
    rng = np.random.default_rng(0)
    for i in range(5):
        states = rng.integers(0, 4, 12).astype(np.int32)
        truth = examples.label(i)
        expected = EndsOnly().loss(plain, examples, i, truth, owner[states])
        assert loss_value(native, i, truth, states) == expected
    assert 0.9 < model.score(*xor_chains(20, 1)) <= 1
    refused(
        "has no matrix of costs",
        LatentSVM("chain", loss=EndsOnly()).fit,
        X,
        [[None, "b", "a"] * 4] * 20,
    )


@random_cases(40, normalised=[False, True])
def test_row_loss_is_its_definition(seed, normalised):
    rng = np.random.default_rng(seed)
    X, Y = sampled("chain", seed)
    space, examples = learn_space(get_structure("chain"), X, Y)
    layout = make_layout(space, examples)
    costs = rng.integers(0, 4, (4, 3)).astype(float)
    rows = rng.integers(0, 4, len(examples.labels)).astype(np.int32)
    constants = rng.normal(size=examples.n)
    loss = RowLoss(costs, rows, constants, normalised, normalised, layout)
    for i in range(examples.n):
        part = slice(examples.offsets[i], examples.offsets[i + 1])
        label = rng.integers(0, 3, part.stop - part.start).astype(np.int32)
        share = 1 / len(label) if normalised else 1
        expected = share * costs[rows[part], label].sum() + constants[i]
        assert loss_value(loss, i, examples.label(i), label) == pytest.approx(expected)
        theta = rng.normal(size=layout.sizes(i)[0])
        before = theta.copy()
        constant = augment(loss, i, examples.label(i), 2.0, theta)
        index, value = encode(space.make_parts()(layout), i, label)
        assert (theta - before)[index] @ value + constant == pytest.approx(2 * expected)
    for wrong in ((rows[1:], constants), (rows + 4, constants), (rows, constants[1:])):
        with pytest.raises(ValueError, match="RowLoss|rows"):
            RowLoss(costs, wrong[0], wrong[1], normalised, False, layout)


@pytest.mark.parametrize("surrogate", ["slack", "crf", "sparsemap", "beta:0.5", "lp"])
def test_other_surrogates_go_down_as_well(surrogate):
    X, Y = xor_chains(5, 0)
    model = LatentSVM("chain", n_hidden=2, surrogate=surrogate, alpha=0.01, tol=0.1, init="random")
    model.fit(X, Y)
    objectives = [record["objective"] for record in model.rounds_]
    assert len(objectives) > 1 and (np.diff(objectives) <= 0).all()
    assert model.stop_reason_ in ("converged", "settled")


@pytest.mark.parametrize("solver", [BCFW(), CuttingPlane(), SGD()], ids=repr)
def test_all_solvers_learn_hidden_states(solver):
    X, Y = xor_chains(60, 0)
    model = LatentSVM("chain", n_hidden=2, solver=solver, alpha=0.01, tol=0.01, max_iter=300)
    model.fit(X, Y)
    assert model.score(*xor_chains(60, 1)) > 0.95
    assert (np.diff([record["objective"] for record in model.rounds_]) <= 0).all()


@pytest.mark.parametrize("solver", [BCFW, CuttingPlane, SGD])
def test_constraints_on_the_weights_hold_in_every_round(solver):
    X, Y = xor_chains(20, 0)
    solver = solver(constraints=[WeightBounds("transition", lower=0.5)])
    model = LatentSVM("chain", n_hidden=2, solver=solver, alpha=0.01, tol=0.05).fit(X, Y)
    assert model.coef_["transition"].min() >= 0.5 - 1e-9
    assert (np.diff([record["objective"] for record in model.rounds_]) <= 0).all()
    assert model.score(X, Y) > 0.9


def test_inexact_oracles_bound_the_objective_and_say_what_they_may_miss():
    rng = np.random.default_rng(1)
    edges = np.array(list(itertools.combinations(range(6), 2)))
    X = [(rng.normal(size=(6, 2)), edges) for _ in range(4)]
    Y = [[0, 1, 2, None, None, None]] * 4
    settings = {"alpha": 0.05, "max_rounds": 3, "max_iter": 10, "init": "random"}
    model = LatentSVM(MRFStructure(oracle="trws", max_iter=1), **settings).fit(X, Y)
    exact = BruteForce(model, X, Y, [1, 1, 1], 1 - np.eye(3), np.ones(4))
    objectives = [record["objective"] for record in model.rounds_]
    assert (np.diff(objectives) <= 0).all()
    missed = model.rounds_[-1].get("missed", 0.0)
    true = exact.objective(model.flat_weights(), 0.05)
    assert true <= objectives[-1] + 1e-9
    assert missed > 0 and objectives[-1] - missed <= true + 1e-9


def test_first_states_are_allowed_and_follow_the_features():
    rng = np.random.default_rng(0)
    X, Y = xor_chains(20, 0, noise=0.1)
    space, examples = learn_space(get_structure("chain"), X, Y)
    known = Sets(examples.labels, np.eye(2, dtype=bool))
    states = first_states("kmeans", examples, known, np.array([2, 2]), 0)
    np.testing.assert_array_equal(states // 2, examples.labels)
    side = np.concatenate(X)[:, 0] > 0
    for k in range(2):  # clusters are the modes
        of_class = examples.labels == k
        assert len(np.unique(np.stack([states % 2, side])[:, of_class], axis=1).T) == 2
    table = rng.random((5, 3)) < 0.6
    table[:, 1] |= ~table.any(axis=1)
    sets = Sets(rng.integers(0, 5, len(examples.labels)).astype(np.int32), table)
    for how in ("random", "kmeans"):
        counts = np.array([2, 1, 3])
        states = first_states(how, examples, sets, counts, 1)
        lifted = sets.lifted(np.repeat(np.arange(3), counts))
        assert lifted.table[sets.rows, states].all()
        assert len(np.unique(states)) > 3


@pytest.mark.parametrize("init", ["kmeans", "random"])
def test_first_states_are_labels_of_the_structure(init):
    """Unknown labels begin as what forbidden pairs allow, and stay so."""
    rng = np.random.default_rng(0)
    truth = [np.sort(rng.integers(3, size=7)) for _ in range(30)]
    X = [np.eye(3)[y] + 0.9 * rng.normal(size=(7, 3)) for y in truth]
    Y = [[None if rng.random() < 0.4 else int(label) for label in y] for y in truth]
    structure = get_structure("chain", forbidden=[(1, 0), (2, 1), (2, 0)])
    model = LatentSVM(structure, alpha=0.1, init=init).fit(X, Y)
    assert all((np.diff(labels) >= 0).all() for labels in model.hidden_)
    assert model.score(X, truth) > 0.7
    Y[4] = [2, 1, *Y[4][2:]]
    refused("example 4: found 2 before 1", LatentSVM(structure, alpha=0.1, init=init).fit, X, Y)


def _own_classes(state, arrays):
    return {**arrays, "classes": np.arange(2)}


def _as_they_were(state, arrays):
    if len(arrays["classes"]) != 2:
        raise KeyError("states")
    return arrays


@pytest.mark.parametrize("taken", [_own_classes, _as_they_were])
def test_hidden_states_of_a_plugin_with_a_fixed_number_of_states(taken):
    class Fixed(ChainStructure):
        name = "fixed"

        def space_from_state(self, state, arrays):
            return super().space_from_state(state, taken(state, arrays))

    X, Y = [np.eye(2)] * 3, [[0, 1]] * 3
    assert LatentSVM(Fixed()).fit(X, Y).score(X, Y) == 1
    told = "n_hidden: structure 'fixed' has a fixed number of states, 2: .* use n_hidden=1"
    refused(told, LatentSVM(Fixed(), n_hidden=2).fit, X, Y)
