"""Alignments against enumeration on thousands of small cases, and what is refused."""

import functools

import numpy as np
import pytest
from checks import refused, reloaded
from enumeration import Listed
from random_cases import random_cases

from structsolve import StructuredSVM
from structsolve.batch import score_space
from structsolve.plugins.alignment import AlignmentStructure
from structsolve.structure import calls, projection_calls
from structsolve.structure.ask import ask_loss, make_layout
from structsolve.testing import check_structure

KINDS = ["edit", "many-to-one", "ctc"]
SCORES = [
    "normal",
    "ties",
    "equal",
    "wide",
    "huge",
    "forbidden",
    "forbidden parts",
    "all forbidden",
]


def defined(label, kind, m, symbols):
    """Return whether a label is an alignment, by the definition of its kind."""
    paired = [j for j in label if j]
    if kind == "edit":
        return all(a < b for a, b in zip(paired, paired[1:]))
    runs = [j for v, j in enumerate(label) if v == 0 or label[v - 1] != j]
    if kind == "many-to-one":
        return runs == [*range(1, m + 1)]
    if [j for j in runs if j] != [*range(1, m + 1)]:
        return False
    pairs = zip(runs, runs[1:])
    return not any(a and b and symbols[a - 1] == symbols[b - 1] for a, b in pairs)


class Case(Listed):
    """Two sequences."""

    def __init__(self, kind, n, m, symbols=None):
        self.kind, self.n, self.m = kind, n, m
        space = score_space(AlignmentStructure(kind))
        topology = {"symbols": [symbols]} if kind == "ctc" and symbols else {}
        self.bind(space, space.pack_sizes([(n, m)], **topology))
        self.states, self.size = (m + 1,) * n, self.layout.sizes(0)[0]
        self.labels = self.space.enumerate_labels(self.examples, 0)
        names = symbols or range(m)
        every = [y for y in np.ndindex(*self.states) if defined(y, kind, m, names)]
        assert sorted(every) == sorted(map(tuple, self.labels.tolist()))
        self.matrix = np.array([self.indicator(label) for label in self.labels])

    def views(self, theta):
        return self.space.layout.theta_views(theta, self.n * self.m, 0)

    def indicator(self, label):
        row = np.zeros(self.size)
        views = self.views(row)
        for v, j in enumerate(label):
            if j:
                views["node"].reshape(self.n, self.m)[v, j - 1] = 1
            elif "gap" in views:
                views["gap"][0] += 1
        if self.kind == "edit":
            views["gap"][1] = self.m - np.count_nonzero(label)
        return row

    def check_losses(self, rng):
        loss = ask_loss(self.space, "hamming")(self.layout)
        truth = self.labels[rng.integers(len(self.labels))]
        theta = rng.normal(size=self.size)
        raised = theta.copy()
        constant = calls.augment(loss, 0, truth, 0.5, raised)
        for label, row in zip(self.labels[:20], self.matrix):
            wrong = np.count_nonzero(truth != label)
            assert calls.loss_value(loss, 0, truth, label) == wrong
            assert (raised - theta) @ row + constant == pytest.approx(0.5 * wrong)


@functools.cache
def case_of(kind, n, m, symbols):
    return Case(kind, n, m, symbols and list(symbols))


@random_cases(1200, kind=KINDS, n=range(1, 5), m=range(1, 5), scores=SCORES)
def test_against_enumeration(seed, kind, n, m, scores):
    rng = np.random.default_rng(seed)
    symbols = rng.choice(["a", "b"], m).tolist() if kind == "ctc" and rng.integers(2) else None
    equal = sum(a == b for a, b in zip(symbols or "", (symbols or "")[1:]))
    if kind != "edit" and n < m + equal:
        message = f"example 0: {n} items cannot pass {m} partners in order, expected at least"
        return refused(message, Case, kind, n, m, symbols)
    case = case_of(kind, n, m, symbols and tuple(symbols))
    case.check(case.theta(scores, rng))
    case.check_parts(rng)
    return case.check_losses(rng)


