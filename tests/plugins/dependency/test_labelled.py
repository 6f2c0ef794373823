"""Labelled trees: oracles, k best, sums, losses and files against enumeration."""

import itertools

import numpy as np
import pytest
from checks import LOSS, refused, reloaded
from dependency_cases import KINDS, each_kind
from shell import fails, works
from tree_cases import Trees, check_memory_of, drawn

from structsolve import StructuredSVM, load
from structsolve.batch import score_space
from structsolve.lp.ask import ask_oracle
from structsolve.plugins.dependency import (
    Arcs,
    ConlluSentence,
    DependencyStructure,
    attachment_report,
    read_conllu,
    write_conllu,
)
from structsolve.plugins.dependency.polytope import TreePolytopes
from structsolve.structure import calls, projection_calls
from structsolve.structure.ask import ask_loss, ask_projection, make_layout
from structsolve.testing import check_structure


class Sentence(Trees):
    """A sentence with some candidate arcs."""

    def __init__(self, n, K, projective, single, barred=None):
        space = score_space(DependencyStructure(projective, single, True), K)
        topology = {}
        if barred is not None:
            pairs = np.argwhere(~barred)
            topology = {"modifiers": pairs[:, 0] + 1, "heads": pairs[:, 1]}
        super().__init__(space, space.pack_sizes([n], **topology))

    def read(self):
        """Return which doubles of theta are scores, not padding."""
        theta = np.zeros(self.size)
        rows = int(self.examples.offsets[-1])
        self.space.layout.theta_views(theta, rows, 0)["arc"][...] = 1
        return theta > 0

    def scores(self, rng, kind):
        return np.where(self.read(), drawn(rng, kind, self.size, barred=0.4), 0)


def sentences(projective, single, cases):
    """Draw sentences: few and many relations, complete and pruned."""
    rng = np.random.default_rng(5)
    sizes = [(1, 1), (1, 9), (2, 1), (2, 3), (2, 5), (3, 2), (3, 3), (4, 2)]
    for case in range(cases):
        n, K = sizes[case % len(sizes)]
        barred = np.eye(n, n + 1, 1, dtype=bool)
        if case % 3 == 2:
            barred |= (rng.random((n, n + 1)) < 0.3) & (np.arange(n + 1) != np.arange(n)[:, None])
        yield Sentence(n, K, projective, single, barred if case % 3 else None)


SCORES = ["random", "tied", "zero", "wide", "barred"]


@each_kind
def test_the_best_labels_are_those_of_the_enumeration(projective, single):
    rng = np.random.default_rng(1)
    for sentence in sentences(projective, single, 16):
        for kind in SCORES * 4:
            sentence.check_best(sentence.scores(rng, kind), int(rng.choice([1, 2, 7, 40])))


@each_kind
def test_sums_are_those_of_the_enumeration(projective, single):
    rng = np.random.default_rng(2)
    for sentence in sentences(projective, single, 16):
        projection = sentence.projection
        assert projection.gibbs and projection.has_samples and projection.has_derivative
        for kind in SCORES * 3:
            sentence.check_sums(sentence.scores(rng, kind), sentence.scores(rng, "random"))


@each_kind
def test_samples_follow_the_distribution(projective, single):
    rng = np.random.default_rng(4)
    sentence = Sentence(3, 2, projective, single)
    theta = sentence.scores(rng, "random")
    theta[1] = -np.inf
    sentence.check_samples(theta, rng.random((20000, 3)))


