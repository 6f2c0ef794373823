"""One number of every example's distribution of labels by its name, and its gradients."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from ..structure.ask import loss_advice
from ._distribution import Numbers, gradients_of, numbers_of
from ._loops import check_labels
from .answers import argmax
from .binding import Binding, binding_of, fingerprint
from .scores import Scores
from .values import answer_of, checked_weights, flat_labels, sheet_of


def number(
    kind: str,
    space: Any,
    scores: Scores,
    *,
    labels: Any = None,
    other: Scores | None = None,
    loss: Any = None,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Return one number of every example's distribution.

    Parameters
    ----------
    kind : str
        Name of a function of :mod:`structsolve.batch`; the others are its arguments.
    space, scores, labels, other, loss, n_jobs

    Returns
    -------
    ndarray of float64 of shape (n,)
    """
    binding = binding_of(space, scores)
    if kind == "expected_loss" and not costly(binding, loss).has_costs:
        logs = number("log_proba", space, scores, labels=labels, n_jobs=n_jobs)
        return -np.expm1(logs)
    operands = _operands(kind, binding, labels, loss)
    if other is not None:
        operands["other"] = _sheet_beside(other, scores, binding)
    numbers = Numbers(kind, sheet_of(scores, binding), gibbs(binding), **operands)
    values = np.empty(binding.layout.n)
    numbers_of(numbers, values, n_jobs, binding.rooms)
    return values


def number_gradient(
    kind: str,
    space: Any,
    scores: Scores,
    *,
    labels: Any = None,
    other: Scores | None = None,
    loss: Any = None,
    weights: Any = None,
    each: bool = False,
    by_other: bool = False,
    values: np.ndarray | None = None,
    n_jobs: int | None = None,
) -> Scores:
    """Return gradients of :func:`number` by the scores, or by the other ones.

    Parameters
    ----------
    kind, space, scores, labels, other, loss, n_jobs
        See :func:`number`.
    weights : ndarray of shape (n,), optional
        Factors of the examples.
    each : bool, default=False
        Shared blocks have one array for each example; else they are sums.
    by_other : bool, default=False
    values : ndarray of float64 of shape (n,), optional
        The numbers are written there; not with ``by_other``.

    Returns
    -------
    Scores
        In arrays like those of ``scores`` or ``other``.  The gradient of a log-probability of -inf
        is 0.

    Raises
    ------
    ValueError
        If the projection has no derivative, or a cross-entropy is infinite.
    """
    binding = binding_of(space, scores)
    projection, n = gibbs(binding), binding.layout.n
    weights = None if weights is None else checked_weights(weights, n)
    if kind == "expected_loss" and not costly(binding, loss).has_costs:
        logs = number("log_proba", space, scores, labels=labels, n_jobs=n_jobs)
        proba = np.exp(logs)
        if values is not None:
            values[:], values = -np.expm1(logs), None
        kind, weights = "log_proba", -proba * (1 if weights is None else weights)
    if kind not in ("log_partition", "log_proba") and not (by_other or projection.has_derivative):
        raise ValueError(
            f"structure {space.structure.name!r}: {kind} has no gradient, because the structure's "
            "marginals have no derivative here"
        )
    operands = _operands(kind, binding, labels, loss)
    own, second = (other, scores) if by_other and other is not None else (scores, other)
    source = _sheet_beside(own, scores, binding)
    if second is not None:
        operands |= {"other": _sheet_beside(second, scores, binding), "by_other": by_other}
    numbers = Numbers(kind, source, projection, **operands)
    answer, target = answer_of(own, source, binding, each)
    run: dict[str, Any] = {"bounds": binding.bounds, "n_jobs": n_jobs, "rooms": binding.rooms}
    gradients_of(numbers, target, weights=weights, values=values, **run)
    return answer


