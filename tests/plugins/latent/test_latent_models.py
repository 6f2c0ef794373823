"""LatentSVM as users call it: conventions, predictions, files, checkpoints, errors."""

import copy
import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused, reloaded, same
from latent_cases import BruteForce, sampled, xor_chains
from python_structures import PyChainStructure
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from structsolve import CostMatrix, LatentSVM, StructuredSVM, TaskLoss, WeightedLabels
from structsolve.plugins.grid import GridStructure
from structsolve.plugins.latent.sets import split
from structsolve.plugins.latent.states import check_n_hidden, of_classes, owners
from structsolve.plugins.mrf import MRFStructure
from structsolve.plugins.ordinal import OrdinalStructure
from structsolve.solvers import BCFW, CuttingPlane

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SETTINGS = {"n_hidden": 2, "alpha": 0.02, "tol": 0.01}


@parametrize_with_checks(
    [LatentSVM("multiclass", n_hidden=2, alpha=0.01, tol=0.1, max_rounds=3, max_iter=20)],
    expected_failed_checks=lambda estimator: {
        f"check_sample_weight_equivalence_on_{kind}_data": "needs the optimum to 1e-7"
        for kind in ("dense", "sparse")
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def model():
    return LatentSVM("chain", **SETTINGS).fit(*xor_chains(30, 0))


@pytest.fixture(scope="module")
def partial():
    X, Y = xor_chains(15, 3)
    rng = np.random.default_rng(0)
    return X, [[c if rng.random() < 0.7 else ["a", "b"] for c in y.tolist()] for y in Y]


def test_fits_are_the_same_again_and_on_any_number_of_threads(partial):
    X, Y = (part[:6] for part in partial)
    one = LatentSVM("chain", init="random", n_init=2, max_rounds=3, **SETTINGS)
    first = one.fit(X, Y).flat_weights()
    again = one.fit(X, Y).flat_weights()
    threads = clone(one).set_params(n_jobs=3).fit(X, Y)
    same(first, again)
    same(first, threads.flat_weights())
    same([h.tolist() for h in one.hidden_], [h.tolist() for h in threads.hidden_])
    sparse = clone(one).fit([sp.csr_matrix(x) for x in X], Y)
    np.testing.assert_allclose(sparse.flat_weights(), first, atol=1e-6)
    other = clone(one).set_params(random_state=1).fit(X, Y)
    assert (other.flat_weights() != first).any()


def test_indices_of_64_bits_are_those_of_32():
    X, y = sp.csr_array(np.repeat(np.eye(4), 3, axis=0)), list("aaaabbaaabbb")
    plain = LatentSVM("multiclass", **SETTINGS).fit(X, y)
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    same(LatentSVM("multiclass", **SETTINGS).fit(wide, y).flat_weights(), plain.flat_weights())
    assert wide.indices.dtype == np.int64


def test_predictions_are_of_classes_and_of_states(model):
    X, Y = xor_chains(5, 1)
    assert model.classes_.tolist() == ["a", "b"]
    assert model.state_classes_.tolist() == ["a", "a", "b", "b"]
    assert model.n_hidden_.tolist() == [2, 2]
    assert model.coef_["node"].shape == (2, 4) and model.coef_["transition"].shape == (4, 4)
    for labels, states in zip(model.predict(X), model.predict_hidden(X)):
        assert states.dtype.kind == "i"
        np.testing.assert_array_equal(model.state_classes_[states], labels)
    names = {key for _, key, _ in model.named_weights()}
    assert {("a/0", "b/1"), (0, "a/1"), ("b/0",)} <= names
    assert model.score(X, Y) == np.mean(np.concatenate(model.predict(X)) == np.concatenate(Y))


def test_scores_and_marginals_of_classes_sum_up_their_states(model):
    X, _ = xor_chains(3, 1)
    states = StructuredSVM("chain").fit(X, [["a0", "a1", "b0", "b1"] * 3] * 3)
    states._become_fitted(states.space_, type(states._model)(states.space_, model.flat_weights()))
    for own, each in zip(model.decision_function(X), states.decision_function(X)):
        np.testing.assert_allclose(own, np.stack([each[:, :2].max(1), each[:, 2:].max(1)], axis=1))
    for own, each in zip(model.predict_marginals(X), states.predict_marginals(X)):
        np.testing.assert_allclose(own, np.stack([each[:, :2].sum(1), each[:, 2:].sum(1)], axis=1))
    for own, each in zip(model.predict_kbest(X, 4), states.predict_kbest(X, 4)):
        assert [value for _, value in own] == [value for _, value in each]
        assert [[name[0] for name in label] for label, _ in each] == [a.tolist() for a, _ in own]
    assert len(model.sample(X, 2)) == 2
    crf = LatentSVM("multiclass", n_hidden=2, surrogate="crf").fit(np.eye(4), list("abab"))
    np.testing.assert_allclose(crf.predict_proba(np.eye(4)).sum(axis=1), 1)
    assert crf.predict_proba(np.eye(4)).shape == (4, 2)


def test_rules_of_prediction_are_of_classes(model):
    X, _ = xor_chains(4, 2)
    allowed = [[["a"]] * 6 + [None] * 6] * 4
    for labels in model.predict(X, allowed=allowed):
        assert (labels[:6] == "a").all()
    for pairs in ([("a", "b"), ("b", "a")], [("a", "a")]):
        for labels in model.predict(X, forbidden=pairs):
            assert not set(pairs) & set(zip(labels[:-1].tolist(), labels[1:].tolist()))
    for y in model.predict_hidden(X, forbidden=[("a", "b"), ("b", "a")]):
        assert len(set((y // 2).tolist())) == 1


def test_undirected_pairs_of_classes_can_be_forbidden():
    path = np.stack([np.arange(11), np.arange(1, 12)], axis=1)
    X, Y = xor_chains(20, 0)
    X = [(x, path) for x in X]
    model = LatentSVM("mrf", **SETTINGS).fit(X, Y)
    assert model.score(X, Y) > 0.9
    for labels in model.predict(X, forbidden=[("b", "a")]):
        assert len(set(labels.tolist())) == 1


def test_labels_that_training_did_not_see_are_errors_in_scores(model):
    X, Y = xor_chains(3, 1)
    right = model.score(X, model.predict(X))
    strange = [np.where(np.arange(12) < 3, "zebra", y) for y in model.predict(X)]
    assert right == 1 and model.score(X, strange) == 0.75
    costly = LatentSVM("chain", loss=CostMatrix([[0, 1], [3, 0]], ["a", "b"]), **SETTINGS)
    costly.fit(*xor_chains(10, 0))
    predicted = costly.predict(X)
    flipped = [np.where(y == "a", "b", "a") for y in predicted]
    share = np.mean(np.concatenate(flipped) == "b")
    assert costly.score(X, flipped) == pytest.approx(1 - (3 * share + (1 - share)))


def test_ordered_classes_keep_their_order():
    rng = np.random.default_rng(0)
    centers = np.array([-3.0, -1.0, 1.0, 3.0])
    X = np.repeat(centers, 10)[:, None] + 0.1 * rng.normal(size=(40, 1))
    y = np.repeat(["low", "high", "low", "high"], 10)
    structure = OrdinalStructure(classes=["low", "high"])
    model = LatentSVM(structure, n_hidden=2, loss="absolute", alpha=0.001).fit(X, y)
    assert model.classes_.tolist() == ["low", "high"]
    assert model.state_classes_.tolist() == ["low", "low", "high", "high"]
    assert model.score(X, y) == 1.0


def test_given_states_begin_training(model):
    X, Y = xor_chains(30, 0)
    again = clone(model).fit(X, Y, hidden=model.hidden_)
    assert again.rounds_[0]["moved"] == 0
    assert again.rounds_[-1]["objective"] <= model.rounds_[-1]["objective"] * 1.01
    flipped = [np.where(h % 2, h - 1, h + 1) for h in model.hidden_]
    other = clone(model).fit(X, Y, hidden=flipped)
    mean = np.mean(np.concatenate(other.hidden_) == np.concatenate(flipped))
    assert mean > 0.95
    one = LatentSVM("multiclass", n_hidden=2).fit(np.eye(4), list("aabb"), hidden=[0, 1, 2, 3])
    assert one.hidden_.tolist() == [0, 1, 2, 3]


def test_warm_starts_and_paths_go_on_from_the_weights():
    X, Y = xor_chains(20, 0)
    model = LatentSVM("chain", warm_start=True, init="random", **SETTINGS).fit(X, Y)
    before = model.rounds_[-1]["objective"]
    model.fit(X, Y)
    assert model.rounds_[-1]["objective"] <= before and model.rounds_[0]["moved"] <= 3
    models = LatentSVM("chain", **SETTINGS).path(X, Y, [0.02, 0.1])
    assert [m.alpha for m in models] == [0.02, 0.1]
    assert all(m.score(X, Y) > 0.9 and m.rounds_ for m in models)


def test_callbacks_and_validation_see_every_pass():
    X, Y = xor_chains(10, 0)
    seen = []
    model = LatentSVM("chain", callbacks=[seen.append], **SETTINGS)
    model.fit(X, Y, validation=xor_chains(5, 1))
    assert len(seen) == len(model.history_) == model.n_iter_
    assert [record["pass"] for record in model.history_] == list(range(1, len(seen) + 1))
    assert all("validation_score" in record for record in model.rounds_)
    assert model.rounds_[-1]["validation_score"] > 0.8
    without = clone(model).set_params(callbacks=None).fit(X, Y)
    same(without.flat_weights(), model.flat_weights())
    stopped = LatentSVM("chain", callbacks=[lambda record: True], n_init=3, **SETTINGS).fit(X, Y)
    assert stopped.stop_reason_ == "callback" and len(stopped.history_) == 1
    assert len(stopped.objectives_) == 1


def ended(after, error):
    passes = itertools.count(1)

    def stop(record):
        if next(passes) == after:
            raise error

    return stop


def test_an_interrupt_keeps_the_best_model():
    X, Y = xor_chains(10, 0)
    stop = ended(3, KeyboardInterrupt)
    model = LatentSVM("chain", callbacks=[stop], init="random", n_init=2, **SETTINGS)
    model.fit(X, Y)
    assert model.stop_reason_ == "interrupted" and len(model.predict(X)) == 10


class Killed(Exception):
    pass


@pytest.mark.parametrize("stop", [1, 9, 25])
@pytest.mark.parametrize(
    ("solver", "surrogate"),
    [(BCFW(), "margin"), (CuttingPlane(), "margin"), (BCFW(), "slack")],
    ids=["bcfw", "cutting-plane", "slack"],
)
def test_killed_runs_resume_bit_for_bit(tmp_path, partial, solver, surrogate, stop, monkeypatch):
    monkeypatch.setattr("structsolve.solvers.checkpoint.PAUSE", 0)  # write after every pass
    X, Y = (part[:6] for part in partial)
    settings = {
        **SETTINGS,
        "init": "random",
        "n_init": 2,
        "solver": solver,
        "surrogate": surrogate,  # slack: each search begins where the example's last one ended
        "max_rounds": 4,
        "max_iter": 10,
    }
    whole = LatentSVM("chain", **settings).fit(X, Y)
    path = tmp_path / "run.checkpoint"
    with pytest.raises(Killed):
        LatentSVM("chain", checkpoint=path, callbacks=[ended(stop, Killed)], **settings).fit(X, Y)
    LatentSVM("chain", checkpoint=path, **settings).fit(X, Y)
    resumed = LatentSVM("chain", checkpoint=path, **settings).fit(X, Y)  # a run that had ended
    same(resumed.flat_weights(), whole.flat_weights())
    assert resumed.objectives_ == whole.objectives_
    assert resumed.stop_reason_ == whole.stop_reason_
    same([h.tolist() for h in resumed.hidden_], [h.tolist() for h in whole.hidden_])
    timeless = [
        [{k: v for k, v in record.items() if "seconds" not in k} for record in m.history_]
        for m in (resumed, whole)
    ]
    assert timeless[0] == timeless[1]
    for changed in ({"n_hidden": 3}, {"alpha": 0.5}, {"init": "kmeans"}):
        other = LatentSVM("chain", checkpoint=path, **{**settings, **changed})
        refused("belongs to other data", other.fit, X, Y)
    Y = copy.deepcopy(Y)
    Y[0][0] = None if isinstance(Y[0][0], str) else "a"
    refused("belongs to other data", LatentSVM("chain", checkpoint=path, **settings).fit, X, Y)


def test_structures_in_plain_python_have_hidden_states_too():
    X, Y = sampled("chain", 7, partial=0.5)
    settings = {"n_hidden": 2, "alpha": 0.02, "init": "random", "max_rounds": 4}
    model = LatentSVM(PyChainStructure(), **settings).fit(X, Y)
    exact = BruteForce(model, X, Y, [2, 2, 2], 1 - np.eye(3), np.ones(5))
    expected = exact.objective(model.flat_weights(), 0.02)
    assert model.rounds_[-1]["objective"] == pytest.approx(expected, rel=1e-9)
    for labels in model.predict(X, forbidden=[(0, 1)]):
        assert (0, 1) not in zip(labels[:-1].tolist(), labels[1:].tolist())


def test_models_are_saved_loaded_pickled_and_searched(tmp_path, model, partial):
    X, Y = xor_chains(5, 1)
    for twin in (reloaded(model, tmp_path), pickle.loads(pickle.dumps(model)), copy.copy(model)):
        assert isinstance(twin, LatentSVM)
        same([y.tolist() for y in twin.predict(X)], [y.tolist() for y in model.predict(X)])
        assert twin.score(X, Y) == model.score(X, Y)
        assert twin.rounds_ == model.rounds_
        assert twin.n_hidden_.tolist() == [2, 2] and twin.classes_.tolist() == ["a", "b"]
        twin.predict(X, forbidden=[("a", "b")])
    for n_hidden in ({"a": 1, "b": 2}, np.array([1, 2])):
        uneven = LatentSVM("chain", n_hidden=n_hidden, alpha=0.1, tol=0.1).fit(*partial)
        assert reloaded(uneven, tmp_path).n_hidden_.tolist() == [1, 2]
    X, Y = xor_chains(12, 0)
    search = GridSearchCV(LatentSVM("chain", alpha=0.02, tol=0.1), {"n_hidden": [1, 2]}, cv=2)
    assert search.fit(X, Y).best_params_ == {"n_hidden": 2}
    assert not hasattr(model, "partial_fit")


def test_converged_and_stopped_runs_say_so():
    X, Y = xor_chains(10, 0)
    short = LatentSVM("chain", init="random", max_rounds=1, **SETTINGS)
    with pytest.warns(Warning, match="stopped after 1 rounds, max_rounds is 1"):
        short.fit(X, Y)
    assert short.stop_reason_ == "max_iter"
    full = LatentSVM("chain", **SETTINGS).fit(X, Y)
    last = full.rounds_[-1]
    assert full.stop_reason_ == "converged" and last["moved"] == 0
    assert last["gap"] <= 0.01 * last["primal"]


def test_label_pictures_have_hidden_states_sets_and_void_pixels():
    rng = np.random.default_rng(0)
    X, Y = [], []
    for _ in range(4):
        y = np.zeros((4, 6), int)
        y[:, rng.integers(2, 5) :] = 1
        side = rng.choice([-1, 1], y.shape)
        modes = np.stack([side, np.where(y == 0, side, -side)], axis=-1)
        X.append(modes + 0.3 * rng.normal(size=modes.shape))
        Y.append(y)
    model = LatentSVM("grid", **SETTINGS).fit(X, Y)
    assert model.score(X, Y) > 0.95
    assert [h.shape for h in model.hidden_] == [h.shape for h in model.predict_hidden(X)]
    again = clone(model).fit(X, Y, hidden=model.hidden_)
    assert again.rounds_[0]["moved"] <= 2
    rows = [
        [
            [int(c) if rng.random() < 0.4 else [None, [0, 1]][rng.integers(2)] for c in row]
            for row in y
        ]
        for y in Y
    ]
    one = [x.prod(axis=-1, keepdims=True) for x in X]
    scribbled = LatentSVM("grid", alpha=0.02, tol=0.01).fit(one, rows)
    assert scribbled.score(one, Y) > 0.95
    rows[0][0][0] = 255
    with_void = LatentSVM(GridStructure(void=255), alpha=0.02, tol=0.01).fit(one, rows)
    assert with_void.score(one, Y) > 0.95 and with_void.hidden_[0].shape == (23,)
    clone(with_void).fit(one, rows, hidden=with_void.hidden_)
    full = LatentSVM("grid").fit(one, [y.tolist() for y in Y])  # rows of labels are no sets
    assert full.rounds_[0]["round"] == 1 and len(full.rounds_) == 1


# -- input that is refused ------------------------------------------------------------------------


X3, Y3 = [np.eye(3), np.eye(3)[:2]], [["a", "b", "a"], ["b", "a"]]


@pytest.mark.parametrize(
    ("message", "Y"),
    [
        ("y, example 0, node 1: the set of allowed labels is empty", [["a", [], "a"], ["b", "a"]]),
        ("y, example 1, node 0: the set \\[1, 'b'\\] mixes strings", [["a"] * 3, [["b", 1], "a"]]),
        ("y, example 1, node 1: the set holds \\['b'\\]", [["a"] * 3, ["b", ["a", ["b"]]]]),
        ("y, example 0: found None, expected one None for each", [None, ["b", "a"]]),
        ("y names no label", [[None] * 3, [None, None]]),
        ("example 1: X has 2 rows and y has 1 labels", [["a", None, "b"], [["a", "b"]]]),
        ("X has 2 examples and y has 1", [["a", None, "b"]]),
        ("y mixes strings and numbers", [["a", {"b"}, "a"], [{1}, "a"]]),
        ("y is a str", "ab"),
        ("y is a NoneType", None),
        (
            "y, example 1, node 0: found several allowed labels, or None, within WeightedLabels",
            [["a", "b", "a"], WeightedLabels([{"a", "b"}, "a"], [1.0, 2.0])],
        ),
    ],
)
def test_wrong_labels_are_refused_by_example_and_node(message, Y):
    refused(message, LatentSVM("chain").fit, X3, Y)


@pytest.mark.parametrize(
    ("message", "params"),
    [
        ("n_hidden is 0, expected an integer of at least 1", {"n_hidden": 0}),
        ("n_hidden is True", {"n_hidden": True}),
        ("n_hidden is 'two'", {"n_hidden": "two"}),
        ("n_hidden is 1.5", {"n_hidden": 1.5}),
        ("n_hidden is -1 for class 'b'", {"n_hidden": {"a": 1, "b": -1}}),
        ("no number for the classes \\['b'\\]", {"n_hidden": {"a": 2}}),
        ("\\['c'\\], no classes of y", {"n_hidden": {"a": 2, "b": 1, "c": 1}}),
        ("n_hidden has 3 numbers, expected 2", {"n_hidden": [1, 2, 3]}),
        ("init is 'best', expected one of", {"init": "best"}),
        ("n_init is 0", {"n_init": 0}),
        ("max_rounds is 0", {"max_rounds": 0}),
        ("alpha is 0", {"alpha": 0}),
        ("loss='zero-one' is no sum over the nodes", {"loss": "zero-one", "n_hidden": 2}),
        ("unknown loss 'spanking'", {"loss": "spanking", "n_hidden": 2}),
        (
            "has no costs for the classes|no costs for the classes",
            {"loss": CostMatrix([[0, 1], [1, 0]], ["a", "c"]), "n_hidden": 2},
        ),
    ],
)
def test_wrong_parameters_are_refused_by_name(message, params):
    refused(message, LatentSVM("chain", **params).fit, X3, Y3)


def test_wrong_states_to_begin_with_are_refused():
    def fit(hidden, Y=Y3):
        LatentSVM("chain", n_hidden=2).fit(X3, Y, hidden=hidden)

    message = "hidden, example 1, node 0: state 0, expected one that y allows: \\[2, 3\\]"
    refused(message, fit, [[0, 2, 1], [0, 1]])
    refused("hidden, example 0, node 2: state 4", fit, [[0, 2, 4], [2, 1]])
    refused("hidden, example 0, node 0: state -1", fit, [[-1, 2, 1], [2, 1]])
    refused(
        "hidden holds bool, expected numbers of states", fit, [[False, True, False]] + [[True] * 2]
    )
    refused("hidden: example 1: X has 2 rows and y has 1 labels", fit, [[0, 2, 1], [2]])
    refused("hidden holds", fit, [["a", "b", "a"], ["b", "a"]])
    assert LatentSVM("chain", n_hidden=2).fit(X3, Y3, hidden=[[0, 2, 1], [3, 1]]).history_


def test_structures_without_classes_of_nodes_have_no_hidden_states():
    message = "n_hidden is 2, expected 1 for whole labels"
    refused(message, LatentSVM("multilabel", n_hidden=2).fit, np.eye(2), np.eye(2, dtype=int))
    thresholds = OrdinalStructure(thresholds=True)
    refused("structure: 'ordinal'", LatentSVM(thresholds, n_hidden=2).fit, np.eye(2), [0, 1])
    refused("AnyOf", LatentSVM("dependency").fit, [np.zeros((3, 2, 1))], [[[0, 2], 0]])


def test_number_of_states_that_a_structure_fixes():
    states = MRFStructure(edges=[[0, 1]], n_states=2)
    X, Y = [np.eye(2)] * 2, [[0, 1], [1, 0]]
    refused("n_hidden: structure 'mrf' has n_states=2", LatentSVM(states, n_hidden=2).fit, X, Y)
    model = LatentSVM(states).fit(X, [[0, None], [{1}, [0, 1]]])
    assert model.state_classes_.tolist() == [0, 1]
    message = "y, example 0, node 1: allowed label 2 is no class"
    refused(message, LatentSVM(states).fit, X, [[0, [1, 2]], [1, 0]])


class NodeCosts(TaskLoss):
    def loss(self, space, examples, i, truth, label):
        return 0.0

    def loss_costs(self, space, examples, i, truth):
        return {"transition": np.ones((2, 2))}, 0.0


def test_losses_of_other_parts_than_nodes_are_refused():
    model = LatentSVM("chain", n_hidden=2, loss=NodeCosts())
    refused("has costs of parts other than nodes", model.fit, X3, Y3)


def test_labels_and_numbers_of_states_are_read_in_all_their_forms():
    objects = np.empty(3, object)
    objects[:] = ["a", ("a", "b"), None]
    given = split([objects, np.array(["a", "b"])])
    assert given.full[0].tolist() == ["a", "a", "a"] and sorted(given.nodes) == [1, 2]
    picture = np.empty((2, 2), object)
    picture[0], picture[1] = [1, {2, 1}], [None, 2]
    for form in (picture, picture.tolist()):
        given = split([np.array([[1, 2], [2, 1]]), form], 2)
        assert given.full[1].tolist() == [[1, 1], [1, 2]] and sorted(given.nodes) == [5, 6]
        assert given.classes() is None
    assert split([0, [1, 2]], 0).classes() == [0, 1, 2]
    assert split(np.array([0, 1]), 0).nodes == {}
    assert check_n_hidden(np.int64(2), np.array([0, 1])).tolist() == [2, 2]
    assert check_n_hidden({np.int64(0): 1, 1: 2}, np.array([0, 1])).tolist() == [1, 2]
    X, Y = sampled("chain", 0)
    space = LatentSVM("chain", n_hidden=[1, 2, 3], max_rounds=1, alpha=1).fit(X, Y).space_
    assert owners(space).tolist() == [0, 1, 1, 2, 2, 2]
    assert of_classes(space).classes_.tolist() == [0, 1, 2]
