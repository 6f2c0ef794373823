"""The best labeling of one graph by a search that can be stopped at any time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from structsolve.plugins.mrf._best_first import ExactSearch
from structsolve.plugins.mrf._branch_and_bound import branch_and_bound
from structsolve.plugins.mrf._direct import WeightedModel, ascend
from structsolve.plugins.mrf._elimination import best_labelings
from structsolve.plugins.mrf._elimination_plan import Plans
from structsolve.plugins.mrf._model import GraphModel
from structsolve.plugins.mrf.decoders import MOST, TABLE

# Steps between two looks at the clock, a few milliseconds.
SLICE = 2.0**20
# Partial labelings tried first, on graphs with so many cells; larger ones get a few iterations.
FIRST, SMALL, ITERATIONS = 2000, 2**18, 10
# Narrow graphs are eliminated after so many steps, and so many for each sum.
SPENT, SHARE = 2.0**22, 2.0**-8
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


def start(model: GraphModel) -> tuple[np.ndarray, float, float, bool]:
    """Return a labeling, its score, a bound, and whether the labeling is the best.

    Parameters
    ----------
    model : GraphModel

    Returns
    -------
    label : ndarray of int
    value, bound : float
    proven : bool
    """
    if model.pair.size <= SMALL:
        return branch_and_bound(model, FIRST)
    shared = WeightedModel(model.states, model.ends, model.unary, model.pair)
    label, value, bound, _ = ascend(shared, ITERATIONS, False, False)
    return label, value, bound, bool(value >= bound)


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
    best: list[Any] = [np.zeros(len(model.states), dtype=np.int32), -np.inf, np.inf]
    search, status, told = None, "optimal", (-np.inf, np.inf)
    sums = None  # of elimination, once it is planned
    try:
        *best, proven = start(model)
        if not proven:
            search = ExactSearch(model, best[0])
        while search is not None:
            value, bound = search.value, min(best[2], search.bound)
            spent = time.monotonic() - begun
            if progress is not None and (value, bound) != told:
                told = value, bound
                progress(value, bound, spent)
            if time_limit is not None and spent >= time_limit:
                status = "time limit"
                break
            if search.advance(SLICE):
                break
            if sums is None and search.steps > SPENT:
                sums = Plans(model, TABLE, MOST, False).most_entries
            if sums is not None and sums <= min(MOST, search.steps / SHARE):
                left = np.inf if time_limit is None else time_limit - (time.monotonic() - begun)
                if sums <= SUMS * left:
                    labels, values = best_labelings(model, TABLE, MOST)
                    return Answer(labels[0], float(values[0]), float(values[0]), "optimal")
    except KeyboardInterrupt:
        status = "interrupted"
    return _answer(model, best, search, status)


def _answer(model: GraphModel, best: list[Any], search: ExactSearch | None, status: str) -> Answer:
    label, value, bound = best
    if search is not None:
        bound = min(bound, search.bound)
        if search.value > value:
            label, value = search.label, search.value
    if value > -np.inf:
        value = model.score(label)
    bound = value if status == "optimal" else max(bound, value)
    return Answer(label, value, bound, "optimal" if bound == value else status)


def improve(model: GraphModel, label: np.ndarray, value: float, bound: float) -> Answer:
    """Search from a labeling, while that helps; the amount of work does not depend on time.

    Parameters
    ----------
    model : GraphModel
    label : ndarray of int
    value, bound : float

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
            return _answer(model, [label, value, bound], search, "optimal")
        if search.value > known or search.value == -np.inf:
            last = search.steps
    return _answer(model, [label, value, bound], search, "bounded")
