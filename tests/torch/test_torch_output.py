"""Modules with parameters for shared scores; masks, ignored labels; pytorch-crf's interface."""

import contextlib
import itertools
import warnings

import numpy as np
import pytest
from checks import refused

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

from torch_cases import CASES  # noqa: E402

from structsolve import get_structure  # noqa: E402
from structsolve.batch import score_space  # noqa: E402
from structsolve.torch import (  # noqa: E402
    CRF,
    Marginals,
    OutputLayer,
    PerturbedArgmax,
    StructuredLoss,
    decode,
)

#: Of pytorch-crf's README and first page, but for the import.
THEIR_LINES = """
torch.manual_seed(0)
num_tags = 5
model = CRF(num_tags)
seq_length = 3
batch_size = 2
emissions = torch.randn(seq_length, batch_size, num_tags)
tags = torch.tensor([[0, 1], [2, 4], [3, 1]], dtype=torch.long)
plain = model(emissions, tags)
mask = torch.tensor([[1, 1], [1, 1], [1, 0]], dtype=torch.uint8)
masked = model(emissions, tags, mask=mask)
best = model.decode(emissions)
short = model.decode(emissions, mask=mask)
"""


def likelihood(crf, emissions, tags):
    """Return log p(tags) of one sentence, over all labels."""

    def score(y):
        total = crf.start_transitions[y[0]] + crf.end_transitions[y[-1]]
        total = total + sum(emissions[t, k] for t, k in enumerate(y))
        return total + sum(crf.transitions[a, b] for a, b in itertools.pairwise(y))

    every = itertools.product(range(crf.num_tags), repeat=len(tags))
    return score(tags) - torch.logsumexp(torch.stack([score(y) for y in every]), 0)


def test_the_lines_of_pytorch_crf():
    ours = {"torch": torch, "CRF": CRF}
    exec(THEIR_LINES, ours)
    model, emissions = ours["model"], ours["emissions"]
    every = [likelihood(model, emissions[:, i], y) for i, y in enumerate(([0, 2, 3], [1, 4, 1]))]
    cut = likelihood(model, emissions[:2, 1], [1, 4])
    torch.testing.assert_close(ours["plain"], every[0] + every[1])
    torch.testing.assert_close(ours["masked"], every[0] + cut)
    assert [len(row) for row in ours["best"]] == [3, 3]
    assert [len(row) for row in ours["short"]] == [3, 2]
    assert repr(model) == "CRF(num_tags=5)"
    torchcrf = pytest.importorskip("torchcrf", reason="pytorch-crf is not installed")
    theirs = {"torch": torch, "CRF": torchcrf.CRF}
    exec(THEIR_LINES, theirs)
    for name in ("plain", "masked"):
        torch.testing.assert_close(ours[name], theirs[name])
    assert ours["best"] == theirs["best"] and ours["short"] == theirs["short"]


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean", "token_mean"])
def test_values_and_gradients_of_pytorch_crf(batch_first, reduction):
    torchcrf = pytest.importorskip("torchcrf", reason="pytorch-crf is not installed")
    torch.manual_seed(1)
    mine, other = CRF(4, batch_first), torchcrf.CRF(4, batch_first)
    mine.load_state_dict(other.state_dict())
    for _ in range(5):
        emissions = torch.randn(6, 7, 4, requires_grad=True)
        tags = torch.randint(4, (6, 7))
        sizes = torch.randint(1, (7 if batch_first else 6) + 1, (6 if batch_first else 7,))
        steps = torch.arange(7 if batch_first else 6)
        mask = steps < sizes[:, None] if batch_first else steps[:, None] < sizes
        answers = []
        for model in (mine, other):
            model.zero_grad()
            emissions.grad = None
            value = model(emissions, tags, mask=mask, reduction=reduction)
            value.sum().backward()
            answers.append([value, emissions.grad, *(p.grad for p in model.parameters())])
            answers[-1] = [a.detach().clone() for a in answers[-1]]
        for a, b in zip(*answers):
            torch.testing.assert_close(a, b)
        assert mine.decode(emissions, mask) == other.decode(emissions, mask)


def test_numbers_of_numpy_are_numbers():
    assert CRF(np.int64(2)).transitions.shape == (2, 2)
    scores = {"node": torch.zeros(1, 2, 2), "transition": torch.zeros(2, 2)}
    assert PerturbedArgmax("chain", n_samples=np.int64(3))(scores)["node"].shape == (1, 2, 2)


def test_what_a_crf_refuses():
    refused("num_tags is 0", CRF, 0)
    with pytest.raises(ValueError, match="reduction is 'median'"):
        CRF(2)(torch.zeros(1, 1, 2), torch.zeros(1, 1, dtype=int), reduction="median")


