"""The former place of what hierarchies have beside their structure."""

from ..utils.lazy import moved

__getattr__ = moved(__name__, "structsolve.plugins.dag")
