"""Trees over spans: oracle, k best, sums and losses against enumeration; files and scores."""

import functools
import itertools
import re

import numpy as np
import pytest
from checks import LOSS, refused, reloaded
from shell import fails, works
from tree_cases import Trees, check_memory_of, drawn

from structsolve import StructuredSVM, get_structure
from structsolve.batch import Scores, least_loss, samples, score_space
from structsolve.plugins.cky import (
    CKYStructure,
    SpanFeaturizer,
    Spans,
    bracket_report,
    make_treebank,
    read_tree,
    read_trees,
    write_tree,
)
from structsolve.plugins.cky.polytope import CKYPolytopes
from structsolve.plugins.cky.trees import brackets, length_of, spans_of, tree_of
from structsolve.structure import calls, projection_calls
from structsolve.structure.ask import ask_loss, ask_parts, ask_projection, make_layout
from structsolve.testing import check_structure

RULES = [("0", "0", "1"), ("1", "1", "0"), ("0", "1", "1"), ("1", "0", "0")]
# Structures, and the numbers of words and classes of their sentences.
SMALL = [
    (CKYStructure(), [(1, 3), (2, 3), (3, 2), (3, 9), (4, 1), (5, 1), (4, 2)]),
    (CKYStructure(grammar=True), [(1, 2), (2, 3), (3, 2), (3, 3), (4, 2), (5, 1)]),
    (CKYStructure(True, [tuple(map(int, r)) for r in RULES]), [(1, 2), (2, 2), (3, 2), (4, 2)]),
]
each_kind = pytest.mark.parametrize("structure, sizes", SMALL)


class Sentence(Trees):
    def __init__(self, structure, n, K):
        space = score_space(structure, list(range(K)))
        super().__init__(space, space.pack_sizes([n]))
        self.spans = n * (n + 1) // 2

    def scores(self, rng, kind):
        theta = np.zeros(self.size)
        for view in self.space.layout.theta_views(theta, self.spans, 0).values():
            view[...] = drawn(rng, kind, view.shape)
        return theta


sentence_of = functools.cache(Sentence)

SCORES = ["random", "tied", "zero", "wide", "barred", "far"]


@each_kind
def test_the_best_trees_are_those_of_the_enumeration(structure, sizes):
    rng = np.random.default_rng(1)
    for n, K in sizes:
        sentence = sentence_of(structure, n, K)
        for kind in SCORES * 12:
            sentence.check_best(sentence.scores(rng, kind), int(rng.choice([1, 2, 7, 30])))


@each_kind
def test_sums_are_those_of_the_enumeration(structure, sizes):
    # What torch-struct's tests say of CKY: the partition, the marginals and the best tree are those
    # of all trees; here also the derivatives of marginals.
    rng = np.random.default_rng(2)
    for n, K in sizes:
        sentence = sentence_of(structure, n, K)
        for kind in SCORES * 8:
            sentence.check_sums(sentence.scores(rng, kind), sentence.scores(rng, "random"))


@each_kind
def test_polytopes_have_trees_as_corners(structure, sizes):
    rng = np.random.default_rng(4)
    for n, K in sizes:
        sentence = sentence_of(structure, n, K)
        if len(sentence.labels):
            sentence.check_polytope(CKYPolytopes, sentence.scores(rng, "random"))


@pytest.mark.parametrize("structure, n", [(CKYStructure(), 4), (CKYStructure(True), 3)])
def test_samples_follow_the_distribution(structure, n):
    rng = np.random.default_rng(3)
    sentence = Sentence(structure, n, 2)
    theta = sentence.scores(rng, "random")
    theta[-1] = -np.inf
    sentence.check_samples(theta, rng.random((20000, 2 * n - 1)))