def test_samples_have_the_probabilities():
    rng = np.random.default_rng(0)
    for case in (Case("edit", 3, 3), Case("many-to-one", 5, 3), Case("ctc", 5, 2, ["a", "a"])):
        case.check_samples(rng)


def test_scores_of_any_size():
    rng = np.random.default_rng(1)
    for scale in (50, 400, 1e5):
        for kind in KINDS:
            case = Case(kind, 4, 3)
            case.check_marginals(case.theta("normal", rng) * scale)


@pytest.mark.parametrize("scale", [1e14, 1e16, 1e18])
@pytest.mark.parametrize("kind", KINDS)
def test_marginals_of_huge_ties_are_probabilities(kind, scale):
    # Logs of shares are lost in totals of this size.
    for n, m in ((4, 3), (6, 4)):
        case = Case(kind, n, m)
        for theta in (np.full(case.size, scale), np.full(case.size, -scale)):
            marginals, _, _ = calls.project(case.projection, 0, theta)
            views = case.views(marginals)
            items = views["node"].reshape(n, m).sum(axis=1)
            assert marginals.min() >= 0 and items.max() <= 1 + 1e-12, (n, m, items)
            alone = n - views["gap"][0] if "gap" in views else n
            assert items.sum() == pytest.approx(alone, rel=1e-12), (n, m, items)
            drawn = projection_calls.sample(case.projection, 0, theta, np.full((3, n), 0.999))
            assert all(case.space.contains(label, case.examples, 0) for label in drawn)


def test_the_edit_distance():
    """With scores -1 for each edit, the best alignment of two words has their distance."""
    rng = np.random.default_rng(0)
    space = score_space("alignment")
    for _ in range(50):
        a, b = ("".join(rng.choice([*"abc"], rng.integers(1, 12))) for _ in range(2))
        layout = make_layout(space, space.pack_sizes([(len(a), len(b))]))
        theta = np.zeros(layout.sizes(0)[0])
        views = space.layout.theta_views(theta, len(a) * len(b), 0)
        views["gap"][...] = -1
        views["node"][...] = -np.not_equal.outer([*a], [*b]).reshape(-1, 1).astype(float)
        row = [*range(len(b) + 1)]
        for i, x in enumerate(a, 1):
            old, row[0] = row[0], i
            for j, y in enumerate(b, 1):
                old, row[j] = row[j], min(old + (x != y), row[j] + 1, row[j - 1] + 1)
        assert calls.argmax(space.make_oracle()(layout), 0, theta)[1] == -row[-1]


@pytest.mark.parametrize("kind", KINDS)
def test_conformance(kind):
    check_structure(AlignmentStructure(kind))


@pytest.mark.parametrize(
    ("message", "kind", "X", "Y"),
    [
        ("X, example 1: found sequences of 0 and 2 items", "edit", [(1, 1), (0, 2)], [[0], []]),
        ("X, example 0: found sequences of 2 and 0 items", "edit", [(2, 0)], [[-1, -1]]),
        ("example 0: found partners [1, 0], expected rising", "edit", [(2, 2)], [[1, 0]]),
        ("example 0: found partners [0, 0], expected rising", "edit", [(2, 2)], [[0, 0]]),
        (
            "example 0, item 1: found the partner 2, expected 0 to 1, or -1",
            "edit",
            [(2, 2)],
            [[0, 2]],
        ),
        ("example 0: found int64 of shape (1,), expected 2", "edit", [(2, 2)], [[0]]),
        ("expected every partner in order", "many-to-one", [(3, 2)], [[0, -1, 1]]),
        ("expected every partner in order", "many-to-one", [(3, 2)], [[0, 0, 0]]),
        (
            "every partner in order, for one item or more in a row, blank",
            "ctc",
            [(3, 1)],
            [[0, -1, 0]],
        ),
        ("example 0: 1 items cannot pass 2 partners", "ctc", [(1, 2)], [[0]]),
        ("y: expected a list of 1 alignments", "edit", [(2, 2)], []),
        ("kind is 'dtw', expected one of", "dtw", [(1, 1)], [[0]]),
    ],
)
def test_wrong_input_is_refused(message, kind, X, Y):
    import re

    tables = [np.ones((*size, 2)) for size in X]
    refused(re.escape(message), AlignmentStructure(kind).make_space, tables, Y)


