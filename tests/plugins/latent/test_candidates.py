"""Whole labels of which one is true (AnyOf), for structures of every kind."""

import contextlib
import itertools

import numpy as np
import pytest
from checks import refused, reloaded, same

from structsolve import AnyOf, FunctionStructure, LatentSVM, StructuredSVM, get_structure
from structsolve.plugins.dag import DagStructure
from structsolve.plugins.ordinal import OrdinalStructure
from structsolve.solvers.problem import Problem
from structsolve.structure.pack import learn_space

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def subsets():
    """Label sets of at most two of three, by functions in Python."""
    labels = [set(), {0}, {1}, {2}, {0, 1}, {1, 2}]

    def features(x, y):
        return np.concatenate([np.where(k in y, x, 0.0) for k in range(3)])

    def oracle(w, x, truth):
        return max(
            labels, key=lambda y: w @ features(x, y) + len(y ^ (y if truth is None else truth))
        )

    return FunctionStructure(features=features, oracle=oracle, loss=lambda a, b: len(a ^ b))


KINDS = {
    "chain": "chain",
    "tree": "tree",
    "multiclass": "multiclass",
    "ordinal": OrdinalStructure(thresholds=True),
    "multilabel": "multilabel",
    "dag": DagStructure({"top": ["left", "right"], "left": ["low"]}),
    "dag of numbers": DagStructure({0: [1, 2], 1: [3], 2: [3]}),
    "permutation": "permutation",
    "dependency": "dependency",
}


