"""Vector loops in C, compiled for every width of registers, and their declarations for Cython.

It depends on no other layer, and provides tables of function pointers per padded row width.
"""
