"""What batches of scores refuse, naming the example, the block or the argument."""

import itertools

import numpy as np
import pytest
from batch_cases import KINDS, SURROGATES, network, random_batch
from checks import refused

from structsolve import get_structure
from structsolve.batch import (
    Scores,
    argmax,
    expected_loss,
    k_best,
    log_proba,
    marginals,
    samples,
    score_space,
    value_and_gradient,
)
from structsolve.batch.answers import best_labels

FORBIDDEN = [
    *((name, surrogate, "hamming") for name in ("chain", "mrf") for surrogate in SURROGATES),
    *(("chain", surrogate, "zero-one") for surrogate in ("margin", "slack")),
    ("chain", "micro-f1:0", "hamming"),
    ("semi-markov", "margin", "span"),
    ("semi-markov", "slack", "span"),
]


@pytest.mark.parametrize("name, surrogate, loss", FORBIDDEN)
@pytest.mark.parametrize("truth", [0, 1])
def test_an_example_without_an_allowed_label_is_named(name, surrogate, loss, truth):
    structure = get_structure(name, **({"max_length": 1} if name == "semi-markov" else {}))
    space = score_space(structure, 2)
    graphs = {"edges": [np.array([[0, 1]])] * 2} if name == "mrf" else {}
    examples = space.pack_sizes([2, 2], **graphs)
    node = np.zeros((4, *space.layout.node.shape))
    node[2] = -np.inf
    scores = Scores(node, examples=examples)
    with pytest.raises(ValueError, match="^example 1: .*forbid"):
        value_and_gradient(space, scores, np.full(4, truth), surrogate, loss)
    refused("^example 1: .*forbid", marginals, space, scores, "euclidean")


def case(**changes):
    """Return a batch of two chains of 2 and 1 nodes, three states, with some changes."""
    space = score_space("chain", 3)
    given = {
        "node": np.zeros((3, 3)),
        "shared": {"transition": np.zeros((3, 3))},
        "edge": None,
        "examples": space.pack_sizes([2, 1]),
        "rows": None,
        **changes,
    }
    return space, Scores(**given)


NAN = np.zeros((3, 3))
NAN[2, 1] = np.nan
UP = np.zeros((3, 3), np.float32)
UP[1, 0] = np.inf


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"node": NAN}, r"example 1: the block 'node' holds nan at node 0, \[1\]; expected"),
        ({"node": UP}, r"example 0: the block 'node' holds inf at node 1, \[0\]; expected"),
        ({"shared": {"transition": NAN}}, r"the block 'transition' holds nan at \[2, 1\]"),
        ({"node": np.zeros((4, 3))}, r"block 'node' has shape \(4, 3\), expected \(3, 3\)"),
        ({"node": np.zeros((3, 2))}, r"block 'node' has shape \(3, 2\), expected \(3, 3\)"),
        ({"node": np.zeros(9)}, r"block 'node' has shape \(9,\), expected \(3, 3\)"),
        ({"node": None}, "node is None, expected an array"),
        ({"shared": {"transition": np.zeros(3)}}, r"'transition' has shape \(3,\), expected"),
        (
            {"shared": {"pair": np.zeros(3)}},
            r"found a shared block 'pair', expected some of \['end'",
        ),
        ({"edge": np.zeros((1, 3, 3))}, r"found an array of shape \(1, 3, 3\) for edges"),
        ({"rows": np.array([0, 1])}, "example 1: its nodes begin at row 1, expected at least 2"),
        ({"rows": np.array([0, 3])}, "example 1: its nodes are the rows 3 to 3, and the array of"),
        ({"rows": np.array([-1, 2])}, "example 0: its nodes begin at row -1"),
        ({"rows": [0, 2]}, r"rows of nodes: found list of shape \(2,\), expected int64 \(2,\)"),
    ],
)
def test_bad_scores(changes, message):
    space, scores = case(**changes)
    for call in (argmax, marginals):
        refused(message, call, space, scores)
    refused(message, value_and_gradient, space, scores, np.zeros(3, np.int32))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"node": np.zeros((3, 3), int)}, "block 'node' has dtype int64, expected float32 or"),
        ({"node": [[0.0] * 3] * 3}, "block 'node' is a list, expected a NumPy array"),
        ({"node": np.zeros((3, 3), ">f8")}, "block 'node' has dtype >f8, expected float32"),
        ({"examples": None}, "examples is a NoneType, expected Examples"),
    ],
)
def test_scores_of_wrong_types(changes, message):
    space, scores = case(**changes)
    refused(message, argmax, space, scores, error=TypeError)
    refused("scores is a ndarray, expected", argmax, space, np.zeros((3, 3)), error=TypeError)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1], "labels: found 2 numbers, expected 3"),
        ([0, 1, 3], "example 1: its label holds 3 at 0, expected 0 to 2"),
        ([0, -1, 0], "example 0: its label holds -1 at 1, expected 0 to 2"),
        ([0, 1, 2**40], r"labels: found numbers of 2\^31 or more"),
        ([0.0, 1.0, 1.0], "labels: found float64 of shape"),
        ([[0, 1, 1]], r"labels: found int64 of shape \(1, 3\), expected integers in one row"),
    ],
)
def test_bad_labels(labels, message):
    space, scores = case()
    for surrogate in ("margin", "crf", "slack"):
        refused(message, value_and_gradient, space, scores, np.array(labels), surrogate)


