"""Second derivatives of layers: compared with differences if they exist, errors otherwise."""

import functools

import numpy as np
import pytest
from checks import refused

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

import torch_cases  # noqa: E402
from torch.autograd.functional import hessian, hvp, jacobian, jvp, vhp  # noqa: E402
from torch_cases import CASES, GIBBS  # noqa: E402

from structsolve import registry  # noqa: E402
from structsolve.batch import Scores, hessian_product, score_space  # noqa: E402
from structsolve.surrogates import MaxMin, MicroF1, SparseMAP  # noqa: E402
from structsolve.torch import (  # noqa: E402
    BlackboxDiff,
    Distribution,
    Marginals,
    PerturbedArgmax,
    SPOPlus,
    StructuredLoss,
)

#: Structures whose SparseMAP has derivatives where their CRF has not.
SPARSE = ("multiclass", "chain", "ranking", "thresholds")


def function(layer, case):
    """Return the layer's loss as a function of its tensors, and these."""
    names = list(case.scores)

    def value(*tensors):
        return layer(dict(zip(names, tensors)), case.labels, **case.given)

    return value, tuple(case.scores.values())


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize(
    ("name", "surrogate"), [*((n, "crf") for n in GIBBS), *((n, "sparsemap") for n in SPARSE)]
)
def test_second_derivatives_are_those_of_differences(name, surrogate, reduction):
    case = CASES[name](np.random.default_rng(5), n=2)
    value, tensors = function(StructuredLoss(case.structure, surrogate, reduction=reduction), case)
    assert torch.autograd.gradgradcheck(value, tensors, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", GIBBS)
def test_hessians_are_those_over_all_labels(name):
    for seed in range(2):
        case = GIBBS[name](np.random.default_rng(seed))
        n, names = len(case.truths), list(case.scores)
        weights = torch.tensor(np.random.default_rng(seed).normal(size=n))
        value, tensors = function(StructuredLoss(case.structure, "crf", reduction="none"), case)
        expected = sum(w * torch_cases.crf(case, i) for i, w in enumerate(weights)) ** 2
        ours = (value(*tensors) @ weights) ** 2
        rows = []
        for total in (ours, expected):
            first = torch.autograd.grad(total, tensors, create_graph=True, allow_unused=True)
            along = sum(
                (g * torch.cos(torch.arange(g.numel()).reshape(g.shape))).sum()
                for g in first
                if g is not None
            )
            second = torch.autograd.grad(along + along**2, tensors, allow_unused=True)
            rows.append([torch.zeros_like(t) if g is None else g for g, t in zip(second, tensors)])
        for block, mine, other in zip(names, *rows):
            torch.testing.assert_close(mine, other, msg=lambda m, b=block: f"{b}: {m}")


@pytest.mark.parametrize("packed", [False, True])
def test_functionals_of_torch(packed):
    torch.manual_seed(0)
    scores, labels, lengths = (
        torch.randn(2, 3, 2).double(),
        torch.tensor([[0, 1, 1], [1, 0, 0]]),
        [3, 2],
    )
    if packed:
        scores, labels = scores.reshape(6, 2)[:5], labels.reshape(6)[:5]
    layer = StructuredLoss("chain", "crf", reduction="sum")
    table = torch.randn(2, 2).double()

    def value(scores):
        return layer({"node": scores, "transition": table}, labels, lengths)

    whole = hessian(value, scores)
    n = scores.numel()
    assert whole.abs().max() > 0.01
    torch.testing.assert_close(whole.reshape(n, n), whole.reshape(n, n).T)
    along = torch.randn_like(scores)
    product = (whole.reshape(n, n) @ along.reshape(n)).reshape(scores.shape)
    for one in (hvp, vhp):
        torch.testing.assert_close(one(value, scores, along)[1], product)
    torch.testing.assert_close(
        jvp(value, scores, along)[1],
        (torch.autograd.functional.jacobian(value, scores) * along).sum(),
    )


def enumerated(scores, labels):
    """Return the loss of a CRF of chains, over all labels."""
    n, length, K = scores["node"].shape
    every = torch.cartesian_prod(*[torch.arange(K)] * length)

    def score(i, y):
        nodes = scores["node"][i][torch.arange(length), y].sum(-1)
        return nodes + scores["transition"][y[..., :-1], y[..., 1:]].sum(-1)

    each = [torch.logsumexp(score(i, every), 0) - score(i, labels[i]) for i in range(n)]
    return torch.stack(each).mean()


def test_gradient_penalties_and_inner_steps():
    """A penalty on the gradient and a step of MAML, compared with explicit sums over all labels."""
    scores = {
        "node": torch.randn(2, 3, 2).double().requires_grad_(),
        "transition": torch.randn(2, 2).double().requires_grad_(),
    }
    labels, tensors = torch.tensor([[0, 1, 1], [1, 0, 1]]), list(scores.values())

    def penalty(loss):
        first = torch.autograd.grad(loss(scores, labels), tensors, create_graph=True)
        return loss(scores, labels) + 10 * sum(g.square().sum() for g in first)

    def maml(loss):
        first = torch.autograd.grad(loss(scores, labels), tensors, create_graph=True)
        moved = {name: t - 0.5 * g for (name, t), g in zip(scores.items(), first)}
        return loss(moved, labels)

    for step in (penalty, maml):
        values = step(StructuredLoss("chain", "crf")), step(enumerated)
        torch.testing.assert_close(*values)
        for mine, other in zip(*(torch.autograd.grad(value, tensors) for value in values)):
            torch.testing.assert_close(mine, other)


def gradients(value, tensors):
    """Return gradients of which derivatives are asked; they are those of which none are."""
    plain = torch.autograd.grad(value, tensors, retain_graph=True)
    first = torch.autograd.grad(value, tensors, create_graph=True)
    for a, b in zip(plain, first):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
    return first


def layers(name, case):
    """Return every loss that is not smooth, as functions of the scores."""
    for surrogate in registry.default().names("surrogates"):
        if surrogate in ("crf", "sparsemap"):
            continue
        if surrogate == "micro-f1":
            surrogate = MicroF1() if name in ("multilabel", "closed") else MicroF1(background=0)
        for reduction in ("mean", "none"):
            yield StructuredLoss(case.structure, surrogate, reduction=reduction)


@pytest.mark.parametrize("name", ["chain", "dependency", "multiclass", "grid", "flow", "ranking"])
def test_what_has_none_raises(name):
    case = CASES[name](np.random.default_rng(6))
    tensors = list(case.scores.values())
    for layer in layers(name, case):
        try:
            loss = layer(case.scores, case.labels, **case.given).sum()
        except ValueError:
            continue  # what the structure does not have at all
        first = gradients(loss, tensors)
        with pytest.raises(NotImplementedError, match=f"{case_name(case)!r}.* has no second deriv"):
            sum(g.square().sum() for g in first).backward()


def case_name(case):
    return case.structure if isinstance(case.structure, str) else case.structure.name


@pytest.mark.parametrize("name", ["chain", "multiclass", "ordinal"])
def test_max_min_has_them_or_raises(name):
    """Never zeros: if the saddle point has no derivative, an error says so."""
    make = torch_cases.thresholds if name == "ordinal" else CASES[name]
    case = make(np.random.default_rng(6))
    value, tensors = function(StructuredLoss(case.structure, MaxMin(tol=1e-10, max_iter=500)), case)
    try:
        assert torch.autograd.gradgradcheck(value, tensors, atol=1e-5, rtol=1e-4)
    except NotImplementedError as error:
        assert "no second derivatives" in str(error)


@pytest.mark.parametrize("name", ["chain", "grid", "multiclass", "flow"])
def test_decisions_raise(name):
    case = CASES[name](np.random.default_rng(6))
    tensors = list(case.scores.values())
    true = {k: t.detach() + 1 for k, t in case.scores.items()}
    values = [
        PerturbedArgmax(case.structure, random_state=0).loss(
            case.scores, case.labels, **case.given
        ),
        SPOPlus(case.structure)(case.scores, true, **case.given),
    ]
    for layer in (
        PerturbedArgmax(case.structure, random_state=0),
        PerturbedArgmax(case.structure, random_state=0, noise="multiplicative"),
        BlackboxDiff(case.structure),
    ):
        answer = layer(case.scores, **case.given)
        values.append(
            sum((t * torch.arange(t.numel()).view(t.shape)).sum() for t in answer.values())
        )
        values.append(sum(t.square().sum() for t in answer.values()))
    for value in values:
        first = gradients(value, tensors)
        with pytest.raises(NotImplementedError, match="has no second derivatives"):
            torch.autograd.grad(sum(g.square().sum() for g in first), tensors, allow_unused=True)


def test_marginals_have_products_and_no_second_derivatives():
    case = torch_cases.chain(np.random.default_rng(6), n=2)
    layer, names, tensors = Marginals("chain"), list(case.scores), tuple(case.scores.values())

    def value(*tensors):
        return tuple(layer(dict(zip(names, tensors)), **case.given).values())

    def total(*tensors):
        return sum(t.square().sum() for t in value(*tensors))

    with pytest.raises(NotImplementedError, match="'chain' has no second derivatives"):
        torch.autograd.gradgradcheck(value, tensors)
    refused("'chain' has no second derivatives", hessian, total, tensors, error=NotImplementedError)
    # Products with the Jacobian from the right, by two backward passes through a linear function.
    along = tuple(torch.randn_like(t) for t in tensors)
    step = 1e-5
    ends = [value(*(t + s * a for t, a in zip(tensors, along))) for s in (step, -step)]
    for mine, ahead, behind in zip(jvp(value, tensors, along)[1], *ends):
        torch.testing.assert_close(mine, (ahead - behind) / (2 * step), atol=1e-8, rtol=1e-6)


def test_third_derivatives_raise():
    scores = torch.randn(2, 3, 2).double().requires_grad_()
    loss = StructuredLoss("chain", "crf")(scores, torch.zeros(2, 3, dtype=int))
    (first,) = torch.autograd.grad(loss, scores, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), scores, create_graph=True)
    with pytest.raises(NotImplementedError, match="no third derivatives"):
        second.square().sum().backward()


