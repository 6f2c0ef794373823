"""Membership of points of the label plane in a cone."""

import numpy as np


def in_cone(cone, h, g, tol=None):
    """Return whether (h, g) lie between the sides of a ``ConePair``; `tol` closes the cone."""
    h, g = np.asarray(h, float), np.asarray(g, float)
    below = np.isinf(cone.alpha)
    with np.errstate(invalid="ignore"):
        if tol is not None:
            right = h >= -tol if below else g <= cone.alpha * h + tol
            return (cone.beta * h <= g + tol) & right
        left = cone.beta * h <= g if cone.twin else cone.beta * h < g
        right = g < cone.alpha * h if cone.twin else g <= cone.alpha * h
        return left & (h >= 0 if below else right) & np.isfinite(h)
