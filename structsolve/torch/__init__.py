"""PyTorch layers for every structure and surrogate: losses, best labels, marginals, decisions.

Takes tensors of part scores and the native entry of :mod:`structsolve.batch`; returns tensors.
Only this folder imports torch; ``import structsolve`` does not.  The extra ``[torch]`` installs it.
"""

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "structsolve.torch needs PyTorch: pip install 'structsolve-learn[torch]'"
    ) from error

from .decisions import BlackboxDiff, SPOPlus
from .decoding import Sample, decode
from .device import on_device
from .distribution import Distribution
from .loss import StructuredLoss
from .marginals import Marginals
from .output_layer import CRF, OutputLayer
from .perturbed import PerturbedArgmax

__all__ = [
    "CRF",
    "BlackboxDiff",
    "Distribution",
    "Marginals",
    "OutputLayer",
    "PerturbedArgmax",
    "SPOPlus",
    "Sample",
    "StructuredLoss",
    "decode",
    "on_device",
]