def test_other_ways_to_differentiate_raise_or_agree():
    scores = torch.randn(1, 2, 2).double()
    layer = StructuredLoss("chain", "crf")

    def value(scores):
        return layer(scores, torch.zeros(1, 2, dtype=int))

    exact = hessian(value, scores)
    assert exact.abs().max() > 0.01

    def forward():
        with torch.autograd.forward_ad.dual_level():
            value(torch.autograd.forward_ad.make_dual(scores, scores))

    ways = [
        lambda: torch.func.hessian(value)(scores),
        lambda: hessian(value, scores, vectorize=True),
        lambda: hessian(value, scores, vectorize=True, outer_jacobian_strategy="forward-mode"),
        forward,
    ]
    for way in ways:
        refused(r"'chain' with surrogate 'crf' .*autograd", way, error=NotImplementedError)
    given = scores.clone().requires_grad_()
    slope = torch.autograd.grad(value(given), given)[0]
    assert torch.allclose(torch.func.grad(value)(scores), slope)
    assert torch.allclose(torch.func.vmap(value)(scores[None]), value(scores)[None])
    assert torch.allclose(torch.func.jacrev(torch.func.grad(value))(scores), exact)


@pytest.mark.parametrize(
    "call",
    [
        lambda s: StructuredLoss("chain", reduction="none")(s, torch.zeros(2, 2).long()),
        lambda s: Distribution("chain").entropy(s),
        lambda s: BlackboxDiff("chain")(s),
        lambda s: Marginals("chain")(s),
    ],
)
def test_backward_passes_for_many_vectors_at_once_are_refused_by_name(call):
    scores = torch.randn(2, 2, 2).double()
    for vectorize in (True, False):
        make = functools.partial(jacobian, call, scores, vectorize=vectorize)
        if vectorize:
            refused("'chain'.* takes tensors of numbers", make, error=NotImplementedError)
        else:
            assert make().shape[-3:] == scores.shape


