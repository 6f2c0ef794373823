"""Projections that any structure can have: Euclidean, max-min, softmax of rows.

Takes oracles, parts and losses; hands on :class:`~structsolve.operators.Projection` objects.
"""
