"""Decisions as torch layers, against their definitions over all labels, and known means."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

from torch_cases import CASES, GIBBS  # noqa: E402

from structsolve.torch import (  # noqa: E402
    BlackboxDiff,
    PerturbedArgmax,
    Sample,
    SPOPlus,
    StructuredLoss,
    decode,
)


def parts_of(case, i, label):
    """Return mu(y) by block, as the derivative of the label's score."""
    score = torch.as_tensor(case.score(i, label))
    parts = torch.autograd.grad(
        score, list(case.scores.values()), allow_unused=True, retain_graph=True
    )
    return [torch.zeros_like(t) if p is None else p for p, t in zip(parts, case.scores.values())]


def best_of(case, i, scores):
    """Return mu of the best label of an example at other scores."""
    worth = [
        sum(float((p * s.detach()).sum()) for p, s in zip(parts_of(case, i, y), scores))
        for y in case.every[i]
    ]
    return case.every[i][int(np.argmax(worth))]


def sum_over(case, labels, factors=None):
    """Return the sum of parts of a label of each example."""
    each = [parts_of(case, i, y) for i, y in enumerate(labels)]
    factors = factors or [1] * len(each)
    return [sum(f * parts[k] for f, parts in zip(factors, each)) for k in range(len(each[0]))]


def answer_as_sum(case, answer):
    """Return a layer's output, with shared blocks summed over the examples."""
    return [
        a.sum(0) if a.ndim > t.ndim else a for a, t in zip(answer.values(), case.scores.values())
    ]


@pytest.mark.parametrize("name", CASES)
def test_regret_is_bounded_as_the_paper_says(name):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        case = CASES[name](rng)
        true = {k: torch.tensor(rng.normal(size=t.shape)) for k, t in case.scores.items()}
        mixed = [2 * s.detach() - t for s, t in zip(case.scores.values(), true.values())]
        n = range(len(case.every))
        stars = [best_of(case, i, true.values()) for i in n]
        worst = [best_of(case, i, mixed) for i in n]
        layer = SPOPlus(case.structure, reduction="none")
        values = layer(case.scores, true, **case.given)
        for i, value in enumerate(values.tolist()):
            difference = zip(parts_of(case, i, worst[i]), parts_of(case, i, stars[i]), mixed)
            assert value == pytest.approx(sum(float(((a - b) * m).sum()) for a, b, m in difference))
        ours = torch.autograd.grad(values.sum(), list(case.scores.values()))
        for mine, a, b in zip(ours, sum_over(case, worst), sum_over(case, stars)):
            torch.testing.assert_close(mine, 2 * (a - b))
        # The same with known labels.
        labels = decode(case.structure, true, **case.given)
        torch.testing.assert_close(layer(case.scores, true, labels, **case.given), values)


@pytest.mark.parametrize("name", CASES)
def test_interpolation_is_that_of_the_paper(name):
    lam = 2.5
    for seed in range(4):
        rng = np.random.default_rng(seed)
        case = CASES[name](rng)
        answer = BlackboxDiff(case.structure, lam)(case.scores, **case.given)
        n = range(len(case.every))
        best = [best_of(case, i, case.scores.values()) for i in n]
        for mine, theirs in zip(answer_as_sum(case, answer), sum_over(case, best)):
            torch.testing.assert_close(mine, theirs)
        # Each example has its own direction in the shared blocks, too.
        directions = [torch.tensor(rng.normal(size=a.shape)) for a in answer.values()]
        ours = torch.autograd.grad(
            list(answer.values()), list(case.scores.values()), directions, retain_graph=True
        )
        moved = []
        for i in n:
            own = [d[i] if d.ndim > t.ndim else d for d, t in zip(directions, case.scores.values())]
            moved.append([t - lam * d for t, d in zip(case.scores.values(), own)])
        there = [best_of(case, i, moved[i]) for i in n]
        for mine, a, b in zip(ours, sum_over(case, best), sum_over(case, there)):
            torch.testing.assert_close(mine, (a - b) / lam)


@pytest.mark.parametrize("name", CASES)
def test_mean_under_noise_and_its_loss_go_together(name):
    rng = np.random.default_rng(1)
    case = CASES[name](rng)
    layer = PerturbedArgmax(case.structure, sigma=0.5, n_samples=6, random_state=4)
    mean = layer(case.scores, **case.given)
    loss = layer.loss(case.scores, case.labels, reduction="sum", **case.given)
    ours = torch.autograd.grad(loss, list(case.scores.values()))
    truths = sum_over(case, case.truths)
    for mine, a, b in zip(ours, answer_as_sum(case, mean), truths):
        torch.testing.assert_close(mine, a - b)  # the gradient of a Fenchel-Young loss
    # No noise reaches entries beyond the end of an example.
    total = sum((m * torch.tensor(rng.normal(size=m.shape))).sum() for m in mean.values())
    (node,) = torch.autograd.grad(total, [case.scores["node"]])
    reached = sum_over(case, [y for y in case.truths])[0] * 0
    for i, every in enumerate(case.every):
        for y in every:
            reached = reached + parts_of(case, i, y)[0].abs()
    assert (node[reached == 0] == 0).all() and (node != 0).any()


