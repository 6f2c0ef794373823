"""The former place of the solvers for very many classes."""

from .utils.lazy import moved_package

_ROOM = "structsolve.plugins.extreme"
__path__ = moved_package(__name__, f"{_ROOM}.solvers", f"{_ROOM}.weights")
