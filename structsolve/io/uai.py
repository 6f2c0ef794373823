# The former place of the reader of UAI models.
from structsolve.utils.lazy import moved

__getattr__ = moved(__name__, "structsolve.plugins.mrf.uai")
