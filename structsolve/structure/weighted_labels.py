"""Labels with weights of nodes, as entries of y, and their losses."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..examples.packed import Examples
from ..utils.arrays import real_array
from ._weighted_losses import CountedZeroOne, WeightedNodeLoss
from .node_losses import NodeLoss


@dataclass(frozen=True, eq=False)
class WeightedLabels:
    """Labels of one example with a weight per node, as an entry of y.

    For structures that give every node a class: chains, trees, graphs, pictures.  Losses multiply
    errors at a node by its weight, in training and in scores.  For weights of true classes use
    ``class_weight``, for weights of examples ``sample_weight``.

    Parameters
    ----------
    labels : sequence or array
        The labels, as without weights.
    weights : array of the same shape
        Finite, at least 0.  A node of weight 0 keeps its true label, but errors there cost nothing.

    Examples
    --------
    >>> from structsolve import StructuredSVM, WeightedLabels
    >>> X = [[[1.0], [2.0], [-1.0]]]
    >>> model = StructuredSVM("chain", alpha=0.01).fit(X, [["on", "on", "off"]])
    >>> round(model.score(X, [["on", "off", "off"]]), 4)
    0.6667
    >>> round(model.score(X, [WeightedLabels(["on", "off", "off"], [5.0, 1.0, 1.0])]), 4)
    0.8571
    """

    labels: Any
    weights: Any

    def __len__(self) -> int:
        return len(self.labels)


def node_weights(y: WeightedLabels, i: int) -> np.ndarray:
    """Return the weights of the nodes of one example as an array of numbers.

    Parameters
    ----------
    y : WeightedLabels
    i : int
        The example, for messages.

    Returns
    -------
    ndarray of float64
        An array of any shape.

    Raises
    ------
    ValueError
        If they are no numbers.
    """
    try:
        return real_array(y.weights, "weights")
    except ValueError as error:
        raise ValueError(
            f"y, example {i}: weights are no numbers ({error}), expected one finite number of at "
            "least 0 per node"
        ) from None


def has_weights(Y: Any) -> bool:
    """Return whether entries of a list of labels are :class:`WeightedLabels`.

    Parameters
    ----------
    Y : labels as users give them

    Returns
    -------
    bool
    """
    listed = Y if isinstance(Y, (list, tuple, np.ndarray)) else ()
    return any(isinstance(y, WeightedLabels) for y in listed)


def split_weights(Y: Any, offsets: np.ndarray) -> tuple[Any, np.ndarray | None]:
    """Return labels without weights, and the weights of all nodes.

    Parameters
    ----------
    Y : labels as users give them
        Entries of a list may be :class:`WeightedLabels`.
    offsets : ndarray of int64 of shape (n + 1,)
        First node of each example.

    Returns
    -------
    Y : labels without weights
    weights : ndarray of float64 of shape (nodes,), or None
        1 for entries without weights; None if no entry has weights.

    Raises
    ------
    ValueError
        The message names the example and the node.

    Examples
    --------
    >>> import numpy as np
    >>> split_weights([["a"], WeightedLabels(["b", "a"], [2, 0])], np.array([0, 1, 3]))
    ([['a'], ['b', 'a']], array([1., 2., 0.]))
    """
    if isinstance(Y, WeightedLabels):
        raise ValueError("y is a WeightedLabels, expected a list with one for each example")
    if not has_weights(Y):
        return Y, None
    parts, weights = [], []
    for i, y in enumerate(Y):
        size = int(offsets[i + 1] - offsets[i]) if i < len(offsets) - 1 else len(y)
        if not isinstance(y, WeightedLabels):
            parts.append(y)
            weights.append(np.ones(size))
            continue
        if hasattr(y.labels, "keys") or hasattr(y.labels, "nodes"):
            raise ValueError(
                f"y, example {i}: WeightedLabels hold labels by node, expected a sequence of "
                "labels, as of weights, in the order of the nodes of the graph"
            )
        given = node_weights(y, i)
        if given.shape != (size,):
            raise ValueError(
                f"y, example {i}: found weights of shape {given.shape}, expected ({size},): one "
                "per node"
            )
        wrong = np.flatnonzero(~(np.isfinite(given) & (given >= 0)))
        if wrong.size:
            v = int(wrong[0])
            raise ValueError(
                f"y, example {i}, node {v}: the weight is {given[v]}, expected a finite number of "
                "at least 0"
            )
        parts.append(y.labels)
        weights.append(given)
    return parts, np.concatenate(weights)


def identify(examples: Examples, contents: np.ndarray) -> None:
    """Add contents to the identity of the topology; without one all contents are compared.

    Parameters
    ----------
    examples : Examples
        Changed: ``topology["identity"]``.
    contents : ndarray
        What the topology is about to hold.
    """
    topology = examples.topology
    if "identity" in topology:
        known = str(topology["identity"]).encode()
        topology["identity"] = hashlib.sha256(known + contents.tobytes()).hexdigest()


def weigh_nodes(examples: Examples, weights: np.ndarray | None) -> None:
    """Set the node weights of packed examples, for losses and checkpoints.

    Parameters
    ----------
    examples : Examples
        Changed: ``topology["node_weights"]``, and its ``"identity"``, if it has one.
    weights : ndarray of float64 of shape (nodes,), or None
        None: equal weights.
    """
    if weights is None:
        return
    identify(examples, weights)
    examples.topology["node_weights"] = weights


def bind_weighted(bind: Any, layout: Any) -> Any:
    """Return a loss over nodes with the weights ``topology["node_weights"]`` of the examples.

    Parameters
    ----------
    bind : callable
        ``layout -> Loss``, a loss of nodes or of whole labels, such as from :func:`make_node_loss`
        of ``structsolve.structure.node_losses``.
    layout : PartLayout

    Returns
    -------
    structsolve.operators.Loss
        The loss of ``bind`` if all weights are equal.
    """
    loss = bind(layout)
    weights = layout.examples.topology.get("node_weights")
    if weights is None:
        return loss
    if isinstance(loss, NodeLoss):
        return WeightedNodeLoss(loss.node_costs, weights, layout)
    return CountedZeroOne(weights, layout)
