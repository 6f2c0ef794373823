"""structsolve.batch: surrogates, labels and marginals from given scores."""

import copy
import pickle

import numpy as np
import pytest
from batch_cases import KINDS, SURROGATES, random_batch, theta_of
from checks import refused

from structsolve import Examples, get_structure, registry
from structsolve.batch import (
    Scores,
    argmax,
    encode,
    k_best,
    marginals,
    marginals_vjp,
    samples,
    score_space,
    value_and_gradient,
)
from structsolve.batch.binding import binding_of
from structsolve.lp import ask_oracle
from structsolve.structure import calls
from structsolve.structure.ask import ask_parts, ask_power, ask_projection, make_layout
from structsolve.surrogates.calls import cut
from structsolve.surrogates.task import Task


def reference(space, scores, labels, surrogate, loss="hamming", weights=None):
    """Return values and gradients, example by example, from the surrogate's cuts."""
    examples = scores.examples
    examples.labels = labels
    task = Task(space, examples, loss)
    bound = registry.default().make("surrogates", surrogate).bind(task)
    examples.labels = None
    values, dense = [], []
    for i in range(examples.n):
        theta = theta_of(space, scores, task.layout, i)
        truth = labels[examples.label_offsets[i] : examples.label_offsets[i + 1]]
        answer = cut(bound, i, theta, truth)
        gradient = np.zeros(len(theta))
        np.subtract.at(gradient, answer.index, answer.value)
        values.append(answer.bound)
        dense.append(gradient * (1 if weights is None else weights[i]))
    return np.array(values), dense


def blocks_of(space, scores, dense):
    """Return arrays of gradients: rows in their places, shared blocks summed."""
    examples, layout = scores.examples, space.layout
    node, edge = (None if x is None else np.zeros(x.shape) for x in (scores.node, scores.edge))
    shared = {name: np.zeros(array.shape) for name, array in scores.shared.items()}
    edges = np.zeros(examples.n + 1, int) if edge is None else examples.edge_offsets
    rows = examples.offsets if scores.rows is None else scores.rows
    edge_rows = edges if scores.edge_rows is None else scores.edge_rows
    for i, theta in enumerate(dense):
        n, m = int(np.diff(examples.offsets)[i]), int(np.diff(edges)[i])
        for name, view in layout.theta_views(theta, n, m).items():
            kind = layout.block(name).kind
            if kind == "shared":
                shared[name] += view
            elif kind == "node":
                node[rows[i] : rows[i] + n] = view
            else:
                edge[edge_rows[i] : edge_rows[i] + m] = view
    return node, shared, edge


def assert_equal_blocks(gradient, expected, rtol=1e-9, atol=1e-9):
    node, shared, edge = expected
    for got, wanted in ((gradient.node, node), (gradient.edge, edge)):
        assert (got is None) == (wanted is None)
        if got is not None:
            np.testing.assert_allclose(got, wanted, rtol, atol)
    assert gradient.shared.keys() == shared.keys()
    for name, wanted in shared.items():
        np.testing.assert_allclose(gradient.shared[name], wanted, rtol, atol)


# No exact marginals: #P-hard, or unknown.
NO_MARGINALS = {"ranking", "matching", "flow"}
NO_ENTROPY = NO_MARGINALS - {"ranking", "matching"}


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("kind", KINDS)
def test_equals_cuts_one_by_one(kind, surrogate):
    rng = np.random.default_rng(sum(map(ord, kind + surrogate)))
    for padded in (False, True, False):
        space, scores, labels = random_batch(kind, rng, n=5, padded=padded)
        if surrogate == "crf" and kind in NO_MARGINALS:
            refused("exact marginals", value_and_gradient, space, scores, labels, "crf")
            continue
        if surrogate == "unit-margin" and kind == "segments":
            continue  # other cuts into segments of one class have no wrong token
        weights = rng.normal(size=5)
        values, gradient = value_and_gradient(space, scores, labels, surrogate, weights=weights)
        expected, dense = reference(space, scores, labels, surrogate, weights=weights)
        np.testing.assert_allclose(values, expected, 1e-9, 1e-9)
        assert_equal_blocks(gradient, blocks_of(space, scores, dense))


