"""Losses, labels and marginals of JAX arrays, compared with torch, whose tests enumerate labels."""

import copy
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused

jax = pytest.importorskip("jax", reason="needs the extra [jax]")
torch = pytest.importorskip("torch", reason="needs the extra [torch]")

import jax.numpy as jnp  # noqa: E402
from doc_code import directives  # noqa: E402
from jax.test_util import check_grads  # noqa: E402
from jax_cases import arrays, given  # noqa: E402
from torch_cases import CASES, GIBBS  # noqa: E402

import structsolve.jax as ours  # noqa: E402
import structsolve.torch as theirs  # noqa: E402
from structsolve.batch import each_size  # noqa: E402
from structsolve.jax import callback, host  # noqa: E402


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def equal(mine, other):
    np.testing.assert_allclose(np.asarray(mine), np.asarray(other.detach()), atol=1e-12)


@pytest.mark.parametrize("lead", [(2, 1), (2,)], ids=["padded", "packed"])
def test_sentences_of_one_word_have_no_edges(lead):
    scores = {"node": jnp.arange(6.0).reshape(*lead, 3), "edge": jnp.zeros((*lead[:-1], 0, 3, 3))}
    labels, lengths = jnp.zeros(lead, int), jnp.ones(2, int)
    loss = ours.StructuredLoss("chain", "crf")
    move = jax.tree.map(jnp.ones_like, scores)
    for of in (loss, jax.jit(loss)):
        value, slope = jax.jvp(lambda s: of(s, labels, lengths), (scores,), (move,))  # noqa: B023
        assert value == pytest.approx(np.log(np.exp([0, 1, 2]).sum()))
        assert abs(slope) < 1e-12
    assert ours.decode("chain", scores, lengths).ravel().tolist() == [2, 2]


