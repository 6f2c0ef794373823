"""Block-coordinate Frank-Wolfe with cached pairwise steps: the default solver."""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from typing import Any

from ..utils.params import parameters
from .base import Solver
from .bcfw_run import BCFWRun
from .problem import Problem
from .run import Run, Start
from .separate import SeparateRun, groups_of

SAMPLINGS = ("permutation", "uniform", "gap")


@parameters
class BCFW(Solver):
    """Block-coordinate Frank-Wolfe on the dual (Lacoste-Julien et al. 2013).

    Each example keeps the cuts that its oracle has returned; after a new cut the dual variable of
    the example is optimised over all of them by line searches.  Between passes that call the
    oracle, cheap passes update on the kept cuts alone while this pays off (Shah, Kolmogorov,
    Lampert 2015); steps are pairwise (Osokin et al. 2016).  Under a kernel, exact cheap steps are
    taken in order of their gain (Fan, Chen, Lin 2005).  The primal is reported at the last iterate
    or the average, whichever is better.

    Parameters
    ----------
    steps : {"auto", "pairwise", "frank-wolfe", "exact"}
        "pairwise": move weight from the worst cut to the best; "frank-wolfe": from all cuts.
        "exact" maximises the dual over the whole variable of an example, which is a projection:
        onto the simplex if labels share no parts (``multiclass``), onto a box if parts are decided
        separately (``multilabel`` without pairs), else onto the hull of the labels (``dag`` with
        closed sets; one row of features per example, a margin with a loss that decomposes,
        ``batch=1``). "auto": "exact" if possible, else "pairwise", and groups of labels that no
        score connects have steps of their own; estimators then train the smooth ``crf`` with
        :class:`GBCFW`, as ``solver_`` shows.
    max_steps : int, default=30
        Line searches per visit, which ends when the example's gap has fallen to a tenth; 1 with
        ``cached_passes=0`` gives the original algorithm.
    cached_passes : int, default=200
        Maximum number of cheap passes between two oracle passes; they end where one raises the dual
        by less than half of the last oracle pass's increase.
    max_cuts : int, default=50
        Cuts kept per example; beyond that, the two of least weight are merged.
    max_age : int, default=10
        Oracle passes after which a cut without weight is dropped.
    sampling : {"permutation", "uniform", "gap"}
        Order of a pass: each example once, draws with replacement, or draws in proportion to the
        last known gaps.
    averaging : bool, default=True
        Keep the average of the iterates, weighted by t, over a window that restarts after 8 passes,
        then 20, 38, ...: the first iterates are far from the optimum. Over a hull of labels, cheap
        passes count too.
    certify_every : int, default=10
        Passes between certificates; a certificate is a pass at fixed weights that gives primal and
        gap.
    constraints : list of SuperModular, LinearConstraint or WeightBounds, optional
        Constraints on w, as for :class:`CuttingPlane`; see Notes.
    batch : int, default=1
        Number of examples visited at the same w, in ``n_jobs`` threads; see Notes.  Exact steps are
        taken one at a time.

    Notes
    -----
    Under constraints ``A w <= c`` the dual has a variable ``nu >= 0`` beside those of the examples,

        ``sum_i u_i <b_i, a_i> - alpha/2 |w|^2 - <c, nu>,   w = (sum_i u_i g_i - A' nu) / alpha``

    where ``g_i`` is the example's mixture of cuts.  Its best value for given ``g`` makes w the
    projection of ``sum_i u_i g_i / alpha`` onto the polyhedron: that step follows each visit, so
    the oracle gets weights that satisfy all rows, and the gap is certified as usual.

    With ``batch > 1`` the visits of a batch (oracle, cuts, line searches) use the w at the start of
    the batch and may run on any thread.  Their steps are then taken in order: a step
    ``sum_i u_i g_i += gamma d`` has the share ``gamma = clip(slope / curvature, 0, 1)`` that
    maximises the dual along it, with the slope at the current w.  The dual therefore never
    decreases, and the number of threads does not change the result.  Drawing an example again ends
    the batch.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> from structsolve.solvers import BCFW
    >>> model = StructuredSVM("multiclass", solver=BCFW(sampling="gap"), tol=1e-6)
    >>> model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).history_[-1]["certified"]
    True
    """

    name = "bcfw"
    needs_dual = True

    steps: str = "auto"
    _: KW_ONLY
    max_steps: int = 30
    cached_passes: int = 200
    max_cuts: int = 50
    max_age: int = 10
    sampling: str = "permutation"
    averaging: bool = True
    certify_every: int = 10
    constraints: Any = None
    batch: int = 1

    def start(self, start: Start) -> Run:
        """Begin an optimisation; see :meth:`Solver.start`."""
        self.check_choice("steps", ("auto", "pairwise", "frank-wolfe", "exact"))
        self.check_choice("sampling", SAMPLINGS)
        for name, least in (
            ("max_steps", 1),
            ("cached_passes", 0),
            ("max_cuts", 2),
            ("max_age", 0),
            ("certify_every", 1),
            ("batch", 1),
        ):
            self.check_integer(name, least)
        self.check(start.problem)
        if self.steps == "auto" and not self.constraints:
            groups = groups_of(start.problem)
            if groups:
                return SeparateRun(start, groups, partial(BCFWRun, self))
        return BCFWRun(self, start)

    def check(self, problem: Problem) -> None:
        """Raise ValueError for a problem that this solver cannot take."""
        super().check(problem)
        if self.constraints and not problem.potentials.has_weights:
            raise ValueError(
                "BCFW: constraints are on weights of features, which a kernel model does not have; "
                "use kernel=None on explicit features (Nystroem)"
            )
