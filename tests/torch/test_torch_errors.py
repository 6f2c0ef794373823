"""Errors of torch layers, other kinds of tensors that they accept; the page of the docs."""

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

from doc_code import ROOT, directives  # noqa: E402

from structsolve import get_structure  # noqa: E402
from structsolve.batch import score_space  # noqa: E402
from structsolve.torch import (  # noqa: E402
    BlackboxDiff,
    Marginals,
    PerturbedArgmax,
    SPOPlus,
    StructuredLoss,
    decode,
)

X = torch.zeros(2, 4, 3)
Y = torch.zeros(2, 4, dtype=torch.long)
NAN = torch.tensor(float("nan"))


def at(tensor, place, value):
    changed = tensor.clone()
    changed[place] = value
    return changed


CHAIN = StructuredLoss("chain")
REFUSED = {
    "labels of another shape": (
        lambda: CHAIN(X, Y[:, :3]),
        r"labels: found the shape \(2, 3\), expected \(2, 4\)",
    ),
    "labels of floats": (lambda: CHAIN(X, Y.float()), "labels: found float32, expected integers"),
    "an unknown label": (lambda: CHAIN(X, at(Y, (1, 2), 3)), r"example 1: .*holds 3 .*0 to 2"),
    "a label below 0": (lambda: CHAIN(X, at(Y, (1, 2), -1), [4, 3]), "example 1: .*holds -1"),
    "NaN": (lambda: CHAIN(at(X, (1, 2, 0), NAN), Y), "example 1: .*nan at node 2"),
    "NaN in a table": (
        lambda: CHAIN({"node": X, "transition": torch.full((3, 3), torch.nan)}, Y),
        "'transition' holds nan",
    ),
    "a table of another shape": (
        lambda: CHAIN({"node": X, "transition": torch.zeros(2, 2)}, Y),
        r"'transition'.*\(2, 2\).*\(3, 3\)",
    ),
    "an unknown block": (
        lambda: CHAIN({"node": X, "pair": torch.zeros(3, 3)}, Y),
        "found the block 'pair', expected some of .*'transition'",
    ),
    "no label is allowed": (
        lambda: decode("chain", at(X, (1, 2), -torch.inf)),
        "example 1: every label is forbidden .*allow at least one",
    ),
    "no perturbed label is allowed": (
        lambda: PerturbedArgmax("multiclass", n_samples=2)(torch.full((1, 3), -torch.inf)),
        "example 0: every label is forbidden",
    ),
    "no node scores": (lambda: CHAIN({"transition": torch.zeros(3, 3)}, Y), "expected a block"),
    "no examples": (lambda: CHAIN(X[:0], Y[:0]), r"shape \(0, .*expected no axis of 0"),
    "one sentence": (lambda: CHAIN(X[0], Y[0]), "expected .*lengths= for a packed one"),
    "too few rows": (lambda: CHAIN(X[0], Y[0], [2, 3]), "found 4 .*expected 5 rows"),
    "a length beyond the room": (
        lambda: CHAIN(X, Y, [4, 5]),
        "example 1: its length is 5, expected at most 4",
    ),
    "too few lengths": (lambda: CHAIN(X, Y, [4]), "found 2 along the first axis, expected 1"),
    "a length of 0": (lambda: CHAIN(X, Y, [4, 0]), "example 1: lengths: found 0"),
    "lengths of floats": (lambda: CHAIN(X, Y, [4.0, 2.0]), "lengths: found float64"),
    "lengths where an example is a row": (
        lambda: StructuredLoss("multiclass")(X[0], Y[0], [4]),
        "has one row of scores for each example, expected none",
    ),
    "axes where an example is a row": (
        lambda: StructuredLoss("multiclass")(X, Y),
        "expected the number of examples",
    ),
    "no tensor": (lambda: CHAIN(X.numpy(), Y), "is ndarray, expected a tensor of floats"),
    "sparse": (lambda: CHAIN(X.to_sparse(), Y), "is torch.sparse_coo, expected a tensor of floats"),
    "integers": (lambda: CHAIN(X.long(), Y), "is torch.int64, expected a tensor of floats"),
    "a forbidden truth": (
        lambda: StructuredLoss("chain", "crf")(at(X, (1, 2, 0), -torch.inf), Y),
        "example 1: .*-inf forbids its true label",
    ),
    "a surrogate that rankings cannot have": (
        lambda: StructuredLoss("permutation", "crf")(
            torch.zeros(2, 3, 3), torch.arange(3).repeat(2, 1)
        ),
        "surrogate 'crf' needs exact marginals",
    ),
    "marginals that flows do not have": (
        lambda: Marginals(get_structure("flow", network={"s": ["t"]}))(torch.zeros(1, 1)),
        "demand",
    ),
    "an unknown surrogate": (lambda: StructuredLoss("chain", "hinge")(X, Y), "unknown surrogate"),
    "an unknown structure": (lambda: StructuredLoss("chains"), "unknown structure"),
    "an unknown reduction": (
        lambda: StructuredLoss("chain", reduction="max"),
        "reduction is 'max', expected one of",
    ),
    "trees without trees": (lambda: StructuredLoss("tree")(X, Y), "trees: found None"),
    "a head beyond the sentence": (
        lambda: StructuredLoss("dependency")(torch.zeros(1, 4, 3), torch.tensor([[0, 1, 9]])),
        "example 0",
    ),
    "arcs of another shape": (
        lambda: StructuredLoss("dependency")(torch.zeros(1, 3, 3), torch.tensor([[0, 1, 1]])),
        r"example 0: its scores are a table of shape \(4, 3\), expected at most \(3, 3\)",
    ),
    "examples beside lengths": (
        lambda: CHAIN(X, Y, [4, 4], score_space("chain", 3).pack_sizes([4, 4])),
        "expected no lengths beside them",
    ),
    "examples that are none": (lambda: CHAIN(X, Y, examples=[4, 4]), "expected Examples"),
    "true scores of another shape": (
        lambda: SPOPlus("chain")(X, X[:, :3]),
        "true_scores: expected the blocks and shapes of scores",
    ),
    "a sigma of 0": (lambda: PerturbedArgmax("chain", 0), "sigma is 0, expected a number above"),
    "a negative lam": (lambda: BlackboxDiff("chain", -1.0), "lam is -1.0"),
    "no draws": (lambda: PerturbedArgmax("chain", n_samples=0), "n_samples is 0"),
    "an unknown noise": (lambda: PerturbedArgmax("chain", noise="gumbel"), "noise is 'gumbel'"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_in_one_sentence(what):
    call, message = REFUSED[what]
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def case():
    rng = np.random.default_rng(0)
    scores = torch.tensor(rng.normal(size=(3, 5, 4)), requires_grad=True)
    labels = torch.tensor(rng.integers(0, 4, (3, 5)))
    return scores, labels, torch.tensor([5, 2, 3])


@pytest.mark.parametrize("surrogate", ["crf", "margin"])
def test_packed_and_padded_are_the_same(surrogate):
    scores, labels, lengths = case()
    layer = StructuredLoss("chain", surrogate)
    inside = torch.arange(5) < lengths[:, None]
    one = layer(scores, labels, lengths)
    (first,) = torch.autograd.grad(one, [scores])
    packed = scores.detach()[inside].requires_grad_()
    examples = score_space("chain", 4).pack_sizes(lengths.tolist())
    for given in ({"lengths": lengths}, {"examples": examples}):
        other = layer(packed, labels[inside], **given)
        (second,) = torch.autograd.grad(other, [packed])
        assert one.item() == other.item()
        assert torch.equal(first[inside], second)
    assert decode(layer, packed, lengths).equal(decode(layer, scores, lengths)[inside])
    # Entries beyond an example are not read, and get no gradient.
    wild = torch.where(inside[..., None], scores.detach(), NAN).requires_grad_()
    layer(wild, labels, lengths).backward()
    assert torch.equal(wild.grad, first) and (first[~inside] == 0).all()


def test_other_types_and_strides():
    scores, labels, lengths = case()
    layer = StructuredLoss("chain", "crf")
    value = layer(scores, labels, lengths)
    loss = layer(scores.detach().float(), labels.int(), lengths.tolist())
    assert loss.dtype == torch.float32 and loss.item() == pytest.approx(value.item(), rel=1e-6)
    strided = scores.detach().transpose(0, 1).contiguous().transpose(0, 1).requires_grad_()
    assert layer(strided, labels.t().contiguous().t(), lengths).item() == value.item()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_half_precision_is_single_inside(dtype, reduction):
    """Losses are float32; gradients are those of float32, rounded once, also under a scaler."""
    torch.manual_seed(0)
    half = {
        "node": (3 * torch.randn(40, 60, 30)).to(dtype).requires_grad_(),
        "transition": torch.randn(30, 30).to(dtype).requires_grad_(),
    }
    wide = {name: t.detach().float().requires_grad_() for name, t in half.items()}
    labels = torch.randint(30, (40, 60))
    layer = StructuredLoss("chain", "crf", reduction=reduction)
    small, large = layer(half, labels), layer(wide, labels)
    assert small.dtype == torch.float32 and torch.equal(small, large)  # 9,000 and more in a sum
    scale = 65536 if reduction == "mean" else 1024
    for loss in (small, large):
        (scale * loss.mean()).backward()
    for name, tensor in half.items():
        assert tensor.grad.dtype == dtype and tensor.grad.isfinite().all()
        assert torch.equal(tensor.grad, wide[name].grad.to(dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_of_other_layers(dtype):
    torch.manual_seed(0)
    scores = torch.randn(3, 4, 5).to(dtype).requires_grad_()
    wide = scores.detach().float().requires_grad_()
    labels = torch.zeros(3, 4, dtype=int)
    true = torch.randn(3, 4, 5)
    settings = {"n_samples": 300, "random_state": 0}

    def answers(scores):
        yield Marginals("chain")(scores)
        yield PerturbedArgmax("chain", **settings)(scores)
        yield BlackboxDiff("chain")(scores)
        yield PerturbedArgmax("chain", **settings).loss(scores, labels)
        yield SPOPlus("chain")(scores, true)

    for mine, other in zip(answers(scores), answers(wide)):
        assert mine.dtype == (dtype if mine.ndim else torch.float32)
        assert torch.equal(mine, other.to(mine.dtype))
        direction = torch.ones_like(mine) if not mine.ndim else true.to(dtype)
        mine, other = (
            torch.autograd.grad(answer, given, direction.to(answer.dtype))[0]
            for answer, given in ((mine, scores), (other, wide))
        )
        assert mine.dtype == dtype and torch.equal(mine, other.to(dtype))


def test_no_bit_depends_on_threads():
    rng = np.random.default_rng(1)
    scores = torch.tensor(rng.normal(size=(40, 9, 4)), requires_grad=True)
    table = torch.tensor(rng.normal(size=(4, 4)), requires_grad=True)
    labels = torch.tensor(rng.integers(0, 4, (40, 9)))
    answers = []
    for n_jobs in (None, 2, 3):
        layer = StructuredLoss("chain", "crf", n_jobs=n_jobs)
        loss = layer({"node": scores, "transition": table}, labels)
        answers.append([loss, *torch.autograd.grad(loss, [scores, table])])
    for other in answers[1:]:
        assert all(torch.equal(a, b) for a, b in zip(answers[0], other))


def test_backward_twice_and_after_a_change():
    scores, labels, lengths = case()
    loss = StructuredLoss("chain", "crf")(scores, labels, lengths)
    (first,) = torch.autograd.grad(loss, [scores], retain_graph=True)
    (second,) = torch.autograd.grad(3 * loss, [scores])
    torch.testing.assert_close(3 * first, second)
    # Without a reduction scores are read again: they must not have changed.
    own = scores.detach().clone().requires_grad_()
    values = StructuredLoss("chain", "crf", reduction="none")(own, labels, lengths)
    with torch.no_grad():
        own += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        (values @ torch.arange(3.0, dtype=torch.double)).backward()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_gradients_that_were_taken_are_computed_again(reduction):
    scores, labels, lengths = case()
    own = scores.detach().clone().requires_grad_()
    table = torch.eye(4, dtype=torch.double, requires_grad=True)
    blocks = {"node": own, "transition": table}
    loss = StructuredLoss("chain", "crf", reduction=reduction)(blocks, labels, lengths).sum()
    loss.backward(retain_graph=True)
    once = own.grad.clone(), table.grad.clone()
    loss.backward(retain_graph=True)  # added to what was taken
    for tensor, gradient in zip((own, table), once):
        assert gradient.abs().max() > 0
        torch.testing.assert_close(tensor.grad, 2 * gradient)
    with torch.no_grad():
        own += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_leaves_keep_gradients_without_a_copy(monkeypatch):
    from structsolve.torch import layer as layers

    scores, labels, lengths = case()
    own, made = scores.detach().clone().requires_grad_(), []
    tensors_of = layers.Given.tensors_of

    def noted(self, answer):
        tensors = tensors_of(self, answer)
        made.extend(tensor.data_ptr() for tensor in tensors)
        return tensors

    monkeypatch.setattr(layers.Given, "tensors_of", noted)
    StructuredLoss("chain", "crf")(own, labels, lengths).backward()
    assert [own.grad.data_ptr()] == made


def test_layers_are_copied_and_pickled():
    scores, labels, lengths = case()
    layer = StructuredLoss("chain", "crf")
    value = layer(scores, labels, lengths).item()
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert other(scores, labels, lengths).item() == value


def test_batches_of_all_widths_share_a_space():
    layer = StructuredLoss("dependency", "crf")
    for n in (3, 5, 4):
        scores = torch.zeros(2, n + 1, n)
        assert layer(scores, torch.zeros(2, n, dtype=torch.long) + torch.arange(n)).item() > 0
    assert len(layer._batches._kinds) == 1


def test_gradients_descend():
    scores, labels, lengths = case()
    layer = torch.nn.Sequential(torch.nn.Linear(4, 4)).double()
    loss = StructuredLoss("chain", "probloss")
    optimizer, values = torch.optim.SGD(layer.parameters(), 0.5), []
    for _ in range(30):
        optimizer.zero_grad()
        value = loss(layer(scores.detach()), labels, lengths)
        value.backward()
        optimizer.step()
        values.append(value.item())
    assert values[-1] < 0.8 * values[0]


@pytest.mark.skipif(not (ROOT / "docs").exists(), reason="installed without the checkout")
@pytest.mark.filterwarnings("error:.*no score joins:UserWarning")
@pytest.mark.parametrize("page", ["torch.rst", "network_structures.rst"])
def test_pages_of_the_docs(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "path", [*sys.path])
    space = {}
    for line, _, code in directives(ROOT / "docs" / page, "python"):
        exec(compile("\n" * (line - 1) + code, f"docs/{page}", "exec"), space)
    if page == "torch.rst":
        tags, best = space["tags"].tolist(), space["best"]
        assert [len(row) for row in best] == space["lengths"].tolist()
        right = [a == b for row, own in zip(best, tags) for a, b in zip(row, own)]
        assert np.mean(right) > 0.95
        padded = space["padded"]
        assert padded.shape == (64, 12) and ((padded == -1) == ~space["mask"]).all()


def test_the_package_does_not_import_torch():
    code = "import sys, structsolve, structsolve.batch; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=os.environ).returncode == 0


def test_without_torch_it_says_what_to_install():
    code = "import sys; sys.modules['torch'] = None; import structsolve.torch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: structsolve.torch needs PyTorch: pip install" in done.stderr