@pytest.mark.parametrize("surrogate", ["margin", "crf"])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_examples_may_have_shared_blocks_of_their_own(surrogate, reduction):
    rng = np.random.default_rng(2)
    node, tables = rng.normal(size=(3, 4, 2)), rng.normal(size=(3, 2, 2))
    labels, lengths = rng.integers(2, size=(3, 4)), jnp.array([4, 2, 1])
    loss = ours.StructuredLoss("chain", surrogate, reduction=reduction)
    layer = theirs.StructuredLoss("chain", surrogate, reduction=reduction)
    leaves = [torch.tensor(a, requires_grad=True) for a in (node, tables)]
    wanted = layer(
        dict(zip(("node", "transition"), leaves)), torch.tensor(labels), np.asarray(lengths)
    )

    def own(node, tables):
        return loss({"node": node, "transition": tables}, labels, lengths)

    equal(jax.jit(own)(node, tables), wanted)
    slopes = jax.grad(lambda *a: own(*a).sum(), (0, 1))(node, tables)
    for slope, theirs_ in zip(slopes, torch.autograd.grad(wanted.sum(), leaves)):
        equal(slope, theirs_)
    both = jax.vmap(own)(np.stack([node, 2 * node]), np.stack([tables, tables]))
    equal(both[0], wanted)
    if surrogate == "crf":
        check_grads(own, (node, tables), order=2, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_losses_and_gradients(name):
    case = CASES[name](np.random.default_rng(7))
    surrogate = "crf" if name in GIBBS else "slack"
    lengths, more = given(case)
    factors = {"mean": 2.5, "sum": 2.5}
    factors["none"] = np.random.default_rng(8).normal(size=len(case.truths))
    layers, losses = (
        {r: module.StructuredLoss(case.structure, surrogate, reduction=r) for r in factors}
        for module in (theirs, ours)
    )

    def total(reduction, scores, labels, lengths):
        return (losses[reduction](scores, labels, lengths, **more) * factors[reduction]).sum()

    def every(*args):
        return {r: jax.value_and_grad(partial(total, r))(*args) for r in factors}

    labels = jnp.asarray(case.labels.numpy())
    expected = {}
    for reduction, layer in layers.items():
        losses_of_rows = layer(case.scores, case.labels, **case.given)
        value = (losses_of_rows * torch.as_tensor(factors[reduction])).sum()
        expected[reduction] = value, torch.autograd.grad(value, list(case.scores.values()))
    for function in (every, jax.jit(every)):  # one graph for all is compiled in less time
        for reduction, (value, gradient) in function(arrays(case), labels, lengths).items():
            equal(value, expected[reduction][0])
            for block, slope in zip(case.scores, expected[reduction][1], strict=True):
                equal(gradient[block], slope)


@pytest.mark.parametrize("name", CASES)
def test_best_labels(name):
    case = CASES[name](np.random.default_rng(9))
    lengths, more = given(case)
    expected = theirs.decode(case.structure, case.scores, **case.given)
    loss = ours.StructuredLoss(case.structure)
    for decode in (ours.decode, jax.jit(ours.decode, static_argnums=0)):
        if more and decode is not ours.decode:
            continue  # graphs are no arrays
        equal(decode(loss, arrays(case), lengths, **more), expected)


@pytest.mark.parametrize(
    ("name", "projection"), [*((n, "entropy") for n in GIBBS), ("ranking", "euclidean")]
)
def test_marginals_and_their_derivatives(name, projection):
    case = CASES[name](np.random.default_rng(10), n=2)
    lengths, more = given(case)
    function = ours.Marginals(case.structure, projection)
    answer = function(arrays(case), lengths, **more)
    expected = theirs.Marginals(case.structure, projection)(case.scores, **case.given)
    for block, tensor in expected.items():
        equal(answer[block], tensor)
    check_grads(
        lambda scores: function(scores, lengths, **more),
        (arrays(case),),
        1,
        modes=["rev"],
        atol=1e-4,
        rtol=1e-4,
    )


@pytest.fixture
def host_calls(monkeypatch):
    """Counts calls of native code."""
    calls, original = [], host.callback

    def counting(function, *args):
        def run(*given):
            calls.append(1)
            return function(*given)

        return original(run, *args)

    monkeypatch.setattr(host, "callback", counting)
    return calls


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_jax_without_buffers_and_devices_get_the_same_bits(monkeypatch, dtype):
    rng = np.random.default_rng(31)
    scores = jnp.asarray(rng.normal(size=(2, 3, 4)).astype(dtype))
    tables, labels = jnp.asarray(rng.normal(size=(3, 4, 4)).astype(dtype)), np.zeros((2, 3), int)

    def both():
        loss = ours.StructuredLoss("chain", "crf")
        of = jax.value_and_grad(lambda t: loss({"node": scores, "transition": t}, labels))
        mapped = jax.jit(jax.vmap(of))(tables)
        return jax.tree.leaves((of(tables[0]), jax.jit(of)(tables[0]), mapped))

    fast = both()
    monkeypatch.setattr(callback, "NATIVE", False)
    for a, b in zip(fast, both(), strict=True):
        assert a.dtype == dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("mapped", "reduction"),
    [
        ("all", "none"),
        ("all", "mean"),
        ("node", "sum"),
        ("transition", "mean"),
        ("lengths", "none"),
    ],
)
def test_vmap_is_one_host_call(mapped, reduction, host_calls):
    rng = np.random.default_rng(11)
    node, table = rng.normal(size=(5, 2, 4, 3)), rng.normal(size=(5, 3, 3))
    labels, lengths = rng.integers(3, size=(5, 2, 4)), rng.integers(1, 5, size=(5, 2))
    every = {"node": node, "transition": table, "labels": labels, "lengths": lengths}
    one = {name: jnp.asarray(a[0]) for name, a in every.items()}
    chosen = list(every) if mapped == "all" else [mapped]
    many = {name: jnp.asarray(a) if name in chosen else one[name] for name, a in every.items()}
    axes = {name: 0 if name in chosen else None for name in every}
    loss = ours.StructuredLoss("chain", "crf", reduction=reduction)

    def value(given):
        scores = {name: given[name] for name in ("node", "transition")}
        return (loss(scores, given["labels"], given["lengths"]) ** 2).sum()

    def gradient(given):
        floats = {name: given[name] for name in ("node", "transition")}
        return jax.grad(lambda own: value({**given, **own}))(floats)

    def best(given):
        scores = {name: given[name] for name in ("node", "transition")}
        return ours.decode(loss, scores, given["lengths"])

    def shares(given):
        scores = {name: given[name] for name in ("node", "transition")}
        return ours.Marginals("chain")(scores, given["lengths"])

    rows = [{**one, **{name: jnp.asarray(every[name][i]) for name in chosen}} for i in range(5)]
    for function, most in ((value, 1), (gradient, 2), (best, 1), (shares, 1)):
        expected = jax.tree.map(lambda *a: np.stack(a), *map(function, rows))
        for way in (jax.vmap(function, (axes,)), jax.jit(jax.vmap(function, (axes,)))):
            host_calls.clear()
            answer = jax.block_until_ready(way(many))
            assert len(host_calls) <= most
            jax.tree.map(
                lambda a, b: np.testing.assert_allclose(a, b, atol=1e-12), answer, expected
            )


