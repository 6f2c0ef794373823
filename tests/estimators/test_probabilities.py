"""Numbers of a fitted model's distribution: against the scores of all its labels."""

import numpy as np
import pytest
from checks import refused
from python_structures import py_chain
from scipy.special import logsumexp
from sklearn.base import clone

import structsolve
from structsolve import StructuredSVM, get_structure
from structsolve.plugins.dependency.space import all_trees
from structsolve.structure import calls
from structsolve.structure.ask import ask_loss, make_layout
from structsolve.structure.pack import pack

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

HIERARCHY = {"a": ["b", "c"], "d": ["e"]}


def sequences(rng, n, K=3):
    X = [rng.normal(size=(length, 2)) for length in rng.integers(1, 4, n)]
    return X, [rng.integers(0, K, len(x)) for x in X]


def chain(rng):
    return "chain", *sequences(rng, 12)


def tagged(rng):
    X, Y = sequences(rng, 12)
    return get_structure("chain", forbidden=[(0, 1)]), X, [np.sort(y)[::-1].copy() for y in Y]


def tree(rng):
    X, Y = sequences(rng, 12)
    return "tree", [(x, np.arange(len(x)) - 1) for x in X], Y


def forest(rng):
    X, Y = sequences(rng, 12, 2)
    graphs = [(x, np.column_stack([np.arange(len(x) - 1), np.arange(1, len(x))])) for x in X]
    return "mrf", graphs, Y


def parses(projective, single_root):
    def make(rng):
        X, Y = [], []
        for words in rng.integers(1, 4, 10):
            X.append(rng.normal(size=(words + 1, words, 2)))
            every = list(all_trees(int(words), projective, single_root))
            Y.append(np.array(every[rng.integers(len(every))]))
        structure = get_structure("dependency", projective=projective, single_root=single_root)
        return structure, X, Y

    return make


def rows(name, **params):
    def make(rng):
        return get_structure(name, **params), rng.normal(size=(9, 2)), np.arange(9) % 3

    return make


def sets(rng):
    structure = get_structure("multilabel", edges=[[0, 1], [1, 2]])
    return structure, rng.normal(size=(9, 2)), rng.integers(0, 2, (9, 3))


def closed_sets(rng):
    Y = [["a"], ["a", "b"], ["a", "c"], ["d"], ["d", "e"], ["a", "b", "d", "e"], ["a", "d"]]
    return get_structure("dag", hierarchy=HIERARCHY), rng.normal(size=(7, 2)), Y


def python(rng):
    return py_chain(), *sequences(rng, 8)


MODELS = {
    "python": python,
    "chain": chain, "tags": tagged, "tree": tree, "forest": forest, "label sets": sets,
    "closed sets": closed_sets, "multiclass": rows("multiclass"), "ordinal": rows("ordinal"),
    "thresholds": rows("ordinal", thresholds=True),
    "parses": parses(False, True), "parses with roots": parses(False, False),
    "projective": parses(True, True), "projective with roots": parses(True, False),
}  # fmt: skip


def fitted(name, seed=0, **settings):
    structure, X, Y = MODELS[name](np.random.default_rng(seed))
    settings = {"surrogate": "crf", "alpha": 0.05, "max_iter": 20, "tol": 0.01, **settings}
    return StructuredSVM(structure, **settings).fit(X, Y), X, Y


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", MODELS)
def test_equals_the_sum_over_all_labels(name, seed):
    model, X, Y = fitted(name, seed)
    other = fitted(name, seed, alpha=0.5)[0]
    every = model.predict_kbest(X, 1000)
    theirs = other.predict_kbest(X, 1000)
    assert any(len(best) > 2 for best in every)
    totals = [logsumexp([score for _, score in best]) for best in every]
    np.testing.assert_allclose(model.log_partition(X), totals, 1e-9, 1e-9)
    logs = [np.array([score for _, score in best]) - t for best, t in zip(every, totals)]
    entropies = [-np.exp(log) @ log for log in logs]
    np.testing.assert_allclose(model.entropy(X), entropies, 1e-7, 1e-9)
    crossed = []
    for best, log, own in zip(every, logs, theirs):
        known = {repr(label): score for label, score in own}
        q = np.array([known[repr(label)] for label, _ in best])
        crossed.append(-np.exp(log) @ (q - logsumexp(q)))
    np.testing.assert_allclose(model.cross_entropy(X, other), crossed, 1e-7, 1e-9)
    apart = np.subtract(crossed, entropies)
    np.testing.assert_allclose(model.kl_divergence(X, other), apart, 1e-6, 1e-8)
    for k in range(3):  # the k-th best label of every example, or its best
        ranks = [min(k, len(best) - 1) for best in every]
        labels = [best[r][0] for best, r in zip(every, ranks)]
        expected = [log[r] for log, r in zip(logs, ranks)]
        np.testing.assert_allclose(model.log_proba(X, as_given(labels)), expected, 1e-7, 1e-9)
    probable = model.predict_kbest(X, 3, probabilities=True)
    for best, log in zip(probable, logs):
        np.testing.assert_allclose([p for _, p in best], np.exp(log[:3]), 1e-7, 1e-9)
    assert (model.log_proba(X, Y) <= 0).all()


