"""Projections for any structure: Euclidean, max-min, softmax of rows.

They take oracles, parts and losses, and return :class:`~structsolve.operators.Projection` objects.
"""
