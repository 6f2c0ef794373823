"""Linear programs over the output space of any structure that declares its polytope."""

from .ask import ask_polytopes, constrained_oracle, make_backend, program_oracle
from .backends import Answer, Backend, Cvxpy, Highs, Program
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
    "ask_polytopes",
    "constrained_oracle",
    "local_rows",
    "make_backend",
    "program_oracle",
]
