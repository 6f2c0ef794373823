"""Structures as JAX functions: losses, best labels and marginals of a network's scores.

Takes arrays of part scores, traced or not, and the native entry of :mod:`structsolve.batch`;
returns arrays.  Only this folder imports jax; ``import structsolve`` does not.  The extra ``[jax]``
installs it.
"""

try:
    import jax  # noqa: F401
except ImportError as error:
    raise ImportError("structsolve.jax needs JAX: pip install 'structsolve-learn[jax]'") from error

from .answers import Marginals, decode
from .distribution import Distribution
from .loss import StructuredLoss

__all__ = ["Distribution", "Marginals", "StructuredLoss", "decode"]