def test_symbols():
    space = score_space(AlignmentStructure("ctc"))
    examples = space.pack_sizes([(3, 2)], symbols=["aa"])
    assert space.enumerate_labels(examples, 0).tolist() == [[1, 0, 2]]
    x = np.ones((3, 2, 1))
    for told, symbols in ((1, "a"), (None, None)):
        words = f"X, example 0: found {told} symbols, expected 2"
        refused(words, space.structure.make_space, [(x, symbols)], [[0, -1, 1]])
    message = "found symbols, which only kind='ctc' takes"
    refused(message, AlignmentStructure().make_space, [(x, "ab")], [[0, -1, 1]])
    refused("alignments have none", score_space, "alignment", 3)
    sizes = [(3, 2), (4, 3)]
    refused("symbols: found 1, expected a list with those of each of 2 examples",
            space.pack_sizes, sizes, symbols=["aa"])  # fmt: skip
    refused("symbols: found 0, expected", space.pack_sizes, sizes, symbols=[])
    refused("symbols, example 1: found 2 symbols, expected 3",
            space.pack_sizes, sizes, symbols=["aa", "ab"])  # fmt: skip
    refused("symbols, example 0: found 5 symbols, expected 2",
            space.pack_sizes, sizes, symbols=[5, "aab"])  # fmt: skip
    assert space.pack_sizes(sizes, symbols=[None, "aab"]).n == 2


def words(rng, n):
    """Words and copies with letters left out and put in, and their alignments."""
    X, Y = [], []
    for _ in range(n):
        word, copy, y = rng.choice([*"abcdefgh"], 6), [], []
        for letter in word:
            if rng.random() < 0.2:
                copy.append("x")
            y.append(-1 if rng.random() < 0.2 else len(copy))
            copy += [letter] if y[-1] >= 0 else []
        if not copy:
            continue
        equal = np.equal.outer(word, copy)
        X.append(np.stack([equal, ~equal], axis=2).astype(float))
        Y.append(y)
    return X, Y


@pytest.mark.parametrize("surrogate", ["margin", "crf"])
def test_models(surrogate, tmp_path):
    X, Y = words(np.random.default_rng(0), 40)
    model = StructuredSVM("alignment", surrogate=surrogate, alpha=1e-2, tol=0.05).fit(X, Y)
    assert model.score(X, Y) > 0.9
    again = reloaded(model, tmp_path)
    assert all(map(np.array_equal, again.predict(X), model.predict(X)))
    tables = model.predict_marginals(X) if surrogate == "crf" else []
    for x, table in zip(X, tables):
        assert table.shape == x.shape[:2] and (table.sum(axis=1) <= 1 + 1e-12).all()


def test_a_kind_may_be_a_string_of_numpy():
    X, Y = AlignmentStructure().sample(0)
    kinds = AlignmentStructure(np.str_("edit")), AlignmentStructure("edit")
    one, other = (StructuredSVM(kind, max_iter=3).fit(X, Y) for kind in kinds)
    assert np.array_equal(one.flat_weights(), other.flat_weights())


@pytest.mark.parametrize("kind", [np.uint8, np.uint64, np.int16])
def test_the_last_partner_is_one_in_labels_of_any_type(kind):
    space, examples = AlignmentStructure().make_space([np.zeros((2, 256, 1))], [[254, 255]])
    labels = space.pack([np.zeros((2, 256, 1))], [np.array([254, 255], kind)]).labels
    assert labels.tolist() == examples.labels.tolist() == [255, 256]


def test_ragged_features_are_refused():
    ragged = [[[1.0], [2.0]], [[3.0]]]
    model = StructuredSVM("alignment")
    refused(
        "X, example 1: found 0 dimensions", model.fit, [np.zeros((1, 1, 1)), ragged], [[0], [0]]
    )


def test_wrong_kinds_of_any_type():
    for kind in ("many", None, [], np.array(["ctc", "edit"])):
        structure = AlignmentStructure(kind=kind)
        refused("kind is .*expected one of", structure.sample, 0)
        refused("kind is .*expected one of", score_space, structure)
