"""Distributions as functions of JAX: those of arrays, and derivatives by differences."""

from functools import partial

import numpy as np
import pytest
from jax_cases import arrays, given
from torch_cases import GIBBS

jax = pytest.importorskip("jax", reason="needs the extra [jax]")
import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

from structsolve.jax import Distribution, Marginals, decode  # noqa: E402
from structsolve.torch import Distribution as Layer  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
NUMBERS = {
    "log_partition": [], "log_proba": ["labels"], "entropy": [], "cross_entropy": ["other"],
    "kl_divergence": ["other"], "expected_loss": ["labels"],
}  # fmt: skip


def function_of(kind, case, structure):
    lengths, graphs = given(case)
    distribution = Distribution(structure)
    labels = jnp.asarray(case.labels.numpy())

    def function(scores, other):
        more = {"labels": [labels], "other": [other]}
        operands = [x for name in NUMBERS[kind] for x in more[name]]
        return getattr(distribution, kind)(scores, *operands, lengths, **graphs)

    return function


def of_torch(kind, case):
    """The numbers of torch, and scores with the slopes of their weighted sum."""
    import torch

    own = {k: t.detach().clone().requires_grad_() for k, t in case.scores.items()}
    theirs = {
        k: (0.5 * t.detach().flip(-1)).clone().requires_grad_() for k, t in case.scores.items()
    }
    more = {"labels": [case.labels], "other": [theirs]}
    operands = [x for name in NUMBERS[kind] for x in more[name]]
    expected = getattr(Layer(case.structure), kind)(own, *operands, **case.given)
    expected.mul(torch.linspace(-1, 2, len(expected), dtype=torch.float64)).sum().backward()
    return expected.detach(), (own, theirs)


@pytest.mark.parametrize("name", GIBBS)
def test_equals_torch(name):
    with jax.enable_x64(True):
        case = GIBBS[name](np.random.default_rng(3))
        functions = {kind: function_of(kind, case, case.structure) for kind in NUMBERS}
        scores = arrays(case)
        other = {block: 0.5 * jnp.flip(a, -1) for block, a in scores.items()}
        moves = {block: jnp.cos(a) for block, a in scores.items()}
        expected = {kind: of_torch(kind, case) for kind in NUMBERS}

        def numbers(scores, other):
            return {kind: function(scores, other) for kind, function in functions.items()}

        def total(kind, scores, other):
            weights = np.linspace(-1, 2, len(expected[kind][0]))
            return (functions[kind](scores, other) * weights).sum()

        def slopes(scores, other):
            return {kind: jax.grad(partial(total, kind), (0, 1))(scores, other) for kind in NUMBERS}

        for way in (lambda f: f, jax.jit):  # one graph for all is compiled in a third of the time
            told, gradients = way(numbers)(scores, other), way(slopes)(scores, other)
            for kind, (wanted, both) in expected.items():
                np.testing.assert_allclose(told[kind], wanted, 1e-12, err_msg=kind)
                for gradient, leaves in zip(gradients[kind], both, strict=True):
                    for block, t in leaves.items():
                        wanted = np.zeros(t.shape) if t.grad is None else t.grad
                        np.testing.assert_allclose(
                            gradient[block], wanted, 1e-9, 1e-12, err_msg=kind
                        )
        for kind in NUMBERS:
            _, slope = jax.jvp(lambda s, kind=kind: total(kind, s, other), (scores,), (moves,))
            first = gradients[kind][0]
            inner = sum(float((first[block] * moves[block]).sum()) for block in scores)
            np.testing.assert_allclose(slope, inner, 1e-9, 1e-12, err_msg=kind)


@pytest.mark.parametrize("kind", NUMBERS)
def test_mapped(kind):
    with jax.enable_x64(True):
        case = GIBBS["chain"](np.random.default_rng(0))
        case.scores.pop("edge")
        function = function_of(kind, case, "chain")
        scores = arrays(case)
        other = {block: 0.5 * jnp.flip(a, -1) for block, a in scores.items()}
        check_grads(function, (scores, other), order=1)
        two = {block: jnp.stack([a, -a]) for block, a in scores.items()}
        mapped = jax.vmap(function, (0, None))(two, other)
        negative = {block: -a for block, a in scores.items()}
        np.testing.assert_allclose(mapped[1], function(negative, other), 1e-12)

        def total(scores, other):
            return function(scores, other).sum()

        first, second = jax.vmap(jax.grad(total, (0, 1)), (0, None))(two, other)
        own, beside = jax.grad(total, (0, 1))(negative, other)
        for block in scores:
            np.testing.assert_allclose(first[block][1], own[block], 1e-9, 1e-12)
            np.testing.assert_allclose(second[block][1], beside[block], 1e-9, 1e-12)
        with pytest.raises(NotImplementedError, match=f"{kind} of structure 'chain' has no second"):
            jax.hessian(total)(scores, other)


def test_least_loss_and_bad_input():
    node = jnp.asarray(np.random.default_rng(0).normal(size=(2, 3, 3)))
    scores, lengths = {"node": node, "transition": jnp.eye(3)}, jnp.array([3, 2])
    certain = Distribution("chain", "zero-one").least_loss(scores, lengths)
    np.testing.assert_array_equal(certain, decode("chain", scores, lengths))
    least = jax.jit(Distribution("chain").least_loss)(scores, lengths)
    assert least.shape == (2, 3) and least[1, 2] == -1
    with pytest.raises(ValueError, match="other: found blocks of shapes"):
        Distribution("chain").kl_divergence(scores, node, lengths)
    with pytest.raises(Exception, match="has no sum over its labels"):
        Distribution("permutation").entropy(jnp.zeros((1, 3, 3))).block_until_ready()


@pytest.mark.parametrize("kind", ["log_partition", "entropy"])
@pytest.mark.parametrize("lengths", [None, [4, 1, 3, 2, 4, 4, 3, 2, 1]])
def test_examples_with_tables_of_their_own_have_gradients_of_their_own(kind, lengths):
    rng, n = np.random.default_rng(0), 9
    scores = {"node": jnp.asarray(rng.normal(size=(n, 4, 3)), jnp.float32),
              "transition": jnp.asarray(rng.normal(size=(n, 3, 3)), jnp.float32)}  # fmt: skip
    own, given_lengths = Distribution("chain"), None if lengths is None else jnp.asarray(lengths)

    def total(scores, lengths=given_lengths):
        return getattr(own, kind)(scores, lengths=lengths).sum()

    slopes = jax.grad(total)(scores)
    two = {name: jnp.stack([array, 0.5 * array]) for name, array in scores.items()}
    mapped = jax.vmap(jax.grad(total))(two)
    for i in range(n):
        alone = {"node": scores["node"][i : i + 1], "transition": scores["transition"][i]}
        size = None if lengths is None else given_lengths[i : i + 1]
        expected = jax.grad(total)(alone, size)
        for answer in (slopes, {name: array[0] for name, array in mapped.items()}):
            np.testing.assert_allclose(answer["node"][i], expected["node"][0], 1e-5, 1e-6)
            np.testing.assert_allclose(answer["transition"][i], expected["transition"], 1e-5, 1e-6)
    marginals = Marginals("chain")(scores, lengths=given_lengths)
    if kind == "log_partition":
        for name, array in marginals.items():
            np.testing.assert_allclose(array, slopes[name], 1e-5, 1e-6)
