"""Forbidden neighbours in chains: tag schemes, all operators, training, prediction."""

import functools
import itertools

import numpy as np
import pytest
from chain_cases import Case
from checks import refused, reloaded
from enumeration import NONE

from structsolve import StructuredSVM
from structsolve.plugins.chain import ChainStructure
from structsolve.plugins.chain.spans import spans, tags_from_spans
from structsolve.plugins.chain.tag_schemes import RULES, forbidden_pairs
from structsolve.surrogates import CRF, MaxMin, SparseMAP
from structsolve.testing import check_structure

WRITTEN = {"BIO": "IOB2", "BILOU": "IOBES", "BIOES": "IOBES", "BMES": "IOBES"}


@pytest.mark.parametrize("scheme", RULES)
def test_schemes_allow_just_what_they_write(scheme):
    tags = ["O", *(f"{mark}-{kind}" for mark in RULES[scheme].marks for kind in "XY")]
    wrong = set(forbidden_pairs(tags, scheme))
    for length in (1, 2, 3):
        for labels in itertools.product(tags, repeat=length):
            kept = tags_from_spans(spans(labels), length, WRITTEN.get(scheme, scheme))
            allowed = not wrong & set(itertools.pairwise([None, *labels, None]))
            assert allowed == (list(labels) == kept), labels


def test_other_letters_are_the_same_marks():
    plain = forbidden_pairs(["O", "B-X", "I-X", "E-X", "S-X"], "BILOU")
    for letters in ("BILU", "BMES"):
        names = dict(zip(["B-X", "I-X", "E-X", "S-X"], (f"{mark}-X" for mark in letters)))
        other = forbidden_pairs(["O", *names.values()], "BILOU")
        assert other == [tuple(names.get(tag, tag) for tag in pair) for pair in plain]
    unknown = r"scheme is 'bio' .did you mean 'BIO'\?., expected one of \['BIO', "
    refused(unknown, forbidden_pairs, ["O"], "bio")
    refused("'E-X', which is no tag of scheme 'BIO'", forbidden_pairs, ["E-X"], "BIO")
    refused("label 3, which is no tag", forbidden_pairs, [3], "BIO")


class Constrained(Case):
    """A chain case with some forbidden pairs, first and last states."""

    def __init__(self, length, k, pairs, **variant):
        self.pairs = pairs
        super().__init__(length, k, **variant)
        path = [(None, *label, None) for label in self.labels.tolist()]
        wrong = [bool(set(itertools.pairwise(p)) & set(pairs)) for p in path]
        self.wrong = np.array(wrong)
        for label, never in zip(self.labels, self.wrong):
            assert self.space.contains(label, self.examples, 0) != never

    def bind(self, space, examples):
        structure = ChainStructure(space.structure.start_end, forbidden=self.pairs)
        super().bind(structure.space_from_state(*space.state()), examples)

    def scores(self, theta):
        return np.where(self.wrong, NONE, super().scores(theta))

    def check_marginals(self, theta):
        unseen, self.matrix = self.matrix, np.where(self.wrong[:, None], 0, self.matrix)
        super().check_marginals(theta)
        self.matrix = unseen


@functools.cache
def constrained(length, k, seed):
    rng = np.random.default_rng(seed)
    names = [None, *range(k)]
    every = [pair for pair in itertools.product(names, names) if pair != (None, None)]
    pairs = [pair for pair in every if rng.random() < 0.25] or every[:1]
    return Constrained(length, k, pairs, start_end=seed % 2 == 0, edges=seed % 3 == 0)


@pytest.mark.parametrize("seed", range(6))
def test_operators_against_enumeration(seed):
    rng = np.random.default_rng(seed)
    for length, k in [(1, 2), (1, 5), (2, 3), (3, 3), (4, 2), (5, 3), (7, 2)]:
        case = constrained(length, k, seed)
        for kind in ("normal", "ties", "equal", "wide", "forbidden"):
            case.check(case.theta(kind, rng))
        cost = np.zeros(case.size)
        case.views(cost)["node"][...] = rng.integers(0, 2, (length, k))
        case.check_counts(case.theta("normal", rng), cost, length)


@pytest.mark.parametrize(
    "forbidden",
    ["BIO", "BILOU", [(None, 1), (0, 2), (2, None)], [(None, 0), (1, None)], [("a", "a")],
     [(None, "I"), ("O", "I")], [(None, "a"), ("a", None)]],
)  # fmt: skip
def test_promises_are_kept(forbidden):
    check_structure(ChainStructure(forbidden=forbidden), n_cases=2)


TAGS = ["O", "B-X", "I-X", "B-Y", "I-Y"]


def tagged(n=60, seed=0):
    """Return chains that respect BIO, with features that do not show where spans begin."""
    rng = np.random.default_rng(seed)
    wrong, X, Y = set(forbidden_pairs(TAGS, "BIO")), [], []
    while len(Y) < n:
        labels = rng.choice(TAGS, rng.integers(1, 6)).tolist()
        if not wrong & set(itertools.pairwise([None, *labels])):
            Y.append(labels)
            codes = np.array([TAGS.index(label) for label in labels])
            X.append(3 * np.eye(5)[codes] + rng.normal(size=(len(labels), 5)))
    return X, Y


