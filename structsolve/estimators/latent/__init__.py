"""Partial labels: sets of allowed labels, hidden states, and rounds that complete labels.

Takes packed examples and a solver's problem; returns weights.  Its estimator is LatentSVM.
"""
