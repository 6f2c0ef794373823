"""``check_backend``: a solver of linear programs against SciPy's, on small programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from .. import registry
from ..lp import ask_polytopes, make_backend
from ..lp.base import make_program
from ..lp.polytope import bound_of
from ._promise import BrokenPromise, short

# Tolerances for accurate and for other backends, in units of the largest cost.
ACCURATE, ROUGH = 1e-6, 2e-2
# Lower bound of the scale of costs.
SMALL = 1e-3
# Objectives per polytope; structures whose polytopes have one vertex per label.
OBJECTIVES, STRUCTURES = 4, ("chain", "tree")


class Checked:
    """One polytope, the backend's program over it, and SciPy's answers.

    Parameters
    ----------
    backend : Backend
    polytope : Polytope
    where : str
        For messages.
    seed : int
    """

    def __init__(self, backend: Any, polytope: Any, where: str, seed: int):
        self.backend, self.polytope, self.where, self.seed = backend, polytope, where, seed
        self.off = ACCURATE if backend.accurate else ROUGH
        try:
            self.program = make_program(backend, polytope)
        except Exception as error:
            self.fail("program", "builds a program", error, "no exception", None, error)

    def fail(
        self, what: str, promise: str, actual: Any, expected: Any, c: Any = None, cause: Any = None
    ) -> NoReturn:
        """Raise BrokenPromise."""
        raise BrokenPromise(
            f"LP backend {getattr(self.backend, 'name', self.backend)!r}: {what} breaks a promise: "
            f"it {promise} ({self.where}). Found {short(actual)}, expected {short(expected)}. To "
            f"see it again: check_backend(backend, random_state={self.seed})",
            self.backend,
            None,
            c,
            self,
        ) from cause

    def best(self, c: np.ndarray, upper: Any = None, sides: Any = (), sign: float = 1.0) -> Any:
        """Return SciPy's maximum, None if there is no feasible point."""
        from scipy.optimize import Bounds, LinearConstraint, milp  # heavy

        p = self.polytope
        rows = [LinearConstraint(p.A, p.low, p.high)]
        rows += [LinearConstraint(row[None], least, np.inf) for row, least in sides or ()]
        answer = milp(
            -sign * c,
            constraints=rows,
            bounds=Bounds(p.lower, p.upper if upper is None else upper),
            integrality=p.integer.astype(int) if self.backend.integer else None,
        )
        return None if answer.x is None else sign * -answer.fun

    def solve(self, c: np.ndarray, what: str = "solve", **options: Any) -> Any:
        """Solve, and check the answer against SciPy's."""
        given = {"c": c.copy(), **{k: np.copy(v) for k, v in options.items() if k == "upper"}}
        try:
            answer = self.program.solve(c, **options)
        except Exception as error:
            self.fail(what, "answers without an exception", error, "an Answer or None", c, error)
        if not np.array_equal(c, given["c"]) or not all(
            np.array_equal(options[k], given[k]) for k in given if k != "c"
        ):
            self.fail(what, "does not change costs and bounds", c, given["c"], c)
        best = self.best(c, options.get("upper"), options.get("sides"))
        if best is None or answer is None:
            if (best is None) != (answer is None):
                promise = "returns None if and only if no point satisfies all rows"
                self.fail(what, promise, answer, "None" if best is None else f"value {best!r}", c)
            return None
        self._check(what, c, answer, best, options)
        return answer

    def _check(self, what: str, c: np.ndarray, answer: Any, best: float, options: Any) -> None:
        p, x = self.polytope, np.asarray(getattr(answer, "x", None))
        if x.shape != (p.size,) or x.dtype.kind != "f" or not np.isfinite(x).all():
            promise = f"answers with {p.size} finite numbers x"
            self.fail(what, promise, answer, f"shape ({p.size},)", c)
        upper = p.upper if options.get("upper") is None else options["upper"]
        rows = p.A @ x
        for name, outside in (
            ("rows", np.maximum(p.low - rows, rows - p.high)),
            ("lower bounds", p.lower - x),
            ("upper bounds (those given with the call)", x - upper),
            ("sides", np.array([b - a @ x for a, b in options.get("sides") or ()])),
        ):
            if outside.max(initial=0) > 10 * self.off:
                promise = f"keeps the {name} of the polytope"
                self.fail(what, promise, f"{outside.max():.3g} outside", f"{10 * self.off:g}", c)
        if self.backend.integer and np.abs(x - np.round(x))[p.integer].max(initial=0) > 1e-5:
            self.fail(what, "is integer, so integer variables are integers", x, "integers", c)
        scale = max(float(np.abs(c).max()), SMALL) * max(1.0, float(np.abs(x).max(initial=0)))
        value = float(c @ x)
        if abs(value - best) > 10 * self.off * scale:
            least = self.best(c, options.get("upper"), options.get("sides"), sign=-1.0)
            minimises = least is not None and abs(value - least) <= 10 * self.off * scale
            hint = "; this is the minimum: negate the costs" if minimises else ""
            if not hint and abs(value - best) < ROUGH * scale and self.backend.accurate:
                hint = "; set accurate = False, or tighten the solver's tolerance"
            self.fail(what, "maximises c x", f"{value!r}{hint}", best, c)
        dual = getattr(answer, "dual", None)
        if dual is not None and not options.get("sides"):
            self._check_dual(what, c, np.asarray(dual), best, upper, scale)

    def _check_dual(
        self, what: str, c: np.ndarray, dual: np.ndarray, best: float, upper: Any, scale: float
    ) -> None:
        m = self.polytope.A.shape[0]
        if dual.shape != (m,) or not np.isfinite(dual).all():
            self.fail(what, f"gives {m} finite row duals, or None", dual, f"shape ({m},)", c)
        if self.backend.integer:
            return  # an integer program has none
        bound, turned = (bound_of(self.polytope, c, sign * dual, upper) for sign in (1, -1))
        off = 100 * self.off * scale * max(1, m)
        if not abs(bound - best) <= off:
            hint = "; -dual gives the right one: flip the sign" if abs(turned - best) <= off else ""
            promise = "gives the row duals of the maximum, whose bound is its value"
            self.fail(what, promise, f"bound {bound!r}{hint}", best, c)


