"""Searches for the label of largest ``psi(h, g)`` with an oracle that maximises ``h + lam g``.

They take the label plane of one example (an oracle, parts and losses), and return the best label
or mixture, with an upper bound.
"""

from .choose import check_search, make_search
from .trace import SearchResult, trace

__all__ = ["SearchResult", "check_search", "make_search", "trace"]