@pytest.mark.parametrize("make", [PerturbedArgmax, BlackboxDiff, Marginals])
def test_answers_under_checkpoints(make):
    """Hooks that free saved tensors after they are read: each gradient reads them once."""
    settings = {"random_state": 0} if make is PerturbedArgmax else {}
    layer, scores = make("multiclass", **settings), torch.randn(2, 3, requires_grad=True)

    def value(scores):
        return layer(scores).square().sum()

    kept = torch.utils.checkpoint.checkpoint(value, scores, use_reentrant=False)
    mine, plain = (torch.autograd.grad(v, scores)[0] for v in (kept, value(scores)))
    assert torch.equal(mine, plain)


def test_forbidden_parts():
    table = torch.tensor([[0.0, -torch.inf], [1.0, 0.0]]).double()
    layer = StructuredLoss("chain", "crf", reduction="sum")

    def value(scores):
        return layer({"node": scores, "transition": table}, torch.tensor([[1, 1, 0]]))

    assert torch.autograd.gradgradcheck(value, torch.randn(1, 3, 2).double().requires_grad_())


def test_hessian_products_of_arrays():
    rows = score_space("multiclass", 3)
    scores = Scores(np.array([[0.0, 1.5, 2], [1, 0, 0]]), examples=rows.pack_sizes(2))
    p = np.exp(scores.node)
    p /= p.sum(1, keepdims=True)
    d = np.array([[1.0, 2, -1], [0, 1, 0]])
    expected = p * d - p * (p * d).sum(1, keepdims=True)
    answer = hessian_product(rows, scores, Scores(d), [0, 1], weights=[2.0, -1.0])
    np.testing.assert_allclose(answer.node, expected * [[2], [-1]], atol=1e-15)
    with pytest.raises(ValueError, match="'multiclass' with surrogate 'margin' has no second"):
        hessian_product(rows, scores, Scores(d), [0, 1], "margin")
    sparse = hessian_product(rows, scores, Scores(d), [0, 1], SparseMAP())
    assert sparse.node[0].tolist() == [0, 1.5, -1.5]
