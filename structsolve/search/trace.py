"""One search on one example, step by step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class SearchResult(NamedTuple):
    """What a search found on one example.

    Parameters
    ----------
    label : ndarray of int32
        Best label seen, encoded.
    value : float
        psi of the label, or of the mixture where the surrogate is relaxed.
    bound : float
        Nothing that was searched for has a larger psi.
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


def trace(problem: Any, i: int, w: Any) -> SearchResult:
    """Search one example of a problem with a bi-criteria surrogate, and tell how it went.

    Parameters
    ----------
    problem : Problem
        With a bi-criteria surrogate.
    i : int
        Number of the example.
    w : ndarray of shape (dim,), or fitted StructuredSVM
        Weights.

    Returns
    -------
    SearchResult

    Raises
    ------
    ValueError
        When the surrogate of the problem does not search.

    Examples
    --------
    >>> import numpy as np
    >>> import structsolve
    >>> from structsolve.search import trace
    >>> X, Y = [[[1.0], [-1.0]]], [["a", "b"]]
    >>> space = structsolve.get_structure("chain").make_space(X, Y)
    >>> problem = structsolve.Problem(space, space.pack(X, Y), surrogate="slack")
    >>> found = trace(problem, 0, np.zeros(problem.dim))
    >>> found.label.tolist(), found.value, found.calls
    ([1, 0], 2.0, 2)
    """
    from ..potentials.calls import score

    if not hasattr(problem.surrogate, "trace"):
        raise ValueError(
            f"surrogate {problem.surrogate_name!r} makes one oracle call and no search; use a "
            "bi-criteria surrogate such as 'slack'"
        )
    if not isinstance(getattr(w, "_w", w), np.ndarray) and not problem.potentials.has_weights:
        raise ValueError("trace: a kernel model has no weights; give w as a solver's run has it")
    weights = np.asarray(getattr(w, "_w", w), dtype=np.float64)
    told = problem.surrogate.trace(i, score(problem.potentials, i, weights))
    found, points = told["found"], told["points"]
    mixture = [(points[found["first"]]["label"], 1 - found["share"])]
    if found["first"] != found["second"]:
        mixture.append((points[found["second"]]["label"], found["share"]))
    relaxed = problem.surrogate.relaxed
    return SearchResult(
        label=points[found["label"]]["label"],
        value=found["value"] if relaxed else found["label_value"],
        bound=found["bound"] if relaxed else found["label_bound"],
        calls=told["calls"],
        mixture=mixture,
        path=told["visits"],
        points=np.array([[p["h"], p["g"]] for p in points]),
    )
