"""Labels, marginals, bounds and duals of any structure with a polytope, by any backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .base import Answer, Backend, Program, ProgramCache, cone_rows
from .highs import Highs
from .polytope import Polytope, Polytopes, block_diagonal, bound_of

# How far from an integer an answer may be and still count as one; interior-point solvers are off by
# more than simplex.
INTEGRAL = 1e-6

# How far outside the rows and bounds an answer may be, in units of its largest number: first-order
# solvers stop at 1e-4.
INFEASIBLE = 1e-2


class Relaxed(NamedTuple):
    """The maximiser of a linear program over a polytope of labels.

    Parameters
    ----------
    mu : ndarray
        Marginals of the parts, flat, in the layout of theta.
    label : ndarray of int32, or None
        The label whose parts mu are, if there is one.
    value : float
        ``<theta, mu>``.
    bound : float
        An upper bound of every label's score, by the row duals; the value where there are none.
    dual : ndarray of shape (m,), or None
        Of the polytope's rows.
    """

    mu: np.ndarray
    label: np.ndarray | None
    value: float
    bound: float
    dual: np.ndarray | None


class LinearDecoder:
    """Decodes the examples of one packed set by linear programs.

    Parameters
    ----------
    polytopes : Polytopes
    backend : Backend
    warm : bool, default=False
        Start each example's program where its last one ended.  Of several optima it may then
        return another one; the number of threads never decides which.

    Examples
    --------
    >>> import numpy as np, structsolve
    >>> from structsolve.lp import Highs, LinearDecoder, ask_polytopes
    >>> space, _ = structsolve.get_structure("multiclass").make_space([[0.0]] * 3, ["a", "b", "c"])
    >>> decoder = LinearDecoder(ask_polytopes(space, space.pack([[1.0]])), Highs())
    >>> best = decoder.relax(0, np.array([5.0, 7.0, 6.0, 0.0]))
    >>> best.label.tolist(), best.value, best.bound
    ([1], 7.0, 7.0)
    """

    def __init__(self, polytopes: Polytopes, backend: Backend, warm: bool = False):
        self.polytopes, self.backend, self.warm = polytopes, backend, warm
        self._vertices = Highs(integer=not polytopes.exact)
        self._starts: dict[int, Any] = {}
        self._programs, self._products = ProgramCache(), ProgramCache()

    # -- one example ----------------------------------------------------------------------------

    def relax(self, i: int, theta: np.ndarray) -> Relaxed | None:
        """Maximise over the polytope of an example.

        Parameters
        ----------
        i : int
        theta : ndarray of shape (theta_size,)
            Scores; -inf forbids a part.

        Returns
        -------
        Relaxed or None
            None where everything is forbidden.

        Raises
        ------
        ValueError
            When scores are NaN or infinite, or the backend's answer is no point of the polytope.
        """
        polytope, program = self._kept(i, self.backend)
        c, upper = _costs_and_bounds(polytope, theta, i)
        answer = program.solve(c, upper, self._starts.get(i) if self.warm else None)
        if answer is None:
            return None
        if self.warm:
            self._starts[i] = answer.start
        return self._relaxed(polytope, answer, c, upper, len(theta))

    def decode(self, i: int, theta: np.ndarray) -> tuple[np.ndarray, float, float] | None:
        """Return a best label of an example.

        Where the program's answer is fractional, an integer program of HiGHS gives the label.

        Parameters
        ----------
        i : int
        theta : ndarray
            As of :meth:`relax`.

        Returns
        -------
        (label, value, bound) or None
            An ndarray of int32, its score, and an upper bound of every label's score; None where
            everything is forbidden.
        """
        relaxed = self.relax(i, theta)
        return None if relaxed is None else self._as_label(i, theta, relaxed)

    def constrained(self, i: int, theta: np.ndarray, cost: np.ndarray, cone: Any) -> Relaxed | None:
        """Maximise ``h + lam g`` over the part of the polytope within a cone's closed sides.

        Parameters
        ----------
        i : int
        theta, cost : ndarray of shape (theta_size,)
            Scores of h and of g.
        cone : ConePair

        Returns
        -------
        Relaxed or None
            None where the cone holds no point of the polytope.
        """
        polytope, program = self._kept(i, self.backend)
        c, upper = _costs_and_bounds(polytope, theta, i)
        d, _ = _costs_and_bounds(polytope, cost, i)
        sides = cone_rows(c, cone.h0, d, cone.g0, cone)
        answer = program.solve(c + cone.lam * d, upper, None, sides)
        if answer is None:
            return None
        return self._relaxed(polytope, answer, c + cone.lam * d, upper, len(theta))

    # -- many examples --------------------------------------------------------------------------

    def copies(self, i: int) -> int:
        """Return how many programs like this example's are worth solving at once.

        Parameters
        ----------
        i : int

        Returns
        -------
        int
            At least 1.
        """
        rows = self._kept(i, self.backend)[0].A.shape[0]
        return max(self.backend.batch // max(rows, 1), 1)

    def decode_alike(
        self, indices: Sequence[int], thetas: Sequence[np.ndarray], copies: int
    ) -> list[tuple[np.ndarray, float, float] | None]:
        """Decode examples that share a polytope, side by side in one program.

        Parameters
        ----------
        indices : sequence of int
            Examples of one :meth:`Polytopes.key`, at most ``copies``.
        thetas : sequence of ndarray
            Their scores.
        copies : int
            Blocks of the program.

        Returns
        -------
        list of (label, value, bound) or None
            As of :meth:`decode`.
        """
        polytope = self._kept(indices[0], self.backend)[0]

        def make() -> tuple[Polytope, Program]:
            product = block_diagonal([polytope] * copies)
            return product, self.backend.program(product)

        product, program = self._products.get((self.polytopes.key(indices[0]), copies), make)
        c, upper = np.zeros(product.size), product.upper.copy()
        single = [_costs_and_bounds(polytope, theta, i) for i, theta in zip(indices, thetas)]
        for j, (costs, top) in enumerate(single):
            block = slice(j * polytope.size, (j + 1) * polytope.size)
            c[block] = costs
            if top is not None:
                upper[block] = top
        barred = any(top is not None for _, top in single)
        answer = program.solve(c, upper if barred else None)
        if answer is None:  # one of them has no label; alone, the others are decoded
            return [self.decode(i, theta) for i, theta in zip(indices, thetas)]
        decoded: list[tuple[np.ndarray, float, float] | None] = []
        m = polytope.A.shape[0]
        for j, (i, theta) in enumerate(zip(indices, thetas)):
            x = answer.x[j * polytope.size : (j + 1) * polytope.size]
            dual = None if answer.dual is None else answer.dual[j * m : (j + 1) * m]
            relaxed = self._relaxed(polytope, Answer(x, dual), *single[j], len(theta))
            decoded.append(self._as_label(i, theta, relaxed))
        return decoded

    # -- shared ---------------------------------------------------------------------------------

    def _kept(self, i: int, backend: Backend) -> tuple[Polytope, Program]:
        def make() -> tuple[Polytope, Program]:
            polytope = self.polytopes.build(i)
            return polytope, backend.program(polytope)

        return self._programs.get((self.polytopes.key(i), backend.name), make)

    def _check(self, polytope: Polytope, answer: Answer) -> None:
        """Refuse an answer of a backend that is no point of the polytope, roughly."""
        x, name = answer.x, self.backend.name
        if np.shape(x) != (polytope.size,):
            raise ValueError(
                f"LP backend {name!r} answered with an array of shape {np.shape(x)}, expected "
                f"{polytope.size} numbers"
            )
        if not np.isfinite(x).all():
            raise ValueError(f"LP backend {name!r} answered with entries that are not finite")
        if answer.dual is not None and not np.isfinite(answer.dual).all():
            raise ValueError(f"LP backend {name!r} answered with duals that are not finite")
        rows = polytope.A @ x
        off = max(
            float(np.max(polytope.low - rows, initial=0)),
            float(np.max(rows - polytope.high, initial=0)),
            float(np.max(polytope.lower - x, initial=0)),
            float(np.max(x - polytope.upper, initial=0)),
        )
        if off > INFEASIBLE * max(1.0, float(np.abs(x).max(initial=0))):
            raise ValueError(
                f"LP backend {name!r} answered with a point that is {off:.2g} away from the rows "
                "or bounds of the polytope; use another solver, or check the plugin"
            )

    def _relaxed(
        self, polytope: Polytope, answer: Answer, c: np.ndarray, upper: Any, size: int
    ) -> Relaxed:
        # ``c`` and ``upper`` as _costs_and_bounds() gives them, ``size`` of theta.
        top = polytope.upper if upper is None else upper
        self._check(polytope, answer)
        x = np.clip(answer.x, polytope.lower, top)
        whole = np.round(x)
        label = None
        if (np.abs(x - whole)[polytope.integer] < INTEGRAL).all():
            x = np.where(polytope.integer, whole, x)
            label = _label(polytope, x)
        value = float(c @ x)
        bound = value
        if answer.dual is not None:
            bound = max(value, bound_of(polytope, c, answer.dual, upper))
        return Relaxed(polytope.marginals(x, size), label, value, bound, answer.dual)

    def _as_label(
        self, i: int, theta: np.ndarray, relaxed: Relaxed
    ) -> tuple[np.ndarray, float, float] | None:
        """Return (label, value, bound) of an answer; a fractional one is solved again by HiGHS."""
        if relaxed.label is not None:
            return relaxed.label, relaxed.value, relaxed.bound
        polytope, program = self._kept(i, self._vertices)
        c, upper = _costs_and_bounds(polytope, theta, i)
        answer = program.solve(c, upper)
        if answer is None:
            return None
        vertex = self._relaxed(polytope, answer, c, upper, len(theta))
        if vertex.label is None:
            raise ValueError(
                f"example {i}: the polytope is said to be exact "
                f"({self.polytopes.note!r}), but a vertex of it is no label; set exact = False"
            )
        return vertex.label, vertex.value, max(min(relaxed.bound, vertex.bound), vertex.value)


def _label(polytope: Polytope, x: np.ndarray) -> np.ndarray:
    try:
        return np.ascontiguousarray(polytope.decode(x), dtype=np.int32)
    except Exception as error:
        raise ValueError(
            f"decode() of a polytope made no label of integers: {type(error).__name__}: {error}"
        ) from error


def _costs_and_bounds(polytope: Polytope, theta: np.ndarray, i: int) -> tuple[np.ndarray, Any]:
    """Return the objective, and upper bounds where -inf forbids parts (else None)."""
    c = polytope.scores(theta)
    if np.isfinite(c).all():
        return c, None
    barred = np.isneginf(c)
    if not np.isfinite(c[~barred]).all() or (polytope.lower[barred] != 0).any():
        raise ValueError(
            f"example {i}: found scores that are NaN or infinite; expected numbers, or -inf to "
            "forbid a part that may be 0"
        )
    return np.where(barred, 0.0, c), np.where(barred, 0.0, polytope.upper)
