"""Scores that replace those of the last call."""

from types import SimpleNamespace

import numpy as np
import pytest

from structsolve import registry
from structsolve.batch import argmax, log_proba, score_space
from structsolve.batch.answers import Best
from structsolve.batch.numbers import Number, number_gradient
from structsolve.batch.padded import Batches

SHAPES = {"node": (9, 5, 3), "transition": (3, 3), "end": (3,)}
LABELS = np.random.default_rng(5).integers(3, size=(3, 45))


@pytest.fixture
def batch():
    batches = Batches("chain")
    batches.read(SHAPES, None, None)  # sizes that come once are not kept
    return batches.read(SHAPES, None, None)


def arrays(seed, dtype=np.float32):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape).astype(dtype) for shape in SHAPES.values()]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_gradients_and_labels_are_those_of_new_objects(batch, dtype):
    first = arrays(0, dtype)
    number = Number("log_proba", batch.space, batch.scores(first), LABELS[0])
    best = Best(batch.space, batch.scores(first))
    each = [np.empty((9, *a.shape) if a.ndim < 3 else a.shape, dtype) for a in first]
    for seed in (0, 1, 2):
        own = arrays(seed, dtype)
        scores = batch.scores(own)
        assert number.again(batch.blocks, (own, ()), LABELS[seed])
        expected = log_proba(batch.space, scores, LABELS[seed])
        np.testing.assert_array_equal(number.values(None), expected)
        values = np.empty(9)
        assert number.gradient(each=True, values=values, out=(batch, each)) is None
        gradient = number_gradient(
            "log_proba", batch.space, scores, labels=LABELS[seed], each=True, values=np.empty(9)
        )
        for array, exact in zip(each, batch.arrays(gradient, [a.shape for a in each])):
            np.testing.assert_array_equal(array, exact)
        np.testing.assert_allclose(values, expected, rtol=1e-6)
        assert best.again(batch.blocks, (own,))
        for one, two in zip(best.labels(None), argmax(batch.space, scores)):
            np.testing.assert_array_equal(one, two)


def test_what_needs_another_object_says_so(batch, monkeypatch):
    own = arrays(0)
    best = Best(batch.space, batch.scores(own))
    assert best.again(batch.blocks, (own,))
    node, *rest = own
    for other in (
        node.astype(np.float64),
        node[:, :4],
        np.asfortranarray(node),
        node[::-1],
        node.astype(node.dtype.newbyteorder()),
    ):
        assert not best.again(batch.blocks, ([other, *rest],))
        assert best.again(batch.blocks, (own,))
    assert not best.again(batch.blocks, ([node, rest[0].astype(np.float64), rest[1]],))
    assert best.again(batch.blocks, (own,))
    version = registry.default().version + 1
    monkeypatch.setattr(registry, "default", lambda: SimpleNamespace(version=version))
    assert not best.again(batch.blocks, (own,))


def test_losses_and_examples_of_others_do_not_last(batch):
    own = arrays(0)
    loss = Number("expected_loss", batch.space, batch.scores(own), LABELS[0], None, "hamming")
    assert not loss.again(batch.blocks, (own, ()), LABELS[0])
    space = score_space("chain", 3)
    scores = batch.scores(own)
    scores.examples, scores.places = space.pack_sizes([5] * 9), None
    assert not Best(space, scores).again(batch.blocks, (own,))


def test_scores_that_are_no_numbers_are_refused(batch):
    number = Number("log_partition", batch.space, batch.scores(arrays(0)))
    for k, message in enumerate([r"example 1: .*'node' holds nan", "'transition' holds nan"]):
        own = arrays(1)
        own[k][1, 1] = np.nan
        with pytest.raises(ValueError, match=message):
            number.again(batch.blocks, (own, ()))
            number.values(None)
