"""Distributions as a layer: against the sum over all labels in torch, and its derivatives."""

import numpy as np
import pytest
from torch_cases import CASES, GIBBS, torch

from structsolve.torch import Distribution, Marginals, StructuredLoss, decode

pytestmark = pytest.mark.filterwarnings("ignore")


def logs(case, i):
    """Log-probabilities of all labels of an example."""
    every = torch.stack([torch.as_tensor(case.score(i, y)) for y in case.every[i]])
    return every - torch.logsumexp(every, 0)


def row(case, i):
    return case.every[i].index(case.truths[i])


def entropy(case, other, i):
    p = logs(case, i)
    return -(p.exp() * p).sum()


def cross_entropy(case, other, i):
    return -(logs(case, i).exp() * logs(other, i)).sum()


def expected_loss(case, other, i):
    losses = torch.tensor([case.loss(y, case.truths[i]) for y in case.every[i]])
    if case.structure == "multiclass" or len(case.truths[i]) == 1:
        losses = (losses > 0).double()
    return (logs(case, i).exp() * losses).sum()


NUMBERS = {
    "log_partition": lambda case, other, i: torch.logsumexp(
        torch.stack([torch.as_tensor(case.score(i, y)) for y in case.every[i]]), 0
    ),
    "log_proba": lambda case, other, i: logs(case, i)[row(case, i)],
    "entropy": entropy,
    "cross_entropy": cross_entropy,
    "kl_divergence": lambda *a: cross_entropy(*a) - entropy(*a),
    "expected_loss": expected_loss,
}


def operands(kind, case, other):
    if kind in ("log_proba", "expected_loss"):
        return case.scores, case.labels
    return (case.scores, other.scores) if "_" in kind and kind[0] in "ck" else (case.scores,)


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("name", GIBBS)
def test_numbers_and_gradients(name, kind):
    loss = "absolute" if name == "thresholds" else "hamming"
    if name == "thresholds" and kind == "expected_loss":
        pytest.skip("the loss of ordered classes is another")
    for seed in range(4):
        # The same generator gives the same sizes and graphs.
        case, other = (GIBBS[name](np.random.default_rng(seed)) for _ in range(2))
        with torch.no_grad():
            for t in other.scores.values():
                t.mul_(0.5).add_(0.3 * torch.randn(t.shape, dtype=t.dtype).cumsum(-1))
        layer = Distribution(case.structure, loss)
        values = getattr(layer, kind)(*operands(kind, case, other), **case.given)
        expected = torch.stack([NUMBERS[kind](case, other, i) for i in range(len(case.every))])
        torch.testing.assert_close(values, expected.to(values), rtol=1e-9, atol=1e-9)
        leaves = [*case.scores.values(), *other.scores.values()]
        weights = torch.linspace(-1, 2, len(values), dtype=values.dtype)
        own, theirs = (
            torch.autograd.grad((weights * v).sum(), leaves, allow_unused=True)
            for v in (values, expected)
        )
        for a, b, t in zip(own, theirs, leaves):
            a, b = (torch.zeros_like(t) if g is None else g for g in (a, b))
            torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-8)


def batch(seed=0):
    generator = torch.Generator().manual_seed(seed)
    node, pairs = (torch.randn(s, generator=generator) for s in ((3, 4, 3), (3, 3)))
    labels = torch.randint(0, 3, (3, 4), generator=generator)
    return node.requires_grad_(), pairs.requires_grad_(), labels, torch.tensor([4, 2, 3])


def calls(layer, labels, lengths):
    """Functions of two tensors."""

    def named(node, pairs, c=1.0):
        return {"node": c * node, "transition": c * pairs}

    return {
        "log_partition": lambda *t: layer.log_partition(named(*t), lengths),
        "log_proba": lambda *t: layer.log_proba(named(*t), labels, lengths),
        "entropy": lambda *t: layer.entropy(named(*t), lengths),
        "cross_entropy": lambda *t: layer.cross_entropy(named(*t), named(*t, 0.5), lengths),
        "kl_divergence": lambda *t: layer.kl_divergence(named(*t), named(*t, 0.5), lengths),
        "expected_loss": lambda *t: layer.expected_loss(named(*t), labels, lengths),
    }


