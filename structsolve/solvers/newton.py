# The former place of Newton systems of classes.
from structsolve.utils.lazy import moved

__getattr__ = moved(__name__, "structsolve.plugins.multiclass.newton")
