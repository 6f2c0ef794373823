"""Calls of Python functions over XLA's memory."""

import gc
import signal
import weakref
from functools import partial

import numpy as np
import pytest
from checks import in_threads

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

from structsolve.jax import Distribution, callback  # noqa: E402

LIKE = (jax.ShapeDtypeStruct((2,), jnp.float32),)
X = jnp.arange(6.0).reshape(2, 3)

pytestmark = pytest.mark.skipif(not callback.NATIVE, reason="JAX has no such interface")


def sums(out, given):
    out[0][...] = given[0].sum(-1)


def test_arguments_are_views_that_nobody_may_write_to():
    seen = []

    def look(out, given):
        x, y = given
        seen.append((x.flags.writeable, x.flags.owndata, x.shape, y.dtype, y.shape))
        sums(out, given)

    (answer,) = jax.jit(lambda x: callback.callback(look, LIKE, [x, jnp.int32(3)]))(X)
    np.testing.assert_array_equal(answer, [3, 12])
    assert seen == [(False, False, (2, 3), np.int32, ())]


@pytest.mark.parametrize(
    "kind", [bool, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32]
)
def test_every_type_of_numbers_arrives(kind):
    kind = np.dtype(kind)
    given = np.array([[0, 1, 1], [1, 1, 1]]).astype(kind)

    def look(out, given):
        assert given[0].dtype == kind
        sums(out, given)

    np.testing.assert_array_equal(callback.callback(look, LIKE, [jnp.asarray(given)])[0], [2, 3])


def test_devices_other_than_the_cpu_have_jaxs_callback(monkeypatch):
    def copied(run, like, arrays):
        asked.append(platform)
        return [jnp.zeros(s.shape, s.dtype) for s in like]

    with monkeypatch.context() as patch:
        patch.setattr(callback, "_copied", copied)
        asked = []
        call = jax.jit(lambda x: callback.callback(sums, LIKE, [x]))
        for platform in ("cpu", "cuda", "tpu"):
            text = call.trace(X).lower(lowering_platforms=(platform,)).as_text()
            assert ("structsolve_host" in text) == (platform == "cpu")
        assert asked == ["cuda", "tpu"]
    with jax.enable_x64(True):
        like = (jax.ShapeDtypeStruct((2,), jnp.float64), jax.ShapeDtypeStruct((), jnp.int32))
        given = jnp.arange(6.0, dtype=jnp.float64).reshape(2, 3) / 3

        def write(out, arrays):
            (x,) = arrays
            out[0][...], out[1][...] = x.sum(-1), len(x)

        types = tuple(callback.types(like, [given]))
        answers = jax.jit(lambda x: callback._elsewhere(x, write=write, like=types))(given)
        np.testing.assert_array_equal(answers[0], given.sum(-1))
        assert answers[0].dtype == np.float64 and answers[1] == 2


def test_types_that_numpy_lacks_are_refused():
    with pytest.raises(jax.errors.JaxRuntimeError, match="TypeError: argument 0: XLA's type"):
        jax.block_until_ready(callback.callback(sums, LIKE, [X.astype(jnp.bfloat16)]))


def test_empty_arrays():
    like = (jax.ShapeDtypeStruct((0,), jnp.float32),)
    (answer,) = callback.callback(sums, like, [jnp.zeros((0, 3))])
    assert answer.shape == (0,)


def test_without_jit_and_in_loops():
    def call(x):
        return callback.callback(sums, LIKE, [x])[0]

    with jax.disable_jit():
        np.testing.assert_array_equal(call(X), [3, 12])
    np.testing.assert_array_equal(jax.lax.map(call, jnp.stack([X, 2 * X])), [[3, 12], [6, 24]])
    many = jax.vmap(jax.vmap(call, in_axes=(0,)), in_axes=(1,))(jnp.ones((4, 5, 2, 3)))
    assert many.shape == (5, 4, 2)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("example 3: é"), "INVALID_ARGUMENT: ValueError: example 3: é"),
        (KeyError("no"), "INTERNAL: Traceback"),
    ],
)
def test_errors_carry_their_message(error, text):
    def fail(out, given):
        raise error

    with pytest.raises(jax.errors.JaxRuntimeError, match=text):
        jax.block_until_ready(callback.callback(fail, LIKE, [X]))


def test_an_error_without_a_message_is_none_the_less():
    class Silent(ValueError):
        def __str__(self):
            raise RuntimeError

    def fail(out, given):
        raise Silent

    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL: an error that could not"):
        jax.block_until_ready(callback.callback(fail, LIKE, [X]))


def test_ctrl_c_is_not_lost():
    def fail(out, given):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            jax.block_until_ready(callback.callback(fail, LIKE, [X]))
            jax.block_until_ready(X + 1)
    finally:
        signal.signal(signal.SIGINT, before)


def test_functions_live_as_long_as_what_is_compiled_for_them(monkeypatch):
    made, number_of = [], callback.number_of
    monkeypatch.setattr(
        callback, "number_of", lambda f: made.append(weakref.ref(f)) or number_of(f)
    )
    call = lambda x: callback.callback(partial(sums), LIKE, [x])  # noqa: E731
    compiled = jax.jit(call).lower(X).compile()
    (function,) = made
    jax.clear_caches()
    gc.collect()
    np.testing.assert_array_equal(compiled(X)[0], [3, 12])  # nothing else holds the function
    assert function() is not None
    del compiled
    jax.clear_caches()
    gc.collect()
    assert function() is None


def test_numbers_of_another_process_are_refused():
    call = jax.ffi.ffi_call("structsolve_host", LIKE)
    for wrong in (np.int64(5), np.float32(5), "five"):
        with pytest.raises(jax.errors.JaxRuntimeError, match=r"another process|something else"):
            jax.block_until_ready(call(X, function=wrong))


def test_threads_call_at_once():
    tables = {"node": jnp.asarray(np.random.default_rng(0).normal(size=(9, 5, 3)))}
    tables["transition"] = jnp.ones((3, 3))
    value = jax.jit(Distribution("chain").log_partition)
    expected, wrong = np.asarray(value(tables)), []

    def run(_):
        for _ in range(50):
            if not np.array_equal(value(tables), expected):
                wrong.append(1)

    in_threads(run, range(6))
    assert not wrong
