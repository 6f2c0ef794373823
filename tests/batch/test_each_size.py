"""Operators of each size, which batches of short sequences share, against those of one batch."""

from copy import copy

import numpy as np
import pytest
from checks import in_threads, plugged, refused

from structsolve import hookimpl
from structsolve.batch import (
    Scores,
    argmax,
    each_size,
    hessian_product,
    least_loss,
    score_space,
    value_and_gradient,
)
from structsolve.batch._passes import EachSize
from structsolve.batch.binding import binding_of
from structsolve.part_layout import PartLayout
from structsolve.plugins.chain import ChainStructure
from structsolve.plugins.semi_markov import SemiMarkovStructure
from structsolve.surrogates import Margin

STRUCTURES = {
    "chain": ChainStructure(),
    "no ends": ChainStructure(start_end=False),
    "no transitions": ChainStructure(transitions=False),
    "forbidden": ChainStructure(forbidden=[(0, 1), (None, 2)]),
    "empty": ChainStructure(empty=True),
    "semi-markov": SemiMarkovStructure(max_length=3),
    "multiclass": "multiclass",
}


def random_scores(space, sizes, rng, dtype=np.float64):
    examples = space.pack_sizes(len(sizes) if space.structure.name == "multiclass" else sizes)
    shared = {}
    for block in space.layout.blocks:
        if block.kind == "shared":
            shared[block.name] = rng.integers(-2, 3, block.shape).astype(dtype)
    rows = int(examples.offsets[-1])
    node = rng.normal(size=(rows, *space.layout.node.shape)).round(1).astype(dtype)
    return Scores(node, shared, examples=examples)


