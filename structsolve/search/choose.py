"""Searches by name, and what each needs."""

from __future__ import annotations

from typing import Any

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
