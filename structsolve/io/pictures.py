# The former place of the reader of pictures.
from structsolve.utils.lazy import moved

__getattr__ = moved(__name__, "structsolve.plugins.grid.reader")
