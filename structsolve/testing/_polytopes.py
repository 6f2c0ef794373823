"""Checks of a structure's polytope, by linear and integer programs of HiGHS."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..lp import Highs, LinearDecoder
from ..lp.ask import declared_polytopes
from ._case import Case
from ._relaxed import LOOSE

# Number of labels of an example to find in its polytope; each is an integer program.
MOST_LABELS = 5
# Kinds of scores: negative ones reveal missing equality rows.
KINDS = ("random", "tied", "negative")
# Scores with ties: linear programs may end at one best label, integer programs at another.
TIES = ("tied",)


def check_polytope(case: Case) -> None:
    """The polytope contains every label and no other integral point; if exact, no other vertex."""
    what = "structsolve_polytope"
    with case.promise(what, "answers for its own space"):
        polytopes = declared_polytopes(case.space, case.part_layout)
    if polytopes is None:
        return
    if not isinstance(polytopes.note, str) or not polytopes.note:
        case.fail(what, "has a note on why it is exact, or not", None, polytopes.note, "a line")
    linear = LinearDecoder(polytopes, Highs())
    whole = LinearDecoder(polytopes, Highs(integer=True))
    by_key: dict[Any, Any] = {}
    sought: dict[Any, set[bytes]] = {}  # per key: labels and their parts
    for i in range(case.n):
        with case.promise(f"{what}: build", "makes a polytope", i):
            polytope = polytopes.build(i)
        key = polytopes.key(i)
        same = by_key.setdefault(key, polytope)
        if not _alike(same, polytope):
            case.fail(f"{what}: key", "is shared only by equal polytopes", i, "another", "the same")
        _check_labels(case, what, i, polytope, sought.setdefault(key, set()))
        for kind, theta in case.thetas(i, KINDS).items():
            scores = case.mu[i] @ theta
            best = scores.max()
            relaxed = linear.relax(i, theta)
            if relaxed is None:
                case.fail(what, "holds a point", i, "an empty polytope", "one")
            scale = LOOSE * (1 + abs(best))
            if relaxed.value < best - scale or relaxed.bound < best - scale:
                promise = f"contains every label ({kind} theta)"
                case.fail(what, promise, i, relaxed.value, f"at least {best!r}")
            if polytopes.exact and (relaxed.value > best + scale or relaxed.label is None):
                point = relaxed.value if relaxed.label is not None else relaxed.mu
                case.fail(
                    what, f"is exact: its vertices are labels ({kind} theta)", i, point, f"{best!r}"
                )
            # No integral point is better than an integral vertex that is optimal.
            told = None if relaxed.label is None or kind in TIES else (relaxed.label,)
            decoded = whole.decode(i, theta) if told is None else told
            if decoded is None:
                case.fail(what, "contains an integral point", i, "none", "the labels")
            row = case.find(i, decoded[0])
            if row is None or scores[row] < best - scale:
                case.fail(
                    what,
                    f"has no integral points except labels, which decode() returns ({kind} theta)",
                    i,
                    decoded[0],
                    case.labels[i][int(scores.argmax())],
                )


def _alike(a: Any, b: Any) -> bool:
    if a is b:
        return True
    return (
        a.A.shape == b.A.shape
        and (a.A != b.A).nnz == 0
        and all(
            np.array_equal(getattr(a, name), getattr(b, name))
            for name in ("low", "high", "lower", "upper", "parts")
        )
    )


def _check_labels(case: Case, what: str, i: int, polytope: Any, sought: set[bytes]) -> None:
    """Every label is an integral point whose parts and ``decode`` are the label's.

    Labels already found in an equal polytope, with the same parts, are skipped.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp  # heavy

    size = case.mu[i].shape[1]
    parts = np.array([polytope.marginals(e, size) for e in np.eye(polytope.size)]).T
    for row in case.rng.permutation(len(case.labels[i]))[:MOST_LABELS]:
        label, mu = case.labels[i][row], case.mu[i][row]
        seen = label.tobytes() + mu.tobytes()
        if seen in sought:
            continue
        sought.add(seen)
        answer = milp(
            np.zeros(polytope.size),
            constraints=[
                LinearConstraint(polytope.A, polytope.low, polytope.high),
                LinearConstraint(parts, mu - LOOSE, mu + LOOSE),
            ],
            bounds=Bounds(polytope.lower, polytope.upper),
            integrality=polytope.integer.astype(int),
        )
        if answer.x is None:
            case.fail(what, "contains every label", i, f"no point with the parts of {label}", "one")
        point = np.where(polytope.integer, np.round(answer.x), answer.x)
        decoded = np.asarray(polytope.decode(point))
        if not np.array_equal(decoded, label):
            case.fail(f"{what}: decode", "gives the label of an integral point", i, decoded, label)
