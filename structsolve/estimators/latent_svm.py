"""The former place of LatentSVM."""

from ..utils.lazy import moved

__getattr__ = moved(__name__, "structsolve.plugins.latent")
