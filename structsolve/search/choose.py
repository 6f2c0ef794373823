"""Searches by name, and their requirements."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from .. import abi, registry
from .base import Search


def make_search(name: Any, max_calls: int = 50, tol: float | None = None) -> Any:
    """Return the native search called ``name``.

    Parameters
    ----------
    name : str or Search
        A search from a plugin, such as "convex-hull", "angular", "bisecting", "binary",
        "sarawagi" or "exact"; a native search is returned unchanged.
    max_calls : int, default=50
        Maximum number of oracle calls per search.
    tol : float, optional
        Relative accuracy; by default the search's default.

    Returns
    -------
    structsolve.search.base.Search

    Raises
    ------
    ValueError
        If no plugin provides the search, or its settings are wrong.
    TypeError
        If a plugin's factory returns anything but a search.

    Examples
    --------
    >>> from structsolve.search import make_search
    >>> make_search("bisecting", max_calls=20).name
    'bisecting'
    """
    if isinstance(name, Search):
        return name
    if not isinstance(name, str):
        raise ValueError(
            f"search is {name!r}, expected a name (known: {registry.default().names('searches')}) "
            "or a Search"
        )
    factory = registry.default().find("searches", name).factory
    if not isinstance(max_calls, Integral) or isinstance(max_calls, bool):
        raise ValueError(f"max_calls is {max_calls!r}, expected an integer")
    settings = (int(max_calls),) if tol is None else (int(max_calls), float(tol))
    made = registry.create("searches", name, factory, *settings)
    registry.default().check_answer("structsolve_searches", made, Search)
    return made


def check_search(search: Any, psi: Any, cones: Any, counts: Any, structure: str) -> None:
    """Refuse a search that does not fit psi or the structure.

    Parameters
    ----------
    search : Search
    psi : Psi
    cones : ConeOracle, or None
    counts : CountOracle, or None; for the 0-1 loss KBest, or None
        Powers of the structure; a search uses those that it needs.
    structure : str
        Its name, for the message.

    Raises
    ------
    ValueError
        If the search needs the product ``(h + 1) g`` and psi is another function, or the structure
        lacks the power that the search needs.
    ImportError
        If the search was compiled against another C API.
    """
    abi.refuse_stale(search)
    if search.product_only and not psi.product:
        raise ValueError(
            f"search {search.name!r} is for slack rescaling alone, not for {psi.name!r}; use "
            "search='convex-hull'"
        )
    if search.constrained and cones is None:
        raise ValueError(
            f"search {search.name!r} needs a constrained oracle, which structure {structure!r} "
            "does not have, nor a polytope to make one of; use search='convex-hull', 'bisecting', "
            "'binary' or 'sarawagi'"
        )
    if search.counting and counts is None:
        raise ValueError(
            f"search {search.name!r} needs an oracle that answers for every count of the loss, "
            f"which structure {structure!r} does not have; use search='convex-hull'"
        )
