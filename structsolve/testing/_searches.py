"""``check_search``: a search's results on each label plane, against all labels of the example."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import numpy as np

from .. import registry
from ..search import make_search
from ..search.base import Search
from ..structure import calls
from ..surrogates import Beta, Generalized, Log, MicroF1, ProbLoss, Slack
from ..surrogates.calls import cut
from ..surrogates.task import Task
from ..utils.params import check_count
from ._case import Case

# Relative tolerance for rounding and the final interval of a search.
ROUNDING, LEFT = 1e-8, 1e-6
# Number of mixtures of two labels to try.
SHARES = np.linspace(0, 1, 33)


def check_search(
    search: Any,
    structure: Any = "chain",
    loss: Any = "hamming",
    n_cases: int = 2,
    size: int = 2,
    random_state: int = 0,
) -> None:
    """Check a search for the most violated label, against enumeration.

    Parameters
    ----------
    search : str or Search
    structure : str or Structure, default="chain"
    loss : str or loss object, default="hamming"
    n_cases, size, random_state : int
        As for :func:`check_structure`.

    Raises
    ------
    BrokenPromise
        An AssertionError that says what was found and expected; ``.theta`` are the scores.
    ValueError
        For ``n_cases`` below 1, or if no psi suits search, structure and loss.

    Notes
    -----
    Checked are, with psi of slack, beta, generalized and micro-F1 scaling, ProbLoss and the log
    loss: points, values and labels against each other and below the maximum; the bound above it;
    the maximum itself where the search declares it (``fractional``: over the hull, ``counting``:
    over labels); no more than ``max_calls`` oracle calls; all of this also after searches at other
    scores; the same answer twice; settings kept in a copy; a ValueError that names the search
    where it refuses a psi, a structure or a loss.

    Examples
    --------
    >>> from structsolve.testing import check_search
    >>> check_search("convex-hull", n_cases=1)
    """
    check_count("n_cases", n_cases)
    structure = registry.get_structure(structure)
    search = make_search(search)
    what, checked = f"Search {search.name!r}", 0
    for number in range(n_cases):
        case = Case(structure, number, random_state + number, size)
        case.kit, case.more = f"check_search({search.name!r}, structure, ", f", loss={loss!r}"
        case.enumerate()
        _check_copy(case, what, search)
        task = Task(case.space, case.examples, loss)
        classes = getattr(case.space, "classes_", [None])
        ratio = partial(MicroF1, classes[0])
        surrogates = (Slack, Beta, Generalized, Log, ProbLoss, MicroF1, ratio)
        for make in surrogates:
            checked += _check_psi(case, what, search, make, task)
    if not checked:
        raise ValueError(
            f"{what} takes no psi on structure {structure.name!r} with this loss: nothing was "
            "checked; give it a structure and a loss that suit it"
        )


def _check_copy(case: Case, what: str, search: Search) -> None:
    with case.promise(what, "can be copied, as clone() does"):
        other = copy.deepcopy(search)
    for name in ("name", "max_calls", "tol", "fractional", "product_only", "constrained"):
        copied, expected = getattr(other, name), getattr(search, name)
        if copied != expected:
            case.fail(what, f"keeps {name} in a copy", None, copied, expected)


def _check_psi(case: Case, what: str, search: Search, make: Any, task: Task) -> int:
    surrogate = make(search=search, relaxed=bool(search.fractional), max_kbest=0)
    try:
        axes = surrogate._axes(task)
    except ValueError:
        return 0  # it is not for this structure
    psi = surrogate._psi()
    with case.promise(what, f"is bound to a task, or refuses it with a ValueError ({psi.name})"):
        try:
            native = surrogate.bind(task)
        except ValueError as error:
            if search.name not in str(error):
                promise = f"names itself if it refuses ({psi.name})"
                case.fail(what, promise, None, f"ValueError: {error}", search.name, error)
            return 0
    for i in range(case.n):
        truth = case.examples.label(i)
        rows = case.mu[i] - case.dense(i, *case.encode(i, truth))
        g = axes.get("sign", 1.0) * _losses(axes["g_loss"], i, truth, case.labels[i])
        shift: Any = 0.0
        if axes.get("h_loss") is not None:
            shift = _losses(axes["h_loss"], i, truth, case.labels[i])
        for kind, theta in case.thetas(i).items():
            case.latest = i, theta
            h = rows @ theta + shift
            detail = f"psi of {psi.name}, {kind} theta"
            for when in ("", ", after a search at other scores"):
                with case.promise(what, f"answers without an exception ({detail}{when})", i):
                    told, again = (native.trace(i, theta, truth) for _ in range(2))
                if repr(told["outcome"]) != repr(again["outcome"]):
                    promise = f"gives the same answer twice ({detail}{when})"
                    case.fail(what, promise, i, again["outcome"], told["outcome"])
                _check_told(
                    case, what, search, psi, i, told=told, h=h, g=g, detail=f" ({detail}{when})"
                )
                # The search's memory makes the next search a warm one.
                cut(native, i, case.thetas(i, ("random",))["random"] * 3, truth)
    return 1


def _losses(loss: Any, i: int, truth: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.array([calls.loss_value(loss, i, truth, label) for label in labels])


def _check_told(
    case: Case,
    what: str,
    search: Search,
    psi: Any,
    i: int,
    *,
    told: dict[str, Any],
    h: np.ndarray,
    g: np.ndarray,
    detail: str,
) -> None:
    """Check the outcome of one search against the points (h, g) of all labels."""
    best, seen = told["outcome"], told["points"]
    values = np.array([psi(*point) for point in zip(h, g)])
    top = float(values.max())
    scale = max(float(np.abs(values).max()), 1.0, float(np.abs(h).max()))
    close = ROUNDING * scale + LEFT * abs(top)

    def fail(promise: str, result: Any, expected: Any) -> None:
        case.fail(what, promise + detail, i, result, expected)

    if told["calls"] > search.max_calls:
        fail("makes at most max_calls oracle calls", told["calls"], search.max_calls)
    label = seen[best["label"]]["label"]
    if label is None:
        fail("returns a label", "a mixture", "a label")
    reached = float(values[case.listed(what, i, label, "best" + detail)])
    if not abs(best["label_value"] - reached) <= close:
        fail("returns the value of its label", best["label_value"], reached)
    if not best["label_bound"] >= top - close:
        fail("gives a bound that no label exceeds", best["label_bound"], f"at least {top!r}")
    if search.counting and not best["label_value"] >= top - close:
        fail("counts, so it finds the best label", best["label_value"], top)
    if not search.fractional:
        return
    a, b, share = seen[best["first"]], seen[best["second"]], best["share"]
    mixed = float(psi(*((1 - share) * a[axis] + share * b[axis] for axis in "hg")))
    if not (0 <= share <= 1 and abs(best["value"] - mixed) <= close):
        fail("returns the value of its mixture", best["value"], f"{mixed!r}, share from 0 to 1")
    hull = _over_pairs(psi, h, g)
    if not best["bound"] >= hull - close:
        fail("gives a bound that no mixture exceeds", best["bound"], f"at least {hull!r}")
    if told["calls"] < search.max_calls and not best["value"] >= hull - close:
        fail("is fractional, so it finds the best mixture", best["value"], f"at least {hull!r}")


def _over_pairs(psi: Any, h: np.ndarray, g: np.ndarray) -> float:
    """Return the largest psi of mixtures of two labels, on a grid of shares."""
    tops = [(float(h[g == value].max()), float(value)) for value in np.unique(g)]
    return max(
        psi((1 - t) * a[0] + t * b[0], (1 - t) * a[1] + t * b[1])
        for k, a in enumerate(tops)
        for b in tops[k:]
        for t in SHARES
    )
