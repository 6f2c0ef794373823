"""Transfer of dual variables from one completion of the labels to the next."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.potentials import calls
from structsolve.solvers.problem import Problem
from structsolve.structure.calls import difference

# Entries of shifted cuts below this are rounding errors of 1 - 1.
ROUNDING = 1e-12


def shifted_duals(
    run: Any, problem: Problem, before: np.ndarray, after: np.ndarray
) -> dict[str, np.ndarray] | None:
    """Return the cuts of a run for other true labels.

    A cut of margin rescaling is ``p = mu(truth) - mu(y)`` with the loss of y as its constant. For
    relaxations, mu(y) may be any marginals of the relaxation, and the loss is linear in them. The
    loss is the same for all completions of a label, so the same weights on
    ``p + mu(after) - mu(before)`` are a feasible point of the next dual; the true label gets the
    rest of the weight. Cuts stored as ``Phi' p`` are shifted by ``Phi' (mu(after) - mu(before))``.

    Parameters
    ----------
    run : Run
        On the labels ``before``.
    problem : Problem
    before, after : ndarray of int32
        Encoded labels of all examples, concatenated.

    Returns
    -------
    dict of str to ndarray, or None
        As ``run.loop.to_arrays()``; None if the solver or the surrogate has no such cuts.
    """
    loop = getattr(run, "loop", None)
    if problem.surrogate_name not in ("margin", "lp") or not hasattr(run, "take_over"):
        return None
    duals = loop.to_arrays()  # type: ignore[union-attr]
    if "y" in duals:
        return _without_truths(duals, after)
    if "key" not in duals:
        return None
    offsets = problem.examples.label_offsets
    moved = np.unique(np.searchsorted(offsets, np.flatnonzero(before != after), side="right") - 1)
    if not len(moved) or not len(duals["key"]):
        return duals
    shifts = {}
    for i in moved.tolist():
        part = slice(offsets[i], offsets[i + 1])
        shifts[i] = difference(problem.parts, i, after[part], before[part])
    if loop.short:  # type: ignore[union-attr]
        return {**duals, "value": _moved_short(problem, duals, shifts)}
    return {**duals, **_moved(problem, duals, shifts)}


def _moved_short(
    problem: Problem, duals: dict[str, np.ndarray], shifts: dict[int, Any]
) -> np.ndarray:
    """Return the entries of cuts of the length of w."""
    value = duals["value"].reshape(-1, problem.dim).copy()
    bounds = np.concatenate([[0], np.cumsum(duals["counts"])])
    for i, (columns, values) in shifts.items():
        move = np.zeros(problem.dim)
        calls.add(problem.potentials, i, columns, values, 1.0, move)
        value[bounds[i] : bounds[i + 1]] += move
    return value.ravel()


def _moved(
    problem: Problem, duals: dict[str, np.ndarray], shifts: dict[int, Any]
) -> dict[str, np.ndarray]:
    """Return the entries of cuts over the parts, and how many each has."""
    from scipy.sparse import csr_matrix  # heavy

    n, width = problem.n, problem.task.layout.max_theta
    length = np.zeros(n, dtype=np.int64)
    length[list(shifts)] = [len(columns) for columns, _ in shifts.values()]
    index, value = zip(*shifts.values())
    rows = np.concatenate([[0], np.cumsum(length)])
    shift = csr_matrix((np.concatenate(value), np.concatenate(index), rows), shape=(n, width))
    starts = np.concatenate([[0], np.cumsum(duals["nnz"], dtype=np.int64)])
    cuts = csr_matrix((duals["value"], duals["index"], starts), shape=(len(starts) - 1, width))
    cuts = cuts + shift[np.repeat(np.arange(n), duals["counts"])]
    cuts.data[np.abs(cuts.data) < ROUNDING] = 0
    cuts.eliminate_zeros()
    return {
        "nnz": np.diff(cuts.indptr).astype(np.int32),
        "index": cuts.indices.astype(np.int32),
        "value": cuts.data.astype(np.float64),
    }


def _without_truths(duals: dict[str, np.ndarray], truths: np.ndarray) -> dict[str, np.ndarray]:
    """Return the weights of single labels, which determine the weight of the true label."""
    owner = np.repeat(np.arange(len(truths)), duals["counts"])
    kept = duals["y"] != truths[owner]
    return {
        "counts": np.bincount(owner[kept], minlength=len(truths)).astype(np.int64),
        "weight": duals["weight"][kept],
        "y": duals["y"][kept],
    }