@pytest.mark.parametrize("kind", KINDS)
def test_labels(kind):
    rng = np.random.default_rng(3)
    for padded in (False, True):
        space, scores, _ = random_batch(kind, rng, padded=padded)
        layout = make_layout(space, scores.examples)
        labels, values, bounds = argmax(space, scores)
        best, worth = k_best(space, scores, 3)
        oracle, kbest = ask_oracle(space)(layout), ask_power(space, "kbest")(layout)
        for i in range(4):
            theta = theta_of(space, scores, layout, i)
            label, value, bound = calls.argmax(oracle, i, theta)
            mine = labels[scores.examples.label_offsets[i] : scores.examples.label_offsets[i + 1]]
            assert mine.tolist() == label.tolist()
            assert (values[i], bounds[i]) == (value, bound)
            several, scored = calls.kbest(kbest, i, theta, 3)
            assert best[i].tolist() == several.tolist()
            assert worth[i].tolist() == scored.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_parts_of_labels(kind):
    rng = np.random.default_rng(5)
    for padded in (False, True):
        space, scores, flat = random_batch(kind, rng, padded=padded)
        examples = scores.examples
        layout = make_layout(space, examples)
        parts, answer = ask_parts(space)(layout), encode(space, scores, flat)
        dense = []
        for i in range(4):
            label = flat[examples.label_offsets[i] : examples.label_offsets[i + 1]]
            index, value = calls.encode(parts, i, label)
            own = np.zeros(layout.sizes(i)[0])
            np.add.at(own, index, value)
            dense.append(own)
            for block in space.layout.shared:
                view = space.layout.theta_views(own, 0, 0)[block.name]
                assert np.array_equal(answer.shared[block.name][i], view)
        node, _, edge = blocks_of(space, scores, dense)
        assert np.array_equal(answer.node, node)
        assert (answer.edge is None) == (edge is None)
        assert edge is None or np.array_equal(answer.edge, edge)
    with pytest.raises(ValueError, match="example 0: its label holds -1"):
        encode(space, scores, np.full_like(flat, -1))


def test_shared_blocks_of_single_examples():
    rng = np.random.default_rng(6)
    space, scores, _ = random_batch("chain", rng, n=4)
    each = {name: rng.normal(size=(4, *array.shape)) for name, array in scores.shared.items()}
    own = Scores(scores.node, each, None, scores.examples)
    labels, values, _ = argmax(space, own)
    for i in range(4):
        shared = {name: array[i] for name, array in each.items()}
        one, worth, _ = argmax(space, Scores(scores.node, shared, None, scores.examples))
        a, z = scores.examples.label_offsets[i : i + 2]
        assert one[a:z].tolist() == labels[a:z].tolist() and worth[i] == values[i]
    each["transition"] = each["transition"][:3]
    refused("'transition'", argmax, space, own)


@pytest.mark.parametrize(
    ("kind", "surrogate"),
    [*((k, "margin") for k in KINDS), ("chain", "crf"), ("forests", "crf"), ("grammar", "crf")],
)
def test_losses_with_shared_blocks_of_single_examples(kind, surrogate):
    rng = np.random.default_rng(8)
    space, scores, labels = random_batch(kind, rng, n=4)
    each = {name: rng.normal(size=(4, *array.shape)) for name, array in scores.shared.items()}
    own = Scores(scores.node, each, scores.edge, scores.examples)
    weights = np.array([1.0, -2.0, 0.5, 3.0])
    for more in ({}, {"each": True}, {"out": copy.deepcopy(own)}):
        values, gradient = value_and_gradient(
            space, own, labels, surrogate, weights=weights, **more
        )
        for i in range(4):  # the others' weights are 0
            shared = {name: array[i] for name, array in each.items()}
            one = Scores(scores.node, shared, scores.edge, scores.examples)
            mine = np.where(np.arange(4) == i, weights, 0)
            told, alone = value_and_gradient(space, one, labels, surrogate, weights=mine)
            assert told[i] == values[i]
            rows = slice(*scores.examples.offsets[i : i + 2])
            assert np.array_equal(gradient.node[rows], alone.node[rows])
            for name, array in alone.shared.items():
                assert np.array_equal(gradient.shared[name][i], array)


