"""Solvers for very many classes, with weights stored by feature and indexes of rivals.

The layer takes sparse rows, class numbers and surrogates of the layers below.  It returns sparse
weights and a history of bounds.
"""
