"""``check_solver`` and ``check_loss``: a solver, or a loss, on correct structures."""

from __future__ import annotations

from typing import Any

from .. import registry
from ..utils.params import check_count
from ..utils.positional import positional_deprecated
from . import _losses, _operators, _runs, _training, _whole
from ._case import Case
from ._training import PASSES, TOL


@positional_deprecated
def check_solver(
    solver: Any,
    structure: Any = "chain",
    loss: Any = "hamming",
    *,
    surrogate: Any = "margin",
    size: int = 3,
    random_state: int = 0,
    tol: float = TOL,
    passes: int = PASSES,
) -> None:
    """Check a solver: its certificate, its optimum, its state, and that inputs stay unchanged.

    Parameters
    ----------
    solver : str or Solver
    structure : str or Structure, default="chain"
    loss : str or loss object, default="hamming"
    surrogate : str or surrogate object, default="margin"
        With "margin" objectives are compared with enumeration, and the optimum with that of "bcfw".
    size, random_state : int
        As for :func:`check_structure`.
    tol : float, default=1e-5
        Relative gap to reach.  A solver whose first record has no dual must come within 5 % of the
        optimum.
    passes : int, default=400
        Maximum number of passes.

    Raises
    ------
    BrokenPromise
        An AssertionError that says what was found and expected.
    TypeError
        If ``solver`` is neither a name nor a solver.

    Notes
    -----
    Checked are: records (finite, the gap is primal less dual, what is certified holds for the
    weights, the dual is below the optimum, oracle calls are counted, some are certified), the
    primal against the objective of the weights, the optimum, with ``sample_weight`` too,
    ``weights`` (a copy of the right length), runs that resume from each ``state`` with the same
    weights and records bit for bit, runs of the same seed and on two threads, that the solver
    refuses problems that it declares unsupported, and that neither examples nor solver change. The
    objective is that of :class:`structsolve.Problem`, without L1; a solver with ``minimises =
    False`` need not have one.

    Examples
    --------
    >>> from structsolve.testing import check_solver
    >>> check_solver("cutting-plane", "multiclass")

    The original Frank-Wolfe closes the gap slowly:

    >>> from structsolve.solvers import BCFW
    >>> textbook = BCFW(max_steps=1, cached_passes=0, steps="frank-wolfe")
    >>> check_solver(textbook, "chain", tol=0.05)
    """
    structure = registry.get_structure(structure)
    solver = registry.default().object_of("solvers", solver)
    case = Case(structure, 0, random_state, size)
    case.kit, case.more = f"check_solver({solver!r}, structure, ", f", surrogate={surrogate!r}"
    case.more += f", tol={tol}" if tol != TOL else ""
    case.more += f", passes={passes}" if passes != PASSES else ""
    case.enumerate()
    checked, params = _runs.Checked(case, solver, loss, surrogate), repr(solver)
    for alpha in _runs.ALPHAS:
        _runs.check_runs(checked, alpha)
    _runs.check_calls(checked)
    _runs.check_refusals(checked)
    if getattr(solver, "minimises", True):
        if surrogate == "margin":
            _training.check_solvers(case, loss, ["bcfw", solver], tol, passes)
        _runs.check_optimum(checked, tol, passes)
    if repr(solver) != params:
        checked.fail("", "does not change the solver's parameters", repr(solver), params)


def check_loss(
    loss: Any, structure: Any = "chain", n_cases: int = 2, size: int = 3, random_state: int = 0
) -> None:
    """Check a loss on a structure: its values, the scores it adds, its matrix, its training.

    Parameters
    ----------
    loss : str or loss object
    structure : str or Structure, default="chain"
    n_cases, size, random_state : int
        As for :func:`check_structure`.

    Raises
    ------
    BrokenPromise
        An AssertionError that says what was found and expected.
    ValueError
        For ``n_cases`` below 1.

    Notes
    -----
    Checked are: 0 at the truth and never negative, 0 or 1 if so declared, the costs added to scores
    if it decomposes, the matrix of its costs, ``score`` with it, the loss-augmented oracle if it
    includes the loss, and (if it decomposes) the optimum of solvers.

    Examples
    --------
    >>> from structsolve.testing import check_loss
    >>> check_loss("zero-one", "multiclass")
    """
    check_count("n_cases", n_cases)
    structure = registry.get_structure(structure)
    for number in range(n_cases):
        case = Case(structure, number, random_state + number, size)
        case.kit = f"check_loss({loss!r}, structure, "
        case.enumerate()
        what = f"Loss {loss!r}"
        with case.promise(what, "can be built"):
            native = case.loss(loss)
        if not isinstance(native, _losses.Loss):
            case.fail(what, "binds a Loss to a layout", None, type(native).__name__, "a Loss")
        _losses.check_loss(case, loss, native)
        _whole.check_predictions(case, loss)
        _operators.check_augmented_oracle(case, loss)
        if native.decomposes and number == 0:
            _training.check_solvers(case, loss, ["bcfw"])
