"""Algorithms that several structures share: dynamic programs, flows, orders, entropies.

They use vector loops and aligned memory, and are compiled functions over arrays and graphs.
"""
