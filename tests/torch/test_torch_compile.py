"""Layers under torch.compile, torch.export and torch.func: graphs without breaks, equal answers."""

import contextlib
import copy
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from compile_cases import compiled, draw, same  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch_cases import CASES  # noqa: E402

from structsolve import get_structure  # noqa: E402
from structsolve.torch import (  # noqa: E402
    CRF,
    Marginals,
    OutputLayer,
    StructuredLoss,
    decode,
    loss_operators,
    on_device,
)
from structsolve.torch.decoding import best_labels_of  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


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
        ("permutation", (2, 3, 3), torch.tensor([[0, 2, 1], [2, 1, 0]])),
        ("permutation:kind=matching", (2, 2, 3), torch.tensor([[0, 2], [2, 1]])),
        ("alignment", (2, 3, 2), torch.tensor([[0, 1, 2], [0, 0, 1]])),
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


@pytest.mark.parametrize("graph", [compiled, on_device])
def test_any_type_of_integers(graph):
    layer, node = StructuredLoss("chain", "crf"), torch.randn(2, 4, 200)
    labels = torch.tensor([[0, 156, 199, 1], [3, 4, 5, 6]])  # in eight bits 156 equals -100
    expected = layer(node, labels), layer(node, labels, [3, 4])
    with on_device() if graph is on_device else contextlib.nullcontext():
        for dtype in (torch.uint8, torch.uint16, torch.uint64):
            loss = layer if graph is on_device else graph(layer)
            given = labels.to(dtype)
            lengths = torch.tensor([3, 4]).to(dtype)
            torch.testing.assert_close((loss(node, given), loss(node, given, lengths)), expected)
            mask = torch.ones(2, 4).to(dtype)
            torch.testing.assert_close(loss(node, given, mask=mask), expected[0])


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


def test_labels_of_a_crf_in_a_graph():
    crf, node = CRF(3, batch_first=True), draw()[0].detach()
    mask = torch.arange(5) < torch.tensor([5, 1, 3, 2])[:, None]
    layer = StructuredLoss("chain", "crf")
    best = compiled(lambda n, m: decode(layer, crf.scores(n), mask=m))(node, mask)
    assert [row[row >= 0].tolist() for row in best] == crf.decode(node, mask)
