"""Algorithms that several structures share: dynamic programs, flows, orders, entropies.

Takes vector loops and aligned memory; hands on compiled functions over plain arrays and graphs.
"""
