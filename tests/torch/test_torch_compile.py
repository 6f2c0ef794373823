"""Layers under torch.compile, torch.export and torch.func: graphs without breaks, equal answers."""

import copy
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch_cases import CASES  # noqa: E402

from structsolve import get_structure  # noqa: E402
from structsolve.torch import (  # noqa: E402
    CRF,
    BlackboxDiff,
    Marginals,
    OutputLayer,
    PerturbedArgmax,
    Sample,
    SPOPlus,
    StructuredLoss,
    decision_operators,
    decode,
    loss_operators,
    perturbed_operators,
)
from structsolve.torch.decoding import best_labels_of  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def compiled(function, **settings):
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, backend="aot_eager", **settings)


def draw(seed=0, shape=(4, 5, 3), dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    node = torch.randn(shape, generator=generator, dtype=dtype, requires_grad=True)
    table = torch.randn(shape[-1:] * 2, generator=generator, dtype=dtype, requires_grad=True)
    labels = torch.randint(0, shape[-1], shape[:-1], generator=generator)
    return node, table, labels


def same(function, *args):
    """The answers and first derivatives of a compiled function are those of the function."""
    leaves = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
    plain = function(*args)
    graph = compiled(function)(*args)
    assert torch.allclose(plain, graph, equal_nan=True)
    if plain.is_floating_point():
        weights = torch.arange(1.0, plain.numel() + 1).reshape(plain.shape)
        for one, other in zip(
            torch.autograd.grad((plain * weights).sum(), leaves),
            torch.autograd.grad((graph * weights).sum(), leaves),
            strict=True,
        ):
            assert torch.allclose(one, other, atol=1e-6)


@pytest.mark.parametrize(
    "surrogate, reduction", [("crf", "none"), ("margin", "mean"), ("sparsemap", "sum")]
)
def test_losses_of_chains(surrogate, reduction):
    layer = StructuredLoss("chain", surrogate, reduction=reduction)
    node, table, labels = draw()

    def loss(node, table, labels, lengths=None, mask=None):
        return layer({"node": node, "transition": table}, labels, lengths, mask=mask)

    same(loss, node, table, labels)
    lengths = torch.tensor([5, 1, 3, 2])
    same(loss, node, table, labels, lengths)
    mask = torch.arange(5) < lengths[:, None]
    same(loss, node, table, labels, None, mask)
    mask[0, 2] = False  # a hole
    same(loss, node, table, labels, None, mask)
    labels = labels.clone()
    labels[2, 1] = labels[0, 4] = -100
    same(loss, node, table, labels)
    same(loss, node, table, labels, lengths)
    same(loss, node, table, labels, None, mask)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_losses_of_other_structures(reduction):
    for structure, shape, labels in (
        ("multiclass", (4, 3), torch.tensor([0, 2, 1, 1])),
        ("dependency", (2, 4, 3), torch.tensor([[0, 1, 2], [2, 0, 2]])),
        ("multilabel", (3, 4), torch.tensor([[0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 0, 1]])),
        ("grid", (2, 2, 3, 3), torch.zeros(2, 2, 3, dtype=int)),
    ):
        layer = StructuredLoss(structure, reduction=reduction)
        scores = torch.randn(shape, requires_grad=True)
        same(lambda scores, labels, layer=layer: layer(scores, labels), scores, labels)
        flat = [s for s in (scores,)]
        assert torch.equal(
            decode(layer, *flat), compiled(lambda s, layer=layer: decode(layer, s))(scores)
        )
    layer = StructuredLoss("chain", reduction=reduction)  # packed
    rows, lengths = torch.randn(7, 3, requires_grad=True), torch.tensor([3, 4])
    same(
        lambda rows, labels, sizes: layer(rows, labels, sizes), rows, torch.zeros(7).long(), lengths
    )


@pytest.mark.parametrize("name", ["segments", "alignments", "grammar"])
def test_losses_of_segments_alignments_and_trees(name):
    case = CASES[name](np.random.default_rng(0))
    layer = StructuredLoss(case.structure, "crf", reduction="none")
    names, sizes = list(case.scores), torch.as_tensor(np.asarray(case.given["lengths"]))
    same(lambda *t: layer(dict(zip(names, t)), case.labels, sizes), *case.scores.values())
    if name == "segments":
        same(lambda *t: layer(dict(zip(names, t)), case.labels), *case.scores.values())
        expected = layer(case.scores, case.labels, sizes)
        torch.testing.assert_close(layer(case.scores, case.labels), expected)


@pytest.mark.parametrize(
    "structure, shape, lengths",
    [
        ("dependency", (2, 4, 3), [3, 2]),
        ("path:monotone=true", (2, 2, 3), [[2, 3], [1, 2]]),
        ("cky", (2, 3, 3, 2), [2, 1]),
    ],
)
def test_the_shape_of_labels_does_not_depend_on_lengths(structure, shape, lengths):
    """That of trees over spans was 2 n - 1 of the longest sentence, not of the room for it."""
    layer, scores, lengths = StructuredLoss(structure), torch.randn(shape), torch.tensor(lengths)
    best = decode(layer, scores, lengths)
    assert best.shape == decode(layer, scores).shape
    assert torch.equal(best, compiled(lambda s, n: decode(layer, s, n))(scores, lengths))


def test_blocks_whose_names_have_spaces():
    structure = get_structure("factor-graph", factors=[(0, 1, 2)], n_states=2)
    layer = StructuredLoss(structure, "crf")
    node, table = torch.randn(2, 3, 2), torch.randn(2, 2, 2, requires_grad=True)
    labels = torch.zeros(2, 3).long()
    same(lambda t: layer({"node": node, "factors of 3": t}, labels), table)


def test_marginals_of_shared_blocks_of_each_example():
    node, table = torch.randn(2, 3, 2), torch.randn(2, 2, 2, requires_grad=True)
    layer = Marginals("chain")
    same(lambda t: layer({"node": node, "transition": t})["transition"], table)


def test_half_precision_is_cast_in_the_graph():
    layer = StructuredLoss("chain")
    node, table, labels = draw()
    half = node.detach().bfloat16().requires_grad_()
    same(lambda node, labels: layer(node, labels), half, labels)


def test_marginals_and_labels():
    layer, best = Marginals("chain"), StructuredLoss("chain")
    node, table, _ = draw()
    lengths = torch.tensor([5, 1, 3, 2])
    for block in ("node", "transition"):
        same(
            lambda n, t, s, block=block: layer({"node": n, "transition": t}, s)[block],
            *(node, table, lengths),
        )
    mask = torch.arange(5) < lengths[:, None]
    same(lambda n, t, m: layer({"node": n, "transition": t}, mask=m)["node"], node, table, mask)
    same(lambda n, t, s: decode(best, {"node": n, "transition": t}, s), node, table, lengths)
    mask[0, 2] = False
    same(lambda n, t, m: decode(best, {"node": n, "transition": t}, mask=m), node, table, mask)


def test_modules_and_their_copies():
    node, _, labels = draw()
    for module, call in (
        (OutputLayer("chain", 3), lambda m, n, y: m(n, y)),
        (CRF(3, batch_first=True), lambda m, n, y: m(n, y)),
        (copy.deepcopy(OutputLayer("chain", 3, "margin")), lambda m, n, y: m(n, y)),
    ):
        same(lambda n, y, m=module, call=call: call(m, n, y), node, labels)


def test_no_breaks_and_no_recompilation_by_value():
    layer = StructuredLoss("chain", "crf")

    def step(node, table, labels, lengths):
        return layer({"node": node, "transition": table}, labels, lengths)

    args = *draw(), torch.tensor([5, 1, 3, 2])
    torch._dynamo.reset()
    report = torch._dynamo.explain(step)(*args)
    assert (report.graph_break_count, report.graph_count) == (0, 1)
    graph = compiled(step)
    graph(*args)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for seed in range(1, 4):
            more = *draw(seed), torch.tensor([1 + seed, 5, 2, 4])
            assert torch.allclose(graph(*more), step(*more))


def test_sizes_may_be_dynamic():
    layer = StructuredLoss("chain", "crf")

    def step(node, table, labels):
        best = decode(layer, {"node": node, "transition": table})
        return layer({"node": node, "transition": table}, labels) + best.sum()

    graph = compiled(step, dynamic=True)
    graph(*draw())
    with torch._dynamo.config.patch(error_on_recompile=True):
        for shape in ((3, 6, 3), (7, 4, 3)):
            args = draw(shape=shape)
            assert torch.allclose(graph(*args), step(*args))


def test_export():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.score, self.crf = torch.nn.Linear(4, 3), OutputLayer("chain", 3)

        def forward(self, words, labels, lengths):
            return self.crf(self.score(words), labels, lengths)

    model, lengths = Model(), torch.tensor([3, 2])
    args = torch.randn(2, 3, 4), torch.zeros(2, 3, dtype=int), lengths
    program = torch.export.export(model, args)
    assert torch.allclose(program.module()(*args), model(*args))


def test_fake_and_meta_tensors_have_shapes():
    layer, node = StructuredLoss("chain", reduction="none"), torch.zeros(2, 3, 4)
    labels = torch.zeros(2, 3, dtype=int)
    with FakeTensorMode() as mode:
        fakes = [mode.from_tensor(t) for t in (node, labels)]
        assert layer(*fakes).shape == (2,)
        assert decode(layer, fakes[0]).shape == (2, 3)
        assert Marginals("chain")(fakes[0]).shape == (2, 3, 4)
    metas = node.to("meta"), labels.to("meta")
    assert layer(*metas).shape == (2,) and layer(*metas).is_meta


def test_operators_pass_the_checks_of_torch():
    node, table, labels = draw()
    lengths = torch.tensor([5, 1, 3, 2])
    for reduction in ("mean", "none"):
        layer = StructuredLoss("chain", "crf", reduction=reduction)
        operands = layer._number, [node, table], "node\ntransition"
        torch.library.opcheck(loss_operators.loss, (*operands, lengths, None, labels))
        factor = torch.ones(4 if reduction == "none" else ())
        rest = operands, lengths, None, labels, factor
        torch.library.opcheck(loss_operators.loss_gradient, (*rest[0], *rest[1:]))
        plain = layer._number, [node.detach(), table.detach()], "node\ntransition"
        torch.library.opcheck(
            loss_operators.loss_second, (*plain, *rest[1:], [node.detach(), table.detach()])
        )
    layer = Marginals("chain")
    operands = layer._number, [node, table], "node\ntransition"
    torch.library.opcheck(loss_operators.marginals, (*operands, lengths, None))
    torch.library.opcheck(best_labels_of, (*operands, lengths, None, None))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_derivatives_of_torch_func(reduction):
    layer = StructuredLoss("chain", "crf", reduction=reduction)
    node, table, labels = draw(dtype=torch.float64)
    lengths = torch.tensor([5, 1, 3, 2])

    def loss(node, table):
        return (layer({"node": node, "transition": table}, labels, lengths) ** 2).sum()

    args = node.detach(), table.detach()
    plain = torch.autograd.grad(loss(node, table), (node, table))
    for one, other in zip(plain, torch.func.grad(loss, (0, 1))(*args)):
        assert torch.allclose(one, other)
    for i in (0, 1):
        hessian = torch.func.jacrev(torch.func.grad(loss, i), i)(*args)

        def alone(x, i=i):
            return loss(*(x if k == i else a for k, a in enumerate(args)))

        assert torch.allclose(hessian, torch.autograd.functional.hessian(alone, args[i]))
    with pytest.raises(NotImplementedError, match="no third derivatives"):
        second = torch.func.grad(lambda *both: torch.func.grad(loss)(*both).sum())
        torch.func.grad(lambda *both: second(*both).sum())(*args)


def test_second_derivatives_that_are_missing_raise():
    layer = StructuredLoss("chain", "margin")
    node, _, labels = draw()
    with pytest.raises(NotImplementedError, match="no second derivatives"):
        torch.func.jacrev(torch.func.grad(lambda x: layer(x, labels)))(node.detach())


def test_vmap_is_a_loop_over_batches():
    layer, marginals = StructuredLoss("chain", "crf"), Marginals("chain")
    node, table, labels = draw(shape=(6, 2, 5, 3)[1:])
    many = torch.randn(6, 2, 5, 3)
    lengths = torch.tensor([5, 3])

    def loss(node, table):
        return layer({"node": node, "transition": table}, labels, lengths)

    expected = torch.stack([loss(one, table) for one in many])
    assert torch.allclose(torch.func.vmap(loss, (0, None))(many, table), expected)
    slopes = torch.func.vmap(torch.func.grad(loss), (0, None))(many, table.detach())
    for one, slope in zip(many, slopes):
        assert torch.allclose(torch.func.grad(loss)(one, table.detach()), slope, atol=1e-6)
    for function in (lambda x: marginals(x), lambda x: decode(layer, x)):
        expected = torch.stack([function(one) for one in many])
        assert torch.equal(torch.func.vmap(function)(many), expected)


def test_what_operators_do_not_take_is_refused_by_name():
    layer = StructuredLoss("mrf")
    node, labels = torch.zeros(1, 2, 2), torch.zeros(1, 2, dtype=int)
    with pytest.raises(NotImplementedError, match="'mrf'.* no graphs; call the layer outside"):
        torch.func.grad(lambda x: layer(x, labels, edges=[[[0, 1]]]))(node)
    with pytest.raises(NotImplementedError, match="take a layer, not a structure"):
        torch.func.vmap(lambda x: decode("chain", x))(torch.zeros(2, 1, 3, 2))
    number, gone = layer._number, get_structure("chain")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        number = StructuredLoss(gone)._number
    with pytest.raises(RuntimeError, match="no longer exists"):
        loss_operators.loss(number, [node], "node", None, None, labels)


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
        same(loss, node, table)
        if reduction == "none":  # which the mean does not have
            same(mean, node, table)
        if noise == "additive":  # which regrets do not have
            for regret in regrets:
                same(regret, node, table)


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
        same(lambda s, layer=layer: layer(s), scores)
        same(lambda s, layer=layer, y=labels: layer.loss(s, y), scores)
        same(lambda s, regret=regret, t=true: regret(s, t), scores)
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


def test_labels_of_a_crf_in_a_graph():
    crf, node = CRF(3, batch_first=True), draw()[0].detach()
    mask = torch.arange(5) < torch.tensor([5, 1, 3, 2])[:, None]
    layer = StructuredLoss("chain", "crf")
    best = compiled(lambda n, m: decode(layer, crf.scores(n), mask=m))(node, mask)
    assert [row[row >= 0].tolist() for row in best] == crf.decode(node, mask)
