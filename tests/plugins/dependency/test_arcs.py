"""Features of arcs: their forms, training on them, and what is refused."""

import numpy as np
import pytest
from checks import refused, reloaded
from dependency_cases import each_kind, in_order, operators

from structsolve import StructuredSVM
from structsolve.plugins.dependency import Arcs, DependencyStructure
from structsolve.structure import calls
from structsolve.structure.ask import ask_loss, ask_parts, make_layout


def sentences(n=30, seed=0, size=7, projective=False, single=True):
    """Return features of arcs; the first is the truth with noise."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        words = int(rng.integers(1, size + 1))
        table = rng.normal(size=(words, words + 1))
        oracle, *_ = operators(words, projective, single)
        y, *_ = calls.argmax(oracle, 0, in_order(table))
        x = rng.normal(size=(words + 1, words, 3))
        x[..., 0] = table.T + 0.1 * rng.normal(size=table.T.shape)
        X.append(x)
        Y.append(y)
    return X, Y


@each_kind
@pytest.mark.parametrize("surrogate", ["margin", "crf", "probloss"])
def test_training(projective, single, surrogate):
    X, Y = sentences(projective=projective, single=single)
    solver = {"margin": "bcfw", "crf": "sgd", "probloss": "cutting-plane"}[surrogate]
    model = StructuredSVM(
        DependencyStructure(projective, single),
        surrogate=surrogate,
        solver=solver,
        alpha=0.03,
        max_iter=200,
        tol=0.03,
        random_state=0,
    ).fit(X[:20], Y[:20])
    assert model.score(X[20:], Y[20:]) > 0.7
    assert model.coef_["arc"].shape == (3, 1)
    best = model.predict_kbest(X[20:], 2)
    assert [b[0][0].tolist() for b in best] == [y.tolist() for y in model.predict(X[20:])]


def test_forms_of_arcs():
    X, Y = sentences()
    rows = [x.transpose(1, 0, 2)[~np.eye(len(x), dtype=bool)[1:]] for x in X]
    sizes = [x.shape[1] for x in X]
    whole = Arcs(np.concatenate(rows), sizes)
    alone = [Arcs(row, n) for row, n in zip(rows, sizes)]
    shuffled = []
    rng = np.random.default_rng(0)
    for arcs in alone:
        order = rng.permutation(len(arcs.heads))
        shuffled.append(
            Arcs(
                arcs.features[order],
                arcs.n_words[0],
                heads=arcs.heads[order],
                modifiers=arcs.modifiers[order],
            )
        )
    models = [
        StructuredSVM("dependency", alpha=0.01, random_state=0).fit(x, Y)
        for x in (X, whole, alone, shuffled)
    ]
    for model in models:
        assert np.allclose(model.coef_["arc"], models[0].coef_["arc"])
        for x in (X, whole, alone, shuffled):
            assert model.score(x, Y) == models[0].score(X, Y)
    assert len(whole) == 30 and len(whole[3:7]) == 4
    assert np.array_equal(whole[4].features, rows[4]) and whole[4].n_words.tolist() == [sizes[4]]


def test_candidates_only():
    X, Y = sentences(12)
    rng = np.random.default_rng(1)
    for x, y in zip(X, Y):
        barred = rng.random(x.shape[:2]) < 0.4
        barred[y, np.arange(len(y))] = False
        x[barred] = np.nan
    model = StructuredSVM("dependency", alpha=0.01).fit(X, Y)
    for x, y, table in zip(X, model.predict(X), model.predict_marginals(X)):
        assert not np.isnan(x[y, np.arange(len(y)), 0]).any()
        assert not table[np.isnan(x[..., 0])].any()
        assert table.sum(axis=0) == pytest.approx(np.ones(len(y)))


def test_losses():
    X, Y = sentences(3, seed=4)
    space, examples = DependencyStructure().make_space(X, Y)
    guess = np.roll(Y[0], 1)
    wrong = (guess != Y[0]).sum()
    for name, expected in (("hamming", wrong), ("normalized-hamming", wrong / len(guess))):
        native = ask_loss(space, name)(make_layout(space, examples))
        native.check_truths(examples.labels)
        value = calls.loss_value(native, 0, examples.label(0), guess.astype(np.int32))
        assert value == pytest.approx(expected)
        strange = examples.labels.copy()
        strange[-1] = 99
        refused("example 2, word .: the true head is 99, expected 0", native.check_truths, strange)
        refused("found 1 heads, expected", native.check_truths, strange[:1])


def test_saved_models(tmp_path):

    X, Y = sentences(10, projective=True)
    model = StructuredSVM(DependencyStructure(True, False), alpha=0.01).fit(X, Y)
    again = reloaded(model, tmp_path)
    assert [y.tolist() for y in again.predict(X)] == [y.tolist() for y in model.predict(X)]
    assert again.structure.projective and not again.structure.single_root


@pytest.mark.parametrize(
    "heads, message",
    [
        ([0, 1, 4], "example 1, word 3: found head 4, expected 0 .the root. to 3"),
        ([0, -1, 1], "example 1, word 2: found head -1"),
        ([0, 2**32 + 1, 1], "example 1, word 2: found head 4294967297"),
        ([0, np.nan, 1], "y, example 1: Input y contains NaN"),
        ([2, 1, 0], "example 1, word 1: its heads lead back to it"),
        ([2, 2, 0], "example 1, word 2: its heads lead back to it .head 2."),
        ([0, 0, 1], "example 1, word 2: it is a second child of the root, expected one"),
        ([0, 1], "example 1: X has 3 rows and y has 2 labels"),
        ([0.5, 0, 1], "continuous"),
        (["a", "b", "c"], "y mixes strings and numbers"),
    ],
)
def test_heads_that_are_no_trees_are_refused(heads, message):
    X = [np.zeros((2, 1, 2)), np.zeros((4, 3, 2))]
    refused(message, StructuredSVM("dependency").fit, X, [[0], heads])


def test_crossing_arcs():
    X = [np.ones((5, 4, 1))]
    with pytest.raises(ValueError, match="example 0, word 2: the arc from its head 4 crosses"):
        StructuredSVM(DependencyStructure(projective=True)).fit(X, [[3, 4, 0, 3]])
    model = StructuredSVM(DependencyStructure(projective=True)).fit(X, [[3, 3, 0, 3]])
    assert 0 <= model.score(X, [[3, 4, 0, 3]]) <= 1


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: [np.zeros((3, 3, 2))], r"example 0: found shape \(3, 3, 2\)"),
        (lambda: [np.zeros((2, 1, 2)), np.zeros((2, 1, 3))], "example 1: found 3 features"),
        (lambda: [np.full((2, 1, 2), np.nan)], "NaN only"),
        (lambda: np.zeros((2, 1)), r"found shape \(1,\)"),
        (lambda: "abc", "X is a str"),
        (list, "X is empty"),
        (lambda: Arcs(np.zeros((3, 1)), 2), "features has 3 rows, expected 4"),
        (lambda: Arcs(np.zeros((1, 1)), 0), "n_words is 0"),
        (lambda: Arcs(np.zeros((2, 1)), 2, [0, 0], [1, 1]), "given twice"),
        (lambda: Arcs(np.zeros((2, 1)), 2, [0, 2], [1, 2]), "arc 1: found head 2 and modifier 2"),
        (lambda: Arcs(np.zeros((1, 1)), 2, [0], [1]), "word 2: found no arc to it"),
        (lambda: Arcs(np.zeros((2, 1)), 2, [0, 1.5], [1, 2]), "heads: found"),
        (lambda: Arcs(np.zeros((2, 1)), 2, [0, 1]), "expected both or neither"),
    ],
)
def test_arcs_that_do_not_fit_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        DependencyStructure().make_space(make(), None)


def test_arcs_and_words_must_fit():
    space, _ = DependencyStructure().make_space(Arcs(np.zeros((4, 1)), 2), None)
    examples = space.pack(Arcs(np.zeros((4, 1)), 2))
    examples.offsets = np.array([0, 3])
    examples.nodes = examples.nodes[:3]
    with pytest.raises(ValueError, match="example 0: 3 arcs, expected 2 for each of 2 words"):
        ask_parts(space)(make_layout(space, examples))
    for name, value in (
        ("_heads", np.array([0, 3], np.int32)),
        ("_heads", np.array([0, -1], np.int32)),
        ("_heads", np.array([0], np.int32)),
        ("starts", np.array([0, 1, 3])),
        ("starts", np.array([0, 3, 2])),
        ("starts", np.array([1, 1, 2])),
        ("starts", np.array([0, 2])),
    ):
        examples = space.pack(Arcs(np.ones((2, 1)), 2, heads=[0, 1], modifiers=[1, 2]))
        setattr(examples.topology["arcs"], name, value)
        with pytest.raises(ValueError, match="starts and heads do not fit words and arcs"):
            ask_parts(space)(make_layout(space, examples))


def test_true_heads_must_be_candidates():
    arcs = Arcs(np.ones((2, 1)), 2, heads=[0, 1], modifiers=[1, 2])
    with pytest.raises(ValueError, match="example 0, word 1: its true head 2 is no candidate"):
        StructuredSVM("dependency").fit(arcs, [[2, 0]])
    stuck = Arcs(np.ones((2, 1)), 2, heads=[2, 1], modifiers=[1, 2])
    model = StructuredSVM("dependency").fit(arcs, [[0, 1]])
    refused("example 0: no tree is possible", model.predict, stuck)


def test_features_in_any_sparse_format_and_features_that_are_none():
    from scipy import sparse

    table = sparse.coo_matrix(np.eye(2))
    arcs = Arcs(table, 2, heads=[1, 0], modifiers=[2, 1])
    assert StructuredSVM("dependency").fit(arcs, [[0, 1]]).predict(arcs)[0].tolist() == [0, 1]
    with pytest.raises(ValueError, match="found 0 features of an arc"):
        StructuredSVM("dependency").fit([np.zeros((3, 2, 0))], [[0, 1]])
    for X in (Arcs, lambda x, n: [x.reshape(3, 2, -1)]):
        with pytest.raises(ValueError, match="Complex data not supported"):
            X = X(np.ones((6, 1) if X is not Arcs else (4, 1)) * 1j, 2)
            StructuredSVM("dependency").fit(X, [[0, 1]])
    with pytest.raises(ValueError, match="no 64-bit integer"):
        StructuredSVM("dependency").fit([np.ones((3, 2, 1))], [[0, 2**70]])
