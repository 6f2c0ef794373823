"""``check_surrogate``: cuts against each other, against slopes, and against the loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import registry
from ..surrogates.calls import cut
from ..surrogates.task import Task
from ..utils.params import check_count
from ._case import Case

# Number of scores per example; tolerance of difference quotients.
SCORES, QUOTIENT = 6, 1e-4


def check_surrogate(
    surrogate: Any,
    structure: Any = "chain",
    loss: Any = "hamming",
    n_cases: int = 2,
    size: int = 3,
    random_state: int = 0,
) -> None:
    """Check a surrogate: the properties of its cuts and bounds that solvers rely on.

    Parameters
    ----------
    surrogate : str or surrogate object
    structure : str or Structure, default="chain"
    loss : str or loss object, default="hamming"
    n_cases, size, random_state : int
        As for :func:`check_structure`.

    Raises
    ------
    BrokenPromise
        An AssertionError that says what was found and expected; ``.theta`` are the scores.
    ValueError
        For ``n_cases`` below 1.
    TypeError
        If ``surrogate`` is neither a name nor a surrogate.

    Notes
    -----
    Checked are: positions and number of a cut's entries, the bound against the cut's own value,
    ``H >= 0``, that the cut is tight and no cut lies above another one's bound if the surrogate
    declares itself convex or affine, that it is the slope of the bound, equal keys only for equal
    cuts, the same answer twice, that cuts use the truth of the call, and that compiled code writes
    only into its own memory.

    Examples
    --------
    >>> from structsolve.testing import check_surrogate
    >>> check_surrogate("slack", n_cases=1)
    """
    check_count("n_cases", n_cases)
    structure = registry.get_structure(structure)
    surrogate = registry.default().object_of("surrogates", surrogate)
    name = getattr(surrogate, "name", type(surrogate).__name__)
    for number in range(n_cases):
        case = Case(structure, number, random_state + number, size)
        case.kit = f"check_surrogate({name!r}, structure, "
        case.more = f", loss={loss!r}"
        case.enumerate()
        what = f"Surrogate {name!r}"
        with case.promise(f"{what}: bind", "makes a native surrogate of a task"):
            native = surrogate.bind(Task(case.space, case.examples, loss))
        for i in range(case.n):
            _check_example(case, what, native, i)


def _check_example(case: Case, what: str, native: Any, i: int) -> None:
    other = case.labels[i][case.rng.integers(len(case.labels[i]))]
    for truth, whose in ((case.examples.label(i), "its label"), (other, "another label")):
        try:
            cuts = _cuts(case, what, native, i, truth, whose)
        except ValueError:
            if whose == "its label":
                raise
            return  # it takes only some labels for true
        keys: dict[int, np.ndarray] = {}
        for theta, p, answer in cuts:
            case.latest = i, theta
            same = keys.setdefault(answer.key, np.append(p, answer.b))
            if native.affine and not np.allclose(same, np.append(p, answer.b)):
                promise = "gives different cuts different keys"
                case.fail(what, promise, i, f"key {answer.key} of {p}", f"another than {same}")
            for scores, _, there in cuts:
                value = answer.b - p @ scores
                if (native.affine or native.convex) and value > there.bound + _slack(there.bound):
                    promise = f"is convex: no cut lies above the bound elsewhere (truth: {whose})"
                    case.fail(what, promise, i, value, f"at most {there.bound!r}")
        if native.exact and native.convex:
            for theta, p, answer in cuts[:3]:
                _check_slope(case, what, native, i, truth, theta=theta, p=p, bound=answer.bound)
    _check_truth(case, what, native, i, cuts, other)


def _check_truth(
    case: Case, what: str, native: Any, i: int, cuts: list[Any], other: np.ndarray
) -> None:
    """Cuts use the given truth: for another truth, some cuts differ."""
    truth = case.examples.label(i)
    mu, own = (case.dense(i, *case.encode(i, label)) for label in (other, truth))
    if np.array_equal(mu, own):
        return
    for theta, p, answer in cuts:
        own_cut = cut(native, i, theta, truth)
        own_p = case.dense(i, own_cut.index, own_cut.value)
        if not np.array_equal(p, own_p) or answer.b != own_cut.b:
            return
    promise = "uses the truth of the call, not that of the data"
    case.fail(what, promise, i, f"the cuts of {truth} for {other}", "others for another truth")


def _cuts(
    case: Case, what: str, native: Any, i: int, truth: np.ndarray, whose: str
) -> list[tuple[np.ndarray, np.ndarray, Any]]:
    """Return scores, the cut's p and the cut; each is checked on its own."""
    cuts = []
    name, promise = f"{what}.cut", f"answers without an exception (truth: {whose})"
    for number in range(SCORES):
        theta = case.thetas(i, ("random",))["random"] * (3.0 if number % 2 else 0.5)
        answer = case.call(name, i, cut, native, theta, truth, promise=promise)
        if len(answer.index) and not 0 <= answer.index.min() <= answer.index.max() < len(theta):
            case.fail(what, "gives positions in theta", i, answer.index, f"0 .. {len(theta) - 1}")
        p = case.dense(i, answer.index, answer.value)
        if np.any(p[case.padding[i]] != 0):
            case.fail(what, "never touches padding", i, p[case.padding[i]], 0)
        value = answer.b - p @ theta
        numbers = (answer.b, answer.bound, value)
        if not np.isfinite(numbers).all():
            case.fail(what, "gives finite numbers", i, answer, "b, bound and p that are finite")
        slack = _slack(answer.bound)
        if answer.bound < value - slack:
            broken = "gives a bound of at least its cut's value b - <theta, p>"
            case.fail(what, broken, i, answer.bound, f"at least {value!r}")
        if native.exact and abs(answer.bound - value) > slack:
            broken = "is exact, so its bound is its cut's value b - <theta, p>"
            case.fail(what, broken, i, answer.bound, value)
        if answer.bound < -slack:
            broken = f"is at least 0: the truth itself violates nothing (truth: {whose})"
            case.fail(what, broken, i, answer.bound, ">= 0")
        if answer.calls < 1:
            case.fail(what, "counts its oracle calls", i, answer.calls, "at least 1")
        again = case.call(name, i, cut, native, theta, truth, garbage=0x55, promise=promise)
        if abs(again.bound - answer.bound) > slack:
            case.fail(what, "gives the same bound twice", i, again.bound, answer.bound)
        cuts.append((theta, p, answer))
    return cuts


def _check_slope(
    case: Case,
    what: str,
    native: Any,
    i: int,
    truth: np.ndarray,
    *,
    theta: np.ndarray,
    p: np.ndarray,
    bound: float,
) -> None:
    """``-p`` is a subgradient: the quotients on both sides enclose ``-<p, direction>``."""
    step = 1e-6
    direction = case.rng.normal(size=len(theta))
    direction[case.padding[i]] = 0
    ahead, behind = (cut(native, i, theta + s * step * direction, truth).bound for s in (1, -1))
    right, left, slope = (ahead - bound) / step, (bound - behind) / step, -float(p @ direction)
    off = QUOTIENT * (1 + abs(slope))
    if not left - off <= slope <= right + off:
        promise = "gives -p as the slope of its bound"
        case.fail(what, promise, i, slope, f"between {left!r} and {right!r}")


def _slack(value: float) -> float:
    return 1e-7 * (1 + abs(value))
