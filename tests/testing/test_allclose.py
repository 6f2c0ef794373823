"""The quick ``assert_allclose`` of conftest.py decides as NumPy's."""

import itertools

import allclose
import numpy as np
import pytest

NUMBERS = [0.0, 1.0, 1.0 + 1e-8, 1.0 + 2e-7, -1.0, 1e-300, 1e300, np.inf, -np.inf, np.nan]
SHAPED = [1.0, np.ones(0), np.ones(1), np.ones(2), np.ones((2, 1)), [1.0, 1.0], [[1.0, 1.0]]]
OTHERS = [
    1,
    2**62 + 1,
    -(2**62),
    np.ones(2, int),
    np.array([1, 2**62]),
    [1, 1],
    np.ones(2, np.float32),
    np.ma.masked_array([1.0, 2.0], [0, 1]),
]


def passes(check, *given, **named):
    try:
        check(*given, **named)
    except (AssertionError, ValueError):
        return False
    return True


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "near", [{}, {"rtol": 0}, {"rtol": 0, "atol": 1e-7}, {"atol": 2.0}], ids=repr
)
def test_it_decides_as_numpy_does(near):
    assert np.testing.assert_allclose is allclose.assert_allclose
    numbers = [*NUMBERS, *(np.array([1.0, number]) for number in NUMBERS)]
    decided = set()
    for given in [
        *itertools.product(numbers, repeat=2),
        *itertools.product(SHAPED + OTHERS, repeat=2),
    ]:
        expected = passes(allclose.slow, *given, **near)
        assert passes(allclose.assert_allclose, *given, **near) == expected, given
        if expected:
            decided.add(allclose.near(*given, near.get("rtol", 1e-7), near.get("atol", 0)))
    assert decided == {True, False}  # both ways are taken


def test_words_are_those_of_numpy():
    with pytest.raises(AssertionError, match=r"rtol=1e-07, atol=0\.5[\s\S]*of weights") as told:
        np.testing.assert_allclose([1.0, 2.0], [1.0, 3.0], atol=0.5, err_msg="of weights")
    assert "Mismatched elements: 1 / 2" in str(told.value)
