"""Choice of the solver if the settings leave it open."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from .. import registry
from ..structure.python_operators import PythonOracle
from ..surrogates.given_marginals import holds_marginals
from ..utils.params import check_types
from .base import Solver
from .bcfw import BCFW
from .bcfw_run import BCFWRun
from .closing import ClosingRun
from .consensus import ConsensusADMM
from .consensus_run import TYPICAL
from .cutting_plane import CuttingPlane
from .exact_steps import box_duals, n_labels, simplex_duals
from .gbcfw import GBCFW, has_segments
from .lbfgs import LBFGS
from .passes import subgradient, surrogate_bounds
from .problem import Problem
from .run import Run, Start, started
from .separate import groups_of
from .smoothing import Smoothing, soft_margin

# "auto" takes shards of a smooth surrogate, or smoothing, from so many examples on, shards of
# others from fewer, ...
MANY, SHARDED = 500, 200
# ... where the loss curves this much more than the regulariser: visits one at a time then need many
# cheap passes over all cuts.
BENT = 100.0
# ... or this much more under a smooth surrogate: GBCFW moves one marginal an example, and has no
# cheap passes.
BENT_SMOOTH = 6.0
# For quasi-Newton steps that falls in proportion below so many examples: GBCFW moves as few
# marginals a pass then, and needs as many passes more; theirs do not depend on the number.
ALL_MOVE = 3000
# ... and their features have this many numbers (of 8 bytes) for each weight: else vectors as long
# as the weights take most of the time.
NUMBERS = 2
# Quasi-Newton steps take less time than shards under a smooth surrogate whose features have this
# share of entries, of any number of examples: a column that few examples have bends the loss less,
# and needs many steps.
FILLED = 0.1
# Steps of a pass, which together cost about as much as a pass of GBCFW.
STEPS = 5
# Rows with one of K classes have exact steps, but many passes of these where such a share of the
# dual variables of wrong classes is above 0 after a sweep: quasi-Newton steps are quicker there.
FULL = 0.5
# ... or such a share where there are so many rows for each weight: few weights fit no row exactly,
# and the passes are long.
FULL_TALL, TALL = 0.3, 100
# ... and features have this many numbers for each weight: the past steps take as many.
PAST_NUMBERS = 40
# At most so many weights, and so many rows for each, take cutting planes, from a smaller share on:
# few weights need few passes, and these take all the time.
FEW_OF_CLASSES, LONG, FULL_LONG = 24, 2500, 0.15
# With at most so many weights cutting planes, whose passes grow with these alone, from this much
# more curvature on, ...
FEW_WEIGHTS, BENT_FEW = 40, 30.0
# ... if after one sweep of BCFW so many examples have cuts: other solvers need few passes else.
TOUCHED = 0.4
# Quasi-Newton steps on the smoothed margin take less time than cuts where labels share parts, from
# this much more curvature and so many examples on, ...
BENT_SOFT, SOME = 15.0, 100
# ... if the best multiple of one sweep's average leaves this share of the margin of zero weights:
# no model fits such data, and very many labels of each example stay within the margin.  Rows with
# one of K classes leave as much where smoothing takes less time.
LEFT = 0.45
# ... and its dual at most this share: visits one at a time need few passes else.
PROVED = 0.02
# The share that is left is of about so many examples.  A sweep fits weights badly that have fewer
# nodes.
ASKED, NODES_A_WEIGHT = 300, 10
# Marginals may take so many numbers for each score, and a few bytes more: on graphs with cycles
# they take more, and longer than several cuts.
WIDE, SPARE = 6, 256
# Shards, whatever the threads are, and the relative gap at which BCFW takes over: chosen by trials
# (``benchmarks/solver_auto.py``).  More shards need more rounds; later rounds gain little.
SHARDS, FINISH = 2, 0.01


class Auto(BCFW):
    """Whatever trains soonest by alpha, size and structure: the default, ``solver="auto"``.

    With all settings at their defaults, and in an estimator's plain ``fit``, it is ``Smoothing()``
    for rows with one of K classes if, after one sweep of exact steps, half of the dual variables of
    wrong classes are above 0 and the best multiple of the sweep's average leaves .45 of the margin
    of zero weights, or .3 of them with 100 rows and more for each weight: no model separates such
    classes.  Up to 24 weights with 2500 rows for each take ``CuttingPlane()`` from
    .15 of them on.  For labels that share parts it is ``Smoothing()``, too, where the
    number below is 15 or more, marginals are exact and take little memory (not those of graphs with
    cycles), there are ten nodes for each weight, and after one sweep the dual is at most .02 of
    the margin of zero weights, of which the best multiple of the sweep's average leaves .45: no
    model fits such labels, and it takes many passes to prove it.  Else it is
    ``ConsensusADMM(n_shards=2, finish=0.01)``, or ``LBFGS(steps=5)`` for ``"crf"`` and features
    with a tenth of all entries, where

        ``.004 |g|^2 / (b alpha) >= 100``, or 6 for ``"crf"``, ``6 n / 3000`` for up to 3000
        examples of such features,

    g and b being those of the mean surrogate's cut ``b - <g, w>`` at w = 0, if scores connect all
    parts in one group.  That is weak regularisation: the loss curves so much more than the
    regulariser.  With up to 40 weights it is ``CuttingPlane()`` from 30 on, if one sweep leaves
    cuts at .4 of the examples.  Shards take 200 examples or more, those of ``"crf"`` and
    for early stopping, and the smoothing of classes 500, that of labels that share parts 100;
    features need two numbers for each weight, 40 for classes.
    Where the gap, at its rate after 30 passes, needs more than 50 further ones, another solver goes
    on from the best weights, four of its passes as one: ``"interior-point"`` for rows with one of K
    classes if these and the weights are few, else ``Smoothing()`` by the numbers above.
    Everything else is as with :class:`BCFW`, which hands some problems to solvers of their own
    (:func:`~structsolve.solvers.choose_solver`).  The rule does not look at ``n_jobs``.

    Parameters
    ----------
    steps : str
    max_steps, cached_passes : int
    max_cuts, max_age : int
    sampling : str
    averaging : bool
    certify_every : int
    constraints : list, optional
    batch : int
        As of :class:`BCFW`; others than the defaults mean that solver.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> model = StructuredSVM("multiclass", solver="auto").fit([[0.0], [1.0]], ["a", "b"])
    >>> model.solver, model.solver_.name
    ('auto', 'bcfw')
    """

    name = "auto"


def choose_solver(
    solver: Solver,
    problem: Problem,
    alpha: float | None = None,
    n_jobs: int = 1,
    *,
    even: bool = False,
) -> Solver:
    """Return the solver to run: ``BCFW(steps="auto")`` hands smooth surrogates to GBCFW.

    With all other settings at their defaults, it hands problems to the solver that they suit
    (:meth:`Solver.suits`): thresholds of ordered classes to "interior-point", where rows and
    weights are few, and kernel models of rows with one of a few classes to "smo".
    :class:`Auto` hands weak regularisation to :class:`ConsensusADMM` or :class:`LBFGS`, and labels
    that no model fits to :class:`Smoothing`, as well.

    Parameters
    ----------
    solver : Solver
    problem : Problem
    alpha : float, optional
        Without it, :class:`Auto` is :class:`BCFW`.
    n_jobs : int, default=1
        Threads for the passes that the rules of :class:`Auto` take; they do not depend on them.
    even : bool, default=False
        Whether each pass must gain its share, for early stopping: of the solvers that :class:`Auto`
        hands over to, it is then ``ConsensusADMM()`` alone, and of a loss that is not smooth.

    Returns
    -------
    Solver

    Raises
    ------
    ValueError
        If BCFW cannot take the problem, and neither can GBCFW; when a setting is of another
        type than the solver declares.

    Examples
    --------
    >>> import structsolve
    >>> from structsolve.solvers import BCFW, choose_solver
    >>> X, y = [[0.0], [1.0]], ["a", "b"]
    >>> space, examples = structsolve.get_structure("multiclass").make_space(X, y)
    >>> choose_solver(BCFW(), structsolve.Problem(space, examples, surrogate="crf")).name
    'gbcfw'
    >>> choose_solver(BCFW(), structsolve.Problem(space, examples)).name
    'bcfw'
    """
    check_types(solver, f"{type(solver).__name__}: ")
    if holds_marginals(problem.examples):
        return _for_marginals(solver, problem)
    auto = isinstance(solver, Auto)
    if isinstance(solver, Auto):
        solver = BCFW(**solver.get_params())
    if not isinstance(solver, BCFW) or solver.steps != "auto":
        return solver
    plain = solver.get_params() == BCFW().get_params()
    if plain:
        known = registry.default()
        for name in known.names("solvers"):
            own = known.class_of("solvers", name)
            if getattr(own, "suits", Solver.suits)(problem):
                made: Solver = own()
                return made
    smooth = has_segments(problem.surrogate) and problem.surrogate.projection.gibbs
    if auto and plain and alpha is not None and not (even and smooth):
        # Searches then start as with a solver by name.
        # np.zeros() takes no pages, where copies of zeros would.
        memory = problem.surrogate.memory_of_examples()
        before = {k: x.copy() if x.any() else np.zeros(x.shape, x.dtype) for k, x in memory.items()}
        other = _by_rule(problem, alpha, n_jobs, smooth, even)
        problem.surrogate.remember(before)
        if other is not None:
            return other
    if not smooth:
        return solver
    solver.check(problem)
    if solver.constraints:
        return solver  # GBCFW supports none
    return GBCFW(
        sampling=solver.sampling,
        averaging=solver.averaging,
        certify_every=solver.certify_every,
        batch=solver.batch,
    )


def begin(solver: Solver, start: Start, asked: Solver, *, alone: bool = False) -> Run:
    """Return a run of what :func:`choose_solver` took; :class:`Auto` lets others close its gap.

    Parameters
    ----------
    solver : Solver
        That was taken.
    start : Start
    asked : Solver
        That was given.
    alone : bool, default=False
        Whether no other may follow: for early stopping, and where the run is kept, in a file or for
        a warm start.

    Returns
    -------
    Run
    """
    problem = start.problem
    default = isinstance(asked, Auto) and asked.get_params() == Auto().get_params()
    if alone or not default or holds_marginals(problem.examples):
        return started(solver, start)

    def find() -> list[Solver]:
        return [one for one in _closers(problem) if type(one) is not type(solver)]

    return ClosingRun(solver, find, start)


def _closers(problem: Problem) -> list[Solver]:
    """Return the solvers that close the gaps of others, the surest first."""
    known = registry.default()
    classes = [known.class_of("solvers", name) for name in known.names("solvers")]
    closers = [own() for own in classes if getattr(own, "closes", Solver.closes)(problem)]
    classed = simplex_duals(problem)
    numbers = PAST_NUMBERS if classed else NUMBERS
    if _has_short_vectors(problem, numbers) and (
        soft_margin(problem) is not None if classed else _smooths_quickly(problem)
    ):
        closers.append(Smoothing())
    return closers


def _by_rule(
    problem: Problem, alpha: float, n_jobs: int, smooth: bool, even: bool
) -> Solver | None:
    """Return the solver to which :class:`Auto` hands over, None for BCFW or GBCFW."""
    newton = smooth and _is_filled(problem.examples.nodes)
    many = problem.n >= MANY
    sharded = problem.n >= (MANY if smooth or even else SHARDED)
    bent = BENT_SMOOTH if smooth else BENT
    if newton:
        bent *= min(1.0, problem.n / ALL_MOVE)
    few = problem.dim <= FEW_WEIGHTS and not smooth and not even
    some = problem.n >= SOME and not smooth and not even
    ratio = _bend(problem, alpha, n_jobs) if newton or sharded or few or some else 0.0
    least = min(BENT_SOFT if some else bent, BENT_FEW if few else bent)
    if ratio >= least and not groups_of(problem):
        swept = cache(partial(_swept, problem, alpha, n_jobs))
        if some and ratio >= BENT_SOFT and _is_soft(problem, n_jobs, swept):
            return Smoothing()
        if few and ratio >= BENT_FEW and swept()[1]["cuts"] >= TOUCHED * problem.n:
            return CuttingPlane()
        if newton:
            return LBFGS(steps=STEPS)
        if sharded and ratio >= bent:
            return ConsensusADMM() if even else ConsensusADMM(SHARDS, finish=FINISH)
    if many and not even and simplex_duals(problem):
        return _of_classes(problem, alpha, n_jobs)
    return None


def _for_marginals(solver: Solver, problem: Problem) -> Solver:
    """Return a solver that needs nothing but cuts: dual variables begin at a label."""
    if isinstance(solver, Auto) and solver.get_params() == Auto().get_params():
        smooth = has_segments(problem.surrogate) and problem.surrogate.projection.gibbs
        return LBFGS(steps=STEPS) if smooth and problem.penalty is None else CuttingPlane()
    solver.check(problem)
    return solver


def _bend(problem: Problem, alpha: float, n_jobs: int) -> float:
    """Return how much more the loss curves than the regulariser.

    0 where vectors are long beside the features, or steps are exact.
    """
    if not _has_short_vectors(problem) or simplex_duals(problem) or box_duals(problem):
        return 0.0
    g, b, _, _ = subgradient(problem, np.zeros(problem.dim), n_jobs)
    return TYPICAL * float(g @ g) / max(b * alpha, 1e-300)


def _has_short_vectors(problem: Problem, numbers: int = NUMBERS) -> bool:
    """Return whether vectors as long as the weights are short beside the features."""
    return bool(
        problem.potentials.has_weights
        and problem.surrogate.affine
        and problem.penalty is None
        and 8 * numbers * problem.dim <= problem.potentials.nbytes
    )


def _of_classes(problem: Problem, alpha: float, n_jobs: int) -> Solver | None:
    """Return what proves a bound sooner than exact steps if a sweep leaves many labels above 0."""
    if not _has_short_vectors(problem, PAST_NUMBERS):
        return None
    sweep, record = _swept(problem, alpha, n_jobs)
    share = record["cuts"] / max(problem.n * (n_labels(problem) - 1), 1)
    rows = problem.n / problem.dim
    if problem.dim <= FEW_OF_CLASSES and rows >= LONG and share >= FULL_LONG:
        return CuttingPlane()
    if rows >= TALL:
        return Smoothing() if share >= FULL_TALL else None
    # With fewer rows weights may fit them all, which takes few passes at any alpha.
    badly = share >= FULL and _fits_badly(problem, n_jobs, sweep)[0]
    return Smoothing() if badly else None


def _swept(problem: Problem, alpha: float, n_jobs: int) -> tuple[Run, dict[str, Any]]:
    """Return a run after one sweep of BCFW, and its record.

    Its cuts are the labels but the truth that have dual variables.
    """
    sweep = BCFW(cached_passes=0).start(Start(problem, alpha, np.random.default_rng(0), n_jobs))
    return sweep, sweep.step()


def _is_soft(
    problem: Problem, n_jobs: int, swept: Callable[[], tuple[Run, dict[str, Any]]]
) -> bool:
    """Return whether no model fits labels that share parts, whose margin is smoothed quickly."""
    if not _smooths_quickly(problem):
        return False
    sweep, record = swept()
    badly, zero = _fits_badly(problem, n_jobs, sweep)
    return badly and record["dual"] <= PROVED * zero


def _smooths_quickly(problem: Problem) -> bool:
    """Return whether sums over labels that share parts take little time and memory."""
    tall = problem.n_nodes >= NODES_A_WEIGHT * problem.dim
    soft = soft_margin(problem) if tall else None
    if soft is None or isinstance(problem.oracle, PythonOracle):  # whose calls take all the time
        return False
    return bool(soft.projection.work_bytes <= 8 * WIDE * soft.layout.max_theta + SPARE)


def _fits_badly(problem: Problem, n_jobs: int, sweep: Run) -> tuple[bool, float]:
    """Return whether a sweep's average leaves much of the margin, and that of zero weights."""
    assert isinstance(sweep, BCFWRun)  # there is one group
    *_, average = sweep.candidates()
    every = max(problem.n // ASKED, 1)
    values = [
        float(problem.weights @ surrogate_bounds(problem, times * average, n_jobs, every=every)[0])
        for times in (0.0, 0.3, 1.0)
    ]
    zero = values[0] / max(float(problem.weights[::every].sum()), 1e-300)
    return min(values) >= LEFT * values[0] > 0, zero


def _is_filled(features: Any) -> bool:
    """Return whether most columns of features are not rare."""
    stored = features.nnz if hasattr(features, "nnz") else features.size
    return bool(stored >= FILLED * features.shape[0] * features.shape[1])


def words_of(solver: Solver, n_jobs: int) -> str:
    """Return what "auto" took in one line, and the threads that wait for others.

    Parameters
    ----------
    solver : Solver
        Of :func:`choose_solver`.
    n_jobs : int
        Threads of a fit.

    Returns
    -------
    str

    Examples
    --------
    >>> from structsolve.solvers.choose import BCFW, words_of
    >>> words_of(BCFW(), 1)
    "solver='auto' takes 'bcfw'"
    >>> words_of(BCFW(), 2)
    "solver='auto' takes 'bcfw'; 1 of 2 threads is idle but for certificates"
    """
    text, busy = f"solver='auto' takes {solver.name!r}", getattr(solver, "batch", 1)
    if isinstance(solver, ConsensusADMM):
        text += f" over {solver.n_shards} shards"
        if solver.finish is not None:
            text += f", then 'bcfw' from a gap of {solver.finish:g} on"
        busy = solver.n_shards
    elif isinstance(solver, (LBFGS, CuttingPlane, Smoothing)):
        busy = n_jobs
    idle = n_jobs - busy
    if idle <= 0:
        return text
    verb = "is" if idle == 1 else "are"
    return f"{text}; {idle} of {n_jobs} threads {verb} idle but for certificates"
