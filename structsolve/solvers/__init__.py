"""Solvers: block-coordinate Frank-Wolfe, dual ascent, subgradients, cutting planes."""

from .bcfw import BCFW
from .cutting_plane import CuttingPlane
from .gbcfw import GBCFW, SDCA
from .sgd import SGD
from .weight_constraints import LinearConstraint, WeightBounds

__all__ = ["BCFW", "GBCFW", "SDCA", "SGD", "CuttingPlane", "LinearConstraint", "WeightBounds"]