@pytest.mark.parametrize("structure", [CKYStructure(), CKYStructure(True)])
def test_samples_at_large_scores(structure):
    # The log of two trees has no digits beside 2^60; the first of both was always drawn.
    space = score_space(structure, 1)
    scores = Scores(np.full((6, 1), 2.0**60), examples=space.pack_sizes([3]))
    _, counts = np.unique(samples(space, scores, 400, 0), axis=0, return_counts=True)
    assert len(counts) == 2 and counts.min() > 150


@pytest.mark.parametrize("grammar", [False, True])
def test_labels_that_are_no_trees_have_no_parts(grammar):
    """A class beyond the last, or spans of no tree, led the look-up of rules out of the label."""
    space = score_space(CKYStructure(grammar), ["a", "b"])
    layout = make_layout(space, space.pack_sizes([3, 5]))
    parts, trees = ask_parts(space)(layout), Sentence(CKYStructure(grammar), 3, 2)
    rng, known = np.random.default_rng(0), 6 * 2
    message = "example 0: its label holds .* expected the spans of"
    for label in rng.integers(0, 30, (3000, 5), dtype=np.int32):
        if rng.random() < 0.7:
            label = trees.labels[rng.integers(len(trees.labels))].copy()
            label[rng.integers(5)] = rng.integers(30)
        row = trees.places.get(label.tobytes())
        if row is not None:
            dense = np.zeros(trees.mu.shape[1])
            np.add.at(dense, *calls.encode(parts, 0, label))
            assert np.array_equal(dense, trees.mu[row])
        elif grammar or label.max() >= known:
            for call, given in ((calls.encode, [label]), (calls.difference, [label, label])):
                refused(message, call, parts, 0, *given)


def test_the_least_zero_one_loss_at_large_scores():
    # The best tree's score, summed in another order than the log-partition, exceeds it.
    space = score_space("cky", 1)
    node = np.random.default_rng(0).normal(size=(10, 1)) * 1e150
    assert least_loss(space, Scores(node, examples=space.pack_sizes([4])), "zero-one")[1] == [0]


def test_inside_sums_of_a_grammar():
    # A grammar of one class and all scores 0 counts binary trees: Catalan's numbers.
    for n, count in enumerate([1, 1, 2, 5, 14, 42, 132, 429], 1):
        for structure in (CKYStructure(), CKYStructure(True)):
            space = score_space(structure, [0])
            layout = make_layout(space, space.pack_sizes([n]))
            projection = ask_projection(space, "entropy")(layout)
            marginals, value, _ = calls.project(projection, 0, np.zeros(layout.sizes(0)[0]))
            assert np.exp(value) == pytest.approx(count)
    # Probabilities of rules: the sums over all trees of a language of two words are 1.
    space = score_space(CKYStructure(True), ["A", "B"])
    layout = make_layout(space, space.pack_sizes([3]))
    theta = np.full(layout.sizes(0)[0], 0.0)
    views = space.layout.theta_views(theta, 6, 0)
    views["rule"][...] = np.log(1 / 4)
    views["span"][...] = 0
    projection = ask_projection(space, "entropy")(layout)
    assert calls.project(projection, 0, theta)[1] == pytest.approx(np.log(2 * 2**5 / 16))


@pytest.mark.parametrize("n, K", [(9, 3), (14, 2)])
def test_marginals_of_longer_sentences(n, K):
    rng = np.random.default_rng(n)
    for structure in (CKYStructure(), CKYStructure(True)):
        space = score_space(structure, K)
        layout = make_layout(space, space.pack_sizes([n]))
        projection = ask_projection(space, "entropy")(layout)
        theta = np.zeros(layout.sizes(0)[0])
        towards = np.zeros(len(theta))
        rows = n * (n + 1) // 2
        for one in (theta, towards):
            for view in space.layout.theta_views(one, rows, 0).values():
                view[...] = rng.normal(size=view.shape) * 2
        marginals, value, _ = calls.project(projection, 0, theta)
        ahead, behind = (calls.project(projection, 0, theta + x * towards) for x in (1e-5, -1e-5))
        assert marginals @ towards == pytest.approx((ahead[1] - behind[1]) / 2e-5, rel=1e-6)
        moved = projection_calls.derivative(projection, 0, theta, towards)
        assert moved == pytest.approx((ahead[0] - behind[0]) / 2e-5, abs=1e-6)
        spans = space.layout.theta_views(marginals, rows, 0)["span"]
        assert spans.sum() == pytest.approx(2 * n - 1)


