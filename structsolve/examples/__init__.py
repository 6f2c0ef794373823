"""Layer 1: users' X and y, checked and packed once into contiguous arrays.

Takes users' lists, arrays and matrices; returns :class:`~structsolve.Examples`, which every later
layer reads.
"""
