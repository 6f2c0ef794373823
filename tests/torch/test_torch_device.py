"""Chains computed where scores lie: forced on the CPU, equal to native code, also in ties."""

import functools
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra [torch])")

from structsolve import get_structure  # noqa: E402
from structsolve.torch import (  # noqa: E402
    CRF,
    Marginals,
    OutputLayer,
    StructuredLoss,
    decode,
    device,
    on_device,
    tensors,
)

pytestmark = pytest.mark.filterwarnings("ignore:structure 'chain'")
BLOCKS = ("node", "transition", "start", "end", "edge")


def draw(seed, blocks=BLOCKS, dtype=torch.float32, whole=False):
    """A ragged batch, with NaN beyond the end of each example; whole numbers have ties."""
    rng = np.random.default_rng(seed)
    n, longest, k = rng.integers(2, 6, 3)
    shapes = {
        "node": (n, longest, k),
        "transition": (k, k),
        "start": (k,),
        "end": (k,),
        "edge": (n, longest - 1, k, k),
    }
    lengths = torch.tensor(rng.integers(1, longest + 1, n))
    scores = {}
    for name in blocks:
        array = rng.integers(-1, 2, shapes[name]) if whole else rng.normal(size=shapes[name])
        scores[name] = torch.tensor(array).to(dtype)
    for i, size in enumerate(lengths):
        scores["node"][i, size:] = torch.nan
        if "edge" in scores:
            scores["edge"][i, max(size - 1, 0) :] = torch.nan
    labels = torch.tensor(rng.integers(k, size=(n, longest)))
    return {name: t.requires_grad_() for name, t in scores.items()}, labels, lengths


@pytest.fixture
def used(monkeypatch):
    """Number of batches that were computed on their device."""
    batches = []
    original = device.OnDevice.__init__

    def counting(self, *args, **settings):
        original(self, *args, **settings)
        batches.append(self)

    monkeypatch.setattr(device.OnDevice, "__init__", counting)
    return batches


def both(function, scores):
    """Answers and gradients by native code, and on the device."""
    answers = []
    for always in (False, True):
        with on_device(always):
            answer = function()
        leaves = list(scores.values())
        flat = list(answer.values()) if isinstance(answer, dict) else [answer]
        rng = torch.Generator().manual_seed(3)
        total = sum((a * torch.randn(a.shape, generator=rng)).sum() for a in flat)
        answers.append((flat, torch.autograd.grad(total, leaves)))
    return answers


def compare(answers, atol=1e-5):
    (one, by_one), (other, by_other) = answers
    for a, b in zip([*one, *by_one], [*other, *by_other], strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        torch.testing.assert_close(b, a, atol=atol, rtol=1e-5)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("surrogate", ["crf", "margin"])
@pytest.mark.parametrize("seed", range(6))
def test_losses_and_gradients(surrogate, reduction, seed, used):
    for blocks in (BLOCKS, BLOCKS[:1], BLOCKS[:2], BLOCKS[:4], ("node", "edge")):
        scores, labels, lengths = draw(seed, blocks, whole=surrogate == "margin")
        layer = StructuredLoss("chain", surrogate, reduction=reduction)
        compare(both(functools.partial(layer, scores, labels, lengths), scores))
    assert len(used) == 5


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_types(dtype, used):
    scores, labels, lengths = draw(1, BLOCKS[:2], dtype)
    layer = StructuredLoss("chain", "crf")
    atol = 1e-12 if dtype == torch.float64 else 1e-2
    compare(both(functools.partial(layer, scores, labels, lengths), scores), atol)
    assert used


@pytest.mark.parametrize("seed", range(20))
def test_best_labels_with_ties(seed, used):
    scores, _, lengths = draw(seed, BLOCKS if seed % 2 else BLOCKS[:4], whole=True)
    expected = decode("chain", scores, lengths)
    with on_device():
        answer = decode("chain", scores, lengths)
    assert answer.dtype == expected.dtype and answer.tolist() == expected.tolist() and used


def test_marginals_of_single_words_have_no_transitions(used):
    node = torch.tensor([[[0.0, 1.0]]], requires_grad=True)
    scores = {"node": node, "transition": torch.ones(2, 2, requires_grad=True)}
    with on_device():
        answer = Marginals("chain")(scores)
    assert used and not answer["transition"].any()
    assert torch.allclose(answer["node"], node.softmax(-1))


@pytest.mark.parametrize("seed", range(6))
def test_marginals_and_their_derivatives(seed, used):
    scores, _, lengths = draw(seed)
    layer = Marginals("chain")
    compare(both(lambda: layer(scores, lengths), scores))
    few = {"node": scores["node"], "transition": scores["transition"]}
    for without in (torch.no_grad, torch.inference_mode):
        with on_device(), without():
            alone = layer(few, lengths)
        assert not alone["node"].requires_grad
        torch.testing.assert_close(alone, layer(few, lengths))
    assert len(used) == 3


def test_masks_with_holes_and_ignored_labels(used):
    generator = torch.Generator().manual_seed(0)
    node = torch.randn(4, 6, 3, generator=generator, requires_grad=True)
    table = torch.randn(3, 3, generator=generator, requires_grad=True)
    mask = torch.rand(4, 6, generator=generator) < 0.6
    mask[:, 2] = True
    labels = torch.randint(3, (4, 6), generator=generator)
    scores = {"node": node, "transition": table}
    layer = StructuredLoss("chain", "crf", reduction="none")
    compare(both(lambda: layer(scores, labels, mask=mask), scores))
    ignored = torch.where(mask, labels, -100)
    compare(both(lambda: layer(scores, ignored), scores))
    compare(both(lambda: layer(scores, ignored, [6, 5, 4, 3]), scores))
    with on_device():
        answer = decode("chain", scores, mask=mask)
    assert answer.tolist() == decode("chain", scores, mask=mask).tolist()
    assert len(used) == 4


def test_layers_with_parameters(used):
    torch.manual_seed(0)
    crf, tags = CRF(3, batch_first=True), torch.randint(3, (2, 5))
    node, mask = torch.randn(2, 5, 3), torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 1, 0]])
    own = {"t": crf.transitions, "s": crf.start_transitions, "e": crf.end_transitions}
    compare(both(lambda: crf(node, tags, mask), own))
    expected = crf.decode(node, mask)
    layer = OutputLayer("chain", 3)
    with on_device():
        assert crf.decode(node, mask) == expected
        assert layer.decode(node).shape == (2, 5)
    assert len(used) == 3