@pytest.mark.parametrize("structure", [CKYStructure(), CKYStructure(grammar=True)])
def test_conformance(structure):
    check_structure(structure, n_cases=1)


@pytest.mark.parametrize("loss", ["normalized-hamming", "zero-one"])
def test_conformance_of_losses(loss):
    check_structure("cky", loss=loss, n_cases=1, only=LOSS)


def test_losses_count_spans():
    X = [np.zeros((3, 3, 1))]
    space, examples = CKYStructure().make_space(X, [("S", ("NP", "D", "N"), "V")])
    guess = space.pack(X, [("S", "D", ("NP", "N", "V"))]).labels
    strange = space.pack(X, [("S", ("X", "D", "N"), "V")], unseen="extra").labels
    for name, scale in (("hamming", 1), ("normalized-hamming", 1 / 5)):
        native = ask_loss(space, name)(make_layout(space, examples))
        assert calls.loss_value(native, 0, examples.labels, guess) == pytest.approx(scale)
        assert calls.loss_value(native, 0, strange, examples.labels) == pytest.approx(scale)


def test_operators_keep_to_their_memory():
    rng = np.random.default_rng(0)
    for (n, K), grammar in itertools.product([(1, 2), (2, 3), (5, 2), (9, 3)], (False, True)):
        space = score_space(CKYStructure(grammar), K)
        uniforms = rng.random((4, 2 * n - 1))
        check_memory_of(space, space.pack_sizes([n]), uniforms, (1, 9), rng, n, K)


TREES = [
    "A",
    ("A", "B"),
    ("S", ("A", "B"), "C"),
    ("S", "A", "B", "C", "D"),
    ("S", ("T", ("U", "A", ("V", "B"), "C", ("W", "D", "E"))), "F"),
    ("R", ("S", "A", "B", "C")),
]


def test_binary_trees_and_back():
    for tree in TREES:
        assert tree_of(spans_of(tree)) == tree
        words = [f"w{k}" for k in range(spans_of(tree)[0][1])]
        assert read_tree(write_tree(tree, words)) == (tree, words)
    # Whatever a model predicts is a tree without marks.
    text = write_tree(tree_of([(0, 2, "@S"), (0, 1, "@A"), (1, 2, "B+@C")]), ["a", "b"])
    assert read_tree(text)[1] == ["a", "b"]


def test_files_of_the_penn_treebank():
    text = "( (S (NP-SBJ (-NONE- *)) (VP (V go)\n (ADVP (RB home)))) )\n( (NP (N a)) )"
    trees = list(read_trees(text))
    assert trees == [(("S", ("VP", "V", ("ADVP", "RB"))), ["go", "home"]), (("NP", "N"), ["a"])]
    spaced = "(S (N 1\u00a0000) (N francs))"  # one word
    assert read_tree(spaced) == (("S", "N", "N"), ["1\u00a0000", "francs"])
    assert write_tree(*read_tree(spaced)) == spaced
    for broken, line, message in (
        ("(S\n (A a)", 1, "1 brackets that are not closed"),
        ("(S (A a))\n\n (S (A a)\n(B b)", 3, "1 brackets that are not closed"),
        ("(S (A a))\n)", 2, "without its '\\('"),
        ("a (S b)", 1, "found 'a' outside"),
        ("(S\n())\n", 2, r"found a node of \[\]"),
        ("(S (A a)\nb\n)", 3, "expected a class and a word, or a class and nodes"),
    ):
        with pytest.raises(ValueError, match=message) as info:
            list(read_trees(broken))
        assert info.value.line == line


