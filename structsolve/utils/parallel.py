"""Native threads over examples: how work is split, so that n_jobs never changes an answer."""

from __future__ import annotations

import functools
import os
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

import numpy as np

# Nodes per call into native code: few enough for Ctrl-C, enough for calls to be cheap.
NODES_PER_CALL = 20_000
# Calls per thread: enough for the threads to end at about the same time.
CALLS_PER_THREAD = 8
# Maximum number of threads of all running calls; they are kept for later calls.
MOST_HELPERS = 128
# More threads than any machine has cores: a mistake.
MOST_JOBS = 65_536


def effective_jobs(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``.

    Parameters
    ----------
    n_jobs : int or None
        None is 1, -1 all cores, -2 all but one.

    Returns
    -------
    int
        At least 1.

    Raises
    ------
    ValueError
        For 0 and anything but an integer.

    Examples
    --------
    >>> from structsolve.utils.parallel import effective_jobs
    >>> effective_jobs(None), effective_jobs(3)
    (1, 3)
    """
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise ValueError(f"n_jobs is {n_jobs!r}, expected a non-zero integer or None")
    if n_jobs < 0:
        return max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))
    if n_jobs > MOST_JOBS:
        raise ValueError(f"n_jobs is {n_jobs!r}, expected at most {MOST_JOBS}, or -1 for all cores")
    return int(n_jobs)


def ranges(offsets: np.ndarray, pieces: int, taper: bool = False) -> list[tuple[int, int]]:
    """Split examples into at most ``pieces`` contiguous ranges of about equal numbers of nodes.

    Parameters
    ----------
    offsets : ndarray of int, shape (n_examples + 1,)
        First node of each example, and the end.
    pieces : int
        Maximum number of ranges.
    taper : bool, default=False
        Later ranges are smaller, the last about a quarter: threads that take them in turn end
        together.

    Returns
    -------
    list of (first, last)
        `last` is one past the last example.
    """
    n = len(offsets) - 1
    if n < 2 or pieces < 2:
        return [(0, n)] if n else []
    cuts = sorted({0, n, *offsets.searchsorted(offsets[-1] * shares(pieces, taper)).tolist()})
    return list(zip(cuts[:-1], cuts[1:]))


@functools.lru_cache(maxsize=64)  # each new batch of a network is split in the same way
def shares(pieces: int, taper: bool = False) -> np.ndarray:
    """Return the share of all nodes before each range but the first.

    Parameters
    ----------
    pieces, taper
        As of :func:`ranges`.

    Returns
    -------
    ndarray of float64 of shape (pieces - 1,)
    """
    share = np.linspace(0, 1, pieces + 1)[1:-1]
    return np.asarray(1 - (1 - share) ** 1.5 if taper else share)


def native_calls(offsets: np.ndarray, first: int, last: int) -> list[tuple[int, int]]:
    """Split the examples first .. last - 1 into ranges short enough for one native call each.

    Parameters
    ----------
    offsets : ndarray of int, shape (n_examples + 1,)
        First node of each example, and the end.
    first, last : int

    Returns
    -------
    list of (first, last)
    """
    if offsets[last] - offsets[first] <= NODES_PER_CALL:
        return [(first, last)]
    part = offsets[first : last + 1] - offsets[first]
    pieces = ranges(part, -(-int(part[-1]) // NODES_PER_CALL))
    return [(first + a, first + z) for a, z in pieces]


def over_examples(
    work: Callable[[int, int, Any], Any],
    offsets: np.ndarray,
    n_jobs: int | None,
    make_space: Callable[[], Any],
) -> list[Any]:
    """Run ``work(first, last, scratch)`` over all examples; return its results in order.

    Each thread makes its own scratch and takes the next range of examples when it is done with
    one.  The first exception is raised.

    Parameters
    ----------
    work : callable
        Runs on the examples first .. last - 1.
    offsets : ndarray of int, shape (n_examples + 1,)
        First node of each example, or of whatever else is numbered, and the end.
    n_jobs : int or None
        As for `effective_jobs`.
    make_space : callable
        Makes the scratch of a thread.

    Returns
    -------
    list
        The result of each call of `work`.
    """
    jobs, n = effective_jobs(n_jobs), len(offsets) - 1
    if jobs == 1 and n > 0 and offsets[-1] <= NODES_PER_CALL:
        return [work(0, n, make_space())]
    calls = max(1, -(-int(offsets[-1]) // NODES_PER_CALL))
    if jobs > 1:
        calls = max(calls, CALLS_PER_THREAD * jobs)
    pieces = ranges(offsets, calls, taper=jobs > 1)
    results: list[Any] = [None] * len(pieces)
    waiting = deque(enumerate(pieces))

    def run() -> None:
        scratch = make_space()
        try:
            while waiting:
                try:
                    k, (first, last) = waiting.popleft()
                except IndexError:  # another thread was faster
                    return
                results[k] = work(first, last, scratch)
        except BaseException:
            waiting.clear()  # the other threads stop
            raise

    helpers = min(jobs, len(pieces)) - 1
    if helpers < 1:
        run()
        return results
    call, threads = _Call(run), _threads()
    threads.help(call.run, helpers)
    try:
        run()
    finally:
        try:
            errors = call.close()
        finally:
            threads.leave(helpers)
    for error in errors:
        raise error
    return results


class _Call:
    """One call of :func:`over_examples`: the threads that have started, and their errors."""

    def __init__(self, run: Callable[[], None]):
        self._run, self._closed, self._begun = run, False, 0
        self._lock, self._ended = Lock(), SimpleQueue[Any]()

    def run(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._begun += 1
        try:
            self._run()
        except BaseException as error:
            self._ended.put(error)
        else:
            self._ended.put(None)

    def close(self) -> list[BaseException]:
        """Wait only for the threads that have started; return their errors."""
        with self._lock:
            self._closed = True
        ended = [self._ended.get() for _ in range(self._begun)]
        return [error for error in ended if error is not None]


class _Threads:
    """Threads that wait for work, as many as running calls request.

    A pool of futures takes longer than a small batch.
    """

    def __init__(self) -> None:
        self._lock, self._waiting = Lock(), SimpleQueue[Any]()
        self._n = self._wanted = 0

    def help(self, run: Callable[[], None], helpers: int) -> None:
        with self._lock:
            self._wanted += helpers
            while self._n < min(self._wanted, MOST_HELPERS):
                Thread(target=self._work, daemon=True, name="structsolve").start()
                self._n += 1
        for _ in range(helpers):
            self._waiting.put(run)

    def leave(self, helpers: int) -> None:
        with self._lock:
            self._wanted -= helpers

    def _work(self) -> None:
        while True:
            self._waiting.get()()


_made: list[_Threads] = []


def _threads() -> _Threads:
    """Return the threads of this process."""
    if not _made:
        _made.append(_Threads())
    return _made[0]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_made.clear)  # a child process has none of the threads