def keeps_to_it(Y):
    return all(tags_from_spans(spans(y), len(y), "IOB2") == list(y) for y in Y)


@pytest.mark.parametrize("surrogate", ["margin", "slack", CRF(), SparseMAP(), MaxMin()])
def test_training_knows_the_allowed_labels_alone(surrogate):
    X, Y = tagged()
    X_test = [40 * np.eye(5)[[2] * length] for length in (1, 2, 4)]  # it looks like I-X
    plain = StructuredSVM("chain", surrogate=surrogate, alpha=0.05, max_iter=60).fit(X, Y)
    bound = StructuredSVM(
        ChainStructure(forbidden="BIO"), surrogate=surrogate, alpha=0.05, max_iter=60
    ).fit(X, Y)
    assert not keeps_to_it(plain.predict(X_test))
    assert keeps_to_it(plain.predict(X_test, forbidden="BIO"))
    assert keeps_to_it(bound.predict(X_test))
    for answers in bound.predict_kbest(X_test, 4):
        assert keeps_to_it([label for label, _ in answers])
    # With fewer labels the surrogate is smaller: certified bounds do not cross.
    assert bound.history_[-1]["dual"] < plain.history_[-1]["primal"]


def test_the_crf_normalises_over_allowed_labels():
    X, Y = tagged(30)
    structure = ChainStructure(forbidden="BIO")
    model = StructuredSVM(structure, surrogate="crf", alpha=0.1).fit(X, Y)
    inside = np.isin(model.classes_, ["I-X", "I-Y"])
    for marginals in model.predict_marginals(X):
        np.testing.assert_allclose(marginals.sum(axis=1), 1)
        assert (marginals[0, inside] == 0).all()
    x = max(X, key=len)
    everything = model.predict_kbest([x], 5 ** len(x))[0]
    assert keeps_to_it([label for label, _ in everything])
    scores = np.array([score for _, score in everything])
    best = np.exp(scores[0] - np.logaddexp.reduce(scores))
    samples = [drawn for (drawn,) in model.sample([x], 200, random_state=0)]
    assert keeps_to_it(samples)
    share = np.mean([list(label) == list(everything[0][0]) for label in samples])
    assert abs(share - best) < 0.15


def test_linear_programs_obey_too(tmp_path):
    X, Y = tagged(30)
    model = StructuredSVM(ChainStructure(forbidden="BIO"), alpha=0.1).fit(X, Y)
    before = model.predict(X)
    model.set_params(oracle="lp")
    for one, other in zip(before, model.predict(X)):
        np.testing.assert_array_equal(one, other)
    model.set_params(oracle=None)
    again = reloaded(model, tmp_path)
    assert again.structure.forbidden == "BIO"
    pairs = forbidden_pairs(TAGS, "BIO")
    listed = StructuredSVM(ChainStructure(forbidden=pairs), alpha=0.1).fit(X, Y)
    listed = reloaded(listed, tmp_path)
    for one, other, third in zip(before, again.predict(X), listed.predict(X)):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, third)


def test_what_is_refused():
    X, Y = tagged(3)
    Y[1] = ["I-X"] * len(Y[1])
    model = StructuredSVM(ChainStructure(forbidden="BIO"))
    refused("example 1: found None before 'I-X' at node 0, which forbidden='BIO'", model.fit, X, Y)
    Y[1][0] = "B-Y"
    if len(Y[1]) > 1:
        refused("example 1: found 'B-Y' before 'I-X' at node 0", model.fit, X, Y)
    X, Y = tagged(30)
    plain = StructuredSVM("chain", max_iter=1, tol=9).fit(X, Y)
    for wrong, message in [
        ("bio", "scheme is 'bio' .did you mean"),
        ([("O", "I-Z")], "expected pairs"),
        ([(None, "I-Z")], r"expected \(None, label\)"),
        ([("O",)], "expected pairs"),
        (3, "forbidden is 3, expected a list of pairs"),
    ]:
        refused(message, StructuredSVM(ChainStructure(forbidden=wrong)).fit, X, Y)
        refused(message, plain.predict, X, None, wrong)
    flat = ChainStructure(transitions=False, forbidden="BIO")
    refused("need a chain with transitions=True", StructuredSVM(flat).fit, X, Y)
    # Labels missing in y cannot occur.
    some = StructuredSVM(ChainStructure(forbidden=[("O", "I-Z"), ("O", "I-X")]), max_iter=1, tol=9)
    some.fit(X, Y)
    # Nothing is left: the node of a chain of length one must be neither first nor last.
    never = [(None, tag) for tag in TAGS]
    refused("example 0: the constraints leave no label", some.predict, X, None, never)
    none = StructuredSVM(ChainStructure(forbidden=[("O", None)]), max_iter=1, tol=9)
    none.fit([[[0.0], [0.0]]], [["O", "B"]])
    assert none.predict([[[0.0]]])[0].tolist() == ["B"]
    refused("leave no label", none.predict, [[[0.0]]], None, [(None, "B")])