def as_given(labels):
    """Return labels in the form of y: an array where they have one shape."""
    if isinstance(labels[0], (list, tuple, str)) or np.ndim(labels[0]) == 0:
        return labels
    return np.array(labels) if len({np.shape(label) for label in labels}) == 1 else labels


@pytest.mark.parametrize("name", MODELS)
def test_losses_equal_the_mean_over_all_labels(name):
    model, X, _ = fitted(name, 5)
    space = model.space_
    every = model.predict_kbest(X, 1000, probabilities=True)
    answers = as_given([best[-1][0] for best in every])
    given, chosen = model.expected_loss(X, answers), model.predict_least_loss(X)
    least = model.expected_loss(X, chosen)
    for i, best in enumerate(every):
        one = X[i : i + 1]
        examples = pack(space, one, as_given([best[0][0]]))
        loss = ask_loss(space, model._task_loss(space))(make_layout(space, examples))
        coded = [pack(space, one, as_given([y])).labels for y, _ in best]
        risks = [
            sum(p * calls.loss_value(loss, 0, truth, y) for truth, (_, p) in zip(coded, best))
            for y in coded
        ]
        np.testing.assert_allclose(given[i], risks[-1], 1e-7, 1e-9)
        np.testing.assert_allclose(least[i], min(risks), 1e-7, 1e-9)
    # The label that is right most often is the most probable one.
    again = model.predict_least_loss(X, loss="zero-one")
    right = 1 - np.exp(model.log_proba(X, again))
    np.testing.assert_allclose(model.expected_loss(X, again, "zero-one"), right, 1e-9, 1e-12)
    np.testing.assert_allclose([1 - best[0][1] for best in every], right, 1e-7, 1e-9)


def test_constraints():
    model, X, _ = fitted("chain")
    allowed = [[[0, 2]] * len(x) for x in X]
    shares = np.exp(model.log_partition(X, allowed=allowed) - model.log_partition(X))
    least = model.predict_least_loss(X, allowed=allowed)
    for x, share, label, best in zip(X, shares, least, model.predict_kbest(X, 1000)):
        scores = np.array([s for _, s in best])
        some = np.array([(y != 1).all() for y, _ in best])
        np.testing.assert_allclose(share, np.exp(logsumexp(scores[some]) - logsumexp(scores)))
        assert (label != 1).all() and len(label) == len(x)
    for best in model.predict_kbest(X, 1000, allowed=allowed, probabilities=True):
        np.testing.assert_allclose(sum(p for _, p in best), 1)


def test_labels_outside_of_the_space_have_no_probability():
    model, X, Y = fitted("tags")
    answers = [np.array([0, 1, 2][: len(y)]) for y in Y]
    crossing = np.array([len(y) > 1 for y in Y])
    assert crossing.any() and not crossing.all()
    assert (np.isneginf(model.log_proba(X, answers)) == crossing).all()
    answers = [y.copy() for y in Y]
    answers[3][0] = 9  # unseen in training
    assert np.flatnonzero(np.isneginf(model.log_proba(X, answers))).tolist() == [3]
    refused("example 3: y holds a label unseen in training", model.expected_loss, X, answers)
    with pytest.raises(ValueError, match="example 2"):
        model.log_proba(X, [*Y[:2], np.append(Y[2], 0), *Y[3:]])
    with pytest.raises(ValueError):
        model.log_proba(X, Y[:-1])
    with pytest.raises(ValueError, match="y holds marginals, expected labels"):
        model.log_proba(X, model.predict_proba(X))
    parser, X, Y = fitted("projective")
    wide = [np.ones((4, 3, 2))]  # two roots
    assert np.isneginf(parser.log_proba(wide, [np.array([0, 0, 1])])).all()
    with pytest.raises(ValueError, match="example 0"):
        parser.log_proba(wide, [np.array([2, 1, 0])])  # a cycle


def test_segments_that_are_too_long_have_no_probability():
    X = list(np.random.default_rng(0).normal(size=(4, 5, 2)))
    Y = [[(0, 2, "A"), (2, 3, "B"), (3, 5, "A")]] * 4
    model = StructuredSVM("semi-markov", surrogate="crf", alpha=0.1).fit(X, Y)
    assert np.isneginf(model.log_proba(X[:1], [[(0, 5, "A")]])).all()
    with pytest.raises(ValueError, match="overlap"):
        model.log_proba(X[:1], [[(0, 3, "A"), (2, 5, "A")]])


