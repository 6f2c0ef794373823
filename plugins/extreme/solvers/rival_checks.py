"""Checks of an index's answers: shapes and ranges always, scores and bounds on samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from structsolve import registry
from structsolve.plugins.extreme.solvers.rivals import Answer, RivalIndex
from structsolve.registry.plugin import is_ours
from structsolve.utils.positional import positional_deprecated

if TYPE_CHECKING:
    from scipy import sparse

#: Relative difference allowed between two float32 scores.
ROUNDING = 1e-4


@positional_deprecated
def ask_rivals(
    index: RivalIndex,
    weights: Any,
    X: sparse.csr_matrix,
    exclude: np.ndarray,
    k: int,
    *,
    epsilon: float | None = None,
    examples: np.ndarray | None = None,
) -> Answer:
    """Return the rivals of rows from :meth:`RivalIndex.rivals`, after checking their form.

    Parameters
    ----------
    index : RivalIndex
        Started with these weights.
    weights : Postings or FeatureRows
    X : csr_matrix of float32 of shape (n, n_features)
    exclude : ndarray of int32 of shape (n,)
    k : int
    epsilon : float, optional
    examples : ndarray of int of shape (n,), optional
        Numbers of the rows, for messages; by default counted from 0.

    Returns
    -------
    ids : ndarray of int32 of shape (n, k)
    scores : ndarray of float32 of shape (n, k)
    bounds : ndarray of float64 of shape (n,)

    Raises
    ------
    ValueError, TypeError
        If the answer is invalid; names the index and the example.
    """
    name = called(index)
    answer = index.rivals(X, exclude, k, epsilon)
    if not isinstance(answer, tuple) or len(answer) != 3:
        raise TypeError(f"{name} returned {type(answer).__name__}, expected ids, scores and bounds")
    ids, scores, bounds = (np.asarray(part) for part in answer)
    if ids.dtype.kind not in "iu":
        raise TypeError(f"{name} returned ids of type {ids.dtype}, expected int32")
    n, n_classes = X.shape[0], weights.n_classes
    for part, array, shape in (
        ("ids", ids, (n, k)),
        ("scores", scores, (n, k)),
        ("bounds", bounds, (n,)),
    ):
        if array.shape != shape:
            raise ValueError(f"{name} returned {part} of shape {array.shape}, expected {shape}")
    numbers = np.arange(n) if examples is None else examples

    def refuse(wrong: np.ndarray, tell: Any) -> None:
        rows = np.flatnonzero(wrong if wrong.ndim == 1 else wrong.any(1))
        if len(rows):
            raise ValueError(f"{name}: example {numbers[rows[0]]}: {tell(rows[0])}")

    beyond = (ids < -1) | (ids >= n_classes)
    refuse(
        beyond,
        lambda i: f"rival {ids[i][beyond[i]][0]}, expected classes 0 to {n_classes - 1}, or -1",
    )
    refuse(
        (ids == exclude[:, None]) & (ids >= 0), lambda i: f"its own class {exclude[i]} is a rival"
    )
    ordered = np.sort(ids, axis=1)
    twice = (np.diff(ordered, axis=1) == 0) & (ordered[:, 1:] >= 0)
    refuse(twice, lambda i: f"rival {ordered[i, 1:][twice[i]][0]} comes twice")
    refuse(ids[:, 0] < 0, lambda i: "no rival, expected one at least")
    void = np.isnan(scores) | (np.isinf(scores) & (ids >= 0))
    refuse(void, lambda i: f"score {scores[i][void[i]][0]}, expected a finite one")
    refuse(~(bounds >= 0), lambda i: f"bound {bounds[i]:g}, expected at least 0")
    return (
        ids.astype(np.int32, copy=False),
        scores.astype(np.float32, copy=False),
        bounds.astype(float, copy=False),
    )


def check_rivals(
    index: RivalIndex,
    weights: Any,
    X: sparse.csr_matrix,
    exclude: np.ndarray,
    answer: Answer,
    examples: np.ndarray,
) -> None:
    """Compare an answer with the best rivals of a full scan; solvers check a few rows per pass.

    Parameters
    ----------
    index : RivalIndex
    weights : Postings or FeatureRows
        The weights for which the index answered.
    X : csr_matrix of float32 of shape (n, n_features)
    exclude : ndarray of int32 of shape (n,)
    answer : tuple
        The result of :func:`ask_rivals`.
    examples : ndarray of int of shape (n,)
        Numbers of the rows, for messages.

    Raises
    ------
    ValueError
        If a score is wrong, or the best rival scores more than the bound allows.  Names the index,
        its distribution if known, and the example.
    """
    ids, scores, bounds = answer
    true_scores = weights.scores(X, ids)
    best_ids, best_scores, _, _ = weights.top(X, 1, exclude=exclude)
    slack = ROUNDING * np.maximum(1, np.abs(best_scores[:, 0]))
    for i in range(len(ids)):
        wrong = np.flatnonzero((ids[i] >= 0) & ~(np.abs(scores[i] - true_scores[i]) <= slack[i]))
        if len(wrong):
            j = wrong[0]
            raise ValueError(
                f"{called(index)} lies about a score: example {examples[i]}: the score of class "
                f"{ids[i, j]} is {scores[i, j]:.6g}, expected {true_scores[i, j]:.6g}"
            )
        missed = float(best_scores[i, 0]) - float(scores[i, 0])
        if missed > bounds[i] + slack[i]:
            raise ValueError(
                f"{called(index)} lies about its bound: example {examples[i]}: it claimed a bound "
                f"{bounds[i]:.6g} and gave class {ids[i, 0]} with score {scores[i, 0]:.6g}; class "
                f"{best_ids[i, 0]} scores {best_scores[i, 0]:.6g}, missed by {missed:.6g}"
            )


def called(index: RivalIndex) -> str:
    """Return an index's name and source for messages.

    Parameters
    ----------
    index : RivalIndex

    Returns
    -------
    str
    """
    source = registry.default().source_of("rival_indexes", index)
    own = type(index)
    if not source and not is_ours(own.__module__):
        source = f"{own.__module__}.{own.__qualname__}"
    return f"rival index {index.name!r}" + (f" ({source})" if source else "")
