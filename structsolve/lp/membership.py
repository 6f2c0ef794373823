"""Checks of true labels against the rows of their polytopes, before training."""

from __future__ import annotations

import numpy as np

from ..operators import Parts
from ..structure.calls import encode
from .polytope import Polytope, Polytopes, built


def broken_row(polytope: Polytope, mu: np.ndarray) -> int | None:
    """Return a row of a polytope that a label's parts break.

    A variable with a single part, shared with no other variable, has its value.  Rows with
    other variables give no information, and are skipped.

    Parameters
    ----------
    polytope : Polytope
    mu : ndarray of shape (theta_size,)
        Parts of a label.

    Returns
    -------
    int or None
        The first broken row; None if no row shows that ``mu`` is outside.

    Raises
    ------
    ValueError
        If ``mu`` is too short for the polytope's parts.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from structsolve.lp import Polytope
    >>> from structsolve.lp.membership import broken_row
    >>> at_most_one = Polytope(sparse.csr_matrix(np.ones((1, 3))), np.zeros(1), np.ones(1),
    ...                        np.arange(3), lambda x: x.astype(np.int32))
    >>> broken_row(at_most_one, np.array([0.0, 1.0, 0.0])), broken_row(at_most_one, np.ones(3))
    (None, 0)
    """
    polytope.scores(mu)  # refuses parts beyond theta
    parts = polytope.parts
    used, times = np.unique(parts[parts >= 0], return_counts=True)
    first = parts.max(axis=1, initial=-1)
    single = (parts >= 0).sum(axis=1) == 1
    single[single] = times[np.searchsorted(used, first[single])] == 1
    x = np.where(single, mu[np.maximum(first, 0)], 0.0)
    A = polytope.A
    told = np.bincount(
        np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)), ~single[A.indices], A.shape[0]
    )
    total = A @ x
    near = 1e-9 * (1 + abs(A) @ abs(x))
    broken = (told == 0) & ((total < polytope.low - near) | (total > polytope.high + near))
    rows = np.flatnonzero(broken)
    return int(rows[0]) if rows.size else None


def check_labels(name: str, polytopes: Polytopes, parts: Parts, labels: np.ndarray) -> None:
    """Refuse true labels outside of their polytopes: training could not compare them with labels.

    Parameters
    ----------
    name : str
        Name of the structure.
    polytopes : Polytopes
    parts : Parts
        Bound to the same examples.
    labels : ndarray of int32
        True labels, concatenated.

    Raises
    ------
    ValueError
        The message names the first such example.
    """
    ends = parts.layout.examples.label_offsets
    known: dict = {}
    for i in range(parts.layout.n):
        key = polytopes.key(i)
        if key not in known:
            known = {key: built(polytopes, i)[0]}  # examples with equal keys are mostly adjacent
        index, value = encode(parts, i, np.ascontiguousarray(labels[ends[i] : ends[i + 1]]))
        mu = np.bincount(index, value, parts.layout.sizes(i)[0])
        row = broken_row(known[key], mu)
        if row is not None:
            raise ValueError(
                f"example {i}: the true label is no label of structure {name!r}: it breaks row "
                f"{row} of its polytope; correct the label, or leave the example out"
            )
