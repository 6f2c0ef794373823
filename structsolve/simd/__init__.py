"""Vector loops in C, compiled for every width of registers, and their Cython face.

Takes nothing of this package; hands on tables of function pointers, one per padded row width.
"""