def test_void_labels_have_no_probability():
    rng = np.random.default_rng(0)
    structure = get_structure("mrf", void=-1)
    X = [(rng.normal(size=(2, 2)), np.array([[0, 1]])) for _ in range(6)]
    Y = [np.array([0, 1]), np.array([1, -1])] * 3
    model = StructuredSVM(structure, surrogate="crf", alpha=0.1).fit(X, Y)
    refused("example 1: y is void at node 1", model.log_proba, X, Y)
    assert (model.log_proba(X, [np.array([0, 1])] * 6) < 0).all()


METHODS = {
    "log_partition": [], "log_proba": ["Y"], "entropy": [], "cross_entropy": ["model"],
    "kl_divergence": ["model"], "expected_loss": ["Y"], "predict_least_loss": [],
}  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_a_margin_model_says_what_to_train(method):
    model, X, Y = fitted("chain", surrogate="margin", tol=0.1)
    assert not hasattr(model, method)
    with pytest.raises(AttributeError, match=f"{method} needs surrogate='crf'.*predict_marginals"):
        getattr(model, method)
    with pytest.raises(ValueError, match="probabilities=True needs surrogate='crf'"):
        model.predict_kbest(X, 2, probabilities=True)


def test_models_that_do_not_fit_together():
    model, X, Y = fitted("chain")
    with pytest.raises(TypeError, match="other is a str, expected a fitted StructuredSVM"):
        model.kl_divergence(X, "crf")
    with pytest.raises(AttributeError, match="needs surrogate='crf'"):
        model.kl_divergence(X, fitted("chain", surrogate="margin", tol=0.1)[0])
    with pytest.raises(ValueError, match="other: found a model of structure 'tree'"):
        model.cross_entropy(X, fitted("tree")[0])
    named = StructuredSVM("chain", surrogate="crf").fit(
        X, [np.array(["a", "b", "c"])[y] for y in Y]
    )
    refused("classes .*'a', 'b', 'c'.*expected", model.cross_entropy, X, named)
    parser, sentences, _ = fitted("parses")
    with pytest.raises(ValueError, match="projective=True.*expected one of .*projective=False"):
        parser.kl_divergence(sentences, fitted("projective")[0])
    X, leaf = np.eye(3), {"hierarchy": {"a": ["b"], "d": ["c"]}, "labels": "single-leaf"}
    for structure, other, Y in (
        (get_structure("dag", **leaf), {"a": ["c"], "d": ["b"]}, "bcb"),
        (get_structure("mrf", edges=np.array([[0, 1]])), np.array([[1, 2]]), [[0, 1, 1]]),
    ):
        rows = [X] if structure.name == "mrf" else X
        name = next(k for k in ("edges", "hierarchy") if hasattr(structure, k))
        both = [
            StructuredSVM(form, surrogate="crf", alpha=0.1).fit(rows, [*Y])
            for form in (structure, clone(structure).set_params(**{name: other}))
        ]
        with pytest.raises(ValueError, match=f"a model of structure .*{name}=.* one of .*{name}="):
            both[0].kl_divergence(rows, both[1])


def test_a_loaded_model_and_its_origin_do_not_diverge(tmp_path):
    X = [np.eye(2)[[0, 1]]] * 2
    for name, params in {
        "chain": {"forbidden": ((0, 1),)},
        "mrf": {"edges": np.array([[0, 1]]), "void": (7,)},
    }.items():
        model = StructuredSVM(get_structure(name, **params), surrogate="crf", alpha=0.1)
        model.fit(X, [[1, 0], [0, 0]]).save(tmp_path / "model")
        assert model.kl_divergence(X, structsolve.load(tmp_path / "model")).tolist() == [0, 0]


def test_iterators():
    model, X, Y = fitted("chain")
    same = model.kl_divergence(iter(X), model)
    assert (same == 0).all() and len(same) == len(X)
    assert len(model.predict_kbest(iter(X), 2, probabilities=True)) == len(X)
    with pytest.raises(Exception, match="not fitted"):
        StructuredSVM("chain", surrogate="crf").entropy(X)


def test_hidden_states_have_no_probability_of_labels():
    X, Y = sequences(np.random.default_rng(0), 6)
    model = structsolve.LatentSVM("chain", n_hidden=2, surrogate="crf", max_rounds=2).fit(X, Y)
    assert (model.entropy(X) >= 0).all()
    for call in (model.log_proba, model.expected_loss, lambda X, Y: model.predict_least_loss(X)):
        refused("log_partition", call, X, Y)
    allowed = [[[k] for k in y] for y in Y]
    logs = model.log_partition(X, allowed=allowed) - model.log_partition(X)
    assert (logs < 0).all()