def gibbs(binding: Binding) -> Any:
    """Return the projection that sums over labels.

    Parameters
    ----------
    binding : Binding

    Returns
    -------
    Projection

    Raises
    ------
    ValueError
        Where the structure has none.
    """
    projection = binding.projection("entropy")
    if not projection.gibbs:
        raise ValueError(
            f"structure {binding.space.structure.name!r} has no sum over its labels, which is "
            "#P-hard: its projection 'entropy' gives marginals, whose entropy is not that of "
            "labels; argmax, k_best and marginals exist"
        )
    if not projection.exact:
        raise ValueError(
            f"structure {binding.space.structure.name!r} has only a bound of the sum over labels "
            "of these examples, and relaxed marginals; argmax and marginals exist"
        )
    return projection


def costly(binding: Binding, loss: Any) -> Any:
    """Return a loss that has expectations: by costs of parts, or as 0/1.

    Parameters
    ----------
    binding : Binding
    loss : str or loss object

    Returns
    -------
    Loss

    Raises
    ------
    ValueError
        For other losses, naming those that fit.
    """
    bound = binding.loss(loss)

    def fits(one: Any) -> bool:
        return bool(one.has_costs or one.zero_one)

    if not fits(bound):
        raise ValueError(
            f"loss {loss!r} of structure {binding.space.structure.name!r} has no expectation by "
            "marginals, because it is not linear in the parts of either label; "
            f"{loss_advice(binding.space, binding.layout, fits)}"
        )
    return bound


def _operands(kind: str, binding: Binding, labels: Any, loss: Any) -> dict[str, Any]:
    """Return the operators and checked labels that a number needs."""
    if labels is None and kind not in ("log_proba", "expected_loss"):
        return {}
    parts, labels = binding.parts(), flat_labels(labels)
    check_labels(binding.layout, labels, parts.n_states)
    if kind == "log_proba":
        return {"parts": parts, "labels": labels, "outside": _outside(binding, labels)}
    binding.space.check_labels(labels, binding.examples)
    return {"parts": parts, "labels": labels, "loss": binding.loss(loss)}


def _outside(binding: Binding, labels: np.ndarray) -> np.ndarray | None:
    """Return which examples have labels outside of the space; None if none has."""
    space, examples = binding.space, binding.examples
    offsets = examples.label_offsets

    def fits(flat: np.ndarray) -> bool:
        try:
            space.check_labels(flat, examples)
        except ValueError:
            return False
        return True

    if fits(labels):
        return None
    blocks: Any = (
        (space.layout.node, examples.offsets),
        (space.layout.edge, examples.edge_offsets),
    )
    node, edge = (
        None if block is None else np.zeros((int(rows[-1]), *block.shape)) for block, rows in blocks
    )
    zeros: Any = Scores(node, None, edge, examples)
    zeros.places = SimpleNamespace(space=space, binding=binding)
    inside, _, _ = argmax(space, zeros)
    outside = np.zeros(examples.n, dtype=bool)
    ranges = [(0, examples.n)]
    while ranges:  # halves, until all labels of a range fit, or it is one example
        first, last = ranges.pop()
        own = slice(int(offsets[first]), int(offsets[last]))
        flat = inside.copy()
        flat[own] = labels[own]
        if fits(flat):
            continue
        if last - first == 1:
            outside[first] = True
        else:
            middle = (first + last) // 2
            ranges += [(first, middle), (middle, last)]
    return outside


def _sheet_beside(given: Scores, scores: Scores, binding: Binding) -> Any:
    """Return a sheet of scores that must be of the same examples as others."""
    first, second = given.examples, scores.examples
    if first is not second and _sizes_of(first) != _sizes_of(second):
        raise ValueError(
            "other: its examples have other sizes or graphs than those of the first scores; "
            "expected scores of the same examples"
        )
    return sheet_of(given, binding)


def _sizes_of(examples: Any) -> Any:
    """Return sizes and graphs in a form that can be compared."""
    if examples is None:
        return None
    topology = examples.topology.get("identity", examples.topology)
    offsets = examples.offsets, examples.edge_offsets, examples.label_offsets
    return [fingerprint(one) for one in (*offsets, topology)]
