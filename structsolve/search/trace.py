"""One search on one example, step by step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class SearchResult(NamedTuple):
    """The result of a search on one example.

    Parameters
    ----------
    label : ndarray of int32
        Best label seen, encoded.
    value : float
        psi of the label, or of the mixture if the surrogate is relaxed.
    bound : float
        No label (or mixture, if the surrogate is relaxed) has a larger psi.
    calls : int
        Oracle calls.
    mixture : list of tuple
        Labels (None for a fractional vertex) and their shares: the maximiser over the hull.
    path : list of dict
        ``lam``, ``h``, ``g`` and ``bound`` of every oracle call, in order:
        ``h + lam g <= bound`` for all labels.
    points : ndarray of shape (n_points, 2)
        (h, g) of the truth and of all labels seen.
    """

    label: np.ndarray
    value: float
    bound: float
    calls: int
    mixture: list[tuple[np.ndarray | None, float]]
    path: list[dict[str, float]]
    points: np.ndarray


def trace(surrogate: Any, i: int, theta: Any, truth: Any) -> SearchResult:
    """Search one example with a bi-criteria surrogate, and return every step.

    Parameters
    ----------
    surrogate : Surrogate
        A native surrogate that searches.
    i : int
        Number of the example.
    theta : ndarray of float64
        Its part scores, flat.
    truth : ndarray of int32
        Its true label, encoded.

    Returns
    -------
    SearchResult

    Raises
    ------
    ValueError
        If the surrogate does not search, or an argument does not fit the example.

    Examples
    --------
    >>> import numpy as np
    >>> import structsolve
    >>> from structsolve.search import trace
    >>> from structsolve.surrogates import Slack
    >>> from structsolve.surrogates.task import Task
    >>> X, Y = [[[1.0], [-1.0]]], [["a", "b"]]
    >>> space, examples = structsolve.get_structure("chain").make_space(X, Y)
    >>> task = Task(space, examples)
    >>> surrogate = Slack().bind(task)
    >>> result = trace(surrogate, 0, np.zeros(task.layout.sizes(0)[0]), task.labels)
    >>> result.label.tolist(), result.value, result.calls
    ([1, 0], 2.0, 1)
    """
    if not hasattr(surrogate, "trace"):
        raise ValueError(
            f"surrogate {type(surrogate).__name__} makes one oracle call and no search; use a "
            "bi-criteria surrogate such as 'slack'"
        )
    answer = surrogate.trace(i, theta, truth)
    best, points = answer["outcome"], answer["points"]
    mixture = [(points[best["first"]]["label"], 1 - best["share"])]
    if best["first"] != best["second"]:
        mixture.append((points[best["second"]]["label"], best["share"]))
    relaxed = surrogate.relaxed
    return SearchResult(
        label=points[best["label"]]["label"],
        value=best["value"] if relaxed else best["label_value"],
        bound=best["bound"] if relaxed else best["label_bound"],
        calls=answer["calls"],
        mixture=mixture,
        path=answer["visits"],
        points=np.array([[p["h"], p["g"]] for p in points]),
    )
