"""Operators for one of K classes per row, with one score per class or thresholds.

Compiled modules are imported where operators are made: listing structures needs none of them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from structsolve.structure.operator_hooks import integral_relaxation


def row_oracle(space: Any) -> Any:
    """Return a factory for the oracle: the largest of K scores.

    Parameters
    ----------
    space : RowSpace

    Returns
    -------
    callable
    """
    from structsolve.algorithms.class_operators import ClassOracle

    return partial(ClassOracle, space.steps)


def row_power(space: Any, power: str) -> Any:
    """Return a factory for a power: k best, cones, relaxation.

    Parameters
    ----------
    space : RowSpace
    power : str

    Returns
    -------
    callable or None
    """
    from structsolve.algorithms.class_operators import ClassCones, ClassKBest

    if power == "relaxation":  # the hull of the parts is a simplex
        return integral_relaxation(space)
    powers = {"kbest": ClassKBest, "cones": ClassCones}
    return partial(powers[power], space.steps) if power in powers else None


def class_parts() -> Any:
    """Return a factory for the parts of classes with one score each, one part per class.

    Returns
    -------
    callable
    """
    from structsolve.plugins.multiclass._oracle import MulticlassParts

    return MulticlassParts


def class_power(space: Any, power: str) -> Any:
    """Return a factory for a power of classes with one score each: max-marginals, counts, others.

    Parameters
    ----------
    space : ScoredClasses
    power : str

    Returns
    -------
    callable or None
    """
    from structsolve.plugins.multiclass import _oracle

    powers = {"max-marginals": _oracle.MulticlassMaxMarginals, "counts": _oracle.MulticlassCounts}
    return powers[power] if power in powers else row_power(space, power)


def row_projection(space: Any, regularizer: str) -> Any:
    """Return a factory for softmax ("entropy") or sparsemax ("euclidean") of the classes' scores.

    Parameters
    ----------
    space : RowSpace
    regularizer : str

    Returns
    -------
    callable or None
    """
    from structsolve.algorithms.class_operators import ClassProjection

    if regularizer not in ("entropy", "euclidean"):
        return None
    return partial(ClassProjection, space.steps, regularizer == "entropy")
