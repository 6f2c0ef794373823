"""The former place of conditional risk minimisation."""

from ..utils.lazy import moved

__getattr__ = moved(__name__, "structsolve.plugins.risk")
