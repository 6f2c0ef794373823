# The former place of walks over hierarchies.
from structsolve.utils.lazy import moved

__getattr__ = moved(__name__, "structsolve.plugins.dag.topological_order")
