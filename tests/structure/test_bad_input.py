"""Bad input gives a clear error: argument, example, found, expected and advice."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused
from data import chains, classes

from structsolve import (
    ClassWeights,
    ConditionalRiskMinimizer,
    CostMatrix,
    ExtremeSVM,
    HierarchicalSVM,
    LatentSVM,
    Sequences,
    StructuredSVM,
    TaskLoss,
    from_padded,
    get_structure,
)
from structsolve.plugins.chain.space import ChainStructure
from structsolve.plugins.extreme.solvers.dual import ExtremeDual
from structsolve.plugins.extreme.solvers.one_vs_some import OneVsSome
from structsolve.solvers.bcfw import BCFW
from structsolve.solvers.cutting_plane import CuttingPlane
from structsolve.surrogates import Slack

X, Y = chains(6)
P, Q = classes(30)


class Doubled(TaskLoss):
    """Twice the number of errors."""

    def loss(self, space, examples, i, truth, label):
        return 2.0 * (truth != label).sum()


def replaced(values, i, value):
    return [value if j == i else v for j, v in enumerate(values)]


def with_value(x, value):
    x = x.copy()
    x[-1, 2] = value
    return x


BAD_CHAINS = [
    (X, Y[:-1], "X has 6 examples and y has 5"),
    (
        X,
        replaced(Y, 2, Y[2][:-1]) if len(Y[2]) > 1 else replaced(Y, 2, [0, 0, 0, 0]),
        r"example 2: X has \d+ rows and y has \d+ labels",
    ),
    (replaced(X, 1, np.zeros((0, 6))), replaced(Y, 1, []), "example 1: found 0 rows"),
    (replaced(X, 3, with_value(X[3], np.nan)), Y, r"NaN \(example 3, row \d+\)"),
    (replaced(X, 3, with_value(X[3], -np.inf)), Y, r"infinity \(example 3, row \d+\)"),
    ([sp.csr_matrix(x) for x in replaced(X, 4, with_value(X[4], np.nan))], Y, r"example 4"),
    (replaced(X, 2, X[2][:, :4]), Y, "example 2: found 4 features, expected 6"),
    (replaced(X, 2, X[2].astype(object)), replaced(Y, 2, [[1]] * len(Y[2])), "example 2"),
    (replaced(X, 2, np.full(X[2].shape, "a")), Y, "example 2: dtype .* is not numeric"),
    (replaced(X, 2, X[2].astype(str)), Y, "example 2: dtype .* is not numeric"),
    (replaced(X, 2, X[2] * 1j), Y, "example 2: Complex data not supported"),
    (replaced(X, 0, X[0][0]), Y, r"example 0: found 1 dimension"),
    (replaced(X, 1, sp.coo_array(X[1][0])), Y, r"example 1: found a sparse array of 1 dimension"),
    ([], [], "X is empty"),
    ("text", Y, "X is a str"),
    ([[{"word": "a"}]] * 6, Y, "vectorise them with structsolve.SequenceVectorizer"),
    (sp.csr_matrix(X[0]), Y, "X is one sparse matrix"),
    (replaced(X, 1, sp.csr_matrix(X[1])), Y, "example 1: dense and sparse matrices are mixed"),
    (X, replaced(Y, 2, np.full(len(Y[2]), 0.5)), "Unknown label type: continuous"),
    (X, replaced(Y, 2, np.full(len(Y[2]), np.nan)), "NaN"),
    (X, replaced(Y, 2, ["a"] * len(Y[2])), "mixes strings and numbers"),
    (X, replaced(Y, 2, [None] * len(Y[2])), "labels of types"),
    (X, "abcdef", "y is a str"),
    (X, None, "y is a NoneType"),
    (replaced(X, 1, (X[1], np.zeros((1, 2)))), Y, "example 1"),
    ([(x, np.zeros((len(x), 2))) for x in X], Y, "rows of edge features"),
]


@pytest.mark.parametrize(("bad_x", "bad_y", "message"), BAD_CHAINS)
def test_bad_chains(bad_x, bad_y, message):
    refused(message, StructuredSVM("chain").fit, bad_x, bad_y)


def test_bad_input_at_prediction():
    model = StructuredSVM("chain", max_iter=3, tol=1).fit(X, Y)
    refused("example 0: found 3 features, expected 6", model.predict, [np.zeros((2, 3))])
    refused("trained without edge features", model.predict, [(np.zeros((2, 6)), np.zeros((1, 2)))])
    refused("k is 0", model.predict_kbest, X, 0)
    refused("allowed has 1 entries, expected 6", model.predict, X, allowed=[None])
    assert model.score(X, [np.full(len(y), 99) for y in Y]) == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0}, "alpha is 0, expected a finite number > 0"),
        ({"alpha": -1.0}, "alpha is -1.0"),
        ({"alpha": float("nan")}, "alpha is nan"),
        ({"alpha": "big"}, "alpha is 'big'"),
        ({"tol": -1}, "tol is -1"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"max_iter": 1.5}, "max_iter is 1.5"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"random_state": "x"}, "random_state is 'x'"),
        ({"structure": "chian"}, r"unknown structure 'chian' .did you mean 'chain'\?.; known: \["),
        ({"loss": np.eye(2)}, r"(?s)unknown loss array.* known: \[.*or a CostMatrix"),
        ({"loss": "haming"}, r"unknown loss 'haming' .* known: \["),
        ({"solver": "adam"}, r"unknown solver 'adam'.*; known: \['admm', 'arow', 'auto', 'bcfw'"),
        (
            {"surrogate": "hinge"},
            r"unknown surrogate 'hinge' \(did you mean 'margin'\?\); known: \[",
        ),
        ({"validation_fraction": 1.0}, "validation_fraction is 1.0"),
        ({"early_stopping": True, "n_iter_no_change": 0}, "n_iter_no_change is 0"),
        ({"loss": CostMatrix([[0, 1], [1, 0]])}, r"CostMatrix: matrix has shape \(2, 2\)"),
        ({"loss": CostMatrix(-np.ones((3, 3)))}, "costs of at least 0, and 0 on the diagonal"),
        ({"loss": CostMatrix(np.ones((3, 2)))}, "expected a square"),
        (
            {"loss": CostMatrix(np.eye(3).astype(str))},
            "CostMatrix: matrix: found no array of numbers",
        ),
        ({"loss": ClassWeights({9: 1.0})}, r"ClassWeights: unknown classes \[9\]"),
        ({"loss": ClassWeights({0: -1.0})}, "weights of at least 0"),
    ],
)
def test_bad_settings(settings, message):
    refused(message, StructuredSVM(**{"structure": "chain", **settings}).fit, X, Y)


@pytest.mark.parametrize("name", ["structure", "solver", "surrogate"])
def test_bad_types_of_settings(name):
    with pytest.raises(TypeError, match=f"{name} is 3"):
        StructuredSVM(**{"structure": "chain", name: 3}).fit(X, Y)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(5), r"sample_weight has shape \(5,\), expected \(6,\)"),
        ("heavy", "sample_weight: found no array of numbers"),
        (np.full(6, 1j), "sample_weight: found no array of numbers .Complex"),
        (["1"] * 6, "sample_weight: found no array of numbers .text"),
        (np.array([1, "1", b"1", 1, 1, 1], object), "sample_weight: found no array of numbers"),
        ("1", "sample_weight: found no array of numbers"),
        (np.ones(6, "m8[s]"), "sample_weight: found no array of numbers .* dates"),
        ([1, 1, -1, 1, 1, 1], "sample_weight of example 2 is -1.0"),
        ([1, 1, np.nan, 1, 1, 1], "sample_weight of example 2 is nan"),
        (np.zeros(6), "zero for every example"),
    ],
)
def test_bad_weights(weights, message):
    refused(message, StructuredSVM("chain").fit, X, Y, sample_weight=weights)


def test_bad_containers():
    refused("lengths sum to 3, but features has 4 rows", Sequences, np.zeros((4, 2)), [1, 2])
    refused("at least 1", Sequences, np.zeros((4, 2)), [4, 0])
    refused("example 1: length 5 is outside", from_padded, np.zeros((2, 3, 1)), [1, 5])
    refused("expected 3", from_padded, np.zeros((2, 3)), [1, 1])


@pytest.mark.parametrize(
    ("model", "labels"),
    [
        (StructuredSVM("multiclass"), [0, 1, 0]),
        (ConditionalRiskMinimizer("multiclass"), [0, 1, 0]),
        (HierarchicalSVM({"a": ["b", "c"]}), ["b", "c", "b"]),
        (ExtremeSVM(), [0, 1, 0]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_sparse_rows_of_one_dimension(model, labels):
    refused("X: found a sparse array of 1 dimension", model.fit, sp.coo_array(np.ones(3)), labels)


def test_one_class_only():
    model = StructuredSVM("chain").fit(X, [np.full(len(y), "only") for y in Y])
    assert all((y == "only").all() for y in model.predict(X))
    assert StructuredSVM("multiclass").fit(P, np.ones(30)).predict(P).tolist() == [1.0] * 30


def test_views_lists_and_read_only_arrays_do():
    model = StructuredSVM("chain", tol=1e-6, max_iter=300).fit(X, Y)
    wide = [np.repeat(x, 2, axis=1)[:, ::2] for x in X]
    frozen = [x.copy() for x in X]
    for x in frozen:
        x.flags.writeable = False
    for other in (
        wide,
        frozen,
        [np.asfortranarray(x) for x in X],
        [x.tolist() for x in X],
        [x.astype(object) for x in X],
        tuple(X),
        [x[::-1][::-1] for x in X],
    ):
        again = StructuredSVM("chain", tol=1e-6, max_iter=300).fit(other, Y)
        np.testing.assert_array_equal(again.coef_["node"], model.coef_["node"])


def test_sparse_matrices_with_duplicates_and_unsorted_indices():
    rows = sp.csr_matrix((np.ones(4), [2, 0, 2, 1], [0, 3, 4]), shape=(2, 3))
    assert not rows.has_canonical_format
    a = StructuredSVM("chain").fit([rows], [[0, 1]])
    b = StructuredSVM("chain").fit([rows.toarray()], [[0, 1]])
    np.testing.assert_allclose(a.coef_["node"], b.coef_["node"], atol=1e-12)
    broken = sp.csr_matrix(np.eye(3))
    broken.indices[1] = 70
    refused("column index 70 in row 1", StructuredSVM("multiclass").fit, broken, [0, 1, 2])


TREE = [[0, 1], [0, 2], [2, 3], [2, 4]]


@pytest.mark.parametrize(
    "model, y",
    [
        (StructuredSVM("multiclass"), [0, 1, 2] * 3),
        (StructuredSVM("ordinal"), [0, 1, 2] * 3),
        (StructuredSVM("multilabel"), np.eye(3, dtype=int)[[0, 1, 2] * 3]),
        (ConditionalRiskMinimizer("multiclass"), [0, 1, 2] * 3),
        (HierarchicalSVM(TREE), [1, 3, 4] * 3),
        (HierarchicalSVM(TREE, sparse=True, solver="sgd"), [1, 3, 4] * 3),
    ],
    ids=lambda value: "" if isinstance(value, (list, np.ndarray)) else repr(value)[:40],
)
def test_scores_without_labels_are_refused(model, y):
    X = np.random.default_rng(0).normal(size=(9, 2))
    model.fit(X, y)
    refused("y is None", model.score, X, None)
    if hasattr(model, "early_stopping") and not getattr(model, "sparse", False):
        refused("y is None", model.fit, X, y, validation=(X, None))


def test_one_weight_for_all_goes_with_early_stopping():
    """Weights were once split before they were expanded to one per example."""
    P, y = classes(30)
    model = StructuredSVM("multiclass", early_stopping=True, max_iter=2, tol=1)
    assert model.fit(P, y, sample_weight=2.0).score(P, y) > 0


def test_examples_of_weight_0_are_no_validation_set():
    """They do not count, and splitting them off may leave no others to train on."""
    P, y = classes(30)
    weights = np.zeros(30)
    weights[[0, 1]] = 1.0
    settings = {"early_stopping": True, "validation_fraction": 0.3, "max_iter": 3, "tol": 0}
    for seed in range(4):
        model = StructuredSVM("multiclass", random_state=seed, **settings)
        model.fit(P, y, sample_weight=weights)
        scores = {record.get("validation_score") for record in model.history_}
        assert scores <= {None, 0.0, 1.0}  # of one example
    weights[1] = 0.0
    refused("splits off 1 of 1 examples of weight above 0", model.fit, P, y, sample_weight=weights)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"structure": ChainStructure}, "structure is <class .*expected a name .* or a Structure"),
        ({"loss": ClassWeights}, r"ClassWeights is a class: give an object, loss=ClassWeights\("),
        ({"loss": Doubled}, r"Doubled is a class: give an object, loss=Doubled\(...\)"),
        ({"loss": "CostMatrix:3"}, r"CostMatrix is a class: give an object, loss=CostMatrix\("),
        ({"surrogate": Slack}, "surrogate is <class .*expected a name"),
        ({"solver": BCFW}, "solver is <class .*expected a name"),
        ({"callbacks": print}, "callbacks is <built-in .*expected a list of functions"),
        ({"callbacks": [5]}, r"callbacks is \[5\], expected a list of functions"),
        ({"fit_intercept": "no"}, "fit_intercept is 'no', expected True or False"),
        ({"early_stopping": "yes"}, "early_stopping is 'yes', expected True or False"),
        ({"warm_start": None}, "warm_start is None, expected True or False"),
        ({"verbose": None}, "verbose is None, expected an integer, True or False"),
        ({"verbose": -1}, "verbose is -1, expected 0 or more"),
        ({"alpha": True}, "alpha is True, expected a finite number"),
        ({"tol": False}, "tol is False, expected a finite number"),
        ({"max_iter": True}, "max_iter is True, expected an integer"),
        ({"checkpoint": ""}, "checkpoint is '', expected None or a path"),
        ({"checkpoint": 5}, "checkpoint is 5, expected None or a path"),
        ({"validation_fraction": True}, "validation_fraction is True, expected a number between"),
        (
            {"early_stopping": True, "validation_fraction": 0.99},
            "validation_fraction=0.99 splits off . of . examples, .*lower it, or pass validation",
        ),
        ({"validation_fraction": None}, "validation_fraction is None, expected a number between"),
        ({"validation_fraction": "x"}, "validation_fraction is 'x', expected a number between"),
    ],
    ids=str,
)
def test_what_is_no_object_of_its_kind_is_refused(settings, message):
    model = StructuredSVM(**{"structure": "chain", "max_iter": 2, **settings})
    refused(message, model.fit, X, Y, error=(TypeError, ValueError))


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"structure": "chain:start_end=no"}, "start_end is 'no', expected true or false"),
        ({"structure": "chain:off"}, "start_end is 'off', expected true or false"),
        ({"oracle": "cvxpy:OSQP,eps_abs"}, "integer is 'eps_abs', expected true or false"),
        ({"oracle": "cvxpy-ilp"}, "'cvxpy-ilp' needs the name of a solver: 'cvxpy-ilp:SCIP'"),
    ],
    ids=str,
)
def test_words_for_switches_are_refused(settings, message):
    model = StructuredSVM(**{"structure": "chain", "max_iter": 2, **settings})
    refused(message, model.fit, X, Y)


def test_labels_that_mix_strings_and_numbers_are_refused():
    """NumPy converts them all to strings."""
    mixed = replaced(Y, 1, ["a", *Y[1][1:]])
    refused("y, example 1: .*labels of types .*'str'", StructuredSVM("chain").fit, X, mixed)


@pytest.mark.parametrize(
    "constraints, message",
    [
        ({"allowed": 5}, "allowed is 5, expected a list with one entry per example"),
        ({"allowed": [5] * 6}, r"example 0: allowed has 5 for \d+ nodes"),
        ({"allowed": [np.ones(len(x)) for x in X]}, "example 0, node 0: allowed is .*expected a l"),
        ({"forbidden": 5}, "forbidden is 5, expected a list of pairs"),
    ],
    ids=str,
)
def test_constraints_that_are_no_lists_are_refused(constraints, message):
    model = StructuredSVM("chain", max_iter=2, tol=1).fit(X, Y)
    refused(message, model.predict, X, **constraints)


@pytest.mark.parametrize("structure", ["multiclass", "ordinal", "multilabel", "dag"])
def test_allowed_labels_that_are_no_list_are_refused(structure):
    if structure == "dag":
        structure = get_structure("dag", hierarchy={"a": ["b", "c"]})
    rows, y = get_structure(structure).sample(0, n=4, size=3)
    model = StructuredSVM(structure, max_iter=2, tol=1).fit(rows, y)
    plain = model.predict(rows)
    assert np.array_equal(model.predict(rows, allowed=iter([None] * 4)), plain)
    for given in (5, "abcd", {"a": 1}):
        refused("allowed is .*expected a list with one entry", model.predict, rows, allowed=given)


HIERARCHY = nx.DiGraph([("top", "a"), ("top", "b"), ("a", "c"), ("a", "d")])
ESTIMATORS = {
    "svm": (lambda **given: StructuredSVM("multiclass", **given), Q),
    "hierarchy": (
        lambda **given: HierarchicalSVM(HIERARCHY, **given),
        np.array(["b", "c", "d"])[Q],
    ),
    "risk": (lambda **given: ConditionalRiskMinimizer(**given), Q),
}
#: Values that an argument may have, beside its default.
SOUND = {"None": ["n_jobs", "random_state", "kernel", "feature_map"], "-1": ["n_jobs", "verbose"],
         "[]": ["callbacks", "random_state"], "no": ["checkpoint"]}  # fmt: skip


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("value", [None, "no", -1, np.nan, [], object()])
def test_every_argument_is_checked(kind, value, tmp_path, monkeypatch):
    """An invalid setting is refused, and the message names the argument."""
    monkeypatch.chdir(tmp_path)  # "no" is the name of a checkpoint
    make, y = ESTIMATORS[kind]
    for name, default in make().get_params(deep=False).items():
        if name in SOUND.get(str(value), ()) or (value is None and default is None):
            continue
        known = {"oracle": "unknown lp backend", "structure_name": "unknown structure"}
        with pytest.raises((ValueError, TypeError), match=f"{name}|{known.get(name, name)}"):
            make().set_params(**{name: value}).fit(P, y)


@pytest.mark.parametrize("y", [["a", 1], ("a", 1.0), [True, "a"], ["a", b"b"], [b"b", 1]])
def test_labels_of_several_types(y):
    for model in (
        StructuredSVM("multiclass"),
        StructuredSVM("ordinal"),
        ConditionalRiskMinimizer(),
    ):
        refused("y: Unknown label type: found", model.fit, P[:2], y)
    refused("y, example 0: Unknown label type", StructuredSVM("chain").fit, [P[:2]], [y])
    sgd = StructuredSVM("multiclass", solver="sgd")
    refused("classes: found .*, expected all strings", sgd.partial_fit, P[:2], ["a", "b"], y)


@pytest.mark.parametrize("value", [2**31, 2**63, 10**30, np.iinfo(np.int64).max])
def test_integers_that_no_loop_counts_to(value):
    X, y = np.eye(4), [0, 1, 0, 1]
    for model in (
        StructuredSVM("multiclass", max_iter=value),
        ExtremeSVM(max_iter=value),
        HierarchicalSVM({"root": ["0", "1"]}, max_iter=value),
        LatentSVM("multiclass", max_iter=value),
    ):
        if value > 2**62:
            refused(f"max_iter is {value}, expected an integer", model.fit, X, y)
    for solver in (BCFW(max_steps=value), BCFW(certify_every=value), CuttingPlane(inactive=value)):
        model = StructuredSVM("multiclass", solver=solver)
        refused(f"is {value}, expected an integer from -2147483647 to", model.fit, X, y)
    refused("expected at most 65536", StructuredSVM("multiclass", n_jobs=value).fit, X, y)
    refused(f"n_rivals is {value}", ExtremeSVM(solver=OneVsSome(n_rivals=value)).fit, X, y)
    refused("expected an integer from", ExtremeSVM(solver=ExtremeDual(inner=value)).fit, X, y)
