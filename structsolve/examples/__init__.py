"""Layer 1: users' X and y, checked and packed once into contiguous arrays.

Takes lists, arrays and matrices as users have them; hands on :class:`~structsolve.Examples`, which
every later layer reads.
"""
