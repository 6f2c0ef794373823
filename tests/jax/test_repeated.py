"""Calls in turn of one compiled function: native objects are kept from one to the next."""

import warnings

import numpy as np
import pytest
from checks import in_threads

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

from structsolve import registry  # noqa: E402
from structsolve.batch.answers import Best  # noqa: E402
from structsolve.batch.numbers import Number  # noqa: E402
from structsolve.jax import Distribution, decode  # noqa: E402

K = 3
ERRORS = (jax.errors.JaxRuntimeError, ValueError)
CHAINS = Distribution("chain")


def tables(seed, n=9, length=6, dtype=np.float32):
    rng = np.random.default_rng(seed)
    shapes = {"node": (n, length, K), "transition": (K, K), "start": (K,)}
    return {name: jnp.asarray(rng.normal(size=s).astype(dtype)) for name, s in shapes.items()}


def tags(seed, n=9, length=6):
    return jnp.asarray(np.random.default_rng(seed).integers(K, size=(n, length)))


def functions():
    """Functions of scores, others and labels, which have kept nothing yet."""
    chains = Distribution("chain")
    two = jax.value_and_grad(lambda p, q: chains.kl_divergence(p, q).sum(), (0, 1))
    return {
        "log_partition": lambda p, q, y: chains.log_partition(p),
        "log_proba": lambda p, q, y: chains.log_proba(p, y),
        "gradient": lambda p, q, y: jax.value_and_grad(lambda p: chains.log_proba(p, y).sum())(p),
        "along": lambda p, q, y: jax.jvp(lambda p: chains.entropy(p), (p,), (q,)),
        "divergence": lambda p, q, y: two(p, q),
        "expected": lambda p, q, y: chains.expected_loss(p, y),
        "best": lambda p, q, y: decode(chains, p),
    }


def equal(one, two):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.fixture
def made(monkeypatch):
    """Kinds of native objects that were made."""
    names = []
    for kind in (Number, Best):

        def counted(self, *args, init=kind.__init__, name=kind.__name__, **more):
            names.append(name)
            init(self, *args, **more)

        monkeypatch.setattr(kind, "__init__", counted)
    return names


@pytest.mark.parametrize("name", functions())
def test_calls_in_turn_are_those_of_new_functions(made, name):
    function = jax.jit(functions()[name])
    operands = [(tables(3 * k), tables(3 * k + 1), tags(3 * k + 2)) for k in range(4)]
    answers = [function(*own) for own in operands]
    jax.block_until_ready(answers)
    if name != "expected":  # its loss may change in place
        assert len(made) == (2 if name == "divergence" else 1)
    for own, answer in zip(operands, answers):
        equal(answer, jax.jit(functions()[name])(*own))


def test_other_types_and_shapes_between():
    with jax.enable_x64(True):
        value = jax.jit(CHAINS.log_partition)
        for n, length, dtype in [(9, 6, np.float32), (9, 6, np.float64), (6, 9, np.float32)] * 2:
            own = tables(n, n, length, dtype)
            answer = value(own)
            assert answer.dtype == dtype
            np.testing.assert_allclose(answer, CHAINS.log_partition(own), rtol=1e-6)


@pytest.mark.parametrize("block", ["node", "transition", "start"])
@pytest.mark.parametrize("name", ["log_proba", "best", "gradient"])
def test_the_call_after_a_refused_one_is_right(name, block):
    function, good, more = jax.jit(functions()[name]), tables(0), (tables(1), tags(2))
    expected = jax.device_get(function(good, *more))
    index = (4,) + (1,) * (good[block].ndim - 1) if block == "node" else (1,) * good[block].ndim
    for wrong in (np.nan, np.inf):
        bad = {**good, block: good[block].at[index].set(wrong)}
        with pytest.raises(ERRORS, match=rf"the block '{block}' holds {wrong}"):
            jax.block_until_ready(function(bad, *more))
        equal(function(good, *more), expected)


