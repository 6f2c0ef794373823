"""Losses of structures as torch layers, against explicit sums over all labels in torch."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

import torch_cases  # noqa: E402
from torch_cases import CASES, GIBBS  # noqa: E402

from structsolve import registry  # noqa: E402
from structsolve.batch import each_size  # noqa: E402
from structsolve.plugins.dependency import DependencyStructure  # noqa: E402
from structsolve.surrogates import MaxMin, MicroF1  # noqa: E402
from structsolve.torch import PerturbedArgmax, StructuredLoss, decode  # noqa: E402

COUNTED = ("chain", "tree", "mrf", "multiclass", "multilabel", "closed", "thresholds", "grid")
SURROGATES = {"crf": torch_cases.crf, "margin": torch_cases.margin}


def gradients(loss, case):
    return torch.autograd.grad(
        loss, list(case.scores.values()), allow_unused=True, retain_graph=True
    )


@pytest.mark.parametrize(
    ("name", "surrogate"), [*((n, "margin") for n in CASES), *((n, "crf") for n in GIBBS)]
)
def test_losses_are_those_over_all_labels(name, surrogate):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        case = CASES[name](rng)
        n = len(case.truths)
        layer = StructuredLoss(case.structure, surrogate, reduction="none")
        values = layer(case.scores, case.labels, **case.given)
        expected = torch.stack([SURROGATES[surrogate](case, i) for i in range(n)])
        torch.testing.assert_close(values, expected)
        # With a factor for each example, and with one for all.
        for factor in (torch.tensor(rng.normal(size=n)), torch.ones(n, dtype=torch.double)):
            values = layer(case.scores, case.labels, **case.given)
            ours, theirs = (gradients(v @ factor, case) for v in (values, expected))
            for mine, other in zip(ours, theirs):
                torch.testing.assert_close(mine, torch.zeros_like(mine) if other is None else other)


@pytest.mark.parametrize("name", CASES)
def test_best_labels_score_most(name):
    for seed in range(10):
        case = CASES[name](np.random.default_rng(seed))
        labels = decode(case.structure, case.scores, **case.given)
        assert labels.shape == case.labels.shape
        for i, every in enumerate(case.every):
            row = labels[i][case.labels[i] != -100].tolist()
            size = len(every[0])
            assert (labels[i][case.labels[i] == -100] == -1).all() and len(row) == size
            with torch.no_grad():
                best = max(float(case.score(i, y)) for y in every)
                assert float(case.score(i, row)) == pytest.approx(best)


@pytest.mark.parametrize("name", ["chain", "tree", "segments", "alignments", "mrf"])
@pytest.mark.parametrize("surrogate", ["margin", "crf", "slack"])
def test_examples_may_have_shared_blocks_of_their_own(name, surrogate):
    case = CASES[name](np.random.default_rng(2))
    n = len(case.truths)
    each = {
        block: torch.stack([(1 + i) * t.detach() for i in range(n)]).requires_grad_()
        for block, t in case.scores.items()
        if block not in ("node", "edge")
    }
    assert each
    layer = StructuredLoss(case.structure, surrogate, reduction="none")
    values = layer(case.scores | each, case.labels, **case.given)
    total = values.square().sum()
    slopes = dict(zip(each, torch.autograd.grad(total, list(each.values()))))
    for i in range(n):
        shared = {block: t[i].detach().requires_grad_() for block, t in each.items()}
        alone = layer(case.scores | shared, case.labels, **case.given)[i]
        torch.testing.assert_close(values[i], alone)
        own = torch.autograd.grad(alone.square(), list(shared.values()))
        for block, slope in zip(shared, own):
            torch.testing.assert_close(slopes[block][i], slope)
    if surrogate == "crf":
        names = list(each)

        def loss(*tensors):
            return layer(case.scores | dict(zip(names, tensors)), case.labels, **case.given)

        assert torch.autograd.gradgradcheck(loss, tuple(each.values()), atol=1e-4)


def is_derivative(layer, case):
    """Compare a layer's gradients with differences, for every block."""
    names = list(case.scores)

    def value(*tensors):
        return layer(dict(zip(names, tensors)), case.labels, **case.given)

    return torch.autograd.gradcheck(value, tuple(case.scores.values()), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("surrogate", registry.default().names("surrogates"))
def test_gradients_are_derivatives(name, surrogate):
    case = CASES[name](np.random.default_rng(3))
    refused = {
        "crf": None if name in GIBBS else "needs exact marginals",
        "micro-f1": None if name in COUNTED else "counts the labels of nodes or of a set",
    }.get(surrogate)
    if surrogate == "micro-f1" and name in COUNTED and name not in ("multilabel", "closed"):
        surrogate = MicroF1(background=0)
    elif surrogate == "max-min":  # as exact as differences are
        surrogate = MaxMin(tol=1e-10, max_iter=500)
    mean, layer = (StructuredLoss(case.structure, surrogate, reduction=r) for r in ("mean", "none"))
    if refused is not None:
        with pytest.raises(ValueError, match=refused):
            layer(case.scores, case.labels, **case.given)
        return
    assert is_derivative(layer, case)
    own, values = (one(case.scores, case.labels, **case.given) for one in (mean, layer))
    torch.testing.assert_close(own, values.mean())
    for mine, other in zip(gradients(own, case), gradients(values.mean(), case)):
        torch.testing.assert_close(mine, other)


@pytest.mark.parametrize("name", ["chain", "projective", "mrf", "matching", "flow"])
@pytest.mark.parametrize("backend", ["lp", "cvxpy:CLARABEL"])
def test_linear_programs_give_the_same_losses(name, backend):
    case = CASES[name](np.random.default_rng(4))
    native = StructuredLoss(case.structure, reduction="none")
    layer = StructuredLoss(case.structure, reduction="none", oracle=backend)
    values, expected = (one(case.scores, case.labels, **case.given) for one in (layer, native))
    torch.testing.assert_close(values, expected)
    for mine, other in zip(gradients(values.sum(), case), gradients(expected.sum(), case)):
        torch.testing.assert_close(mine, other)


@pytest.mark.parametrize("projective", [False, True])
def test_sentences_of_one_word(projective):
    structure = DependencyStructure(projective=projective)
    scores = torch.randn(3, 2, 1, requires_grad=True)  # the root, or the word itself
    heads = decode(structure, scores)
    assert heads.tolist() == [[0]] * 3
    loss = StructuredLoss(structure)(scores, heads)
    loss.backward()
    assert loss.item() == 0 and not scores.grad.any()


@pytest.mark.parametrize("lead", [(2, 1), (2,)], ids=["padded", "packed"])
def test_sentences_of_one_word_have_no_edges(lead):
    node = torch.randn(*lead, 3, requires_grad=True)
    edge = torch.zeros(*lead[:-1], 0, 3, 3, requires_grad=True)
    with_edges = {"node": node, "edge": edge, "transition": torch.ones(3, 3)}
    without = {"node": node, "transition": torch.ones(3, 3)}
    labels, lengths = torch.zeros(lead, dtype=torch.long), torch.ones(2, dtype=torch.long)
    for surrogate in SURROGATES:
        loss, expected = (
            StructuredLoss("chain", surrogate)(scores, labels, lengths)
            for scores in (with_edges, without)
        )
        assert loss == expected
        assert torch.autograd.grad(loss, [node, edge])[1].shape == edge.shape
    noisy = PerturbedArgmax("chain", n_samples=9, random_state=0)
    values = noisy.loss(with_edges, labels, lengths), noisy.loss(without, labels, lengths)
    torch.testing.assert_close(*values)
    assert torch.equal(decode("chain", with_edges, lengths), decode("chain", without, lengths))


@pytest.mark.parametrize("structure", ["cky", "cky:grammar=true"])
@pytest.mark.parametrize("lengths", [[1, 1], [2, 2], [1, 2], [3, 2]], ids=str)
@pytest.mark.parametrize("more", [0, 2])
def test_trees_over_short_sentences(structure, lengths, more):
    longest = max(lengths)
    scores = torch.randn(2, longest + more, longest + more, 2)
    trees = decode(structure, scores, lengths)
    assert trees.ndim == 2
    layer = StructuredLoss(structure, "crf", reduction="none")
    expected = [
        layer(scores[i : i + 1, :n, :n], trees[i : i + 1, : 2 * n - 1], [n])[0]
        for i, n in enumerate(lengths)
    ]
    wide = torch.full((2, 2 * (longest + more) - 1), -100)
    wide[:, : 2 * longest - 1] = trees[:, : 2 * longest - 1]
    for labels in (trees, wide):
        torch.testing.assert_close(layer(scores, labels, lengths), torch.stack(expected))


def test_pictures_of_one_pixel():
    scores = torch.tensor([0.0, 2.0, 1.0], requires_grad=True).expand(2, 1, 1, 3)
    labels = decode("grid", scores)
    assert labels.tolist() == [[[1]]] * 2
    assert StructuredLoss("grid")(scores, labels).item() == 0


@pytest.mark.parametrize("surrogate", ["crf", "margin"])
@pytest.mark.parametrize("longest", [0, 5, 256])
def test_new_lengths_answer_as_each_sequence_alone(surrogate, longest, monkeypatch):
    monkeypatch.setattr(each_size, "LONGEST", longest)
    rng = torch.Generator().manual_seed(0)
    layer, shared = StructuredLoss("chain", surrogate, reduction="none"), torch.ones(3, 3)
    for _ in range(6):
        node = torch.randn(4, 8, 3, generator=rng, requires_grad=True)
        tags = torch.randint(3, (4, 8), generator=rng)
        lengths = torch.randint(1, 9, (4,), generator=rng)
        losses = layer({"node": node, "transition": shared}, tags, lengths)
        losses.sum().backward()
        best = decode(layer, {"node": node.detach(), "transition": shared}, lengths)
        alone = StructuredLoss("chain", surrogate)
        for i, n in enumerate(lengths.tolist()):
            one = node[i : i + 1, :n].detach().requires_grad_()
            loss = alone({"node": one, "transition": shared}, tags[i : i + 1, :n])
            loss.backward()
            assert loss.item() == losses[i].item()
            assert torch.equal(one.grad[0], node.grad[i, :n]) and not node.grad[i, n:].any()
            own = decode(alone, {"node": one.detach(), "transition": shared})
            assert torch.equal(own[0], best[i, :n]) and (best[i, n:] == -1).all()
