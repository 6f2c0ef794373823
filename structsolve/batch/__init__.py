"""Batches of examples with given part scores, for networks.

Takes arrays of scores and labels; returns values, gradients, labels and marginals.  Needs only
NumPy.
"""

from .answers import argmax, k_best, marginals, marginals_vjp, samples
from .distribution import (
    cross_entropy,
    entropy,
    expected_loss,
    kl_divergence,
    least_loss,
    log_partition,
    log_proba,
    most_probable,
)
from .encoding import encode
from .products import hessian_product
from .scores import Scores
from .spaces import score_space
from .values import value_and_gradient

__all__ = [
    "Scores",
    "argmax",
    "cross_entropy",
    "encode",
    "entropy",
    "expected_loss",
    "hessian_product",
    "k_best",
    "kl_divergence",
    "least_loss",
    "log_partition",
    "log_proba",
    "marginals",
    "marginals_vjp",
    "most_probable",
    "samples",
    "score_space",
    "value_and_gradient",
]
