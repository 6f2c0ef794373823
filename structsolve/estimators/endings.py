"""Warnings when training ends: no optimum, a contradicted oracle, nothing learned."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from ..solvers.driver import Outcome
from .collapse import collapse
from .fitting import TrainingData


def warn_of_end(model: Any, outcome: Outcome, hint: str, unfinished: bool) -> None:
    """Warn if training ended without the optimum.

    Parameters
    ----------
    model : StructuredSVM
        Fitted; the caller of the method that calls its ``_train`` is warned.
    outcome : Outcome
    hint : str
        What else may help; may be empty.
    unfinished : bool
        Warn of runs that ``max_iter`` ended, too.
    """
    last = outcome.history[-1] if outcome.history else {}
    ways = "; ".join(filter(None, ("raise max_iter or tol", hint)))
    if last.get("violation") is not None:
        warnings.warn(
            f"{last['violation']}: the oracle of structure {model.space_.structure.name!r} does "
            "not find the best labels, or the loss or parts do not fit it; the model is not "
            "optimal; structsolve.testing.check_structure finds the cause",
            RuntimeWarning,
            stacklevel=5,
        )
    elif outcome.reason == "failed":
        warnings.warn(
            f"training ended in pass {last['pass']}, the best weights so far are kept: "
            f"{last['failed']}",
            ConvergenceWarning,
            stacklevel=5,
        )
    elif unfinished and outcome.reason == "max_iter" and last.get("gap") is not None:
        scale = max(abs(last["primal"]), 1e-300)
        missed = last.get("missed", 0.0) / scale
        warnings.warn(
            f"stopped after max_iter={model.max_iter} passes with a relative gap of "
            f"{last['gap'] / scale:.2g}, tol is {model.tol:g}; "
            + (
                f"{missed:.2g} of it is what searches or oracles may have missed, which no "
                "further pass closes: use another search or oracle, or relaxed=True"
                if missed > 0.5 * model.tol
                else ways
            ),
            ConvergenceWarning,
            stacklevel=5,
        )
    elif unfinished and outcome.reason == "max_iter" and last.get("settled") is False:
        warnings.warn(
            f"stopped after max_iter={model.max_iter} passes before the primal had settled; "
            f"there is no gap, as solver {model.solver_.name!r} has no dual here; {ways}",
            ConvergenceWarning,
            stacklevel=5,
        )


def warn_of_collapse(model: Any, data: TrainingData) -> None:
    """Warn about a model that has learned nothing; paths over alpha begin with such models.

    Parameters
    ----------
    model : StructuredSVM
        Fitted.
    data : TrainingData
        With the problem and its solution.
    """
    if data.w is None or model.stop_reason_ in ("contradicted", "failed", "interrupted"):
        return
    assert data.problem is not None
    how = collapse(data.problem, data.w)
    if how:
        steps, alpha = "", f"alpha={model.alpha_:.3g} may be far too large or too small, "
        more = "StructuredSVMCV chooses alpha by cross-validation"
        if not getattr(model.solver_, "minimises", True):  # alpha has no effect
            alpha, more = "", f"try more passes, or another solver than {model.solver_.name!r}"
        convex = bool(data.problem.surrogate.convex)
        fault = "bound the loss badly" if convex else "have led to a poor local optimum"
        if model.solver_.name == "sgd":
            steps = "the first steps of 'sgd' may be too large for so few passes: SGD(t0=1e5); "
        warnings.warn(
            f"the model {how}: {alpha}"
            "features may be uninformative, or surrogate "
            f"{data.problem.surrogate_name!r} may {fault}; " + steps + more,
            RuntimeWarning,
            stacklevel=3,
        )