@pytest.mark.parametrize("kind", sorted({*KINDS} - NO_ENTROPY))
def test_marginals(kind):
    rng = np.random.default_rng(3)
    for padded in (False, True):
        space, scores, _ = random_batch(kind, rng, padded=padded)
        layout = make_layout(space, scores.examples)
        projection = ask_projection(space, "entropy")(layout)
        answer, log_partition = marginals(space, scores)
        dense = []
        for i in range(4):
            own = calls.project(projection, i, theta_of(space, scores, layout, i))
            dense.append(own[0])
            assert log_partition[i] == own[2]
            for block in space.layout.shared:
                views = space.layout.theta_views(own[0], 0, 0)
                np.testing.assert_array_equal(answer.shared[block.name][i], views[block.name])
        node, _, edge = blocks_of(space, scores, dense)
        np.testing.assert_array_equal(answer.node, node)
        if edge is not None:
            np.testing.assert_array_equal(answer.edge, edge)


@pytest.mark.parametrize("name", ["entropy", "euclidean"])
@pytest.mark.parametrize("kind", sorted({*KINDS} - NO_ENTROPY))
def test_derivatives_of_marginals(kind, name):
    rng = np.random.default_rng(14)
    space, scores, _ = random_batch(kind, rng, n=3, padded=True)
    scores.node += rng.normal(size=scores.node.shape)  # no ties: SparseMAP has kinks there
    answer, _ = marginals(space, scores, name)
    directions, ahead, back = (copy.deepcopy(given) for given in (answer, scores, scores))
    for array in (directions.node, directions.edge, *directions.shared.values()):
        if array is not None:
            array[...] = rng.normal(size=array.shape)
    if not binding_of(space, scores).projection(name).has_derivative:
        with pytest.raises(ValueError, match=f"has no derivative of its projection '{name}'"):
            marginals_vjp(space, scores, directions, name)
        return
    product = marginals_vjp(space, scores, directions, name)
    step = 1e-5
    steps = [("node", None), *(("shared", key) for key in scores.shared)]
    steps += [("edge", None)] if scores.edge is not None else []
    total, expected = 0.0, 0.0
    for what, key in steps:
        here, there, gradient = (getattr(given, what) for given in (ahead, back, product))
        if key is not None:
            here, there, gradient = here[key], there[key], gradient[key]
        move = rng.normal(size=here.shape)
        here += step * move
        there -= step * move
        total += (gradient * move).sum()
    ends = [marginals(space, given, name)[0] for given in (ahead, back)]
    for what, key in steps:
        first, second, along = (getattr(given, what) for given in (*ends, directions))
        if key is not None:
            first, second, along = first[key], second[key], along[key]
        mine = (first - second) * along
        expected += mine.sum() / (2 * step)
    assert abs(total - expected) < 1e-5 * (1 + abs(expected))
    one, two = (marginals_vjp(space, scores, directions, name, n_jobs=jobs) for jobs in (1, 3))
    assert one.node.tobytes() == two.node.tobytes()


@pytest.mark.parametrize("kind", ["chain", "forests", "dependency"])
def test_sparse_marginals_and_samples_agree_with_surrogates(kind):
    # SparseMAP's gradient is its marginals minus the truth; samples have the mean of the marginals.
    rng = np.random.default_rng(6)
    space, scores, labels = random_batch(kind, rng, n=2)
    answer, _ = marginals(space, scores, "euclidean")
    _, gradient = value_and_gradient(space, scores, labels, "sparsemap")
    parts = ask_parts(space)(make_layout(space, scores.examples))
    exact, _ = marginals(space, scores)
    drawn = samples(space, scores, 4000, random_state=0)
    assert drawn.tobytes() == samples(space, scores, 4000, random_state=0, n_jobs=2).tobytes()
    for i in range(2):
        rows = slice(*scores.examples.offsets[i : i + 2])
        where = slice(*scores.examples.label_offsets[i : i + 2])
        nodes = np.zeros(parts.layout.sizes(i)[0])
        index, value = calls.encode(parts, i, labels[where])
        np.add.at(nodes, index, value)
        views = space.layout.theta_views(nodes, rows.stop - rows.start, 0)
        name = space.layout.node.name
        np.testing.assert_allclose(answer.node[rows] - views[name], gradient.node[rows], 0, 1e-9)
        nodes[:] = 0
        for label in drawn[:, where]:
            index, value = calls.encode(parts, i, np.ascontiguousarray(label))
            np.add.at(nodes, index, value / 4000)
        np.testing.assert_allclose(views[name], exact.node[rows], 0, 0.05)


