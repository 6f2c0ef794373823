"""`assign` of one plain array, which takes a short way: the same bits as in a batch."""

import numpy as np
import pytest
from checks import refused

from structsolve.plugins.permutation import Assigned, assign
from structsolve.plugins.permutation._oracle import solve_one


def _same(quick, batch):
    for one, many in zip(quick, batch, strict=True):
        assert np.asarray(one).dtype == many.dtype
        assert np.asarray(one).tobytes() == many[0].tobytes()


@pytest.mark.parametrize("maximize", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_same_bits_as_a_batch(seed, maximize):
    rng = np.random.default_rng(seed)
    for rows, more in [(r, m) for r in (*range(1, 11), 17, 63, 64, 65, 100) for m in (0, 1, 5)]:
        shape = (rows, rows + more)
        for scores in (rng.normal(size=shape), rng.integers(0, 4, shape), np.zeros(shape)):
            best = assign(scores, maximize)
            assert type(best) is Assigned
            _same(best, assign(scores[None], maximize))
            assert sorted({*best.columns.tolist()}) == sorted(best.columns.tolist())
            assert best.value == pytest.approx(best.bound, abs=1e-9 * rows)


def test_types_and_orders_of_arrays():
    rng = np.random.default_rng(7)
    scores = rng.integers(-5, 6, (6, 8))
    expected = assign(scores.astype(float)[None])
    for dtype in ("i1", "u2", "i8", "f4", "f8", "g", ">f8", "<i4"):
        given = scores - scores.min() if "u" in dtype else scores
        _same(assign(given.astype(dtype)), assign(given.astype(float)[None]))
    frozen = scores.astype(float)
    frozen.flags.writeable = False
    for given in (frozen, np.asfortranarray(frozen), np.repeat(frozen, 2, 1)[:, ::2]):
        _same(assign(given), expected)
    _same(assign(scores > 0), assign((scores > 0).astype(float)[None]))


def test_all_others_take_the_long_way():
    kind = tuple
    for odd in (
        [[1.0]],
        np.zeros((0, 0)),
        np.zeros((3, 2)),
        np.zeros((2, 2, 2)),
        np.zeros((2, 2), complex),
        np.zeros((2, 2), np.float16),
        np.array([["a"]]),
        np.array([[np.nan]]),
        np.array([[-np.inf, 0.0]]),
        np.array([[2e300]]),
    ):
        assert solve_one(odd, True, 1e300, kind) is None
    assert assign(np.array([[-np.inf, 0.0]])).columns.tolist() == [1]
    refused("row 0, column 0 is nan", assign, np.array([[np.nan]]))
    refused("no assignment is possible", assign, np.full((2, 2), -np.inf))