@pytest.mark.parametrize("number", [value_and_gradient, log_proba, expected_loss])
def test_labels_by_example_and_none_are_refused_by_name(number):
    space, scores = case()
    with pytest.raises(ValueError, match=r"labels: .*several lengths.*np.concatenate\(labels\)"):
        number(space, scores, [[0, 1], [1]])
    refused("labels: found object of shape", number, space, scores, None)


@pytest.mark.parametrize("kind", sorted({*KINDS} - {"chain", "tree", "multiclass", "ordinal"}))
def test_labels_that_are_none(kind):
    rng = np.random.default_rng(15)
    for _ in range(30):
        space, scores, labels = random_batch(kind, rng)
        size = int(scores.examples.label_offsets[1])
        listed = {tuple(row) for row in space.enumerate_labels(scores.examples, 0).tolist()}
        labels[:size] = rng.integers(0, 4, size)
        if tuple(labels[:size].tolist()) in listed:
            value_and_gradient(space, scores, labels)
        else:
            refused("example 0", value_and_gradient, space, scores, labels)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_a_forbidden_truth_is_told_as_such(surrogate):
    space, scores = case(node=np.array([[-np.inf, 0, 0], [0, 0, 0], [0, 0, 0]]))
    refused("-inf forbids", value_and_gradient, space, scores, np.zeros(3, np.int32), surrogate)


def test_other_bad_arguments():
    space, scores = case()
    labels = np.zeros(3, np.int32)
    with pytest.raises(ValueError, match=r"weights: found shape \(3,\), expected 2 finite"):
        value_and_gradient(space, scores, labels, weights=np.ones(3))
    with pytest.raises(ValueError, match="weights: found no array of numbers"):
        value_and_gradient(space, scores, labels, weights={})
    refused("unknown surrogate 'hinge'", value_and_gradient, space, scores, labels, "hinge")
    refused("unknown loss 'f1'", value_and_gradient, space, scores, labels, loss="f1")
    ranks = score_space("permutation", 3)
    batch = Scores(np.arange(9.0).reshape(1, 3, 3), examples=ranks.pack_sizes(1))
    values = {
        name: value_and_gradient(ranks, batch, np.array([1, 0, 2], np.int32), loss=name)[0].tolist()
        for name in ("auto", "spearman", "hamming")
    }
    assert values["auto"] == values["spearman"] != values["hamming"]
    refused("k is 1000001, expected an integer from 1 to 1000000", k_best, space, scores, 1_000_001)
    refused("k is 0, expected an integer from 1 to 1000000", k_best, space, scores, 0)
    refused("n is 0, expected an integer from 1 to 1000000", samples, space, scores, 0)
    refused("no plugin gives the projection 'huber'", marginals, space, scores, "huber")
    forbidden = np.zeros((3, 3))
    forbidden[0, 0] = -np.inf
    for surrogate in ("margin", "crf"):
        with pytest.raises(ValueError, match="example 0: the surrogate is inf, expected a number"):
            value_and_gradient(space, case(node=forbidden)[1], labels, surrogate)
    values, gradient = value_and_gradient(space, case(node=forbidden)[1], labels + 1, "crf")
    assert np.isfinite(values).all() and gradient.node[0, 0] == 0
    flow = score_space(get_structure("flow", network=network()))
    with pytest.raises(ValueError, match="'permutation' cannot draw labels"):
        ranking = score_space("permutation", 2)
        samples(ranking, Scores(np.zeros((1, 2, 2)), examples=ranking.pack_sizes(1)))
    with pytest.raises(ValueError, match="no plugin gives the projection 'entropy'"):
        marginals(flow, Scores(np.zeros((1, 5)), examples=flow.pack_sizes(1)))