def test_scores_of_brackets():
    true, guess = ("S", ("NP", "D", "N"), ("VP", "V", "N")), ("S", ("NP", "D", "N"), "V", "N")
    scores = bracket_report([true], [guess])
    assert (scores["precision"], scores["recall"], scores["exact"]) == (1, 2 / 3, 0)
    assert scores["f1"] == pytest.approx(0.8) and "F1 0.8000" in str(scores)
    other = ("X", ("NP", "D", "N"), ("VP", "V", "N"))
    assert bracket_report([true], [other])["f1"] == pytest.approx(2 / 3)
    assert bracket_report([true], [other], labelled=False)["f1"] == 1
    assert bracket_report([true], [write_tree(true, "abcd")])["exact"] == 1
    refused("same number", bracket_report, [true], [])
    deep = other = "A"
    for _ in range(3000):
        deep, other = ("S", "A", deep), ("S", other, "A")
    assert bracket_report([deep, deep], [deep, other])["exact"] == 0.5
    refused("expected the same number in both", bracket_report, [true], ["S"])
    refused("y_true: found 'ab'", bracket_report, "ab", "cd")
    refused("example 0: found the node None", bracket_report, [None], [None])
    refused("words: found 2, expected 4", write_tree, true, "ab")
    refused(r"found the node \('A',\)", write_tree, ("A",), "a")
    for tree, words in (("A", ["a b"]), ("A", [""]), ("A B", ["a"]), ("(", ["a"])):
        refused("expected a class or word without spaces and brackets", write_tree, tree, words)
    assert write_tree(("S", "A", "B"), ["(", "a)"]) == "(S (A -LRB-) (B a-RRB-))"
    assert brackets(("S", ("S", "A"))) == [(0, 1, "S"), (0, 1, "S")]


def treebank(n, seed=0):
    pairs = [read_tree(text) for text in make_treebank(n, random_state=seed)]
    return [words for _, words in pairs], [tree for tree, _ in pairs]


@pytest.mark.parametrize("grammar", [False, True])
@pytest.mark.parametrize("surrogate, solver", [("margin", "bcfw"), ("crf", "sgd")])
def test_training_and_files(grammar, surrogate, solver, tmp_path):
    words, trees = treebank(60)
    featurizer = SpanFeaturizer(n_bits=12)
    X = featurizer.fit_transform(words)
    settings = {"surrogate": surrogate, "solver": solver, "alpha": 0.003, "random_state": 0}
    model = StructuredSVM(CKYStructure(grammar), max_iter=15, tol=0.1, **settings)
    model.fit(X[:40], trees[:40])
    guess = list(model.predict(X[40:]))
    assert bracket_report(trees[40:], guess)["f1"] > 0.8
    assert model.score(X[40:], trees[40:]) > 0.8
    again = reloaded(model, tmp_path)
    assert list(again.predict(X[40:])) == guess
    (best, value), (_, second) = model.predict_kbest(X[40:], 2)[0]
    assert best == guess[0] and value >= second
    n = len(words[40])
    table = model.predict_marginals(X[40:41])[0]
    assert table.shape == (n, n, len(model.classes_)) and table.sum() == pytest.approx(2 * n - 1)
    assert len(model.sample(X[40:42], 3, random_state=0)) == 3
    strange = [("new", *tree[1:]) for tree in trees]
    assert model.score(X, strange) < model.score(X, trees)


X3 = [np.ones((3, 3, 1))]


