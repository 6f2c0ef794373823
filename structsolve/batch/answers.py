"""Labels and marginals at given part scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._loops import labels_of, marginals_of
from ._sheets import Sheet
from .binding import binding_of
from .scores import Scores
from .values import like, sheet_of


def argmax(
    space: Any, scores: Scores, *, oracle: Any = None, n_jobs: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the best label of every example.

    Parameters
    ----------
    space : Space
    scores : Scores
    oracle : str or structsolve.lp.Backend, optional
        A solver of linear programs in place of the structure's own oracle.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    labels : ndarray of int32 of shape (size of all labels,)
        As the space encodes them, one after the other.
    values : ndarray of float64 of shape (n,)
        What they score.
    bounds : ndarray of float64 of shape (n,)
        What any label scores at most; the values, where the oracle is exact.

    Raises
    ------
    ValueError, TypeError
        As of :func:`value_and_gradient`.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.batch import Scores, argmax, score_space
    >>> trees = score_space("dependency")
    >>> arcs = np.array([3.0, 1.0, 0.0, 2.0])        # (0, 1), (2, 1), (0, 2), (1, 2)
    >>> labels, values, bounds = argmax(trees, Scores(arcs, examples=trees.pack_sizes([2])))
    >>> labels.tolist(), values.tolist()
    ([0, 1], [5.0])
    """
    binding = binding_of(space, scores.examples)
    layout, bound = binding.layout, binding.oracle(oracle)
    labels = np.zeros(int(binding.examples.label_offsets[-1]), dtype=np.int32)
    values, bounds = np.empty(layout.n), np.empty(layout.n)
    sheet = sheet_of(scores, layout, space.layout.blocks)
    labels_of(sheet, bound, labels, values, bounds, n_jobs, binding.rooms(bound))
    return labels, values, bounds


def marginals(
    space: Any, scores: Scores, projection: str = "entropy", *, n_jobs: int | None = None
) -> tuple[Scores, np.ndarray]:
    """Return the marginals of every example: ``argmax_mu G(mu) + <theta, mu>``.

    Parameters
    ----------
    space : Space
    scores : Scores
    projection : {"entropy", "euclidean"} or str, default="entropy"
        G: the entropy of labels (marginals of a Gibbs distribution), minus half the square of the
        node parts (SparseMAP), or another that a plugin gives.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    marginals : Scores
        In arrays like those of ``scores``, but a shared block that is given has one array for each
        example: shape (n, *shape).
    values : ndarray of float64 of shape (n,)
        The maximum; for "entropy" ``log sum_y exp <theta, mu(y)>``.

    Raises
    ------
    ValueError, TypeError
        As of :func:`value_and_gradient`; where the structure has no such projection.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.batch import Scores, marginals, score_space
    >>> rows = score_space("multiclass", 2)
    >>> scores = Scores(np.array([[0.0, np.log(3)]]), examples=rows.pack_sizes(1))
    >>> answer, values = marginals(rows, scores)
    >>> answer.node.round(6).tolist(), np.exp(values).round(6).tolist()
    ([[0.25, 0.75]], [4.0])
    """
    binding = binding_of(space, scores.examples)
    layout, bound, blocks = binding.layout, binding.projection(projection), space.layout.blocks
    source, values = sheet_of(scores, layout, blocks), np.empty(layout.n)
    answer = like(scores, source)
    answer.shared = {
        name: np.empty((layout.n, *array.shape), array.dtype)
        for name, array in (scores.shared or {}).items()
    }
    target = Sheet(
        layout,
        blocks,
        answer.node,
        answer.shared,
        answer.edge,
        scores.rows,
        scores.edge_rows,
        each=True,
        written=True,
    )
    marginals_of(source, target, bound, values, n_jobs, binding.rooms(bound))
    for block in blocks:
        if block.name in answer.shared:
            answer.shared[block.name][...] = target.block_views(block)
    return answer, values
