"""Linear programs over the output space of any structure that declares its polytope."""

from .polytope import Polytope, Polytopes

__all__ = ["Polytope", "Polytopes"]
