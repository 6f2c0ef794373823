"""Brute force in plain NumPy, independent of the library, as a reference for its answers."""
