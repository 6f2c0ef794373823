"""Exact steps of BCFW: where the dual variable of an example is a projection, and the loops."""

from __future__ import annotations

from typing import Any

from ..operators import Projection
from ..structure.ask import ask
from ._box import BoxLoop
from ._hull import HullLoop
from ._simplex import SimplexLoop
from .problem import Problem


def simplex_duals(problem: Problem) -> bool:
    """Return whether dual variables are points of a simplex of labels that share no parts.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    bool
    """
    return bool(problem.surrogate.has_simplex and _one_row(problem.potentials))


def _one_row(potentials: Any) -> bool:
    """Whether each example has one row of features, and those of all labels one norm."""
    parts = potentials.shared_size or potentials.edge_size or potentials.max_nodes > 1
    return not parts and potentials.plain_nodes


def n_labels(problem: Problem) -> int:
    """Return the number of labels of a problem of :func:`simplex_duals`.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    int
    """
    return int(problem.potentials.layout.node.shape[0])  # type: ignore[union-attr]


def box_duals(problem: Problem) -> bool:
    """Return whether dual variables are points of a box: every part is decided separately.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    bool
    """
    potentials = problem.potentials
    return bool(
        problem.space.separate_parts
        and problem.adds_up
        and potentials.has_weights
        and potentials.plain_nodes
    )


def hull_projection(problem: Problem) -> Any:
    """Return the projection that makes an exact step where labels share parts.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    Projection or None
        None if dual variables are more than points of the hull of labels over one row of features,
        or if the structure has no exact Euclidean projection onto that hull.
    """
    over_hull = getattr(problem.surrogate, "over_hull", False)
    if not (over_hull and problem.potentials.has_weights and _one_row(problem.potentials)):
        return None
    bind = ask("structsolve_projection", Projection, problem.space, regularizer="euclidean")
    projection = None if bind is None else bind(problem.task.layout)
    return projection if projection is not None and projection.exact else None


def exact_loop(solver: Any, problem: Problem, alpha: float, constrained: bool) -> Any:
    """Return the loop of a run that takes exact steps.

    Parameters
    ----------
    solver : BCFW
    problem : Problem
    alpha : float
    constrained : bool
        The weights have constraints.

    Returns
    -------
    SimplexLoop, BoxLoop, HullLoop or None
        None if steps are pairwise.

    Raises
    ------
    ValueError
        If ``steps`` is "exact" and there are none.
    """
    arguments = (problem.potentials, problem.surrogate, problem.labels, problem.weights, alpha)
    if solver.steps == "exact" and constrained:
        raise ValueError(
            "BCFW: steps is 'exact', which constraints exclude: w is projected after a "
            "step; use steps='pairwise'"
        )
    if solver.steps not in ("auto", "exact") or constrained:
        return None
    if simplex_duals(problem):
        return SimplexLoop(*arguments, solver.max_cuts)
    if box_duals(problem):
        return BoxLoop(*arguments, solver.max_cuts, problem.parts, problem.loss)
    # Threads visit a batch with pairwise steps only.
    projection = None if solver.batch > 1 else hull_projection(problem)
    if projection is not None:
        return HullLoop(*arguments, projection, problem.loss, problem.parts)
    if solver.steps == "exact":
        raise ValueError(
            "BCFW: steps='exact' needs one row of features per example, a structure such as "
            "'multiclass' whose labels share no parts or that has an exact Euclidean projection, "
            "no scaled parts, batch=1 and a loss that decomposes; "
            f"{problem.space.structure.name!r} with {type(problem.loss).__name__} has none; use "
            "steps='pairwise'"
        )
    return None
