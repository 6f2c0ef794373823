# The former place of operators of one class a row.
from structsolve.utils.lazy import moved

__getattr__ = moved(__name__, "structsolve.plugins.multiclass.class_operators")