def test_vmap_over_examples_and_vmap_of_vmap(host_calls):
    rng = np.random.default_rng(12)
    scores, labels = rng.normal(size=(3, 2, 4, 3)), rng.integers(3, size=(3, 2, 4))
    table = jnp.asarray(rng.normal(size=(3, 3)))
    loss = ours.StructuredLoss("chain", "margin")

    def of_one(node, labels, table):
        return loss({"node": node[None], "transition": table}, labels[None])

    def total(table):
        twice = jax.vmap(jax.vmap(of_one, (0, 0, None)), (0, 0, None))
        return twice(jnp.asarray(scores), jnp.asarray(labels), table).sum()

    def packed(table):
        whole = {"node": jnp.asarray(scores.reshape(6, 4, 3)), "transition": table}
        return 6 * loss(whole, jnp.asarray(labels.reshape(6, 4)))

    expected = jax.value_and_grad(packed)(table)
    host_calls.clear()
    value, gradient = jax.jit(jax.value_and_grad(total))(table)
    assert len(host_calls) == 1
    np.testing.assert_allclose(value, expected[0])
    np.testing.assert_allclose(gradient, expected[1], atol=1e-12)
    hessian = ours.StructuredLoss("chain", "crf", reduction="none")
    shapes = jnp.asarray(scores), jnp.asarray(labels)
    ways = jax.vmap(jax.hessian(lambda s, y: (hessian({"node": s, "transition": table}, y)).sum()))
    one = jax.hessian(lambda s, y: (hessian({"node": s, "transition": table}, y)).sum())
    np.testing.assert_allclose(ways(*shapes)[1], one(shapes[0][1], shapes[1][1]), atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_vmap_of_every_structure(name, host_calls):
    cases = [CASES[name](np.random.default_rng(13)) for _ in range(2)]
    lengths, more = given(cases[0])
    surrogate = "crf" if name in GIBBS else "slack"
    loss = ours.StructuredLoss(cases[0].structure, surrogate, reduction="none")
    labels = jnp.asarray(cases[0].labels.numpy())
    many = {k: jnp.stack([a, -a, 2 * a]) for k, a in arrays(cases[0]).items()}

    def function(scores):
        return loss(scores, labels, lengths, **more)

    def best(scores):
        return ours.decode(loss, scores, lengths, **more)

    expected = [function(jax.tree.map(lambda a, i=i: a[i], many)) for i in range(3)]
    labels_of = [best(jax.tree.map(lambda a, i=i: a[i], many)) for i in range(3)]
    host_calls.clear()
    np.testing.assert_allclose(jax.vmap(function)(many), expected, atol=1e-9)
    assert len(host_calls) == 1
    np.testing.assert_array_equal(jax.vmap(best)(many), labels_of)


def test_packed_batches_and_single_precision():
    rng = np.random.default_rng(12)
    scores = jnp.asarray(rng.normal(size=(7, 3)), jnp.float32)
    labels, lengths = jnp.asarray(rng.integers(3, size=7)), jnp.asarray([3, 4])
    loss = ours.StructuredLoss("chain", "crf", reduction="none")
    values = jax.jit(loss)(scores, labels, lengths)
    assert values.shape == (2,) and values.dtype == jnp.float32
    alone = [
        loss(scores[None, :3], labels[None, :3])[0],
        loss(scores[None, 3:], labels[None, 3:])[0],
    ]
    np.testing.assert_allclose(values, alone, rtol=1e-6)
    half = ours.StructuredLoss("chain", "crf", reduction="none")(
        scores.astype(jnp.bfloat16), labels, lengths
    )
    np.testing.assert_allclose(np.asarray(half), values, rtol=0.02)


@pytest.mark.parametrize(
    ("scores", "labels", "lengths", "match"),
    [
        (np.zeros((2, 3, 2)), np.zeros((2, 3), int), [4, 3], "example 0: its length is 4"),
        (np.zeros((2, 3, 2)), np.zeros((2, 3)), [3, 3], "labels: found float64"),
        (np.zeros((2, 3, 2), int), np.zeros((2, 3), int), [3, 3], "is int64, expected an array of"),
        ({"nodes": np.zeros((2, 3, 2))}, np.zeros((2, 3), int), None, "found the block 'nodes'"),
        (np.full((2, 3, 2), np.nan), np.zeros((2, 3), int), [3, 3], "example 0: the block 'node'"),
        (np.zeros((2, 3, 2)), np.full((2, 3), 5), [3, 3], "example 0"),
    ],
)
def test_what_does_not_fit(scores, labels, lengths, match):
    scores = jax.tree.map(jnp.asarray, scores)
    with pytest.raises((ValueError, TypeError, jax.errors.JaxRuntimeError), match=match):
        ours.StructuredLoss("chain")(scores, jnp.asarray(labels), lengths)


def test_trees_over_spans_shorter_than_the_room():
    scores = jnp.array(np.random.default_rng(0).normal(size=(2, 3, 3, 2)))
    best = ours.decode("cky", scores, jnp.array([2, 1]))
    assert best.shape == (2, 5)
    assert best[1].tolist()[1:] == [-1] * 4


def test_what_is_no_array_is_named():
    loss, scores, labels = ours.StructuredLoss("chain"), jnp.zeros((1, 2, 2)), np.zeros((1, 2), int)
    for wrong, words in (
        ((sp.coo_matrix((1, 2)), labels), "scores: the block 'node' is a coo_matrix"),
        ((scores, sp.coo_matrix(labels)), "labels is a coo_matrix, expected an array"),
        ((scores, labels, "two"), "lengths is a str, expected an array"),
    ):
        refused(words, loss, *wrong, error=TypeError)


def test_labels_that_are_all_forbidden_are_refused_by_decode():
    scores = jnp.asarray(np.full((1, 3, 2), -np.inf))
    with pytest.raises(jax.errors.JaxRuntimeError, match="example 0: every label is forbidden"):
        jax.block_until_ready(ours.decode("chain", scores))
    assert ours.decode("chain", scores.at[0, :, 1].set(0.0)).tolist() == [[1, 1, 1]]


def test_settings_that_do_not_exist():
    refused("reduction is 'median'", ours.StructuredLoss, "chain", reduction="median")
    with pytest.raises(ValueError, match="lengths= for a packed one"):
        jax.jit(lambda scores, lengths: ours.decode("chain", scores, lengths))(
            jnp.zeros((5, 2)), jnp.asarray([2, 3])
        )


def test_only_this_package_imports_jax():
    command = "import sys, structsolve, structsolve.batch; print('jax' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True)
    assert answer.stdout.strip() == "False", answer.stderr


def test_the_page():
    space = {}
    for line, _, code in directives(Path(__file__).parents[2] / "docs" / "jax.rst", "python"):
        exec(compile("\n" * (line - 1) + code, "docs/jax.rst", "exec"), space)
    assert space["best"].tolist()[1][2] == -1


@pytest.mark.parametrize("surrogate", ["crf", "margin"])
def test_new_lengths_answer_as_operators_of_the_batch(surrogate, monkeypatch):
    rng = np.random.default_rng(10)
    layers = [ours.StructuredLoss("chain", surrogate) for _ in range(2)]
    monkeypatch.setattr(each_size, "LONGEST", 5)
    for _ in range(8):
        scores = {"node": rng.normal(size=(3, 7, 2)), "transition": rng.normal(size=(2, 2))}
        scores = {name: jnp.asarray(array) for name, array in scores.items()}
        tags, lengths = rng.integers(0, 2, (3, 7)), rng.integers(1, 8, 3)
        answers = []
        for layer, longest in zip(layers, (5, 0)):
            with monkeypatch.context() as own:
                own.setattr(each_size, "LONGEST", longest)
                value, gradient = jax.value_and_grad(layer)(scores, tags, lengths)
            answers.append([value, gradient["node"], gradient["transition"]])
        for one, other in zip(*answers, strict=True):
            assert np.array_equal(one, other)


CALLS = {
    "loss": lambda f, s, y: f["loss"](s, y),
    "gradient": lambda f, s, y: jax.grad(f["loss"])(s, y)["node"],
    "values": lambda f, s, y: f["each"](s, y),
    "marginals": lambda f, s, y: f["marginals"](s)["transition"],
    "labels": lambda f, s, y: ours.decode("chain", s),
    "labels by a function": lambda f, s, y: ours.decode(f["loss"], s, oracle="lp"),
    "number": lambda f, s, y: f["distribution"].entropy(s),
    "two": lambda f, s, y: f["distribution"].cross_entropy(s, dict(reversed(s.items()))),
    "least loss": lambda f, s, y: f["distribution"].least_loss(s),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_without_jit_are_compiled_once_for_each_form(name, monkeypatch):
    made, number_of = [], callback.number_of
    monkeypatch.setattr(callback, "number_of", lambda f: made.append(1) or number_of(f))
    functions = {
        "loss": ours.StructuredLoss("chain", "crf"),
        "each": ours.StructuredLoss("chain", reduction="none"),
        "marginals": ours.Marginals("chain"),
        "distribution": ours.Distribution("chain"),
    }
    rng, call = np.random.default_rng(4), CALLS[name]

    def batch(n):
        scores = {"node": rng.normal(size=(n, 3, 2)), "transition": rng.normal(size=(2, 2))}
        return jax.tree.map(jnp.asarray, scores), jnp.asarray(rng.integers(2, size=(n, 3)))

    for n in (13, 14):  # no other test has these
        made.clear()
        answers = []
        for scores, labels in (batch(n), batch(n)):
            answers.append(call(functions, scores, labels))
            expected = jax.jit(lambda s, y: call(functions, s, y))(scores, labels)
            np.testing.assert_array_equal(answers[-1], expected)
            if len(answers) == 1:
                once = len(made)
        assert not np.array_equal(*answers)
        assert len(made) == once + 1  # the compiled expectation of the second batch
    assert once == 2


def test_settings_may_change_between_calls_and_copies_have_their_own():
    scores, labels = jnp.asarray(np.random.default_rng(2).normal(size=(3, 2, 2))), np.zeros((3, 2))
    labels = labels.astype(int)
    loss = ours.StructuredLoss("chain", "crf", reduction="mean")
    mean = loss(scores, labels)
    for copied in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        copied.surrogate = "margin"
        assert float(copied(scores, labels)) != float(mean)
    loss.reduction = "none"
    np.testing.assert_allclose(loss(scores, labels).mean(), mean, rtol=1e-6)
    loss.reduction = "sum"
    np.testing.assert_allclose(loss(scores, labels) / 3, mean, rtol=1e-6)
    assert float(loss(scores, labels)) == float(loss(scores, labels, jnp.array([2, 2, 2])))
    refused("example 1: its length is 3", loss, scores, labels, [2, 3, 1])
    flat = scores.reshape(6, 2)
    assert ours.decode("chain", flat, [1, 3, 2]).shape == (6,)
    assert not np.array_equal(ours.decode("chain", flat, [6]), ours.decode("chain", -flat, [3, 3]))
