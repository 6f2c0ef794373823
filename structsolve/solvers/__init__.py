"""Solvers: block-coordinate Frank-Wolfe, stochastic subgradients, cutting planes."""

from .bcfw import BCFW
from .cutting_plane import CuttingPlane
from .sgd import SGD
from .weight_constraints import LinearConstraint, WeightBounds

__all__ = ["BCFW", "SGD", "CuttingPlane", "LinearConstraint", "WeightBounds"]