@pytest.mark.parametrize("noise", ["additive", "multiplicative"])
def test_derivatives_under_noise_are_those_of_the_mean(noise):
    """Two classes with a known mean: 400 equal examples, 100 draws each, to within .02."""
    sigma = 0.8
    s = torch.tensor([[0.7, 0.2]] * 400, dtype=torch.double, requires_grad=True)
    mean = PerturbedArgmax("multiclass", sigma, 100, noise=noise, random_state=0)(s)
    (ours,) = torch.autograd.grad(mean[:, 0].mean(), [s])
    a, b = torch.tensor([0.7, 0.2], dtype=torch.double, requires_grad=True)
    difference = a - b if noise == "additive" else torch.log(a / b)
    value = 0.5 * (1 + torch.erf(difference / (2 * sigma)))
    theirs = torch.autograd.grad(value, [a, b])
    assert mean[:, 0].mean().item() == pytest.approx(value.item(), abs=0.02)
    assert ours.sum(0).tolist() == pytest.approx([x.item() for x in theirs], abs=0.02)


@pytest.mark.parametrize("name", GIBBS)
def test_samples_are_as_frequent_as_they_are_likely(name):
    case = GIBBS[name](np.random.default_rng(0), n=2)
    drawn = Sample(case.structure, n=2000, random_state=0)(case.scores, **case.given)
    assert drawn.shape == (2000, *case.labels.shape)
    crf = StructuredLoss(case.structure, "crf", reduction="none")
    places = torch.arange(case.labels[0].numel())
    inside = [places < len(truth) for truth in case.truths]
    if name == "grid":  # pictures are padded in every row
        inside = list((case.labels != -100).flatten(1))
    for i, every in enumerate(case.every):
        rows = list(map(tuple, drawn[:, i].reshape(2000, -1)[:, inside[i]].tolist()))
        label = every[0]
        padded = torch.full(case.labels.shape, -1)
        for j, one in enumerate(case.truths):
            one = label if j == i else one
            padded[j].view(-1)[inside[j]] = torch.tensor(one, dtype=padded.dtype)
        likely = math.exp(-float(crf(case.scores, padded, **case.given)[i].detach()))
        share = sum(row == tuple(label) for row in rows) / 2000
        assert share == pytest.approx(
            likely, abs=4 * math.sqrt(likely * (1 - likely) / 2000) + 1e-3
        )


@pytest.mark.parametrize("name", CASES)
def test_scores_that_no_part_reads_have_no_gradient(name):
    """This noise is not the derivative of any function: [1, 0] of the pairs of a grid."""
    for seed in range(3):
        case = CASES[name](np.random.default_rng(seed))
        tensors = list(case.scores.values())
        every = [
            case.score(i, y) * float(np.cos(k))
            for i, labels in enumerate(case.every)
            for k, y in enumerate(labels)
        ]
        read = torch.autograd.grad(sum(every), tensors, allow_unused=True)
        layer = PerturbedArgmax(case.structure, n_samples=3, random_state=seed)
        answer = layer(case.scores, **case.given)
        total = sum((t * torch.randn_like(t)).sum() for t in answer.values())
        for block, mine, used in zip(case.scores, torch.autograd.grad(total, tensors), read):
            unread = torch.ones_like(mine) if used is None else used == 0
            assert not mine[unread.bool()].any(), block


@pytest.mark.parametrize("noise", ["additive", "multiplicative", None])
def test_shared_blocks_of_each_example_have_gradients_of_their_own(noise):
    node, table = torch.randn(3, 4, 2).double(), torch.randn(2, 2).double()
    layer = BlackboxDiff("chain", lam=2.0)
    if noise:
        layer = PerturbedArgmax("chain", noise=noise, random_state=0)
    gradients = []
    for own in (table, table.expand(3, 2, 2).clone()):
        own.requires_grad_()
        best = layer({"node": node, "transition": own})
        (best["transition"] * torch.arange(12.0).reshape(3, 2, 2)).sum().backward()
        gradients.append(own.grad)
    assert gradients[1].shape == (3, 2, 2)
    assert torch.allclose(gradients[0], gradients[1].sum(0))
