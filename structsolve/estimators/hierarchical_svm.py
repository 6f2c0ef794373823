"""The former place of HierarchicalSVM."""

from ..utils.lazy import moved

__getattr__ = moved(__name__, "structsolve.plugins.dag")
