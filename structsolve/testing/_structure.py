"""``check_structure``: the checks of one structure, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

from .. import registry
from ..utils.params import check_count
from ..utils.positional import positional_deprecated
from . import (
    _declaration,
    _losses,
    _operators,
    _polytopes,
    _projections,
    _relaxed,
    _sizes,
    _training,
    _whole,
)
from ._case import Case

#: Checks of every case, by name; each takes the case and the loss.
CHECKS: dict[str, Callable[[Case, Any], None]] = {
    "parts": lambda case, loss: _operators.check_parts(case),
    "oracle": lambda case, loss: _operators.check_oracle(case),
    "relaxation": lambda case, loss: _relaxed.check_relaxation(case),
    "polytope": lambda case, loss: _polytopes.check_polytope(case),
    "kbest": lambda case, loss: _operators.check_kbest(case),
    "cones": _relaxed.check_constrained,
    "max-marginals": lambda case, loss: _operators.check_max_marginals(case),
    "counts": _operators.check_counts,
    "constraints": lambda case, loss: _operators.check_constraints(case),
    "loss": _losses.check_losses,
    "augmented": _operators.check_augmented_oracle,
    "projection": lambda case, loss: _projections.check_projections(case),
}
#: Checks of the first case only.
ONCE: dict[str, Callable[[Case, Any], None]] = {
    "threads": lambda case, loss: _operators.check_threads(case),
    "truth": lambda case, loss: _operators.check_blindness(case),
    "options": lambda case, loss: _whole.check_options(case),
    "predict": _whole.check_predictions,
    "sparse X": lambda case, loss: _whole.check_sparse_looking(case),
    "sizes": lambda case, loss: _sizes.check_larger(case),
}
EVERY = {**CHECKS, "marginals": lambda case, loss: _projections.check_marginals(case)}
#: Checks of a case with more classes than a vector register holds.
WIDE = ("oracle", "kbest", "max-marginals", "augmented", "marginals")
#: Checks of other layouts of parts.
LAYOUTS = ("parts", "oracle", "relaxation", "kbest", "max-marginals", "marginals")
NAMES = ("declaration", *CHECKS, *ONCE, "classes", "layouts")


@positional_deprecated
def check_structure(
    structure: Any,
    loss: Any = "hamming",
    *,
    n_cases: int = 4,
    size: int = 3,
    random_state: int = 0,
    solvers: Sequence[Any] = ("bcfw", "cutting-plane", "sgd"),
    only: Sequence[str] | None = None,
    clock: Callable[[], float] = perf_counter,
) -> None:
    """Check a structure and its plugins' operators against enumeration.

    Parameters
    ----------
    structure : str or Structure
        A structure with ``sample``, whose spaces have ``enumerate_labels``.
    loss : str or loss object, default="hamming"
        Loss for training by the solvers, "auto" for the structure's own, its spaces'
        ``default_loss``; all losses of plugins are checked separately.
    n_cases : int, default=4
        Number of small data sets drawn from ``structure.sample``.
    size : int, default=3
        Bound on the size of a label, for ``sample``.
    random_state : int, default=0
    solvers : sequence of str or Solver
        Solvers to train to the optimum, which must be the same for all that reach one; may be
        empty.
    only : sequence of str, optional
        Parts of the kit; all by default: "declaration", "parts", "oracle", "relaxation",
        "polytope", "kbest", "cones", "max-marginals", "counts", "constraints", "loss", "augmented",
        "projection"; of the first case "threads", "truth", "options", "predict", "sparse X",
        "sizes"; "classes" and "layouts".  For structures that differ only in their oracle.
    clock : callable, default=time.perf_counter
        Returns seconds.  A test that must not depend on the machine can pass a clock that counts
        the oracle's work.

    Raises
    ------
    BrokenPromise
        An AssertionError that names the operator or method, the promise, the example, what was
        found and what was expected, and how to see it again.
    ValueError
        For an unknown part in ``only``, or ``n_cases`` below 1.

    Warns
    -----
    SlowOperator
        If the time of an answer grows steeply with the size of labels.

    Notes
    -----
    Checked are the declaration (parameters, ``clone``, packing, ``state``, ``classes=`` and
    ``fit_intercept=``), the oracle (optimal at random, tied and zero scores if declared exact, its
    value, its bound, ties, scratch memory, threads, independence of the truth), its relaxation, its
    answers within a cone of the label plane, the polytope, k-best, max-marginals, the best label
    for each count, the loss-augmented oracle, parts, losses and their matrices, projections
    (marginals, bounds, states, G and its slope, samples, derivatives), hard constraints on nodes,
    predictions, scores and masks, X that packing stores as sparse, 2 and 19 classes, larger labels,
    that solvers agree, that nothing changes the packed examples, and the operators for the
    structure's other ``layouts``.  Powers that a structure lacks are not checked.

    Examples
    --------
    >>> from structsolve.testing import check_structure
    >>> check_structure("chain", n_cases=1)
    """
    check_count("n_cases", n_cases)
    structure = registry.get_structure(structure)
    wanted = NAMES if only is None else tuple(only)
    for name in wanted:
        if name not in NAMES:
            raise ValueError(f"only has {name!r}, expected some of {NAMES}")
    if "declaration" in wanted:
        _declaration.check_parameters(structure)
    for number in range(n_cases):
        case = Case(structure, number, random_state + number, size)
        case.clock = clock
        case.more = f", loss={loss!r}, solvers=()" if loss != "hamming" else ", solvers=()"
        if "declaration" in wanted:
            _declaration.check_packing(case)
            _declaration.check_state(case)
        case.enumerate()
        _run(case, loss, {name: CHECKS[name] for name in CHECKS if name in wanted})
        if number == 0:
            _run(case, loss, {name: ONCE[name] for name in ONCE if name in wanted})
        if solvers and number == 0:
            case.more = case.more.replace("solvers=()", f"solvers={list(solvers)}")
            _training.check_solvers(case, loss, solvers)
    if "classes" in wanted and (wide := _sizes.many_classes(structure, random_state)) is not None:
        wide.more = ", solvers=(), only=['classes']"
        wide.enumerate()
        _run(wide, loss, {name: EVERY[name] for name in WIDE})
    if "layouts" in wanted:
        for case in _sizes.other_layouts(structure, random_state, size):
            case.enumerate()
            _run(case, loss, {name: EVERY[name] for name in LAYOUTS})
            if case.structure is structure:
                _run(case, loss, {"sizes": ONCE["sizes"]})


def _run(case: Case, loss: Any, checks: dict[str, Callable[[Case, Any], None]]) -> None:
    for name, check in checks.items():
        case.begin(name)
        before = {place: array.copy() for place, array in _packed(case).items()}
        check(case, loss)
        for place, array in _packed(case).items():
            if array.tobytes() != before[place].tobytes():
                promise = f"leaves packed examples as they are ({place}, in the checks {name!r})"
                case.fail("an operator", promise, None, array, before[place])


def _packed(case: Case) -> dict[str, np.ndarray]:
    """Return the arrays that all operators of a case share."""
    arrays = {}
    for name, value in {**vars(case.examples), **case.examples.topology}.items():
        array = value.data if sparse.issparse(value) else value
        if isinstance(array, np.ndarray):
            arrays[name] = array
    return arrays