@pytest.mark.parametrize("kind", NUMBERS)
def test_compiled_and_functional(kind):
    node, pairs, labels, lengths = batch()
    function = calls(Distribution("chain"), labels, lengths)[kind]
    torch._dynamo.reset()
    graph = torch.compile(function, fullgraph=True, backend="aot_eager")
    plain, other = function(node, pairs), graph(node, pairs)
    assert torch.equal(plain, other)
    first = torch.autograd.grad(plain.sum(), (node, pairs))
    for way in (
        torch.autograd.grad(other.sum(), (node, pairs)),
        torch.func.grad(lambda *t: function(*t).sum(), (0, 1))(node, pairs),
        [j.sum(0) for j in torch.func.jacrev(function, (0, 1))(node, pairs)],
    ):
        for a, b in zip(first, way, strict=True):
            torch.testing.assert_close(a, b)
    both = torch.stack([node, 2 * node]).detach()
    mapped = torch.func.vmap(function, (0, None))(both, pairs.detach())
    torch.testing.assert_close(mapped[1], function(both[1], pairs))
    meta = function(node.detach().to("meta"), pairs.detach().to("meta"))
    assert meta.shape == (3,) and meta.is_meta
    with pytest.raises(NotImplementedError, match=f"{kind} of structure 'chain' has no second"):
        torch.autograd.functional.hessian(lambda n: function(n, pairs).sum(), node)


def test_agrees_with_the_other_layers():
    node, pairs, labels, lengths = batch()
    scores = {"node": node, "transition": pairs}
    layer = Distribution("chain")
    loss = StructuredLoss("chain", "crf", reduction="none")(scores, labels, lengths)
    torch.testing.assert_close(layer.log_proba(scores, labels, lengths), -loss)
    mask = torch.arange(4) < lengths[:, None]
    torch.testing.assert_close(layer.entropy(scores, mask=mask), layer.entropy(scores, lengths))
    inside = mask.reshape(-1)
    packed = {"node": node.reshape(12, 3)[inside], "transition": pairs}
    torch.testing.assert_close(layer.entropy(packed, lengths), layer.entropy(scores, lengths))
    half = {name: t.half() for name, t in scores.items()}
    assert layer.entropy(half, lengths).dtype == torch.float32
    layer.entropy(half, lengths).sum().backward()
    # The Hamming loss is least at the most probable class of each word.
    best = Marginals("chain")(scores, lengths)["node"].argmax(-1).masked_fill(~mask, -1)
    assert torch.equal(layer.least_loss(scores, lengths), best)
    torch._dynamo.reset()
    graph = torch.compile(layer.least_loss, fullgraph=True, backend="aot_eager")
    assert torch.equal(graph(scores, lengths), best)
    certain = Distribution("chain", "zero-one").least_loss(scores, lengths)
    assert torch.equal(certain, decode("chain", scores, lengths))


def test_minus_infinity():
    node, _, labels, lengths = batch()
    table = torch.zeros(3, 3)
    table[0, 1] = -torch.inf
    table.requires_grad_()
    scores = {"node": node, "transition": table}
    labels[0, :2] = torch.tensor([0, 1])
    layer = Distribution("chain")
    values = layer.log_proba(scores, labels, lengths)
    assert values[0] == -torch.inf and torch.isfinite(values[2])
    for number in (
        values,
        layer.entropy(scores, lengths),
        layer.kl_divergence(scores, {"node": node * 2, "transition": torch.zeros(3, 3)}, lengths),
    ):
        for gradient in torch.autograd.grad(number.sum(), (node, table), retain_graph=True):
            assert torch.isfinite(gradient).all()
    plain = {"node": node, "transition": torch.zeros(3, 3, requires_grad=True)}
    crossed = layer.cross_entropy(plain, scores, lengths)
    assert torch.isinf(crossed).all()
    with pytest.raises(ValueError, match="example 0: the cross-entropy is infinite"):
        crossed.sum().backward()


def test_bad_input():
    node, pairs, labels, lengths = batch()
    layer = Distribution("chain")
    with pytest.raises(ValueError, match="other: found blocks"):
        layer.kl_divergence({"node": node, "transition": pairs}, node, lengths)
    with pytest.raises(ValueError, match="other: found blocks of shapes"):
        layer.kl_divergence(node, node[:2], lengths)
    with pytest.raises(ValueError, match="labels"):
        layer.log_proba(node, labels[:2], lengths)
    with pytest.raises(ValueError, match="'permutation' has no sum over its labels"):
        Distribution("permutation").entropy(torch.zeros(2, 3, 3))
    case = CASES["flow"](np.random.default_rng(0))
    with pytest.raises(ValueError, match="projection 'entropy' of structure 'flow'"):
        Distribution(case.structure).entropy(case.scores)
