"""Linear programs over the output space of any structure that declares its polytope.

It takes polytopes and part scores, and returns labels, marginals, bounds and oracles.
"""

from .ask import ask_cones, ask_oracle, ask_polytopes, ask_program_power, make_backend
from .base import Answer, Backend, Program
from .constraints import ConstrainedPolytopes, LabelConstraint
from .convex import Cvxpy
from .decoder import LinearDecoder, Relaxed
from .highs import Highs
from .local import LocalPolytopes, local_rows
from .polytope import Polytope, Polytopes

__all__ = [
    "Answer",
    "Backend",
    "ConstrainedPolytopes",
    "Cvxpy",
    "Highs",
    "LabelConstraint",
    "LinearDecoder",
    "LocalPolytopes",
    "Polytope",
    "Polytopes",
    "Program",
    "Relaxed",
    "ask_cones",
    "ask_oracle",
    "ask_polytopes",
    "ask_program_power",
    "local_rows",
    "make_backend",
]
