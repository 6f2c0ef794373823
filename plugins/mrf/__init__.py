"""Labelings of graphs: pairwise Markov random fields."""