@pytest.mark.parametrize(
    ("structure", "classes", "blocks"),
    [
        ("chain", 3, {"transition": (3, 3), "start": (3,), "end": (3,)}),
        ("tree", 2, {"transition": (2, 2), "root": (2,)}),
        ("grid", 2, {"pair": (2, 2)}),
        ("dependency", None, {}),
        ("multiclass", 3, {}),
    ],
)
def test_output_layers_hold_shared_blocks(structure, classes, blocks):
    layer = OutputLayer(structure, classes)
    state = layer.state_dict()
    assert {name.removeprefix("shared."): tuple(t.shape) for name, t in state.items()} == blocks
    again = OutputLayer(structure, classes)
    again.load_state_dict({name: t + 1 for name, t in state.items()})
    assert all((t == 1).all() for t in again.state_dict().values())


def test_output_layers_learn_what_no_node_shows():
    """Labels alternate from the first one: only a layer with transitions can learn this."""
    torch.manual_seed(0)
    labels = (torch.arange(8) + torch.randint(2, (60, 1))) % 2
    scores = torch.where(torch.arange(8) == 0, 1.0, 0.0)[None, :, None] * (
        2 * torch.nn.functional.one_hot(labels, 2) - 1
    )
    layer = OutputLayer("chain", 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    for _ in range(30):
        optimizer.zero_grad()
        layer(scores, labels).backward()
        optimizer.step()
    assert torch.equal(layer.decode(scores), labels)
    assert torch.equal(decode(layer, scores), labels)
    both = {"node": scores, "transition": torch.zeros(2, 2)}  # what is given comes first
    assert not torch.equal(layer.decode(both), labels)
    Marginals("chain")(layer.scores(scores))["transition"].sum().backward()


def masks(case):
    """A mask of a padded case whose labels show where the padding is."""
    return case.labels != -100


@pytest.mark.parametrize("name", ["chain", "tree", "mrf", "grid", "dependency"])
def test_masks_and_ignored_labels_are_lengths(name):
    for seed in range(5):
        case = CASES[name](np.random.default_rng(seed))
        graphs = {k: v for k, v in case.given.items() if k != "lengths"}
        layer = StructuredLoss(case.structure, reduction="none")
        expected = layer(case.scores, case.labels, **case.given)
        ways = [{"mask": masks(case)}, {"mask": masks(case).int().numpy()}]
        if name != "dependency":  # whose labels are no row each
            ways.append({})
        for way in ways:
            assert torch.equal(layer(case.scores, case.labels, **way, **graphs), expected)
        best = decode(case.structure, case.scores, **case.given)
        assert torch.equal(decode(layer, case.scores, mask=masks(case), **graphs), best)
        for other in (Marginals, PerturbedArgmax):
            settings = (
                {"random_state": 0} if other is PerturbedArgmax else {"projection": "euclidean"}
            )
            with contextlib.suppress(ValueError):  # grids have no SparseMAP in shared blocks
                one = other(case.structure, **settings)(case.scores, **case.given)
                two = other(case.structure, **settings)(case.scores, mask=masks(case), **graphs)
                assert all(torch.equal(one[block], two[block]) for block in one)


def test_holes_of_sequences():
    torch.manual_seed(2)
    scores = torch.randn(4, 5, 3, requires_grad=True)
    table = torch.randn(3, 3, requires_grad=True)
    keep = torch.rand(4, 5) < 0.6
    keep[:, 2] = True
    labels = torch.randint(3, (4, 5))
    layer = StructuredLoss("chain", "crf", reduction="none")
    alone = []
    for i in range(4):
        own = {"node": scores[i, keep[i]][None], "transition": table}
        alone.append(layer(own, labels[i, keep[i]][None]))
    expected = torch.cat(alone)
    weights = torch.arange(1.0, 5)
    direct = torch.autograd.grad(expected @ weights, [scores, table])
    both = {"node": scores, "transition": table}
    ignored = torch.where(keep, labels, -100)
    full = torch.full((4,), 5)
    for settings in (
        {"labels": labels, "mask": keep},
        {"labels": ignored},
        {"labels": ignored, "lengths": full},
        {"labels": ignored, "mask": torch.ones_like(keep)},
    ):
        values = layer(both, **settings)
        torch.testing.assert_close(values, expected)
        for mine, other in zip(torch.autograd.grad(values @ weights, [scores, table]), direct):
            torch.testing.assert_close(mine, other)
    best = decode("chain", both, mask=keep)
    assert (best[~keep] == -1).all()
    for i in range(4):
        own = {"node": scores[i, keep[i]][None], "transition": table}
        assert best[i, keep[i]].tolist() == decode("chain", own)[0].tolist()


@pytest.mark.parametrize(
    ("mask", "more", "match"),
    [
        (torch.ones(2, 4), {}, "mask: found float32"),
        (torch.ones(8, dtype=bool), {}, r"mask: found bool of shape \(8,\)"),
        (torch.ones(2, 4, dtype=bool), {"lengths": [4, 4]}, "expected no lengths beside it"),
        *(
            (
                torch.ones(2, n, dtype=bool),
                {},
                rf"mask: found the shape \(2, {n}\), expected \(2, 4\)",
            )
            for n in (3, 5)
        ),
    ],
)
def test_masks_that_do_not_fit(mask, more, match):
    scores, labels = torch.zeros(2, 4, 3), torch.zeros(2, 4, dtype=int)
    with pytest.raises(ValueError, match=match):
        StructuredLoss("chain")(scores, labels, mask=mask, **more)
    with pytest.raises(ValueError, match=match):
        Marginals("chain")(scores, mask=mask, **more)
    if not more and mask.ndim == 2 and mask.dtype == torch.bool:
        for call in (
            lambda: decode("chain", scores, mask=mask),
            lambda: CRF(3, batch_first=True).decode(scores, mask),
            lambda: StructuredLoss("chain")(
                scores, labels.index_fill(1, torch.tensor([1]), -100), mask=mask
            ),
        ):
            refused(match, call)


@pytest.mark.filterwarnings("ignore:structure")
def test_a_single_class_is_a_class():
    scores, labels = torch.randn(2, 3, 1, requires_grad=True), torch.zeros(2, 3, dtype=int)
    for layer in (
        CRF(1, batch_first=True),
        OutputLayer("chain", 1),
        StructuredLoss("chain", "crf"),
    ):
        assert abs(layer(scores, labels).item()) < 1e-6
    assert CRF(1, batch_first=True).decode(scores) == [[0, 0, 0]] * 2
    picture = torch.zeros(1, 2, 2, 1)
    assert decode("grid", picture).tolist() == [[[0, 0], [0, 0]]]
    # If rows are numbers without classes, nothing changes.
    assert decode("dependency", torch.zeros(1, 2, 1)).tolist() == [[0]]
    assert decode("multilabel", torch.ones(2, 1)).tolist() == [1, 1]


def test_output_layers_refuse_classes_of_others():
    with pytest.raises(ValueError, match="classes: expected those of the hierarchy.* found 3"):
        OutputLayer(get_structure("dag", hierarchy={"a": ["b", "c"]}), 3)


def test_holes_that_nothing_closes():
    keep = torch.tensor([[True, True, True], [True, False, True]])
    with pytest.raises(ValueError, match=r"example 1: its mask is False at \[1\], expected"):
        Marginals("chain")(torch.zeros(2, 3, 2), mask=keep)
    trees = {"trees": [[-1, 0, 1], [-1, 0, 1]]}
    labels = torch.where(keep, 0, -100)
    with pytest.raises(ValueError, match=r"example 1: its mask is False at \[1\], expected"):
        StructuredLoss("tree")(torch.zeros(2, 3, 2), labels, **trees)
    both = {"node": torch.zeros(2, 3, 2), "edge": torch.zeros(2, 2, 2, 2)}
    with pytest.raises(ValueError, match=r"example 1: its mask is False at \[1\], expected"):
        StructuredLoss("chain")(both, labels)
    with pytest.raises(ValueError, match="example 1: its label holds -100 at 1"):
        StructuredLoss("chain", ignore_index=None)(both, labels)


def test_layers_that_join_nothing_say_so_once():
    scores, labels = torch.zeros(2, 4, 3), torch.zeros(2, 4, dtype=int)
    layer = StructuredLoss("chain")
    with pytest.warns(UserWarning, match=r"'chain': no score joins its nodes.* give 'transition'"):
        layer(scores, labels)
    quiet = [
        lambda: layer(scores, labels),
        lambda: StructuredLoss("chain")({"node": scores, "transition": torch.zeros(3, 3)}, labels),
        lambda: StructuredLoss("dependency")(torch.zeros(1, 3, 2), torch.tensor([[0, 1]])),
        lambda: StructuredLoss("multiclass")(torch.zeros(2, 3), labels[:, 0]),
        lambda: OutputLayer("chain", 3)(scores, labels),
        lambda: CRF(3)(scores, labels),
    ]
    for call in quiet:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call()
    assert [b.name for b in score_space("grid", 2).layout.blocks if b.name == "pair"]
    with pytest.warns(UserWarning, match="'grid': no score joins its nodes.* give 'pair' of shape"):
        decode("grid", torch.zeros(1, 2, 2, 2))