@pytest.mark.parametrize("kind", ["chain with edges", "dependency", "multilabel with pairs"])
@pytest.mark.parametrize("surrogate", ["margin", "crf"])
def test_threads_change_no_bit(kind, surrogate):
    rng = np.random.default_rng(4)
    space, scores, labels = random_batch(kind, rng, n=50)
    scores.node += rng.normal(size=scores.node.shape)
    weights = rng.normal(size=50)
    first = None
    for n_jobs in (1, 2, 3, 4):
        answer = value_and_gradient(
            space, scores, labels, surrogate, weights=weights, n_jobs=n_jobs
        )
        arrays = [answer[0], answer[1].node, answer[1].edge, *answer[1].shared.values()]
        bits = [b"" if array is None else array.tobytes() for array in arrays]
        first = bits if first is None else first
        assert bits == first


def test_float32():
    rng = np.random.default_rng(7)
    for kind in ("chain with edges", "tree", "ranking", "dependency"):
        space, scores, labels = random_batch(kind, rng, dtype=np.float32)
        shared = {name: array.astype(np.float64) for name, array in scores.shared.items()}
        edge = None if scores.edge is None else scores.edge.astype(np.float64)
        wide = Scores(scores.node.astype(np.float64), shared, edge, scores.examples)
        for surrogate in ("margin", "sparsemap"):
            values, gradient = value_and_gradient(space, scores, labels, surrogate)
            expected, exact = value_and_gradient(space, wide, labels, surrogate)
            assert values.tolist() == expected.tolist()  # inside all is double
            assert gradient.node.dtype == np.float32
            np.testing.assert_array_equal(gradient.node, exact.node.astype(np.float32))
            for name, array in exact.shared.items():
                assert gradient.shared[name].dtype == np.float32
                np.testing.assert_array_equal(gradient.shared[name], array.astype(np.float32))
        assert marginals(space, scores)[0].node.dtype == np.float32


def test_gradient_into_given_arrays():
    rng = np.random.default_rng(8)
    space, scores, labels = random_batch("chain", rng, padded=True)
    _, expected = value_and_gradient(space, scores, labels, "crf")
    ones = {name: np.ones_like(array) for name, array in scores.shared.items()}
    out = Scores(np.ones_like(scores.node), ones)
    _, gradient = value_and_gradient(space, scores, labels, "crf", out=out)
    assert gradient is out
    np.testing.assert_array_equal(out.node, expected.node)  # rows between examples are 0
    for name, array in expected.shared.items():
        np.testing.assert_array_equal(out.shared[name], array)
    with pytest.raises(ValueError, match=r"out: block 'node' has shape \(1, 3\), expected"):
        value_and_gradient(space, scores, labels, out=Scores(np.ones((1, 3)), ones))
    strided = np.ones((len(scores.node), 6))[:, ::2]
    with pytest.raises(ValueError, match="out: the array of block 'node' is read-only or not"):
        value_and_gradient(space, scores, labels, out=Scores(strided, ones))


def test_strided_scores_and_missing_blocks():
    rng = np.random.default_rng(9)
    space, scores, labels = random_batch("chain with edges", rng)
    zeros = {name: np.zeros_like(array) for name, array in scores.shared.items()}
    full = Scores(scores.node, zeros, np.zeros_like(scores.edge), scores.examples)
    wide = np.repeat(scores.node, 2, axis=1)[:, ::2]
    bare = Scores(wide, examples=scores.examples)
    one, two = (value_and_gradient(space, given, labels, "crf") for given in (full, bare))
    assert one[0].tolist() == two[0].tolist()
    np.testing.assert_array_equal(one[1].node, two[1].node)
    assert two[1].edge is None and two[1].shared == {}


def test_blocks_of_none_are_missing():
    space, scores, labels = random_batch("chain", np.random.default_rng(3), 3)
    name = sorted(scores.shared)[0]
    bare = copy.copy(scores)
    bare.shared = {name: None}
    scores.shared = {}
    for call in (encode, lambda *given: value_and_gradient(*given)[1]):
        given, missing = call(space, bare, labels), call(space, scores, labels)
        assert given.shared == missing.shared == {}
        np.testing.assert_array_equal(given.node, missing.node)


