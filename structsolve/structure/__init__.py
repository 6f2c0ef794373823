"""Layer 3: declarations of structures (oracle, parts, projection, loss), and calls to them.

Takes packed examples; returns native operators on part scores, made by plugins or by adapters of
Python classes.
"""
