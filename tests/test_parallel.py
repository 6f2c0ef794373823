"""How examples are shared out among threads, and what is cut out of their answers."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structsolve import parallel
from structsolve.pieces import pieces

SIZES = st.lists(st.integers(0, 30_000), min_size=1, max_size=30)


def offsets_of(sizes):
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@settings(max_examples=200)
@given(SIZES, st.integers(1, 5))
def test_every_example_once_and_in_order(sizes, jobs):
    def work(first, last, scratch):
        scratch.append(threading.get_ident())
        assert len(set(scratch)) == 1, "scratch memory of two threads"
        return list(range(first, last))

    found = parallel.over_examples(work, offsets_of(sizes), jobs, list)
    # Examples without nodes at the end belong to the last range.
    assert [i for part in found for i in part] == list(range(len(sizes)))


@given(SIZES, st.integers(0, 29), st.integers(0, 29))
def test_native_calls_cover_their_range(sizes, a, z):
    first, last = sorted((min(a, len(sizes)), min(z, len(sizes))))
    offsets = offsets_of(sizes)
    calls = parallel.native_calls(offsets, first, last)
    assert [i for x, y in calls for i in range(x, y)] == list(range(first, last))
    for x, y in calls:
        assert y == x + 1 or offsets[y] - offsets[x] <= 2 * parallel.NODES_PER_CALL + 30_000


@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_the_exception_of_any_thread_is_raised(jobs):
    started = threading.Barrier(jobs, timeout=20)
    first = threading.local()

    def work(begin, end, scratch):
        if not hasattr(first, "seen"):
            first.seen = True
            started.wait()  # every thread has a range
        if threading.current_thread() is not threading.main_thread() or jobs == 1:
            raise KeyError(f"example {begin}")

    with pytest.raises(KeyError, match="example"):
        parallel.over_examples(work, np.arange(101), jobs, lambda: None)


@pytest.mark.parametrize("jobs", [0, 1.5, "2"])
def test_jobs_that_are_no_number(jobs):
    with pytest.raises(ValueError, match="n_jobs is"):
        parallel.effective_jobs(jobs)


@given(
    st.lists(st.integers(0, 5), max_size=20),
    st.sampled_from([np.int32, np.float64, "U3", object]),
    st.sampled_from([(), (3,), (0,), (2, 2)]),
    st.booleans(),
)
def test_pieces_are_slices(sizes, dtype, rest, reverse):
    offsets = offsets_of(sizes)
    shape = (int(offsets[-1]), *rest)
    flat = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    flat = flat[::-1] if reverse else flat
    found = pieces(flat, offsets)
    for piece, a, z in zip(found, offsets[:-1], offsets[1:], strict=True):
        expected = flat[a:z]
        np.testing.assert_array_equal(piece, expected)
        assert piece.dtype == flat.dtype and piece.shape == expected.shape
        assert piece.strides == expected.strides or piece.size == 0
        assert piece.base is not None and not piece.flags.owndata
        assert piece.flags.writeable and piece.flags.c_contiguous == expected.flags.c_contiguous


def test_pieces_keep_the_array_alive_and_its_flags():
    flat = np.array(["a", "b", "c" * 100], dtype=object)
    found = pieces(flat, [0, 1, 3])
    del flat
    assert [piece.tolist() for piece in found] == [["a"], ["b", "c" * 100]]
    found[1][0] = "z"
    assert found[1][0] == "z" and found[0].base is found[1].base
    fixed = np.arange(4)
    fixed.flags.writeable = False
    assert not pieces(fixed, [0, 4])[0].flags.writeable


def test_pieces_outside_the_array_are_refused():
    for offsets in ([0, 5], [-1, 2], [2, 1], [0, 3, 2]):
        with pytest.raises(ValueError, match="non-decreasing, 0 to 4"):
            pieces(np.arange(4), offsets)
    assert pieces(np.arange(4), [0]) == []
    for wrong in (np.float64(3), np.array(1), [1, 2], None):
        with pytest.raises(TypeError):
            pieces(wrong, [0, 1])
    with pytest.raises(TypeError, match="plain"):
        pieces(np.matrix([[1, 2]]), [0, 1])
