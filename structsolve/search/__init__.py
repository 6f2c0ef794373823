"""Searches for the label of largest ``psi(h, g)`` with an oracle that maximises ``h + lam g``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

SEARCHES = ("convex-hull", "angular", "bisecting", "binary", "sarawagi", "exact")


def make_search(name: Any, max_calls: int = 50, tol: float | None = None) -> Any:
    """Return the native search called ``name``.

    Parameters
    ----------
    name : str or Search
        One of ``SEARCHES``; a native search passes through.
    max_calls : int, default=50
        Oracle calls per search at most.
    tol : float, optional
        Relative accuracy; the search's own by default.

    Examples
    --------
    >>> from structsolve.search import make_search
    >>> make_search("bisecting", max_calls=20).name
    'bisecting'
    """
    from .angular import Angular
    from .base import Search
    from .exact import Counting
    from .hull import ConvexHull
    from .scalar import Binary, Bisecting, SarawagiGupta

    if isinstance(name, Search):
        return name
    known = {
        "convex-hull": ConvexHull,
        "angular": Angular,
        "bisecting": Bisecting,
        "binary": Binary,
        "sarawagi": SarawagiGupta,
        "exact": Counting,
    }
    if name not in known:
        raise ValueError(f"unknown search {name!r}; known: {list(SEARCHES)}")
    if not isinstance(max_calls, int) or isinstance(max_calls, bool):
        raise ValueError(f"max_calls is {max_calls!r}, expected an integer")
    return known[name](max_calls) if tol is None else known[name](max_calls, float(tol))


def check_search(search: Any, psi: Any, oracle: Any, structure: str) -> None:
    """Refuse, in one sentence, a search that cannot do this.

    Raises
    ------
    ValueError
        When the search knows the product ``(h + 1) g`` alone and psi is another, or the oracle
        lacks the power that the search needs.
    """
    if search.product_only and not psi.product:
        raise ValueError(
            f"search {search.name!r} is for slack rescaling alone, not for {psi.name!r}; use "
            "search='convex-hull'"
        )
    if search.constrained and not oracle.has_constrained:
        raise ValueError(
            f"search 'angular' needs a constrained oracle, which structure {structure!r} does not "
            "have, nor a polytope to make one of; use search='convex-hull', 'bisecting', 'binary' "
            "or 'sarawagi'"
        )
    if search.counting and not oracle.has_counts:
        raise ValueError(
            f"search 'exact' needs an oracle that answers for every count of the loss, which "
            f"structure {structure!r} does not have; use search='convex-hull'"
        )


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
    from ..potential_faces import score

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
