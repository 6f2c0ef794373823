"""Second derivatives of functions of JAX arrays: forward and backward, or errors."""

import numpy as np
import pytest
from checks import refused

jax = pytest.importorskip("jax", reason="needs the extra [jax]")
torch = pytest.importorskip("torch", reason="needs the extra [torch]")

import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402
from jax_cases import arrays, given  # noqa: E402
from torch_cases import CASES, chain  # noqa: E402

import structsolve.torch as theirs  # noqa: E402
from structsolve.jax import Marginals, StructuredLoss  # noqa: E402


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def function(case, surrogate="crf", reduction="mean"):
    lengths, more = given(case)
    loss = StructuredLoss(case.structure, surrogate, reduction=reduction)
    labels = jnp.asarray(case.labels.numpy())
    return lambda scores: loss(scores, labels, lengths, **more)


@pytest.mark.parametrize(
    ("name", "surrogate", "reduction"),
    [("mrf", "crf", "none"), ("multiclass", "crf", "sum"), ("ranking", "sparsemap", "none")],
)
def test_second_derivatives_are_those_of_differences(name, surrogate, reduction):
    case = CASES[name](np.random.default_rng(5))
    value = function(case, surrogate, reduction)
    check_grads(value, (arrays(case),), 2, modes=["fwd", "rev"], atol=1e-4, rtol=1e-4)


def test_every_way_gives_the_same_hessian():
    reduction, case = "none", chain(np.random.default_rng(5), n=2, K=2, longest=2)
    value = function(case, reduction=reduction)
    node = arrays(case)["node"]
    rest = {name: array for name, array in arrays(case).items() if name != "node"}

    def total(node):
        return (value({"node": node, **rest}) ** 2).sum()

    layer = theirs.StructuredLoss("chain", "crf", reduction=reduction)

    def other(node):
        scores = {"node": node, **{k: case.scores[k].detach() for k in rest}}
        return (layer(scores, case.labels, **case.given) ** 2).sum()

    expected = torch.autograd.functional.hessian(other, case.scores["node"].detach()).numpy()
    assert np.abs(expected).max() > 0.01
    for way in (jax.hessian(total), jax.jit(jax.jacrev(jax.grad(total)))):
        np.testing.assert_allclose(way(node), expected, atol=1e-12)
    many = jnp.stack([node, node])
    for one in jax.jit(jax.vmap(jax.hessian(total)))(many):
        np.testing.assert_allclose(one, expected, atol=1e-12)


@pytest.mark.parametrize(("surrogate", "reduction"), [("margin", "mean"), ("probloss", "none")])
def test_what_has_none_raises(surrogate, reduction):
    case = chain(np.random.default_rng(5), n=2, K=2, longest=2)
    value = function(case, surrogate, reduction)

    def total(scores):
        return value(scores).sum()

    def penalty(scores):
        return sum((g**2).sum() for g in jax.tree.leaves(jax.grad(total)(scores)))

    for way in (jax.hessian(total), jax.jit(jax.grad(penalty))):
        with pytest.raises(
            jax.errors.JaxRuntimeError, match=f"'chain' with .*'{surrogate}' has no"
        ):
            jax.block_until_ready(way(arrays(case)))


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_third_derivatives_and_second_ones_of_marginals_raise(reduction):
    case = chain(np.random.default_rng(5), n=2, K=2, longest=2)
    value, node = function(case, reduction=reduction), arrays(case)["node"]

    def total(node):
        return value({"node": node}).sum()

    for third in (jax.hessian(jax.grad(total)), jax.jacrev(jax.jacrev(jax.grad(total)))):
        refused("'chain' with .*'crf' has no third", third, node, error=NotImplementedError)

    def square(node):
        return (Marginals("chain")(node) ** 2).sum()

    for second in (jax.hessian(square), jax.jacrev(jax.grad(square))):
        refused("'chain' has no second derivatives", second, node, error=NotImplementedError)
