"""Linear programs over the output space of any structure that declares its polytope.

Takes polytopes and part scores; hands on labels, marginals and bounds, and oracles made of them.
"""

from .ask import ask_oracle, ask_polytopes, constrained_oracle, make_backend, program_oracle
from .base import Answer, Backend, Program
from .convex import Cvxpy
from .highs import Highs
from .decoder import LinearDecoder, Relaxed
from .local import LocalPolytopes, local_rows
from .polytope import Polytope, Polytopes

__all__ = [
    "Answer",
    "Backend",
    "Cvxpy",
    "Highs",
    "LinearDecoder",
    "LocalPolytopes",
    "Polytope",
    "Polytopes",
    "Program",
    "Relaxed",
    "ask_oracle",
    "ask_polytopes",
    "constrained_oracle",
    "local_rows",
    "make_backend",
    "program_oracle",
]