def test_best_labels_are_refused_where_all_are_forbidden_and_only_there():
    rng = np.random.default_rng(0)
    space, forbidden = score_space("chain", 2), 0
    for _ in range(300):
        node = np.where(rng.random((3, 2)) < 0.3, -np.inf, rng.integers(0, 3, (3, 2)))
        table = np.where(rng.random((2, 2)) < 0.4, -np.inf, rng.integers(0, 3, (2, 2)))
        examples = space.pack_sizes([3])
        scores = Scores(node, shared={"transition": table}, examples=examples)
        best = max(
            node[0, a] + table[a, b] + node[1, b] + table[b, c] + node[2, c]
            for a, b, c in itertools.product(range(2), repeat=3)
        )
        if best == -np.inf:
            forbidden += 1
            refused("example 0: every label is forbidden", best_labels, space, scores)
        else:
            a, b, c = best_labels(space, scores)
            assert node[0, a] + table[a, b] + node[1, b] + table[b, c] + node[2, c] == best
    assert 30 < forbidden < 270


def test_odd_surrogates_and_shared_scores_are_refused_by_name():
    """Found by the fuzzer: both were AttributeErrors."""
    space, scores, labels = random_batch("chain", np.random.default_rng(0))
    for surrogate in (3, None):
        with pytest.raises(TypeError, match="surrogate is .*expected a name"):
            value_and_gradient(space, scores, labels, surrogate)
    scores.shared = range(3)
    for call in (lambda: argmax(space, scores), lambda: value_and_gradient(space, scores, labels)):
        refused("scores: shared is range, expected a dict", call, error=TypeError)


def test_masked_scores_gradients_in_the_scores_and_bad_seeds_are_refused():
    space = score_space("chain", 2)
    examples = space.pack_sizes([2])
    node = np.eye(2)
    masked = Scores(np.ma.array(node, mask=[[True, False], [False, False]]), examples=examples)
    with pytest.raises(TypeError, match="the block 'node' is a masked array.* -inf forbids"):
        argmax(space, masked)
    table = np.zeros((2, 2))
    plain = Scores(node, {"transition": table}, examples=examples)
    for out in (
        Scores(node, {"transition": np.zeros((2, 2))}, examples=examples),
        Scores(np.zeros((2, 2)), {"transition": table}, examples=examples),
        Scores(table, {"transition": np.zeros((2, 2))}, examples=examples),
    ):
        with pytest.raises(ValueError, match="out: block .* lies in the memory of the scores"):
            value_and_gradient(space, plain, np.array([0, 1]), out=out)
    both = np.zeros((2, 4))  # scores and gradient beside each other are two arrays
    both[:, :2] = node
    beside = Scores(both[:, :2], examples=examples)
    value_and_gradient(space, beside, np.array([0, 1]), out=Scores(np.ones((2, 2))))
    for seed in (-1, 1.5, "a"):
        with pytest.raises(ValueError, match="random_state is .*, expected None, an integer >= 0"):
            samples(space, plain, 2, random_state=seed)
