"""The assignment solver against SciPy and enumeration, and invalid input.

Run as a script, this file solves with the instructions that STRUCTSOLVE_SIMD asks for and writes
the answers to the file that it is given.
"""

import sys
from itertools import permutations

import numpy as np
import pytest
from checks import refused
from data import data_file, needs_data
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from permutation_cases import KINDS, scores_of
from programs import by_instructions
from scipy.optimize import linear_sum_assignment

from structsolve import Block, Examples
from structsolve.part_layout import PartLayout
from structsolve.plugins.permutation import assign
from structsolve.plugins.permutation._oracle import AssignmentOracle
from structsolve.structure.calls import argmax


def check(scores, maximize):
    """Compare with SciPy; check the prices."""
    try:
        rows, cols = linear_sum_assignment(scores, maximize=maximize)
        expected = scores[rows, cols].sum()
    except ValueError:
        refused("no assignment is possible", assign, scores, maximize)
        return
    matching = assign(scores, maximize)
    n = len(scores)
    size = n * np.abs(scores[np.isfinite(scores)]).max(initial=0)
    near = {"rtol": 0, "atol": 1e-12 * size}
    assert len(set(matching.columns.tolist())) == n
    np.testing.assert_allclose(matching.value, expected, **near)
    np.testing.assert_allclose(matching.value, scores[np.arange(n), matching.columns].sum(), **near)
    np.testing.assert_allclose(matching.bound, expected, **near)
    sign = 1 if maximize else -1
    slack = sign * (matching.row_prices[:, None] + matching.column_prices - scores)
    assert slack.min(initial=0) >= -1e-12 * size
    np.testing.assert_allclose(slack[np.arange(n), matching.columns], 0, **near)
    if n < scores.shape[1]:
        free = np.setdiff1d(np.arange(scores.shape[1]), matching.columns)
        assert (matching.column_prices[free] == 0).all()
        assert (sign * matching.column_prices >= 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_scipy(kind):
    rng = np.random.default_rng(0)
    for _ in range(300):
        rows = int(rng.integers(1, 10))
        cols = rows + int(rng.integers(0, 4)) * int(rng.integers(0, 2))
        maximize = bool(rng.integers(2))
        scores = scores_of(rng, kind, rows, cols)
        if rng.random() < 0.4:
            scores[rng.random((rows, cols)) < 0.4] = -np.inf if maximize else np.inf
        check(scores, maximize)


@settings(max_examples=300, deadline=None)
@given(
    st.integers(1, 6).flatmap(
        lambda rows: hnp.arrays(
            np.float64,
            st.tuples(st.just(rows), st.integers(rows, rows + 3)),
            elements=st.floats(-1e9, 1e9, allow_subnormal=False) | st.sampled_from([0.0, 1.0, 0.1]),
        )
    ),
    st.booleans(),
)
def test_any_numbers(scores, maximize):
    check(scores, maximize)


@pytest.mark.parametrize("kind", ["normal", "few", "metric"])
def test_larger(kind):
    rng = np.random.default_rng(1)
    for rows, cols in ((30, 30), (66, 66), (40, 57), (63, 64), (70, 91), (120, 120), (1, 80)):
        check(scores_of(rng, kind, rows, cols), False)
        barred = scores_of(rng, kind, rows, cols)
        barred[rng.random((rows, cols)) < 0.5] = np.inf
        check(barred, False)


@pytest.mark.parametrize("cols", [*range(1, 51), *range(55, 75), 80, 81, 97, 104])
def test_every_width(cols):
    """Up to 64 columns the width of a row is compiled in; beyond, it is not."""
    rng = np.random.default_rng(cols)
    for kind in KINDS:
        for rows in {cols, max(1, cols - 1), int(rng.integers(1, cols + 1))}:
            check(scores_of(rng, kind, rows, cols), False)
            barred = scores_of(rng, kind, rows, cols)
            barred[rng.random((rows, cols)) < 0.3] = -np.inf
            check(barred, True)


@pytest.mark.parametrize("cols", [3, 8, 17, 32, 40, 61, 64, 90])
def test_one_way_only(cols):
    """There is only one assignment, so no price can fall to a second best."""
    rng = np.random.default_rng(cols)
    scores = np.full((cols, cols), np.inf)
    order = rng.permutation(cols)
    scores[np.arange(cols), order] = rng.normal(size=cols)
    assert assign(scores, maximize=False).columns.tolist() == order.tolist()
    scores[np.tril_indices(cols)] = 0  # and a triangle, where a chain of rows must give way
    scores[np.triu_indices(cols, 1)] = np.inf
    assert assign(scores[::-1], maximize=False).columns.tolist() == list(range(cols))[::-1]
    scores[0, 0] = np.inf
    refused("no assignment is possible", assign, scores, maximize=False)


@pytest.mark.parametrize("cols", [4, 12, 20, 32, 36, 64, 67])
def test_scores_beyond_all_bounds(cols):
    """Any input of the oracle gives valid columns, without a crash."""
    rng = np.random.default_rng(cols)
    odd = [np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324, -0.0, 1.0]
    tables = Examples(
        cols * cols * np.arange(41),
        label_offsets=cols * np.arange(41),
        topology={"cols": np.full(40, cols), "forbidden": None},
    )
    oracle = AssignmentOracle(PartLayout([Block("pair", "node", (1,))], tables))
    for i in range(40):
        theta = rng.normal(size=(cols, cols))
        spoilt = rng.random(theta.shape) < rng.choice([0.02, 0.2, 1])
        theta[spoilt] = rng.choice(odd, spoilt.sum())
        try:
            label = argmax(oracle, i, theta.ravel())[0]
        except ValueError as error:
            assert "no assignment is possible" in str(error)
        else:
            assert sorted(label) == list(range(cols))


def same_problems():
    """Problems with a unique answer and with many."""
    rng = np.random.default_rng(6)
    for cols in (*range(1, 43), 48, 49, 56, 63, *range(64, 74), 99):
        for kind in ("normal", "ties", "few", "metric", "tenths", "product"):
            scores = scores_of(rng, kind, max(1, cols - int(rng.integers(0, 3))), cols)
            scores[rng.random(scores.shape) < 0.1] = -np.inf
            scores[:, 0] = 0
            np.fill_diagonal(scores, 0)
            yield scores


def answers():
    return [np.concatenate([np.ravel(part) for part in assign(s)]) for s in same_problems()]


def test_instructions(tmp_path):
    """Every instruction set finds the same assignments and prices, to the last bit."""
    own = np.concatenate(answers())
    for version, others in by_instructions(__file__, tmp_path, ("plain", "avx2")).items():
        np.testing.assert_array_equal(others["all"], own, err_msg=version)


def test_every_problem_of_two_costs():
    """All square problems with scores 0 and 1 up to three rows, alone and inside larger ones."""
    for n in (1, 2, 3):
        for bits in range(2 ** (n * n)):
            scores = (bits >> np.arange(n * n) & 1).astype(float).reshape(n, n)
            best = max(scores[np.arange(n), list(p)].sum() for p in permutations(range(n)))
            for size in (n, 5, 33, 66):  # what lies beyond is worth 2 to itself alone
                padded = np.zeros((size, size))
                np.fill_diagonal(padded, 2)
                padded[:n, :n] = scores
                assert assign(padded).value == best + 2 * max(0, size - n)


def test_enumeration():
    rng = np.random.default_rng(2)
    for _ in range(50):
        scores = rng.integers(-3, 4, (4, 5)).astype(float)
        best = max(scores[np.arange(4), list(p)].sum() for p in permutations(range(5), 4))
        assert assign(scores).value == best


@needs_data
def test_published_optima():
    data = np.load(data_file("lap-orlib", "assign.npz"))
    for n, optimum in zip(data["n"].tolist(), data["optimum"].tolist()):
        if n <= 400:
            matching = assign(data[f"cost{n}"], maximize=False)
            assert matching.value == optimum
            assert matching.bound == pytest.approx(optimum, rel=1e-12)


def test_batch():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(20, 3, 5))
    matchings = assign(scores)
    for i, one in enumerate(scores):
        alone = assign(one)
        assert matchings.columns[i].tolist() == alone.columns.tolist()
        assert matchings.value[i] == alone.value and matchings.bound[i] == alone.bound
        assert (matchings.row_prices[i] == alone.row_prices).all()
        assert (matchings.column_prices[i] == alone.column_prices).all()


