# The former place of the readers of very many classes.
from structsolve.utils.lazy import moved

__getattr__ = moved(__name__, "structsolve.plugins.extreme.reader")
