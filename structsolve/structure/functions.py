# The former place of FunctionStructure.
from structsolve.utils.lazy import moved

__getattr__ = moved(__name__, "structsolve.plugins.functions")