def check_backend(backend: Any, random_state: int = 0) -> None:
    """Check a solver of linear programs against SciPy's, on programs of a few variables.

    Parameters
    ----------
    backend : str or structsolve.lp.Backend
    random_state : int, default=0

    Raises
    ------
    BrokenPromise
        An AssertionError with the found and expected values; ``.theta`` are the costs and
        ``.case.polytope`` is the polytope.

    Notes
    -----
    Checked are values (does it maximise?), rows, bounds and bounds that change, row duals and their
    sign, further rows, infeasible programs, integer variables, costs of any unit, starts, and that
    calls do not affect later ones.

    Examples
    --------
    >>> from structsolve.testing import check_backend
    >>> check_backend("lp")
    """
    backend = make_backend(backend)
    for name, kind in (("name", str), ("integer", bool), ("accurate", bool)):
        if not isinstance(getattr(backend, name), kind):
            raise BrokenPromise(
                f"LP backend {backend!r}: {name} breaks a promise: it is a {kind.__name__}. Found "
                f"{getattr(backend, name)!r}, expected a {kind.__name__}",
                backend,
            )
    rng = np.random.default_rng(random_state)
    for polytope, where in _polytopes(random_state):
        checked = Checked(backend, polytope, where, random_state)
        _check_program(checked, rng)


def _polytopes(seed: int) -> Iterator[tuple[Any, str]]:
    for name in STRUCTURES:
        structure = registry.get_structure(name)
        X, Y = structure.sample(seed, n=2, size=3)
        space, examples = structure.make_space(X, Y)
        yield ask_polytopes(space, examples).build(0), f"polytope of structure {name!r}, example 0"


def _check_program(checked: Checked, rng: np.random.Generator) -> None:
    polytope, start = checked.polytope, None
    size, first = polytope.size, rng.normal(size=polytope.size)
    for number in range(OBJECTIVES):
        c = first if number == 0 else rng.normal(size=size)
        answer = checked.solve(c)
        start = getattr(answer, "start", None)
        if start is not None:
            checked.solve(rng.normal(size=size), "solve from a start", start=start)
    checked.solve(np.zeros(size))
    for unit in (1e4, 1e-4):
        checked.solve(unit * first, f"solve with costs in units of {unit:g}")
    checked.solve(first, "solve again")
    x = np.round(checked.solve(first).x)
    # Without one part of the best answer another one is best; then everything is reset.
    used = np.flatnonzero((x > 0.5) & (polytope.lower == 0))
    for k in rng.permutation(used)[:3]:
        upper = polytope.upper.copy()
        upper[k] = 0
        checked.solve(first, "solve with other upper bounds", upper=upper)
    checked.solve(first, "solve after one with other upper bounds")
    row = rng.integers(-2, 3, size).astype(float)
    most, least = checked.best(row), checked.best(row, sign=-1.0)
    if row @ x > 0.5 * (most + least):  # the side cuts off the best answer
        row, most, least = -row, -least, -most
    other = (-row, -most)  # a cone has two sides
    checked.solve(first, "solve with sides", sides=[(row, 0.5 * (most + least)), other])
    checked.solve(first, "solve after one with sides")
    checked.solve(first, "solve with sides that leave no point", sides=[(row, most + 1.0), other])
    checked.solve(first, "solve after one that had no point")
    if (polytope.lower == 0).all():
        checked.solve(first, "solve with upper bounds of 0", upper=np.zeros(size))
        checked.solve(first, "solve after one without a point")
