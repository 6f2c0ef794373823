"""PyTorch layers for every structure and surrogate: losses of scores, and decoding.

Takes tensors of part scores and the native entry of :mod:`structsolve.batch`; hands on tensors.
The one folder that imports torch, which ``import structsolve`` does not: the extra ``[torch]``
installs it.
"""

from .decoding import decode
from .loss import StructuredLoss

__all__ = ["StructuredLoss", "decode"]
