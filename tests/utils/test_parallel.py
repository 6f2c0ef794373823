"""How examples are divided among threads."""

import multiprocessing
import os
import threading

import numpy as np
import pytest
from checks import refused
from hypothesis import given, settings
from hypothesis import strategies as st

from structsolve.utils import parallel

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

    parts = parallel.over_examples(work, offsets_of(sizes), jobs, list)
    # Examples without nodes at the end belong to the last range.
    assert [i for part in parts for i in part] == list(range(len(sizes)))


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
    started = threading.Barrier(jobs, timeout=600)
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
    refused("n_jobs is", parallel.effective_jobs, jobs)


def test_calls_within_calls_and_in_child_processes():
    def inner(first, last, scratch):
        return sum(range(first, last))

    def work(first, last, scratch):
        return sum(parallel.over_examples(inner, np.arange(101), 3, lambda: None))

    whole = [sum(range(100))]
    parts = parallel.over_examples(work, np.arange(301), 200, lambda: None)
    assert {*parts} == {*whole}
    if hasattr(os, "fork"):
        # The child has none of the threads of its parent.
        with multiprocessing.get_context("fork").Pool(1) as pool:
            assert pool.apply_async(_sum_in_threads).get(timeout=600) == whole[0]


def _sum_in_threads():
    parts = parallel.over_examples(
        lambda first, last, scratch: sum(range(first, last)), np.arange(101), 3, lambda: None
    )
    return sum(parts)
