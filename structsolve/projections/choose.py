"""Projections that the core makes itself: max-min oracles, the Euclidean one over any oracle."""

from __future__ import annotations

from typing import Any

import numpy as np

GEOMETRIES = ("auto", "labels", "entropy", "euclidean")


def max_min_projection(problem: Any, settings: Any) -> Any:
    """Return the projection whose G is ``min_nu nu' A mu`` for the loss of a problem.

    Parameters
    ----------
    problem : Problem
    settings : structsolve.surrogates.MaxMin

    Returns
    -------
    Projection
        A closed form where a plugin has one (hook ``structsolve_max_min``), else a search.

    Raises
    ------
    ValueError
        When the loss is not bilinear in the marginals, or a setting is none.
    """
    from .. import registry
    from ..operators import Projection
    from .double_oracle import DoubleOracle
    from .saddle import SaddleProx

    space, examples, loss = problem.space, problem.examples, problem.loss
    name = space.structure.name
    if settings.geometry not in GEOMETRIES:
        raise ValueError(
            f"surrogate 'max-min': geometry is {settings.geometry!r}, expected one of {GEOMETRIES}"
        )
    if not loss.has_costs:
        raise ValueError(
            f"surrogate 'max-min' needs a loss that is linear in the parts of either label; "
            f"{type(loss).__name__} on structure {name!r} is not; use loss='hamming'"
        )
    if settings.closed_form:
        found = registry.default().ask(
            "structsolve_max_min",
            Projection,
            space=space,
            examples=examples,
            loss=loss,
            potentials=problem.potentials,
        )
        if found is not None:
            return found
    euclidean = settings.geometry != "entropy"
    given: dict[str, Any] = {
        "potentials": problem.potentials,
        "oracle": problem.oracle,
        "loss": loss,
        "parts": problem.parts,
        "labels": examples.labels,
        "label_offsets": examples.label_offsets,
        "rows": _rows(problem, euclidean),
        "max_iter": int(settings.max_iter),
        "tol": float(settings.tol),
        "warm_start": bool(settings.warm_start),
    }
    if settings.geometry in ("auto", "labels"):
        return DoubleOracle(**given)
    if euclidean:
        projection = euclidean_projection(
            space, examples, problem.potentials, problem.oracle, problem.parts
        )
    else:
        projection = registry.default().ask(
            "structsolve_projection",
            Projection,
            space=space,
            examples=examples,
            regularizer="entropy",
        )
        if projection is None:
            raise ValueError(
                f"surrogate 'max-min': structure {name!r} has no projection 'entropy'; use "
                "geometry='euclidean'"
            )
    return SaddleProx(projection=projection, **given)


def euclidean_projection(
    space: Any,
    examples: Any,
    potentials: Any,
    oracle: Any,
    parts: Any,
    max_iter: int = 100,
    tol: float = 1e-9,
) -> Any:
    """Return the projection "euclidean": the structure's own, else one over its oracle.

    Parameters
    ----------
    space, examples, potentials, oracle, parts
        Of a problem.
    max_iter : int
        Oracle calls per answer at most, over the oracle.
    tol : float
        Relative accuracy, over the oracle.
    """
    from .. import registry
    from ..operators import Projection
    from .active_set import ActiveSet

    found = registry.default().ask(
        "structsolve_projection",
        Projection,
        space=space,
        examples=examples,
        regularizer="euclidean",
    )
    if found is not None:
        return found
    sizes = np.diff(examples.label_offsets)
    return ActiveSet(potentials, oracle, parts, sizes, max_iter, tol)


def _rows(problem: Any, euclidean: bool) -> Any:
    """Return the projection of single nodes, where nu needs no more than that."""
    from ..structure.node_losses import NodeLoss
    from .rows import RowSoftmax, RowSparsemax

    space = problem.space
    if not (isinstance(problem.loss, NodeLoss) and free_nodes(space)):
        return None
    return (RowSparsemax if euclidean else RowSoftmax)(problem.potentials)


def free_nodes(space: Any) -> bool:
    """Tell whether every node has the same states and may take any, whatever the others do."""
    from ..structure.base import NodeSpace

    node = space.layout.node
    return (
        isinstance(space, NodeSpace)
        and getattr(space, "free_nodes", True)
        and node is not None
        and node.shape == (len(space.classes_),)
    )


def node_closed_form(space: Any, loss: Any, potentials: Any) -> Any:
    """Return the max-min margin of nodes without pairs under 0-1 or absolute costs, or None."""
    from ..structure.node_losses import NodeLoss
    from .rows import RowMaxMin

    if not (isinstance(loss, NodeLoss) and free_nodes(space) and len(space.layout.blocks) == 1):
        return None
    K = len(space.classes_)
    cost = loss.cost_matrix[:K]
    scale = float(cost[0, -1]) if K > 1 else 0.0
    if K < 2 or not scale > 0:
        return None
    steps = np.abs(np.subtract.outer(np.arange(K), np.arange(K)))
    if np.array_equal(cost, scale * (1 - np.eye(K))):
        return RowMaxMin(potentials, "zero-one", scale, loss.averaged)
    if np.allclose(cost, scale / (K - 1) * steps, rtol=1e-12, atol=0):
        return RowMaxMin(potentials, "absolute", scale / (K - 1), loss.averaged)
    return None