@pytest.mark.parametrize(
    "X, Y, structure, message",
    [
        (X3, [("S", "A", "B")], {}, "example 0: X has 3 words and the tree of y 2"),
        (X3, [("S", "A", "B", 3)], {}, "y, example 0: found the node 3, expected a class"),
        (X3, [("S",)], {}, "y, example 0: found the node .'S',., expected a class"),
        (X3, ["(S (A a"], {}, "y, example 0: found 2 brackets that are not closed"),
        (X3, [], {}, "X has 1 examples and y has 0"),
        (X3, "S", {}, "y is a str"),
        ([np.ones((3, 2, 1))], ["A"], {}, r"example 0: found shape \(3, 2, 1\)"),
        ([np.ones((2, 2, 1)) * 1j], ["A"], {}, "example 0: found no array of numbers .Complex"),
        ([np.ones((1, 1, 1)), np.ones((1, 1, 2))], ["A", "B"], {}, "example 1: found 2 features"),
        ([], [], {}, "X is empty"),
        (X3, ["A"], {"grammar": 3}, "grammar is 3, expected True or False"),
        (X3, ["A"], {"rules": [("A", "A", "A")]}, "rules: give grammar=True"),
        (X3, ["A"], {"grammar": True, "rules": [("A", "A")]}, r"rules\[0\] is \('A', 'A'\)"),
        (
            X3,
            [("S", "A", ("S", "A", "B"))],
            {"grammar": True, "rules": [("S", "A", "B")]},
            "example 0: the true tree joins by .*'S', 'A', 'S'",
        ),
    ],
)
def test_bad_input_is_refused(X, Y, structure, message):
    refused(message, StructuredSVM(CKYStructure(**structure)).fit, X, Y)


def test_other_bad_input_is_refused():
    model = StructuredSVM("cky").fit(X3, [("S", ("A", "B", "C"), "C")])
    refused("X has 2 features of a span, expected 1", model.predict, [np.ones((2, 2, 2))])
    space, _ = CKYStructure().make_space(X3, [("S", "A", "B", "C")])
    refused("label 'X' was not seen in training", space.pack, X3, [("X", "A", "B", "C")])
    refused(r"features has the shape \(2, 1\), expected 3 rows", Spans, np.ones((2, 1)), 2)
    refused("n_words is 0", Spans, np.ones((1, 1)), 0)
    rules = CKYStructure(True, [(0, 0, 7)])
    refused("the class 7 is unknown", score_space, rules, [0, 1])
    sentence = Sentence(CKYStructure(), 2, 2)
    for number in (np.nan, np.inf):
        theta = np.full(sentence.layout.sizes(0)[0], number)
        refused("a span or rule has the score", calls.argmax, sentence.oracle, 0, theta)
        refused("a span or rule has the score", calls.project, sentence.projection, 0, theta)
    refused("n_bits is 0", SpanFeaturizer(0).fit, [["a"]])
    refused("example 0: found 'a'", SpanFeaturizer().transform, ["a"])
    refused("example 1: found None", SpanFeaturizer().transform, [["a"], None])


def test_labels_that_are_no_trees():
    space = score_space(CKYStructure(), [0, 1])
    examples = space.pack_sizes([3])
    every = {tuple(label) for label in space.enumerate_labels(examples, 0).tolist()}
    rng = np.random.default_rng(0)
    for _ in range(3000):
        label = np.sort(rng.integers(-1, 13, 5)).astype(np.int32)
        assert space.contains(label, examples, 0) == (tuple(label.tolist()) in every)
    assert all(space.contains(np.array(y, np.int32), examples, 0) for y in every)


@pytest.mark.parametrize("name", ["A+B", "@A", "+", "@"])
def test_classes_with_marks_of_binary_trees_are_refused(name):
    X = [np.zeros((2, 2, 1)), np.zeros((2, 2, 1))]
    for tree in (("S", name, "A"), (name, "A", "A"), ("S", (name, "A"), "A")):
        refused(re.escape(f"found the class {name!r}"), spans_of, tree)
        message = f"y, example 1: found the class {name!r}, expected one without '+'"
        refused(re.escape(message), StructuredSVM("cky").fit, X, [("S", "A", "A"), tree])


def test_the_rule_that_a_tree_lacks_is_named():
    rules = [("S", "A", "B"), ("S", "A", "@S"), ("@S", "A", "B")]
    model = StructuredSVM(CKYStructure(grammar=True, rules=rules), max_iter=2, tol=1.0)
    X = [np.zeros((3, 3, 1)), np.zeros((3, 3, 1))]
    message = "example 1: the true tree joins by ('S', 'B', '@S') (parent, left, right)"
    refused(re.escape(message), model.fit, X, [("S", "A", "A", "B"), ("S", "B", "A", "B")])


