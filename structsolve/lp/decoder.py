"""Labels, marginals, bounds and duals of any structure with a polytope, by any backend."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..utils.suggest import a_type
from .answers import NEAR, checked_point, costs_and_bounds, label_of, numeric, outside
from .base import Answer, Backend, GaveUp, Program, ProgramCache, cone_rows, make_program
from .highs import Highs
from .polytope import Polytope, Polytopes, block_diagonal, bound_of, built

logger = logging.getLogger("structsolve.lp")

# Distance from an integer at which an entry still counts as one; interior-point solvers deviate by
# more than simplex.
INTEGRAL = 1e-6


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
        An upper bound of every label's score, by the row duals; the value if there are none.
    dual : ndarray of shape (m,), or None
        Dual variables of the polytope's rows.
    """

    mu: np.ndarray
    label: np.ndarray | None
    value: float
    bound: float
    dual: np.ndarray | None


# Exceptions of a backend in Python that has a bug.
_BUGS = (LookupError, TypeError, AttributeError, ArithmeticError)


class LinearDecoder:
    """Decodes the examples of one packed set by linear programs.

    Parameters
    ----------
    polytopes : Polytopes
    backend : Backend
    warm : bool, default=False
        Start each example's program from the end of its last one.  Of several optima it may then
        return another one; the number of threads never affects the choice.
    n_states : int, default=0
        Integers of a label are from 0 to n_states - 1; 0: unknown.

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

    def __init__(
        self, polytopes: Polytopes, backend: Backend, warm: bool = False, n_states: int = 0
    ):
        self.polytopes, self.backend, self.warm = polytopes, backend, warm and backend.warm
        self.n_states = n_states
        # HiGHS solves again if the backend's answer is no label, or no certificate.
        self._exact, self._integer = Highs(), Highs(integer=True)
        # On the face of an exact polytope every vertex is a label.
        self._labels = self._exact if polytopes.exact else backend.integral() or self._integer
        self._starts: dict[int, Any] = {}
        # A backend that has answered before gives up on one program, not on all.
        self._answered, self._told = False, False
        self._programs, self._products, self._some = ProgramCache(), ProgramCache(), ProgramCache()

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
            None if everything is forbidden.

        Raises
        ------
        ValueError
            If scores are NaN or infinite, or the backend's answer is no point of the polytope.
        """
        polytope = self._kept(i, self.backend)[0]
        c, upper = costs_and_bounds(polytope, theta, i)
        answer = self._ask(i, self.backend, c, upper, self._starts.get(i) if self.warm else None)
        if answer is None:
            return None
        if self.warm:
            self._starts[i] = answer.start
        return self._trusted(i, answer, c, upper, len(theta))

    def decode(self, i: int, theta: np.ndarray) -> tuple[np.ndarray, float, float] | None:
        """Return a best label of an example.

        If the program's answer is fractional, an integer program gives the label, by the same
        solver if it has them, else by HiGHS.

        Parameters
        ----------
        i : int
        theta : ndarray
            See :meth:`relax`.

        Returns
        -------
        (label, value, bound) or None
            An ndarray of int32, its score, and an upper bound of every label's score; None if
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
            None if the cone holds no point of the polytope.
        """
        polytope = self._kept(i, self.backend)[0]
        c, upper = costs_and_bounds(polytope, theta, i)
        d, _ = costs_and_bounds(polytope, cost, i)
        sides = cone_rows(c, cone.h0, d, cone.g0, cone)
        # In a cone there is only the maximum, without a bound.
        backend = self.backend if self.backend.accurate else self._exact
        costs = c + cone.lam * d
        answer = self._ask(i, backend, costs, upper, None, sides)
        if answer is not None and answer.limited:
            backend = self._exact
            answer = self._ask(i, backend, costs, upper, None, sides)
        if answer is None:
            return None
        return self._relaxed(i, backend, answer, costs, upper, len(theta))

    # -- many examples --------------------------------------------------------------------------

    def copies(self, i: int) -> int:
        """Return the number of programs like this example's to solve at once.

        Parameters
        ----------
        i : int

        Returns
        -------
        int
            At least 1.
        """
        if self.backend.batch < 1:
            return 1
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
            See :meth:`decode`.
        """
        polytope = self._kept(indices[0], self.backend)[0]

        def make() -> tuple[Polytope, Program]:
            product = block_diagonal([polytope] * copies)
            return product, make_program(self.backend, product)

        product, program = self._products.get((self.polytopes.key(indices[0]), copies), make)
        c, upper = np.zeros(product.size), product.upper.copy()
        single = [costs_and_bounds(polytope, theta, i) for i, theta in zip(indices, thetas)]
        for j, (costs, top) in enumerate(single):
            block = slice(j * polytope.size, (j + 1) * polytope.size)
            c[block] = costs
            if top is not None:
                upper[block] = top
        barred = any(top is not None for _, top in single)
        try:
            answer = program.solve(c, upper if barred else None)
            if isinstance(answer, Answer):
                answer = numeric(indices[0], self.backend, answer)
        except Exception:  # alone, an example may succeed, or the error names it
            answer = None
        if (
            not isinstance(answer, Answer)
            or answer.limited
            or answer.x is None
            or np.shape(answer.x) != (product.size,)
        ):
            return [self.decode(i, theta) for i, theta in zip(indices, thetas)]
        decoded: list[tuple[np.ndarray, float, float] | None] = []
        m = polytope.A.shape[0]
        for j, (i, theta) in enumerate(zip(indices, thetas)):
            x = answer.x[j * polytope.size : (j + 1) * polytope.size]
            dual = None if answer.dual is None else answer.dual[j * m : (j + 1) * m]
            relaxed = self._trusted(i, Answer(x, dual), *single[j], len(theta))
            decoded.append(None if relaxed is None else self._as_label(i, theta, relaxed))
        return decoded

    # -- shared ---------------------------------------------------------------------------------

    def _kept(self, i: int, backend: Backend) -> tuple[Polytope, Program, np.ndarray]:
        def make() -> tuple[Polytope, Program, np.ndarray]:
            polytope, units = built(self.polytopes, i)
            try:
                return polytope, make_program(backend, polytope), units
            except ValueError as error:
                raise ValueError(f"example {i}: {error}") from error

        return self._programs.get((self.polytopes.key(i), id(backend)), make)

    def _ask(
        self,
        i: int,
        backend: Backend,
        c: np.ndarray,
        upper: Any,
        start: Any = None,
        sides: Any = None,
    ) -> Answer | None:
        """Solve the program of an example by a backend; errors begin with the example."""
        program = self._kept(i, backend)[1]
        try:
            answer = program.solve(c, upper, start, sides)
        except (NotImplementedError, MemoryError):
            raise
        except Exception as error:  # solvers raise their own types
            gave_up, told = isinstance(error, GaveUp), str(error)
            if not isinstance(error, ValueError):
                name = type(error).__name__
                told = f"solve() of LP backend {backend.name!r} raised {name}: {error}"
            again = (gave_up or self._answered) and not isinstance(error, _BUGS)
            if isinstance(backend, Highs) or not again:
                kind = GaveUp if gave_up else ValueError
                raise kind(f"example {i}: {told}") from error
            if not self._told:
                self._told = True
                logger.warning("example %d: %s: HiGHS solves such programs in its place", i, told)
            sure = self._integer if backend.integer else self._exact
            return self._ask(i, sure, c, upper, None, sides)
        self._answered = True
        if answer is not None and not isinstance(answer, Answer):
            raise ValueError(
                f"example {i}: LP backend {backend.name!r} answered with "
                f"{a_type(answer)}, expected an Answer or None"
            )
        return None if answer is None else numeric(i, backend, answer)

    def _trusted(
        self, i: int, answer: Answer, c: np.ndarray, upper: Any, size: int
    ) -> Relaxed | None:
        """Return a point of the polytope with a valid bound, for any answer of the backend."""
        polytope = self._kept(i, self.backend)[0]
        if answer.limited and not self.backend.ends_early:
            # No limit was set.
            sure = self._integer if self.backend.integer else self._exact
            again = self._ask(i, sure, c, upper)
            return None if again is None else self._relaxed(i, sure, again, c, upper, size)
        if answer.x is None or (answer.limited and outside(polytope, answer.x, upper) > NEAR):
            return self._any_label(i, self.backend, answer, c, upper, size)
        relaxed = self._relaxed(i, self.backend, answer, c, upper, size)
        if relaxed.label is None and outside(polytope, answer.x, upper) > NEAR:
            # These would be marginals of no distribution, and a dual with them above the primal.
            again = self._ask(i, self._exact, c, upper)
            if again is None:
                return None
            finer = self._relaxed(i, self._exact, again, c, upper, size)
            return finer._replace(bound=max(min(relaxed.bound, finer.bound), finer.value))
        return relaxed

    def _any_label(
        self, i: int, backend: Backend, answer: Answer, c: np.ndarray, upper: Any, size: int
    ) -> Relaxed | None:
        """Return some label, with the bound proved by a limited program."""
        polytope = self._kept(i, backend)[0]

        def find() -> Answer | None:
            return self._ask(i, self._integer, np.zeros(polytope.size), upper)

        some = find() if upper is not None else self._some.get(self.polytopes.key(i), find)
        if some is None:
            return None
        return self._relaxed(i, backend, answer._replace(x=some.x), c, upper, size)

    def _bound(
        self, i: int, backend: Backend, answer: Answer, c: np.ndarray, upper: Any
    ) -> float | None:
        """Return the upper bound of all labels proved by an answer, or None."""
        polytope = self._kept(i, backend)[0]
        proved = [] if answer.bound is None else [answer.bound]
        if answer.dual is not None:
            proved.append(bound_of(polytope, c, answer.dual, upper))
        if proved or (backend.accurate and not answer.limited):
            return min(proved, default=None)
        if backend.integer:
            # Use the relaxation's bound, which takes a small part of the time.
            relaxed = self._ask(i, self._exact, c, upper)
            if relaxed is not None and relaxed.dual is not None:
                return bound_of(polytope, c, relaxed.dual, upper)
        return bound_of(polytope, c, np.zeros(polytope.A.shape[0]), upper)

    def _relaxed(
        self, i: int, backend: Backend, answer: Answer, c: np.ndarray, upper: Any, size: int
    ) -> Relaxed:
        # The answer of `backend`; `c` and `upper` of costs_and_bounds(), `size` of theta.
        polytope, _, units = self._kept(i, backend)
        top = polytope.upper if upper is None else upper
        x = np.clip(checked_point(i, backend, polytope, answer), polytope.lower, top)
        whole = np.round(x)
        label = None
        if (np.abs(x - whole)[polytope.integer] < INTEGRAL).all():
            rounded = np.where(polytope.integer, whole, x)
            # A rough answer, or one where a row's coefficients differ by more than a solver's
            # tolerance, may lie near a point that breaks a row by little.
            sure = backend.accurate and backend.integer
            if sure or outside(polytope, rounded, upper) <= NEAR:
                x, label = rounded, label_of(i, polytope, rounded, self.n_states)
        value = float(c @ x)
        proved = self._bound(i, backend, answer, c, upper)
        bound = value if proved is None else max(value, proved)
        dual = None if answer.dual is None else answer.dual / units
        return Relaxed(polytope.marginals(x, size), label, value, bound, dual)

    def _as_label(
        self, i: int, theta: np.ndarray, relaxed: Relaxed
    ) -> tuple[np.ndarray, float, float] | None:
        """Return (label, value, bound) of an answer; a fractional one is solved again."""
        if relaxed.label is not None:
            return relaxed.label, relaxed.value, relaxed.bound
        backend, size = self._labels, len(theta)
        c, upper = costs_and_bounds(self._kept(i, backend)[0], theta, i)
        answer = self._ask(i, backend, c, upper)
        if answer is not None and answer.limited and not backend.ends_early:
            backend = self._integer
            answer = self._ask(i, backend, c, upper)
        if answer is None:
            return None
        if answer.x is None:
            vertex = self._any_label(i, backend, answer, c, upper, size)
        else:
            vertex = self._relaxed(i, backend, answer, c, upper, size)
        if vertex is None:
            return None
        if vertex.label is None:
            raise ValueError(
                f"example {i}: the polytope is said to be exact "
                f"({self.polytopes.note!r}), but a vertex of it is no label; set exact = False"
            )
        return vertex.label, vertex.value, max(min(relaxed.bound, vertex.bound), vertex.value)
