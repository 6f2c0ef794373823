"""Perceptron, passive-aggressive steps and AROW against the same steps in plain NumPy."""

import pickle

import numpy as np
import pytest
from checks import refused
from reference.objectives import margins
from scipy import sparse
from solver_cases import begin, make_case, move_over, through_file, word_data

from structsolve import (
    ClassWeights,
    HierarchicalSVM,
    LatentSVM,
    StructuredSVM,
    StructuredSVMCV,
    WeightedLabels,
    make_strips,
)
from structsolve.plugins.dag import DagStructure
from structsolve.solvers import AROW, PassiveAggressive, Perceptron
from structsolve.testing import check_solver

WEIGHTS = np.array([0, 1, 2, 0.5, 3, 1, 1, 0.1])
SOLVERS = [
    Perceptron(),
    PassiveAggressive(C=0.05),
    PassiveAggressive(C=3.0),
    PassiveAggressive(C=0.2, squared=True, averaging=False),
    AROW(r=0.5),
    AROW(r=20.0),
]
TREE = {"a": ["b", "c"], "c": ["d"]}
EACH = pytest.mark.parametrize("solver", SOLVERS, ids=repr)


def plain(case, solver, order, w):
    """Return the last weights, their average, and steps, one dense step at a time."""
    shares = len(case.written) * case.problem.weights
    w, variance, total, steps = w.copy(), np.ones(len(w)), 0 * w, 0
    for i in order:
        differences, losses = case.written[i]
        scored = -differences @ w if isinstance(solver, Perceptron) else losses - differences @ w
        best = int(np.argmax(scored))
        g, value = differences[best], scored[best]
        if shares[i] > 0 and g.any() and (value > 1e-12 or isinstance(solver, Perceptron)):
            steps += 1
            if isinstance(solver, Perceptron):
                w = w + shares[i] * g
            elif isinstance(solver, AROW):
                r = solver.r / shares[i]
                w = w + value / (variance @ g**2 + r) * variance * g
                variance = 1 / (1 / variance + g**2 / r)
            elif solver.squared:
                w = w + value / (g @ g + 0.5 / (solver.C * shares[i])) * g
            else:
                w = w + min(solver.C * shares[i], value / (g @ g)) * g
        total = total + w
    return w, total / len(order), steps


def stored(case, seed=0):
    """Weights without ties."""
    w, layout = np.random.default_rng(seed).normal(size=case.problem.dim), case.problem.space.layout
    kept = np.zeros_like(w)
    for block in layout.blocks:
        layout.view(kept, block.name)[...] = layout.view(w, block.name)
    return kept


@EACH
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighed"])
@pytest.mark.parametrize("kind", ["chain", "edges", "classes", "ties"])
def test_every_step(kind, weights, solver):
    case = make_case(kind, weights=weights)
    w = stored(case)
    run = begin(solver, case.problem, 1.0, seed=5, w=w, tol=0)
    rng, n = np.random.default_rng(5), case.problem.n
    orders = [rng.permutation(n) for _ in range(4)]
    records = [run.step() for _ in orders]
    last, average, steps = plain(case, solver, np.concatenate(orders), case.flat(w))
    np.testing.assert_allclose(case.flat(run.loop.w), last, atol=1e-11)
    np.testing.assert_allclose(case.flat(run.loop.averaged()), average, atol=1e-11)
    np.testing.assert_allclose(
        case.flat(run.weights()), average if solver.averaging else last, atol=1e-11
    )
    assert sum(record["violations"] for record in records) == steps > 0
    assert {r["oracle_calls"] for r in records} == {n - (weights is not None)}
    assert all(r["primal"] is r["dual"] is r["gap"] is None and not r["certified"] for r in records)
    earlier, _, _ = plain(case, solver, np.concatenate(orders[:3]), case.flat(w))
    if not solver.averaging:
        change = np.linalg.norm(last - earlier) / np.linalg.norm(last)
        assert records[-1]["change"] == pytest.approx(change, rel=1e-9)


@EACH
@pytest.mark.parametrize("structure", ["chain", "multiclass", "tree"])
def test_sparse_and_dense_features_take_the_same_steps(structure, solver):
    X, Y = StructuredSVM(structure)._structure_for(None).sample(3, n=12)
    models = []
    for features in (lambda x: np.asarray(x), lambda x: sparse.csr_matrix(np.asarray(x))):
        given = [(features(x[0]), *x[1:]) if type(x) is tuple else features(x) for x in X]
        given = features(np.array(X)) if structure == "multiclass" else given
        models.append(StructuredSVM(structure, solver=solver, max_iter=7, tol=0).fit(given, Y))
    for name, block in models[0].coef_.items():
        np.testing.assert_allclose(models[1].coef_[name], block, atol=1e-9)


