"""Decisions under torch.compile, torch.export and torch.func: as the other layers."""

import pytest

torch = pytest.importorskip("torch")
from compile_cases import compiled, draw, same  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from structsolve import get_structure  # noqa: E402
from structsolve.torch import (  # noqa: E402
    BlackboxDiff,
    PerturbedArgmax,
    Sample,
    SPOPlus,
    decision_operators,
    decode,
    perturbed_operators,
)

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("sizes", [{}, {"lengths": torch.tensor([5, 1, 3, 2])}])
def test_interpolated_decisions_and_samples(sizes):
    node, table, _ = draw()
    decision, drawn = BlackboxDiff("chain", lam=2.0), Sample("chain", n=7, random_state=3)

    def best(node, table):
        parts = decision({"node": node, "transition": table}, **sizes)
        return torch.cat([parts["node"].flatten(1), parts["transition"].flatten(1)], 1)

    same(best, node, table)

    def labels(node, table):
        return drawn({"node": node, "transition": table}, **sizes)

    same(labels, node.detach(), table.detach())
    plain = node.detach()
    with FakeTensorMode() as mode:
        assert drawn(mode.from_tensor(plain)).shape == (7, 4, 5)
    rows = torch.randn(6, 3, requires_grad=True)
    one = BlackboxDiff("multiclass", lam=2.0)
    same(lambda rows: one(rows), rows)
    gradient = torch.func.grad(lambda rows: (one(rows) * torch.eye(6, 3)).sum())(rows)
    (expected,) = torch.autograd.grad((one(rows) * torch.eye(6, 3)).sum(), rows)
    assert torch.equal(gradient, expected)


def test_second_derivatives_of_interpolated_decisions_raise():
    one, rows = BlackboxDiff("multiclass"), torch.randn(4, 3)
    first = torch.func.grad(lambda rows: (one(rows) * rows.detach()).sum())
    with pytest.raises(NotImplementedError, match="has no second derivatives"):
        torch.func.jacrev(first)(rows)


def decisions(noise="additive", reduction="none", **sizes):
    """Functions of scores: a mean under noise, its loss, and the loss of decisions."""
    layer = PerturbedArgmax("chain", 0.7, 5, noise=noise, random_state=2)
    regret = SPOPlus("chain", reduction)
    other, pairs, labels = draw(seed=9)
    true = {"node": other.detach(), "transition": pairs.detach()}

    def mean(node, table):
        parts = layer({"node": node, "transition": table}, **sizes)
        return torch.cat([parts["node"].flatten(1), parts["transition"].flatten(1)], 1)

    def loss(node, table):
        return layer.loss({"node": node, "transition": table}, labels, reduction=reduction, **sizes)

    def bound(node, table):
        return regret({"node": node, "transition": table}, true, **sizes)

    def labelled(node, table):
        return regret({"node": node, "transition": table}, true, labels, **sizes)

    return mean, loss, bound, labelled


@pytest.mark.parametrize("noise", ["additive", "multiplicative"])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_decisions_in_graphs(noise, reduction):
    node, table, _ = draw()
    lengths = torch.tensor([5, 1, 3, 2])
    ways = {}, {"lengths": lengths}, {"mask": torch.arange(5) < lengths[:, None]}
    # Reductions come after the sizes are read: the others have one way to tell these.
    for sizes in ways if reduction == "none" else ways[1 + (reduction == "mean") :][:1]:
        mean, loss, *regrets = decisions(noise, reduction, **sizes)
        functions = [loss]
        if reduction == "none":  # which the mean does not have
            functions.append(mean)
        if noise == "additive":  # which regrets do not have
            functions += regrets
        # One graph for all is compiled in less time.
        same(lambda *s, all=functions: torch.cat([f(*s).flatten() for f in all]), node, table)


def test_decisions_of_other_structures_in_graphs():
    for structure, shape in (
        ("multiclass", (4, 3)),
        ("dependency", (2, 4, 3)),
        ("multilabel", (3, 4)),
        ("grid", (2, 2, 3, 3)),
        (get_structure("permutation", kind="matching"), (2, 3, 3)),
    ):
        scores = torch.randn(shape, requires_grad=True)
        true = torch.randn(shape)
        layer, regret = PerturbedArgmax(structure, random_state=0), SPOPlus(structure)
        labels = decode(layer, true)

        def every(s, layer=layer, regret=regret, y=labels, t=true):
            return torch.cat([a.flatten() for a in (layer(s), layer.loss(s, y), regret(s, t))])

        same(every, scores)
    rows, sizes = torch.randn(7, 3, requires_grad=True), torch.tensor([3, 4])  # packed
    layer, regret = PerturbedArgmax("chain", random_state=0), SPOPlus("chain")
    same(lambda rows: layer(rows, sizes), rows)
    same(lambda rows: layer.loss(rows, torch.zeros(7).long(), sizes), rows)
    same(lambda rows: regret(rows, rows.detach().flip(0), lengths=sizes), rows)


def test_decisions_have_no_breaks_and_no_recompilation_by_value():
    lengths = torch.tensor([5, 1, 3, 2])
    for function in decisions():
        torch._dynamo.reset()
        report = torch._dynamo.explain(function)(*draw()[:2])
        assert (report.graph_break_count, report.graph_count) == (0, 1)
        graph = compiled(function)
        graph(*draw()[:2])
        with torch._dynamo.config.patch(error_on_recompile=True):
            for seed in range(1, 4):
                args = draw(seed)[:2]
                assert torch.allclose(graph(*args), function(*args), atol=1e-5)
    layer = PerturbedArgmax("chain", random_state=0)
    graph = compiled(lambda node, sizes: layer(node, sizes))
    graph(draw()[0], lengths)
    with torch._dynamo.config.patch(error_on_recompile=True):
        other = draw(1)[0], lengths.flip(0)
        assert torch.allclose(graph(*other), layer(*other))


