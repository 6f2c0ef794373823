"""Layer 5: solvers, which turn cuts into weights: Frank-Wolfe, dual ascent, subgradients, cuts.

Takes potentials and a surrogate (a :class:`~structsolve.Problem`); returns weights, with primal,
dual and gap.
"""

from .bcfw import BCFW
from .choose import Auto, choose_solver
from .consensus import ConsensusADMM
from .cutting_plane import CuttingPlane
from .gbcfw import GBCFW, SDCA
from .interior_point import InteriorPoint
from .lbfgs import LBFGS
from .sgd import SGD
from .smo import SMO
from .super_modular import SuperModular
from .weight_constraints import LinearConstraint, WeightBounds

__all__ = [
    "BCFW",
    "GBCFW",
    "LBFGS",
    "SDCA",
    "SGD",
    "SMO",
    "Auto",
    "ConsensusADMM",
    "CuttingPlane",
    "InteriorPoint",
    "LinearConstraint",
    "SuperModular",
    "WeightBounds",
    "choose_solver",
]