@each_kind
@pytest.mark.parametrize("n, K", [(6, 37), (11, 5), (25, 8)])
def test_relations_are_summed_inside_their_arcs(projective, single, n, K):
    # What torch-struct's tests say of labelled trees: sums are those of trees without relations,
    # whose arcs have the sums over relations, and marginals of arcs sum those of relations.
    rng = np.random.default_rng(n)
    labelled = score_space(DependencyStructure(projective, single, True), K)
    plain = score_space(DependencyStructure(projective, single))
    made = []
    for space in (labelled, plain):
        layout = make_layout(space, space.pack_sizes([n]))
        binds = ask_projection(space, "entropy"), ask_oracle(space)
        made.append((layout, *(bind(layout) for bind in binds)))
    (layout, projection, oracle), (_, other, best) = made
    theta = np.zeros(layout.sizes(0)[0])
    scores = labelled.layout.theta_views(theta, n * n, 0)["arc"]
    scores[...] = rng.normal(size=scores.shape) * 3
    scores[rng.random(scores.shape) < 0.2] = -np.inf
    scores[rng.random(n * n) < 0.1] = -np.inf
    scores[np.arange(n) * n] = 0  # every word may hang off the root,
    scores[np.arange(1, n) * n + np.arange(1, n)] = 0  # or off the word before
    summed = np.logaddexp.reduce(scores, axis=1)
    marginals, value, _ = calls.project(projection, 0, theta)
    of_arcs, expected, _ = calls.project(other, 0, summed)
    assert value == pytest.approx(expected, rel=1e-12)
    rows = labelled.layout.theta_views(marginals, n * n, 0)["arc"]
    assert rows.sum(axis=1) == pytest.approx(of_arcs, abs=1e-12)
    assert rows == pytest.approx(of_arcs[:, None] * shares(scores, summed), abs=1e-12)
    label, value, _ = calls.argmax(oracle, 0, theta)
    heads, expected, _ = calls.argmax(best, 0, scores.max(axis=1))
    assert value == pytest.approx(expected, rel=1e-12) and (label // K).tolist() == heads.tolist()
    # Derivatives along a direction, by differences of marginals.
    towards = np.zeros(len(theta))
    labelled.layout.theta_views(towards, n * n, 0)["arc"][...] = rng.normal(size=scores.shape)
    ahead, behind = (calls.project(projection, 0, theta + x * towards)[0] for x in (1e-5, -1e-5))
    moved = projection_calls.derivative(projection, 0, theta, towards)
    assert moved == pytest.approx((ahead - behind) / 2e-5, abs=1e-8)


def shares(scores, summed):
    """Return the probability of each relation given its arc."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(np.exp(scores - summed[:, None]))


def test_other_scores_are_refused():
    sentence = Sentence(2, 3, False, True)
    for number, place in itertools.product((np.nan, np.inf, 1e301), (0, 5, -1)):
        for others in (0.0, -1e301, -np.inf):  # which hide it in a sum
            theta = sentence.scores(np.random.default_rng(0), "random")
            theta[1:5] += others
            rows = theta.reshape(4, -1)
            rows[place // 3, place % 3] = number  # never in the padding
            for call, one in (
                (calls.argmax, sentence.oracle),
                (calls.project, sentence.projection),
            ):
                refused("example 0: an arc has the score", call, one, 0, theta)


@each_kind
def test_conformance(projective, single):
    check_structure(DependencyStructure(projective, single, True), n_cases=1, size=2)


@pytest.mark.parametrize(
    "loss",
    ["normalized-hamming", "unlabelled-hamming", "normalized-unlabelled-hamming", "zero-one"],
)
def test_conformance_of_losses(loss):
    structure = DependencyStructure(labelled=True)
    check_structure(structure, loss=loss, n_cases=1, size=2, only=LOSS)


def test_losses_count_heads_and_relations():
    X = [np.zeros((4, 3, 1))]
    truth = [(2, "a"), (0, "b"), (2, "b")]
    space, examples = DependencyStructure().make_space(X, [truth])
    guess = space.pack(X, [[(2, "b"), (0, "b"), (1, "b")]]).labels
    expected = {"hamming": 2, "unlabelled-hamming": 1, "zero-one": 1}
    expected |= {"normalized-hamming": 2 / 3, "normalized-unlabelled-hamming": 1 / 3}
    strange = space.pack(X, [[(2, "a"), (0, "unseen"), (1, "unseen")]], unseen="extra").labels
    unseen = {"hamming": 3, "unlabelled-hamming": 0, "zero-one": 1}
    for name, value in expected.items():
        native = ask_loss(space, name)(make_layout(space, examples))
        native.check_truths(examples.labels)
        assert calls.loss_value(native, 0, examples.labels, guess) == pytest.approx(value)
        if name in unseen:
            native.check_truths(strange)
            assert calls.loss_value(native, 0, strange, guess) == unseen[name]


@each_kind
def test_polytopes_have_labelled_trees_as_corners(projective, single):
    rng = np.random.default_rng(4)
    for sentence in sentences(projective, single, 16):
        if len(sentence.labels):
            sentence.check_polytope(TreePolytopes, sentence.scores(rng, "random"))


def toy(n=24, seed=0):
    """Return arcs whose features tell head and relation, with noise."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        words = int(rng.integers(1, 6))
        heads = np.arange(words)
        names = np.array(["left", "right", "up"])[rng.integers(0, 3, words)]
        x = rng.normal(size=(words + 1, words, 5)) * 0.1
        x[heads, np.arange(words), 0] += 1
        for k, name in enumerate(("left", "right", "up")):
            x[:, names == name, 1 + k] += 1
        X.append(x)
        Y.append(list(zip(heads.tolist(), names.tolist())))
    return X, Y


@pytest.mark.parametrize("surrogate", ["margin", "crf", "probloss"])
def test_training_and_files(surrogate, tmp_path):
    X, Y = toy()
    solver = {"margin": "bcfw", "crf": "sgd", "probloss": "cutting-plane"}[surrogate]
    model = StructuredSVM(
        "dependency", surrogate=surrogate, solver=solver, alpha=0.01, tol=0.05, random_state=0
    ).fit(X[:16], Y[:16])
    assert model.classes_.tolist() == ["left", "right", "up"]
    assert model.coef_["arc"].shape == (5, 3)
    assert model.score(X[16:], Y[16:]) > 0.9
    answers = model.predict(X[16:])
    assert answers[0].dtype.names == ("head", "relation")
    again = reloaded(model, tmp_path)
    assert [y.tolist() for y in again.predict(X)] == [y.tolist() for y in model.predict(X)]
    (best, value), (_, second) = model.predict_kbest(X[16:], 2)[0]
    assert best.tolist() == answers[0].tolist() and value >= second
    table = model.predict_marginals(X[16:17])[0]
    words = len(Y[16])
    assert table.shape == (words + 1, words, 3)
    assert table.sum(axis=(0, 2)) == pytest.approx(np.ones(words))
    drawn = model.sample(X[16:18], 2, random_state=0)
    assert {names.dtype.names for draw in drawn for names in draw} == {("head", "relation")}
    # Predictions are labels; relations unseen in training count as wrong.
    assert model.score(X, model.predict(X)) == 1
    strange = [[(head, "new") for head, _ in y] for y in Y]
    assert model.score(X, strange) == 0
    heads = [label["head"].tolist() for label in model.predict(X)]
    assert heads == [[head for head, _ in y] for y in Y]


def test_given_classes_and_one_relation():
    X, Y = toy(6)
    one = [[(head, 7) for head, _ in y] for y in Y]
    model = StructuredSVM("dependency", alpha=0.01).fit(X, one)
    assert model.coef_["arc"].shape == (5, 1) and model.predict(X)[0].tolist() == one[0]
    plain = StructuredSVM("dependency", alpha=0.01).fit(X, [[h for h, _ in y] for y in Y])
    assert np.allclose(model.coef_["arc"], plain.coef_["arc"], atol=1e-3)
    assert model.score(X, [[(h, 8) for h, _ in y] for y in Y]) == 0
    space, examples = DependencyStructure().make_space(X, Y, classes=["up", "x", "left", "right"])
    assert space.classes_.tolist() == ["left", "right", "up", "x"]
    assert [y.tolist() for y in space.unpack(examples.labels, examples)] == Y


PAIR = [(2, "a"), (0, "b")]


@pytest.mark.parametrize(
    "Y, structure, message",
    [
        (
            [PAIR, [(0, "a"), 1]],
            {},
            r"example 1, word 2: found 1, expected a pair \(head, relation",
        ),
        ([PAIR, [(0, "a"), (1, None)]], {}, "example 1, word 2: found .1, None., expected a pair"),
        ([PAIR, [0, 1]], {}, r"example 1, word 1: found 0, expected a pair \(head, relation\)"),
        ([PAIR, [(0, "a"), (1,)]], {}, "example 1, word 2: found .1,., expected a pair"),
        ([PAIR, [(0, "a"), (1, 3)]], {}, "y mixes strings and numbers|labels of types"),
        ([PAIR, [(2, "a"), (1, "b")]], {}, "example 1, word 1: its heads lead back to it"),
        ([PAIR, PAIR], {"labelled": False}, "y has relations, expected heads only"),
        (
            [[2, 0], [0, 1]],
            {"labelled": True},
            r"y has heads only, expected pairs \(head, relation",
        ),
        ([PAIR, PAIR], {"labelled": 1}, "labelled is 1, expected True or False"),
    ],
)
def test_bad_labelled_trees_are_refused(Y, structure, message):
    X = [np.ones((3, 2, 1))] * 2
    refused(message, StructuredSVM(DependencyStructure(**structure)).fit, X, Y)


def test_labels_of_another_kind_than_in_training_are_refused():
    X = [np.ones((3, 2, 1))]
    model = StructuredSVM("dependency").fit(X, [PAIR])
    refused("y has heads only, expected pairs .* as in training", model.score, X, [[2, 0]])
    plain = StructuredSVM("dependency").fit(X, [[2, 0]])
    refused("y has pairs .head, relation., expected heads only", plain.score, X, [PAIR])
    space, _ = DependencyStructure().make_space(X, [PAIR])
    refused("label 'c' was not seen in training", space.pack, X, [[(2, "a"), (0, "c")]])
    refused("y has heads only", DependencyStructure().make_space, X, [[2, 0]], classes=["a"])


def test_arcs_and_matrices_of_features():
    X, Y = toy(8)
    rows = [x.transpose(1, 0, 2)[~np.eye(len(x), dtype=bool)[1:]] for x in X]
    whole = Arcs(np.concatenate(rows), [x.shape[1] for x in X])
    one, two = (StructuredSVM("dependency", alpha=0.01).fit(x, Y) for x in (X, whole))
    assert np.allclose(one.coef_["arc"], two.coef_["arc"])


def test_operators_keep_to_their_memory():
    rng = np.random.default_rng(0)
    for (n, K), kind in itertools.product([(1, 2), (2, 3), (5, 9), (13, 5)], KINDS):
        space = score_space(DependencyStructure(*kind, True), K)
        uniforms = rng.random((4, n))
        check_memory_of(space, space.pack_sizes([n]), uniforms, (1, 20), rng, n, K)


def labelled_toy(n=40, seed=0):
    """Return sentences whose relations follow from tags."""
    rng = np.random.default_rng(seed)
    sentences = []
    for _ in range(n):
        tags = ["DET", "NOUN", "VERB"] + ["DET", "NOUN"] * int(rng.integers(0, 2)) + ["PUNCT"]
        heads = [2, 3, 0, 5, 3][: len(tags) - 1] + [3]
        names = ["det", "nsubj:pass", "root", "det", "obj"][: len(tags) - 1] + ["punct"]
        words = ["." if tag == "PUNCT" else f"{tag}{rng.integers(4)}" for tag in tags]
        pairs = list(zip(heads, names))
        sentences.append(ConlluSentence.of(words, tags).with_heads(pairs))
    return sentences


def test_relations_of_sentences():
    sentence = labelled_toy(1)[0]
    arcs = sentence.arcs()
    assert arcs["relation"].tolist()[:3] == ["det", "nsubj:pass", "root"]
    assert sentence.arcs(main=True)["relation"][1] == "nsubj"
    assert sentence.with_heads(arcs).lines == sentence.lines
    bare = sentence.with_heads([0] + [1] * (len(sentence) - 1))
    refused("word 1 .'DET[0-9]'. has no relation", bare.arcs)
    assert ConlluSentence.of(["a"], ["X"]).arcs() is None


def test_attachment_scores():
    truth = [[(2, "a"), (0, "b"), (2, "punct")], [(0, "b")]]
    guess = [[(2, "a"), (0, "c"), (1, "punct")], [(0, "b")]]
    scores = attachment_report(truth, guess)
    assert dict(scores) == {"uas": 0.75, "las": 0.5, "exact": 0.5, "words": 4, "trees": 2}
    words = [["a", "b", "."], ["c"]]
    scores = attachment_report(truth, guess, words)
    given = ("uas", "las", "words")
    assert [scores[f"{name}_without_punctuation"] for name in given] == [1, pytest.approx(2 / 3), 3]
    heads = [[h for h, _ in y] for y in truth]
    assert attachment_report(heads, heads, words)["exact"] == 1
    refused("one has relations", attachment_report, truth, heads)


def test_the_shell_trains_a_labelled_parser(tmp_path, capsys):
    sentences = labelled_toy()
    names = ("a.conllu", "b.conllu", "c.conllu", "m.structsolve")
    train, new, out, model = (tmp_path / name for name in names)
    write_conllu(train, sentences[:30])
    write_conllu(new, [s.with_heads([(0, "_")] * len(s)) for s in sentences[30:]])
    fit = ("fit", train, "--model", model, "--alpha", "0.01", "--structure")
    for structure, more, subject in (
        ("dependency", ("--option", "relations=main"), "nsubj"),
        ("dependency:labelled=true", (), "nsubj:pass"),
    ):
        assert "30 sentences" in works(capsys, *fit, structure, *more)
        works(capsys, "predict", model, new, "--output", out)
        parsed, _ = read_conllu(out)
        right = [(s.arcs(subject == "nsubj") == p.arcs()).mean() for s, p in
                 zip(sentences[30:], parsed)]  # fmt: skip
        assert np.mean(right) > 0.9
        assert subject in parsed[0].arcs()["relation"].tolist()
        text = works(capsys, "score", model, train)
        assert "right heads and relations 1.0000 without punctuation" in text
        assert '"las": 1.0' in works(capsys, "score", model, train, "--json")
    works(capsys, *fit, "dependency", "--option", "n_bits=8", "--option", "relations=main")
    assert load(model).n_features_in_ == 2**8
    works(capsys, "predict", model, new, "--output", out)
    given = (*fit, "dependency", "--option", "n_bits=x")
    assert "n_bits is 'x', expected an integer from 1 to 30" in fails(capsys, *given)
    broken = tmp_path / "broken.conllu"
    heads = [2, 0] + [2] * (len(sentences[1]) - 2)
    write_conllu(broken, [sentences[0], sentences[1].with_heads(heads)])
    given = ("fit", broken, "--model", model, "--structure", "dependency")
    text = fails(capsys, *given, "--option", "relations=main")
    assert "sentence 2: word 2 ('NOUN" in text and "has no relation" in text
    unknown = r"relations is 'x', expected one of \['full', 'main'"
    fails(capsys, *given, "--option", "relations=x", match=unknown)