@EACH
def test_separable_data_end_without_violations(solver):
    rng = np.random.default_rng(0)
    true = rng.normal(size=(6, 4))
    X = [rng.normal(size=(int(rng.integers(1, 6)), 6)) for _ in range(400)]
    scores = [np.sort(x @ true, axis=1) for x in X]
    kept = [k for k, s in enumerate(scores) if (s[:, -1] - s[:, -2]).min() > 1.0]
    X = [X[k] for k in kept]
    Y = [np.argmax(x @ true, axis=1) for x in X]
    model = StructuredSVM("chain", solver=solver, max_iter=3000, tol=0).fit(X, Y)
    last = model.history_[-1]
    if isinstance(solver, AROW) or getattr(solver, "squared", False):  # damped steps
        assert last["violations"] < 0.5 * model.history_[0]["violations"]
    else:
        assert model.stop_reason_ == "settled" and last["violations"] == 0
    assert model.score(X, Y) > 0.99


def test_a_pass_of_small_change_settles_and_alpha_has_no_effect():
    train, _ = make_strips(80, 1)
    settings = {"solver": "perceptron", "max_iter": 60}
    models = [
        StructuredSVM("chain", alpha=alpha, tol=0.05, **settings).fit(train.pixels, train.labels)
        for alpha in (1e-6, 1e3)
    ]
    assert [record["change"] <= 0.05 for record in models[0].history_][-2:] == [False, True]
    assert models[0].stop_reason_ == "settled" and models[0].n_iter_ < 60
    np.testing.assert_array_equal(models[0].coef_["node"], models[1].coef_["node"])


@EACH
def test_batches_continue_a_run(solver):
    """Passes over all, in one order, are calls of partial_fit on batches of one example."""
    case = make_case(weights=None)
    w = stored(case)
    batches = [make_case(seed=seed, n=n) for seed, n in ((0, 8), (1, 3), (2, 11))]
    run = begin(solver, batches[0].problem, 1.0, seed=3, w=w)
    joined, order = move_over(run, batches, np.random.default_rng(3))
    last, average, _ = plain(joined, solver, order, case.flat(w))
    np.testing.assert_allclose(joined.flat(run.loop.w), last, atol=1e-11)
    np.testing.assert_allclose(joined.flat(run.loop.averaged()), average, atol=1e-11)
    refused("the new examples have .* weights, the run", run.move_to, make_case("edges").problem)


@EACH
def test_a_run_continues_from_a_file_and_from_a_copy(solver, tmp_path):
    case = make_case(weights=WEIGHTS)
    run = begin(solver, case.problem, 1.0)
    for _ in range(3):
        run.step()
    fresh = begin(solver, case.problem, 1.0)
    twins = [through_file(run, fresh, tmp_path / "run"), pickle.loads(pickle.dumps(run))]
    expected = [run.step(), run.step()]
    for twin in twins:
        assert [twin.step(), twin.step()] == expected
        np.testing.assert_array_equal(twin.weights(), run.weights())


def test_checkpoint_validation_and_partial_fit_of_models(tmp_path):
    train, test = make_strips(60, 30)
    whole = StructuredSVM("chain", solver="arow", max_iter=6, tol=0)
    whole.fit(train.pixels, train.labels)
    cut = StructuredSVM("chain", solver="arow", max_iter=3, tol=0, checkpoint=tmp_path / "c")
    cut.fit(train.pixels, train.labels).set_params(max_iter=6).fit(train.pixels, train.labels)
    np.testing.assert_array_equal(whole.coef_["node"], cut.coef_["node"])
    early = StructuredSVM("chain", solver="perceptron", early_stopping=True, n_jobs=2)
    early.fit(train.pixels, train.labels, validation=(test.pixels, test.labels))
    scores = [record["validation_score"] for record in early.history_]
    assert early.score(test.pixels, test.labels) == pytest.approx(max(scores))
    assert early.stop_reason_ in ("early_stopping", "settled")
    stream = StructuredSVM("chain", solver="passive-aggressive")
    for first in range(0, 60, 20):
        stream.partial_fit(train.pixels[first : first + 20], train.labels[first : first + 20])
    assert stream.n_iter_ == 3 and stream.score(test.pixels, test.labels) > 0.5


@pytest.mark.parametrize("solver", ["perceptron", "passive-aggressive", "arow"])
@pytest.mark.parametrize(
    "structure",
    ["chain", "tree", "grid", "mrf", "dependency", "multilabel", "permutation", DagStructure(TREE)],
    ids=str,
)
def test_every_structure_with_an_oracle(structure, solver):
    check_solver(solver, structure)


