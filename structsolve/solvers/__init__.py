"""Layer 5: solvers, which turn cuts into weights: Frank-Wolfe, dual ascent, subgradients, cuts.

Takes potentials and a surrogate (a :class:`~structsolve.Problem`); returns weights, with primal,
dual and gap.
"""

from ..utils.lazy import moved
from .bcfw import BCFW
from .choose import Auto, choose_solver
from .consensus import ConsensusADMM
from .cutting_plane import CuttingPlane
from .gbcfw import GBCFW, SDCA
from .lbfgs import LBFGS
from .online import AROW, PassiveAggressive, Perceptron
from .sgd import SGD
from .smoothing import Smoothing
from .super_modular import SuperModular
from .weight_constraints import LinearConstraint, WeightBounds

__all__ = [
    "AROW",
    "BCFW",
    "GBCFW",
    "LBFGS",
    "SDCA",
    "SGD",
    "Auto",
    "ConsensusADMM",
    "CuttingPlane",
    "LinearConstraint",
    "PassiveAggressive",
    "Perceptron",
    "Smoothing",
    "SuperModular",
    "WeightBounds",
    "choose_solver",
]
__getattr__ = moved(__name__, "structsolve.plugins.multiclass", "InteriorPoint", "SMO")