@pytest.mark.parametrize("side", ["left", "right", "flat", "chain"])
def test_long_sentences(side):
    n, tree = 5000, "A"
    for _ in range(n - 1):
        tree = {"left": ("S", tree, "B"), "right": ("S", "B", tree), "chain": ("S", tree)}.get(side)
        if side == "flat":
            tree = ("S", *["A"] * n)
            break
    words = 1 if side == "chain" else n
    spans = spans_of(tree)
    assert len(spans) == 2 * words - 1 and spans[0][:2] == (0, words)
    text = write_tree(tree, map(str, range(words)))
    assert length_of(tree) == words and len(brackets(tree)) == (1 if side == "flat" else n - 1)
    again, read = read_tree(text)
    assert len(read) == words and spans_of(again) == spans
    assert write_tree(tree_of(spans), read) == text


def test_the_shell_trains_on_brackets(tmp_path, capsys):
    train, new, out, model = (
        tmp_path / name for name in ("a.mrg", "b.brackets", "c.mrg", "m.structsolve")
    )
    texts = make_treebank(60, random_state=0)
    train.write_text("\n".join(texts[:40]))
    new.write_text("\n".join(" ".join(read_tree(text)[1]) for text in texts[40:]))
    fit = ("fit", train, "--structure", "cky", "--model", model, "--alpha", "0.003")
    assert "40 sentences" in works(capsys, *fit, "--option", "n_bits=12", "--max-iter", "10")
    works(capsys, "predict", model, new, "--output", out)
    trees = [tree for tree, _ in read_trees(out.read_text())]
    assert bracket_report([read_tree(text)[0] for text in texts[40:]], trees)["f1"] > 0.8
    assert "F1 " in works(capsys, "score", model, train)
    assert '"f1":' in works(capsys, "score", model, train, "--json")
    new.write_text("the dog ( barks )\n")
    works(capsys, "predict", model, new, "--output", out)
    assert read_tree(out.read_text())[1] == ["the", "dog", "-LRB-", "barks", "-RRB-"]
    new.write_text("cats\nthe dog\n")  # a word alone has a class for its tree
    works(capsys, "predict", model, new, "--output", out)
    assert [words for _, words in read_trees(out.read_text())] == [["cats"], ["the", "dog"]]
    for text, line, what in [
        ("the\tDT\ndog\tNN\n", 1, "a tab"),
        ("# a comment\n(S (D the) (N dog))", 2, "the start of a tree"),
        ("the dog\n\n  ( (S\n (D the)))", 3, "the start of a tree"),
        ("the dog\n(S\n (D the))", 2, "the start of a tree"),
    ]:
        new.write_text(text)
        told = f"b.brackets, line {line}: found {what}"
        fails(capsys, "predict", model, new, match=told)
    broken = tmp_path / "d.mrg"
    broken.write_text("(S (A a))\n(S (A a)")
    told = "d.mrg, line 2: found 1 brackets that are not closed"
    fails(capsys, "fit", broken, "--structure", "cky", "--model", model, match=told)
    broken.write_text("")
    fails(capsys, "fit", broken, "--structure", "cky", "--model", model, match="found no examples")
    told = "found no examples left by rows=None, longest=1"
    fails(capsys, "fit", train, "--option", "longest=1", "--model", model, match=told)


@pytest.mark.parametrize("damage", [lambda names: names[:, None], lambda names: np.arange(3)])
def test_classes_of_a_damaged_file_are_refused(damage):
    structure = get_structure("cky")
    space, _ = structure.make_space(*structure.sample(0))
    state, arrays = space.state()
    arrays = arrays | {"classes": damage(arrays["classes"])}
    refused("names of nodes in one dimension", structure.space_from_state, state, arrays)
