"""Linear programs over the output space of any structure that declares its polytope.

Takes polytopes and part scores; hands on labels, marginals and bounds, and oracles made of them.
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