def all_answers(space, scores, weights, n_jobs):
    """Labels, values and gradients; None for what the structure does not have."""
    labels, *rest = argmax(space, scores, n_jobs=n_jobs)
    yield from (labels, *rest)
    run = {"weights": weights, "n_jobs": n_jobs}
    for surrogate, loss in (
        ("crf", "hamming"),
        ("margin", "hamming"),
        ("margin", "normalized-hamming"),
        ("margin", "zero-one"),
        ("slack", "hamming"),
        ("sparsemap", "hamming"),
        ("probloss", "hamming"),
    ):
        for each in (False, True):
            try:
                values, gradient = value_and_gradient(
                    space, scores, labels, surrogate, loss, each=each, **run
                )
            except ValueError as error:
                yield str(error)
                continue
            yield from (values, gradient.node, *gradient.shared.values())
    for call in (
        lambda: hessian_product(space, scores, scores, labels, **run).node,
        lambda: least_loss(space, scores, n_jobs=n_jobs)[0],
    ):
        try:
            yield call()
        except ValueError as error:
            yield str(error)


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_answers_are_those_of_operators_of_the_batch(name, n_jobs, monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.setattr(each_size, "LONGEST", 6)
    least = 0 if name == "empty" else 1
    spaces = [score_space(STRUCTURES[name], 3) for _ in range(2)]
    for trial in range(12):
        # Some batches have an example that is longer, in some the longest is 6.
        sizes = rng.integers(least, 8 if trial % 2 else 7, rng.integers(1, 9))
        scores = random_scores(spaces[0], sizes, rng, (np.float32, np.float64)[trial % 2])
        weights = rng.normal(size=len(sizes)) if trial % 3 else None
        shared = list(all_answers(spaces[0], scores, weights, n_jobs))
        with monkeypatch.context() as own:
            own.setattr(each_size, "LONGEST", 0)
            alone = list(all_answers(spaces[1], scores, weights, n_jobs))
        for one, other in zip(shared, alone, strict=True):
            assert np.array_equal(one, other)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_errors_name_the_example_of_the_batch(n_jobs):
    """Operators of each size know no other number than the size."""
    space = score_space("chain", 2)
    scores = random_scores(space, [3, 5, 3], np.random.default_rng(0))
    scores.node[-1] = -np.inf
    labels = np.zeros(11, int)
    for _ in range(2):
        refused(
            "example 2: every labeling is",
            value_and_gradient,
            space,
            scores,
            labels,
            "crf",
            n_jobs=n_jobs,
        )
        refused(
            "example 2: every label", hessian_product, space, scores, scores, labels, n_jobs=n_jobs
        )


def is_shared(operator):
    return type(operator.layout.examples) is EachSize


def binding(space, sizes):
    return binding_of(space, random_scores(space, sizes, np.random.default_rng(0)))


@pytest.mark.parametrize("name", ["crf", "margin"])
def test_batches_share_operators_up_to_a_length(name):
    space = score_space("chain", 3)

    def surrogate(*sizes, loss="hamming", by=name):
        labels = np.zeros(sum(sizes), np.int32)
        return binding(space, sizes).surrogate(by, loss, None, labels)

    longest = each_size.LONGEST
    assert surrogate(2, 5) is surrogate(1) is surrogate(longest, 1)
    assert is_shared(surrogate(2)) and not is_shared(surrogate(longest + 1))
    assert binding(space, [2, 5]).oracle() is binding(space, [longest]).oracle()
    assert is_shared(binding(space, [2]).oracle())
    assert not is_shared(binding(space, [2, longest + 1]).oracle())
    # A surrogate that may remember its examples, objects, and solvers of programs.
    assert not is_shared(surrogate(2, by="slack"))
    assert not is_shared(surrogate(2, by=Margin()))
    assert not is_shared(binding(space, [2]).oracle("lp"))


def test_large_tables_and_structures_with_more_than_sizes_do_not_share():
    states = 1
    while states**2 + each_size.LONGEST * states <= each_size.MOST_SCORES:
        states += 8  # rows are padded
    for classes, expected in ((states - 8, True), (states + 8, False)):
        space = score_space(ChainStructure(start_end=False), classes)
        assert is_shared(binding(space, [2]).oracle()) is expected
    assert not is_shared(binding(score_space("multiclass", 3), [1]).oracle())
    trees = score_space("tree", 2)
    parents = trees.pack_sizes([2], trees=[[-1, 0]])
    scores = Scores(np.zeros((2, 2)), examples=parents)
    assert not is_shared(binding_of(trees, scores).oracle())
    edges = score_space("chain", 2, edge=True)
    scores = Scores(np.zeros((2, 2)), examples=edges.pack_sizes([2]))
    assert not is_shared(binding_of(edges, scores).oracle())


def test_oracles_that_lack_the_layout_of_each_size_are_bound_to_the_batch():
    class Forgets:
        """Oracles bound to copies of the layouts."""

        @hookimpl(wrapper=True)
        def structsolve_oracle(self, space):
            bind = yield
            return lambda layout: bind(PartLayout(space.layout, copy(layout.examples)))

    plugin, space = Forgets(), score_space("chain", 2)
    scores = random_scores(space, [3, 1], np.random.default_rng(0))
    assert is_shared(binding_of(space, scores).oracle())
    before = argmax(space, scores)
    with plugged(plugin):
        oracle = binding_of(space, scores).oracle()
        assert oracle.layout.n == 2
        for one, other in zip(argmax(space, scores), before, strict=True):
            assert np.array_equal(one, other)
    assert is_shared(binding_of(space, scores).oracle())


def test_wrong_labels_name_the_example_of_the_batch():
    space = score_space(ChainStructure(forbidden=[(0, 1)]), 2)
    scores = random_scores(space, [4, 1, 2], np.random.default_rng(0))
    for surrogate in ("crf", "margin"):
        with pytest.raises(ValueError, match="example 1: its label holds 2 at 0, expected 0 to 1"):
            value_and_gradient(space, scores, np.array([0, 0, 0, 0, 2, 0, 0]), surrogate)
        with pytest.raises(ValueError, match="example 2: found 0 before 1 at node 0"):
            value_and_gradient(space, scores, np.array([0, 0, 0, 0, 0, 0, 1]), surrogate)
        refused("expected 7", value_and_gradient, space, scores, np.zeros(6, np.int32), surrogate)


def test_scores_that_are_no_numbers_name_the_example_of_the_batch():
    space = score_space("chain", 2)
    scores = random_scores(space, [4, 1, 2], np.random.default_rng(0))
    scores.node[5, 1] = np.nan
    refused("example 2: the block 'node' holds nan at node 0", argmax, space, scores)


def test_threads_of_python_share_them():
    rng = np.random.default_rng(1)
    kept, fresh = score_space("chain", 3), score_space("chain", 3)
    batches = [random_scores(kept, rng.integers(1, 40, 5), rng) for _ in range(40)]
    truths = [rng.integers(0, 3, len(scores.node)) for scores in batches]

    def answer(space, k):
        values, gradient = value_and_gradient(space, batches[k], truths[k], "crf")
        return argmax(space, batches[k])[0], values, gradient.node

    expected = [answer(fresh, k) for k in range(40)]
    wrong = []

    def work(start):
        for k in range(start, start + 40):
            for one, other in zip(answer(kept, k % 40), expected[k % 40]):
                if not np.array_equal(one, other):
                    wrong.append(k % 40)

    in_threads(work, range(0, 36, 9))
    assert not wrong
