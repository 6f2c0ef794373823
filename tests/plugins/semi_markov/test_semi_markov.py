"""Segmentations against enumeration on thousands of small cases, and their labels and files."""

import functools

import numpy as np
import pytest
from checks import refused, reloaded
from enumeration import NONE, Listed
from random_cases import random_cases
from shell import shell

from structsolve import StructuredSVM, WeightedLabels
from structsolve.batch import score_space
from structsolve.lp import ask_oracle
from structsolve.plugins.chain.metrics import span_f1
from structsolve.plugins.chain.spans import spans, tags_from_spans
from structsolve.plugins.semi_markov import SemiMarkovStructure
from structsolve.structure import calls, projection_calls
from structsolve.structure.ask import ask_loss, make_layout
from structsolve.testing import check_structure

KINDS = ["normal", "ties", "equal", "wide", "huge", "forbidden", "forbidden pairs", "all forbidden"]
NUMBERS = {"n": range(1, 6), "k": range(1, 4), "most": [1, 2, 3, 7]}


def cut(label, k):
    """Return the segments (start, end, class) of a label, by their definition."""
    starts = [v for v, state in enumerate(label) if not k <= state < 2 * k]
    return [(a, b, int(label[a])) for a, b in zip(starts, [*starts[1:], len(label)])]


class Case(Listed):
    """One sequence; class 0 is outside of spans where `outside` is 0."""

    def __init__(self, n, k, most, outside=None):
        self.n, self.k, self.most = n, k, most
        self.outside = -1 if outside is None else outside
        structure = SemiMarkovStructure(most, "O" if outside is None else outside)
        space = score_space(structure, k)
        self.bind(space, space.pack_sizes([n]))
        self.states, self.size = (2 * k,) * n, self.space.layout.theta_size(n, 0)
        self.labels = self.space.enumerate_labels(self.examples, 0)
        self.matrix = np.array([self.indicator(label) for label in self.labels])

    def views(self, theta):
        return self.space.layout.theta_views(theta, self.n, 0)

    def indicator(self, label):
        row = np.zeros(self.size)
        views, segments = self.views(row), cut(label, self.k)
        views["start"][segments[0][2]] = views["end"][segments[-1][2]] = 1
        nodes = views["node"]
        for a, b, c in segments:
            views["length"][b - a - 1, c] += 1
            nodes[a:b, 0, c] = 1
            nodes[a, 1, c] = nodes[b - 1, 2, c] = 1
        for (*_, c), (*_, d) in zip(segments, segments[1:]):
            views["transition"][c, d] += 1
        return row

    def check_augmented(self, theta, truth):
        """Check the label of largest score and span loss, with losses by their definition."""
        loss = ask_loss(self.space, "span")(self.layout)
        power = self.space.make_power("augmented")(self.layout)
        assert power.knows(loss) and not loss.decomposes
        true = self.spans(truth)
        losses = np.array([len(true ^ other) for other in self.all_spans])
        for label, expected in zip(self.labels[:20], losses):
            assert calls.loss_value(loss, 0, truth, label) == expected
        total = self.scores(theta) + losses
        label, value, own = calls.argmax_augmented(power, 0, theta, truth)
        close = self.close(theta)
        np.testing.assert_allclose([value, total[self.rows(label)]], total.max(), **close)
        assert own == losses[self.rows(label)]

    def spans(self, label):
        return {s for s in cut(label, self.k) if s[2] != self.outside}

    @functools.cached_property
    def all_spans(self):
        return [self.spans(label) for label in self.labels]


case_of = functools.cache(Case)


@random_cases(1500, **NUMBERS, kind=KINDS)
def test_against_enumeration(seed, n, k, most, kind):
    rng = np.random.default_rng(seed)
    case = case_of(n, k, most, rng.choice([None, 0]))
    theta = case.theta(kind, rng)
    case.check(theta)
    case.check_parts(rng)
    case.check_augmented(theta, case.labels[rng.integers(len(case.labels))])


def test_ties_go_to_the_smallest_class_then_the_shortest_segment_from_the_end():
    rng = np.random.default_rng(0)
    for _ in range(300):
        case = Case(int(rng.integers(1, 6)), 2, int(rng.integers(1, 5)))
        theta = case.theta(rng.choice(["ties", "equal"]), rng)
        scores = case.scores(theta)
        best = [cut(y, 2)[::-1] for y in case.labels[scores == scores.max()]]
        first = min(best, key=lambda segments: [(c, b - a) for a, b, c in segments])
        assert cut(calls.argmax(case.oracle, 0, theta)[0], 2)[::-1] == first


