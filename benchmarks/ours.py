"""Our side of the benchmarks: estimators for each comparison.

If a default changes or an option of a solver is renamed, only this file changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def chain_svm(
    structsolve: Any,
    alpha: float,
    max_iter: int,
    *,
    tol: float = 0.0,
    intercept: bool = True,
    ends: bool = False,
    **options: Any,
) -> Any:
    """A chain SVM, by the default solver unless `options` names another."""
    return structsolve.StructuredSVM(
        structure=structsolve.get_structure("chain", start_end=ends),
        alpha=alpha,
        max_iter=max_iter,
        tol=tol,
        fit_intercept=intercept,
        **options,
    )


def plain_bcfw() -> Any:
    """The solver object of a textbook BCFW: one oracle call a step, Frank-Wolfe steps only."""
    from structsolve.solvers import BCFW

    return BCFW(steps="frank-wolfe", max_steps=1, cached_passes=0, certify_every=1_000_000)


def uncertified() -> Any:
    """The default solver without passes that certify, to time its other passes alone."""
    from structsolve.solvers import BCFW

    return BCFW(certify_every=1_000_000)


def over_hull(name: str) -> Any:
    """The surrogate by name; surrogates with a search maximise over the hull of labels' points."""
    from structsolve.registry import default

    surrogate = default().make("surrogates", name)
    return surrogate.set_params(relaxed=True) if hasattr(surrogate, "make_psi") else surrogate


def oracle_passes(model: Any, n: int) -> float:
    """Oracle calls of a fit, in passes over n examples."""
    return sum(row["oracle_calls"] for row in model.history_) / n


def flat_weights(model: Any, n_features: int, n_classes: int) -> np.ndarray:
    """Node weights and the transition table as one array, in the layout of the C loop."""
    arrays = list(model.coef_.values())
    node = next(a for a in arrays if a.shape == (n_features, n_classes))
    shared = next(a for a in arrays if a.shape == (n_classes, n_classes))
    return np.concatenate([np.ravel(node), np.ravel(shared)])


def last_gap(model: Any) -> tuple[float, float, bool]:
    """Primal, dual and whether they are certified, at the end of a fit."""
    row = model.history_[-1]
    return row["primal"], row["dual"], bool(row.get("certified", False))


def cutting_planes() -> dict[str, Any]:
    """Name -> solver of the cutting-plane form whose passes run in threads."""
    from structsolve.solvers import CuttingPlane

    return {"one-slack cutting planes": CuttingPlane(slack="one")}
