"""Projections that the core makes itself: max-min oracles, the Euclidean one over any oracle."""

from __future__ import annotations

from typing import Any

import numpy as np

GEOMETRIES = ("auto", "labels", "entropy", "euclidean")


def max_min_projection(task: Any, settings: Any) -> Any:
    """Return the projection whose G is ``min_nu nu' A mu`` for the loss of a task.

    Parameters
    ----------
    task : structsolve.surrogates.task.Task
        With labels.
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
    from ..structure.ask import ask
    from .double_oracle import DoubleOracle
    from .saddle import SaddleProx

    space, layout, loss = task.space, task.layout, task.loss
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
        closed_form = registry.default().ask(
            "structsolve_max_min", Projection, space=space, loss=loss, layout=layout
        )
        if closed_form is not None:
            return closed_form
    if task.labels is None:
        raise ValueError(
            "surrogate 'max-min' has no closed form here, and needs true labels to seek its saddle "
            "point: give the task examples with labels"
        )
    euclidean = settings.geometry != "entropy"
    given: dict[str, Any] = {
        "layout": layout,
        "oracle": task.oracle,
        "loss": loss,
        "parts": task.parts,
        "labels": task.labels,
        "rows": _rows(task, euclidean),
        "max_iter": int(settings.max_iter),
        "tol": float(settings.tol),
        "warm_start": bool(settings.warm_start),
    }
    if settings.geometry in ("auto", "labels"):
        return DoubleOracle(**given)
    if euclidean:
        projection = euclidean_projection(task)
    else:
        entropy = ask("structsolve_projection", Projection, space, regularizer="entropy")
        if entropy is None:
            raise ValueError(
                f"surrogate 'max-min': structure {name!r} has no projection 'entropy'; use "
                "geometry='euclidean'"
            )
        try:
            projection = entropy(layout)
        except ValueError as error:
            raise ValueError(f"surrogate 'max-min': {error}; use geometry='euclidean'") from None
    return SaddleProx(projection=projection, **given)


def euclidean_projection(task: Any, max_iter: int = 100, tol: float = 1e-9) -> Any:
    """Return the projection "euclidean" of a task; see :func:`ask_euclidean`."""
    bind = ask_euclidean(task.space, lambda _: task.oracle, lambda _: task.parts, max_iter, tol)
    return bind(task.layout)


def ask_euclidean(
    space: Any, oracle: Any, parts: Any, max_iter: int = 100, tol: float = 1e-9
) -> Any:
    """Return what binds the projection "euclidean": the structure's own, or one over its oracle.

    Parameters
    ----------
    space : Space
    oracle, parts : callable
        What binds these operators.
    max_iter : int
        Oracle calls per answer at most, over the oracle.
    tol : float
        Relative accuracy, over the oracle.
    """
    from ..operators import Projection
    from ..structure.ask import ask
    from .active_set import ActiveSet

    own = ask("structsolve_projection", Projection, space, regularizer="euclidean")
    if own is not None:
        return own
    return lambda layout: ActiveSet(oracle(layout), parts(layout), max_iter, tol)


def _rows(task: Any, euclidean: bool) -> Any:
    """Return the projection of single nodes, where nu needs no more than that."""
    from ..structure.node_losses import NodeLoss
    from .rows import RowSoftmax, RowSparsemax

    space = task.space
    if not (isinstance(task.loss, NodeLoss) and free_nodes(space)):
        return None
    return (RowSparsemax if euclidean else RowSoftmax)(len(space.classes_), task.layout)


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


def node_closed_form(space: Any, loss: Any, layout: Any) -> Any:
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
        return RowMaxMin(K, "zero-one", scale, loss.averaged, layout)
    if np.allclose(cost, scale / (K - 1) * steps, rtol=1e-12, atol=0):
        return RowMaxMin(K, "absolute", scale / (K - 1), loss.averaged, layout)
    return None