def ambiguous(structure, seed, n=6, most=3):
    """Return a structure, examples of which some have candidates, and the candidates of each.

    The label of the first half is known, and has all classes: every completion has one space.
    """
    rng = np.random.default_rng(seed)
    structure = get_structure(structure)
    classes, known = (), None
    while not np.array_equal(classes, known):
        X, Y = structure.sample(int(rng.integers(10**6)), n=n, size=3)
        with contextlib.suppress(ValueError):  # half of the ordinal labels may have gaps
            space, examples = structure.make_space(X, Y)
            half, _ = structure.make_space(X[: n // 2], Y[: n // 2])
            classes, known = (getattr(s, "classes_", ()) for s in (space, half))
    candidates = []
    for i in range(n):
        labels = space.enumerate_labels(examples, i)
        own = examples.labels[examples.label_offsets[i] : examples.label_offsets[i + 1]]
        picked = labels[rng.permutation(len(labels))[: rng.integers(most) if i >= n // 2 else 0]]
        several = [own, *(label for label in picked if not np.array_equal(label, own))]
        candidates.append([space.unpack_one(label, examples, i) for label in several])
    given = [AnyOf(c) if len(c) > 1 or rng.random() < 0.3 else c[0] for c in candidates]
    return structure, X, [*given[:-1], AnyOf(candidates[-1])], candidates


def bounds_of(structure, X, Y, w, surrogate):
    """Return the surrogate of each example at labels Y."""
    space, examples = learn_space(structure, X, Y)
    problem = Problem(space, examples, surrogate=surrogate)
    return problem.bounds(problem.solver_weights(w))[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_objective_against_all_completions(kind, seed):
    structure, X, given, candidates = ambiguous(KINDS[kind], seed)
    model = LatentSVM(structure, loss="hamming", alpha=0.05, tol=1e-3, max_iter=300, n_init=3).fit(
        X, given
    )
    objectives = [record["objective"] for record in model.rounds_]
    assert (np.diff(objectives) <= 0).all()
    assert all(record["certified"] for record in model.rounds_)
    picked = [
        next(k for k, label in enumerate(labels) if np.array_equal(label, h))
        for labels, h in zip(candidates, model.hidden_)
    ]
    # The convex problem of the completed labels has this optimum.
    optima = {}
    for choice in itertools.product(*map(range, map(len, candidates))):
        labels = [c[k] for c, k in zip(candidates, choice)]
        plain = StructuredSVM(structure, loss="hamming", alpha=0.05, tol=1e-4, max_iter=500)
        optima[choice] = plain.fit(X, labels).history_[-1]
    own, best = optima[tuple(picked)], min(optima.values(), key=lambda last: last["primal"])
    assert own["dual"] - 1e-9 <= objectives[-1] <= own["primal"] * (1 + 2e-3) + 1e-9
    assert objectives[-1] >= best["dual"] - 1e-9
    # No other candidate of one example has a smaller surrogate at these weights.
    w = model.flat_weights()
    values = bounds_of(structure, X, [c[k] for c, k in zip(candidates, picked)], w, "margin")
    for i, labels in enumerate(candidates):
        for label in labels:
            other = [c[k] for c, k in zip(candidates, picked)]
            other[i] = label
            assert bounds_of(structure, X, other, w, "margin")[i] >= values[i] - 1e-7


@pytest.mark.parametrize("kind", KINDS)
def test_fits_are_the_same_on_threads_from_files_and_resumed(kind, tmp_path):
    structure, X, given, _ = ambiguous(KINDS[kind], 7)
    fit = {"alpha": 0.05, "tol": 0.01, "n_init": 2}
    one = LatentSVM(structure, **fit).fit(X, given)
    threads = LatentSVM(structure, n_jobs=2, **fit).fit(X, given)
    same(one.flat_weights(), threads.flat_weights())
    same(
        [np.asarray(h).tolist() for h in one.hidden_],
        [np.asarray(h).tolist() for h in threads.hidden_],
    )
    again = reloaded(one, tmp_path)
    same(
        [np.asarray(y).tolist() for y in one.predict(X)],
        [np.asarray(y).tolist() for y in again.predict(X)],
    )

    class Killed(Exception):
        pass

    def killer(record):
        if record["pass"] == 3:
            raise Killed

    path = tmp_path / "fit.checkpoint"
    cut = LatentSVM(structure, checkpoint=path, callbacks=[lambda *_: killer(_[-1])], **fit)
    with contextlib.suppress(Killed):
        cut.fit(X, given)
    resumed = LatentSVM(structure, checkpoint=path, **fit).fit(X, given)
    np.testing.assert_allclose(resumed.flat_weights(), one.flat_weights(), atol=1e-8)


@pytest.mark.parametrize("surrogate", ["slack", "crf"])
def test_other_surrogates(surrogate):
    structure, X, given, candidates = ambiguous("chain", 3)
    model = LatentSVM(structure, surrogate=surrogate, alpha=0.05, init="random", n_init=2)
    model.fit(X, given)
    assert (np.diff([record["objective"] for record in model.rounds_]) <= 0).all()
    for labels, h in zip(candidates, model.hidden_):
        assert any(np.array_equal(label, h) for label in labels)


def test_functions_in_python():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=3) for _ in range(12)]
    Y = [{int(x.argmax())} for x in X]
    given = [AnyOf([y, {2}]) if i % 3 == 0 else y for i, y in enumerate(Y)]
    model = LatentSVM(subsets(), alpha=0.01, tol=0.01).fit(X, given)
    assert sum(map(set.__eq__, model.hidden_, Y)) >= 10
    assert all(h in ([y] if y is g else g.labels) for h, y, g in zip(model.hidden_, Y, given))


def test_whole_labels_are_trained_as_by_the_plain_estimator():
    X, Y = get_structure("multilabel").sample(0, n=8, size=3)
    plain = StructuredSVM("multilabel", alpha=0.05, tol=1e-4, max_iter=300).fit(X, Y)
    model = LatentSVM("multilabel", alpha=0.05, tol=1e-4, max_iter=300).fit(X, Y)
    np.testing.assert_allclose(model.flat_weights(), plain.flat_weights(), atol=1e-3)
    assert model.score(X, Y) == plain.score(X, Y)
    assert len(model.rounds_) == 1 and np.array_equal(model.hidden_, Y)


def test_weights_and_validation():
    structure, X, given, candidates = ambiguous("permutation", 1)
    weights = np.arange(1.0, len(X) + 1)
    truth = [labels[0] for labels in candidates]
    model = LatentSVM(structure, loss="hamming", alpha=0.05, tol=0.01)
    model.fit(X, given, sample_weight=weights, validation=(X, truth))
    assert all("validation_score" in record for record in model.rounds_)
    own = bounds_of(structure, X, model.hidden_, model.flat_weights(), "margin")
    rows = model.space_.layout.view(model.flat_weights(), "node")
    norm = np.square(rows @ np.linalg.inv(model.space_.node_mix)).sum()
    objective = 0.025 * norm + weights @ own / weights.sum()
    assert model.rounds_[-1]["objective"] == pytest.approx(objective, rel=1e-6)


def test_bad_candidates():
    X, Y = np.eye(3), [[1, 0], [0, 1]]
    fit = LatentSVM("multilabel").fit
    refused(r"y, example 2: AnyOf\(\[\]\), expected at least one label", fit, X, [*Y, AnyOf([])])
    refused(r"example 2 \(candidate 1\)", fit, X, [*Y, AnyOf([[1, 0], [1, 2]])])
    refused("n_hidden is 2", LatentSVM("chain", n_hidden=2).fit, [X], [AnyOf([[0, 1, 0]])])
    chain = LatentSVM("chain")
    refused(r"example 0 \(candidate 1\)", chain.fit, [X], [AnyOf([[0, 1, 0], [0, 1]])])
    refused("hidden: y has whole labels", chain.fit, [X], [AnyOf([[0, 1, 0]])], hidden=[[0, 1, 0]])
    refused("AnyOf", StructuredSVM("multilabel").fit, X, [*Y, AnyOf([[1, 0]])])
