"""Batches of examples whose part scores are given: what a network needs of structures.

Takes arrays of scores and labels; hands on values, gradients, labels and marginals.  NumPy alone
will do.
"""

from .answers import argmax, k_best, marginals, marginals_vjp, samples
from .encoding import encode
from .products import hessian_product
from .scores import Scores
from .spaces import score_space
from .values import value_and_gradient

__all__ = [
    "Scores",
    "argmax",
    "encode",
    "hessian_product",
    "k_best",
    "marginals",
    "marginals_vjp",
    "samples",
    "score_space",
    "value_and_gradient",
]
