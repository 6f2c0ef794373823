"""The k best labels, leaving out a list of banned ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


def kbest(
    oracle: Any,
    i: int,
    theta: np.ndarray,
    k: int,
    label_size: int,
    banned: Iterable[Any] = (),
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k best possible labels of example ``i`` that are not banned.

    Parameters
    ----------
    oracle : Oracle
        With k-best power.
    i : int
    theta : ndarray of float64
        Part scores; -inf forbids a part.
    k : int
        Fewer labels are returned where fewer exist.
    label_size : int
        Nodes of a label.
    banned : iterable of label
        Encoded labels to leave out.  Every one of them may be among the best, so ``k`` plus their
        number are asked for: meant for lists, not for thousands.

    Returns
    -------
    labels : ndarray of int32 of shape (found, label_size)
    values : ndarray of float64 of shape (found,)

    Examples
    --------
    >>> import numpy as np
    >>> import structsolve
    >>> from structsolve.structure.kbest import kbest
    >>> from structsolve.lp.ask import ask_oracle
    >>> space = structsolve.get_structure("multiclass").make_space([[0.0]] * 3, ["a", "b", "c"])
    >>> oracle = ask_oracle(space, space.pack([[0.0]]))
    >>> theta = np.array([1.0, 3.0, 2.0, 0.0])      # rows of three are padded to four
    >>> kbest(oracle, 0, theta, 2, 1, banned=[[1]])[0].tolist()
    [[2], [0]]
    """
    from .calls import kbest as best

    if not oracle.has_kbest:
        raise ValueError(f"{type(oracle).__name__} has no k-best power (has_kbest is False)")
    if k < 1:
        raise ValueError(f"k is {k}, expected at least 1")
    left_out = set()
    for label in banned:
        array = np.asarray(label)
        if array.shape != (label_size,) or array.dtype.kind not in "iu":
            raise ValueError(
                f"banned: found {label!r}, expected labels of {label_size} encoded states"
            )
        left_out.add(tuple(array.tolist()))
    labels, values = best(oracle, i, theta, k + len(left_out), label_size)
    keep = [
        row
        for row, label in enumerate(labels.tolist())
        if values[row] > -np.inf and tuple(label) not in left_out
    ][:k]
    return labels[keep], values[keep]