def test_samples_have_the_probabilities():
    rng = np.random.default_rng(0)
    for outside in (None, 0):
        case = Case(4, 2, 3, outside)
        case.check_samples(rng)
        barred = case.theta("normal", rng)
        case.views(barred)["length"][1:] = NONE
        drawn = projection_calls.sample(case.projection, 0, barred, rng.random((50, case.n)))
        assert (drawn < 2).all()


def test_scores_of_any_size():
    rng = np.random.default_rng(1)
    for scale in (50, 120, 400, 800, 1e5):
        for _ in range(20):
            case = Case(int(rng.integers(1, 6)), 3, 3, rng.choice([None, 0]))
            case.check_marginals(case.theta("normal", rng) * scale)


@pytest.mark.parametrize("scale", [1e12, 1e14, 1e16, 1e18])
def test_marginals_of_huge_scores_are_probabilities(scale):
    # Logs of shares are lost in totals of this size.
    rng = np.random.default_rng(2)
    for kind in ("equal", "ties", "normal"):
        case = Case(6, 3, 3, None)
        theta = np.ones(case.size) if kind == "equal" else case.theta(kind, rng)
        marginals, _, _ = calls.project(case.projection, 0, theta * scale)
        views = case.views(marginals)
        tokens = views["node"][:, 0].sum(axis=-1)
        np.testing.assert_allclose(tokens, 1, rtol=1e-12, err_msg=kind)
        for name in ("start", "end"):
            np.testing.assert_allclose(views[name].sum(), 1, rtol=1e-12, err_msg=kind)
        pairs, segments = views["transition"].sum(), views["length"].sum()
        assert pairs + 1 == pytest.approx(segments, rel=1e-12), kind
        assert marginals.min() >= 0, kind


def test_long_sequences_agree_with_the_linear_program():
    rng = np.random.default_rng(0)
    structure = SemiMarkovStructure(4, outside=0)
    space = score_space(structure, 3)
    layout = make_layout(space, space.pack_sizes([12, 9]))
    program, oracle = ask_oracle(space, "lp")(layout), space.make_oracle()(layout)
    for i in (0, 1):
        theta = rng.normal(size=layout.sizes(i)[0])
        value = calls.argmax(oracle, i, theta)[1]
        assert calls.argmax(program, i, theta)[1] == pytest.approx(value)


def test_segments_of_one_token_are_a_chain():
    """With max_length 1 and no outside, all is as for chains."""
    rng = np.random.default_rng(0)
    chain, one = score_space("chain", 3), score_space(SemiMarkovStructure(1), 3)
    for n in (1, 2, 9):
        layouts = [make_layout(space, space.pack_sizes([n])) for space in (chain, one)]
        thetas = [np.zeros(layout.sizes(0)[0]) for layout in layouts]
        views = [s.layout.theta_views(t, n, 0) for s, t in zip((chain, one), thetas)]
        for name, view in views[0].items():
            view[...] = rng.normal(size=view.shape)
            (views[1]["node"][:, 0] if name == "node" else views[1][name])[...] = view
        both = zip((chain, one), layouts, thetas)
        sums = [calls.project(s.make_projection("entropy")(x), 0, t)[:2] for s, x, t in both]
        assert sums[0][1] == pytest.approx(sums[1][1])
        marginals = [s.layout.theta_views(m, n, 0) for s, (m, _) in zip((chain, one), sums)]
        for name, view in marginals[0].items():
            other = marginals[1]["node"][:, 0] if name == "node" else marginals[1][name]
            np.testing.assert_allclose(view, other, atol=1e-12)


@pytest.mark.parametrize("params", [{}, {"max_length": 2}])
def test_conformance(params):
    check_structure(SemiMarkovStructure(**params))


# -- labels ---------------------------------------------------------------------------------------

X = [np.eye(3), np.ones((2, 3))]
SPANS = [[(0, 2, "A")], [(1, 2, "B")]]


def test_spans_and_tags_are_one_label():
    tags = [tags_from_spans(y, len(x)) for x, y in zip(X, SPANS)]
    by_spans, one = SemiMarkovStructure().make_space(X, SPANS)
    by_tags, other = SemiMarkovStructure().make_space(X, tags)
    assert one.labels.tolist() == other.labels.tolist() == [0, 3, 2, 2, 1]
    assert by_spans.classes_.tolist() == by_tags.classes_.tolist() == ["A", "B", "O"]
    assert by_spans.unpack(one.labels, one) == SPANS
    assert [y.tolist() for y in by_tags.unpack(one.labels, one)] == tags
    assert by_tags.unpack_one(one.labels[3:], one, 1).tolist() == tags[1]


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU", "BMES"])
def test_tags_come_back_in_their_scheme(scheme):
    rng = np.random.default_rng(0)
    Y = []
    for _ in range(20):
        Y.append(tags_from_spans(random_spans(rng), 6, scheme))
    space, examples = SemiMarkovStructure().make_space([np.ones((6, 1))] * 20, Y)
    assert [y.tolist() for y in space.unpack(examples.labels, examples)] == Y
    assert space.longest == max(b - a for y in Y for a, b, _ in spans(y))


