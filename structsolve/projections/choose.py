"""Projections of the core: max-min oracles, and the Euclidean projection over any oracle."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..lp.ask import ask_oracle
from ..operators import Loss, Projection
from ..structure.ask import Bind, ask, ask_parts, ask_projection, loss_advice
from ..structure.base import Space, inherits
from ..structure.node_losses import NodeLoss
from ..structure.node_space import NodeSpace
from ..utils.params import check_choice
from .active_set import ActiveSet
from .double_oracle import DoubleOracle
from .rows import NodeRows, RowMaxMin, RowSoftmax, RowSparsemax
from .saddle import SaddleProx

GEOMETRIES = ("auto", "labels", "entropy", "euclidean")


def max_min_projection(task: Any, settings: Any) -> Projection:
    """Return the projection whose G is ``min_nu nu' A mu`` for the loss of a task.

    Parameters
    ----------
    task : structsolve.surrogates.task.Task
        A task with labels.
    settings : structsolve.surrogates.MaxMin

    Returns
    -------
    Projection
        A closed form if a plugin has one (hook ``structsolve_max_min``), else a search.

    Raises
    ------
    ValueError
        If the loss is not bilinear in the marginals, labels are missing, or the geometry is
        unknown or missing in the structure.
    """
    space, layout, loss = task.space, task.layout, task.loss
    name = space.structure.name
    check_choice("surrogate 'max-min': geometry", settings.geometry, GEOMETRIES)
    if not loss.has_costs:
        raise ValueError(
            f"surrogate 'max-min' needs a loss that is linear in the parts of either label; "
            f"{loss} on structure {name!r} is not; "
            f"{loss_advice(space, layout, lambda one: one.has_costs)}"
        )
    if settings.closed_form:
        bind = ask("structsolve_max_min", Projection, space, loss=loss, layout=layout)
        closed_form: Projection | None = None if bind is None else bind(layout)
        if closed_form is not None:
            return closed_form
    if task.labels is None:
        raise ValueError(
            "surrogate 'max-min' has no closed form here, and needs true labels to seek its saddle "
            "point: give the task examples with labels"
        )
    euclidean = settings.geometry != "entropy"
    arguments: dict[str, Any] = {
        "layout": layout,
        "oracle": task.oracle,
        "loss": loss,
        "parts": task.parts,
        "labels": task.labels,
        "rows": _node_rows(task, euclidean),
        "max_iter": int(settings.max_iter),
        "tol": float(settings.tol),
        "warm_start": bool(settings.warm_start),
    }
    if settings.geometry in ("auto", "labels"):
        return DoubleOracle(**arguments)
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
    # A softmax needs wider scores than a Euclidean projection to put nearly all weight on a label.
    widest = 4.0 if euclidean else 20.0
    return SaddleProx(projection=projection, widest=widest, **arguments)


def euclidean_projection(task: Any, max_iter: int = 100, tol: float = 1e-9) -> Projection:
    """Return the projection "euclidean", bound to the examples of a task.

    Parameters
    ----------
    task : structsolve.surrogates.task.Task
    max_iter, tol
        See :func:`ask_euclidean`.

    Returns
    -------
    Projection
    """
    bind = ask_euclidean(task.space, lambda _: task.oracle, lambda _: task.parts, max_iter, tol)
    return bind(task.layout)


def ask_euclidean(
    space: Space, oracle: Bind, parts: Bind, max_iter: int = 100, tol: float = 1e-9
) -> Bind:
    """Return a factory for the projection "euclidean": the structure's, or one over its oracle.

    Parameters
    ----------
    space : Space
    oracle, parts : callable
        From a PartLayout to these operators.
    max_iter : int
        Maximum number of oracle calls per answer, for the projection over the oracle.
    tol : float
        Relative accuracy, for the projection over the oracle.

    Returns
    -------
    callable
        From a PartLayout to the Projection of its examples.
    """
    own = ask("structsolve_projection", Projection, space, regularizer="euclidean")
    if own is not None:
        return own
    return lambda layout: ActiveSet(oracle(layout), parts(layout), max_iter, tol)


def named_projection(space: Space, name: str) -> Bind:
    """Return a factory for a projection by its name; every structure has "euclidean".

    Parameters
    ----------
    space : Space
    name : str

    Returns
    -------
    callable
        From a PartLayout to the Projection of its examples.

    Raises
    ------
    ValueError
        If the structure has no other one of this name.
    """
    if name != "euclidean":
        return ask_projection(space, name)
    return ask_euclidean(space, ask_oracle(space), ask_parts(space))


def _node_rows(task: Any, euclidean: bool) -> NodeRows | None:
    """Return the projection of single nodes, if nu needs only that."""
    space = task.space
    if not (isinstance(task.loss, NodeLoss) and free_nodes(space)):
        return None
    return (RowSparsemax if euclidean else RowSoftmax)(len(space.classes_), task.layout)


def free_nodes(space: Space) -> bool:
    """Return whether every node may take any class, independent of the others.

    Then the marginals of single nodes range over a product of simplices.

    Parameters
    ----------
    space : Space
        It may have an attribute ``free_nodes``.  Without one, a
        :class:`~structsolve.structure.node_space.NodeSpace` has free nodes if it inherits
        ``enumerate_labels`` and ``contains``: one that tells its labels itself may have fewer.

    Returns
    -------
    bool
    """
    node = space.layout.node
    if not isinstance(space, NodeSpace) or node is None or node.shape != (len(space.classes_),):
        return False
    inherited = inherits(space, NodeSpace, "enumerate_labels", "contains")
    return bool(getattr(space, "free_nodes", inherited))


def node_closed_form(space: Space, loss: Loss) -> Bind | None:
    """Return a factory for the max-min margin of nodes without pairs, 0-1 or absolute costs.

    Parameters
    ----------
    space : Space
    loss : Loss
        Bound to the examples.

    Returns
    -------
    callable or None
        ``layout -> RowMaxMin``; None for other spaces and costs.
    """
    if not (isinstance(loss, NodeLoss) and free_nodes(space) and len(space.layout.blocks) == 1):
        return None
    K = len(space.classes_)
    cost = loss.cost_matrix[:K]
    scale = float(cost[0, -1]) if K > 1 else 0.0
    if K < 2 or not scale > 0:
        return None
    steps = np.abs(np.subtract.outer(np.arange(K), np.arange(K)))
    if np.array_equal(cost, scale * (1 - np.eye(K))):
        return partial(RowMaxMin, K, "zero-one", scale, loss.averaged)
    if np.allclose(cost, scale / (K - 1) * steps, rtol=1e-12, atol=0):
        return partial(RowMaxMin, K, "absolute", scale / (K - 1), loss.averaged)
    return None
