"""Brute force in plain NumPy, independent of the library: what its answers are tested against."""