class Table(list):
    """Stands for a data frame: its items are names, its array has two axes."""

    def __getitem__(self, key):
        raise KeyError(key)

    def __array__(self, dtype=None, copy=None):
        return np.zeros((3, 3), dtype)


@pytest.mark.parametrize(
    ("message", "Y"),
    [
        ("example 1: found (0, 3, 'A') for 2 tokens", [[], [(0, 3, "A")]]),
        ("example 0: found (1, 1, 'A') for 3 tokens", [[(1, 1, "A")], []]),
        ("example 0: found (-1, 1, 'A')", [[(-1, 1, "A")], []]),
        ("example 0: found (0, 'A'), expected spans", [[(0, "A")], []]),
        ("example 0: found (0.5, 1, 'A'), expected spans", [[(0.5, 1, "A")], []]),
        ("example 1: found (0, 1, None), expected a string", [[(0, 3, "A")], [(0, 1, None)]]),
        ("the spans (0, 2, 'A') and (1, 3, 'B') overlap", [[(1, 3, "B"), (0, 2, "A")], []]),
        ("the spans (0, 3, 'A') and (1, 2, 'B') overlap", [[(0, 3, "A"), (1, 2, "B")], []]),
        ("example 0: a span has the class 'O', which is", [[(0, 1, "O")], []]),
        ("example 1: no span covers token 1, and outside='O'", [[(0, 3, 1)], [(0, 1, 2)]]),
        ("X has 2 examples and y has 1", [[(0, 3, "A")]]),
        ("classes of spans must be all strings", [[(0, 3, "A")], [(0, 2, 1)]]),
        ("example 1: y is 5, expected a list of spans", [[(0, 3, "A")], 5]),
        ("example 0: y is WeightedLabels", [WeightedLabels(["O"] * 3, np.ones(3)), []]),
        ("y, example 0: found 2 dimensions", [Table(["start", "end", "class"]), ["O", "O"]]),
        ("y is a str, expected a list", "AB"),
    ],
)
def test_wrong_spans_are_refused(message, Y):
    import re

    refused(re.escape(message), SemiMarkovStructure().make_space, X, Y)


def test_scores_of_spans_against_tags_are_refused():
    tags, both = [["O"], ["B-A", "O"]], [[], [(0, 1, "A")]]
    refused(r"y_true\[0\]: expected spans .*, found 'O'", span_f1, tags, both)
    refused(r"y_pred\[0\]: expected spans .*, found 'O'", span_f1, both, tags)


def test_lengths_beyond_the_longest_are_refused():
    structure = SemiMarkovStructure(2)
    message = r"example 0: the segment \(0, 3, 'A'\) has 3 tokens, and max_length is 2; give"
    refused(message, structure.make_space, X, [[(0, 3, "A")], []])
    space, _ = structure.make_space(X, [[(0, 2, "A")], []])
    refused(message, space.pack, X, [[(0, 3, "A")], []])
    # Scores take any segments: they are wrong.
    model = StructuredSVM(structure, loss="span", max_iter=3, tol=9).fit(X, SPANS)
    assert model.score(X, [[(0, 3, "A")], [(0, 2, "C")]]) < 1
    for wrong in (0, -1, 1.5, True):
        make = SemiMarkovStructure(wrong).make_space
        refused("max_length is .*, expected an integer", make, X, SPANS)
    refused("max_length is None, which means", score_space, "semi-markov", 3)
    refused("no scores of edges", score_space, SemiMarkovStructure(2), 3, edge=True)


def test_unseen_classes_and_lengths_count_as_wrong():
    space, _ = SemiMarkovStructure(2).make_space(X, SPANS)
    Y = [[(0, 3, "C")], [(0, 1, "C"), (1, 2, "B")]]
    examples = space.pack(X, Y, unseen="extra")
    assert examples.labels.tolist() == [6, 3, 3, 6, 1]
    layout = make_layout(space, examples)
    guess = [np.array([0, 3, 2], np.int32), np.array([2, 1], np.int32)]
    for name, expected in (("hamming", [3, 1]), ("span", [2, 1]), ("zero-one", [1, 1])):
        loss = ask_loss(space, name)(layout)
        loss.check_truths(examples.labels)
        truths = np.split(examples.labels, [3])
        values = [calls.loss_value(loss, i, t, p) for i, (t, p) in enumerate(zip(truths, guess))]
        assert values == expected, name