def test_empty():
    assert assign(np.zeros((0, 3))).value == 0
    assert assign(np.zeros((0, 2, 3))).columns.shape == (0, 2)
    assert assign(np.zeros((2, 0, 0))).value.tolist() == [0, 0]


def test_lists_integers_and_views():
    assert assign([[1, 2], [2, 1]]).columns.tolist() == [1, 0]
    assert assign(np.array([[True, False], [True, True]])).value == 2
    table = np.asfortranarray(np.random.default_rng(4).normal(size=(6, 6)))
    assert assign(table[::2, ::2]).value == assign(table[::2, ::2].copy()).value


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([[1.0, np.nan], [0.0, 1.0]], "row 0, column 1 is nan, expected a number"),
        ([[1.0, np.inf], [0.0, 1.0]], "row 0, column 1 is inf.*-inf to forbid"),
        ([[1.0, 1e301], [0.0, 1.0]], "row 0, column 1 is 1e"),
        ([[-np.inf, -np.inf], [0.0, 1.0]], "no assignment is possible"),
        (np.zeros(3), "found 1 dimension"),
        ([["a", "b"]], "not an array of real numbers"),
        ([[1j]], "not an array of real numbers"),
        ([[1.0], [1.0, 2.0]], "not an array of real numbers"),
        (None, "not an array of real numbers"),
        (np.ma.masked_less(np.eye(2), 1), r"2 masked entries.*scores.filled\(-inf\) forbids"),
    ],
)
def test_refused(scores, message):
    refused(message, assign, scores)


def test_refused_in_a_batch():
    scores = np.zeros((3, 2, 2))
    scores[2, 1] = -np.inf
    refused("problem 2: no assignment", assign, scores)
    scores[1, 0, 1] = np.nan
    refused("problem 1, row 0, column 1", assign, scores)


if __name__ == "__main__":
    np.savez(sys.argv[1], all=np.concatenate(answers()))
