"""Native threads over examples: how work is split, so that n_jobs never changes an answer."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

# Nodes per call into native code: small enough for Ctrl-C to be heard, large enough to forget.
NODES_PER_CALL = 20_000


def effective_jobs(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` means: None is 1, -1 all cores, -2 all but one.

    Examples
    --------
    >>> from structsolve.parallel import effective_jobs
    >>> effective_jobs(None), effective_jobs(3)
    (1, 3)
    """
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise ValueError(f"n_jobs is {n_jobs!r}, expected a non-zero integer or None")
    if n_jobs < 0:
        return max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))
    return int(n_jobs)


def ranges(offsets: np.ndarray, pieces: int) -> list[tuple[int, int]]:
    """Split examples into at most ``pieces`` contiguous ranges of about equal numbers of nodes."""
    n = len(offsets) - 1
    targets = np.linspace(0, offsets[-1], pieces + 1)[1:-1]
    cuts = np.unique(np.concatenate([[0], np.searchsorted(offsets, targets), [n]]))
    return [(int(a), int(b)) for a, b in zip(cuts[:-1], cuts[1:]) if b > a]


def over_examples(
    work: Callable[[int, int, Any], Any],
    offsets: np.ndarray,
    n_jobs: int | None,
    make_space: Callable[[], Any],
) -> list[Any]:
    """Run ``work(first, last, scratch)`` over all examples; return its results in order.

    Each thread makes its own scratch with ``make_space``.  The first exception is raised.
    """
    jobs = min(effective_jobs(n_jobs), max(len(offsets) - 1, 1))

    def run(piece: tuple[int, int]) -> list[Any]:
        scratch = make_space()
        first, last = piece
        part = offsets[first : last + 1] - offsets[first]
        calls = max(1, -(-int(part[-1]) // NODES_PER_CALL))
        return [work(first + a, first + b, scratch) for a, b in ranges(part, calls)]

    pieces = ranges(offsets, jobs)
    if jobs == 1 or len(pieces) <= 1:
        return [r for piece in pieces for r in run(piece)]
    with ThreadPoolExecutor(jobs) as pool:
        return [r for results in pool.map(run, pieces) for r in results]
