"""Surrogates at given part scores: values, and gradients by the scores."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from ..utils.arrays import real_array
from ._loops import gradients
from ._sheets import Sheet, one_for_each
from .binding import Binding, binding_of
from .scores import Scores


def value_and_gradient(
    space: Any,
    scores: Scores,
    labels: Any,
    surrogate: Any = "margin",
    loss: Any = "hamming",
    *,
    oracle: Any = None,
    weights: Any = None,
    n_jobs: int | None = None,
    out: Scores | None = None,
    each: bool = False,
) -> tuple[np.ndarray, Scores]:
    """Return a surrogate of every example at given scores, and its gradient by the scores.

    Parameters
    ----------
    space : Space
        From :func:`score_space`, or that of a trained model.
    scores : Scores
    labels : ndarray of int of shape (size of all labels,)
        True labels, encoded by the space, concatenated.
    surrogate : str or surrogate object, default="margin"
        See :class:`~structsolve.StructuredSVM`.
    loss : str or loss object, default="hamming"
        "auto" is that of the space, its ``default_loss``.
    oracle : str or structsolve.lp.Backend, optional
        Solver of linear programs that replaces the structure's oracle.
    weights : array of shape (n,), optional
        Factors of the examples' gradients, such as derivatives of a function of the values.
    n_jobs : int, optional
        Threads; results do not depend on it, bit for bit.
    out : Scores, optional
        Arrays for the gradient, of the shapes of those of ``scores``.
    each : bool, default=False
        The gradient's shared blocks have one array for each example, of shape (n, ...) with that
        of the block, as where those of ``scores`` have; then no ``out``.

    Returns
    -------
    values : ndarray of float64 of shape (n,)
        ``H_i(theta_i)``, or the least known upper bound if the oracle is not exact.
    gradient : Scores
        ``weights[i] * dH_i / dtheta_i`` for nodes and edges, in arrays like those of ``scores``; 0
        in rows that belong to no example.  For shared blocks the sum over the examples.

    Raises
    ------
    ValueError
        For unknown labels and NaN scores, naming the example; for arrays that do not fit, naming
        the block; for combinations that the structure, loss or surrogate does not allow.
    TypeError
        For arrays of another type.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.batch import Scores, score_space, value_and_gradient
    >>> chain = score_space("chain", 2)
    >>> node = np.array([[1.0, 0.0], [0.0, 0.5], [0.0, 0.0]])
    >>> scores = Scores(node, {"transition": np.zeros((2, 2))}, examples=chain.pack_sizes([2, 1]))
    >>> values, gradient = value_and_gradient(chain, scores, np.array([0, 0, 1]))
    >>> values.tolist()
    [1.5, 1.0]
    >>> gradient.node.tolist(), gradient.shared["transition"].tolist()
    ([[0.0, 0.0], [-1.0, 1.0], [1.0, -1.0]], [[-1.0, 1.0], [0.0, 0.0]])
    """
    binding = binding_of(space, scores)
    labels = flat_labels(labels)
    bind = partial(binding.surrogate, surrogate, loss, oracle, labels)
    bound = bind()
    source = sheet_of(scores, binding)
    if weights is not None:
        weights = checked_weights(weights, binding.layout.n)
    if out is not None and each and not source.shared_step:
        raise ValueError("out: expected None where each example has a gradient of its own")
    if out is not None:
        _prepare(out, scores)
    gradient, target = answer_of(scores, source, binding, each, out)
    values = np.empty(binding.layout.n)
    rooms, bounds = binding.rooms, binding.bounds
    run: dict[str, Any] = {"weights": weights, "values": values, "n_jobs": n_jobs, "rooms": rooms}
    binding.named(
        lambda bound: gradients(source, target, bound, labels, bounds=bounds, **run), bind, bound
    )
    return values, gradient


def sheet_of(
    scores: Scores,
    binding: Binding,
    placed: Scores | None = None,
    each: bool = False,
    written: bool = False,
) -> Sheet:
    """Return the checked arrays of scores, for loops.

    Parameters
    ----------
    scores : Scores
    binding : Binding
    placed : Scores, optional
        The scores whose rows determine the starts of examples; by default ``scores``.
    each, written : bool, default=False
        See :class:`Sheet`; scores that are read tell by their axes whether each example has
        shared blocks of its own.

    Returns
    -------
    Sheet

    Raises
    ------
    ValueError, TypeError
        See :class:`Sheet`; also if nodes have no scores.
    """
    if placed is None:
        placed = scores
        if scores.node is None and binding.layout.node_size:
            raise ValueError("scores: node is None, expected an array with one row for each node")
    shared, places = scores.shared, binding.places
    if shared is not None and not isinstance(shared, (dict, Mapping)):
        raise TypeError(
            f"scores: shared is {type(shared).__name__}, expected a dict of arrays by block"
        )
    if shared and not (each or written):
        each = one_for_each(shared, places)
    return Sheet(
        binding.layout,
        places,
        scores.node,
        shared,
        scores.edge,
        rows=placed.rows,
        edge_rows=placed.edge_rows,
        each=each,
        written=written,
    )


def like(scores: Scores, sheet: Sheet) -> Scores:
    """Return arrays of the shapes and types of scores; 0 if loops may not write.

    Parameters
    ----------
    scores : Scores
    sheet : Sheet
        Sheet of these scores.

    Returns
    -------
    Scores
    """
    return Scores(
        _empty(sheet.node_array, scores.rows),
        {
            name: np.empty_like(a, order="C")
            for name, a in (scores.shared or {}).items()
            if a is not None
        },
        _empty(sheet.edge_array, scores.edge_rows),
        scores.examples,
        scores.rows,
        scores.edge_rows,
    )


def answer_of(
    scores: Scores, sheet: Sheet, binding: Binding, each: bool, out: Scores | None = None
) -> tuple[Scores, Sheet]:
    """Return arrays for an answer in the form of scores, and their sheet.

    Parameters
    ----------
    scores : Scores
    sheet : Sheet
        Sheet of these scores.
    binding : Binding
    each : bool
        The answer has one array of each shared block for each example, even if the scores have one
        for all.
    out : Scores, optional
        The arrays, if there are some.

    Returns
    -------
    answer : Scores
    sheet : Sheet
    """
    own = bool(sheet.shared_step)
    answer = like(scores, sheet) if out is None else out
    if out is None and each and not own:
        answer.shared = {
            name: np.empty((scores.examples.n, *array.shape), array.dtype)
            for name, array in (answer.shared or {}).items()
        }
    return answer, sheet_of(answer, binding, scores, each=each or own, written=True)


def _empty(array: np.ndarray | None, rows: Any) -> np.ndarray | None:
    if array is None:
        return None
    return np.empty_like(array) if rows is None else np.zeros_like(array)


def _prepare(out: Scores, scores: Scores) -> None:
    """Refuse arrays for gradients of other shapes; fill rows that loops do not write with 0."""
    given = {"node": scores.node, "edge": scores.edge, **(scores.shared or {})}
    taken = {"node": out.node, "edge": out.edge, **(out.shared or {})}
    for name in {*given, *taken}:
        shape, expected = (
            None if one is None else np.shape(one) for one in (taken.get(name), given.get(name))
        )
        if shape != expected:
            raise ValueError(
                f"out: block {name!r} has shape {shape}, expected {expected} as in scores"
            )
        if shape is not None and any(
            np.shares_memory(taken[name], array) for array in given.values() if array is not None
        ):
            raise ValueError(
                f"out: block {name!r} lies in the memory of the scores, expected one of its own"
            )
    for array, rows in ((out.node, scores.rows), (out.edge, scores.edge_rows)):
        if array is not None and rows is not None:
            array.fill(0)


def flat_labels(labels: Any) -> np.ndarray:
    """Return labels as int32, contiguous.

    Parameters
    ----------
    labels : array of int of shape (size of all labels,)

    Returns
    -------
    ndarray of int32

    Raises
    ------
    ValueError
        For another type or shape.
    """
    try:
        given = np.asarray(labels)
    except ValueError:  # rows of several lengths
        raise ValueError(
            "labels: found rows of several lengths, expected integers in one row, those of one "
            "example after the other's: np.concatenate(labels)"
        ) from None
    if given.dtype.kind not in "iu" or given.ndim != 1:
        raise ValueError(
            f"labels: found {given.dtype} of shape {given.shape}, expected integers in one row, "
            "as the space encodes them"
        )
    if given.dtype == np.int32:
        return np.ascontiguousarray(given)
    flat = given.astype(np.int32)
    if not np.array_equal(flat, given):
        raise ValueError("labels: found numbers of 2^31 or more, expected states")
    return flat


def checked_weights(weights: Any, n: int) -> np.ndarray:
    """Return factors of examples as doubles.

    Parameters
    ----------
    weights : array of shape (n,)
    n : int

    Returns
    -------
    ndarray of float64

    Raises
    ------
    ValueError
        For another shape, and numbers that are not finite.
    """
    given = np.ascontiguousarray(real_array(weights, "weights"))
    if given.shape != (n,) or not np.isfinite(given).all():
        raise ValueError(
            f"weights: found shape {given.shape}, expected {n} finite numbers, one per example"
        )
    return given
