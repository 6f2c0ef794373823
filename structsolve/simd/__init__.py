"""Vector loops in C, compiled for every width of registers, and their declarations for Cython.

Takes nothing of this package; hands on tables of function pointers, one per padded row width.
"""
