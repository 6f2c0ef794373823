"""Generalised block-coordinate Frank-Wolfe, and SDCA: for duals with a concave term G."""

from __future__ import annotations

from typing import Any, ClassVar

from ..utils.params import parameters
from ._gbcfw import SegmentLoop
from .base import Solver
from .bcfw import SAMPLINGS
from .bcfw_run import BCFWRun
from .run import Start, pieces


@parameters
class GBCFW(Solver):
    """Block-coordinate Frank-Wolfe for surrogates of projections (crf, sparsemap, max-min).

    ``H_i = max_mu G(mu) + <theta_i, mu - mu(y_i)>`` has the dual
    ``mean_i G(mu_i) - alpha/2 ||w||^2`` with ``w = (1/alpha) mean_i Phi_i' (mu(y_i) - mu_i)``.  A
    visit moves mu_i towards the projection of the example's scores (Nowak-Vila et al.
    2020).  Gaps use the projection's bound, so they are valid for inexact projections too.

    Parameters
    ----------
    step : {"search", "harmonic"}
        A line search for the maximum of the dual, which then never falls; or ``2n / (t + 2n)``,
        which costs no evaluation of G.
    sampling : {"permutation", "uniform", "gap"}
        Order of a pass: each example once, draws with replacement, or draws in proportion to the
        last known gaps.
    averaging : bool, default=True
        Keep the average of the iterates, weighted by t, over a window that restarts after 8 passes,
        then 20, 38, ...
    certify_every : int, default=10
        Passes between certificates; a certificate is a pass at fixed weights that gives primal and
        gap.
    batch : int, default=1
        Examples that are visited at the same w, in ``n_jobs`` threads; their steps are then taken
        one after the other, each as far as the dual rises.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> model = StructuredSVM("multiclass", surrogate="crf", solver="gbcfw", alpha=0.1, tol=1e-6)
    >>> model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).stop_reason_
    'converged'
    """

    name = "gbcfw"
    needs_dual = True
    steps: ClassVar[tuple[str, ...]] = ("search", "harmonic")

    step: str = "search"
    sampling: str = "permutation"
    averaging: bool = True
    certify_every: int = 10
    batch: int = 1

    def start(self, start: Start) -> GBCFWRun:
        """Begin an optimisation; see :meth:`Solver.start`."""
        self.check_choice("step", self.steps)
        self.check_choice("sampling", SAMPLINGS)
        self.check_integer("certify_every", 1)
        self.check_integer("batch", 1)
        self.check(start.problem)
        return GBCFWRun(self, start)

    def check(self, problem: Any) -> None:
        """Raise ValueError if the surrogate has no G along a segment."""
        super().check(problem)
        if not has_segments(problem.surrogate):
            projection = getattr(problem.surrogate, "projection", None)
            if projection is not None:
                raise ValueError(
                    f"solver {self.name!r} needs G along a segment, which the projection of "
                    f"structure {problem.space.structure.name!r}, {type(projection).__name__}, "
                    "lacks: it has no term() and slope(); use solver='bcfw'"
                )
            raise ValueError(
                f"solver {self.name!r} needs a surrogate made of a projection with G along a "
                f"segment ('crf', 'sparsemap', 'max-min'), which {problem.surrogate_name!r} is "
                "not; use solver='bcfw'"
            )


class SDCA(GBCFW):
    """Stochastic dual coordinate ascent for ``crf`` and ``sparsemap`` (Shalev-Shwartz, Zhang 2013).

    Directions are as in :class:`GBCFW`.  The step maximises a quadratic lower bound of the dual,
    from the strong concavity of G, and needs no evaluation of G.

    Parameters
    ----------
    sampling : {"permutation", "uniform", "gap"}
        Order of a pass.
    averaging : bool, default=True
        Keep the average of the iterates as well.
    certify_every : int, default=10
        Passes between certificates; a certificate is a pass at fixed weights that gives primal and
        gap.
    batch : int, default=1
        Examples that are visited at the same w, in ``n_jobs`` threads; their steps are then taken
        one after the other, each as far as the dual rises.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> model = StructuredSVM("multiclass", surrogate="crf", solver="sdca", alpha=0.1, tol=1e-6)
    >>> model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).stop_reason_
    'converged'
    """

    name = "sdca"
    steps = ("curvature",)
    step = "curvature"

    def __init__(
        self,
        sampling: str = "permutation",
        averaging: bool = True,
        certify_every: int = 10,
        batch: int = 1,
    ):
        self.sampling = sampling
        self.averaging = averaging
        self.certify_every = certify_every
        self.batch = batch

    def check(self, problem: Any) -> None:
        """Raise ValueError if G is not strongly concave."""
        super().check(problem)
        if not problem.surrogate.concave:
            raise ValueError(
                f"solver 'sdca' needs a strongly concave G, which {problem.surrogate_name!r} does "
                "not have; use solver='gbcfw'"
            )


def has_segments(surrogate: Any) -> bool:
    """Return whether a surrogate is made of a projection that gives G along a segment.

    Parameters
    ----------
    surrogate : Surrogate

    Returns
    -------
    bool
    """
    return getattr(getattr(surrogate, "projection", None), "has_term", False)


class GBCFWRun(BCFWRun):
    """One optimisation by :class:`GBCFW` or :class:`SDCA`.

    Parameters
    ----------
    solver : GBCFW
    start : Start
    """

    exact = False

    def __init__(self, solver: GBCFW, start: Start):
        problem = start.problem
        loop = SegmentLoop(
            problem.potentials, problem.surrogate, problem.labels, problem.weights, start.alpha
        )
        self._begin(solver, start, loop)

    def _step(self) -> dict[str, Any]:
        solver = self.solver
        self._begin_window()
        estimate, calls = 0.0, 0
        order = self._order()
        visits = self.passes * len(order)
        for some in pieces(order):
            gap, used = self.loop.run(
                some, solver.step, visits, solver.averaging, solver.batch, self.team
            )
            estimate, calls, visits = estimate + gap, calls + used, visits + len(some)
        return self._passed(estimate, calls, {})
