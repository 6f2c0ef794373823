"""Solvers."""
from .bcfw import BCFW
SGD = CuttingPlane = BCFW
