"""Structures as JAX functions: losses, best labels and marginals of scores that a network computes.

Takes arrays of part scores, traced or not, and the native entry of :mod:`structsolve.batch`; hands
on arrays.  The one folder that imports jax, which ``import structsolve`` does not: the extra
``[jax]`` installs it.
"""

try:
    import jax  # noqa: F401
except ImportError as error:
    raise ImportError("structsolve.jax needs JAX: pip install 'structsolve-learn[jax]'") from error

from .answers import Marginals, decode
from .loss import StructuredLoss

__all__ = ["Marginals", "StructuredLoss", "decode"]
