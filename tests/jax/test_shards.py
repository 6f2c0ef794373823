"""Functions of JAX on several devices: shard_map, with its checks of types, and sharded arrays."""

import subprocess
import sys

import pytest

jax = pytest.importorskip("jax", reason="needs the extra [jax]")

CODE = """
import warnings
import numpy as np, jax, jax.numpy as jnp
from jax.sharding import PartitionSpec as P
from structsolve.jax import Distribution, Marginals, StructuredLoss, decode

warnings.simplefilter("ignore")
jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(0)
node, table = jnp.asarray(rng.normal(size=(6, 4, 3))), jnp.asarray(rng.normal(size=(3, 3)))
labels, lengths = jnp.asarray(rng.integers(3, size=(6, 4))), jnp.array([4, 1, 3, 2, 4, 1])
mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
loss, values = StructuredLoss("chain", "crf"), StructuredLoss("chain", "crf", reduction="none")
chains, marginals = Distribution("chain"), Marginals("chain")

def scores(node, table):
    return {"node": node, "transition": table}

def second(node, table, labels, lengths):
    f = lambda t: (values(scores(node, t), labels, lengths) ** 2).sum()
    return jax.jvp(jax.grad(f), (table,), (jnp.cos(table),))[1]

EACH = {
    "values": lambda n, t, y, m: values(scores(n, t), y, m),
    "numbers": lambda n, t, y, m: chains.log_proba(scores(n, t), y, m) + chains.entropy(
        scores(n, t), m),
    "marginals": lambda n, t, y, m: marginals(scores(n, t), m)["node"].sum((1, 2)),
    "labels": lambda n, t, y, m: decode("chain", scores(n, t), m).sum(1),
    "mapped": lambda n, t, y, m: jax.vmap(
        lambda a, b, c: values(scores(a[None], t), b[None], c[None])[0])(n, y, m),
}
SUM = {
    "loss": lambda n, t, y, m: 3 * loss(scores(n, t), y, m),
    "gradient": lambda n, t, y, m: 3 * jax.grad(lambda a: loss(scores(n, a), y, m))(t),
    "gradient of values": lambda n, t, y, m: jax.grad(
        lambda a: (values(scores(n, a), y, m) ** 2).sum())(t),
    "gradient of numbers": lambda n, t, y, m: jax.grad(
        lambda a: chains.kl_divergence(scores(n, t), scores(2 * n, a), m).sum())(t),
    "gradient of marginals": lambda n, t, y, m: jax.grad(
        lambda a: (marginals(scores(n, a), m)["transition"] ** 2).sum())(t),
    "second": second,
}
given = node, table, labels, lengths
spec = P("x"), P(), P("x"), P("x")
for name, f in EACH.items():
    g = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=P("x")))
    f = jax.jit(f)
    expected = f(*given)
    np.testing.assert_allclose(g(*given), expected, rtol=1e-12, err_msg=name)
    apart = f(jax.device_put(node, jax.NamedSharding(mesh, P("x"))), *given[1:])
    np.testing.assert_allclose(apart, expected, rtol=1e-12, err_msg=name)
for name, f in SUM.items():
    one = jax.jit(f)
    expected = sum(one(node[k], table, labels[k], lengths[k]) for k in (slice(3), slice(3, 6)))
    # A derivative by what does not vary is the sum over devices; else it is taken here.
    own = (lambda *a: jax.lax.psum(f(*a), "x")) if name == "loss" else f
    g = jax.jit(jax.shard_map(own, mesh=mesh, in_specs=spec, out_specs=P()))
    np.testing.assert_allclose(g(*given), expected, rtol=1e-11, err_msg=name)
outer = jax.grad(lambda t: jax.shard_map(
    lambda n, t, y, m: jax.lax.pmean(loss(scores(n, t), y, m), "x"),
    mesh=mesh, in_specs=spec, out_specs=P())(node, t, labels, lengths))(table)
np.testing.assert_allclose(outer, jax.grad(lambda t: loss(scores(node, t), labels, lengths))(table),
                           rtol=1e-11)
each = jax.pmap(lambda n: chains.log_partition(scores(n, table)))(node.reshape(2, 3, 4, 3))
np.testing.assert_allclose(each.reshape(6), chains.log_partition(scores(node, table)), rtol=1e-12)
"""


@pytest.mark.skipif(not hasattr(jax, "shard_map"), reason="before JAX 0.6")
def test_several_devices():
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env={"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
