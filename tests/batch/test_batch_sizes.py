"""Batches of new sizes: native loops against NumPy, and memory and operators that are kept."""

import copy
import pickle

import numpy as np
import pytest
from checks import refused

from structsolve.batch import Scores, argmax, score_space, value_and_gradient
from structsolve.batch._sheets import extremes, first_of_ranges, flat_rows, padded_rows
from structsolve.batch.padded import Batches
from structsolve.examples.packing import size_offsets
from structsolve.registry import get_structure
from structsolve.utils.parallel import ranges, shares


def test_first_of_ranges_are_those_of_ranges():
    rng = np.random.default_rng(0)
    for _ in range(300):
        sizes = rng.integers(0, 9, rng.integers(0, 40))
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        expected = [first for first, _ in ranges(offsets, 16, taper=True)] + [len(sizes)]
        assert first_of_ranges(offsets, shares(16, True)).tolist() == expected


def test_rows_of_labels_are_padded_and_flattened():
    rng = np.random.default_rng(1)
    for _ in range(100):
        sizes = rng.integers(0, 6, rng.integers(1, 9))
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        inside = np.arange(7) < sizes[:, None]
        flat = rng.integers(0, 5, offsets[-1]).astype(np.int32)
        expected = np.full(inside.shape, -1)
        expected[inside] = flat
        rows = padded_rows(flat, offsets, 7, -1)
        assert np.array_equal(rows, expected)
        assert np.array_equal(flat_rows(rows, offsets), flat)
        assert np.array_equal(flat_rows(rows.repeat(2, 1)[:, ::2], offsets), flat)


@pytest.mark.parametrize("offsets", [[2, -(2**62), 4], [0, 3, 2], [0, 5], [-1, 2], [0, 4], []])
def test_rows_beyond_the_labels_are_refused(offsets):
    offsets = np.array(offsets, dtype=np.int64)
    with pytest.raises(ValueError):
        padded_rows(np.zeros(4, np.int32), offsets, 3, 0)
    with pytest.raises(ValueError):
        flat_rows(np.zeros((len(offsets) - 1 if len(offsets) else 0, 3), np.int64), offsets)
    with pytest.raises(ValueError):
        flat_rows(np.zeros((0, 3), np.int64), np.array([0, 1], dtype=np.int64))


def test_batches_of_new_sizes_answer_like_a_new_space():
    rng = np.random.default_rng(2)
    kept = score_space("chain", 3)
    for _ in range(40):
        sizes = rng.integers(1, 30, rng.integers(1, 6)).tolist()
        node = rng.normal(size=(sum(sizes), 3))
        shared = {"transition": rng.normal(size=(3, 3))}
        truth = rng.integers(0, 3, sum(sizes))
        answers = []
        for space in (kept, score_space("chain", 3)):
            scores = Scores(node, shared, examples=space.pack_sizes(sizes))
            for surrogate in ("crf", "margin"):
                values, gradient = value_and_gradient(space, scores, truth, surrogate)
                answers += [values, gradient.node, gradient.shared["transition"]]
            answers += argmax(space, scores)
        half = len(answers) // 2
        for one, other in zip(answers[:half], answers[half:]):
            assert np.array_equal(one, other)


def test_batches_with_operators_are_copied_without_them():
    batches = Batches(get_structure("chain"), 2)
    batch = batches.read({"node": (2, 3, 2), "transition": (2, 2)}, [2, 3], None)
    argmax(batch.space, batch.scores([np.zeros((2, 3, 2)), np.eye(2)]))
    for twin in (copy.deepcopy(batches), pickle.loads(pickle.dumps(batches))):
        again = twin.read({"node": (2, 3, 2), "transition": (2, 2)}, [2, 3], None)
        labels = argmax(again.space, again.scores([np.zeros((2, 3, 2)), np.eye(2)]))[0]
        assert labels.shape == (5,)


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
@pytest.mark.parametrize("step", [1, 2])
def test_starts_of_sizes_of_every_type(kind, step):
    sizes = np.array([3, 1, 2, 5], kind)[::step]
    expected = [0, *np.cumsum(sizes.astype(int)).tolist()]
    assert size_offsets(sizes).tolist() == size_offsets(sizes.tolist()).tolist() == expected
    refused(r"example 1: sizes: found \d, expected at least 3", size_offsets, sizes, least=3)
    assert size_offsets(np.zeros(2, kind), least=0).tolist() == [0, 0, 0]
    for wrong in (sizes[:0], sizes[None], sizes.astype(float)):
        refused("expected one integer per example", size_offsets, wrong)


def test_extremes_of_sizes():
    assert extremes(np.array([0, 3, 4, 9])) == (1, 5)
    assert extremes(np.array([0, 0])) == extremes(np.array([0])) == (0, 0)


def test_places_are_kept_from_the_second_time_on():
    batches = Batches(get_structure("chain"))
    shapes = {"node": (2, 5, 4), "transition": (4, 4)}

    def places(*lengths):
        return batches.read(shapes, [*lengths], None).places

    once = places(3, 1)
    kept = places(3, 1)
    assert kept is not once and places(3, 1) is kept
    assert kept.examples.offsets.tolist() == once.examples.offsets.tolist() == [0, 3, 4]
    for k in range(8):  # as many others
        places(1 + k % 5, 2 + k // 5)
    assert places(3, 1) is not kept