def test_second_derivatives():
    scores, labels, lengths = draw(2, BLOCKS[:1], torch.float64)
    node = scores["node"].detach().nan_to_num()
    layer = StructuredLoss("chain", "crf")
    expected = torch.autograd.functional.hessian(lambda x: layer(x, labels, lengths), node)
    with on_device():
        answer = torch.autograd.functional.hessian(lambda x: layer(x, labels, lengths), node)
        torch.testing.assert_close(answer, expected)
        margin = StructuredLoss("chain", "margin")
        (first,) = torch.autograd.grad(
            margin(scores["node"], labels, lengths), scores["node"], create_graph=True
        )
        with pytest.raises(NotImplementedError, match="'margin' has no second derivatives"):
            first.nan_to_num().sum().backward()


@pytest.mark.parametrize(
    "change", ["nan", "inf", "length", "zero", "label", "forbidden", "shape", "floats", "both"]
)
def test_what_is_wrong_has_the_message_of_native_code(change):
    node, labels, lengths, mask = torch.randn(2, 3, 2), torch.zeros(2, 3).long(), [3, 2], None
    if change in ("nan", "inf"):
        node[1, 0, 1] = float(change)
    if change in ("length", "zero"):
        lengths = [4 if change == "length" else 0, 2]
    if change == "label":
        labels[1, 1] = 5
    if change == "forbidden":
        node[1, 1] = -torch.inf
    if change == "shape":
        labels = labels[:, :2]
    if change == "floats":
        labels = labels.float()
    if change == "both":
        mask = torch.ones(2, 3)
    told = []
    for always in (False, True):
        with on_device(always):
            for call in (
                lambda: StructuredLoss("chain", "crf")(node, labels, lengths, mask=mask),
                lambda: decode("chain", node, lengths, mask=mask),
            ):
                try:
                    told.append(call().tolist())
                except (ValueError, TypeError) as error:
                    told.append(str(error))
    assert str(told[:2]) == str(told[2:])


def test_forbidden_scores_have_no_gradient(used):
    scores, labels, lengths = draw(5, BLOCKS[:4])
    k = scores["node"].shape[2]
    table = scores["transition"].detach().clone()
    table[k - 1] = -torch.inf
    scores = {**scores, "transition": table.requires_grad_()}
    labels = labels.clamp(max=k - 2)
    layer = StructuredLoss("chain", "crf", reduction="sum")
    compare(both(lambda: layer(scores, labels, lengths), scores))
    assert used


def test_what_native_code_computes_in_any_case(used):
    node, labels = torch.zeros(2, 3, 2), torch.zeros(2, 3).long()
    with on_device():
        StructuredLoss("chain", "slack")(node, labels)
        StructuredLoss("chain", "margin", oracle="lp")(node, labels)
        StructuredLoss(get_structure("chain", forbidden=[(0, 1)]), "crf", classes=2)(node, labels)
        StructuredLoss("multiclass", "crf")(node[0], labels[0])
        StructuredLoss("chain", "crf")(node[0], labels[0], [2, 1])
        Marginals("chain", "euclidean")(node)
    StructuredLoss("chain", "crf")(node, labels)  # on the CPU
    assert not used


def test_copies_of_scores_of_a_gpu_are_waited_for_once(monkeypatch):
    class Stream:
        waits = 0

        def synchronize(self):
            Stream.waits += 1

    monkeypatch.setattr(tensors, "_on_gpu", lambda tensor: True)
    monkeypatch.setattr(tensors, "_pinned_like", torch.empty_like)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream())
    scores, labels, lengths = draw(4)
    layer = StructuredLoss("chain", "slack")
    value = layer(scores, labels, lengths)
    assert Stream.waits == 1
    gradients = torch.autograd.grad(value, list(scores.values()))
    monkeypatch.undo()
    expected = torch.autograd.grad(layer(scores, labels, lengths), list(scores.values()))
    for one, other in zip(gradients, expected):
        assert torch.equal(one, other)


def test_pays_by_size():
    operations = get_structure("chain").score_space(3, False).device_operations()
    assert operations.pays((10_000, 50, 26)) and not operations.pays((1, 50, 26))
    assert pickle.loads(pickle.dumps(StructuredLoss("chain"))).structure.name == "chain"