def test_rare_columns_are_one_only_where_steps_do_not_tell_them_apart():
    X, Y = word_data("chain")
    for solver in (Perceptron(), PassiveAggressive(), AROW()):
        one = StructuredSVM("chain", solver=solver, max_iter=4, tol=0).fit(X, Y)
        turned = type(solver)(**solver.get_params())
        turned.squared_norm = False
        other = StructuredSVM("chain", solver=turned, max_iter=4, tol=0).fit(X, Y)
        for name, block in one.coef_.items():
            np.testing.assert_allclose(other.coef_[name], block, atol=1e-9)


def test_values_fall_by_steps():
    """A passive-aggressive step without a bound makes the value of its cut 0."""
    case = make_case(n=1)
    run = begin(PassiveAggressive(C=1e9, averaging=False), case.problem, 1.0)
    values = []
    for _ in range(40):
        run.step()
        values.append(margins(case.flat(run.weights()), case.written)[0])
    assert values[-1] < 1e-6


def test_refusals():
    case = make_case()
    for solver, message in (
        (PassiveAggressive(C=0.0), "PassiveAggressive: C is 0.0, expected a number > 0"),
        (AROW(r=-1.0), "AROW: r is -1.0, expected a number > 0"),
        (AROW(r=np.nan), "AROW: r is nan, expected a number > 0"),
    ):
        refused(message, begin, solver, case.problem, 1.0)
    model = StructuredSVM("multiclass", solver="perceptron", kernel="rbf")
    refused("moves weights of features", model.fit, [[0.0], [1.0]], [0, 1])
    model = LatentSVM("chain", solver="perceptron")
    refused("expected one that minimises", model.fit, [[[0.0], [1.0]]] * 2, [[0, None], [0, 1]])
    X = np.array([[-1.0], [1.0], [2.0]])
    for solver in ("perceptron", "arow"):
        model = HierarchicalSVM(TREE, normalization="learned", solver=solver)
        refused(f"solver is '{solver}', expected one that min", model.fit, X, ["b", "d", "d"])
    run = begin(AROW(), case.problem, 1.0)
    meta, arrays = run.state()
    refused("variance has shape", run.restore, meta, arrays | {"variance": arrays["variance"][1:]})


@pytest.mark.parametrize("solver", ["perceptron", "passive-aggressive", "arow"])
def test_no_alpha_is_chosen_or_blamed_where_it_has_no_effect(solver):
    X, y = np.random.default_rng(0).normal(size=(40, 2)), ["a", "b"] * 20
    text = f"alpha has no effect with solver '{solver}'.*; choose max_iter, or early_stopping=True"
    refused(text, StructuredSVMCV("multiclass", solver=solver).fit, X, y)
    refused(text, StructuredSVM("multiclass", solver=solver).path, X, y, [1.0, 0.1])
    with pytest.warns(RuntimeWarning, match="may be uninformative") as told:
        StructuredSVM("multiclass", solver=solver, fit_intercept=False).fit(0 * X, y)
    assert not any("alpha" in str(warning.message) for warning in told)


def test_weights_of_classes_and_nodes_need_a_loss():
    X, Y = [[[-1.0], [1.0]], [[1.0], [-1.0]]], [["a", "b"], ["b", "a"]]
    weighted = [WeightedLabels(y, [2.0, 1.0]) for y in Y]
    cases = [
        ({"class_weight": {"a": 2.0}}, Y, "class_weight or loss=ClassWeights"),
        ({"loss": ClassWeights({"a": 2.0})}, Y, "class_weight or loss=ClassWeights"),
        ({}, weighted, "y holds WeightedLabels"),
        ({"surrogate": "crf"}, Y, "surrogate is 'crf'"),  # nothing would train its probabilities
    ]
    for settings, y, culprit in cases:
        text = f"{culprit}.*; use 'passive-aggressive' or 'arow', or sample_weight"
        model = StructuredSVM("chain", solver="perceptron", **settings)
        refused(text, model.fit, X, y)
        refused(text, model.partial_fit, X, y, classes=["a", "b"])
        StructuredSVM("chain", solver="arow", **settings).fit(X, y)
    StructuredSVM("multiclass", solver="perceptron", class_weight="balanced").fit(X[0], ["a", "b"])
    model = StructuredSVM("chain", solver="perceptron").partial_fit(X, Y)
    refused("y holds WeightedLabels", model.partial_fit, X, weighted)
