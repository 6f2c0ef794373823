"""The best labeling of one graph by a search that can be stopped at any time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from structsolve.plugins.mrf.elimination._elimination import best_labelings
from structsolve.plugins.mrf.elimination._plan import Plans
from structsolve.plugins.mrf.exact._search import ExactSearch
from structsolve.plugins.mrf.tables._model import GraphModel

# Sums up to which narrow graphs are eliminated, about two seconds, and entries of the tables.
MOST, TABLE = 2.0**30, 2.0**22
# Steps between two looks at the clock, a few milliseconds.
SLICE = 2.0**20
# Narrow graphs are eliminated after so many steps, and so many for each sum.  The plan takes longer
# the more pairs of nodes there are.
SPENT, SPENT_EACH, SHARE = 2.0**22, 4.0, 2.0**-8
# Sums per second at least: whether elimination fits into a time limit.
SUMS = 2.0**28
# "auto" stops after so many steps, for each cell too, without a better labeling, and at the most.
PATIENCE, PATIENCE_EACH, LONGEST = 2.0**24, 64.0, 2.0**28


class Answer(NamedTuple):
    """What a search has.

    Parameters
    ----------
    label : ndarray of int of shape (n,)
    value, bound : float
    status : str
        "optimal", "time limit" or "interrupted".
    """

    label: np.ndarray
    value: float
    bound: float
    status: str


def solve(
    model: GraphModel,
    time_limit: float | None = None,
    progress: Callable[[float, float, float], None] | None = None,
) -> Answer:
    """Search for the best labeling until it is proven, the time is over, or Ctrl-C is pressed.

    Parameters
    ----------
    model : GraphModel
    time_limit : float, optional
        Seconds.
    progress : callable, optional
        Called with the best score, the bound and the seconds, whenever one of the former changes.

    Returns
    -------
    Answer
    """
    begun = time.monotonic()
    search, status, told = ExactSearch(model), "optimal", (-np.inf, np.inf)
    sums = None  # of elimination, once it is planned
    try:
        proven = search.advance(0)
        while not proven:
            spent = time.monotonic() - begun
            if progress is not None and (search.value, search.bound) != told:
                told = search.value, search.bound
                progress(*told, spent)
            if time_limit is not None and spent >= time_limit:
                status = "time limit"
                break
            proven = search.advance(SLICE)
            if sums is None and search.steps > max(SPENT, SPENT_EACH * len(model.states) ** 2):
                sums = Plans(model, TABLE, MOST, False).most_entries
            if not proven and sums is not None and sums <= min(MOST, search.steps / SHARE):
                left = np.inf if time_limit is None else time_limit - (time.monotonic() - begun)
                if sums <= SUMS * left:
                    labels, values = best_labelings(model, TABLE, MOST)
                    return Answer(labels[0], float(values[0]), float(values[0]), "optimal")
    except KeyboardInterrupt:
        status = "interrupted"
    return _answer(search, status)


def _answer(search: ExactSearch, status: str, bound: float = np.inf) -> Answer:
    """Return what the search has; `bound` is another one."""
    value = search.value
    bound = value if status == "optimal" else max(min(search.bound, bound), value)
    return Answer(search.label, value, bound, "optimal" if bound == value else status)


def improve(model: GraphModel, label: np.ndarray, bound: float) -> Answer:
    """Search from a labeling, while that helps; the amount of work does not depend on time.

    Parameters
    ----------
    model : GraphModel
    label : ndarray of int
    bound : float

    Returns
    -------
    Answer
        Its label is at least as good.
    """
    search = ExactSearch(model, label)
    last, patience = 0.0, PATIENCE + PATIENCE_EACH * model.pair.size
    while search.steps < min(2 * last + patience, LONGEST):
        known = search.value
        if search.advance(SLICE):
            return _answer(search, "optimal")
        if search.value > known or search.value == -np.inf:
            last = search.steps
    return _answer(search, "bounded", bound)