def test_labels_are_arguments_and_operators_are_kept(monkeypatch):
    rng = np.random.default_rng(10)
    space, scores, labels = random_batch("chain", rng, n=6)
    bound = []
    make_parts = type(space).make_parts

    def counted(self):
        bind = make_parts(self)
        return lambda layout: bound.append(1) or bind(layout)

    monkeypatch.setattr(type(space), "make_parts", counted)
    value_and_gradient(space, scores, labels)
    assert len(bound) == 1
    # The same sizes in other arrays, which are overwritten afterwards.
    offsets = scores.examples.offsets.copy()
    same = Scores(scores.node, scores.shared, examples=Examples(offsets))
    other = (labels + 1) % 3
    first = value_and_gradient(space, same, other)
    assert len(bound) == 1
    expected, _ = reference(space, scores, other, "margin")
    np.testing.assert_allclose(first[0], expected)
    bound.clear()
    offsets[:] = 10**6
    assert value_and_gradient(space, scores, labels)[0].tolist() != first[0].tolist()
    assert not bound
    value_and_gradient(space, scores, labels, "slack")  # reads labels: bound to them
    count = len(bound)
    value_and_gradient(space, scores, other, "slack")
    expected, _ = reference(space, scores, other, "slack")
    np.testing.assert_allclose(value_and_gradient(space, scores, other, "slack")[0], expected)
    assert count == 1


def test_answers_do_not_depend_on_earlier_ones():
    rng = np.random.default_rng(11)
    for surrogate in ("slack", "max-min", "sparsemap"):
        space, scores, labels = random_batch("chain", rng)
        alone = value_and_gradient(space, scores, labels, surrogate)
        for _ in range(3):
            more = Scores(rng.normal(size=scores.node.shape), scores.shared, None, scores.examples)
            value_and_gradient(space, more, labels, surrogate)
        again = value_and_gradient(space, scores, labels, surrogate)
        assert again[0].tobytes() == alone[0].tobytes()
        assert again[1].node.tobytes() == alone[1].node.tobytes()


def test_spaces_with_kept_operators_are_pickled_and_copied():
    space, scores, labels = random_batch("chain", np.random.default_rng(12))
    values, _ = value_and_gradient(space, scores, labels)
    for copied in (pickle.loads(pickle.dumps(space)), copy.deepcopy(space)):
        assert value_and_gradient(copied, scores, labels)[0].tolist() == values.tolist()


def test_spaces_of_trained_models():
    X = [np.eye(2), np.eye(2)[:1]]
    space, examples = get_structure("chain").make_space(X, [["a", "b"], ["b"]])
    scores = Scores(np.arange(6.0).reshape(3, 2), examples=examples)
    assert argmax(space, scores)[0].tolist() == [1, 1, 1]


def test_linear_programs():
    rng = np.random.default_rng(13)
    space, scores, labels = random_batch("multilabel with pairs", rng)
    exact, _ = value_and_gradient(space, scores, labels, "margin")
    for surrogate in ("margin", "lp"):
        relaxed, _ = value_and_gradient(space, scores, labels, surrogate, oracle="lp")
        assert (relaxed >= exact - 1e-6).all()
    best = argmax(space, scores)[1]
    np.testing.assert_allclose(argmax(space, scores, oracle="ilp")[1], best, atol=1e-6)


def test_shared_scores_may_be_in_any_order():
    rng = np.random.default_rng(0)
    space = score_space("chain", 3)
    table, node, examples = rng.normal(size=(3, 3)), np.ones((4, 3)), space.pack_sizes([3, 1])
    direction = Scores(rng.normal(size=(4, 3)), examples=examples)
    answers = []
    for given in (table, np.asfortranarray(table), np.repeat(table, 2, axis=1)[:, ::2]):
        scores = Scores(node, {"transition": given}, examples=examples)
        gradient = value_and_gradient(space, scores, np.zeros(4, int), "crf")[1]
        turned = marginals_vjp(space, scores, direction)
        answers.append([gradient.shared["transition"], turned.shared["transition"]])
    assert answers[0][0].any() and answers[0][1].any()
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], answers[2])
