"""Weights of leaves, as weights of examples."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.estimators.class_weight import weighed_examples, weights_of_classes
from structsolve.examples.packed import Examples


def weighed_leaves(given: Any, space: Any, examples: Examples) -> Examples:
    """Return examples of one leaf each, weighed by their leaves.

    Parameters
    ----------
    given : None, "balanced" or mapping
        "balanced" is the weight of all examples over the number of leaves that occur times the
        weight of those of the leaf.
    space : Space
        Space of a hierarchy; labels are columns of its nodes where it is ``single``.
    examples : Examples
        Packed, with labels.

    Returns
    -------
    Examples

    Raises
    ------
    ValueError
        If labels are sets, or a name is not a leaf.
    """
    if given is None:
        return examples
    if not space.single:
        raise ValueError(
            f"class_weight is {given!r}, but labels are sets of nodes, not one leaf each; weigh "
            "examples by fit(..., sample_weight=), or give loss=ClassWeights({node: weight})"
        )
    used, labels = np.unique(examples.labels, return_inverse=True)
    names = space.hierarchy.nodes[used]
    weights = weights_of_classes(given, space.classes_, names, labels, examples.sample_weight)
    return weighed_examples(given, weights[labels], examples)
