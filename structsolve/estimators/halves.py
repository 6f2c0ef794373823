"""A check of ``alpha="auto"`` on few examples: each half of them is predicted from the other."""

from __future__ import annotations

import numpy as np

from ..solvers.bcfw import BCFW
from ..solvers.choose import choose_solver
from ..solvers.passes import surrogate_bounds
from ..solvers.problem import Problem
from ..solvers.run import Start

# Numbers of examples that are looked at: fewer cannot tell, and of more the check takes longer.
FEWEST, MOST = 40, 250
# The larger constant, as a multiple, and by which part its error has to be smaller.
WIDER, NEARER = 8.0, 0.01
# Error of the smaller constant, as a part of the surrogate at 0, and of the larger one, as a
# multiple of that, above which the first half is enough.
TOLD, FARTHER = 0.5, 1.3
# Lengths of the weights, as multiples, of which the best one counts.
LENGTHS = 2.0 ** np.arange(-5, 3)
# A relative gap of weights that are compared, and the most passes.
GAP, PASSES = 0.03, 30


def wider(problem: Problem, alpha: float, value: float, n_jobs: int = 1) -> float:
    """Return 8 if halves of the examples then predict each other clearly better, else 1.

    Each half is trained on with ``alpha`` and with ``8 alpha``.  The error is the surrogate on the
    other half, with weights of the best length: ``c w`` predicts the same labels for all c > 0, but
    larger constants shorten weights, which alone makes the surrogate of wrong labels smaller.

    Parameters
    ----------
    problem : Problem
    alpha : float
        A constant for half of the examples.
    value : float
        The mean surrogate at ``w = 0``.
    n_jobs : int, default=1

    Returns
    -------
    float
        1 for other numbers of examples than 40 to 250, surrogates other than "margin", kernels,
        intercepts without a penalty, and oracles by linear programs.

    Examples
    --------
    >>> import numpy as np
    >>> import structsolve
    >>> from structsolve.estimators.halves import wider
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 100)
    >>> X = 3 * np.eye(3, 12)[y] + rng.normal(size=(100, 12))
    >>> problem = structsolve.Problem(*structsolve.get_structure("multiclass").make_space(X, y))
    >>> wider(problem, 0.01, 1.0), wider(problem, 1.0, 1.0)
    (8.0, 1.0)
    """
    some = np.flatnonzero(problem.weights > 0)
    plain = problem.surrogate_name == "margin" and problem.kernel is None
    plain = plain and problem.penalty is None and problem.backend is None
    if not plain or not FEWEST <= len(some) <= MOST:
        return 1.0
    errors = np.zeros(2)
    for kept, left in ((some[::2], some[1::2]), (some[1::2], some[::2])):
        half, shares = problem.weighing(kept), problem.weights[left]
        for j, times in enumerate((1.0, WIDER)):
            w = _trained(half, times * alpha, n_jobs)
            bounds = [surrogate_bounds(problem, c * w, n_jobs)[0][left] for c in LENGTHS]
            errors[j] += min(np.average(bounds, axis=1, weights=shares))
            if not errors[1] and errors[0] > TOLD * value:
                return 1.0
        if errors[1] > FARTHER * errors[0]:
            return 1.0
    return WIDER if errors[1] < (1 - NEARER) * errors[0] else 1.0


def _trained(problem: Problem, alpha: float, n_jobs: int) -> np.ndarray:
    start = Start(problem, alpha, np.random.default_rng(0), n_jobs, tol=GAP)
    run = choose_solver(BCFW(), problem, alpha).start(start)
    for _ in range(PASSES):
        record = run.step()
        if record["certified"] and record["gap"] <= GAP * record["primal"]:
            break
    return run.weights()