def test_labels_are_checked_in_each_call():
    value, own = jax.jit(CHAINS.log_proba), tables(0)
    expected = value(own, tags(1))
    for wrong in (-1, K):
        with pytest.raises(ERRORS, match=rf"example 8: its label holds {wrong}"):
            jax.block_until_ready(value(own, tags(1).at[8, 2].set(wrong)))
        equal(value(own, tags(1)), expected)


def test_scores_that_forbid_and_scores_that_span_too_much_between():
    """Chains side by side, and the others in doubles."""
    value, both = jax.jit(CHAINS.log_partition), jax.jit(CHAINS.cross_entropy)
    good, second = tables(0), tables(1)
    forbidding = {**second, "transition": second["transition"].at[0, 1].set(-np.inf)}
    wide = {**good, "transition": good["transition"].at[0, 1].set(-50)}
    expected = value(good), both(good, second)
    for _ in range(2):
        assert np.isinf(both(good, forbidding)).all()
        np.testing.assert_allclose(value(wide), CHAINS.log_partition(wide), rtol=1e-6)
        equal((value(good), both(good, second)), expected)


def test_threads_have_objects_of_their_own(made):
    function = jax.jit(functions()["gradient"])
    operands = [(tables(k), tables(k), tags(k)) for k in range(6)]
    expected, wrong = [jax.device_get(function(*own)) for own in operands], []

    def run(k):
        for _ in range(30):
            try:
                equal(function(*operands[k]), expected[k])
            except AssertionError:
                wrong.append(k)

    in_threads(run, range(6))
    assert not wrong
    assert len(made) <= 6


def test_settings_changed_between_calls_take_effect(monkeypatch):
    chains, own, labels = Distribution("chain"), tables(0), tags(1)
    loss, value = jax.jit(chains.expected_loss), jax.jit(chains.log_partition)
    first = loss(own, labels), value(own)
    chains.loss, chains.n_jobs = "zero-one", 2
    np.testing.assert_allclose(
        loss(own, labels), -np.expm1(CHAINS.log_proba(own, labels)), rtol=1e-5
    )
    equal(value(own), first[1])
    chains.loss, chains.n_jobs = "hamming", "many"
    with pytest.raises(ERRORS, match="n_jobs is 'many'"):
        jax.block_until_ready(value(own))
    chains.n_jobs = None
    equal((loss(own, labels), value(own)), first)


@pytest.mark.parametrize("name", ["log_proba", "best"])
def test_other_plugins_mean_other_operators(made, monkeypatch, name):
    function, operands = jax.jit(functions()[name]), (tables(0), tables(1), tags(2))
    first = function(*operands)
    jax.block_until_ready(function(*operands))
    assert len(made) == 1
    one = registry.default()
    monkeypatch.setattr(one, "version", one.version + 1)
    equal(function(*operands), first)
    assert len(made) == 2


@pytest.mark.parametrize(
    ("structure", "shape"),
    [("dependency", (4, 4, 3)), ("cky", (4, 3, 3, 2)), ("grid", (4, 3, 2, 3))],
)
def test_rows_of_tables_keep_their_order(structure, shape):
    """Their places in the arrays are those of a table of numbers."""
    best = jax.jit(lambda scores: decode(structure, scores))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(3):
            own = jnp.asarray(np.random.default_rng(seed).normal(size=shape).astype(np.float32))
            expected = decode(registry.get_structure(structure), own)
            equal(best(own), expected)


def test_gaps_and_mapped_axes_have_no_objects_kept(made):
    """Pictures in tables with gaps, lengths and vmap."""
    own = tables(0)
    value = jax.jit(CHAINS.log_partition)
    for lengths in ([6, 5, 4, 3, 2, 1, 6, 5, 4], [1] * 9):
        np.testing.assert_allclose(
            value(own, jnp.asarray(lengths)), CHAINS.log_partition(own, jnp.asarray(lengths))
        )
    many = jax.tree.map(lambda *a: jnp.stack(a), *map(tables, range(3)))
    mapped = jax.jit(jax.vmap(CHAINS.log_partition))
    for _ in range(2):
        np.testing.assert_allclose(mapped(many)[2], value(tables(2)), rtol=1e-6)
