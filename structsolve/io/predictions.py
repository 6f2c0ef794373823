# The former place of ranked labels as text.
from structsolve.utils.lazy import moved

__getattr__ = moved(__name__, "structsolve.plugins.extreme.predictions")
