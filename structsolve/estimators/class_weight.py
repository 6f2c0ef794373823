"""``class_weight`` of estimators: weights of examples, or of errors on nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .. import registry
from ..examples.packed import Examples
from ..structure.losses import ClassWeights
from ..structure.node_space import NodeSpace

# Losses that can be multiplied by a weight of the true class.
WEIGHED = {"hamming": False, "normalized-hamming": True}

WEIGHTLESS = "class_weight is {!r}, under which no example of y weighs anything"


def check_class_weight(given: Any) -> None:
    """Raise an error for an invalid ``class_weight``.

    Parameters
    ----------
    given : object

    Raises
    ------
    TypeError, ValueError
        Unless it is None, "balanced" or a mapping of classes to weights of at least 0.
    """
    if given is None or (isinstance(given, str) and given == "balanced"):
        return
    if isinstance(given, str):
        raise ValueError(f"class_weight is {given!r}, expected None, 'balanced' or a dict")
    if not isinstance(given, Mapping):
        raise TypeError(f"class_weight is {given!r}, expected None, 'balanced' or a dict")
    for name, weight in given.items():
        number = isinstance(weight, (int, float, np.integer, np.floating))
        if not number or not np.isfinite(weight) or weight < 0:
            raise ValueError(
                f"class_weight: the weight of class {name!r} is {weight!r}, expected a finite "
                "number of at least 0"
            )


def class_weights(given: Any, space: Any, examples: Examples) -> np.ndarray:
    """Return the weight of each class.

    Parameters
    ----------
    given : "balanced" or mapping
        Checked by :func:`check_class_weight`.  "balanced" is the weight of all nodes over the
        number of classes times the weight of those of the class; it is 1 for a class without nodes.
    space : Space
    examples : Examples
        Packed, with labels; weights of examples and of nodes count.

    Returns
    -------
    ndarray of shape (K,)
        In the order of ``space.classes_``.

    Raises
    ------
    ValueError
        If labels are not one class per node, or a name is not a class.
    """
    structure = space.structure
    if not isinstance(space, NodeSpace):
        raise ValueError(
            f"class_weight is {given!r}, but labels of structure {structure.name!r} do not give "
            "each node one class; weigh examples by fit(..., sample_weight=), or give a loss of "
            "the structure"
        )
    sizes = np.diff(examples.label_offsets)
    counts = examples.topology.get("node_weights")
    counts = np.ones(int(sizes.sum())) if counts is None else np.array(counts, dtype=np.float64)
    if examples.sample_weight is not None:
        counts = counts * np.repeat(examples.sample_weight, sizes)
    weights = weights_of_classes(given, space.classes_, space.classes_, examples.labels, counts)
    if not (weights[examples.labels] * counts).any():
        raise ValueError(WEIGHTLESS.format(given))
    return weights


def weights_of_classes(
    given: Any, known: np.ndarray, names: np.ndarray, labels: np.ndarray, counts: Any
) -> np.ndarray:
    """Return the weights of the classes with these names, from the total weight of each.

    Parameters
    ----------
    given : "balanced" or mapping
    known, names : ndarray
        All classes, and those of ``labels``.
    labels : ndarray of int
    counts : ndarray or None
        Weights of the labels.

    Returns
    -------
    ndarray of float
    """
    if given != "balanced":
        every = known.tolist()
        strange = [name for name in given if name not in every]
        if strange:
            raise ValueError(f"class_weight: unknown classes {strange}; known: {every}")
        return np.array([float(given.get(name, 1.0)) for name in names.tolist()])
    sums = np.bincount(labels, weights=counts, minlength=len(names))
    present = sums > 0
    weights = np.ones(len(names))
    weights[present] = sums.sum() / (present.sum() * sums[present])
    return weights


def weighed_examples(given: Any, own: np.ndarray, examples: Examples) -> Examples:
    """Return examples whose weights are multiplied by factors.

    Parameters
    ----------
    given : "balanced" or mapping
        For the message.
    own : ndarray of shape (n,)
    examples : Examples

    Returns
    -------
    Examples
    """
    if examples.sample_weight is not None:
        own = own * examples.sample_weight
    if not own.any():
        raise ValueError(WEIGHTLESS.format(given))
    return replace(examples, sample_weight=own)


def weighed(
    given: Any, loss: Any, surrogate: Any, space: Any, examples: Examples
) -> tuple[Any, Examples]:
    """Return the loss and the examples that training with ``class_weight`` takes.

    Parameters
    ----------
    given : None, "balanced" or mapping
    loss, surrogate : str or object
        Parameters of the estimator.
    space : Space
    examples : Examples
        Packed, with labels.

    Returns
    -------
    loss : str or object
        With several nodes a :class:`~structsolve.ClassWeights`.
    examples : Examples
        Examples of one node are weighed by their class, as in scikit-learn, for any loss.

    Raises
    ------
    ValueError
        If weights of classes have no meaning; see also :func:`class_weights`.
    """
    if given is None:
        return loss, examples
    if isinstance(space, NodeSpace) and space.structure.single_node:
        own = class_weights(given, space, examples)[examples.labels]
        return loss, weighed_examples(given, own, examples)
    surrogate = registry.default().object_of("surrogates", surrogate)
    if not getattr(surrogate, "reads_loss", True):
        raise ValueError(
            f"class_weight is {given!r}, but surrogate {surrogate.name!r} does not depend on the "
            "loss, and a label of several nodes has one likelihood; use surrogate='slack' or "
            "'margin', or weigh examples by fit(..., sample_weight=)"
        )
    return weighed_loss(given, loss, space, examples), examples


def weighed_loss(given: Any, loss: Any, space: Any, examples: Examples) -> Any:
    """Return the loss that multiplies errors on nodes by the weights of the true classes.

    Parameters
    ----------
    given : None, "balanced" or mapping
    loss : str or object
    space : Space
    examples : Examples
        Packed, with labels.

    Returns
    -------
    str or loss object
        ``loss`` itself where ``given`` is None.

    Raises
    ------
    ValueError
        If the loss is not a Hamming loss; see also :func:`class_weights`.
    """
    if given is None:
        return loss
    weights = class_weights(given, space, examples)
    if not isinstance(loss, str) or loss not in WEIGHED:
        raise ValueError(
            f"class_weight is {given!r} and loss is {loss!r}, expected one of {list(WEIGHED)}; "
            "put the weights into the loss, such as a CostMatrix, and leave class_weight out"
        )
    return ClassWeights(dict(zip(space.classes_.tolist(), weights.tolist())), WEIGHED[loss])