def test_noise_without_a_seed_is_that_of_torch():
    layer, node = PerturbedArgmax("chain", n_samples=3), draw()[0]
    graph = compiled(lambda node: layer(node))
    torch.manual_seed(1)
    plain = layer(node), layer(node)
    torch.manual_seed(1)
    again = graph(node), graph(node)
    assert not torch.equal(*plain)
    assert all(map(torch.equal, plain, again))
    with pytest.raises(RuntimeError, match="randomness"):
        torch.func.vmap(layer)(torch.randn(2, 4, 5, 3))
    drawn = torch.func.vmap(layer, randomness="different")(node.detach().expand(2, 4, 5, 3))
    assert drawn.shape == (2, 4, 5, 3) and not torch.equal(*drawn)


def test_decisions_of_half_precision_keep_their_type():
    half = draw()[0].detach().bfloat16().requires_grad_()
    for layer in (PerturbedArgmax("chain", random_state=0), BlackboxDiff("chain")):
        same(lambda node, layer=layer: layer(node), half)
        assert compiled(lambda node, layer=layer: layer(node))(half).dtype == torch.bfloat16


def test_export_of_decisions():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.score = torch.nn.Linear(4, 3)
            self.mean, self.regret = PerturbedArgmax("chain", random_state=0), SPOPlus("chain")

        def forward(self, words, true, lengths):
            scores = self.score(words)
            return self.mean(scores, lengths).sum((1, 2)), self.regret(
                scores, true, lengths=lengths
            )

    model = Model()
    args = torch.randn(2, 3, 4), torch.randn(2, 3, 3), torch.tensor([3, 2])
    program = torch.export.export(model, args).module()
    for one, other in zip(program(*args), model(*args)):
        assert torch.allclose(one, other)


def test_decisions_of_fake_and_meta_tensors_have_shapes():
    node, labels = torch.zeros(2, 3, 4), torch.zeros(2, 3, dtype=int)
    for layer in (PerturbedArgmax("chain"), PerturbedArgmax("chain", random_state=0)):
        with FakeTensorMode() as mode:
            fakes = [mode.from_tensor(t) for t in (node, labels)]
            assert layer(fakes[0]).shape == (2, 3, 4) and layer.loss(*fakes).shape == ()
            assert SPOPlus("chain", "none")(fakes[0], fakes[0]).shape == (2,)
        assert layer(node.to("meta")).is_meta and layer.loss(node.to("meta"), labels).is_meta
    assert SPOPlus("chain")(node.to("meta"), node.to("meta")).is_meta


def test_operators_of_decisions_pass_the_checks_of_torch():
    node, table, labels = draw()
    lengths = torch.tensor([5, 1, 3, 2])
    layer = PerturbedArgmax("chain", n_samples=3, random_state=0)
    plain = [node.detach(), table.detach()]
    sizes = "node\ntransition", lengths, None
    parts = decision_operators.encoded(layer._number, plain, *sizes, labels)
    noise = perturbed_operators.noise(layer._number, plain, *sizes, torch.tensor(0))
    both = perturbed_operators.perturbed(layer._number, plain, *sizes, noise)
    operands = layer._number, [node, table], *sizes
    for operator, *more in (
        (decision_operators.product, parts),
        (perturbed_operators.perturbed, noise),
    ):
        torch.library.opcheck(operator, (*operands, *more))
    for operator, *more in (
        (decision_operators.encoded, labels),
        (perturbed_operators.noise, torch.tensor(0)),
        (decision_operators.weighed, parts, torch.ones(4)),
        (perturbed_operators.perturbed_vjp, noise, both[2:], both[:2]),
    ):
        torch.library.opcheck(operator, (layer._number, plain, *sizes, *more))


def test_decisions_under_torch_func():
    node, table, _ = draw(dtype=torch.float64)
    args = node.detach(), table.detach()
    weights = torch.randn(4, 24, dtype=torch.float64)
    for function in decisions(lengths=torch.tensor([5, 1, 3, 2])):

        def total(*args, function=function):
            values = function(*args)
            return (values * (weights if values.ndim == 2 else weights[:, 0])).sum()

        plain = torch.autograd.grad(total(node, table), (node, table))
        for one, other in zip(plain, torch.func.grad(total, (0, 1))(*args), strict=True):
            assert torch.allclose(one, other)
        many = torch.randn(3, 4, 5, 3, dtype=torch.float64)
        expected = torch.stack([function(one, args[1]) for one in many])
        assert torch.allclose(torch.func.vmap(function, (0, None))(many, args[1]), expected)
        slopes = torch.func.vmap(torch.func.grad(total), (0, None))(many, args[1])
        for one, slope in zip(many, slopes):
            assert torch.allclose(torch.func.grad(total)(one, args[1]), slope)
        with pytest.raises(NotImplementedError, match="has no second derivatives"):
            torch.func.jacrev(torch.func.grad(total))(*args)
        with pytest.raises(NotImplementedError, match="no derivatives forward"):
            torch.func.jvp(total, args, args)
    true = torch.randn(4, 5, 3)  # scores alone are of torch.func
    layer = SPOPlus("chain")
    node = draw()[0]
    slope = torch.func.grad(lambda s: layer(s, true))(node.detach())
    assert torch.allclose(slope, torch.autograd.grad(layer(node, true), node)[0])
