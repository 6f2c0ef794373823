"""The former place of ExtremeSVM."""

from ..utils.lazy import moved

__getattr__ = moved(__name__, "structsolve.plugins.extreme")