def test_codes_that_are_no_segmentation_are_refused():
    space = score_space(SemiMarkovStructure(2, outside=0), 2)
    examples = space.pack_sizes([3])
    for good in ([1, 3, 0], [0, 0, 1], [1, 1, 3]):
        space.check_labels(np.array(good, np.int32), examples)
        assert space.contains(np.array(good, np.int32), examples, 0)
    for bad, v in (([3, 1, 1], 0), ([1, 3, 3], 2), ([0, 2, 1], 1), ([0, 3, 1], 1)):
        message = f"example 0, token {v}: found the state {bad[v]}, expected a segment to begin"
        refused(message, space.check_labels, np.array(bad, np.int32), examples)


# -- models ---------------------------------------------------------------------------------------


def data(rng, n=30):
    """Spans of 2 or 3 tokens, which only their first and last tokens show."""
    X, Y = [], []
    for _ in range(n):
        x, y, v = rng.normal(size=(12, 3)) * 0.1, [], 0
        while v < 8:
            v += int(rng.integers(0, 3))
            size = int(rng.integers(2, 4))
            y.append((v, v + size, "AB"[size - 2]))
            x[v, 0] += 1
            x[v + size - 1, 1] += 1
            v += size
        Y.append([s for s in y if s[1] <= 12])
        X.append(x)
    return X, Y


def test_the_f1_of_spans_is_that_of_their_tags():
    rng = np.random.default_rng(0)
    sides = [[random_spans(rng) for _ in range(20)] for _ in range(2)]
    tags = [[tags_from_spans(y, 6) for y in side] for side in sides]
    assert span_f1(*sides) == span_f1(*tags)


def random_spans(rng):
    cuts = [0, *(np.flatnonzero(rng.random(5) < 0.5) + 1).tolist(), 6]
    pieces = zip(cuts, cuts[1:], rng.choice(["A", "B", "O"], len(cuts)).tolist())
    return [span for span in pieces if span[2] != "O"]


@pytest.mark.parametrize("loss", ["hamming", "span"])
def test_models(loss, tmp_path):
    X, Y = data(np.random.default_rng(0))
    model = StructuredSVM("semi-markov", loss=loss, alpha=1e-3, max_iter=50, tol=0.02).fit(X, Y)
    assert span_f1(Y, model.predict(X))["f1"] > 0.95
    again = reloaded(model, tmp_path)
    assert again.predict(X) == model.predict(X)
    assert model.predict_kbest(X, 2)[0][0][0] == model.predict(X)[0]


def test_probabilities_of_tokens():
    X, Y = data(np.random.default_rng(0), 10)
    crf = StructuredSVM("semi-markov", surrogate="crf", solver="sgd", max_iter=3, tol=9).fit(X, Y)
    rows = crf.predict_marginals(X)
    assert rows[0].shape == (12, 3)
    np.testing.assert_allclose(np.concatenate(rows).sum(axis=1), 1)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 8, 11])  # rows of scores are padded
def test_probabilities_of_tokens_of_many_classes(k):
    rng = np.random.default_rng(k)
    names = [f"c{c:02}" for c in range(k)]
    X, Y = rng.normal(size=(k, 2, 3)), [[(0, 2, name)] for name in names]
    crf = StructuredSVM(
        SemiMarkovStructure(outside="c00"), surrogate="crf", solver="sgd", max_iter=3, tol=9
    ).fit(X, [[], *Y[1:]])
    assert crf.classes_.tolist() == names
    every = [[(0, 2, a)] for a in names] + [[(0, 1, a), (1, 2, b)] for a in names for b in names]
    every = [[span for span in y if span[2] != "c00"] for y in every if y != [(0, 2, "c00")]]
    expected = np.zeros((2, k))
    for y in every:
        states = [0, 0]
        for start, end, name in y:
            states[start:end] = [names.index(name)] * (end - start)
        expected[[0, 1], states] += np.exp(crf.log_proba(X[:1], [y]))
    np.testing.assert_allclose(crf.predict_marginals(X[:1])[0], expected, atol=1e-12)


def test_the_shell_reads_and_writes_tags(tmp_path, capsys):
    path, guessed = tmp_path / "train.conll", tmp_path / "out.conll"
    lines = ["the DT B-NP", "dog NN I-NP", "ran VB O", "", "a DT B-NP", "cat NN I-NP", "sat VB O"]
    path.write_text("\n".join(lines) + "\n")
    model = tmp_path / "m.structsolve"
    shell(capsys, "fit", path, "--structure", "semi-markov", "--loss", "span", "--model", model)
    shell(capsys, "predict", model, path, "--output", guessed)
    assert guessed.read_text().split() == [
        "B-NP", "I-NP", "O", "B-NP", "I-NP", "O",
    ]  # fmt: skip
    out = shell(capsys, "score", model, path)
    assert "NP" in str(out)
    assert "NP:" in str(shell(capsys, "predict", model, path, "--marginals"))
